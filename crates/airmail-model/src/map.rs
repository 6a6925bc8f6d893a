//! The map from topics to logs: 4,096 hash slots, each owned by one log, with an epoch.
//!
//! A topic's slot is the top twelve bits of its hash, so that a map with twice the logs splits
//! slots rather than moving every topic.

use crate::id::{Lane, LogId, LogIndex, MapEpoch, NamespaceId, TopicHash};
use std::sync::Arc;

/// Slots in every map.
pub const SLOTS: usize = 4096;

/// Which log carries each topic of one namespace. Cheap to clone; a new epoch is a new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMap {
    /// The namespace it belongs to.
    pub namespace: NamespaceId,
    /// Its version.
    pub epoch: MapEpoch,
    slots: Arc<[LogIndex]>,
}

impl LogMap {
    /// A map that spreads the slots evenly over the logs `first_log .. first_log + logs`.
    ///
    /// `logs` is taken as at least 1 and at most [`SLOTS`].
    #[must_use]
    pub fn even(namespace: NamespaceId, epoch: MapEpoch, first_log: LogIndex, logs: u16) -> LogMap {
        let logs = usize::from(logs).clamp(1, SLOTS);
        let slots = (0..SLOTS)
            .map(|slot| LogIndex(first_log.0 + u16::try_from(slot * logs / SLOTS).unwrap_or(0)))
            .collect();
        LogMap {
            namespace,
            epoch,
            slots,
        }
    }

    /// A map with the given owner for each slot; `None` unless there are exactly [`SLOTS`].
    #[must_use]
    pub fn from_slots(
        namespace: NamespaceId,
        epoch: MapEpoch,
        slots: Vec<LogIndex>,
    ) -> Option<LogMap> {
        (slots.len() == SLOTS).then(|| LogMap {
            namespace,
            epoch,
            slots: slots.into(),
        })
    }

    /// The slot of a topic.
    #[must_use]
    pub const fn slot(topic: TopicHash) -> usize {
        (topic.0 >> 116) as usize
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

    /// The owner of each slot, in order.
    #[must_use]
    pub fn slots(&self) -> &[LogIndex] {
        &self.slots
    }

    /// Each distinct log of a lane once, in order of index.
    pub fn logs(&self, lane: Lane) -> impl Iterator<Item = LogId> + use<> {
        let mut indices: Vec<LogIndex> = self.slots.to_vec();
        indices.sort_unstable();
        indices.dedup();
        let namespace = self.namespace;
        indices.into_iter().map(move |index| LogId {
            namespace,
            lane,
            index,
        })
    }
}
