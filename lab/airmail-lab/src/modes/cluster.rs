//! The nodes of a mode, each held to its quota, and the jobs of those who use them.

use super::ModesArgs;
use super::mode::Mode;
use crate::hold::{HeldNode, Look};
use crate::hosts::Hosts;
use crate::measured_node::MeasuredNode;
use crate::rounds::{OTHER_CONNECTIONS, Server};
use airmail_bench::family::own_node::OwnNodeArgs;
use airmail_bench::run::Job;

/// Setting by which a node says which machine it is on.
const HOST: &str = "AIRMAIL_CLUSTER_HOST";
/// Setting of the connections that a node takes.
const CONNECTIONS: &str = "AIRMAIL_LISTEN_CONNECTIONS";
/// Processes of a [`Job`], in every mode as many, so that no mode has more of the machine for its clients.
const PROCESSES: usize = 4;

/// Nodes of a mode. Children are told to end before their parents do.
#[derive(Debug)]
pub(super) struct Cluster {
    mode: Mode,
    pub(super) servers: Vec<Server>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        while self.servers.pop().is_some() {}
    }
}

impl Cluster {
    /// Starts them, each with room for so many connections of clients, and holds each to its quota as far
    /// as the system lets.
    ///
    /// # Errors
    /// The machine cannot be reached, or a node cannot be started.
    pub(super) fn start(
        mode: Mode,
        args: &ModesArgs,
        hosts: &Hosts,
        connections: u32,
    ) -> anyhow::Result<Cluster> {
        let place = hosts.node();
        let mut started = Vec::new();
        let mut cluster = Cluster {
            mode,
            servers: Vec::new(),
        };
        for (number, member) in mode.members().iter().enumerate() {
            let mut options = mode.options(number, place.address(), &started)?;
            options.extend(args.node.node_options.iter().cloned());
            let options = OwnNodeArgs {
                data: args.node.data.clone(),
                node_options: options,
            };
            let most = connections + OTHER_CONNECTIONS;
            let host = member.name.to_owned();
            let environment = [(HOST, host.clone()), (CONNECTIONS, most.to_string())];
            let node = hosts.start_node_at(place, &options, None, &environment)?;
            started.push(node.cluster().map(str::to_owned));
            let node = MeasuredNode::Own(node);
            cluster.servers.push(Server {
                held: HeldNode::new(node, hosts, |_| args.limits())?,
                host: Some(host),
            });
        }
        Ok(cluster)
    }

    /// The job for each process. The first ones, which have the publishers where there are few, are at the
    /// nodes that are farthest from the root.
    pub(super) fn jobs(&self, job: &Job) -> Vec<Job> {
        let mut places: Vec<usize> = (0..self.servers.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(self.mode.depth(*place)));
        let places = places.into_iter().cycle().take(PROCESSES);
        let at = |place: usize| Job {
            target: self.servers[place].held.measured.url(),
            host: self.servers[place].host.clone(),
            ..job.clone()
        };
        places.map(at).collect()
    }

    /// Looks at all of them.
    ///
    /// # Errors
    /// One of them has ended.
    pub(super) fn look(&mut self) -> anyhow::Result<Vec<Look>> {
        let servers = self.servers.iter_mut();
        servers.map(|server| server.held.look()).collect()
    }
}
