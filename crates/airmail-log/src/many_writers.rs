//! A storage in memory that many write to, for tests and the simulator: logs that several handles share, each of them a
//! [`LogStorage`](crate::LogStorage) of its own that knows what the others do only by reading.
//!
//! It promises what an engine with an order and clocks of its own can:
//!
//! - A batch has a place; its number is the place times 4,096, plus the record's index. Some places are void.
//! - Append times are of several clocks: one may be before an earlier one, by as much as the settings say.
//! - Whoever appends is answered at once, and a retry that comes by another handle is stored once more. A reader is given
//!   what the log's prefix says: of a producer's records, those above its last that was given (`log.rs`).
//! - A handle stores nothing of a producer behind a batch that it has refused, until that one comes again, and nothing
//!   more of an epoch of which it does not know one's outcome ([`handle`]).
//!
//! - Where the settings say so, a log is opened only with what was made for it beforehand (`made.rs`).
//!
//! With delays, calls reach the logs some time after they were made, and answers their caller some time after they were
//! true; in order, for each handle. Nothing here outlives the process, and nothing fails but by the settings.

mod changing;
pub mod handle;
mod log;
mod made;
mod reader;

pub use handle::LogsHandle;

use crate::contract::Stored;
use airmail_model::{LogId, NamespaceId, Sequence, random};
use log::SharedLog;
use made::Provisioned;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Settings of logs that many write to. Rates are in parts of a million, for each append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSettings {
    /// Seed of every choice.
    pub seed: u64,
    /// Most that an append time is before an earlier one. Default 2 s.
    pub clocks_apart: Duration,
    /// Most that a call takes to the logs, and its answer back. Default 0.
    pub delay: Duration,
    /// An append is refused as busy. Default 0.
    pub busy: u32,
    /// The outcome of an append is told as unknown, whether it is stored or not; ten times as often where it has no
    /// producer. Default 0.
    pub unknown: u32,
    /// A producer's batch is stored twice, and the numbers of the second are told. Default 0.
    pub twice: u32,
    /// The logs of a namespace are opened with provisions only. Stays as it was at the beginning. Default false.
    pub provisions: bool,
}

impl Default for SharedSettings {
    fn default() -> SharedSettings {
        SharedSettings {
            seed: 0,
            clocks_apart: Duration::from_secs(2),
            delay: Duration::ZERO,
            busy: 0,
            unknown: 0,
            twice: 0,
            provisions: false,
        }
    }
}

/// Logs that several handles share. See the module's documentation.
#[derive(Clone, Debug)]
pub struct SharedLogs(Arc<Mutex<State>>);

/// Logs, and settings, that all handles share.
#[derive(Debug)]
struct State {
    settings: SharedSettings,
    logs: BTreeMap<LogId, SharedLog>,
    /// Places in log 0 of the commands that deleted logs.
    deleted: BTreeMap<LogId, Sequence>,
    provisioned: Provisioned,
    /// Lives that logs have begun so far.
    lives: u64,
    drawn: u64,
}

impl SharedLogs {
    /// No logs yet.
    #[must_use]
    pub fn new(settings: SharedSettings) -> SharedLogs {
        SharedLogs(Arc::new(Mutex::new(State {
            settings,
            logs: BTreeMap::new(),
            deleted: BTreeMap::new(),
            provisioned: Provisioned::default(),
            lives: 0,
            drawn: 0,
        })))
    }

    /// Another handle.
    #[must_use]
    pub fn handle(&self) -> LogsHandle {
        LogsHandle::new(self.clone())
    }

    /// Goes on with other settings; the clocks stay as far apart as they were, and provisions as needed.
    pub fn set(&self, settings: SharedSettings) {
        let of_logs = &mut self.0.lock().settings;
        let (clocks_apart, provisions) = (of_logs.clocks_apart, of_logs.provisions);
        *of_logs = SharedSettings {
            clocks_apart,
            provisions,
            ..settings
        };
    }

    /// Ends all faults and delays.
    pub fn calm(&self) {
        let seed = self.0.lock().settings.seed;
        self.set(SharedSettings {
            seed,
            ..SharedSettings::default()
        });
    }

    /// Namespaces whose provisions are there, and were used: a deleted one has none.
    #[must_use]
    pub fn provisioned(&self) -> Vec<NamespaceId> {
        self.0.lock().provisioned.named().collect()
    }

    /// Number of provisions that were withdrawn.
    #[must_use]
    pub fn withdrawn(&self) -> u64 {
        self.0.lock().provisioned.withdrawn
    }

    /// Batches of a log as readers are given them, or were while they were kept, from the one with this index on; and
    /// the index to go on with.
    #[must_use]
    pub fn given(&self, log: LogId, from: usize) -> (Vec<Stored>, usize) {
        let state = self.0.lock();
        let Some(log) = state.logs.get(&log) else {
            return (Vec::new(), from);
        };
        log.given(from)
    }
}

impl State {
    /// A number below `limit`; 0 if there is none.
    fn below(&mut self, limit: u64) -> u64 {
        self.drawn += 1;
        random::nth(self.settings.seed, self.drawn)
            .checked_rem(limit)
            .unwrap_or(0)
    }

    /// Whether something happens that does so at this rate.
    fn chance(&mut self, rate: u32) -> bool {
        rate > 0 && self.below(1_000_000) < rate.into()
    }

    /// A time up to the most that a call or its answer takes.
    fn delay(&mut self) -> Duration {
        let most = u64::try_from(self.settings.delay.as_nanos()).unwrap_or(u64::MAX);
        if most == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.below(most))
    }
}
