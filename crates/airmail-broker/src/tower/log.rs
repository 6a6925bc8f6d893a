//! Logs as the tower knows them: whether each is open, how far it goes, and the reader of its tail.

use crate::keys::TowerLogKey;
use crate::link::Interest;
use airmail_log::{LogLoss, LogSpec, ReaderId};
use airmail_model::{Holder, Incarnation, LogId, MapEpoch, Mono, Sequence};
use std::collections::BTreeMap;

/// Whether a log can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Openness {
    /// The storage has been asked to open it.
    Opening,
    /// It can be used.
    Open,
    /// It could not be opened; it will be tried again.
    Failed,
    /// Its storage has lost something of it, and log 0 says that it stops: nothing is tried before log 0 says more.
    Suspended,
    /// The storage has been asked to delete it.
    Deleting,
}

/// The reader of a log's tail, as long as the gateway is attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailReader {
    /// Generation of the attachment that it serves.
    pub(crate) generation: u64,
    pub(crate) interest: Interest,
    /// The storage's reader. `None`: it has failed, and is to be started again.
    pub(crate) reader: Option<ReaderId>,
    /// The first number that has not been given to the gateway.
    pub(crate) next: Sequence,
    /// Bytes that the reader has given since it was last granted any.
    pub(crate) given: u32,
}

/// A log.
#[derive(Debug)]
pub(crate) struct TowerLog {
    pub(crate) id: LogId,
    pub(crate) openness: Openness,
    /// Settings that its namespace wants.
    pub(crate) spec: LogSpec,
    pub(crate) incarnation: Incarnation,
    /// Where it is, if the storage has said that it is not here; the gateway has been told.
    pub(crate) holder: Option<Holder>,
    /// The first number above all that the tower knows to be durable. Others may have appended more: where
    /// the log ends now is asked of the storage.
    pub(crate) end: Sequence,
    pub(crate) tail: Option<TailReader>,
    /// The storage has lost it for a while.
    pub(crate) is_lost: bool,
    /// The storage could not keep it, though it is open, as its namespace says now; so it was not sealed either, if it was
    /// to be. Both are tried again.
    pub(crate) is_unkept: bool,
    /// Its seal, if it is of an earlier map.
    pub(crate) seal: Option<Seal>,
    /// Where it ends for ever, once that is known; the gateway has been told.
    pub(crate) sealed_at: Option<Sequence>,
    /// Something that the storage has lost of it, as long as log 0 has not said anything about that.
    pub(crate) loss: Option<Box<LogLoss>>,
}

/// Seal of a log of an earlier map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal {
    /// The map that has its successors.
    pub(crate) next: MapEpoch,
    pub(crate) state: SealState,
    /// Orders of the catalog that wait for it.
    pub(crate) orders: u32,
    /// When it was first found empty, since it was last found not to be.
    pub(crate) empty_since: Option<Mono>,
}

/// Progress of a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealState {
    /// It is to be asked for.
    Wanted,
    /// It is asked for.
    Sealing,
    /// It is durable, and where the log ends is to be asked.
    Sealed,
    /// Where the log ends is asked.
    Ending,
}

impl TowerLog {
    /// Where a member is at the tail: the first number that the gateway has not been given, or the end if
    /// it is not attached.
    pub(crate) fn here(&self) -> Sequence {
        self.tail.map_or(self.end, |tail| tail.next)
    }
}

/// Every log of the tower but log 0.
#[derive(Debug, Default)]
pub(crate) struct TowerLogs {
    logs: Vec<Option<Box<TowerLog>>>,
    by_id: BTreeMap<LogId, TowerLogKey>,
}

impl TowerLogs {
    /// The log's key; made if the log is new.
    pub(crate) fn key(&mut self, id: LogId) -> TowerLogKey {
        if let Some(key) = self.find(id) {
            return key;
        }
        let key = TowerLogKey::new(self.logs.len());
        self.logs.push(Some(Box::new(TowerLog {
            id,
            openness: Openness::Opening,
            spec: LogSpec::default(),
            incarnation: Incarnation(0),
            holder: None,
            end: Sequence::FIRST,
            tail: None,
            is_lost: false,
            is_unkept: false,
            seal: None,
            sealed_at: None,
            loss: None,
        })));
        self.by_id.insert(id, key);
        key
    }

    /// The key of a log.
    pub(crate) fn find(&self, id: LogId) -> Option<TowerLogKey> {
        self.by_id.get(&id).copied()
    }

    /// The key of a log that is not being deleted.
    pub(crate) fn find_open(&self, id: LogId) -> Option<TowerLogKey> {
        self.find(id)
            .filter(|key| self[*key].openness != Openness::Deleting)
    }

    /// A log, to look at.
    pub(crate) fn get(&self, key: TowerLogKey) -> Option<&TowerLog> {
        self.logs.get(key.place())?.as_deref()
    }

    /// A log, unless it has been deleted.
    pub(crate) fn get_mut(&mut self, key: TowerLogKey) -> Option<&mut TowerLog> {
        self.logs.get_mut(key.place())?.as_deref_mut()
    }

    /// Takes a log out.
    pub(crate) fn remove(&mut self, key: TowerLogKey) -> Option<Box<TowerLog>> {
        let log = self.logs.get_mut(key.place())?.take()?;
        self.by_id.remove(&log.id);
        Some(log)
    }

    /// Every log, in order of id.
    pub(crate) fn keys(&self) -> impl Iterator<Item = TowerLogKey> + '_ {
        self.by_id.values().copied()
    }
}

impl std::ops::Index<TowerLogKey> for TowerLogs {
    type Output = TowerLog;

    #[expect(
        clippy::expect_used,
        reason = "only keys of logs not yet removed are kept"
    )]
    fn index(&self, key: TowerLogKey) -> &TowerLog {
        self.logs[key.place()].as_deref().expect("the log exists")
    }
}

impl std::ops::IndexMut<TowerLogKey> for TowerLogs {
    #[expect(
        clippy::expect_used,
        reason = "only keys of logs not yet removed are kept"
    )]
    fn index_mut(&mut self, key: TowerLogKey) -> &mut TowerLog {
        self.logs[key.place()]
            .as_deref_mut()
            .expect("the log exists")
    }
}
