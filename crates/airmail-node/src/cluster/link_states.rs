//! States of the links that a node keeps to others: which of them it has, and where it has met whom.

use airmail_membership::MemberId;
use airmail_wire::handshake::Between;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nodes without a link that are named.
const NAMED_MAX: usize = 8;

/// The links that a node keeps, by the other node's name, and whether each is there. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkStates(Arc<Mutex<States>>);

#[derive(Debug, Default)]
struct States {
    links: BTreeMap<String, BTreeMap<Between, bool>>,
    /// Nodes that were met when a link was made.
    met: BTreeMap<String, MemberId>,
}

impl LinkStates {
    /// Takes note of a node that a link has led to.
    pub(crate) fn meet(&self, node: MemberId) {
        self.0.lock().met.insert(node.name.clone(), node);
    }

    /// Nodes that were met, as they were when they were met last.
    pub(crate) fn met(&self) -> Vec<MemberId> {
        self.0.lock().met.values().cloned().collect()
    }

    /// Takes note that a link to a node is there, or is not.
    pub(crate) fn set(&self, node: &str, between: Between, is_up: bool) {
        let mut states = self.0.lock();
        let links = &mut states.links;
        links
            .entry(node.to_owned())
            .or_default()
            .insert(between, is_up);
    }

    /// Forgets a node to which no links are kept any more.
    pub(crate) fn forget(&self, node: &str) {
        self.0.lock().links.remove(node);
    }

    /// Nodes to which a link is missing, the first few.
    pub(crate) fn unlinked(&self) -> Vec<String> {
        let states = self.0.lock();
        let links = states.links.iter();
        let missing = links.filter(|(_, links)| links.values().any(|is_up| !is_up));
        missing
            .map(|(node, _)| node.clone())
            .take(NAMED_MAX)
            .collect()
    }

    /// Number of links that are there, and of those that are missing.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let states = self.0.lock();
        let all = states.links.values().flat_map(BTreeMap::values);
        let up = all.clone().filter(|is_up| **is_up).count();
        (up, all.count() - up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_unlinked_while_any_of_its_links_is_missing() {
        let states = LinkStates::default();
        let links = [0, 1].map(|to| Between { from: 0, to });
        links
            .iter()
            .for_each(|between| states.set("t1", *between, false));
        assert_eq!(
            (states.unlinked(), states.counts()),
            (vec!["t1".into()], (0, 2))
        );
        states.set("t1", links[0], true);
        assert_eq!(
            (states.unlinked(), states.counts()),
            (vec!["t1".into()], (1, 1))
        );
        states.set("t1", links[1], true);
        assert_eq!((states.unlinked(), states.counts()), (Vec::new(), (2, 0)));
    }
}
