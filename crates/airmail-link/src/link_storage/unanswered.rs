//! Calls that are not answered: what a link asks again after a cut.
//!
//! Appends to one log are answered in the order of their calls, whatever order their fates become known in: one
//! whose outcome is known waits for those before it.
//!
//! Invariants: `bytes` is the size of the appends among the calls; each append among the calls, and no other
//! call, has its place in the order of its log; the first place of an order has no answer yet.

use airmail_log::{Call, Completion, Refusal, Tag};
use airmail_model::{LogId, bug};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Time after which what was refused as busy is worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Number of a call on the link, in the order in which the calls came. The same in every attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallNumber(pub(super) u64);

/// A call that is not answered.
#[derive(Debug)]
pub(super) struct Unanswered {
    /// The owner's tag.
    pub(super) tag: Tag,
    pub(super) call: Call,
    /// It was sent over the present connection.
    pub(super) is_sent: bool,
    /// It was sent over an earlier one, and nobody knows what has become of it there.
    pub(super) is_doubtful: bool,
    /// It was sent to another node, or to one that passes it on elsewhere, which may do so at any time.
    pub(super) is_elsewhere: bool,
}

impl Unanswered {
    /// The call under its number. An append that goes once more is sole no longer: it may be stored already, or be stored
    /// where it went before, behind its successor.
    pub(super) fn to_send(&self, number: CallNumber) -> Call {
        let mut call = self.call.clone();
        call.set_tag(Tag(number.0));
        if let Call::Append { sole, .. } = &mut call {
            *sole &= !self.is_doubtful;
        }
        call
    }
}

/// A call that goes from one link to another.
#[derive(Debug)]
pub(super) enum HandedCall {
    /// It has no answer.
    Open(Unanswered),
    /// An append that waits for those before it to be answered; the last that was refused for want of room, if so.
    Answered {
        answer: Completion,
        is_refused: bool,
    },
}

#[cfg(feature = "sabotage")]
impl HandedCall {
    /// A planted bug: whatever was sent to the tower before is not remembered.
    pub(super) fn undoubted(mut self) -> HandedCall {
        if let HandedCall::Open(of) = &mut self {
            of.is_doubtful = false;
            of.is_elsewhere = false;
        }
        self
    }
}

/// Place of an append in the order of its log's answers.
#[derive(Debug)]
struct Place {
    number: CallNumber,
    /// Its answer, until those before it have theirs.
    answer: Option<Completion>,
}

/// Calls by number. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    calls: BTreeMap<CallNumber, Unanswered>,
    orders: BTreeMap<LogId, VecDeque<Place>>,
    /// Number of appends that have a place in an order.
    appends: usize,
    /// Total size of the appends, in bytes.
    bytes: u64,
    /// The last append that was refused for want of room: until it is told, those behind it are refused too, so
    /// that a producer's batches keep their order.
    refused: Option<CallNumber>,
    /// The far end of a connection may pass on what it was asked when the connection is long gone.
    is_to_parents: bool,
}

impl Calls {
    /// None, of a link to whichever parent a node of a tree has.
    pub(super) fn to_parents() -> Calls {
        Calls {
            is_to_parents: true,
            ..Calls::default()
        }
    }

    /// Takes a call of the owner; or `None`, where it is refused for want of room, which is told in its turn.
    pub(super) fn take(
        &mut self,
        tag: Tag,
        call: Call,
        room: &Room,
        told: &mut VecDeque<Completion>,
    ) -> Option<CallNumber> {
        let number = self.number();
        let is_full = self.calls.len() >= room.calls;
        if let Call::Append { log, ref batch, .. } = call {
            let bytes = batch.bytes().len() as u64;
            let is_full = is_full
                || room.is_closing
                || self.refused.is_some()
                || self.bytes > 0 && self.bytes + bytes > room.append_bytes;
            if is_full {
                self.refuse(log, number, tag, told);
                return None;
            }
            self.bytes += bytes;
            self.appends += 1;
            let order = self.orders.entry(log).or_default();
            order.push_back(Place {
                number,
                answer: None,
            });
        } else if is_full {
            told.push_back(busy(tag));
            return None;
        }
        let unanswered = Unanswered {
            tag,
            call,
            is_sent: false,
            is_doubtful: false,
            is_elsewhere: false,
        };
        self.calls.insert(number, unanswered);
        Some(number)
    }

    /// A number for a call that the link makes itself, and does not keep here.
    pub(super) fn number(&mut self) -> CallNumber {
        self.last += 1;
        CallNumber(self.last)
    }

    /// Refuses an append as busy, behind what is before it.
    fn refuse(
        &mut self,
        log: LogId,
        number: CallNumber,
        tag: Tag,
        told: &mut VecDeque<Completion>,
    ) {
        match self.orders.get_mut(&log) {
            Some(order) => {
                self.appends += 1;
                self.refused = Some(number);
                order.push_back(Place {
                    number,
                    answer: Some(busy(tag)),
                });
            }
            None => told.push_back(busy(tag)),
        }
    }

    /// A call, unless it has been answered.
    pub(super) fn get_mut(&mut self, number: CallNumber) -> Option<&mut Unanswered> {
        self.calls.get_mut(&number)
    }

    /// Takes the answer to a call, and gives what can be told now. The call as it was, unless it was answered
    /// before.
    pub(super) fn answer(
        &mut self,
        number: CallNumber,
        mut answer: Completion,
        told: &mut VecDeque<Completion>,
    ) -> Option<Unanswered> {
        let unanswered = self.calls.remove(&number)?;
        answer.set_tag(unanswered.tag);
        match &unanswered.call {
            Call::Append { log, batch, .. } => {
                self.bytes -= batch.bytes().len() as u64;
                if unanswered.is_doubtful && leaves_in_doubt(&answer, unanswered.is_elsewhere) {
                    answer = unknown(unanswered.tag);
                }
                self.place(*log, number, answer, told);
            }
            _ => told.push_back(answer),
        }
        Some(unanswered)
    }

    /// Puts an append's answer in its place, and gives those that nothing is before.
    fn place(
        &mut self,
        log: LogId,
        number: CallNumber,
        answer: Completion,
        told: &mut VecDeque<Completion>,
    ) {
        let Some(order) = self.orders.get_mut(&log) else {
            bug!("append {number:?} to {log} has no place among its answers");
            told.push_back(answer);
            return;
        };
        if let Some(place) = order.iter_mut().find(|place| place.number == number) {
            place.answer = Some(answer);
        }
        while order.front().is_some_and(|place| place.answer.is_some()) {
            if let Some(place) = order.pop_front() {
                self.appends -= 1;
                self.refused = self.refused.filter(|refused| *refused != place.number);
                told.extend(place.answer);
            }
        }
        if order.is_empty() {
            self.orders.remove(&log);
        }
    }

    /// The connection is gone. An append that was sent, and that no storage could recognise if it came
    /// again, has an unknown outcome; the others will be sent again.
    pub(super) fn cut(&mut self, told: &mut VecDeque<Completion>) {
        let mut unknown = Vec::new();
        for (number, unanswered) in &mut self.calls {
            if let Call::Append { batch, .. } = &unanswered.call {
                unanswered.is_doubtful |= unanswered.is_sent;
                unanswered.is_elsewhere |= self.is_to_parents && unanswered.is_doubtful;
                if unanswered.is_sent && batch.producer().is_none() {
                    unknown.push(*number);
                }
            }
            unanswered.is_sent = false;
        }
        for number in unknown {
            self.give_up(number, told);
        }
    }

    /// A planted bug: what was sent before a cut is not remembered.
    #[cfg(feature = "sabotage")]
    pub(super) fn doubt_nothing(&mut self) {
        for unanswered in self.calls.values_mut() {
            unanswered.is_doubtful = false;
        }
    }

    /// Gives up every append, because the owner closes and there is no connection.
    pub(super) fn give_up_appends(&mut self, told: &mut VecDeque<Completion>) {
        let is_append = |of: &Unanswered| matches!(of.call, Call::Append { .. });
        let appends = self.calls.iter().filter(|(_, of)| is_append(of));
        let appends: Vec<CallNumber> = appends.map(|(number, _)| *number).collect();
        for number in appends {
            self.give_up(number, told);
        }
    }

    fn give_up(&mut self, number: CallNumber, told: &mut VecDeque<Completion>) {
        let Some(unanswered) = self.calls.get(&number) else {
            bug!("call {number:?} is given up twice");
            return;
        };
        let answer = if unanswered.is_doubtful || unanswered.is_sent {
            unknown(unanswered.tag)
        } else {
            busy(unanswered.tag)
        };
        self.answer(number, answer, told);
    }

    /// All of them, in the order in which they came.
    pub(super) fn numbers(&self) -> impl Iterator<Item = CallNumber> + '_ {
        self.calls.keys().copied()
    }

    /// Takes all calls of a log, to be asked over another link; those that are of interest here alone are forgotten.
    /// What the other far end could not recognise has an unknown outcome.
    pub(super) fn hand_over(
        &mut self,
        log: LogId,
        is_of_here: impl Fn(Tag) -> bool,
        told: &mut VecDeque<Completion>,
    ) -> Vec<HandedCall> {
        let of_log = self
            .calls
            .iter()
            .filter(|(_, of)| of.call.log() == Some(log));
        let (mut numbers, mut unknown) = (Vec::new(), Vec::new());
        for (number, of) in of_log {
            match &of.call {
                Call::Append { batch, .. } if batch.producer().is_none() && of.is_sent => {
                    unknown.push(*number);
                }
                Call::Append { .. } => {}
                _ => numbers.push(*number),
            }
        }
        for number in unknown {
            self.give_up(number, told);
        }
        let others = numbers
            .into_iter()
            .filter_map(|number| self.calls.remove(&number));
        let others = others.filter(|of| !is_of_here(of.tag));
        let mut handed: Vec<HandedCall> = others.map(HandedCall::Open).collect();
        for place in self.orders.remove(&log).into_iter().flatten() {
            self.appends -= 1;
            let is_refused = self.refused == Some(place.number);
            self.refused = self.refused.filter(|_| !is_refused);
            if let Some(answer) = place.answer {
                handed.push(HandedCall::Answered { answer, is_refused });
            } else if let Some(of) = self.calls.remove(&place.number) {
                if let Call::Append { batch, .. } = &of.call {
                    self.bytes -= batch.bytes().len() as u64;
                }
                handed.push(HandedCall::Open(of));
            }
        }
        for call in &mut handed {
            if let HandedCall::Open(of) = call {
                let is_append = matches!(of.call, Call::Append { .. });
                of.is_doubtful |= is_append && of.is_sent;
                of.is_elsewhere |= of.is_doubtful;
                of.is_sent = false;
            }
        }
        handed
    }

    /// Goes on with the calls of a log of another link. Those that are to be asked here.
    pub(super) fn take_over(
        &mut self,
        handed: Vec<HandedCall>,
        told: &mut VecDeque<Completion>,
    ) -> Vec<CallNumber> {
        let mut open = Vec::new();
        let mut last = None;
        for call in handed {
            let number = self.number();
            match call {
                HandedCall::Open(of) => {
                    if let Call::Append { log, batch, .. } = &of.call {
                        self.bytes += batch.bytes().len() as u64;
                        self.appends += 1;
                        let answer = None;
                        let order = self.orders.entry(*log).or_default();
                        order.push_back(Place { number, answer });
                        last = Some(*log);
                    }
                    self.calls.insert(number, of);
                    open.push(number);
                }
                HandedCall::Answered { answer, is_refused } => {
                    let Some(order) = last.and_then(|log| self.orders.get_mut(&log)) else {
                        bug!("{answer:?} waits for nothing");
                        told.push_back(answer);
                        continue;
                    };
                    self.appends += 1;
                    let answer = Some(answer);
                    order.push_back(Place { number, answer });
                    if is_refused {
                        self.refused = Some(number);
                    }
                }
            }
        }
        open
    }

    /// Whether an append to a log has no answer that was given.
    pub(super) fn has_appends(&self, log: LogId) -> bool {
        self.orders.contains_key(&log)
    }

    /// Number of appends whose answer was not given.
    pub(super) fn appends(&self) -> usize {
        self.appends
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let appends = self.calls.values().filter_map(|of| match &of.call {
            Call::Append { batch, .. } => Some(batch.bytes().len() as u64),
            _ => None,
        });
        let (number, bytes) = appends.fold((0, 0), |(number, sum), size| (number + 1, sum + size));
        assert_eq!(self.bytes, bytes, "bytes of the appends");
        let places = || self.orders.values().flatten();
        let open = places().filter(|place| place.answer.is_none());
        let known = open.filter(|place| self.calls.contains_key(&place.number));
        assert_eq!(known.count(), number, "appends that have a place");
        for (log, order) in &self.orders {
            let first = order.front().map(|place| place.answer.is_some());
            assert_eq!(first, Some(false), "{log}: the first has no answer yet");
        }
        assert_eq!(
            self.appends,
            places().count(),
            "answers that were not given"
        );
    }
}

/// Room for calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) append_bytes: u64,
    pub(super) calls: usize,
    /// The owner closes: there is room for no append.
    pub(super) is_closing: bool,
}

/// Whether an earlier attempt at an append may have stored it, though this one was answered so.
///
/// The far end gives a storage the attempts in their order, and a producer's batches are numbered: where the storage
/// misses one before this, it has stored no attempt at this. Any other refusal says nothing of the attempts before, and
/// none says anything of an attempt that went elsewhere: it may be on its way still.
fn leaves_in_doubt(answer: &Completion, is_elsewhere: bool) -> bool {
    match answer {
        Completion::Refused { .. } if is_elsewhere => true,
        Completion::Refused {
            why: Refusal::OutOfOrder { expected, found },
            ..
        } => found < expected,
        Completion::Refused { .. } => true,
        _ => false,
    }
}

/// An append, or another call, that was not sent.
fn busy(t: Tag) -> Completion {
    let retry_after = RETRY_AFTER;
    let why = Refusal::Busy { retry_after };
    Completion::Refused { t, why }
}

fn unknown(t: Tag) -> Completion {
    let why = Refusal::OutcomeUnknown;
    Completion::Refused { t, why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_log::conformance::{Maker, log};
    use airmail_model::ProducerSequence;

    #[test]
    fn only_a_batch_that_is_missed_before_this_one_shows_that_no_attempt_was_stored() {
        let t = Tag(1);
        let refused = |why| leaves_in_doubt(&Completion::Refused { t, why }, false);
        let out_of_order = |expected, found| Refusal::OutOfOrder {
            expected: ProducerSequence(expected),
            found: ProducerSequence(found),
        };
        assert!(!refused(out_of_order(7, 9)));
        // One that was stored, and whose answer is not remembered.
        assert!(refused(out_of_order(9, 7)));
        assert!(refused(Refusal::OutcomeUnknown));
        assert!(leaves_in_doubt(&busy(t), false));
        let why = out_of_order(7, 9);
        assert!(leaves_in_doubt(&Completion::Refused { t, why }, true));
    }

    /// The parent that was left may pass on what is missed before it, and then this.
    #[test]
    fn a_refusal_by_another_parent_says_nothing_of_what_the_one_before_was_asked() {
        let t = Tag(7);
        let expected = ProducerSequence(1);
        let found = ProducerSequence(2);
        let missed = Refusal::OutOfOrder { expected, found };
        for (mut calls, told_as) in [
            (Calls::default(), missed.clone()),
            (Calls::to_parents(), Refusal::OutcomeUnknown),
        ] {
            let mut told = VecDeque::new();
            let batch = Maker::of(log(0), 9, 1).at(2).batch(&[("a", "1")]);
            let append = Call::Append {
                t,
                log: log(0),
                map: batch.map_epoch(),
                batch,
                sole: false,
            };
            let room = Room {
                append_bytes: 1 << 20,
                calls: 9,
                is_closing: false,
            };
            let number = calls.take(t, append, &room, &mut told).unwrap();
            calls.get_mut(number).unwrap().is_sent = true;
            calls.cut(&mut told);
            assert_eq!(told, []);
            let why = missed.clone();
            calls.answer(number, Completion::Refused { t, why }, &mut told);
            let why = told_as;
            assert_eq!(told, [Completion::Refused { t, why }]);
        }
    }
}
