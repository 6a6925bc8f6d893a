//! Brokers of Kafka under proof, each on a machine of its own where such can be made, and a publisher of librdkafka alone
//! beside the nodes.

use airmail_testkit::bare_publisher::BarePublisher;
use airmail_testkit::kafka::{KafkaCluster, wait_patiently};
use airmail_testkit::network::{Machine, Network};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Number of brokers, each of which has a copy of everything.
pub(crate) const BROKERS: usize = 3;
/// Copies that are there before anything is acknowledged.
const MIN_INSYNC: usize = 2;
/// 16 bytes in base64.
const ID: &str = "cHJvb2Ytb2YtYnJva2Vycw";

/// See the module's documentation.
pub(crate) struct Brokers {
    bare: BarePublisher,
    cluster: KafkaCluster,
    machines: Vec<Machine>,
}

impl Brokers {
    /// Starts them, and waits until they answer; none where they were left out.
    pub(crate) fn start(
        directory: &Path,
        on: Option<(&Arc<Network>, Vec<Machine>)>,
    ) -> Option<Brokers> {
        let directory = directory.join("kafka");
        let Some((network, machines)) = on else {
            let cluster = KafkaCluster::start(&directory, ID, BROKERS)?;
            return Some(Brokers::of(cluster, Vec::new()));
        };
        let there = (network, machines.clone());
        let cluster = KafkaCluster::start_on(&directory, ID, there)?;
        Some(Brokers::of(cluster, machines))
    }

    fn of(cluster: KafkaCluster, machines: Vec<Machine>) -> Brokers {
        Brokers {
            bare: BarePublisher::start(&cluster),
            cluster,
            machines,
        }
    }

    /// Begins to measure anew how long librdkafka alone waits.
    pub(crate) fn mark(&self) {
        self.bare.mark();
    }

    /// Longest time that librdkafka alone was without an ack since the mark.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.bare.longest_wait()
    }

    /// The URL of a storage there.
    pub(crate) fn url(&self) -> String {
        let brokers = self.cluster.bootstrap();
        format!("kafka://{brokers}?replicas={BROKERS}&min_insync={MIN_INSYNC}")
    }

    /// Names of all topics.
    pub(crate) fn topics(&self) -> Vec<String> {
        self.cluster.topics()
    }

    /// Leaves these topics to one broker.
    pub(crate) fn leave_to(&self, topics: &[String], broker: usize) {
        self.cluster.leave_to(topics, broker);
    }

    pub(crate) fn machine(&self, broker: usize) -> Option<Machine> {
        self.machines.get(broker).copied()
    }

    pub(crate) fn kill(&mut self, broker: usize) {
        self.cluster.kill(broker);
    }

    pub(crate) fn revive(&mut self, broker: usize) {
        self.cluster.revive(broker);
    }

    pub(crate) fn set_still(&self, broker: usize, still: bool) {
        self.cluster.hold(broker, still);
    }

    /// Waits until every broker answers.
    pub(crate) fn wait_until_whole(&self) {
        wait_patiently("every broker", || self.cluster.is_whole());
    }
}
