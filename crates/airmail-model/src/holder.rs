//! The node that has a log, as far as another one knows: the fact of an `ELSEWHERE`.
//!
//! It is a hint. Which node may append to a log is decided by the log's engine alone, and may have changed
//! since; a term says which of two hints is the newer one, within one group.

use crate::id::{GroupId, NodeId, Term};
use std::fmt;

/// The node that has a log. See the module's documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The node; `None` where it is not known.
    pub node: Option<NodeId>,
    /// The group of nodes that agree on the log; `None` for a log that one node has to itself.
    pub group: Option<GroupId>,
    /// The group's term as of which this is known. Terms of two groups have no order. 0 without a group.
    pub term: Term,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "node {node:016x}")?,
            None => f.write_str("a node not known")?,
        }
        match self.group {
            Some(group) => write!(f, " in term {} of group {group}", self.term),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_told_with_what_is_known_of_it() {
        let mut holder = Holder::default();
        assert_eq!(holder.to_string(), "a node not known");
        holder.node = Some(NodeId(17));
        assert_eq!(holder.to_string(), "node 0000000000000011");
        holder.group = Some(GroupId(3));
        holder.term = Term(5);
        assert_eq!(
            holder.to_string(),
            "node 0000000000000011 in term 5 of group 3"
        );
    }
}
