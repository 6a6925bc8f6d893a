//! The contract of every log storage: `memory`, `disk`, and later `tree`, `raft` and `kafka`.
//!
//! A storage is owned by one shard and polled. Nothing blocks or awaits: a [`Call`] is submitted as a
//! value, and answered by a [`Completion`] that [`LogStorage::poll`] gives, under its tag, once.
//! Appends to one log are answered in call order. A reader sees the log's numbers tiled by batches
//! and gaps, in order, without holes or overlaps, and only what has reached the log's durability.
//! Numbers that no record ever had are a gap too, [`GapWhy::Unused`]: where they may be, a storage says by
//! its [`Numbering`].
//! A storage lists what it can do in its [`Capabilities`], and refuses all else as
//! [`Refusal::Unsupported`], never by surprise.
//!
//! Calls are one closed enum so that they are spelt once: the caller, the wrappers that pass a call
//! on and the storage that executes it all use the same value. Completions have the same shape. One
//! without a tag or a reader is an event that no call asked for: [`Completion::Gained`] and
//! [`Completion::Lost`], by which a storage that gives its logs to many, or has them from another, says
//! what has become of a log meanwhile; and [`Completion::Suspended`], by which one says that it has lost something
//! which was held. They are of logs that were opened, or that could not be, and may come at any time.
//!
//! - [`call`]: requests to a storage. [`completion`]: its answers. [`capabilities`]: the requests
//!   that it supports. [`condition`]: its health.

pub mod call;
pub mod capabilities;
pub mod completion;
pub mod condition;

pub use call::{
    Call, Direction, Kept, KeptMap, LogSpec, Origin, ReaderId, Scope, ScopeFilter, Soundness, Tag,
    TopicPage, WantEdit,
};
pub use capabilities::{AppendClock, Capabilities, Dedup, Numbering, StorageTraits};
pub use completion::{Bounds, Completion, GapWhy, LogLoss, Refusal, Stored, TopicSeen};
pub use condition::{ClockState, HeldJump, Trouble};

use airmail_model::{Mono, Now};
use std::sync::Arc;

/// Wakes the owner of a storage. A storage with threads of its own is given one when it is opened, and
/// calls it, from any thread, whenever they have done what [`LogStorage::poll`] will tell. Must not
/// block.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Owned by one shard. See the module's documentation for what holds of every call.
pub trait LogStorage: Send {
    /// Capabilities of this storage. Constant for its life.
    fn capabilities(&self) -> Capabilities;

    /// Takes a call, to be done and answered by [`LogStorage::poll`].
    fn submit(&mut self, call: Call);

    /// Does the work that is ready, starts the next commit if none is under way, and gives the
    /// completions of earlier calls. Returns when to poll again if nothing else happens before: no
    /// call is submitted, and the [`Waker`] is not called.
    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono>;

    /// Takes note that every log of its owner is open: the orders to this start are carried out.
    fn opened(&mut self);

    /// Begins a clean stop: accepted appends are stored and answered, new appends are refused as
    /// `Busy`. Poll until [`is_closed`](Self::is_closed). A storage that cannot store gives up its
    /// last writes, and its next start is as after an unclean stop.
    fn close(&mut self, now: Now);

    /// Whether a clean stop has come to its end; also where the storage keeps failing.
    fn is_closed(&self) -> bool;

    /// The fault for which nothing is stored at the moment, if there is one.
    fn trouble(&self) -> Option<Trouble>;

    /// Number of places found damaged since the storage was opened.
    fn damage(&self) -> u64;

    /// Bytes read for readers from wherever the storage keeps what is not in memory, since it was opened. 0 at
    /// the near end of a link: the far end counts them.
    fn read_bytes(&self) -> u64;

    /// Whether the wall clock is believed, and what retention by time goes by.
    fn clock(&self) -> ClockState;

    /// Believes the wall clock as it is now, whatever it has done; retention is applied at the next
    /// poll.
    fn accept_clock(&mut self, now: Now);
}

impl<S: LogStorage + ?Sized> LogStorage for Box<S> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn submit(&mut self, call: Call) {
        (**self).submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        (**self).poll(now, out)
    }

    fn opened(&mut self) {
        (**self).opened();
    }

    fn close(&mut self, now: Now) {
        (**self).close(now);
    }

    fn is_closed(&self) -> bool {
        (**self).is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        (**self).trouble()
    }

    fn damage(&self) -> u64 {
        (**self).damage()
    }

    fn read_bytes(&self) -> u64 {
        (**self).read_bytes()
    }

    fn clock(&self) -> ClockState {
        (**self).clock()
    }

    fn accept_clock(&mut self, now: Now) {
        (**self).accept_clock(now);
    }
}
