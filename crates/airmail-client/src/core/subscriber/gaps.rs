//! Gaps: numbers that will not come, and the subscriptions that learn of them.

use super::live_ranges::{Fit, fit};
use super::{Event, GapSeen, Subscriber, SubscriberOutput};
use airmail_model::bug;
use airmail_model::frame::{GapReason, Generation, SubscriptionId};
use airmail_model::{Extent, Lane, LogId, Sequence};

impl Subscriber {
    /// Advances a live range over numbers that will not come, and tells those on it, unless the
    /// numbers are unused.
    pub(super) fn live_gap(
        &mut self,
        log: LogId,
        previous: Sequence,
        last: Sequence,
        why: GapReason,
        out: &mut SubscriberOutput,
    ) {
        let Some(range) = self.live.ranges.get_mut(&log) else {
            // Input: a node that has sent it before it heard that nobody is live there any more.
            return;
        };
        let next = range.next;
        match fit(next, previous, last) {
            Fit::Duplicate => return,
            Fit::Hole => return self.resubscribe_live(log),
            Fit::New => range.next = last.plus(1),
        }
        if why == GapReason::Unused {
            return;
        }
        for index in self.live_on(log) {
            let from = self.slots[index as usize].next(log.lane).max(next);
            self.emit_gap((index, log.lane), from, last, why, out);
        }
    }

    /// Advances a subscription that is detached in a lane over numbers that will not come, and tells its user.
    pub(super) fn detached_gap(
        &mut self,
        channel: (SubscriptionId, Generation),
        lane: Lane,
        (previous, last): (Sequence, Sequence),
        why: GapReason,
        out: &mut SubscriberOutput,
    ) {
        if let Some((index, next)) = self.detached_range(channel, lane, (previous, last)) {
            let first = next.max(previous.plus(1));
            self.emit_gap((index, lane), first, last, why, out);
        }
    }

    pub(super) fn emit_gap(
        &self,
        (index, lane): (u32, Lane),
        first: Sequence,
        last: Sequence,
        why: GapReason,
        out: &mut SubscriberOutput,
    ) {
        let Some(at) = self.slots[index as usize].place(lane) else {
            bug!("{index} has no position, and {first} to {last} will not come");
            return;
        };
        if why == GapReason::Unused || first > last {
            return;
        }
        let gap = GapSeen {
            log: at.log,
            incarnation: at.incarnation,
            extent: Extent { first, last },
            why,
        };
        out.events.push((self.key(index), Event::Gap(gap)));
    }
}
