//! The node of a run: one process, or on Kafka also one for each role.
//!
//! On Kafka the messages of a run are in a namespace of its own with ten logs, each a partition, as topics of the paper
//! are spread over its brokers; the default namespace has one.

use super::case::Storage;
use crate::hosts::Hosts;
use airmail_bench::family;
use airmail_bench::family::kafka_logs::KafkaLogs;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use airmail_client::Client;
use anyhow::Context as _;
use std::path::Path;

/// The namespace of a run on Kafka, and its logs.
const NAMESPACE: &str = "flow";
pub(super) const PARTITIONS: u16 = 10;

/// A node that is started for a run. Its processes end in the order of the fields: who has the logs is last.
#[derive(Debug)]
pub(super) struct RunNode {
    /// The process that publishers use.
    front: OwnNode,
    /// Those beside it, the tower last.
    others: Vec<OwnNode>,
    namespace: Option<&'static str>,
}

impl RunNode {
    /// Starts it.
    ///
    /// # Errors
    /// The machine cannot be reached, or a process cannot be started; or the namespace cannot be made.
    pub(super) fn start(
        hosts: &Hosts,
        args: &OwnNodeArgs,
        (storage, logs): (Storage, Option<&KafkaLogs>),
        option: Option<String>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<RunNode> {
        if !storage.is_on_kafka() {
            let front = hosts.start_node(args, option, environment)?;
            return Ok(RunNode {
                front,
                others: Vec::new(),
                namespace: None,
            });
        }
        let option = logs.context("logs on Kafka have no URL")?.next_option();
        let mut node = match storage {
            Storage::KafkaApart => RunNode::apart(hosts, args, option, environment)?,
            _ => RunNode {
                front: hosts.start_node(args, Some(option), environment)?,
                others: Vec::new(),
                namespace: None,
            },
        };
        make_namespace(&node.url()).context("the namespace of a run")?;
        node.namespace = Some(NAMESPACE);
        Ok(node)
    }

    /// A tower, and beside it a pilot and a copilot.
    fn apart(
        hosts: &Hosts,
        args: &OwnNodeArgs,
        log: String,
        environment: &[(&str, String)],
    ) -> anyhow::Result<RunNode> {
        let role = |role: &str, options: [String; 1], log: Option<String>| {
            let own = [format!("--name={role}"), format!("--roles={role}")];
            let own = own.into_iter().chain(options);
            let args = OwnNodeArgs {
                data: args.data.clone(),
                node_options: own.chain(args.node_options.clone()).collect(),
            };
            hosts.start_node(&args, log, environment)
        };
        let listen = format!("--cluster={}:0", hosts.node().address());
        let tower = role("tower", [listen], Some(log))?;
        let join = tower.cluster().context("the tower lets no nodes connect")?;
        let join = format!("--join={join}");
        let copilot = role("copilot", [join.clone()], None)?;
        Ok(RunNode {
            front: role("pilot", [join], None)?,
            others: vec![copilot, tower],
            namespace: None,
        })
    }

    /// Where publishers connect, as `airmail://HOST:PORT`.
    pub(super) fn url(&self) -> String {
        self.front.url()
    }

    /// The namespace of the run, if it is not the default one.
    pub(super) fn namespace(&self) -> Option<String> {
        self.namespace.map(str::to_owned)
    }

    /// Where the data is of the process that has it.
    pub(super) fn data(&self) -> &Path {
        self.others.last().unwrap_or(&self.front).data()
    }
}

/// Makes the namespace of a run at a node.
fn make_namespace(url: &str) -> anyhow::Result<()> {
    let runtime = family::runtime(false)?;
    runtime.block_on(async {
        let client = Client::connect(url).await?;
        let logs = Some(PARTITIONS);
        client.admin().create(NAMESPACE, logs, None, None).await?;
        client.close().await
    })?;
    Ok(())
}
