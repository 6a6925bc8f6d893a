//! Wakes a shard within some ten microseconds of a time, where its own alarm has steps of milliseconds.
//!
//! A thread of its own waits for the one time that it was told last. What it misses costs accuracy and
//! nothing else: the shard's alarm rings too, only later.

use airmail_log::Waker;
use airmail_model::Mono;
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Times that were told and not looked at yet, at most.
const TOLD: usize = 16;

/// See the module's documentation. Its thread ends when it is dropped.
pub(super) struct PreciseTimer {
    /// Takes times to wait from now. `None` only while it is dropped.
    tell: Option<SyncSender<Duration>>,
    /// The time that was told last.
    at: Option<Mono>,
    thread: Option<JoinHandle<()>>,
}

impl PreciseTimer {
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start(waker: Waker) -> io::Result<PreciseTimer> {
        let (tell, told) = sync_channel(TOLD);
        let thread = std::thread::Builder::new()
            .name("storage-timer".into())
            .spawn(move || wait(&told, &waker))?;
        Ok(PreciseTimer {
            tell: Some(tell),
            at: None,
            thread: Some(thread),
        })
    }

    /// Wakes the shard at this time, and at none that was told before and is still to come.
    pub(super) fn wake_at(&mut self, at: Mono, now: Mono) {
        let Some(tell) = self.tell.as_ref().filter(|_| self.at != Some(at)) else {
            return;
        };
        if tell.try_send(at.since(now)).is_ok() {
            self.at = Some(at);
        }
    }
}

impl Drop for PreciseTimer {
    fn drop(&mut self) {
        self.tell = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for PreciseTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreciseTimer")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

fn wait(told: &Receiver<Duration>, waker: &Waker) {
    let mut left = told.recv().ok();
    while let Some(time) = left {
        left = match told.recv_timeout(time) {
            Ok(time) => Some(time),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                waker();
                told.recv().ok()
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn each_time_that_comes_wakes_once_and_an_earlier_one_in_its_place() {
        let (woke, wakes) = sync_channel(16);
        let waker: Waker = Arc::new(move || woke.send(()).unwrap());
        let mut punctual = PreciseTimer::start(waker).unwrap();
        let far = Mono(3_600_000_000_000);
        punctual.wake_at(far, Mono(0));
        for at in [Mono(1000), Mono(2000)] {
            punctual.wake_at(at, Mono(0));
            punctual.wake_at(at, Mono(0));
            wakes.recv().unwrap();
        }
        punctual.wake_at(far, Mono(0));
        // Ends though it waits.
        drop(punctual);
        assert!(wakes.try_recv().is_err());
    }
}
