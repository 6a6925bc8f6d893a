//! Growth of a node's memory: by each topic that is published to, each subscription, each producer,
//! each connection, each stream on one.
//!
//! Always the memory that the process holds (`VmRSS`), or both processes of a node in two, before and after, when it
//! has come to rest.
//! Several things at once would hide one another, so each is added alone, and stays.

mod clients;
mod stream;
mod topics;

pub(super) use clients::{ClientsArgs, clients};
pub(super) use topics::{TopicsArgs, topics};

use super::measured::{Measured, MeasuredArgs};
use crate::commands::lines::say;
use airmail_bench::process::Usage;
use anyhow::Context as _;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// Time for a node to come to rest.
const REST: Duration = Duration::from_secs(1);

/// The node whose memory is looked at.
#[derive(clap::Args, Debug)]
pub struct NodeArgs {
    /// The node, as airmail://HOST:PORT, with --pid; without one, a node is started for the run
    #[arg(long, value_name = "URL", requires = "pid")]
    pub target: Option<String>,
    /// The target's process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    #[command(flatten)]
    pub node: MeasuredArgs,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// A node, and where to look.
struct Watched {
    url: String,
    pids: Vec<u32>,
    _own: Option<Measured>,
}

impl NodeArgs {
    /// The node, started with these environment variables if it is one of the run's own.
    fn watch(&self, environment: &[(&str, String)]) -> anyhow::Result<Watched> {
        if let (Some(url), Some(pid)) = (&self.target, self.pid) {
            return Ok(Watched {
                url: url.clone(),
                pids: vec![pid],
                _own: None,
            });
        }
        let node = self.node.start(None, environment);
        let node = node.context("cannot start a node to measure")?;
        Ok(Watched {
            url: node.url(),
            pids: node.pids(),
            _own: Some(node),
        })
    }
}

/// Growth of memory by a number of equal things.
#[derive(Clone, Copy, Debug, Serialize)]
struct Growth {
    /// Number of things.
    count: u64,
    /// Memory of the node before.
    before_bytes: u64,
    /// Growth of the node's memory.
    grown_bytes: i64,
    /// Growth for each of them.
    bytes_each: f64,
}

impl Watched {
    async fn rss_bytes(&self) -> u64 {
        tokio::time::sleep(REST).await;
        Usage::of_all(&self.pids).rss_bytes
    }

    /// Growth of the node's memory since it had `before_bytes`.
    async fn growth(&self, count: u64, before_bytes: u64) -> Growth {
        let grown_bytes = self.rss_bytes().await.cast_signed() - before_bytes.cast_signed();
        Growth {
            count,
            before_bytes,
            grown_bytes,
            bytes_each: grown_bytes as f64 / count.max(1) as f64,
        }
    }
}

/// Prints growths by name.
fn print(json: bool, growths: &[(&'static str, Growth)]) -> anyhow::Result<()> {
    if json {
        let named: serde_json::Map<String, serde_json::Value> = growths
            .iter()
            .map(|(name, growth)| Ok(((*name).to_owned(), serde_json::to_value(growth)?)))
            .collect::<Result<_, serde_json::Error>>()?;
        return say(&format!("{}\n", serde_json::Value::Object(named)));
    }
    let mut out =
        "node's memory      number        KiB before         grown by      bytes each\n".to_owned();
    for (name, growth) in growths {
        let (count, each) = (growth.count, growth.bytes_each);
        let (before, grown) = (growth.before_bytes / 1024, growth.grown_bytes / 1024);
        writeln!(
            out,
            "{name:<14} {count:>10} {before:>17} {grown:>16} {each:>15.1}"
        )?;
    }
    say(&out)
}
