//! The namespaces as they stand: the fold of log 0, as an immutable snapshot.
//!
//! A change makes a new snapshot, so that whoever holds one (a handler that answers Hello, a
//! listing) sees one moment. Namespaces are few and change seldom: copying the index is cheap.

use super::losses::LogLosses;
use super::roles::RoleDirectory;
use airmail_log::{LogSpec, Origin, Soundness};
use airmail_model::{
    Durability, EarlierLogs, Lane, LogId, LogMap, MapEpoch, Namespace, NamespaceId, Provisions,
    Sequence, TopicHash,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A namespace and its map from topics to logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The namespace.
    pub namespace: Namespace,
    /// Its map.
    pub map: LogMap,
    /// Provisions of its storage for its logs.
    pub provisions: Provisions,
    /// Number of the command in log 0 that made or changed it last.
    pub as_of: Sequence,
    /// Its maps before it was moved or made anew, the oldest first.
    pub earlier: Vec<EarlierMap>,
    /// Losses of its logs.
    pub losses: BTreeMap<LogId, LogLosses>,
    /// Its present map has logs of lane high, too: something was published to it.
    pub has_high: bool,
}

/// A map that a namespace had before it was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierMap {
    /// The map. Its logs take nothing more.
    pub map: LogMap,
    /// The storage that has its logs, and the provisions of that for them.
    pub origin: Origin,
    /// Durability that they had when they were sealed.
    pub durability: Durability,
    /// State of its logs.
    pub state: EarlierState,
    /// It has logs of lane high, too.
    pub has_high: bool,
}

/// State of the logs of an earlier map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlierState {
    /// They are kept, and read.
    Kept,
    /// Retention has left nothing in them, or they are lost.
    Retired {
        /// Where each of them ended, in order of lane and index.
        ends: Arc<[Sequence]>,
        /// Number of the command in log 0 that said so.
        as_of: Sequence,
        /// Nothing of them is left in their storage.
        is_purged: bool,
        /// They were lost, and not given up by retention.
        is_lost: bool,
    },
}

/// The logs of a map in each lane that it has, in order of lane and index.
fn logs_in(map: &LogMap, has_high: bool) -> impl Iterator<Item = LogId> + use<> {
    let high = has_high.then(|| map.logs(Lane::High));
    map.logs(Lane::Normal).chain(high.into_iter().flatten())
}

impl EarlierMap {
    /// Whether its logs are kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.state == EarlierState::Kept
    }

    /// Whether nothing of its logs is left in their storage.
    pub(crate) fn is_purged(&self) -> bool {
        matches!(
            self.state,
            EarlierState::Retired {
                is_purged: true,
                ..
            }
        )
    }

    /// Number of its logs in the normal lane.
    pub(crate) fn logs(&self) -> u16 {
        u16::try_from(self.map.logs(Lane::Normal).len()).unwrap_or(u16::MAX)
    }

    /// Where a log of it ended, if its logs are retired.
    pub(crate) fn retired_end(&self, log: LogId) -> Option<Sequence> {
        let EarlierState::Retired { ends, .. } = &self.state else {
            // Input: a map whose logs are kept.
            return None;
        };
        let place = self.all_logs().position(|of| of == log)?;
        ends.get(place).copied()
    }

    /// Its logs of each lane, in order of lane and index.
    pub(crate) fn all_logs(&self) -> impl Iterator<Item = LogId> + use<> {
        logs_in(&self.map, self.has_high)
    }

    /// Whether it has logs of a lane.
    pub(crate) fn has_lane(&self, lane: Lane) -> bool {
        lane == Lane::Normal || self.has_high
    }

    /// Whether its logs were lost.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.state, EarlierState::Retired { is_lost: true, .. })
    }

    fn to_logs(&self) -> Option<EarlierLogs> {
        Some(EarlierLogs {
            epoch: self.map.epoch,
            storage: self.origin.storage,
            first_log: self.map.logs(Lane::Normal).next()?.index,
            logs: self.logs(),
        })
    }
}

impl Entry {
    pub(crate) fn new(namespace: Namespace, provisions: Provisions, as_of: Sequence) -> Entry {
        Entry {
            map: namespace.map(),
            namespace,
            provisions,
            as_of,
            earlier: Vec::new(),
            losses: BTreeMap::new(),
            has_high: false,
        }
    }

    /// The logs of its present map in each lane, in order of lane and index.
    pub(crate) fn all_logs(&self) -> impl Iterator<Item = LogId> + use<> {
        logs_in(&self.map, self.has_high)
    }

    /// Whether its present map has logs of a lane.
    pub(crate) fn has_lane(&self, lane: Lane) -> bool {
        lane == Lane::Normal || self.has_high
    }

    /// The same with other earlier maps, of which the namespace tells those whose logs are kept.
    pub(crate) fn with_earlier(mut self, earlier: Vec<EarlierMap>) -> Entry {
        let kept = earlier.iter().filter(|earlier| earlier.is_kept());
        self.namespace.earlier = kept.filter_map(EarlierMap::to_logs).collect();
        self.earlier = earlier;
        self
    }

    /// Its present map as an earlier one.
    pub(crate) fn to_earlier(&self) -> EarlierMap {
        let spec = &self.namespace.spec;
        EarlierMap {
            map: self.map.clone(),
            origin: Origin {
                storage: spec.storage,
                provisions: self.provisions,
            },
            durability: spec.durability,
            state: EarlierState::Kept,
            has_high: self.has_high,
        }
    }

    /// Its maps, the oldest first and the present one last.
    pub(crate) fn maps(&self) -> impl DoubleEndedIterator<Item = &LogMap> {
        self.earlier.iter().map(|of| &of.map).chain([&self.map])
    }

    /// Its maps that have logs of a lane, likewise. Those behind one that has them all have.
    pub(crate) fn maps_in(&self, lane: Lane) -> impl DoubleEndedIterator<Item = &LogMap> {
        let earlier = self.earlier.iter().filter(move |of| of.has_lane(lane));
        let present = self.has_lane(lane).then_some(&self.map);
        earlier.map(|of| &of.map).chain(present)
    }

    /// The oldest of its maps whose logs of a lane are kept; the present one, if it has logs of none.
    pub(crate) fn oldest_kept(&self, lane: Lane) -> &LogMap {
        let mut earlier = self.earlier.iter();
        let kept = earlier.find(|earlier| earlier.is_kept() && earlier.has_lane(lane));
        kept.map_or(&self.map, |earlier| &earlier.map)
    }

    /// The earlier map that a log is of.
    pub(crate) fn earlier_of(&self, log: LogId) -> Option<&EarlierMap> {
        let mut earlier = self.earlier.iter();
        earlier.find(|earlier| earlier.all_logs().any(|of| of == log))
    }

    /// The earlier map of an epoch, if it has logs of a lane that are kept.
    pub(crate) fn kept_map(&self, epoch: MapEpoch, lane: Lane) -> Option<&LogMap> {
        let mut earlier = self.earlier.iter();
        let found = earlier.find(|earlier| earlier.map.epoch == epoch && earlier.is_kept());
        let found = found.filter(|earlier| earlier.has_lane(lane));
        found.map(|earlier| &earlier.map)
    }

    /// The log that goes on with a topic where a log of an earlier map ends.
    pub(crate) fn successor(&self, log: LogId, topic: TopicHash) -> Option<LogId> {
        let of = &self.earlier_of(log)?.map;
        let next = self.maps().find(|map| map.epoch > of.epoch)?;
        Some(next.log(topic, log.lane))
    }

    /// The log of the map before, in which a topic was, for a log of the present map or an earlier one.
    pub(crate) fn predecessor(&self, log: LogId, topic: TopicHash) -> Option<LogId> {
        let mut maps = self.maps_in(log.lane).rev();
        maps.find(|map| map.logs(log.lane).any(|of| of == log))?;
        Some(maps.next()?.log(topic, log.lane))
    }

    /// Settings of each of the logs of an earlier map, which is kept as long as the namespace says now.
    pub(crate) fn earlier_spec(&self, earlier: &EarlierMap) -> LogSpec {
        LogSpec {
            durability: earlier.durability,
            epoch: earlier.map.epoch,
            storage: earlier.origin.storage,
            provisions: earlier.origin.provisions,
            ..self.log_spec()
        }
    }

    /// Settings of each of its logs.
    pub(crate) fn log_spec(&self) -> LogSpec {
        LogSpec {
            durability: self.namespace.spec.durability,
            retention: self.namespace.spec.retention,
            epoch: self.map.epoch,
            as_of: self.as_of,
            storage: self.namespace.spec.storage,
            provisions: self.provisions,
            soundness: Soundness::default(),
        }
    }
}

/// Every namespace, by name and by number, and every role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    by_id: BTreeMap<NamespaceId, Arc<Entry>>,
    by_name: BTreeMap<String, NamespaceId>,
    roles: Arc<RoleDirectory>,
}

impl Catalog {
    /// The namespace of a number.
    #[must_use]
    pub fn get(&self, id: NamespaceId) -> Option<&Arc<Entry>> {
        self.by_id.get(&id)
    }

    /// The namespace of a name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<Entry>> {
        self.get(*self.by_name.get(name)?)
    }

    /// Each namespace, in byte order of name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> {
        self.by_name.values().map(|id| &self.by_id[id])
    }

    /// Number of namespaces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The roles, which are none of any namespace's.
    #[must_use]
    pub fn roles(&self) -> &RoleDirectory {
        &self.roles
    }

    /// The roles, to be changed.
    pub(super) fn roles_mut(&mut self) -> &mut RoleDirectory {
        Arc::make_mut(&mut self.roles)
    }

    /// Puts a namespace in, or in place of the one with its number.
    /// Names do not change.
    pub(crate) fn put(&mut self, entry: Entry) {
        let Namespace { id, name, .. } = &entry.namespace;
        let id = *id;
        self.by_name.insert(name.clone(), id);
        self.by_id.insert(id, Arc::new(entry));
    }

    /// Takes a namespace out.
    pub(super) fn remove(&mut self, id: NamespaceId) -> Option<Arc<Entry>> {
        let entry = self.by_id.remove(&id)?;
        self.by_name.remove(&entry.namespace.name);
        Some(entry)
    }
}
