//! Roles: processes of their own over one disk. In a third of the runs they are a tree ([`Tree`]); in the others, gateways
//! and towers, over one storage that all towers share.
//!
//! The storage is a process, too: it has the disk, and towers use it over wires as they would use a service elsewhere.
//! Towers have nothing but links, so each of them may serve any log. Gateways have the clients. In half of the runs towers
//! have a cache.
//!
//! Any of them is killed, and comes back with nothing; any but the storage stands still for a while. Gateways hear
//! late which towers live, and sometimes what is not so: the news are those of a gossip that nobody may rely on.
//!
//! Nodes are numbered: gateways first, as the shards of the run, then towers, then the storage. Nodes of a tree are all
//! shards of the run, and called gateways here: they have clients.

mod clients;
mod faults;
mod starts;
mod tree;
mod turns;

use super::Cluster;
use crate::entropy::Entropy;
use crate::plant::Plant;
use crate::tuning;
use crate::world::node_storage::NodeDisk;
use airmail_link::{CacheLimits, HostedStorage, TowerLimits, TowerName};
use airmail_log::{Capabilities, LogStorage};
use airmail_model::Mono;
use std::time::Duration;
use tree::Tree;

/// Time after which an end that says nothing is given up, in microseconds.
const SILENCE_MICROS: u64 = 1_700_000;

/// Rates of faults, in parts of a million for each step.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    kills: u32,
    stalls: u32,
    /// News that leave a tower out which lives, of each.
    false_news: u32,
}

/// A time of standing still.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    from: Mono,
    until: Mono,
}

/// A process with a name, up or down.
#[derive(Debug, Default)]
struct Process {
    is_up: bool,
    /// It comes back then.
    back: Mono,
    stall: Stall,
    /// It has a turn in this step.
    is_awake: bool,
    wake: Option<Mono>,
}

/// Time after which an end that says nothing is given up.
const fn silence() -> Duration {
    Duration::from_micros(SILENCE_MICROS)
}

/// A tower's storage, which is that of the process that all towers share, by a link.
type TowerStorage = HostedStorage<Box<dyn LogStorage>>;

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::world) struct Roles {
    gateways: usize,
    nodes: Vec<Process>,
    /// Towers, of which a tree has none.
    towers: Vec<Option<TowerStorage>>,
    /// The storage behind towers.
    store: Option<HostedStorage<NodeDisk>>,
    tree: Option<Tree>,
    capabilities: Option<Capabilities>,
    limits: TowerLimits,
    /// Caches of towers, if they have some.
    cache: Option<CacheLimits>,
    rates: Rates,
    /// An end that stands still is given up, as one that is asked for signs of life.
    gives_up: bool,
    /// When each gateway hears of towers next.
    news: Vec<Mono>,
    chance: Entropy,
}

impl Process {
    fn is_due(&self, now: Mono) -> bool {
        !self.is_up && self.back <= now
    }
}

impl Roles {
    /// Those of a seed: a tree, or the gateways of a run with so many shards and their towers.
    pub(super) fn of(gateways: usize, mut chance: Entropy, plant: Option<Plant>) -> Roles {
        // Drawn beside the rest, so that the gateways of a seed are what they are without it.
        let mut of_tree = chance.clone().fork();
        let tree = of_tree.below(3) == 0;
        let tree = tree.then(|| Tree::of(&mut of_tree, plant));
        let towers = chance.index(3) + 2;
        let mut rate = |high: u64| {
            if chance.coin() {
                u32::try_from(chance.between(high / 20, high)).unwrap_or(0)
            } else {
                0
            }
        };
        let rates = Rates {
            kills: rate(6_000),
            stalls: rate(6_000),
            false_news: rate(200_000),
        };
        let limits = tuning::towers(&mut chance, plant);
        let gives_up = chance.coin();
        let cache = tuning::cache(&mut chance.fork());
        let (gateways, towers, nodes) = match &tree {
            Some(tree) => (tree.nodes(), 0, tree.nodes()),
            None => (gateways, towers, gateways + towers + 1),
        };
        Roles {
            gateways,
            nodes: (0..nodes).map(|_| Process::default()).collect(),
            towers: (0..towers).map(|_| None).collect(),
            store: None,
            tree,
            capabilities: None,
            limits,
            cache,
            rates,
            gives_up,
            news: vec![Mono(0); gateways],
            chance,
        }
    }

    /// Number of the processes that have clients.
    pub(super) const fn gateways(&self) -> usize {
        self.gateways
    }

    /// The number among the nodes of the one that has the disk.
    pub(super) fn store_node(&self) -> usize {
        if self.tree.is_some() {
            0
        } else {
            self.nodes.len() - 1
        }
    }

    /// The tree that the processes are, if they are one.
    pub(in crate::world) const fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }

    fn tower_node(&self, tower: usize) -> usize {
        self.gateways + tower
    }

    /// Where clients find a gateway.
    pub(in crate::world) fn address(gateway: usize) -> String {
        format!("g{gateway}:1")
    }

    /// Processes to which clients come.
    fn with_clients(&self) -> Vec<usize> {
        let gateways = 0..self.gateways;
        let tree = self.tree.as_ref();
        gateways
            .filter(|node| tree.is_none_or(|tree| tree.has_clients(*node)))
            .collect()
    }

    fn name(tower: usize) -> TowerName {
        TowerName::new(&format!("tower-{tower}"))
    }

    /// Whether the process runs that has the disk.
    pub(in crate::world) fn has_store(&self) -> bool {
        self.is_up(self.store_node())
    }

    pub(super) fn is_up(&self, node: usize) -> bool {
        self.nodes[node].is_up
    }

    fn is_stalled(&self, node: usize, now: Mono) -> bool {
        self.nodes[node].stall.until > now
    }

    /// Whether an end of a wire has said nothing for so long that the other one gives it up.
    pub(super) fn is_given_up(&self, node: usize, now: Mono) -> bool {
        let from = self.nodes[node].stall.from;
        self.gives_up && self.is_stalled(node, now) && from.plus(silence()) <= now
    }

    /// Names of the towers that live.
    fn live(&self, now: Mono) -> Vec<TowerName> {
        let towers = 0..self.towers.len();
        let live = towers.filter(|tower| {
            let node = self.tower_node(*tower);
            self.is_up(node) && !self.is_given_up(node, now)
        });
        live.map(Roles::name).collect()
    }

    /// Whether a log has a tower left when it loses one.
    pub(in crate::world) fn can_spare_a_tower(&self) -> bool {
        self.towers.len() > 1 && self.limits.towers_per_log > 1
    }

    /// One of the towers' nodes.
    pub(in crate::world) fn any_tower(&self, chance: &mut Entropy) -> usize {
        self.tower_node(chance.index(self.towers.len()))
    }

    /// The process that has the disk is about to stop.
    pub(super) fn store_stops(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.root_stops();
        }
    }

    /// A node that stands still from now on is given up in time.
    pub(in crate::world) const fn give_up(&mut self) {
        self.gives_up = true;
    }

    /// A node stands still from now on.
    pub(in crate::world) fn stall(&mut self, node: usize, from: Mono, until: Mono) {
        self.nodes[node].stall = Stall { from, until };
    }
}
