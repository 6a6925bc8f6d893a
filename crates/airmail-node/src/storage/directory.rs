//! A data directory that the process has taken: its locks, its identity, and somebody who looks whether it is
//! still there. Every shard opens its own journal in it.

use super::data_dir_watcher::{DataDirWatcher, Standing};
use super::on_disk::tell;
use airmail_log::Waker;
use airmail_log::disk::{DataDir, Identity};
use airmail_model::clock::Clock;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Directory {
    #[expect(dead_code, reason = "ends with this, before the locks are let go")]
    watcher: Option<DataDirWatcher>,
    standing: Arc<Standing>,
    /// Shards that have not opened all of their logs.
    unopened: AtomicU16,
    data: DataDir,
}

impl Directory {
    /// Takes what is at `path`, or makes it as `new` says. `waker` is called when its standing changes.
    pub(super) fn take(
        path: &Path,
        new: &Identity,
        clock: &Arc<dyn Clock>,
        waker: &Waker,
    ) -> Result<Directory, Box<dyn Error + Send + Sync>> {
        let data = DataDir::open(path, new)?;
        if data.is_new() {
            tracing::info!(directory = %path.display(), "made a new data directory");
        }
        if let Some(exposed) = data.exposed()? {
            tracing::warn!("{exposed}");
        }
        for problem in data.problems() {
            tell(path, &problem);
        }
        let standing = Arc::new(Standing::default());
        let watcher = data.guard()?.map(|guard| {
            let (clock, standing) = (Arc::clone(clock), Arc::clone(&standing));
            DataDirWatcher::start(guard, clock, standing, Arc::clone(waker))
        });
        if data.new_life_due() {
            tracing::warn!(
                data = %path.display(),
                "each log begins a new life, as was asked for after a restore"
            );
        }
        Ok(Directory {
            watcher: watcher.transpose()?,
            standing,
            unopened: AtomicU16::new(data.identity().shards),
            data,
        })
    }

    /// Takes note that one more shard has opened all of its logs. An order to this start is carried out when
    /// every shard has.
    pub(super) fn opened(&self) {
        let is_last = self.unopened.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last
            && self.data.new_life_due()
            && let Err(error) = self.data.new_life_begun()
        {
            tracing::warn!(%error, "the next start begins a new life of each log once more");
        }
    }

    /// The directory itself.
    pub(super) fn data(&self) -> &DataDir {
        &self.data
    }

    /// Whether it is still this node's, for whoever stores in it.
    pub(super) fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }
}
