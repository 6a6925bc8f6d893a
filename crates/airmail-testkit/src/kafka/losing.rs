//! Ways in which a cluster loses what it has confirmed.

use super::{KafkaCluster, PATIENCE, wait_patiently, wait_patiently_for};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

/// Nodes with copies of a partition, by their places.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// All of them, the leader first.
    pub all: Vec<usize>,
    /// Those that are in sync.
    pub in_sync: Vec<usize>,
}

impl KafkaCluster {
    /// Deletes a topic behind everybody's back, and waits until nobody tells of it.
    pub fn delete_topic(&self, name: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        wait_patiently("a topic is deleted", || {
            runtime
                .block_on(admin.delete_topics(&[name], &options))
                .ok();
            !self.topics().iter().any(|topic| topic == name)
        });
    }

    /// Nodes with copies of a topic's first partition; waits until it is led.
    pub fn copies(&self, topic: &str) -> Copies {
        let mut copies = None;
        wait_patiently("a topic is led", || {
            copies = self.led_copies(topic);
            copies.is_some()
        });
        copies.unwrap()
    }

    /// The same, where it is led and that is told at once.
    fn led_copies(&self, topic: &str) -> Option<Copies> {
        let consumer: BaseConsumer = self.client().create().unwrap();
        let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).ok()?;
        let mut partitions = metadata.topics()[0].partitions().iter();
        let first = partitions.find(|one| one.id() == 0)?;
        let place = |id: &i32| usize::try_from(id - 1).ok();
        let leader = place(&first.leader())?;
        let mut all: Vec<usize> = first.replicas().iter().filter_map(place).collect();
        all.sort_by_key(|node| *node != leader);
        let in_sync = first.isr().iter().filter_map(place).collect();
        Some(Copies { all, in_sync })
    }

    /// Has a node lead a topic's first partition that may lack something of it, because all others are away. Kafka's
    /// tool is content with a leader that has just been killed, as long as nobody has missed it.
    pub fn elect_uncleanly(&self, topic: &str, node: usize) {
        wait_patiently_for("an unclean election", || {
            let mut tool = self.java();
            tool.arg("org.apache.kafka.tools.LeaderElectionCommand");
            tool.args(["--bootstrap-server", &self.bootstrap()]);
            tool.args([
                "--election-type",
                "unclean",
                "--topic",
                topic,
                "--partition",
                "0",
            ]);
            let said = tool.output().unwrap();
            match self.led_copies(topic) {
                Some(copies) if copies.all[0] == node => Ok(()),
                copies => Err(format!("{said:?}, {copies:?}")),
            }
        });
    }
}
