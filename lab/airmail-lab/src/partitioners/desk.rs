//! Topics of a cluster: they are made with given leaders, counted, removed.

use super::jars::{Jars, Program};
use airmail_bench::family::Stop;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;

/// The program that does it; it ends with this.
#[derive(Debug)]
pub(super) struct Desk {
    program: Program,
}

#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    records: Vec<u64>,
    error: Option<String>,
}

impl Desk {
    /// Starts the program for a cluster.
    ///
    /// # Errors
    /// There is no Java.
    pub(super) fn open(
        jars: &Jars,
        bootstrap: &str,
        directory: &Path,
        stop: &Stop,
    ) -> anyhow::Result<Desk> {
        let program = jars.start("Desk", &[bootstrap], directory, stop)?;
        Ok(Desk { program })
    }

    /// Makes a topic with these replicas of each partition, the leader first; waits until all of them are
    /// in sync.
    ///
    /// # Errors
    /// The cluster does not do it.
    pub(super) fn create(&mut self, topic: &str, replicas: &[Vec<u32>]) -> anyhow::Result<()> {
        let order = json!({"ask": "create", "topic": topic, "replicas": replicas});
        self.ask(&order).map(drop)
    }

    /// The records of each partition.
    ///
    /// # Errors
    /// The cluster does not tell.
    pub(super) fn records(&mut self, topic: &str) -> anyhow::Result<Vec<u64>> {
        Ok(self
            .ask(&json!({"ask": "records", "topic": topic}))?
            .records)
    }

    /// Removes a topic.
    ///
    /// # Errors
    /// The cluster does not do it.
    pub(super) fn delete(&mut self, topic: &str) -> anyhow::Result<()> {
        self.ask(&json!({"ask": "delete", "topic": topic}))
            .map(drop)
    }

    fn ask(&mut self, order: &serde_json::Value) -> anyhow::Result<Answer> {
        self.program.tell(&order.to_string())?;
        let answer: Answer = serde_json::from_str(&self.program.hear("answer")?)?;
        match answer.error {
            Some(error) => anyhow::bail!("{order}: {error}"),
            None => Ok(answer),
        }
    }
}
