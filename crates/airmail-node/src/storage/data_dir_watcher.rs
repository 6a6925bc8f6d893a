//! Looks, on a thread of its own, whether the node's data directory is still its own, and tells the
//! storage and the log what came of it.
//!
//! What it means is decided by [`Watch`]. The storage is told by a flag, which costs its hot path the
//! reading of one number.

use airmail_log::Waker;
use airmail_log::disk::watch::{Effect, Input, LOOK_EVERY, Watch};
use airmail_log::disk::{Guard, NoLock};
use airmail_model::clock::Clock;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

/// Whether the directory is this node's, for all that store in it.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    changes: AtomicU64,
    /// The cause why nothing may be stored, if so.
    withheld: Mutex<Option<String>>,
}

impl Standing {
    /// The cause why nothing may be stored, if so.
    pub(crate) fn withheld(&self) -> Option<String> {
        self.withheld.lock().clone()
    }

    /// The change since `seen`, if there is one: the cause why nothing may be stored from here on, or `None`
    /// where it may again. Each of those that store has a `seen` of its own, which begins with 0.
    pub(super) fn change(&self, seen: &mut u64) -> Option<Option<String>> {
        let changes = self.changes.load(Ordering::Relaxed);
        if changes == *seen {
            return None;
        }
        // Before the cause is read: if it changes meanwhile, the next look sees that.
        *seen = self.changes.load(Ordering::Acquire);
        Some(self.withheld())
    }

    fn set(&self, withheld: Option<String>) {
        *self.withheld.lock() = withheld;
        self.changes.fetch_add(1, Ordering::Release);
    }
}

/// Ends the thread when it is dropped, and with it the locks that it holds.
pub(super) struct DataDirWatcher {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl DataDirWatcher {
    /// Starts to look. `waker` is called when the standing changes.
    pub(super) fn start(
        guard: Guard,
        clock: Arc<dyn Clock>,
        standing: Arc<Standing>,
        waker: Waker,
    ) -> io::Result<DataDirWatcher> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let mut looking = Looking {
            guard,
            clock,
            watch: Watch::default(),
            standing,
            waker,
        };
        let stopped = Arc::clone(&stop);
        let look = move || {
            while !ends(&stopped) {
                looking.look();
            }
        };
        let thread = Builder::new().name("airmail-watch".into()).spawn(look)?;
        Ok(DataDirWatcher {
            stop,
            thread: Some(thread),
        })
    }
}

/// Waits until the next look is due; whether there is to be none any more.
fn ends((stop, woken): &(Mutex<bool>, Condvar)) -> bool {
    let mut stop = stop.lock();
    woken.wait_while_for(&mut stop, |stop| !*stop, LOOK_EVERY);
    *stop
}

impl Drop for DataDirWatcher {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so; there is nothing to add here.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for DataDirWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataDirWatcher").finish_non_exhaustive()
    }
}

struct Looking {
    guard: Guard,
    clock: Arc<dyn Clock>,
    watch: Watch,
    standing: Arc<Standing>,
    waker: Waker,
}

impl Looking {
    fn look(&mut self) {
        let seen = Input::Seen(self.guard.look());
        let mut effects = self.watch.step(self.clock.mono(), seen);
        while !effects.is_empty() {
            let inputs = effects.drain(..).filter_map(|effect| self.does(effect));
            let inputs: Vec<Input> = inputs.collect();
            let now = self.clock.mono();
            let steps = inputs.into_iter().map(|input| self.watch.step(now, input));
            effects = steps.flatten().collect();
        }
    }

    /// Does what is to be done; gives what came of it.
    fn does(&self, effect: Effect) -> Option<Input> {
        let directory = self.guard.path().display();
        match effect {
            Effect::MakeLock => return Some(self.make_lock()),
            Effect::TellLockMade => tracing::warn!(
                %directory,
                "LOCK was removed or replaced while the node runs, and has been made anew; the \
                 directory was locked all the time"
            ),
            Effect::TellLockFailed(error) => tracing::warn!(
                %directory,
                error,
                "LOCK was removed or replaced, and cannot be made anew; the directory is locked all \
                 the same"
            ),
            Effect::Withhold(why) => {
                tracing::error!(
                    %directory,
                    reason = %why,
                    "nothing is stored or acknowledged any more: put it back as it was, or end this \
                     node"
                );
                self.set(Some(why.to_string()));
            }
            Effect::Release => {
                tracing::warn!(%directory, "the data directory is as it was: storing goes on");
                self.set(None);
            }
        }
        None
    }

    fn make_lock(&self) -> Input {
        match self.guard.make_lock() {
            Ok(()) => Input::LockMade,
            Err(NoLock::Taken { process }) => Input::LockTaken { process },
            Err(NoLock::Failed(error)) => Input::LockFailed(error.to_string()),
        }
    }

    fn set(&self, withheld: Option<String>) {
        self.standing.set(withheld);
        (self.waker)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_that_stores_is_told_of_each_change_once() {
        let standing = Standing::default();
        let (mut one, mut other) = (0, 0);
        assert_eq!(standing.change(&mut one), None);
        standing.set(Some("gone".into()));
        assert_eq!(standing.change(&mut one), Some(Some("gone".into())));
        assert_eq!(standing.change(&mut one), None);
        standing.set(None);
        assert_eq!(standing.change(&mut one), Some(None));
        assert_eq!(standing.change(&mut other), Some(None));
        assert_eq!(standing.change(&mut other), None);
    }
}
