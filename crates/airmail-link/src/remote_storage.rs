//! The storage of a process that has none: all logs are those of another process, over a link to each of its
//! shards.
//!
//! A call goes to the home of its log there, which never changes. Nothing is stored here, so there is no trouble,
//! damage or clock to tell of: the other process tells of its own.

use crate::homes::LogHomes;
use crate::link_storage::LinkStorage;
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use crate::routes::Routes;
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble};
use airmail_model::{Mono, Now};
use std::sync::Arc;

/// All logs of another process, as one shard of this one uses them. See the module's documentation.
#[derive(Debug)]
pub struct RemoteStorage<P> {
    routes: Routes,
    capabilities: Capabilities,
    /// Links to the other process's shards, in order.
    links: Vec<LinkStorage<P>>,
}

impl<P: Port<Out = ToHost, In = FromHost>> RemoteStorage<P> {
    /// The storage whose logs have these homes in another process, by links to its shards in order.
    ///
    /// # Panics
    /// If there are not as many links as `homes` has shards.
    pub fn new(
        homes: Arc<LogHomes>,
        capabilities: Capabilities,
        links: Vec<LinkStorage<P>>,
    ) -> RemoteStorage<P> {
        assert_eq!(links.len(), homes.shards(), "links and shards");
        RemoteStorage {
            routes: Routes::new(homes),
            capabilities,
            links,
        }
    }
}

impl<P: Port<Out = ToHost, In = FromHost>> LogStorage for RemoteStorage<P> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&mut self, call: Call) {
        let Some(home) = self.routes.home(&call) else {
            // Input: an owner that stops a reader, or gives it credit, which has just ended.
            return;
        };
        self.links[home].submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let given = out.len();
        let links = self.links.iter_mut();
        let deadline = links.filter_map(|link| link.poll(now, out)).min();
        self.routes.forget_ended(&out[given..]);
        deadline
    }

    fn opened(&mut self) {}

    fn close(&mut self, now: Now) {
        for link in &mut self.links {
            link.close(now);
        }
    }

    fn is_closed(&self) -> bool {
        self.links.iter().all(LogStorage::is_closed)
    }

    fn trouble(&self) -> Option<Trouble> {
        None
    }

    fn damage(&self) -> u64 {
        0
    }

    fn read_bytes(&self) -> u64 {
        0
    }

    fn clock(&self) -> ClockState {
        ClockState::default()
    }

    fn accept_clock(&mut self, _now: Now) {}
}
