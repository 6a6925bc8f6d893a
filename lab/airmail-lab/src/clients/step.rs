//! One number of clients: a node that is held, and rounds of messages that they get of it.

use super::ClientsArgs;
use crate::hold::{HeldNode, Limits};
use crate::hosts::Hosts;
use crate::rounds::{self, NodeUse, OTHER_CONNECTIONS, Outcome, Plan, Server};
use std::fmt;

/// Findings of a step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its one node.
    pub(super) node: NodeUse,
    /// All that was measured.
    pub(super) outcome: Outcome,
}

impl Step {
    /// Does it, with a node that is held to these limits.
    ///
    /// # Errors
    /// The node or a process of clients fails, or it is stopped before all clients stand.
    pub(super) fn run(
        plan: &Plan,
        limits: Option<Limits>,
        args: &ClientsArgs,
        hosts: &Hosts,
    ) -> anyhow::Result<Step> {
        let most = plan.connections + OTHER_CONNECTIONS;
        let environment = [("AIRMAIL_LISTEN_CONNECTIONS", most.to_string())];
        let log = Some("--log=memory:".to_owned());
        let measured = args.target.node(hosts, &args.node, log, &environment)?;
        let held = HeldNode::new(measured, hosts, |_| limits)?;
        let mut servers = [Server { held, host: None }];
        let outcome = rounds::run(plan, &mut servers, hosts)?;
        let node = outcome.nodes.first().cloned().unwrap_or_default();
        Ok(Step { node, outcome })
    }

    /// Processor time of the node for each round, in milliseconds.
    pub(super) fn work_ms(&self) -> f64 {
        self.outcome.work_ms(&self.node)
    }
}

/// Shows a step to a user who waits for the end.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { outcome, .. } = self;
        let work = self.work_ms();
        write!(f, "{outcome}, the node works {work:.0} ms a round")?;
        outcome.tell_faults(f)
    }
}
