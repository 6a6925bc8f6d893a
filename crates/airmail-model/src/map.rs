//! The map from topics to logs: 4,096 hash slots, each owned by one log, with an epoch.
//!
//! A topic's slot is the top twelve bits of its hash, so that a map with twice the logs splits
//! slots rather than moving every topic.

use crate::id::{Lane, LogId, LogIndex, MapEpoch, NamespaceId, TopicHash};
use std::fmt;
use std::sync::Arc;

/// Slots in every map.
pub const SLOTS: usize = 4096;

/// Assigns the topics of one namespace to its logs. Cheap to clone; a new epoch is a new value.
#[derive(Clone, PartialEq, Eq)]
pub struct LogMap {
    /// The namespace it belongs to.
    pub namespace: NamespaceId,
    /// Its version.
    pub epoch: MapEpoch,
    slots: Arc<[LogIndex]>,
    /// Each owner once, ascending: found once, because a node asks often.
    owners: Arc<[LogIndex]>,
}

/// Leaves the slots out, which are thousands.
impl fmt::Debug for LogMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogMap")
            .field("namespace", &self.namespace)
            .field("epoch", &self.epoch)
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}

impl LogMap {
    /// A map that spreads the slots evenly over the logs `first_log .. first_log + logs`.
    ///
    /// `logs` is taken as at least 1 and at most [`SLOTS`].
    #[must_use]
    pub fn even(namespace: NamespaceId, epoch: MapEpoch, first_log: LogIndex, logs: u16) -> LogMap {
        let logs = usize::from(logs).clamp(1, SLOTS);
        let log = |n: usize| LogIndex(first_log.0 + u16::try_from(n).unwrap_or(0));
        LogMap {
            namespace,
            epoch,
            slots: (0..SLOTS).map(|slot| log(slot * logs / SLOTS)).collect(),
            owners: (0..logs).map(log).collect(),
        }
    }

    /// A map with the given owner for each slot; `None` unless there are exactly [`SLOTS`].
    #[must_use]
    pub fn from_slots(
        namespace: NamespaceId,
        epoch: MapEpoch,
        slots: Vec<LogIndex>,
    ) -> Option<LogMap> {
        if slots.len() != SLOTS {
            return None;
        }
        let mut owners = slots.clone();
        owners.sort_unstable();
        owners.dedup();
        Some(LogMap {
            namespace,
            epoch,
            slots: slots.into(),
            owners: owners.into(),
        })
    }

    /// The slot of a topic.
    #[must_use]
    pub const fn slot(topic: TopicHash) -> usize {
        (topic.0 >> 116) as usize
    }

    /// The least hash of a slot's: for who asks for a slot's log as for a topic's.
    #[must_use]
    pub const fn first_of_slot(slot: u16) -> TopicHash {
        TopicHash((slot as u128) << 116)
    }

    /// The log that carries a topic's messages of a lane.
    #[must_use]
    pub fn log(&self, topic: TopicHash, lane: Lane) -> LogId {
        LogId {
            namespace: self.namespace,
            lane,
            index: self.slots[Self::slot(topic)],
        }
    }

    /// A slot of the log at this place among the map's logs, from 0; `None`: there are fewer.
    #[must_use]
    pub fn slot_of(&self, place: u16) -> Option<u16> {
        let owner = self.owners.get(usize::from(place))?;
        let slot = self.slots.iter().position(|slot| slot == owner)?;
        u16::try_from(slot).ok()
    }

    /// The owner of each slot, in order.
    #[must_use]
    pub fn slots(&self) -> &[LogIndex] {
        &self.slots
    }

    /// Each distinct log of a lane once, in order of index.
    pub fn logs(
        &self,
        lane: Lane,
    ) -> impl ExactSizeIterator<Item = LogId> + DoubleEndedIterator + use<> {
        let (namespace, owners) = (self.namespace, Arc::clone(&self.owners));
        (0..owners.len()).map(move |n| LogId {
            namespace,
            lane,
            index: owners[n],
        })
    }
}
