//! Settings of a shard, with the defaults in one place.

pub use crate::link::Interest;
pub use crate::tower::SweepSettings;
use airmail_flow::{GateSettings, SharesSettings};
use airmail_log::StorageTraits;
use airmail_model::{Durability, Limits, Retention, StorageName};
use std::collections::BTreeMap;
use std::time::Duration;

/// The settings of a [`crate::Shard`]. Bounds are for the whole shard unless they say otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardConfig {
    /// Seed of every random choice: equal seeds and inputs give equal effects. Default 0.
    pub seed: u64,
    /// Limits on clients' requests. Only [`Limits::subscriptions`] is checked here: the rest is
    /// checked at the edge, when bytes become [`airmail_model::Checked`].
    pub limits: Limits,
    /// Settings with which the namespace `default` is made on the first start. Later starts do not
    /// look at it.
    pub default_namespace: FirstNamespace,
    /// The storages beside the first. Default: none.
    pub storages: BTreeMap<StorageName, StorageTraits>,
    /// Time for which the logs of a moved namespace are kept where they were, when retention has left nothing in them.
    /// Default 10 min.
    pub retire_after: Duration,
    /// Interval at which a storage that provisions is told what log 0 names, to put right what is otherwise. Default 60 s.
    pub upkeep_interval: Duration,
    /// Interval at which positions of quiet ranges are told. Default 1 s.
    pub mark_interval: Duration,
    /// Storage readers for late subscribers. Default 8.
    pub catch_up_readers: usize,
    /// Bytes that a late subscribers' reader is granted at a time, so that live traffic passes in
    /// between. Default 256 KiB.
    pub catch_up_step_bytes: u32,
    /// Bytes after which a reader is given to those who wait longest for one. Default 4 MiB.
    pub catch_up_quantum_bytes: u64,
    /// Numbers ahead of a reader at which a late subscriber may stand to share it. Default 2^20.
    pub catch_up_span: u64,
    /// Bounds of readers that serve many who are behind in one log.
    pub catch_up_sweeps: SweepSettings,
    /// Bytes that the tail reader of a log may be ahead of the shard. Default 1 MiB.
    pub tail_window_bytes: u32,
    /// The part of a log with live subscriptions that the tower is to give: everything, where it is at hand, or
    /// the topics that are wanted. Default: everything.
    pub interest: Interest,
    /// Filters at a topic that are held against a message one after the other, at most; where there are more, an index finds
    /// those that match. Default 32.
    pub filters_few: usize,
    /// Work that is done in a step to hold what has come against filters, in units; one is a step of an index, some 30 ns.
    /// More is done in the next. Default 2^16.
    pub matching_units: u32,
    /// Places of records that filters match, each for one filter, which are found before they are handed over. Default 2^20.
    pub matching_found: usize,
    /// Bytes of a log that may wait to be held against filters. Beyond it what comes is left to the storage, and read from
    /// there when there is room. Default 4 MiB.
    pub matching_bytes: usize,
    /// Subscriptions that a live delivery names as those that its messages are for, at most, unless it has a single message.
    /// Default 2^16.
    pub matches_max: usize,
    /// Changes of filters of a log that may wait until what is held against the filters is handed over; further ones are made
    /// at once, and their subscriptions are read for. Default 1,024.
    pub changes_max: usize,
    /// Bytes of one session's publishes that may wait for admission. Default 1 MiB.
    pub parked_bytes: usize,
    /// Gate for published messages in flight. Default `None`: they are bounded only by the number
    /// that clients may send.
    pub publish_gate: Option<GateSettings>,
    /// Bytes of publishes that may wait for their turn to be in flight. Default 64 MiB.
    pub publish_waiting_bytes: usize,
    /// Gate for deliveries in flight. Default `None`: they are bounded only by each stream's
    /// credit.
    pub delivery_gate: Option<SharesSettings>,
    /// Namespace commands that may wait for their turn. Default 256.
    pub commands: usize,
    /// Listings of topics that may be under way. Default 64.
    pub listings: usize,
    /// After how long a storage call that failed is tried again, and what a client is told to wait
    /// when the shard is busy. Default 1 s.
    pub retry_delay: Duration,
    /// A planted bug.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

impl Default for ShardConfig {
    fn default() -> ShardConfig {
        ShardConfig {
            seed: 0,
            limits: Limits::DEFAULT,
            default_namespace: FirstNamespace::default(),
            storages: BTreeMap::new(),
            retire_after: Duration::from_secs(600),
            upkeep_interval: Duration::from_secs(60),
            mark_interval: Duration::from_secs(1),
            catch_up_readers: 8,
            catch_up_step_bytes: 256 << 10,
            catch_up_quantum_bytes: 4 << 20,
            catch_up_span: 1 << 20,
            catch_up_sweeps: SweepSettings::default(),
            tail_window_bytes: 1 << 20,
            interest: Interest::All,
            filters_few: 32,
            matching_units: 1 << 16,
            matching_found: 1 << 20,
            matching_bytes: 4 << 20,
            matches_max: 1 << 16,
            changes_max: 1024,
            parked_bytes: 1 << 20,
            publish_gate: None,
            publish_waiting_bytes: 64 << 20,
            delivery_gate: None,
            commands: 256,
            listings: 64,
            retry_delay: Duration::from_secs(1),
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}

/// Settings of the namespace `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstNamespace {
    /// Logs in the normal lane. Default 1.
    pub logs: u16,
    /// Bounds on the records that are kept. Default: for ever.
    pub retention: Retention,
    /// Durability that an ack promises. Default (`None`): the strongest that the storage has.
    pub durability: Option<Durability>,
}

impl Default for FirstNamespace {
    fn default() -> FirstNamespace {
        FirstNamespace {
            logs: 1,
            retention: Retention::default(),
            durability: None,
        }
    }
}
