//! Appends of one log that are under way, and what its producers may send next.
//!
//! Leaving copies out when they are read is sound only if the *first* copy of a producer's batch is behind a first copy
//! of the batch before it. Three rules here make it so, and one of the [`Brokers`](crate::brokers::Brokers), that a record
//! is stored only behind all that were handed over before it:
//!
//! - A producer's batches are handed over in order. One that is above the next is refused, unless the log itself shows
//!   the one before it, or the producer is new here: it may come from another node, and begin anywhere. A refusal
//!   before hand-over is the only one after which the same batch may be sent again; what is behind it is above the
//!   next.
//! - An error in a report says nothing of what is stored, and no report in [`LIMIT`] neither. The batch, and everything of
//!   that producer behind it, is of unknown outcome, and nothing more of that epoch is taken: else it could be stored once
//!   more behind its successor, and be acknowledged though no reader will see it. Whoever sends such a thing again hears
//!   that its producer is unknown here, which begins a new epoch; an outcome that is told as unknown is asked for again.
//! - A report of an offset that is not above the one before it, or that was read before the record was handed over, or of a
//!   record that is stale, acknowledges nothing: the partition is another than it was.
//! - A producer's batch is acknowledged when the log is *read through* to its record, and shows that it is held: there,
//!   or in a copy before. A client that has come from another node sends again what it has no answer for; if the other
//!   one's copies are in another order than they were sent, the one that is stored here is left out, for its successor
//!   was first. If that, or the reading itself, does not come in [`PROOF`], the outcome is unknown.
//! - Of a producer whose epoch is *whole* here its report acknowledges a batch: every batch of the epoch, from sequence 0
//!   on, was said to be sole ([`Call::Append`](airmail_log::Call::Append)), and was handed over here in its turn.
//!
//! Why a report is proof of a whole epoch. A record is left out only if it is stale, which its report shows, or if a
//! record of its producer with a higher place stands before the first copy of its batch. Such a record was not
//! handed over here, where the batches go in order. So somebody else would have to have been given a *higher* batch of the
//! epoch, or a higher epoch, before this one is acknowledged. The ways on which that might be, and what excludes each:
//!
//! - *A client at another node, before or after.* It says of the first batch of an epoch that nothing of the epoch was sent
//!   over another stream, and goes by no answer of a stream that it has left: what is acknowledged there is acknowledged
//!   to nobody. A client that comes back, A to B to A, begins a stream within its epoch, which is not sole; and the copies
//!   that it has left here make what it sends again lower than the next.
//! - *A link that is cut, a log that moves to another tower.* What was sent over a link is sent again as not sole, before
//!   all that comes later: at the other tower, and at this one if the log comes back, the epoch is whole no more, even if
//!   that very batch is refused. One that is sent to another tower for the first time does not begin at 0 there.
//! - *A parent in a tree that was left*, and passes on late what it was given. The child has sent that again, not sole,
//!   elsewhere; its answer to the parent reaches nobody.
//! - *An unknown outcome.* The stream's gateway says sole no more, for that epoch in that stream. A gateway's own stamps go
//!   on in a new epoch.
//! - *A new epoch after UNKNOWN_PRODUCER*, which begins at 0: what comes late of the old one is left out, and changes nothing.
//! - *A node that has forgotten the producer, or has started anew*: what comes next does not begin at 0.
//!
//! Appends are answered in the order of the calls. Kafka's reports may come in another, so each waits for those
//! before it, and is judged only then.
//!
//! Invariant `counted_bytes`: the bytes under way are those of the appends without a report, those among them that are
//! answered already: their records are under way all the same.

use crate::brokers::{Produced, Token, Unstored};
use crate::place::Offset;
use crate::producers::{Producers, STALE_MS};
use airmail_log::{Completion, Refusal, Tag};
use airmail_model::batch::ProducerStamp;
use airmail_model::{
    AppendTime, Durability, Extent, Mono, ProducerEpoch, ProducerId, ProducerSequence,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Number of producers beyond which those that have nothing under way are forgotten, the longest idle first.
const SENDERS_MAX: usize = 100_000;
/// Most bytes under way of one log.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// Longest time that an append waits for its report: longer than any client waits.
const LIMIT: Duration = Duration::from_secs(60);
/// Longest time from a report until the log is read through to its record.
const PROOF: Duration = Duration::from_secs(10);
/// Time without a report after which a log counts as slow.
const SLOW: Duration = Duration::from_secs(1);
/// Microseconds of a millisecond.
const MS_US: i64 = 1000;

/// A producer, as this node has sent for it.
#[derive(Clone, Copy, Debug)]
struct Sender {
    epoch: ProducerEpoch,
    /// The sequence that may be handed over next.
    next: u64,
    /// The highest epoch of which nothing more is taken.
    given_up: Option<ProducerEpoch>,
    under_way: u32,
    used: Mono,
    /// Every batch of the epoch, from its first on, was sole, and was handed over here in its turn.
    is_whole: bool,
}

/// Thing by which an append is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Its report.
    Report,
    /// The log, read through to its record.
    Reading,
}

/// Fate of an append.
#[derive(Debug)]
enum Fate {
    UnderWay(Token),
    Reported(Result<Produced, Unstored>, Mono),
    Refused(Refusal),
}

#[derive(Debug)]
struct Pending {
    t: Tag,
    fate: Fate,
    stamp: Option<ProducerStamp>,
    messages: u32,
    bytes: u64,
    sent_ms: i64,
    /// It is stored at this offset or above: what is below was read before.
    floor: Offset,
    proof: Proof,
    /// When it is of unknown outcome without a report.
    until: Mono,
}

/// An append that is handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandedOver {
    pub(crate) token: Token,
    pub(crate) stamp: Option<ProducerStamp>,
    pub(crate) messages: u32,
    pub(crate) bytes: u64,
    pub(crate) sent_ms: i64,
    /// The log is read through to here.
    pub(crate) floor: Offset,
    pub(crate) proof: Proof,
}

/// Appends of one log.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    pending: VecDeque<Pending>,
    senders: BTreeMap<ProducerId, Sender>,
    /// Bytes of the records that were answered without a report.
    late: BTreeMap<Token, u64>,
    /// Bytes without a report.
    bytes: u64,
    /// When the last report came, or the first record was handed over after all were reported.
    progress: Mono,
    /// The highest offset that was reported.
    last: Option<Offset>,
    #[cfg(feature = "sabotage")]
    bug: Option<crate::sabotage::Bug>,
}

impl Sending {
    #[cfg(feature = "sabotage")]
    pub(crate) fn with_bug(self, bug: Option<crate::sabotage::Bug>) -> Sending {
        Sending { bug, ..self }
    }

    /// Bytes under way.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The offset behind the last record that was acknowledged.
    pub(crate) fn end(&self) -> Offset {
        self.last.map_or(Offset(0), |last| last.plus(1))
    }

    /// Whether every append is answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether the partition has reported nothing for a while.
    pub(crate) fn is_slow(&self, now: Mono) -> bool {
        self.bytes > 0 && now.since(self.progress) >= SLOW
    }

    /// Whether a batch may be handed over, by its producer's place and by whether it is sole; what proves it then.
    ///
    /// # Errors
    /// Why not. Nothing is stored, unless it says that it is not known.
    pub(crate) fn admit(
        &mut self,
        (stamp, sole): (ProducerStamp, bool),
        seen: &Producers,
        now: Mono,
    ) -> Result<Proof, Refusal> {
        let shown = seen.last(stamp.id);
        let sequence = stamp.sequence.0;
        if shown.is_some_and(|(epoch, _)| stamp.epoch < epoch) {
            return Err(Refusal::Fenced);
        }
        let new = Sender {
            epoch: stamp.epoch,
            next: sequence,
            given_up: None,
            under_way: 0,
            used: now,
            is_whole: sequence == 0,
        };
        let sender = self.senders.entry(stamp.id).or_insert(new);
        sender.used = now;
        if stamp.epoch < sender.epoch {
            return Err(Refusal::Fenced);
        }
        if sender.given_up.is_some_and(|epoch| stamp.epoch <= epoch) {
            return Err(Refusal::UnknownProducer);
        }
        if stamp.epoch > sender.epoch {
            sender.epoch = stamp.epoch;
            sender.next = sequence;
            sender.is_whole = sequence == 0;
        }
        // Also by one that is refused: elsewhere it may be stored.
        sender.is_whole &= sole && sequence >= sender.next;
        let is_shown = |(epoch, last): (ProducerEpoch, u64)| {
            epoch == stamp.epoch && sequence <= last.saturating_add(1)
        };
        #[cfg(feature = "sabotage")]
        if self.bug == Some(crate::sabotage::Bug::SoleAfterAMove) && sequence <= sender.next {
            return Ok(Proof::Report);
        }
        if sequence == sender.next && sender.is_whole {
            return Ok(Proof::Report);
        }
        if sequence <= sender.next || shown.is_some_and(is_shown) {
            sender.is_whole = false;
            return Ok(Proof::Reading);
        }
        Err(Refusal::OutOfOrder {
            expected: ProducerSequence(sender.next),
            found: stamp.sequence,
        })
    }

    /// Whether a sole batch begins its producer's epoch here, or goes on with one that is whole so far. One of an epoch that
    /// is over is to be refused here, too.
    pub(crate) fn may_be_whole(&self, stamp: ProducerStamp) -> bool {
        match self.senders.get(&stamp.id) {
            Some(sender) if sender.epoch == stamp.epoch => sender.is_whole,
            Some(sender) if sender.epoch > stamp.epoch => true,
            _ => stamp.sequence.0 == 0,
        }
    }

    /// Takes note of an append that was handed over.
    pub(crate) fn handed_over(&mut self, t: Tag, append: HandedOver, now: Mono) {
        if self.bytes == 0 {
            self.progress = now;
        }
        self.bytes += append.bytes;
        if let Some(stamp) = append.stamp
            && let Some(sender) = self.senders.get_mut(&stamp.id)
        {
            let next = stamp.sequence.0.saturating_add(append.messages.into());
            sender.next = sender.next.max(next);
            sender.under_way += 1;
        }
        self.pending.push_back(Pending {
            t,
            fate: Fate::UnderWay(append.token),
            stamp: append.stamp,
            messages: append.messages,
            bytes: append.bytes,
            sent_ms: append.sent_ms,
            floor: append.floor,
            proof: append.proof,
            until: now.plus(LIMIT),
        });
    }

    /// Takes note of an append that is refused, to be told in its turn.
    pub(crate) fn refuse(&mut self, t: Tag, stamp: Option<ProducerStamp>, why: Refusal) {
        self.pending.push_back(Pending {
            t,
            fate: Fate::Refused(why),
            stamp,
            messages: 0,
            bytes: 0,
            sent_ms: 0,
            floor: Offset(0),
            proof: Proof::Report,
            until: Mono::NEVER,
        });
    }

    /// Takes a report. Whether it was waited for.
    pub(crate) fn report(
        &mut self,
        token: Token,
        result: Result<Produced, Unstored>,
        now: Mono,
    ) -> bool {
        let is_of =
            |pending: &&mut Pending| matches!(pending.fate, Fate::UnderWay(of) if of == token);
        if let Some(pending) = self.pending.iter_mut().find(is_of) {
            self.bytes = self.bytes.saturating_sub(pending.bytes);
            pending.fate = Fate::Reported(result, now);
        } else if let Some(bytes) = self.late.remove(&token) {
            self.bytes = self.bytes.saturating_sub(bytes);
        } else {
            // Input: a report of an append that was given up with its log.
            return false;
        }
        self.progress = now;
        true
    }

    /// Gives the answers that are due, in the order of the calls. `seen` is what the log shows before `read`.
    pub(crate) fn answer(
        &mut self,
        held: Durability,
        (seen, read): (&Producers, Offset),
        now: Mono,
        out: &mut Vec<Completion>,
    ) {
        while let Some(pending) = self.pending.front() {
            match &pending.fate {
                Fate::UnderWay(_) if now < pending.until => return,
                Fate::UnderWay(token) => _ = self.late.insert(*token, pending.bytes),
                Fate::Reported(Ok(stored), at)
                    if pending.proof == Proof::Reading
                        && stored.offset >= read
                        && now.since(*at) < PROOF =>
                {
                    return;
                }
                Fate::Reported(..) | Fate::Refused(_) => {}
            }
            let Some(pending) = self.pending.pop_front() else {
                // Input: the last append, which was looked at.
                return;
            };
            let t = pending.t;
            out.push(match self.judge(pending, seen, read) {
                Ok((extent, at)) => Completion::Appended {
                    t,
                    extent,
                    at,
                    held,
                    duplicate: false,
                    exact: false,
                },
                Err(why) => Completion::Refused { t, why },
            });
        }
        self.forget();
    }

    /// When the first append is of unknown outcome for want of a report, or of being read, if it waits for that.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let first = self.pending.front()?;
        match &first.fate {
            Fate::UnderWay(_) => Some(first.until),
            Fate::Reported(_, at) => Some(at.plus(PROOF)),
            Fate::Refused(_) => None,
        }
    }

    fn judge(
        &mut self,
        pending: Pending,
        seen: &Producers,
        read: Offset,
    ) -> Result<(Extent, AppendTime), Refusal> {
        #[cfg(feature = "sabotage")]
        if self.bug == Some(crate::sabotage::Bug::ReportRetriable)
            && matches!(pending.fate, Fate::Reported(Err(_), _))
        {
            let retry_after = SLOW;
            return Err(Refusal::Busy { retry_after });
        }
        let result = match pending.fate {
            Fate::Refused(why) => return Err(why),
            Fate::UnderWay(_) => Err(Unstored("no report".into())),
            Fate::Reported(result, _) => result,
        };
        let last = self.last;
        let stored = result.ok().filter(|stored| {
            last.is_none_or(|last| stored.offset > last)
                && stored.offset >= pending.floor
                && stored.appended_ms.saturating_sub(pending.sent_ms) <= STALE_MS
        });
        self.last = stored.map_or(last, |stored| Some(stored.offset));
        let is_held = |stored: &Produced| {
            let is_shown = |stamp| stored.offset < read && seen.holds(stamp, pending.messages);
            pending.proof == Proof::Report || pending.stamp.as_ref().is_none_or(is_shown)
        };
        let stored = stored.filter(is_held);
        if let Some(stamp) = pending.stamp
            && let Some(sender) = self.senders.get_mut(&stamp.id)
        {
            sender.under_way = sender.under_way.saturating_sub(1);
            if stored.is_none() {
                sender.given_up = sender.given_up.max(Some(stamp.epoch));
            }
            if sender.given_up.is_some_and(|epoch| stamp.epoch <= epoch) {
                return Err(Refusal::OutcomeUnknown);
            }
        }
        let stored = stored.ok_or(Refusal::OutcomeUnknown)?;
        let extent = Extent::starting_at(stored.offset.number(), pending.messages);
        Ok((extent, AppendTime(stored.appended_ms.saturating_mul(MS_US))))
    }

    /// Gives up everything under way: nobody will report.
    pub(crate) fn give_up(&mut self) {
        self.bytes = 0;
        self.late.clear();
        for pending in &mut self.pending {
            if matches!(pending.fate, Fate::UnderWay(_)) {
                pending.fate = Fate::Reported(Err(Unstored("given up".into())), Mono(0));
            }
        }
    }

    fn forget(&mut self) {
        if self.senders.len() <= SENDERS_MAX {
            return;
        }
        let idle = self.senders.values().filter(|sender| sender.under_way == 0);
        let mut used: Vec<Mono> = idle.map(|sender| sender.used).collect();
        used.sort_unstable();
        if let Some(before) = used.get(used.len() / 2).copied() {
            let is_kept = |sender: &Sender| sender.under_way > 0 || sender.used > before;
            self.senders.retain(|_, sender| is_kept(sender));
        }
    }

    /// Asserts what the module's documentation says.
    pub(crate) fn check(&self) {
        let under_way = |pending: &&Pending| matches!(pending.fate, Fate::UnderWay(_));
        let bytes: u64 = self.pending.iter().filter(under_way).map(|p| p.bytes).sum();
        let late: u64 = self.late.values().sum();
        assert_eq!(bytes + late, self.bytes, "counted_bytes");
    }
}

/// Whether a log, with what it and all logs have under way, may have so many bytes more. The last two are the bytes of all,
/// and the most that they may be.
pub(crate) fn has_room<'a>(
    (log, all): (&Sending, impl Iterator<Item = &'a Sending>),
    bytes: u64,
    (under_way, queue): (u64, u64),
    now: Mono,
) -> bool {
    let own = log.bytes();
    let free = queue.saturating_sub(under_way);
    if own > 0 && own + bytes > LOG_BYTES_MAX.min(free / 2) || bytes > free {
        return false;
    }
    if !log.is_slow(now) {
        return true;
    }
    let slow = all.filter(|log| log.is_slow(now));
    slow.map(Sending::bytes).sum::<u64>() + bytes <= queue / 2
}

#[cfg(test)]
mod tests;
