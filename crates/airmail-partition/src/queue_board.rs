//! Number of records that went to each node: the queues of which SQF takes the shortest.
//!
//! Producers that send to one cluster share a board (figure 6.7), so that topics whose nodes
//! overlap in part are balanced together. Counts are compared by their difference, so that they may
//! overflow. The count of a node that comes, or comes back, does not begin at 0: it would get every
//! record until it had caught up.

use crate::cluster::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The records that one node has had.
pub(crate) type Queue = Arc<AtomicU64>;

/// The counts of a cluster's nodes. A clone is the same board.
#[derive(Clone, Debug, Default)]
pub struct QueueBoard {
    start: u64,
    queues: Arc<Mutex<BTreeMap<NodeId, Queue>>>,
}

impl QueueBoard {
    /// A board whose first nodes begin at 0.
    #[must_use]
    pub fn new() -> QueueBoard {
        QueueBoard::default()
    }

    /// The queues of each topic's nodes, in the order given. Nodes that are not `alive` any more go off the
    /// board first; one that is new begins where the least used of those stands with which it shares a
    /// topic; where it shares several topics, at the highest of these.
    pub(crate) fn arrange(
        &self,
        alive: &BTreeSet<NodeId>,
        topics: &[Vec<NodeId>],
    ) -> Vec<Vec<Queue>> {
        let mut queues = self.queues.lock();
        queues.retain(|node, _| alive.contains(node));
        let mut begins: BTreeMap<NodeId, u64> = BTreeMap::new();
        for nodes in topics {
            let begin = self.least(&queues, nodes);
            for node in nodes.iter().filter(|node| !queues.contains_key(node)) {
                let highest = begins.entry(*node).or_insert(begin);
                if is_less(*highest, begin) {
                    *highest = begin;
                }
            }
        }
        for (node, begin) in begins {
            queues.insert(node, Arc::new(AtomicU64::new(begin)));
        }
        let of_topic = |nodes: &Vec<NodeId>| {
            let known = nodes.iter().filter_map(|node| queues.get(node).cloned());
            known.collect()
        };
        topics.iter().map(of_topic).collect()
    }

    /// The shortest queue of these nodes that are on the board.
    fn least(&self, queues: &BTreeMap<NodeId, Queue>, nodes: &[NodeId]) -> u64 {
        let lengths = nodes
            .iter()
            .filter_map(|node| queues.get(node))
            .map(|queue| queue.load(Ordering::Relaxed));
        let least = lengths.reduce(|one, other| if is_less(other, one) { other } else { one });
        least.unwrap_or(self.start)
    }
}

fn is_less(one: u64, other: u64) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}

/// Adds a record to the shortest of `queues`, the first of equals, and gives its index; `queues` is
/// not empty.
///
/// A thread that finds that its choice has grown meanwhile looks again. Queues only grow, so the
/// one that it adds to was a shortest one at that moment: the policy is exact under any number of
/// threads.
pub(crate) fn add(queues: &[Queue]) -> usize {
    loop {
        let (mut least, mut length) = (0, queues[0].load(Ordering::Relaxed));
        for (at, queue) in queues.iter().enumerate().skip(1) {
            let other = queue.load(Ordering::Relaxed);
            if is_less(other, length) {
                (least, length) = (at, other);
            }
        }
        let longer = length.wrapping_add(1);
        let queue = &queues[least];
        let swapped = queue.compare_exchange(length, longer, Ordering::Relaxed, Ordering::Relaxed);
        if swapped.is_ok() {
            return least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_over_their_overflow() {
        let board = QueueBoard {
            start: u64::MAX - 1,
            ..QueueBoard::default()
        };
        let nodes = vec![NodeId(1), NodeId(2), NodeId(3)];
        let queues = board.arrange(&nodes.iter().copied().collect(), &[nodes]);
        let mut given = [0; 3];
        for _ in 0..30 {
            given[add(&queues[0])] += 1;
        }
        assert_eq!(given, [10, 10, 10]);
    }

    #[test]
    fn threads_that_share_a_board_leave_equal_queues() {
        let board = QueueBoard::new();
        let nodes = vec![NodeId(1), NodeId(2)];
        let alive: BTreeSet<NodeId> = nodes.iter().copied().collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let queues = board.arrange(&alive, std::slice::from_ref(&nodes));
                scope.spawn(move || {
                    for _ in 0..5_000 {
                        add(&queues[0]);
                    }
                });
            }
        });
        let queues = board.arrange(&alive, &[nodes]);
        let lengths: Vec<u64> = queues[0]
            .iter()
            .map(|queue| queue.load(Ordering::Relaxed))
            .collect();
        assert_eq!(lengths, [10_000, 10_000]);
    }
}
