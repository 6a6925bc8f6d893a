//! Trees of many nodes, over a network that delivers at once, or is cut.

mod seeds;

use super::*;
use std::collections::{BTreeSet, VecDeque};

/// Time between two looks at every node.
const STEP: Duration = Duration::from_millis(10);
/// Time for which a node may be its own ancestor: less than it takes to miss the root's count.
const CIRCLING_MAX: Duration = Duration::from_millis(800);

fn address(node: usize) -> String {
    format!("10.0.0.{node}:7402")
}

fn own(node: usize) -> Ancestor {
    Ancestor {
        node: NodeId(node as u64),
        name: format!("n{node}"),
        address: address(node),
    }
}

/// Nodes, the root being 0, and the ways between them that are cut.
struct Network {
    now: Mono,
    nodes: Vec<TreeNode>,
    /// Nodes that are down.
    down: BTreeSet<usize>,
    /// Nodes that stand still: their links stay.
    still: BTreeSet<usize>,
    cut: BTreeSet<(usize, usize)>,
    /// The parent to which each node is linked.
    linked: Vec<Option<usize>>,
    /// The last heartbeat that was sent to each node, and those that are on their way.
    told: Vec<Option<Heartbeat>>,
    under_way: Vec<VecDeque<(Mono, Heartbeat)>>,
    /// Time that a heartbeat takes.
    delay: Duration,
    /// Time for which each node has been its own ancestor.
    circling: Vec<Duration>,
    /// Time for which each node has had no place, at most.
    without: Vec<Duration>,
    longest: Vec<Duration>,
    limits: TreeLimits,
}

impl Network {
    /// The root, and the others with their parents.
    fn new(parents: &[&[usize]], limits: TreeLimits) -> Network {
        let mut nodes = vec![TreeNode::root(own(0), 1, limits)];
        for (node, parents) in parents.iter().enumerate() {
            let parents = parents.iter().map(|parent| address(*parent)).collect();
            let node = node + 1;
            nodes.push(TreeNode::below(own(node), 1, parents, limits, node as u64));
        }
        let count = nodes.len();
        Network {
            now: Mono(1_000_000_000),
            nodes,
            down: BTreeSet::new(),
            still: BTreeSet::new(),
            cut: BTreeSet::new(),
            linked: vec![None; count],
            told: vec![None; count],
            under_way: vec![VecDeque::new(); count],
            delay: Duration::ZERO,
            circling: vec![Duration::ZERO; count],
            without: vec![Duration::ZERO; count],
            longest: vec![Duration::ZERO; count],
            limits,
        }
    }

    fn is_cut(&self, one: usize, other: usize) -> bool {
        self.down.contains(&other)
            || self.still.contains(&other)
            || self.cut.contains(&(one, other))
            || self.cut.contains(&(other, one))
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now.plus(time);
        while self.now < until {
            self.now = self.now.plus(STEP);
            for node in 0..self.nodes.len() {
                if !self.down.contains(&node) && !self.still.contains(&node) {
                    self.step(node);
                }
            }
            self.check_circles();
        }
    }

    /// Nobody is its own ancestor for longer than it takes a heartbeat to come round, where all have a place. Whoever has
    /// none tells nothing, and leaves when its patience ends.
    fn check_circles(&mut self) {
        for node in 0..self.nodes.len() {
            let mut way = vec![node];
            while let Some(parent) = self.linked[way[way.len() - 1]]
                && way.len() <= self.nodes.len()
                && parent != node
            {
                way.push(parent);
            }
            let is_circle = self.linked[way[way.len() - 1]] == Some(node);
            let stands = |node: &usize| self.still.contains(node) || self.down.contains(node);
            let ways = way.iter().zip(way.iter().skip(1).chain([&node]));
            let is_interrupted = ways.clone().any(|(one, other)| self.is_cut(*one, *other));
            let has_no_place = |node: &usize| self.nodes[*node].path().is_none();
            let is_mute = way.iter().any(has_no_place);
            if !is_circle || is_interrupted || is_mute || way.iter().any(stands) {
                self.circling[node] = Duration::ZERO;
                continue;
            }
            self.circling[node] += STEP;
            assert!(self.circling[node] <= CIRCLING_MAX, "{way:?} is a circle");
        }
    }

    fn input(&mut self, node: usize, input: TreeInput) {
        let now = self.now;
        self.nodes[node].step(now, input);
        self.nodes[node].check();
        let path = self.nodes[node].heartbeat().map(|heartbeat| heartbeat.path);
        let path: Vec<NodeId> = path.iter().flatten().map(|above| above.node).collect();
        let once: BTreeSet<NodeId> = path.iter().copied().collect();
        assert_eq!(once.len(), path.len(), "node {node} has the path {path:?}");
    }

    /// A node that is up does what it would do.
    fn step(&mut self, node: usize) {
        self.input(node, TreeInput::Tick);
        // Each at a time of its own: two that go to each other at once both lose their way.
        let turn = node as u64 * 70_000_000 + 1_000_000_000;
        if self.now.0.is_multiple_of(turn) {
            self.look_for_better(node);
        }
        let wanted = self.nodes[node].parent().map(str::to_owned);
        // It may have left its parent, and try the same one again.
        let is_linked = self.nodes[node]
            .parent
            .as_ref()
            .is_some_and(|one| one.is_linked);
        if let Some(parent) = self.linked[node]
            && (wanted.as_ref() != Some(&address(parent)) || !is_linked)
        {
            self.unlink(node);
        }
        if let Some(wanted) = wanted
            && self.linked[node].is_none()
        {
            self.link(node, wanted);
        }
        if let Some(parent) = self.linked[node]
            && !self.is_cut(node, parent)
            && let Some(heartbeat) = self.nodes[parent].heartbeat()
            && self.told[node].as_ref() != Some(&heartbeat)
        {
            self.told[node] = Some(heartbeat.clone());
            let due = self.now.plus(self.delay);
            self.under_way[node].push_back((due, heartbeat));
        }
        let now = self.now;
        while let Some((_, heartbeat)) = self.under_way[node].pop_front_if(|(due, _)| *due <= now) {
            self.input(node, TreeInput::Told(heartbeat));
        }
        if self.nodes[node].heartbeat().is_some() {
            self.without[node] = Duration::ZERO;
        } else {
            self.without[node] += STEP;
            self.longest[node] = self.longest[node].max(self.without[node]);
        }
    }

    /// Asks the parents that would be better whether they would take it, and leaves them again.
    fn look_for_better(&mut self, node: usize) {
        for address in self.nodes[node].better().to_vec() {
            let parent = (0..self.nodes.len()).find(|one| super::tests::address(*one) == address);
            let parent = parent.unwrap();
            let own = self.nodes[node].own.clone();
            if self.is_cut(node, parent) || self.nodes[parent].admit(&own).is_err() {
                continue;
            }
            let name = own.name;
            self.input(parent, TreeInput::ChildGone { name });
            return self.input(node, TreeInput::Better { address });
        }
    }

    fn link(&mut self, node: usize, wanted: String) {
        let parent = (0..self.nodes.len())
            .find(|one| address(*one) == wanted)
            .unwrap();
        let gone = |instead| TreeInput::Gone {
            address: wanted.clone(),
            instead,
        };
        if self.is_cut(node, parent) {
            return self.input(node, gone(None));
        }
        let own = self.nodes[node].own.clone();
        match self.nodes[parent].admit(&own) {
            Ok(()) => {
                self.linked[node] = Some(parent);
                self.told[node] = None;
                self.under_way[node].clear();
                let address = wanted.clone();
                self.input(node, TreeInput::Linked { address });
                self.tell_children(node);
                self.tell_children(parent);
            }
            Err(NoChild::Full { instead, .. }) => {
                let is_below = |child: usize| self.linked[child] == Some(parent);
                let child = (0..self.nodes.len()).find(|one| address(*one) == instead);
                assert!(child.is_some_and(is_below), "sent on to {instead}");
                self.input(node, gone(Some(instead)));
            }
            Err(_) => self.input(node, gone(None)),
        }
    }

    fn unlink(&mut self, node: usize) {
        self.under_way[node].clear();
        if let Some(parent) = self.linked[node].take()
            && !self.down.contains(&parent)
        {
            let name = format!("n{node}");
            self.input(parent, TreeInput::ChildGone { name });
            self.tell_children(parent);
        }
    }

    /// A node tells its parent how many children it has.
    fn tell_children(&mut self, node: usize) {
        if let Some(parent) = self.linked[node] {
            let (name, children) = (format!("n{node}"), self.nodes[node].children());
            self.input(parent, TreeInput::ChildHas { name, children });
        }
    }

    /// A node that was killed is started again.
    fn revive(&mut self, node: usize, boot: u64) {
        if self.down.remove(&node) {
            let parents = self.nodes[node].choice.parents.clone();
            // Nothing of it has lasted, but for the root's number.
            let number = NodeId(if parents.is_empty() {
                0
            } else {
                node as u64 + 100 * boot
            });
            let own = Ancestor {
                node: number,
                ..own(node)
            };
            let seed = node as u64 ^ boot;
            self.nodes[node] = TreeNode::new(own, boot, parents, self.limits, seed);
        }
    }

    /// A node is killed: its links end at once.
    fn kill(&mut self, node: usize) {
        self.down.insert(node);
        for child in 0..self.nodes.len() {
            if self.linked[child] == Some(node) {
                self.linked[child] = None;
                self.under_way[child].clear();
                let (address, instead) = (address(node), None);
                self.input(child, TreeInput::Gone { address, instead });
            }
        }
        self.unlink(node);
    }

    /// Whether a node's parents, or theirs, know the root.
    fn reaches_root(&self, node: usize) -> bool {
        let mut known = BTreeSet::from([node]);
        for _ in 0..self.nodes.len() {
            let parents = known
                .iter()
                .flat_map(|node| &self.nodes[*node].choice.parents);
            let more: Vec<usize> = (0..self.nodes.len())
                .filter(|one| parents.clone().any(|parent| *parent == address(*one)))
                .collect();
            known.extend(more);
        }
        known.contains(&0)
    }

    fn path(&self, node: usize) -> Vec<u64> {
        let path = self.nodes[node].path().unwrap_or_default();
        path.iter().map(|above| above.node.0).collect()
    }

    fn forget_times(&mut self) {
        self.longest.fill(Duration::ZERO);
    }
}

fn second(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A root, two nodes below it, and two below each of these.
fn seven() -> Network {
    let mut network = Network::new(&[&[0], &[0], &[1], &[1], &[2], &[2]], TreeLimits::default());
    network.pass(second(2));
    network
}

#[test]
fn everybody_finds_its_place_by_the_parents_of_its_settings() {
    let network = seven();
    assert_eq!(network.path(0), [0_u64; 0]);
    assert_eq!((network.path(1), network.path(6)), (vec![0], vec![0, 2]));
    assert_eq!(network.nodes[0].children(), 2);
    assert_eq!(network.nodes[1].children(), 2);
}

#[test]
fn who_loses_its_parent_goes_to_the_one_above_and_who_is_below_stays() {
    let mut network = seven();
    network.forget_times();
    network.kill(1);
    network.pass(second(2));
    for node in [3, 4] {
        assert_eq!(network.path(node), [0]);
        assert!(network.longest[node] < Duration::from_millis(200));
    }
    for node in [2, 5, 6] {
        assert_eq!(network.longest[node], Duration::ZERO);
    }
}

#[test]
fn who_went_elsewhere_comes_back_when_its_parent_is_there_again() {
    let mut network = seven();
    network.kill(1);
    network.pass(second(2));
    assert_eq!(network.path(3), [0]);
    network.forget_times();
    network.revive(1, 2);
    network.pass(second(5));
    assert_eq!(network.path(3), [0, 101 + 100]);
    // It has a place when the next count comes.
    assert!(network.longest[3] <= Duration::from_millis(250));
    // One that was sent on stays where it is.
    let limits = TreeLimits {
        children_max: 1,
        ..TreeLimits::default()
    };
    let mut network = Network::new(&[&[0], &[0]], limits);
    network.pass(second(2));
    network.forget_times();
    network.pass(second(5));
    assert_eq!(network.longest, [Duration::ZERO; 3]);
}

#[test]
fn a_parent_that_stands_still_is_left_by_those_next_below_it_alone() {
    let mut network = Network::new(&[&[0], &[1], &[2], &[3]], TreeLimits::default());
    network.pass(second(2));
    network.forget_times();
    network.still.insert(1);
    network.pass(second(3));
    assert_eq!(network.path(2), [0]);
    assert!(
        network.longest[2] < Duration::from_millis(300),
        "{:?}",
        network.longest
    );
    assert_eq!(network.path(4), [0, 2, 3]);
    assert_eq!(network.longest[3..], [Duration::ZERO; 2]);
}

#[test]
fn two_that_are_each_others_parents_find_the_root_or_none() {
    let mut network = Network::new(&[&[2, 0], &[1, 0]], TreeLimits::default());
    network.pass(second(5));
    let paths = [network.path(1), network.path(2)];
    assert!(paths.contains(&vec![0]), "{paths:?}");
    network.kill(0);
    network.pass(second(5));
    // Nobody is taken for the root.
    assert_eq!([network.path(1), network.path(2)], [vec![], vec![]]);
}

#[test]
fn an_ancestor_that_comes_back_below_finds_out() {
    let mut network = Network::new(&[&[0], &[1], &[2]], TreeLimits::default());
    network.pass(second(2));
    // The first one's way to the root is cut, and it knows the last one.
    network.nodes[1].choice.parents.push(address(3));
    network.cut.insert((1, 0));
    network.pass(second(1) / 2);
    network.nodes[1].step(
        network.now,
        TreeInput::Gone {
            address: address(0),
            instead: None,
        },
    );
    network.linked[1] = None;
    network.pass(second(4));
    for node in 1..=3 {
        let path = network.path(node);
        assert_eq!(path.first(), Some(&0), "node {node}: {path:?}");
        assert!(!path.contains(&(node as u64)), "node {node}: {path:?}");
    }
}

#[test]
fn who_is_one_too_many_is_sent_on_to_the_child_with_the_fewest() {
    let limits = TreeLimits {
        children_max: 2,
        ..TreeLimits::default()
    };
    let root: &[usize] = &[0];
    let mut network = Network::new(&[root; 6], limits);
    network.pass(second(3));
    let counts: Vec<usize> = network.nodes.iter().map(TreeNode::children).collect();
    assert_eq!(counts.iter().sum::<usize>(), 6);
    assert!(counts.iter().all(|count| *count <= 2), "{counts:?}");
    assert!((1..7).all(|node| !network.path(node).is_empty()));
    assert_eq!(network.limits.children_max, 2);
}

#[test]
fn nobody_is_further_from_the_root_than_may_be() {
    let limits = TreeLimits {
        depth_max: 3,
        ..TreeLimits::default()
    };
    let mut network = Network::new(&[&[0], &[1], &[2]], limits);
    network.pass(second(3));
    assert_eq!(network.path(2), [0, 1]);
    assert_eq!(network.path(3), [0_u64; 0]);
    assert_eq!(network.nodes[2].admit(&own(9)), Err(NoChild::Depth(3)));
}

#[test]
fn who_was_sent_on_in_vain_tries_the_next_parent_of_its_settings() {
    let limits = TreeLimits {
        depth_max: 3,
        children_max: 2,
        ..TreeLimits::default()
    };
    // One of the three is sent on by the first parent, to a child that is as far from the root as may be.
    let both: &[usize] = &[1, 0];
    let mut network = Network::new(&[&[0], both, both, both], limits);
    network.pass(second(5));
    let paths = [2, 3, 4].map(|node| network.path(node));
    assert!(paths.contains(&vec![0]), "{paths:?}");
    assert!(paths.iter().all(|path| !path.is_empty()), "{paths:?}");
}

#[test]
fn who_has_no_place_takes_no_child_and_nobody_takes_itself_or_an_ancestor() {
    let limits = TreeLimits::default();
    let mut alone = TreeNode::below(own(1), 1, vec![address(0)], limits, 1);
    assert_eq!(alone.admit(&own(2)), Err(NoChild::NoPlace));
    let mut network = seven();
    for above in [3, 1, 0] {
        assert_eq!(network.nodes[3].admit(&own(above)), Err(NoChild::Ancestor));
        // Another node of that name, as one has when it was started again.
        let other = Ancestor {
            node: NodeId(99),
            ..own(above)
        };
        assert_eq!(network.nodes[3].admit(&other), Err(NoChild::Name));
    }
}

#[test]
fn a_root_that_has_been_started_again_counts_anew() {
    let mut network = seven();
    network.kill(0);
    network.pass(second(3));
    assert!((1..7).all(|node| network.path(node).is_empty()));
    network.down.remove(&0);
    network.nodes[0] = TreeNode::root(own(0), 2, network.limits);
    network.linked.fill(None);
    for node in 1..7 {
        if let Some(address) = network.nodes[node].parent().map(str::to_owned) {
            let instead = None;
            network.input(node, TreeInput::Gone { address, instead });
        }
    }
    network.pass(second(4));
    assert!((1..7).all(|node| network.path(node).first() == Some(&0)));
}
