//! Meddling with topics behind everybody's back, and what they are like.

use super::{KafkaCluster, PATIENCE};
use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;

impl KafkaCluster {
    /// Sets a topic's setting behind everybody's back; its others stay as they are.
    pub fn set(&self, topic: &str, name: &str, value: &str) {
        let mut tool = self.java();
        tool.arg("kafka.admin.ConfigCommand");
        tool.args(["--bootstrap-server", &self.bootstrap(), "--alter"]);
        tool.args(["--topic", topic, "--add-config"]);
        let said = tool.arg(format!("{name}={value}")).output().unwrap();
        assert!(said.status.success(), "{said:?}");
    }

    /// A topic's setting.
    pub fn setting(&self, topic: &str, name: &str) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let about = [ResourceSpecifier::Topic(topic)];
        let options = AdminOptions::new().request_timeout(Some(PATIENCE));
        let told = runtime.block_on(admin.describe_configs(&about, &options));
        let told = told.ok()?.pop()?.ok()?;
        told.get(name)?.value.clone()
    }
}
