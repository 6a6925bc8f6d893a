//! Trees drawn from seeds, whose nodes are killed, stand still and are cut off at moments drawn too.
//!
//! Whatever happens, nobody has a path on which a node is twice, and nobody is sent on to a node that is not below
//! whoever says so. When all is well again, everybody finds a place.

use super::*;
use airmail_model::random;

/// Faults of a run.
const FAULTS: u64 = 30;

/// Numbers of a seed, one after the other.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = random::nth(self.0, 1);
        self.0 % bound
    }

    fn node(&mut self, nodes: usize) -> usize {
        self.below(nodes as u64) as usize
    }
}

/// A tree in which each node knows some of the others.
fn tree(chance: &mut Chance) -> Network {
    let count = 3 + chance.node(6);
    let mut parents: Vec<Vec<usize>> = Vec::new();
    for node in 1..count {
        let mut of_node: Vec<usize> = Vec::new();
        for _ in 0..1 + chance.below(2) {
            let parent = chance.node(count);
            if parent != node && !of_node.contains(&parent) {
                of_node.push(parent);
            }
        }
        // Somebody has to know the way.
        if of_node.is_empty() || chance.below(2) == 0 || node == 1 {
            of_node.push(0);
        }
        parents.push(of_node);
    }
    let parents: Vec<&[usize]> = parents.iter().map(Vec::as_slice).collect();
    let limits = TreeLimits {
        depth_max: count + 1,
        children_max: 1 + chance.node(4),
        ..TreeLimits::default()
    };
    let mut network = Network::new(&parents, limits);
    network.delay = Duration::from_millis(10 * chance.below(9));
    network
}

/// Lets things go wrong, and then be well.
fn run(seed: u64, spoil: impl Fn(&mut TreeNode)) {
    let mut chance = Chance(random::nth(seed, 0));
    let mut network = tree(&mut chance);
    network.nodes.iter_mut().for_each(&spoil);
    let count = network.nodes.len();
    for fault in 0..FAULTS {
        network.pass(Duration::from_millis(10 * chance.below(120)));
        let (one, other) = (chance.node(count), chance.node(count));
        match chance.below(6) {
            0 => network.kill(one),
            1 => {
                network.revive(one, 2 + fault);
                spoil(&mut network.nodes[one]);
            }
            2 if one != other => {
                network.cut.insert((one, other));
            }
            3 => network.cut.clear(),
            // It stands still.
            4 => {
                network.still.insert(one);
            }
            _ => network.still.clear(),
        }
    }
    network.cut.clear();
    network.still.clear();
    for node in 0..count {
        network.revive(node, 1_000);
        spoil(&mut network.nodes[node]);
    }
    network.pass(second(60));
    for node in 1..count {
        // Parents that know each other alone have no way to the root.
        let knows_root = network.reaches_root(node);
        let path = network.path(node);
        assert!(
            !knows_root || !path.is_empty(),
            "node {node} of {count} has no place"
        );
    }
}

#[test]
fn everybody_finds_a_place_when_all_is_well_again() {
    for seed in 0..300 {
        let run = std::panic::catch_unwind(|| run(seed, |_| {}));
        assert!(run.is_ok(), "seed {seed}");
    }
}

/// The planted bugs of a tree are each found within a thousand seeds.
#[cfg(feature = "sabotage")]
#[test]
fn planted_bugs_are_found() {
    use crate::sabotage::TreeBug;
    for bug in [
        TreeBug::PathCheckedWhenAttaching,
        TreeBug::CountNotRenewed,
        TreeBug::RedirectToOneThatLeft,
    ] {
        let finds = |seed: &u64| {
            let plant = |place: &mut TreeNode| place.plant(Some(bug));
            std::panic::catch_unwind(|| run(*seed, plant)).is_err()
        };
        let found = (0..1_000).find(finds);
        assert!(found.is_some(), "{bug:?} is not found");
    }
}
