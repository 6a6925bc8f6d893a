//! Records to send: by Kafka's own performance tool, in processes of its own.

use super::jars::{Jars, Program};
use super::outcome::Told;
use super::policy::Policy;
use super::scene::Acks;
use airmail_bench::family::Stop;
use serde_json::{Value, json};
use std::path::Path;

/// Records that one producer sends.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) topic: String,
    pub(super) acks: Acks,
    pub(super) policy: Policy,
    /// Records that count.
    pub(super) records: u64,
    /// Records before them that do not.
    pub(super) warm_up: u64,
    /// Bytes of each.
    pub(super) size: u32,
    /// Records a second at most.
    pub(super) rate: Option<u64>,
    /// Keeps pace with the others of its process that are so: each has sent the same part of its records.
    pub(super) is_in_step: bool,
    /// Names the producer within its process.
    pub(super) number: u32,
    /// Further properties of the producer.
    pub(super) properties: Vec<(String, String)>,
}

/// A process that is ready to send.
#[derive(Debug)]
pub(super) struct Load {
    program: Program,
}

impl Load {
    /// Starts a process for these flows, which are sent at once; nothing is sent yet.
    ///
    /// # Errors
    /// There is no Java.
    pub(super) fn start(
        jars: &Jars,
        bootstrap: &str,
        flows: &[Flow],
        directory: &Path,
        stop: &Stop,
    ) -> anyhow::Result<Load> {
        let mut program = jars.start("Load", &[], directory, stop)?;
        let flows: Vec<Value> = flows.iter().map(|flow| flow.told(bootstrap)).collect();
        program.tell(&Value::from(flows).to_string())?;
        Ok(Load { program })
    }

    /// Waits until it stands.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn ready(&mut self) -> anyhow::Result<()> {
        self.program.hear("ready").map(drop)
    }

    /// Begins.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn go(&mut self) -> anyhow::Result<()> {
        self.program.tell("go")
    }

    /// Waits until the fate of each record is known.
    ///
    /// # Errors
    /// It has ended, or the run was stopped.
    pub(super) fn end(mut self) -> anyhow::Result<Told> {
        Ok(serde_json::from_str(&self.program.hear("sent")?)?)
    }
}

impl Flow {
    fn told(&self, bootstrap: &str) -> Value {
        let mut properties: serde_json::Map<String, Value> = [
            ("bootstrap.servers", bootstrap.to_owned()),
            ("acks", self.acks.name().to_owned()),
            ("client.id", format!("load-{}", self.number)),
        ]
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into_iter()
        .collect();
        let further = self.policy.properties();
        for (name, value) in further.iter().chain(&self.properties) {
            properties.insert(name.clone(), value.clone().into());
        }
        json!({
            "topic": self.topic,
            "records": self.warm_up + self.records,
            "warm_up": self.warm_up,
            "size": self.size,
            "rate": self.rate.map_or(-1, u64::cast_signed),
            "in_step": self.is_in_step,
            "properties": properties,
        })
    }
}
