//! The storage of a node that has clients: that of a shard of one process, that of a gateway of several towers, that of a
//! node of a tree, a handle of logs that many write to, or the core on Kafka.

use super::plug::NearPlug;
use super::wire::SimPort;
use crate::files::SimFiles;
use airmail_link::{
    CachedStorage, FromHost, HostedStorage, LinkStorage, ShardedStorage, ToHost, TowersStorage,
};
use airmail_log::journal::JournalStorage;
use airmail_log::many_writers::LogsHandle;
use airmail_log::routed::Routed;
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble};
use airmail_log_kafka::model::ModelBrokers;
use airmail_log_kafka::{ApartStorage, KafkaStorage};
use airmail_model::{Mono, Now};

/// The journal of a process, or two of them, each on a disk of its own.
pub(super) type NodeDisk = Routed<JournalStorage<SimFiles>>;
/// The end of a wire that asks.
pub(super) type NearPort = SimPort<ToHost, FromHost>;

/// See the module's documentation.
#[derive(Debug)]
pub(super) enum NodeStorage {
    Shard(Box<ShardedStorage<NodeDisk, NearPort>>),
    Gateway(TowersStorage<NearPort>),
    Root(HostedStorage<NodeDisk>),
    Below(Box<HostedStorage<CachedStorage<LinkStorage<NearPlug>>>>),
    Writer(LogsHandle),
    Kafka(Box<KafkaStorage<ModelBrokers>>),
    /// With a handle of its own to append by.
    Apart(Box<ApartStorage<ModelBrokers, KafkaStorage<ModelBrokers>>>),
}

impl NodeStorage {
    fn any(&self) -> &dyn LogStorage {
        match self {
            NodeStorage::Shard(storage) => storage.as_ref(),
            NodeStorage::Gateway(storage) => storage,
            NodeStorage::Root(storage) => storage,
            NodeStorage::Below(storage) => storage.as_ref(),
            NodeStorage::Writer(storage) => storage,
            NodeStorage::Kafka(storage) => storage.as_ref(),
            NodeStorage::Apart(storage) => storage.as_ref(),
        }
    }

    fn any_mut(&mut self) -> &mut dyn LogStorage {
        match self {
            NodeStorage::Shard(storage) => storage.as_mut(),
            NodeStorage::Gateway(storage) => storage,
            NodeStorage::Root(storage) => storage,
            NodeStorage::Below(storage) => storage.as_mut(),
            NodeStorage::Writer(storage) => storage,
            NodeStorage::Kafka(storage) => storage.as_mut(),
            NodeStorage::Apart(storage) => storage.as_mut(),
        }
    }
}

impl LogStorage for NodeStorage {
    fn capabilities(&self) -> Capabilities {
        self.any().capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.any_mut().submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let deadline = self.any_mut().poll(now, out);
        // The model wakes nobody: what others have done may have something for this node.
        let next = match self {
            NodeStorage::Kafka(storage) => storage.brokers().next(),
            NodeStorage::Apart(storage) => storage.storage().brokers().next(),
            _ => None,
        };
        deadline.into_iter().chain(next).min()
    }

    fn opened(&mut self) {
        self.any_mut().opened();
    }

    fn close(&mut self, now: Now) {
        self.any_mut().close(now);
    }

    fn is_closed(&self) -> bool {
        self.any().is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.any().trouble()
    }

    fn damage(&self) -> u64 {
        self.any().damage()
    }

    fn read_bytes(&self) -> u64 {
        self.any().read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.any().clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.any_mut().accept_clock(now);
    }
}
