//! A cluster of Kafka's brokers, kept by `airmail-lab brokers`, and Kafka's own tools.

use airmail_testkit::node::{self, Done, airmail};
use airmail_testkit::scale;
use airmail_testkit::waiting::{Waiting, alive, waiting};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Where `cargo xtask test` has brought Kafka; none where it was left out.
pub(crate) fn servers() -> Option<PathBuf> {
    scale::tool("servers/kafka-partitioners")?;
    let kafka = scale::tool("servers/kafka")?;
    kafka.parent().map(Path::to_owned)
}

/// The cluster. It ends when this is dropped, for its keeper's input does.
#[derive(Debug)]
pub(crate) struct LiveCluster {
    keeper: Child,
    input: Option<ChildStdin>,
    _alive: Waiting,
    servers: PathBuf,
    /// The brokers, as clients are told of them.
    pub(crate) bootstrap: String,
}

impl LiveCluster {
    /// Brokers from 1 on.
    pub(crate) fn start(servers: &Path, brokers: u32) -> LiveCluster {
        let mut keeper = crate::lab()
            .arg("brokers")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let task = json!({
            "jars": {"servers": servers, "version": "brought"},
            "directory": null,
            "brokers": brokers,
            "resource": "Shared",
            // A machine that stands still for a while takes no leader from a broker.
            "session_ms": 60_000,
        });
        let mut input = keeper.stdin.take().unwrap();
        writeln!(input, "{task}").unwrap();
        let mut said = String::new();
        let _waiting = waiting("Kafka's brokers to be ready");
        let output = keeper.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        let ready = said
            .strip_prefix("ready ")
            .unwrap_or_else(|| panic!("{said}"));
        let ready: Value = serde_json::from_str(ready).unwrap();
        LiveCluster {
            keeper,
            input: Some(input),
            _alive: alive("a cluster of Kafka"),
            servers: servers.to_owned(),
            bootstrap: ready["bootstrap"].as_str().unwrap().to_owned(),
        }
    }

    /// Runs one of Kafka's tools by its class, from `kafka` or `kafka-3`, with our partitioners beside it.
    pub(crate) fn tool(&self, kafka: &str, class: &str, arguments: &[&str]) -> Done {
        let all = |directory: &str| self.servers.join(directory).join("*").display().to_string();
        let mut command = Command::new("java");
        command
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
            .arg(format!("{}:{}", all(kafka), all("kafka-partitioners")))
            .arg(format!("org.apache.kafka.tools.{class}"))
            .args(arguments);
        node::run(&mut command, b"")
    }

    /// Makes a topic; as `1:2,2:3` each partition's replicas, the leader first.
    pub(crate) fn create(&self, topic: &str, replicas: &str) {
        let arguments = ["--bootstrap-server", &self.bootstrap, "--create"];
        let arguments = [
            &arguments[..],
            &["--topic", topic, "--replica-assignment", replicas],
        ];
        self.tool("kafka", "TopicCommand", &arguments.concat()).ok();
    }

    /// The records of each partition.
    pub(crate) fn records(&self, topic: &str) -> Vec<u64> {
        let arguments = ["--bootstrap-server", &self.bootstrap, "--topic", topic];
        let said = self.tool("kafka", "GetOffsetShell", &arguments).ok();
        // As topic:partition:offset.
        let offset = |line: &str| line.rsplit(':').next().unwrap().parse().unwrap();
        said.lines()
            .filter(|line| line.starts_with(topic))
            .map(offset)
            .collect()
    }

    /// `airmail kafka topology` of it.
    pub(crate) fn topology(&self, arguments: &[&str]) -> Done {
        let mut command = airmail();
        command.args(["kafka", "topology", "--bootstrap", &self.bootstrap]);
        node::run(command.args(arguments), b"")
    }
}

impl Drop for LiveCluster {
    fn drop(&mut self) {
        self.input = None;
        let _waiting = waiting("the end of Kafka's brokers");
        self.keeper.wait().ok();
    }
}
