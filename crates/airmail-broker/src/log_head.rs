//! Logs as the shard knows them: whether each is open, how far it goes, and whose publishes the
//! storage has not yet answered.

use crate::input::SessionId;
use crate::keys::{LateKey, LogKey};
use crate::room::Room;
use airmail_flow::Ticket;
use airmail_model::batch::ProducerStamp;
use airmail_model::frame::{Ack, Refused, RequestId};
use airmail_model::{Incarnation, LogId, Sequence};
use std::collections::{BTreeMap, VecDeque};

/// Whether a log can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Openness {
    /// The storage has been asked to open it.
    Opening,
    /// It can be used.
    Open,
    /// It could not be opened; it will be tried again.
    Failed,
    /// The storage has been asked to delete it.
    Deleting,
}

/// A publish whose turn to be answered has not come.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) session: SessionId,
    pub(crate) request: RequestId,
    pub(crate) producer: Option<ProducerStamp>,
    pub(crate) messages: u16,
    pub(crate) bytes: usize,
    /// It went to the storage, which has not answered.
    pub(crate) in_flight: bool,
    /// Of the pilot, to be handed back with the answer.
    pub(crate) ticket: Option<Ticket>,
    /// The answer, if only its turn is missing.
    pub(crate) result: Option<Result<Ack, Refused>>,
}

/// A log.
#[derive(Debug)]
pub(crate) struct LogHead {
    pub(crate) id: LogId,
    pub(crate) openness: Openness,
    pub(crate) incarnation: Incarnation,
    /// The first number above all that the shard knows to be durable. Only this shard appends (a
    /// storage with many writers is refused), so every ack it gave is below.
    pub(crate) end: Sequence,
    pub(crate) room: Room,
    /// It has begun a new life since the shard began: no position of this one can lie beyond its
    /// end but by mistake.
    pub(crate) renewed: bool,
    /// Subscriptions that wait for its new life, by ticket.
    pub(crate) renewing: Vec<(LateKey, u64)>,
    /// Publishes in order; answered from the front.
    pub(crate) pending: VecDeque<Pending>,
    /// The number of the first in `pending`, counting all of the log's.
    pub(crate) first_pending: u64,
}

impl LogHead {
    /// The publish of a number, if its answer is still due.
    pub(crate) fn pending_mut(&mut self, number: u64) -> Option<&mut Pending> {
        let at = number.checked_sub(self.first_pending)?;
        self.pending.get_mut(usize::try_from(at).ok()?)
    }
}

/// Every log of the shard but log 0.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    heads: Vec<Option<Box<LogHead>>>,
    by_id: BTreeMap<LogId, LogKey>,
}

impl Logs {
    /// The log's key; made if the log is new.
    pub(crate) fn key(&mut self, id: LogId) -> LogKey {
        if let Some(key) = self.find(id) {
            return key;
        }
        let key = LogKey::new(self.heads.len());
        self.heads.push(Some(Box::new(LogHead {
            id,
            openness: Openness::Opening,
            incarnation: Incarnation(0),
            end: Sequence::FIRST,
            room: Room::default(),
            renewed: false,
            renewing: Vec::new(),
            pending: VecDeque::new(),
            first_pending: 0,
        })));
        self.by_id.insert(id, key);
        key
    }

    /// The key of a log.
    pub(crate) fn find(&self, id: LogId) -> Option<LogKey> {
        self.by_id.get(&id).copied()
    }

    /// A log, to look at.
    pub(crate) fn get(&self, key: LogKey) -> Option<&LogHead> {
        self.heads.get(key.place())?.as_deref()
    }

    /// A log, unless it has been deleted.
    pub(crate) fn get_mut(&mut self, key: LogKey) -> Option<&mut LogHead> {
        self.heads.get_mut(key.place())?.as_deref_mut()
    }

    /// Takes a log out.
    pub(crate) fn remove(&mut self, key: LogKey) -> Option<Box<LogHead>> {
        let head = self.heads.get_mut(key.place())?.take()?;
        self.by_id.remove(&head.id);
        Some(head)
    }

    /// Every log, in order of id.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (LogId, LogKey)> + '_ {
        self.by_id.iter().map(|(id, key)| (*id, *key))
    }
}

impl std::ops::Index<LogKey> for Logs {
    type Output = LogHead;

    #[expect(
        clippy::expect_used,
        reason = "only keys of logs not yet removed are kept"
    )]
    fn index(&self, key: LogKey) -> &LogHead {
        self.heads[key.place()].as_deref().expect("the log exists")
    }
}

impl std::ops::IndexMut<LogKey> for Logs {
    #[expect(
        clippy::expect_used,
        reason = "only keys of logs not yet removed are kept"
    )]
    fn index_mut(&mut self, key: LogKey) -> &mut LogHead {
        self.heads[key.place()]
            .as_deref_mut()
            .expect("the log exists")
    }
}
