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

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Directory {
    #[expect(dead_code, reason = "ends with this, before the locks are let go")]
    watcher: Option<DataDirWatcher>,
    standing: Arc<Standing>,
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
        Ok(Directory {
            watcher: watcher.transpose()?,
            standing,
            data,
        })
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
