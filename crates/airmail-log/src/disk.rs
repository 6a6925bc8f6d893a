//! Files on a disk: under the `disk` storage.
//!
//! - [`DataDir`]: a node's directory: its identity, its locks, and a directory for each shard.
//! - [`Exposed`]: a path that other users than the node's may open.
//! - [`watch`]: decides whether the directory is still this node's; [`Guard`] looks.
//! - [`DiskFiles`]: one shard's files, with threads behind it; [`ReadOnlyFiles`] for `check`.

mod data_dir;
mod direct;
mod files;
mod folder;
mod handles;
mod identity;
mod locks;
mod modes;
mod queue;
mod read_only;
mod shard_mark;
pub mod watch;
mod worker;
mod writer;

pub use data_dir::{DataDir, DataDirError, Repair};
pub use files::{DiskFiles, DiskOptions};
pub use identity::{Identity, IdentityError, Needs};
pub use locks::{Guard, NoLock};
pub use modes::Exposed;
pub use read_only::ReadOnlyFiles;
pub use shard_mark::ShardLoss;

use crate::contract::Waker;
use crate::journal::{JournalConfig, JournalStorage, OpenError};
use airmail_model::Now;
use std::io;

/// Logs on a disk: the journal over [`DiskFiles`].
pub type DiskStorage = JournalStorage<DiskFiles>;

/// Reason for which a shard's logs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DiskOpenError {
    /// The system refused its directory or a thread.
    #[error("files of shard {shard}: {error}")]
    Files {
        /// The shard.
        shard: u16,
        /// The error of the system.
        error: io::Error,
    },
    /// The journal in it.
    #[error("journal of shard {shard}: {error}")]
    Journal {
        /// The shard.
        shard: u16,
        /// The error of the journal.
        error: OpenError,
    },
}

/// Opens the logs of a shard. Whose they are comes from the directory's identity; `config` gives
/// the rest, its seed drawn anew for each open. `waker` is called when there is something to poll.
///
/// # Errors
/// See [`DiskOpenError`].
pub fn open(
    directory: &DataDir,
    shard: u16,
    config: JournalConfig,
    options: &DiskOptions,
    now: Now,
    waker: Waker,
) -> Result<DiskStorage, DiskOpenError> {
    let files = directory.files(shard, options, waker);
    let files = files.map_err(|error| DiskOpenError::Files { shard, error })?;
    let identity = directory.identity();
    let config = JournalConfig {
        cluster: identity.cluster,
        node: identity.node,
        shard: shard.into(),
        ..config
    };
    let storage = JournalStorage::open(files, config, now);
    storage.map_err(|error| DiskOpenError::Journal { shard, error })
}
