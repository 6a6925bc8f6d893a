//! The catalog: which namespaces there are, as a state machine of its own.
//!
//! It owns log 0, in which every change of a namespace is a command: opens it, reads it, appends to it,
//! and knows how much of it has been folded. Sessions, subscriptions and the logs of namespaces are not
//! its business. What a change means for logs it orders from the side that has them (`Order`), and that
//! side says when it is done (`CatalogInput::LogSettled`). So the catalog can stand beside several such
//! sides, and each can be understood without the other.
//!
//! - The start: log 0 is opened and read to its end; then every namespace's logs are ordered open, and
//!   those that deletions left behind are ordered away. A first start makes the namespace `default`. All
//!   is ready when all of these orders are done, or have failed.
//! - A command is checked, and appended to log 0 while others wait. Before one that makes a namespace, the storage makes
//!   what the namespace needs, if it needs anything. It is done when the reader of log 0
//!   has met it and its orders are done, not when it was appended: the state is the fold, here as after
//!   a restart.
//!
//! Whoever drives it gives the storage's answers about log 0 as inputs, and gives no tags and no readers'
//! numbers: at most one opening or one reader (`under_way`) and one command's provisions or append (`line`)
//! are under way at a time, so an answer needs no name.
//!
//! Invariants, which `check.rs` asserts after each step where bugs panic, under the names that stand
//! first here:
//!
//! - `phase`: the start never goes back; what is ready stays ready.
//! - `under_way`: log 0 is opened and read by one call at a time, and never read before it is open.
//! - `served`: what is served is the fold of a prefix of log 0, and nothing before log 0 was read to its
//!   end. The prefix never shrinks, and grows by what the reader gives, without a hole.
//! - `numbers`: a namespace's number is never given twice: each new one is above all that were ever given. So is a role's.
//! - `names`: each namespace is found by its own name, and its map is its own.
//! - `answers`: a command that was taken is answered exactly once.
//! - `line`: a command waits only while another is under way, at most `commands_max` wait, one step
//!   appends at most one, and none before the storage has provisioned for it.
//! - `ready`: no command of a client is taken before all is ready; and all is ready only when no order of the
//!   start is under way, and with a namespace that was ever made, unless log 0 is torn.
//! - `met`: what is noted for the command under way has been read, in order; and the command itself is
//!   noted when it was read, so that it cannot wait for ever.
//! - `torn`: a log 0 with a piece missing, or raised to a version that this program does not read, is never
//!   whole again, says so, and is not appended to but for deletions that have come to their end.
//! - `progress`: neither number goes back, and no more is settled than folded.
//! - `settling`: only what was ever made has orders under way, and none before log 0 was read to its end.
//! - `indexes`: the logs of a namespace's maps have indexes of their own, each map's above those before.
//! - `losses`: only logs of a namespace's maps have losses.
//! - `emptied`: what is noted to be empty is a log of an earlier map that is kept.
//! - `orders`: a log is ordered open as its namespace says, and ordered away only when its namespace is
//!   deleted; the start orders every log that there is.

mod change;
mod check;
mod commands;
mod fold;
mod losses;
mod messages;
mod namespaces;
mod orders;
mod provisioning;
mod retirement;
mod roles;
mod system_log;
#[cfg(test)]
mod tests;
mod upkeep;
mod validate;

use crate::input::{Command, CommandId};
use airmail_model::{Error, NamespaceId, Now, Sequence};
pub use change::needed_by;
use commands::Current;
use fold::Fold;
pub use losses::{Crossing, LogCut, LogLosses};
pub(crate) use messages::{
    CatalogConfig, CatalogEffect, CatalogEffects, CatalogInput, CommandRefusal, Order, SystemAppend,
};
pub use namespaces::{Catalog, EarlierMap, EarlierState, Entry};
use orders::Settling;
use retirement::Emptied;
pub use roles::RoleDirectory;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use system_log::SystemLog;

/// Progress of the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Log 0 is being opened.
    #[default]
    Opening,
    /// Log 0 is being read for the first time.
    Replaying,
    /// The namespaces are known, their logs are being opened.
    Settling,
    /// All is open.
    Ready,
}

/// Distance that a shard has come in log 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The first number that was not folded: every command before it is known.
    pub folded: Sequence,
    /// The first number whose command may have orders for logs under way: what the commands before it say is done,
    /// or has failed. 0 until the shard is ready; never more than `folded`.
    pub settled: Sequence,
}

/// The namespaces, log 0, and the commands about them. See the module's documentation.
#[derive(Debug)]
pub(crate) struct CatalogCore {
    config: CatalogConfig,
    phase: Phase,
    log: SystemLog,
    fold: Fold,
    /// The folded namespaces, as they are served.
    snapshot: Arc<Catalog>,
    /// Reason for which it is not ready, or takes no commands.
    failure: Option<Error>,
    /// Namespaces some of whose logs are being opened or deleted.
    settling: BTreeMap<NamespaceId, Settling>,
    /// The first number of log 0 that was not folded when no order was under way last.
    settled: Sequence,
    /// Commands that wait for the one under way.
    queue: VecDeque<(CommandId, Command)>,
    current: Option<Current>,
    emptied: Emptied,
}

impl CatalogCore {
    /// A catalog that has not begun: [`CatalogInput::Start`] is to be given once, before all else.
    pub(crate) fn new(config: CatalogConfig) -> CatalogCore {
        CatalogCore {
            config,
            phase: Phase::default(),
            log: SystemLog::default(),
            fold: Fold::default(),
            snapshot: Arc::default(),
            failure: None,
            settling: BTreeMap::new(),
            settled: Sequence(0),
            queue: VecDeque::new(),
            current: None,
            emptied: Emptied::default(),
        }
    }

    /// Takes what has happened, and adds what it wants done, to be done in order.
    pub(crate) fn step(&mut self, now: Now, input: CatalogInput, out: &mut CatalogEffects) {
        let before = self.before(&input, out);
        match input {
            CatalogInput::Start => self.open(out),
            CatalogInput::Opened(bounds) => self.opened(&bounds, out),
            CatalogInput::OpenRefused(why) => self.open_refused(&why, out),
            CatalogInput::Batch { r, stored } => self.batch(now, r, &stored, out),
            CatalogInput::Gap { extent, why } => self.gap(now, extent, why, out),
            CatalogInput::Tail => self.tail(now, out),
            CatalogInput::ReaderEnded => self.reader_ended(out),
            CatalogInput::Retry => self.retry(now, out),
            CatalogInput::Appended { of, extent } => self.appended(now, of, extent, out),
            CatalogInput::AppendRefused { of, why } => self.append_refused(now, of, &why, out),
            CatalogInput::Provisioned(result) => self.provisioned(now, result, out),
            CatalogInput::Command { id, command } => self.command(now, id, command, out),
            CatalogInput::Emptied { log, end } => self.emptied(now, log, end, out),
            CatalogInput::HighWanted(namespace) => self.want_high(now, namespace, out),
            CatalogInput::Upkeep => self.keep(out),
            CatalogInput::Suspended { log, loss } => self.suspended(now, log, &loss, out),
            CatalogInput::LogSettled { namespace, result } => {
                self.log_settled(now, namespace, result, out);
            }
        }
        if self.phase == Phase::Ready && self.settling.values().all(|of| of.left == 0) {
            self.settled = self.log.next;
        }
        self.after(before, out);
    }

    /// Distance that it has come in log 0.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            folded: self.log.next,
            settled: self.settled,
        }
    }

    /// Whether the namespaces are known and their logs open.
    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Reason for which it is not ready, or takes no commands, if it is more than a matter of time.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// The namespaces as they stand.
    pub(crate) fn snapshot(&self) -> &Arc<Catalog> {
        &self.snapshot
    }
}
