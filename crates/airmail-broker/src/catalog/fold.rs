//! The fold of log 0: what the commands in it make of the namespaces, one after the other.
//!
//! A command names the version that it is based on; one that finds another version is void, which every
//! reader of the log finds alike.

use super::change::Change;
use super::namespaces::Catalog;
use airmail_model::{MapEpoch, Namespace, NamespaceId};
use std::collections::BTreeMap;

/// The state that log 0 folds to.
#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    /// Namespaces as they stand.
    pub(super) catalog: Catalog,
    /// Deleted namespaces whose logs may still be there, with how many each had.
    pub(super) dying: BTreeMap<NamespaceId, u16>,
    /// The highest number ever given to a namespace.
    pub(super) last_id: NamespaceId,
}

impl Fold {
    /// The number of the next namespace; `None` when the last one was given.
    pub(super) fn next_id(&self) -> Option<NamespaceId> {
        self.last_id.0.checked_add(1).map(NamespaceId)
    }

    /// Counts the last number from the namespaces that are left: a planted bug.
    #[cfg(feature = "sabotage")]
    pub(super) fn free_numbers(&mut self) {
        let left = u32::try_from(self.catalog.len());
        self.last_id = NamespaceId(left.unwrap_or(u32::MAX));
    }

    /// Does what a command says; `false` if it is void.
    pub(super) fn apply(&mut self, change: &Change) -> bool {
        let version = self.catalog.get(change.id()).map(|e| e.namespace.version);
        match change {
            Change::Create { id, name, spec } => {
                if *id <= self.last_id || self.catalog.by_name(name).is_some() {
                    return false;
                }
                self.last_id = *id;
                self.catalog.put(Namespace {
                    id: *id,
                    name: name.clone(),
                    spec: spec.clone(),
                    version: 1,
                    epoch: MapEpoch(1),
                });
            }
            Change::Update {
                id,
                based_on,
                retention,
                durability,
            } => {
                let Some(entry) = self.catalog.get(*id) else {
                    // Input: a command about a namespace that another one has deleted.
                    return false;
                };
                if version != Some(*based_on) {
                    return false;
                }
                let mut namespace = entry.namespace.clone();
                namespace.version += 1;
                namespace.spec.retention = *retention;
                namespace.spec.durability = *durability;
                self.catalog.put(namespace);
            }
            Change::Delete { id, based_on } => {
                if version != Some(*based_on) {
                    return false;
                }
                if let Some(entry) = self.catalog.remove(*id) {
                    self.dying.insert(*id, entry.namespace.spec.logs);
                }
            }
            Change::Purged { id } => return self.dying.remove(id).is_some(),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::NamespaceSpec;

    fn create(id: u32, name: &str) -> Change {
        Change::Create {
            id: NamespaceId(id),
            name: name.to_owned(),
            spec: NamespaceSpec {
                logs: 7,
                ..NamespaceSpec::default()
            },
        }
    }

    #[test]
    fn after_the_last_number_there_is_no_next() {
        let mut fold = Fold::default();
        assert!(fold.apply(&create(u32::MAX, "last")));
        assert_eq!(fold.next_id(), None);
    }

    #[test]
    fn a_command_based_on_another_version_is_void() {
        let mut fold = Fold::default();
        let id = NamespaceId(1);
        assert!(fold.apply(&create(1, "a")));
        assert!(!fold.apply(&create(1, "b")), "the number is taken");
        assert!(!fold.apply(&create(2, "a")), "the name is taken");
        assert!(!fold.apply(&Change::Delete { id, based_on: 2 }));
        assert!(fold.apply(&Change::Delete { id, based_on: 1 }));
        assert!(!fold.apply(&create(1, "a")), "numbers are never reused");
        assert_eq!(fold.next_id(), Some(NamespaceId(2)));
        assert_eq!(fold.dying.get(&id), Some(&7));
        assert!(fold.apply(&Change::Purged { id }));
        assert!(fold.dying.is_empty());
    }
}
