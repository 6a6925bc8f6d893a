//! A node that is measured, and what holds it, which can go only when nobody is in it: after the node.

use super::{Holder, Limits, Throttled};
use crate::hosts::Hosts;
use crate::measured_node::MeasuredNode;
use airmail_bench::family::own_node::OwnNode;
use airmail_bench::process::Usage;

/// The node, and what holds it if anything does.
#[derive(Debug)]
pub(crate) struct HeldNode {
    /// The node.
    pub(crate) measured: MeasuredNode,
    holder: Option<Holder>,
}

/// Resources that a node has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// Processor time and memory; zeros of a process that is not known.
    pub(crate) usage: Usage,
    /// Number of times that it was stopped for having had its share; `None` where nothing stops it.
    pub(crate) throttled: Option<Throttled>,
}

impl Look {
    /// Increase since an earlier look; memory is as it is now.
    pub(crate) fn since(self, before: &Look) -> Look {
        let throttled = self.throttled.zip(before.throttled);
        Look {
            usage: self.usage.since(&before.usage),
            throttled: throttled.map(|(after, before)| after.since(before)),
        }
    }
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

    /// Resources that it has used so far.
    ///
    /// # Errors
    /// It has ended, or the process that holds it has.
    pub(crate) fn look(&mut self) -> anyhow::Result<Look> {
        Ok(Look {
            usage: self.measured.usage()?,
            throttled: self.throttled()?,
        })
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
