//! Parts of commands that last until they are stopped: a log, signals, a seed, and messages for the
//! user who started them.

use crate::cli::UsageError;
use airmail_node::config::Config;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Sends the process's log to standard error, as `config` has it.
///
/// # Errors
/// The level is not valid.
pub(super) fn start_logging(config: &Config) -> Result<(), UsageError> {
    let filter = config.log_filter();
    let filter = filter.map_err(|error| UsageError(error.to_string()))?;
    let registry = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // There is one already where a test runs several.
    let _ = match config.log_format.as_str() {
        "json" => registry.with(lines.json().flatten_event(true)).try_init(),
        _ => registry.with(lines.with_ansi(false)).try_init(),
    };
    Ok(())
}

/// SIGINT and SIGTERM, from when this is made.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one's name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Where a process's one seed comes from; everything behind it is given a seed.
#[expect(
    clippy::disallowed_types,
    reason = "the operating system's randomness, by way of the standard library"
)]
pub(super) fn entropy() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Says something on standard output, of what lasts whether it is read or not: what cannot be said is in
/// the log.
pub(super) fn print(text: &str) {
    if let Err(error) = super::lines::say(text) {
        tracing::warn!("{error:#}");
    }
}
