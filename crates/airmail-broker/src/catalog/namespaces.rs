//! The namespaces as they stand: the fold of log 0, as an immutable snapshot.
//!
//! A change makes a new snapshot, so that whoever holds one (a handler that answers Hello, a
//! listing) sees one moment. Namespaces are few and change seldom: copying the index is cheap.

use airmail_log::LogSpec;
use airmail_model::{LogMap, Namespace, NamespaceId, Provisions, Sequence};
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
}

impl Entry {
    pub(crate) fn new(namespace: Namespace, provisions: Provisions, as_of: Sequence) -> Entry {
        Entry {
            map: namespace.map(),
            namespace,
            provisions,
            as_of,
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
        }
    }
}

/// Every namespace, by name and by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    by_id: BTreeMap<NamespaceId, Arc<Entry>>,
    by_name: BTreeMap<String, NamespaceId>,
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
