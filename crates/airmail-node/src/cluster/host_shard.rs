//! A shard with a storage, as links of others come to it: on the runtime of its thread, each by a port of the storage,
//! which is kept for the next one when the link ends.

use super::carrying::Carrying;
use airmail_link::{FromHost, HostPort, ToHost};
use airmail_log::Waker;
use airmail_wire::handshake::{Between, Known, Refusal};
use airmail_wire::link_v1::refused::Why;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use tokio::runtime::Handle;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

/// A shard, as links come to it.
pub(crate) struct HostShard {
    arrivals: SyncSender<HostPort>,
    waker: Waker,
    /// Carriers of ports whose connections have ended.
    free: Mutex<Vec<Carrying<FromHost, ToHost>>>,
    /// The runtime of its thread.
    runtime: SetOnce<Handle>,
    /// Cancelled when its storage closes.
    stop: CancellationToken,
}

impl fmt::Debug for HostShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostShard").finish_non_exhaustive()
    }
}

impl HostShard {
    /// A shard whose storage takes ports by `arrivals`, and is woken by `waker`.
    pub(crate) fn new(arrivals: SyncSender<HostPort>, waker: Waker) -> HostShard {
        HostShard {
            arrivals,
            waker,
            free: Mutex::default(),
            runtime: SetOnce::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Links are carried on the runtime that this is called in.
    pub(crate) fn begin(&self) {
        // An error says that it has begun before.
        let _ = self.runtime.set(Handle::current());
    }

    /// Ends all links: the storage is about to close.
    pub(crate) fn end(&self) {
        self.stop.cancel();
    }

    /// The runtime of its thread, when that has begun.
    pub(super) async fn runtime(&self) -> Handle {
        self.runtime.wait().await.clone()
    }

    /// Stop of another link to it.
    pub(super) fn link_stop(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Takes the carrier of a link that has ended, for the next one.
    pub(super) fn give_back(&self, carrying: Carrying<FromHost, ToHost>) {
        self.free.lock().push(carrying);
    }

    /// Someone who carries for a port of the storage: one that is free, or a new one.
    pub(super) fn carrying(&self) -> Result<Carrying<FromHost, ToHost>, Refusal> {
        if let Some(free) = self.free.lock().pop() {
            return Ok(free);
        }
        let (port, carrying) = Carrying::port(Arc::clone(&self.waker));
        let taken = self.arrivals.try_send(Box::new(port));
        taken
            .map_err(|_| Refusal::new(Why::Role, "the shard takes no more links at the moment"))?;
        (self.waker)();
        Ok(carrying)
    }
}

/// Shards, as links of others come to them, in order.
#[derive(Debug)]
pub(crate) struct HostShards {
    /// To the logs of the shard itself.
    pub(crate) own: Vec<Arc<HostShard>>,
    /// To all logs.
    pub(crate) all: Vec<Arc<HostShard>>,
}

impl HostShards {
    /// The shard that a link is to.
    pub(super) fn of(&self, known: &Known) -> Result<&Arc<HostShard>, Refusal> {
        let Between { from, to } = known.link.between;
        if known.link.child_address.is_some() {
            let place = usize::from(from) % self.all.len().max(1);
            let none = || Refusal::new(Why::Role, "this node has no shard");
            return self.all.get(place).ok_or_else(none);
        }
        let none = || {
            let text = format!("shard {to}: this node has {}", self.own.len());
            Refusal::new(Why::Shard, text)
        };
        self.own.get(usize::from(to)).ok_or_else(none)
    }
}
