//! The storage of one shard of several: its own logs are at hand, and all others over links.
//!
//! A call goes to the home of its log, which never changes. Everything that is not of one log (trouble, damage,
//! the clock) is that of the shard's own storage: each shard says it of its own.
//!
//! Invariants: a call is passed on once, to the home of its log; what is said to a reader goes where it was
//! started.

use crate::homes::LogHomes;
use crate::hosted_storage::{HostPort, HostedStorage};
use crate::link_storage::LinkStorage;
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use crate::ring::RingPort;
use crate::routes::Routes;
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble};
use airmail_model::{Mono, Now};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// All logs of a process, as one shard of it uses them. See the module's documentation.
pub struct ShardedStorage<S, P = RingPort<ToHost, FromHost>> {
    shard: usize,
    routes: Routes,
    own: HostedStorage<S>,
    /// Links by shard. `None` at this shard's own place.
    links: Vec<Option<LinkStorage<P>>>,
}

impl<S, P> fmt::Debug for ShardedStorage<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedStorage")
            .field("shard", &self.shard)
            .field("own", &self.own)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl<S: LogStorage, P: Port<Out = ToHost, In = FromHost>> ShardedStorage<S, P> {
    /// The storage of `shard`: its own one, and links to the others in their order, `None` at its own place.
    /// [`join`](crate::join()) makes those of one process; this is for links of another kind.
    pub fn new(
        shard: usize,
        homes: Arc<LogHomes>,
        own: HostedStorage<S>,
        links: Vec<Option<LinkStorage<P>>>,
    ) -> ShardedStorage<S, P> {
        ShardedStorage {
            shard,
            routes: Routes::new(homes),
            own,
            links,
        }
    }

    /// Takes ports of other processes, which use the shard's own storage: [`HostedStorage::arrivals`].
    #[must_use]
    pub fn arrivals(&self) -> SyncSender<HostPort> {
        self.own.arrivals()
    }

    /// The shard's own storage, to look at.
    pub fn own(&self) -> &S {
        self.own.storage()
    }

    /// The shard's own storage, for methods that are no call.
    pub fn own_mut(&mut self) -> &mut S {
        self.own.storage_mut()
    }

    /// Ends all links of the shard, and gives its own storage back.
    #[must_use]
    pub fn into_own(self) -> S {
        self.own.into_storage()
    }
}

impl<S: LogStorage, P: Port<Out = ToHost, In = FromHost>> LogStorage for ShardedStorage<S, P> {
    fn capabilities(&self) -> Capabilities {
        self.own.capabilities()
    }

    fn submit(&mut self, call: Call) {
        let Some(home) = self.routes.home(&call) else {
            // Input: an owner that stops a reader, or gives it credit, which has just ended.
            return;
        };
        match self.links.get_mut(home).and_then(Option::as_mut) {
            Some(link) => link.submit(call),
            None => self.own.submit(call),
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let given = out.len();
        let of_own = self.own.poll(now, out);
        let links = self.links.iter_mut().flatten();
        let of_links = links.filter_map(|link| link.poll(now, out)).min();
        let deadline = of_own.into_iter().chain(of_links).min();
        self.routes.forget_ended(&out[given..]);
        deadline
    }

    fn opened(&mut self) {
        self.own.opened();
    }

    fn close(&mut self, now: Now) {
        for link in self.links.iter_mut().flatten() {
            link.close(now);
        }
        self.own.close(now);
    }

    fn is_closed(&self) -> bool {
        let mut links = self.links.iter().flatten();
        links.all(LogStorage::is_closed) && self.own.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.own.trouble()
    }

    fn damage(&self) -> u64 {
        self.own.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.own.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.own.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.own.accept_clock(now);
    }
}
