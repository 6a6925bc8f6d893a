//! A node that is measured, and what holds it, which can go only when nobody is in it: after the node.

use super::{Holder, Limits, Throttled};
use crate::hosts::Hosts;
use crate::measured_node::MeasuredNode;
use airmail_bench::family::own_node::OwnNode;

/// The node, and what holds it if anything does.
#[derive(Debug)]
pub(crate) struct HeldNode {
    /// The node.
    pub(crate) measured: MeasuredNode,
    holder: Option<Holder>,
}

impl HeldNode {
    /// Holds a node that was started for a run to the limits that are given for it. One that was there
    /// before is left as it is.
    ///
    /// # Errors
    /// The node's machine cannot be reached. A limit that its system does not allow is no error.
    pub(crate) fn new(
        measured: MeasuredNode,
        hosts: &Hosts,
        limits: impl FnOnce(&OwnNode) -> Option<Limits>,
    ) -> anyhow::Result<HeldNode> {
        let limited = match &measured {
            MeasuredNode::Own(own) => limits(own).map(|limits| (own.pid(), limits)),
            MeasuredNode::Target { .. } => None,
        };
        let (place, stop) = (hosts.node(), hosts.stop());
        let holder = limited.map(|(pid, limits)| Holder::start(place, pid, limits, stop));
        Ok(HeldNode {
            measured,
            holder: holder.transpose()?,
        })
    }

    /// Limits that were set, and those that could not be, for the report.
    pub(crate) fn means(&self) -> Vec<String> {
        let holder = self.holder.as_ref();
        holder
            .map(|holder| holder.means.clone())
            .unwrap_or_default()
    }

    /// Whether all limits that it should have were set.
    pub(crate) fn is_held(&self) -> bool {
        self.holder.as_ref().is_none_or(|holder| holder.is_whole)
    }

    /// Number of times that it was stopped so far for its processor time; `None` where nothing stops it.
    ///
    /// # Errors
    /// The process that holds it has ended.
    pub(crate) fn throttled(&mut self) -> anyhow::Result<Option<Throttled>> {
        match &mut self.holder {
            Some(holder) => holder.throttled(),
            None => Ok(None),
        }
    }
}
