//! The fold of log 0: what the commands in it make of the namespaces, one after the other.
//!
//! A command names the version that it is based on; one that finds another version is void, which every
//! reader of the log finds alike. So is one of a later version than log 0 was raised to: a node that does not
//! read it finds it void as well.

use super::change::{Change, FIRST_VERSION};
use super::namespaces::{Catalog, EarlierMap, EarlierState, Entry};
use airmail_log::Origin;
use airmail_model::{
    Durability, LogIndex, MapEpoch, Namespace, NamespaceId, NamespaceSpec, Provisions, Retention,
    Sequence, StorageName,
};
use std::collections::BTreeMap;

/// Number of logs that a namespace can ever have.
pub(super) const LOGS_EVER_MAX: u32 = 1 << 16;

/// A deleted namespace whose logs may still be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dying {
    /// Number of the command in log 0 that deleted it.
    pub(super) as_of: Sequence,
    /// Its logs, of each map that it had.
    pub(super) logs: Vec<DyingLogs>,
}

/// The logs of one map, which may still be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DyingLogs {
    /// Index of the first one.
    pub(super) first: LogIndex,
    /// Number of them in each lane.
    pub(super) logs: u16,
    /// There are some of lane high, too.
    pub(super) has_high: bool,
    /// The storage that has them, and its provisions for them.
    pub(super) origin: Origin,
}

impl DyingLogs {
    /// Those of an earlier map.
    pub(super) fn of(earlier: &EarlierMap) -> DyingLogs {
        let mut logs = earlier.map.logs(airmail_model::Lane::Normal);
        DyingLogs {
            first: logs.next().map_or(LogIndex(0), |log| log.index),
            logs: earlier.logs(),
            has_high: earlier.has_high,
            origin: earlier.origin,
        }
    }
}

/// The state that log 0 folds to.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    /// Namespaces as they stand.
    pub(super) catalog: Catalog,
    /// Deleted namespaces whose logs may still be there.
    pub(super) dying: BTreeMap<NamespaceId, Dying>,
    /// The highest number ever given to a namespace.
    pub(super) last_id: NamespaceId,
    /// Version of commands that log 0 was raised to.
    pub(super) version: u8,
}

impl Default for Fold {
    fn default() -> Fold {
        Fold {
            catalog: Catalog::default(),
            dying: BTreeMap::new(),
            last_id: NamespaceId(0),
            version: FIRST_VERSION,
        }
    }
}

impl Fold {
    /// The number of the next namespace; `None` when the last one was given.
    pub(super) fn next_id(&self) -> Option<NamespaceId> {
        self.last_id.0.checked_add(1).map(NamespaceId)
    }

    /// Whether a change that brings logs would count, if it were the next command.
    pub(super) fn may_count(&self, change: &Change) -> bool {
        match change {
            Change::Create { id, name, .. } => self.are_free(*id, name),
            Change::Move { id, based_on, .. } | Change::Recreate { id, based_on, .. } => {
                let entry = self.catalog.get(*id);
                entry.is_some_and(|entry| entry.namespace.version == *based_on)
            }
            _ => true,
        }
    }

    /// Whether a namespace of this number and name could be made.
    pub(super) fn are_free(&self, id: NamespaceId, name: &str) -> bool {
        id > self.last_id && self.catalog.by_name(name).is_none()
    }

    /// Counts the last number from the namespaces that are left: a planted bug.
    #[cfg(feature = "sabotage")]
    pub(super) fn free_numbers(&mut self) {
        let left = u32::try_from(self.catalog.len());
        self.last_id = NamespaceId(left.unwrap_or(u32::MAX));
    }

    /// Forgets what was made for the logs of deleted namespaces: a planted bug.
    #[cfg(feature = "sabotage")]
    pub(super) fn forget_provisions(&mut self) {
        for of in self.dying.values_mut().flat_map(|dying| &mut dying.logs) {
            of.origin.provisions = Provisions::NONE;
        }
    }

    /// Does what the command of this number says; `false` if it is void.
    pub(super) fn apply(&mut self, change: &Change, at: Sequence) -> bool {
        if change.version() > self.version {
            return false;
        }
        let version = self.catalog.get(change.id()).map(|e| e.namespace.version);
        match change {
            Change::Create {
                id,
                name,
                spec,
                provisions,
            } => {
                if !self.are_free(*id, name) {
                    return false;
                }
                self.last_id = *id;
                let namespace = first_version(*id, name, spec);
                self.catalog.put(Entry::new(namespace, *provisions, at));
            }
            Change::Update {
                id,
                based_on,
                retention,
                durability,
            } => {
                let is_of_this = version == Some(*based_on);
                return is_of_this && self.updated(*id, *retention, *durability, at);
            }
            Change::Delete { id, based_on } => {
                if version != Some(*based_on) {
                    return false;
                }
                self.deleted(*id, at);
            }
            Change::Purged { id, epoch: None } => return self.dying.remove(id).is_some(),
            Change::Purged {
                id,
                epoch: Some(epoch),
            } => return self.purged(*id, *epoch),
            Change::Move {
                id,
                based_on,
                storage,
                provisions,
            } => {
                let is_of_this = version == Some(*based_on);
                return is_of_this && self.moved(*id, *storage, *provisions, at);
            }
            Change::Retired {
                id,
                epoch,
                ends,
                high_ends,
            } => return self.retired((*id, *epoch), (ends, high_ends), at),
            Change::AddHigh { id } => return self.add_high(*id, at),
            Change::Suspend { .. } | Change::Truncate { .. } | Change::Recreate { .. } => {
                return self.apply_loss(change, at);
            }
            Change::CreateRole { id, name } => return self.catalog.roles_mut().create(*id, name),
            Change::DeleteRole { id } => return self.catalog.roles_mut().delete(*id),
            Change::Raise { version } => {
                let rises = *version > self.version;
                self.version = self.version.max(*version);
                return rises;
            }
        }
        true
    }

    /// Has a namespace kept otherwise; `false` if there is none.
    fn updated(
        &mut self,
        id: NamespaceId,
        retention: Retention,
        durability: Durability,
        at: Sequence,
    ) -> bool {
        let Some(entry) = self.catalog.get(id) else {
            // Input: a command about a namespace that another one has deleted.
            return false;
        };
        let mut namespace = entry.namespace.clone();
        namespace.version += 1;
        namespace.spec.retention = retention;
        namespace.spec.durability = durability;
        let mut changed = Entry::new(namespace, entry.provisions, at);
        changed.losses = entry.losses.clone();
        changed.has_high = entry.has_high;
        let earlier = entry.earlier.clone();
        self.catalog.put(changed.with_earlier(earlier));
        true
    }

    /// Takes a namespace out, whose logs may still be there.
    fn deleted(&mut self, id: NamespaceId, at: Sequence) {
        let Some(entry) = self.catalog.remove(id) else {
            // Input: a command about a namespace that another one has deleted.
            return;
        };
        let earlier = entry.earlier.iter().filter(|of| !of.is_purged());
        let earlier = earlier.map(DyingLogs::of);
        let present = DyingLogs::of(&entry.to_earlier());
        let logs = earlier.chain([present]).collect();
        self.dying.insert(id, Dying { as_of: at, logs });
    }

    /// Puts a namespace's logs in another storage from here on, under a map of their own; `false` if that cannot be.
    fn moved(
        &mut self,
        id: NamespaceId,
        storage: StorageName,
        provisions: Provisions,
        at: Sequence,
    ) -> bool {
        let entry = self.catalog.get(id);
        let Some((entry, namespace)) = entry.and_then(|of| Some((of, moved(of, storage)?))) else {
            // Input: a command about a namespace that another one has deleted, or that no node would give.
            return false;
        };
        let mut earlier = entry.earlier.clone();
        earlier.push(entry.to_earlier());
        let (losses, has_high) = (entry.losses.clone(), entry.has_high);
        let mut entry = Entry::new(namespace, provisions, at);
        (entry.losses, entry.has_high) = (losses, has_high);
        self.catalog.put(entry.with_earlier(earlier));
        true
    }

    /// Has a namespace have logs of lane high from here on, in its present map; `false` if it has, or is not there. The version
    /// of the namespace is that of its user's changes, and stays.
    fn add_high(&mut self, id: NamespaceId, at: Sequence) -> bool {
        let entry = self.catalog.get(id).filter(|entry| !entry.has_high);
        let Some(entry) = entry else {
            // Input: another node's wish came before, or the namespace is deleted.
            return false;
        };
        let mut changed = Entry::clone(entry);
        (changed.has_high, changed.as_of) = (true, at);
        self.catalog.put(changed);
        true
    }

    /// Notes that nothing is left in the logs of an earlier map, which ended there; `false` if that is void.
    fn retired(
        &mut self,
        (id, epoch): (NamespaceId, MapEpoch),
        (ends, high_ends): (&[Sequence], &[Sequence]),
        at: Sequence,
    ) -> bool {
        self.change_earlier(id, epoch, |earlier| {
            let logs = usize::from(earlier.logs());
            let of_high = if earlier.has_high { logs } else { 0 };
            let is_kept = earlier.is_kept() && (ends.len(), high_ends.len()) == (logs, of_high);
            if is_kept {
                earlier.state = EarlierState::Retired {
                    ends: ends.iter().chain(high_ends).copied().collect(),
                    as_of: at,
                    is_purged: false,
                    is_lost: false,
                };
            }
            is_kept
        })
    }

    /// Notes that the logs of a retired map are no more; `false` if that is void.
    fn purged(&mut self, id: NamespaceId, epoch: MapEpoch) -> bool {
        self.change_earlier(id, epoch, |earlier| match &mut earlier.state {
            EarlierState::Kept => false,
            EarlierState::Retired { is_purged, .. } => !std::mem::replace(is_purged, true),
        })
    }

    /// Changes an earlier map of a namespace, unless `change` does nothing; whether it did. The version of the namespace
    /// is that of its user's changes, and stays.
    fn change_earlier(
        &mut self,
        id: NamespaceId,
        epoch: MapEpoch,
        change: impl FnOnce(&mut EarlierMap) -> bool,
    ) -> bool {
        let Some(entry) = self.catalog.get(id) else {
            // Input: a note about a namespace that is deleted.
            return false;
        };
        let mut earlier = entry.earlier.clone();
        let mut found = earlier.iter_mut().filter(|of| of.map.epoch == epoch);
        if !found.next().is_some_and(change) {
            return false;
        }
        let changed = Entry::clone(entry).with_earlier(earlier);
        self.catalog.put(changed);
        true
    }
}

/// A namespace as it is when it was moved there; `None` if it is there, or has no log indexes left.
pub(super) fn moved(entry: &Entry, storage: StorageName) -> Option<Namespace> {
    let mut namespace = entry.namespace.clone();
    if namespace.spec.storage == storage {
        return None;
    }
    let logs = u32::from(namespace.spec.logs);
    let first = u32::from(namespace.first_log.0) + logs;
    if first + logs > LOGS_EVER_MAX {
        return None;
    }
    namespace.first_log = LogIndex(u16::try_from(first).ok()?);
    namespace.epoch = MapEpoch(namespace.epoch.0.checked_add(1)?);
    namespace.version += 1;
    namespace.spec.storage = storage;
    Some(namespace)
}

/// A namespace as it is when it is made.
pub(super) fn first_version(id: NamespaceId, name: &str, spec: &NamespaceSpec) -> Namespace {
    Namespace {
        id,
        name: name.to_owned(),
        spec: spec.clone(),
        version: 1,
        epoch: MapEpoch(1),
        first_log: LogIndex(0),
        earlier: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
