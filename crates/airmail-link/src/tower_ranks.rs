//! Ranks of towers: which of those that live are to serve a log, and in which order.
//!
//! By rendezvous hashing over names: each name has a score for a log, and the highest come first. So a tower that
//! comes or goes moves the logs that it has, or is to have, and no other; and everybody who knows the same towers
//! ranks them alike, without a word between them.

use airmail_model::{LogId, random};
use std::fmt;
use std::sync::Arc;

/// Name of a tower: that of its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TowerName(Arc<str>);

impl TowerName {
    /// A tower of this name.
    #[must_use]
    pub fn new(name: &str) -> TowerName {
        TowerName(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Score of the name for a log: the same in every process, of every release.
    fn score(&self, log: LogId) -> u64 {
        // Both lanes of an index have the same towers, so that what a subscription waits for is in one place.
        let log = u64::from(log.namespace.0) << 24 | u64::from(log.index.0) << 8;
        let bytes = self.0.bytes();
        let name = bytes.fold(0, |hash, byte| random::nth(hash ^ u64::from(byte), 0));
        random::nth(name ^ log, 1)
    }
}

impl fmt::Display for TowerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The towers of a log among those that live: the first `most`, best first.
#[must_use]
pub fn towers_of(log: LogId, live: &[TowerName], most: usize) -> Vec<TowerName> {
    let mut ranked: Vec<(u64, &TowerName)> =
        live.iter().map(|name| (name.score(log), name)).collect();
    ranked.sort_unstable_by(|one, other| other.cmp(one));
    let first = ranked.into_iter().take(most);
    first.map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{Lane, LogIndex, NamespaceId};
    use std::collections::BTreeMap;

    fn names(names: &[&str]) -> Vec<TowerName> {
        names.iter().map(|name| TowerName::new(name)).collect()
    }

    fn logs() -> impl Iterator<Item = LogId> {
        (0..40).flat_map(|namespace| {
            (0..50).map(move |index| LogId {
                namespace: NamespaceId(namespace),
                lane: Lane::Normal,
                index: LogIndex(index),
            })
        })
    }

    #[test]
    fn logs_are_spread_over_towers_evenly() {
        let live = names(&["t1", "t2", "t3", "t4", "t5"]);
        let mut first: BTreeMap<TowerName, usize> = BTreeMap::new();
        for log in logs() {
            let towers = towers_of(log, &live, 2);
            assert_eq!(towers.len(), 2);
            *first.entry(towers[0].clone()).or_default() += 1;
        }
        assert!(
            first.values().all(|logs| (320..480).contains(logs)),
            "{first:?}"
        );
    }

    #[test]
    fn both_lanes_of_an_index_have_the_same_towers() {
        let live = names(&["t1", "t2", "t3", "t4"]);
        for log in logs() {
            let high = LogId {
                lane: Lane::High,
                ..log
            };
            assert_eq!(towers_of(high, &live, 4), towers_of(log, &live, 4));
        }
    }

    #[test]
    fn a_tower_that_goes_moves_its_own_logs_alone() {
        let all = names(&["t1", "t2", "t3", "t4"]);
        let left = names(&["t4", "t2", "t1"]);
        for log in logs() {
            let before = towers_of(log, &all, 4);
            let after = towers_of(log, &left, 4);
            let kept = before.into_iter().filter(|name| left.contains(name));
            assert_eq!(after, kept.collect::<Vec<_>>());
        }
    }

    #[test]
    fn ranks_are_the_same_in_every_release() {
        let live = names(&["t1", "t2", "t3"]);
        let first = logs().step_by(250).map(|log| towers_of(log, &live, 1));
        let first: Vec<String> = first.map(|towers| towers[0].to_string()).collect();
        let expected = ["t1", "t3", "t2", "t1", "t3", "t2", "t3", "t1"];
        assert_eq!(first, expected);
    }
}
