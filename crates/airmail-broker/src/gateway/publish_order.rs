//! The order in which a log's publishes are answered: that in which they came, also of those that never
//! reach the storage (`order`).
//!
//! Where the storage appends sole batches by another way, these have an order of their own, so that they do not wait
//! for what goes to a tower that is away. A producer's batches are all in one order as long as its epoch is sole.

use crate::input::SessionId;
use airmail_flow::Ticket;
use airmail_model::batch::ProducerStamp;
use airmail_model::frame::{Ack, Refused, RequestId};
use airmail_model::{Lane, ProducerEpoch};
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
    pub(crate) lane: Lane,
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
#[derive(Debug)]
pub(crate) struct PublishOrder {
    all: Line,
    /// Those that are sole, where they have an order of their own.
    sole: Line,
}

/// Marks numbers of the order of sole publishes.
const SOLE: u64 = 1 << 63;

impl Default for PublishOrder {
    fn default() -> PublishOrder {
        PublishOrder {
            all: Line::default(),
            sole: Line {
                first: SOLE,
                ..Line::default()
            },
        }
    }
}

impl PublishOrder {
    fn line(&mut self, number: u64) -> &mut Line {
        if number < SOLE {
            &mut self.all
        } else {
            &mut self.sole
        }
    }

    /// Puts one behind all others, or behind all sole ones; gives its number.
    pub(crate) fn push(&mut self, pending: Pending, is_apart: bool) -> u64 {
        let line = if is_apart {
            &mut self.sole
        } else {
            &mut self.all
        };
        line.pending.push_back(pending);
        line.first + line.pending.len() as u64 - 1
    }

    /// The publish of a number, if its answer is still due.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Pending> {
        let line = self.line(number);
        let at = number.checked_sub(line.first)?;
        line.pending.get_mut(usize::try_from(at).ok()?)
    }

    /// The outcome of a batch of the gateway's own is not known: those of its epoch that came behind it are in doubt.
    pub(crate) fn doubt(&mut self, number: u64, epoch: ProducerEpoch) {
        let line = self.line(number);
        let behind = number.saturating_sub(line.first) + 1;
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        for pending in line.pending.iter_mut().skip(behind) {
            if pending.stamped == StampedBy::Gateway(epoch) && pending.result.is_none() {
                pending.stamped = StampedBy::Doubted;
            }
        }
    }

    /// Takes the first of an order out, if it has its answer.
    pub(crate) fn pop_answered(&mut self) -> Option<Pending> {
        self.all.pop_answered().or_else(|| self.sole.pop_answered())
    }

    /// Takes all out, answered or not.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Pending> + use<> {
        let (all, sole) = (self.all.take_all(), self.sole.take_all());
        all.into_iter().chain(sole)
    }

    /// The numbers of the first that waits, and of the first that waits among the sole ones.
    pub(crate) fn first(&self) -> [u64; 2] {
        [self.all.first, self.sole.first]
    }

    /// Number of those that wait.
    pub(crate) fn len(&self) -> usize {
        self.all.pending.len() + self.sole.pending.len()
    }

    /// The first of each order.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = &Pending> {
        let fronts = [self.all.pending.front(), self.sole.pending.front()];
        fronts.into_iter().flatten()
    }

    /// Those that wait, each order in turn.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.all.pending.iter().chain(&self.sole.pending)
    }
}

/// Publishes that are answered from the front.
#[derive(Debug, Default)]
struct Line {
    pending: VecDeque<Pending>,
    /// The number of the first in `pending`, counting all that there ever were.
    first: u64,
}

impl Line {
    fn pop_answered(&mut self) -> Option<Pending> {
        self.pending.front()?.result.as_ref()?;
        self.first += 1;
        self.pending.pop_front()
    }

    fn take_all(&mut self) -> VecDeque<Pending> {
        self.first += self.pending.len() as u64;
        std::mem::take(&mut self.pending)
    }
}
