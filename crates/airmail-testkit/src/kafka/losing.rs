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

    /// Nodes with copies of a topic's first partition.
    pub fn copies(&self, topic: &str) -> Copies {
        let consumer: BaseConsumer = self.client().create().unwrap();
        let place = |id: &i32| usize::try_from(id - 1).unwrap();
        let mut copies = Copies::default();
        wait_patiently("copies are told", || {
            let metadata = consumer.fetch_metadata(Some(topic), PATIENCE);
            let Ok(metadata) = metadata else { return false };
            let mut partitions = metadata.topics()[0].partitions().iter();
            let Some(first) = partitions.find(|one| one.id() == 0) else {
                return false;
            };
            let leader = first.leader();
            copies.all = first.replicas().iter().map(place).collect();
            copies
                .all
                .sort_by_key(|node| *node != place(&leader.max(1)));
            copies.in_sync = first.isr().iter().map(place).collect();
            leader >= 0
        });
        copies
    }

    /// Has a node lead a topic's first partition that may lack something of it, because all others are away.
    pub fn elect_uncleanly(&self, topic: &str) {
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
            if said.status.success() {
                return Ok(());
            }
            Err(format!("{said:?}"))
        });
    }
}
