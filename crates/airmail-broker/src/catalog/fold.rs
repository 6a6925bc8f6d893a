//! The fold of log 0: what the commands in it make of the namespaces, one after the other.
//!
//! A command names the version that it is based on; one that finds another version is void, which every
//! reader of the log finds alike. So is one of a later version than log 0 was raised to: a node that does not
//! read it finds it void as well.

use super::change::{Change, FIRST_VERSION};
use super::namespaces::{Catalog, Entry};
use airmail_log::Origin;
use airmail_model::{MapEpoch, Namespace, NamespaceId, NamespaceSpec, Sequence};
use std::collections::BTreeMap;

/// A deleted namespace whose logs may still be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dying {
    /// Number of its logs.
    pub(super) logs: u16,
    /// Number of the command in log 0 that deleted it.
    pub(super) as_of: Sequence,
    /// The storage that has its logs, and its provisions for them.
    pub(super) origin: Origin,
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
        for dying in self.dying.values_mut() {
            dying.origin.provisions = airmail_model::Provisions::NONE;
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
                let entry = Entry::new(namespace, entry.provisions, at);
                self.catalog.put(entry);
            }
            Change::Delete { id, based_on } => {
                if version != Some(*based_on) {
                    return false;
                }
                if let Some(entry) = self.catalog.remove(*id) {
                    let spec = &entry.namespace.spec;
                    let dying = Dying {
                        logs: spec.logs,
                        as_of: at,
                        origin: Origin {
                            storage: spec.storage,
                            provisions: entry.provisions,
                        },
                    };
                    self.dying.insert(*id, dying);
                }
            }
            Change::Purged { id } => return self.dying.remove(id).is_some(),
            Change::Raise { version } => {
                let rises = *version > self.version;
                self.version = self.version.max(*version);
                return rises;
            }
        }
        true
    }
}

/// A namespace as it is when it is made.
pub(super) fn first_version(id: NamespaceId, name: &str, spec: &NamespaceSpec) -> Namespace {
    Namespace {
        id,
        name: name.to_owned(),
        spec: spec.clone(),
        version: 1,
        epoch: MapEpoch(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{Provisions, StorageName};

    fn create(id: u32, name: &str) -> Change {
        Change::Create {
            id: NamespaceId(id),
            name: name.to_owned(),
            spec: NamespaceSpec {
                logs: 7,
                ..NamespaceSpec::default()
            },
            provisions: Provisions::NONE,
        }
    }

    #[test]
    fn after_the_last_number_there_is_no_next() {
        let mut fold = Fold::default();
        assert!(fold.apply(&create(u32::MAX, "last"), Sequence(1)));
        assert_eq!(fold.next_id(), None);
    }

    #[test]
    fn a_command_of_a_version_that_log_0_was_not_raised_to_is_void() {
        let mut fold = Fold::default();
        let mut copied = create(1, "a");
        if let Change::Create { spec, .. } = &mut copied {
            spec.durability.copies = 3;
        }
        let version = copied.version();
        assert!(!fold.apply(&copied, Sequence(1)));
        assert!(fold.apply(&Change::Raise { version }, Sequence(2)));
        assert!(!fold.apply(&Change::Raise { version }, Sequence(3)), "once");
        assert!(fold.apply(&copied, Sequence(4)));
    }

    #[test]
    fn a_namespace_keeps_its_storage_until_nothing_of_it_is_left() {
        let mut fold = Fold::default();
        let storage = StorageName::new("fast").expect("a name");
        let mut fast = create(1, "a");
        if let Change::Create { spec, .. } = &mut fast {
            spec.storage = storage;
        }
        let id = NamespaceId(1);
        let version = fast.version();
        assert!(fold.apply(&Change::Raise { version }, Sequence(1)));
        assert!(fold.apply(&fast, Sequence(2)));
        let update = Change::Update {
            id,
            based_on: 1,
            retention: airmail_model::Retention::default(),
            durability: airmail_model::Durability::OS,
        };
        assert!(fold.apply(&update, Sequence(3)));
        let entry = fold.catalog.get(id).expect("made");
        assert_eq!(entry.log_spec().storage, storage);
        assert!(fold.apply(&Change::Delete { id, based_on: 2 }, Sequence(4)));
        assert_eq!(
            fold.dying.get(&id).map(|dying| dying.origin.storage),
            Some(storage)
        );
    }

    #[test]
    fn a_command_based_on_another_version_is_void() {
        let mut fold = Fold::default();
        let id = NamespaceId(1);
        let mut apply = |at, change: &Change| fold.apply(change, Sequence(at));
        assert!(apply(1, &create(1, "a")));
        assert!(!apply(2, &create(1, "b")), "the number is taken");
        assert!(!apply(3, &create(2, "a")), "the name is taken");
        assert!(!apply(4, &Change::Delete { id, based_on: 2 }));
        assert!(apply(5, &Change::Delete { id, based_on: 1 }));
        assert!(!apply(6, &create(1, "a")), "numbers are never reused");
        assert_eq!(fold.next_id(), Some(NamespaceId(2)));
        let dying = Dying {
            logs: 7,
            as_of: Sequence(5),
            origin: Origin::default(),
        };
        assert_eq!(fold.dying.get(&id), Some(&dying));
        assert!(fold.apply(&Change::Purged { id }, Sequence(7)));
        assert!(fold.dying.is_empty());
    }

    #[test]
    fn a_namespace_is_of_the_command_that_changed_it_last_and_of_no_void_one() {
        let mut fold = Fold::default();
        let id = NamespaceId(1);
        let update = |based_on| Change::Update {
            id,
            based_on,
            retention: airmail_model::Retention::default(),
            durability: airmail_model::Durability::OS,
        };
        for (at, change, as_of) in [
            (3, create(1, "a"), 3),
            (4, create(1, "a"), 3),
            (6, update(1), 6),
            (8, update(1), 6),
            (9, update(2), 9),
        ] {
            fold.apply(&change, Sequence(at));
            let entry = fold.catalog.get(id).expect("made");
            assert_eq!(entry.as_of, Sequence(as_of), "after {at}");
            assert_eq!(entry.log_spec().as_of, entry.as_of);
        }
    }
}
