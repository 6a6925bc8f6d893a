//! A model of brokers in memory: what Kafka may do, seeded, without Kafka.
//!
//! Several clients share one cluster, as nodes share one Kafka: each [`ModelBrokers`] is a client, with a queue of
//! its own. Time is the argument of [`Brokers::poll`](crate::brokers::Brokers::poll); every delay is a number of nanoseconds of it, and everything
//! that is drawn comes from the seed, so that one seed is one history.
//!
//! It keeps what Kafka promises (a partition's order, a record that is told is stored, consumers see nothing from
//! above the high watermark) and does whatever else Kafka may: partitions do not wait for each other, reports get
//! lost whether the record is stored or not, one record fails alone, another producer stores a record twice, leaders
//! change and with them the clock, an old leader answers, partitions are dead for a while, consumers end, records go by
//! retention and, at a time that is drawn, by compaction, and an unclean election cuts a partition. [`Faults`] has the shares.
//!
//! - `cluster`: the brokers, and what is under way. `happening`: what that does. `partition`: one partition.
//!   `client`: a client's side.

mod client;
mod cluster;
mod faults;
mod happening;
mod partition;

pub use client::ModelBrokers;
pub use faults::Faults;

use crate::brokers::{Failure, Partition, Record, Topic};
use crate::place::Offset;
use cluster::Cluster;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A cluster of brokers. A clone is the same cluster.
#[derive(Clone, Debug)]
pub struct ModelCluster {
    cluster: Arc<Mutex<Cluster>>,
}

impl ModelCluster {
    /// An empty cluster.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> ModelCluster {
        ModelCluster {
            cluster: Arc::new(Mutex::new(Cluster::new(seed, faults))),
        }
    }

    /// A new client.
    #[must_use]
    pub fn client(&self) -> ModelBrokers {
        let id = self.cluster.lock().new_client();
        ModelBrokers::new(Arc::clone(&self.cluster), id)
    }

    /// Sets what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.cluster.lock().faults = faults;
    }

    /// Stops a partition for a while from the last poll on: its leader stores and answers nothing.
    pub fn stop(&self, partition: &Partition, time: Duration) {
        self.cluster.lock().stop(partition, time);
    }

    /// Moves a partition to another leader, whose clock differs from true time by `skew_ms`.
    pub fn move_leader(&self, partition: &Partition, skew_ms: i64) {
        if let Some(partition) = self.cluster.lock().partition(partition) {
            partition.skew_ms = skew_ms;
        }
    }

    /// Elects a leader that lacks the records from `at` on: an unclean election.
    pub fn truncate(&self, partition: &Partition, at: Offset) {
        self.cluster.lock().truncate(partition, at);
    }

    /// Ends every consumer of a partition, for this reason.
    pub fn end_consumers(&self, partition: &Partition, why: &Failure) {
        self.cluster.lock().end_consumers(partition, why);
    }

    /// The records that a partition has at the moment.
    #[must_use]
    pub fn records(&self, partition: &Partition) -> Vec<Record> {
        let mut cluster = self.cluster.lock();
        let partition = cluster.partition(partition);
        partition.map_or_else(Vec::new, |partition| {
            partition.records.iter().cloned().collect()
        })
    }

    /// Deletes a topic behind everybody's back, and makes it again, empty, under its name.
    pub fn remake(&self, topic: &Topic) {
        self.cluster.lock().remake(topic, 0);
    }

    /// Deletes a topic behind everybody's back, and makes it again under its name, with so many records of the old one
    /// in each partition, in any order: as if somebody had copied it, and not well.
    pub fn remake_badly(&self, topic: &Topic, records: usize) {
        self.cluster.lock().remake(topic, records);
    }

    /// Deletes a topic behind everybody's back.
    pub fn delete(&self, topic: &Topic) {
        self.cluster.lock().delete(topic);
    }

    /// Sets a topic's setting behind everybody's back.
    pub fn set(&self, topic: &Topic, name: &str, value: &str) {
        self.cluster.lock().set(topic, name, value);
    }

    /// A topic's setting; empty where it is not set, or the topic is not there.
    #[must_use]
    pub fn setting(&self, topic: &Topic, name: &str) -> String {
        let cluster = self.cluster.lock();
        let settings = cluster.topics.get(topic).map(|topic| &topic.settings);
        let value = settings.and_then(|of| of.get(name));
        value.cloned().unwrap_or_default()
    }

    /// Cuts a client off for a while from the last poll on, of those that there are: the `n`th, counted round. Nothing
    /// gets from it to the brokers or back; its questions are not answered in time.
    pub fn cut_off(&self, n: usize, time: Duration) {
        self.cluster.lock().cut_off(n, time);
    }

    /// Moves a partition to another leader, and isolates the one that it had: for a while from the last poll on that one
    /// goes on to answer half of the questions and fetches, by what it knew.
    pub fn isolate_leader(&self, partition: &Partition, time: Duration) {
        let mut cluster = self.cluster.lock();
        let until = cluster.now.mono.plus(time);
        if let Some(partition) = cluster.partition(partition) {
            partition.isolate_leader(until);
        }
    }

    /// Ends all faults, and whatever of them lasts: partitions go on, clients are back, old leaders are gone.
    pub fn calm(&self) {
        self.cluster.lock().calm();
    }

    /// Every record that a partition was ever given, from the one with this index on, in order: also those that are no
    /// longer there. A topic that is made again begins anew.
    #[must_use]
    pub fn history(&self, partition: &Partition, from: usize) -> Vec<Record> {
        let mut cluster = self.cluster.lock();
        let partition = cluster.partition(partition);
        let history = partition.map(|p| p.history.iter().skip(from).cloned().collect());
        history.unwrap_or_default()
    }

    /// Number of a topic's partitions; 0 where it is not there.
    #[must_use]
    pub fn partitions(&self, topic: &Topic) -> u16 {
        let cluster = self.cluster.lock();
        let topic = cluster.topics.get(topic);
        topic.map_or(0, |topic| {
            u16::try_from(topic.partitions.len()).unwrap_or(u16::MAX)
        })
    }

    /// A partition's first offset; 0 where it is not there.
    #[must_use]
    pub fn low(&self, partition: &Partition) -> Offset {
        let mut cluster = self.cluster.lock();
        cluster.partition(partition).map_or(Offset(0), |p| p.low())
    }

    /// Whether nothing is under way, for any client.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.cluster.lock().is_idle()
    }

    /// The topics there are.
    #[must_use]
    pub fn topics(&self) -> Vec<Topic> {
        self.cluster.lock().topics("")
    }

    /// A partition's high watermark; 0 where it is not there.
    #[must_use]
    pub fn high(&self, partition: &Partition) -> Offset {
        let mut cluster = self.cluster.lock();
        cluster.partition(partition).map_or(Offset(0), |p| p.high())
    }
}
