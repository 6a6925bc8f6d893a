//! Subscriptions from a time, at the tail: each waits there for the first batch behind which nothing from before its
//! time can come, and goes live with it.
//!
//! Where clocks may go back there may be others before that one: of its time or later, which are for it, and older
//! ones, which are not. So until then it is given the former one by one, as one that is behind. Where times never go
//! back the first batch of its time is the one that it waits for.

use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, LogKey};
use crate::link::Part;
use airmail_log::Stored;
use airmail_model::frame::Delivered;

impl Gateway {
    /// A batch has come to the tail: those of a pace who wait for a time go on with it, or are given what is theirs.
    pub(super) fn wake_timed(
        &mut self,
        (log, pace): (LogKey, Pace),
        stored: &Stored,
        out: &mut GatewayEffects,
    ) {
        let clock = self.logs.clock;
        let tail = self.logs[log].tail.of_mut(pace);
        if tail.timed.is_empty() {
            return;
        }
        while let Some(waiting) = tail.wake_by_time(clock, stored.appended) {
            let behind = &mut self.behind[waiting];
            behind.not_before = None;
            behind.at = behind.at.max(stored.extent.first);
            tail.waiting.insert((behind.at, waiting));
        }
        for waiting in tail.timed_up_to(stored.appended) {
            self.give_timed(waiting, stored, out);
        }
    }

    /// Gives one that goes on waiting for its time the part of a batch that is for it.
    fn give_timed(&mut self, key: BehindKey, stored: &Stored, out: &mut GatewayEffects) {
        let behind = &self.behind[key];
        let first = behind.at.max(stored.extent.first);
        let wanted = behind.scope.topic();
        let mut topics = stored.batch.topic_hashes();
        let place = wanted.and_then(|topic| topics.position(|of| of == topic));
        if wanted.is_some() && place.is_none() {
            // Input: a batch of other topics.
            return;
        }
        let keep = |index: u16, of: u16| {
            place.is_none_or(|place| usize::from(of) == place)
                && stored.base.plus(index.into()) >= first
        };
        let Some(body) = stored.batch.slice(keep) else {
            // Input: a batch that ends before the subscription begins.
            return;
        };
        let part = Part {
            first,
            end: stored.extent.next(),
            base: stored.base,
            appended: stored.appended,
            body: Delivered::Slice(body),
        };
        self.give_part(key, part, out);
    }
}
