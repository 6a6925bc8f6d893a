//! The order in which a log's publishes are answered: that in which they came, also of those that never
//! reach the storage (`order`).

use crate::input::SessionId;
use airmail_flow::Ticket;
use airmail_model::ProducerEpoch;
use airmail_model::batch::ProducerStamp;
use airmail_model::frame::{Ack, Refused, RequestId};
use std::collections::VecDeque;

/// Giver of the stamp of a batch that went on to the tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampedBy {
    /// Its client's, or none.
    Client,
    /// The gateway's own, of this epoch.
    Gateway(ProducerEpoch),
    /// The gateway's own, and the outcome of one before it is not known: even if it is stored, it may be left out.
    Doubted,
}

/// A publish whose turn to be answered has not come.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) session: SessionId,
    pub(crate) request: RequestId,
    pub(crate) producer: Option<ProducerStamp>,
    pub(crate) stamped: StampedBy,
    pub(crate) messages: u16,
    pub(crate) bytes: usize,
    /// The tower has been told to append it, and its answer has not been given on.
    pub(crate) in_flight: bool,
    /// The publish gate's, to be handed back with the answer.
    pub(crate) ticket: Option<Ticket>,
    /// The answer, if only its turn is missing.
    pub(crate) result: Option<Result<Ack, Refused>>,
}

/// A log's publishes in order, answered from the front.
#[derive(Debug, Default)]
pub(crate) struct PublishOrder {
    pending: VecDeque<Pending>,
    /// The number of the first in `pending`, counting all of the log's.
    first: u64,
}

impl PublishOrder {
    /// Puts one behind all others; gives its number.
    pub(crate) fn push(&mut self, pending: Pending) -> u64 {
        self.pending.push_back(pending);
        self.first + self.pending.len() as u64 - 1
    }

    /// The publish of a number, if its answer is still due.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Pending> {
        let at = number.checked_sub(self.first)?;
        self.pending.get_mut(usize::try_from(at).ok()?)
    }

    /// The outcome of a batch of the gateway's own is not known: those of its epoch that came behind it are in doubt.
    pub(crate) fn doubt(&mut self, number: u64, epoch: ProducerEpoch) {
        let behind = number.saturating_sub(self.first) + 1;
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        for pending in self.pending.iter_mut().skip(behind) {
            if pending.stamped == StampedBy::Gateway(epoch) && pending.result.is_none() {
                pending.stamped = StampedBy::Doubted;
            }
        }
    }

    /// Takes the first out, if it has its answer.
    pub(crate) fn pop_answered(&mut self) -> Option<Pending> {
        self.pending.front()?.result.as_ref()?;
        self.first += 1;
        self.pending.pop_front()
    }

    /// Takes all out, answered or not.
    pub(crate) fn take_all(&mut self) -> VecDeque<Pending> {
        self.first += self.pending.len() as u64;
        std::mem::take(&mut self.pending)
    }

    /// The number of the first that waits.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Those that wait, in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Pending> {
        self.pending.iter()
    }
}
