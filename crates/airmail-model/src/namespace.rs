//! Namespaces: where retention and durability are set, and nowhere else.

use crate::durability::Durability;
use crate::error::{Error, ErrorCode};
use crate::id::{LogIndex, MapEpoch, NamespaceId};
use crate::map::LogMap;
use crate::storage_name::StorageName;

/// The longest namespace name, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// The most logs a namespace may have in one lane.
pub const LOGS_MAX: u16 = 1024;

/// The namespace of a request that names none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The name of the namespace that a request means: an empty name means [`DEFAULT_NAMESPACE`].
#[must_use]
pub fn namespace_or_default(name: &str) -> &str {
    if name.is_empty() {
        DEFAULT_NAMESPACE
    } else {
        name
    }
}

/// The error for a namespace that does not exist.
#[must_use]
pub fn namespace_not_found(name: &str) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("namespace")
        .value(name)
}

/// Bounds on what a namespace's logs keep. `None` is for ever, or without bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Records appended longer ago than this many milliseconds may go.
    pub time_ms: Option<u64>,
    /// The oldest records go when a log holds more than this many bytes.
    pub bytes: Option<u64>,
}

/// Settings of a namespace that its user chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSpec {
    /// Logs in the normal lane, 1 to [`LOGS_MAX`]. Default 1.
    pub logs: u16,
    /// Bounds on the records kept. Default: for ever.
    pub retention: Retention,
    /// Promise of an acknowledgement. Default: the strongest that the storage has.
    pub durability: Durability,
    /// The storage that has its logs, until it is moved. Default: the node's first.
    pub storage: StorageName,
}

impl Default for NamespaceSpec {
    fn default() -> NamespaceSpec {
        NamespaceSpec {
            logs: 1,
            retention: Retention::default(),
            durability: Durability::FSYNC,
            storage: StorageName::FIRST,
        }
    }
}

/// A namespace as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its number, never reused.
    pub id: NamespaceId,
    /// Its name: 1 to [`NAME_BYTES_MAX`] of `a-z A-Z 0-9 . _ -`, not beginning with `_`.
    pub name: String,
    /// The settings that its user chose.
    pub spec: NamespaceSpec,
    /// Counts its changes, from 1; a change names the version it is based on.
    pub version: u64,
    /// The epoch of its map.
    pub epoch: MapEpoch,
    /// Index of the first log of its map. Indexes are never used twice in a namespace.
    pub first_log: LogIndex,
    /// Logs that it had in other storages before it was moved, and that are still kept; the oldest first.
    pub earlier: Vec<EarlierLogs>,
}

/// Logs of a namespace's earlier map, which is in force no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierLogs {
    /// Epoch of that map.
    pub epoch: MapEpoch,
    /// The storage that has them.
    pub storage: StorageName,
    /// Index of the first of them.
    pub first_log: LogIndex,
    /// Number of them in the normal lane.
    pub logs: u16,
}

impl EarlierLogs {
    /// The map from topics to these logs, of this namespace.
    #[must_use]
    pub fn map(&self, namespace: NamespaceId) -> LogMap {
        LogMap::even(namespace, self.epoch, self.first_log, self.logs)
    }
}

impl Namespace {
    /// Its map from topics to logs.
    #[must_use]
    pub fn map(&self) -> LogMap {
        LogMap::even(self.id, self.epoch, self.first_log, self.spec.logs)
    }

    /// Whether `name` may name a namespace.
    ///
    /// # Errors
    /// `NAMESPACE_INVALID` with the name and what is wrong with it.
    pub fn check_name(name: &str) -> Result<(), Error> {
        let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let limit = if name.is_empty() || name.len() > NAME_BYTES_MAX {
            "1 to 255 bytes"
        } else if name.starts_with('_') {
            "not beginning with _, which is reserved"
        } else if !name.bytes().all(letters) {
            "letters, digits, . _ -"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorCode::NamespaceInvalid)
            .field("namespace")
            .value(name.escape_debug())
            .limit(limit))
    }
}
