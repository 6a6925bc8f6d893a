//! Four additions to tokio, each for a cost that the shard's thread or its connections would else bear.
//!
//! - [`alarm`]: one timer for all turns of a shard, set again only for an earlier deadline. Without it every
//!   turn would set a timer.
//! - [`select_cold`]: a `select` whose cold side is polled only when it has woken the task. tokio's `select!`
//!   polls every side each time, and each poll of a cancellation token takes its lock.
//! - [`connection_migration`]: connections that ask for mailboxes move, as they are, to the threads of the
//!   mailboxes. Without it all their requests would go through the shard's one thread, and its clients would
//!   wait.
//! - [`thread_time`]: how long a shard's thread was busy, with the time in which it waited for a processor. The
//!   share of those who read what is past is counted from it, and the runtime does not know of the waiting.

pub(crate) mod alarm;
pub(crate) mod connection_migration;
pub(crate) mod select_cold;
pub(crate) mod thread_time;
