//! The node that an experiment measures: one that is started for it, or one that is there already.

use crate::hosts::Hosts;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use airmail_bench::process::Usage;

/// A running node to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TargetArgs {
    /// A running node to measure as it is, as airmail://HOST:PORT, instead of one that is started for
    /// each run; with --hosts, a file without a line for a node
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// The target's process, if it is on this machine, whose processor time and memory are reported
    #[arg(long, value_name = "PID", requires = "target")]
    pub(crate) pid: Option<u32>,
}

/// The node.
#[derive(Debug)]
pub(super) enum MeasuredNode {
    /// It goes with this.
    Own(OwnNode),
    /// It was there before, and stays.
    Target {
        /// URL of the node, as `airmail://HOST:PORT`.
        url: String,
        /// Its process, if that is known.
        pid: Option<u32>,
    },
}

impl TargetArgs {
    /// The target, or else a node that is started as [`Hosts::start_node`] does.
    ///
    /// # Errors
    /// The node cannot be started.
    pub(super) fn node(
        &self,
        hosts: &Hosts,
        args: &OwnNodeArgs,
        option: Option<String>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<MeasuredNode> {
        Ok(match &self.target {
            Some(url) => MeasuredNode::Target {
                url: url.clone(),
                pid: self.pid,
            },
            None => MeasuredNode::Own(hosts.start_node(args, option, environment)?),
        })
    }
}

impl MeasuredNode {
    /// URL of the node, as `airmail://HOST:PORT`.
    pub(super) fn url(&self) -> String {
        match self {
            MeasuredNode::Own(node) => node.url(),
            MeasuredNode::Target { url, .. } => url.clone(),
        }
    }

    /// Resources that it has used; zeros of a process that is not known.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        match self {
            MeasuredNode::Own(node) => Ok(node.usage()?),
            MeasuredNode::Target { pid, .. } => Ok(pid.map(Usage::of).unwrap_or_default()),
        }
    }
}
