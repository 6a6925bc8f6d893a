//! The node that a run starts for itself: one process, or a tower that has the data and a gateway for the clients.

use super::NODE;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use anyhow::Context as _;
use std::path::Path;

/// Options of a node that is started for the run.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct MeasuredArgs {
    /// Options of its process, or of the tower's.
    #[command(flatten)]
    pub own: OwnNodeArgs,
    /// A node that is started for the run is two processes: a tower, whose options --node gives, and a gateway
    #[arg(long)]
    pub apart: bool,
}

/// A node that runs. See the module's documentation.
#[derive(Debug)]
pub(super) struct Measured {
    /// The process of its clients. It ends before its tower does.
    front: OwnNode,
    /// The process that has its data, where it is not that one.
    tower: Option<OwnNode>,
}

impl MeasuredArgs {
    /// Starts it, with one more option perhaps, and these environment variables for each process.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        &self,
        option: Option<String>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<Measured> {
        if !self.apart {
            let front = OwnNode::start(NODE, &self.own, option, environment)?;
            return Ok(Measured { front, tower: None });
        }
        let with = |options: &[&str]| {
            let options = options.iter().map(|option| (*option).to_owned());
            let mut args = self.own.clone();
            args.node_options.extend(options);
            args
        };
        let tower = ["--roles=tower", "--name=tower", "--cluster=127.0.0.1:0"];
        let tower = OwnNode::start(NODE, &with(&tower), option, environment)?;
        let join = tower.cluster().context("the tower lets no nodes connect")?;
        let join = format!("--join={join}");
        let gateway = OwnNodeArgs {
            node_options: ["--roles=pilot,copilot", "--name=gateway", &join]
                .map(str::to_owned)
                .into(),
            ..self.own.clone()
        };
        Ok(Measured {
            front: OwnNode::start(NODE, &gateway, None, environment)?,
            tower: Some(tower),
        })
    }
}

impl Measured {
    /// The process of its clients.
    pub(super) fn front(&self) -> &OwnNode {
        &self.front
    }

    /// The process that has its data, if that is another.
    pub(super) fn tower(&self) -> Option<&OwnNode> {
        self.tower.as_ref()
    }

    /// The process that has its data.
    pub(super) fn storage(&self) -> &OwnNode {
        self.tower.as_ref().unwrap_or(&self.front)
    }

    /// URL for its clients.
    pub(super) fn url(&self) -> String {
        self.front.url()
    }

    /// Where its data is.
    pub(super) fn data(&self) -> &Path {
        self.storage().data()
    }

    /// Its processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        let tower = self.tower.iter().map(OwnNode::pid);
        tower.chain([self.front.pid()]).collect()
    }
}
