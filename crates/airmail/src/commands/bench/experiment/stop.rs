//! Ctrl-C during an experiment: what is under way ends, and the report tells what there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// How often somebody who waits for it looks.
const LOOK: Duration = Duration::from_millis(50);

/// Whether to stop; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::commands::bench) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Set at the first Ctrl-C, of which the second ends the process at once.
    pub(in crate::commands::bench) fn on_ctrl_c() -> anyhow::Result<Stop> {
        let stop = Stop::default();
        let set = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        // Before the thread runs: a Ctrl-C that comes at once must not end the process.
        let mut pressed = {
            let _entered = runtime.enter();
            signal(SignalKind::interrupt()).context("cannot listen to Ctrl-C")?
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
            .context("cannot listen to Ctrl-C")?;
        Ok(stop)
    }

    /// Whether it is set by then.
    pub(in crate::commands::bench) fn comes_within(&self, patience: Duration) -> bool {
        let mut waited = Duration::ZERO;
        while !self.is_set() && waited < patience {
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
        self.is_set()
    }

    /// Sets it, as Ctrl-C does.
    #[cfg(test)]
    pub(in crate::commands::bench) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Ends when it is set.
    pub(in crate::commands::bench) async fn wait(&self) {
        while !self.is_set() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether no further case is to be begun, and the present one is to end.
    pub(in crate::commands::bench) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
