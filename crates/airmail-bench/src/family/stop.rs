//! Ctrl-C during an experiment: the run under way ends, and the report has the results so far.

use super::error::{FamilyError, system};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Interval at which a wait looks for it.
const LOOK: Duration = Duration::from_millis(50);

/// Whether to stop; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Set at the first Ctrl-C, of which the second ends the process at once.
    ///
    /// # Errors
    /// The system does not let it be listened to.
    pub fn on_ctrl_c() -> Result<Stop, FamilyError> {
        let stop = Stop::default();
        let set = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(system("a thread for Ctrl-C"))?;
        // Before the thread runs: a Ctrl-C that comes at once must not end the process.
        let mut pressed = {
            let _entered = runtime.enter();
            signal(SignalKind::interrupt()).map_err(system("cannot listen to Ctrl-C"))?
        };
        let wait = move || {
            runtime.block_on(pressed.recv());
            set.0.store(true, Ordering::Relaxed);
            runtime.block_on(pressed.recv());
            std::process::exit(130);
        };
        std::thread::Builder::new()
            .name("ctrl-c".into())
            .spawn(wait)
            .map_err(system("cannot listen to Ctrl-C"))?;
        Ok(stop)
    }

    /// Whether it is set by then.
    #[must_use]
    pub fn comes_within(&self, patience: Duration) -> bool {
        let mut waited = Duration::ZERO;
        while !self.is_set() && waited < patience {
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
        self.is_set()
    }

    /// Sets it, as Ctrl-C does.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Ends when it is set.
    pub async fn wait(&self) {
        while !self.is_set() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether no further case is to be begun, and the present one is to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
