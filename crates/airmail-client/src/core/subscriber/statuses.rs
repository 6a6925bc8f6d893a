//! Statuses: where the node says that a subscription stands, held against the subscription's own
//! account.

use super::subscription_slot::{Mode, PartMode};
use super::{Event, Subscriber, SubscriberOutput};
use airmail_model::frame::{GapReason, State};
use airmail_model::position::LogPosition;
use airmail_model::{Error, LogId, Mono, Sequence};

impl Subscriber {
    pub(super) fn status(
        &mut self,
        now: Mono,
        index: u32,
        state: State,
        out: &mut SubscriberOutput,
    ) {
        match state {
            State::Live { ref places } => {
                let mut is_news = false;
                for place in places {
                    match self.live_at(index, *place, out) {
                        Some(is_new) => is_news |= is_new,
                        // What lies between has never come.
                        None => return self.resubscribe(index),
                    }
                }
                if !is_news {
                    return;
                }
            }
            State::Detached {
                log,
                incarnation,
                next,
                resumed,
                lost_before,
                beside,
            } => {
                if let Some(beside) = beside {
                    self.leave_live_in(index, beside.log.lane);
                    self.reconcile(index, beside, (false, None), out);
                    self.slots[index as usize].set_mode(beside.log.lane, PartMode::Detached);
                }
                let at_node = LogPosition {
                    log,
                    incarnation,
                    next,
                };
                self.leave_live_in(index, log.lane);
                self.reconcile(index, at_node, (resumed, lost_before), out);
                self.slots[index as usize].set_mode(log.lane, PartMode::Detached);
            }
            State::Complete { .. } => {
                out.events.push((self.key(index), Event::Status(state)));
                self.free_slot(index);
                return;
            }
            State::Failed(error) => return self.failed(now, index, error, out),
            // A change is answered under a generation of its own.
            State::Removed | State::Changed { .. } | State::Unchanged(_) => return,
        }
        self.refusals.backoff.reset();
        out.events.push((self.key(index), Event::Status(state)));
    }

    /// Puts a subscription on a log's live range; tells whether it was not there yet. `None`: it lacks what the range has
    /// told before.
    fn live_at(
        &mut self,
        index: u32,
        at_node: LogPosition,
        out: &mut SubscriberOutput,
    ) -> Option<bool> {
        let LogPosition {
            log,
            incarnation,
            next,
        } = at_node;
        if self.slots[index as usize].is(log.lane, PartMode::Live) {
            return Some(false);
        }
        if self.reconcile(index, at_node, (false, None), out) < next {
            return None;
        }
        self.keep_positions(log, next);
        let slot = &mut self.slots[index as usize];
        slot.set_mode(log.lane, PartMode::Live);
        self.live.join(log, incarnation, next, &slot.wanted, index);
        Some(true)
    }

    /// Saves the positions of those on a log's live range, before a newcomer at `next` sets the
    /// range back.
    fn keep_positions(&mut self, log: LogId, next: Sequence) {
        let range_next = self.live.next(log, next);
        if range_next == next {
            return;
        }
        for index in self.live_on(log) {
            self.slots[index as usize].advance(log.lane, range_next);
        }
    }

    /// Reconciles where a subscription stands by the node's account with its own account, which it
    /// keeps within a life of the log; gives the result. If the log has begun a new life, and the
    /// subscription has not `resumed` in it, the numbers that it did not get of the old life are
    /// reported as lost; where that was cut, those from the cut on up to `lost_before`, also what it got of them.
    fn reconcile(
        &mut self,
        index: u32,
        at_node: LogPosition,
        (resumed, lost_before): (bool, Option<Sequence>),
        out: &mut SubscriberOutput,
    ) -> Sequence {
        let slot = &mut self.slots[index as usize];
        let old = slot.earlier_life(at_node.log, at_node.incarnation);
        let own = match old {
            Some(old) if resumed => Some(old.next),
            Some(old) => {
                slot.set_place(old);
                let (first, last) = match lost_before {
                    Some(end) => (old.next.min(at_node.next), end.before()),
                    None => (old.next, Sequence::MAX),
                };
                self.emit_gap((index, at_node.log.lane), first, last, GapReason::Loss, out);
                self.slots[index as usize].expected(at_node.log, at_node.incarnation)
            }
            None => slot.expected(at_node.log, at_node.incarnation),
        };
        let own = own.unwrap_or(at_node.next);
        self.slots[index as usize].set_position(at_node, own);
        own
    }

    /// Fails a subscription, or has it requested again later if the error is waited for.
    fn failed(&mut self, now: Mono, index: u32, error: Error, out: &mut SubscriberOutput) {
        if error.code().waited_for() {
            self.leave_live(index);
            let until = now.plus(self.refusals.backoff.delay_for(&error));
            self.refusals.last = Some(error);
            self.set_untold(index, Mode::RetryAt(until));
            self.retries.insert((until, index));
            return;
        }
        let event = Event::Status(State::Failed(error));
        out.events.push((self.key(index), event));
        self.free_slot(index);
    }
}
