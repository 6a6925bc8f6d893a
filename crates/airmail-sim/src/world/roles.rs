//! Roles: gateways and towers that are processes of their own, over one storage that all towers share.
//!
//! The storage is a process, too: it has the disk, and towers use it over wires as they would use a service elsewhere.
//! Towers have nothing but links, so each of them may serve any log. Gateways have the clients.
//!
//! Any of them is killed, and comes back with nothing; any but the storage stands still for a while. Gateways hear
//! late which towers live, and sometimes what is not so: the news are those of a gossip that nobody may rely on.
//!
//! Nodes are numbered: gateways first, as the shards of the run, then towers, then the storage.

mod clients;

use super::cluster::{Cluster, Joint};
use super::node_storage::NearPort;
use super::wire::Wire;
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::files::SimFiles;
use crate::plant::Plant;
use crate::tuning;
use airmail_link::{
    HostedStorage, LinkLimits, LinkStorage, LogHomes, Tower, TowerLimits, TowerName, TowersStorage,
};
use airmail_log::journal::JournalStorage;
use airmail_log::{Capabilities, LogStorage as _};
use airmail_model::{Mono, Now};
use std::sync::Arc;
use std::time::Duration;

/// Longest time until a process is back, in microseconds, nearly always and now and then.
const DOWN_MICROS_MAX: [u64; 2] = [200_000, 5_000_000];
/// Longest stall, in microseconds, nearly always and now and then.
const STALL_MICROS_MAX: [u64; 2] = [300_000, 20_000_000];
/// Longest time between news of towers, in microseconds.
const NEWS_MICROS_MAX: u64 = 1_500_000;
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

/// A tower's storage, which is that of the process that all towers share.
type TowerStorage = HostedStorage<LinkStorage<NearPort>>;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Roles {
    gateways: usize,
    nodes: Vec<Process>,
    towers: Vec<Option<TowerStorage>>,
    store: Option<HostedStorage<JournalStorage<SimFiles>>>,
    capabilities: Option<Capabilities>,
    limits: TowerLimits,
    rates: Rates,
    /// An end that stands still is given up, as one that is asked for signs of life.
    gives_up: bool,
    /// When each gateway hears of towers next.
    news: Vec<Mono>,
    chance: Entropy,
}

impl Roles {
    /// Those of a seed.
    pub(super) fn of(gateways: usize, mut chance: Entropy, plant: Option<Plant>) -> Roles {
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
        Roles {
            gateways,
            nodes: (0..gateways + towers + 1)
                .map(|_| Process::default())
                .collect(),
            towers: (0..towers).map(|_| None).collect(),
            store: None,
            capabilities: None,
            limits,
            rates,
            gives_up,
            news: vec![Mono(0); gateways],
            chance,
        }
    }

    /// The storage's number among the nodes.
    pub(super) fn store_node(&self) -> usize {
        self.nodes.len() - 1
    }

    fn tower_node(&self, tower: usize) -> usize {
        self.gateways + tower
    }

    /// Where clients find a gateway.
    pub(super) fn address(gateway: usize) -> String {
        format!("g{gateway}:1")
    }

    fn name(tower: usize) -> TowerName {
        TowerName::new(&format!("tower-{tower}"))
    }

    /// Whether the storage runs.
    pub(super) fn has_store(&self) -> bool {
        self.store.is_some()
    }

    pub(super) fn is_up(&self, node: usize) -> bool {
        self.nodes[node].is_up
    }

    fn is_stalled(&self, node: usize, now: Mono) -> bool {
        self.nodes[node].stall.until > now
    }

    /// Whether an end of a wire has said nothing for so long that the other one gives it up.
    pub(super) fn is_given_up(&self, node: usize, now: Mono) -> bool {
        let patience = Duration::from_micros(SILENCE_MICROS);
        let from = self.nodes[node].stall.from;
        self.gives_up && self.is_stalled(node, now) && from.plus(patience) <= now
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

    /// Number of towers that could be without one more.
    pub(super) fn can_spare_a_tower(&self) -> bool {
        self.towers.len() > 1 && self.limits.towers_per_log > 1
    }

    /// One of the towers' nodes.
    pub(super) fn any_tower(&self, chance: &mut Entropy) -> usize {
        self.tower_node(chance.index(self.towers.len()))
    }

    /// A node stands still from now on.
    pub(super) fn stall(&mut self, node: usize, from: Mono, until: Mono) {
        self.nodes[node].stall = Stall { from, until };
    }
}

impl Cluster {
    /// The storage that all towers share starts on its disk's contents.
    pub(super) fn start_store(&mut self, journal: JournalStorage<SimFiles>) {
        let limits = self.limits();
        let Some((roles, joints)) = self.roles_and_joints() else {
            return;
        };
        let mut store = HostedStorage::new(journal, limits);
        roles.capabilities = Some(store.capabilities());
        let node = roles.store_node();
        joints.retain(|joint| !joint.has_ended_at(node));
        for joint in joints.iter().filter(|joint| joint.leads_to(node)) {
            store.add_port(Box::new(joint.wire.far()));
        }
        roles.store = Some(store);
        roles.nodes[node].is_up = true;
    }

    /// Towers that are due start.
    pub(super) fn start_towers(&mut self, now: Mono, evidence: &mut Evidence) {
        let Some(roles) = self
            .roles
            .as_ref()
            .filter(|roles| roles.capabilities.is_some())
        else {
            return;
        };
        let towers = 0..roles.towers.len();
        let due = towers.filter(|tower| {
            let process = &roles.nodes[roles.tower_node(*tower)];
            !process.is_up && process.back <= now
        });
        for tower in due.collect::<Vec<_>>() {
            self.start_tower(tower);
            evidence.note(format_args!("{} tower {tower} starts", now.0));
        }
    }

    fn start_tower(&mut self, tower: usize) {
        let limits = self.limits();
        let wire = self.new_wire();
        let Some((roles, joints)) = self.roles_and_joints() else {
            return;
        };
        let Some(capabilities) = roles.capabilities else {
            return;
        };
        let (node, store) = (roles.tower_node(tower), roles.store_node());
        joints.retain(|joint| !joint.has_ended_at(node));
        if let Some(host) = &mut roles.store {
            host.add_port(Box::new(wire.far()));
        }
        let link = LinkStorage::new(wire.near(), capabilities, limits);
        let mut host = HostedStorage::new(link, limits);
        for joint in joints.iter().filter(|joint| joint.leads_to(node)) {
            host.add_port(Box::new(joint.wire.far()));
        }
        roles.towers[tower] = Some(host);
        roles.nodes[node].is_up = true;
        joints.push(Joint::new(node, store, wire));
    }

    /// Gateways that are due to start, if they can.
    pub(super) fn due_gateways(&self, now: Mono) -> Vec<usize> {
        let Some(roles) = self
            .roles
            .as_ref()
            .filter(|roles| roles.capabilities.is_some())
        else {
            return Vec::new();
        };
        let nodes = roles.nodes.iter().take(roles.gateways).enumerate();
        let due = nodes.filter(|(_, process)| !process.is_up && process.back <= now);
        due.map(|(gateway, _)| gateway).collect()
    }

    /// The storage of a gateway that starts.
    pub(super) fn start_gateway(&mut self, gateway: usize) -> Option<TowersStorage<NearPort>> {
        let limits = self.limits();
        let towers = self.roles.as_ref()?.towers.len();
        let wires: Vec<Wire> = (0..towers).map(|_| self.new_wire()).collect();
        let (roles, joints) = self.roles_and_joints()?;
        let capabilities = roles.capabilities?;
        let homes = Arc::new(LogHomes::new(1));
        let mut storage: Option<TowersStorage<NearPort>> = None;
        for (number, wire) in wires.into_iter().enumerate() {
            if let Some(host) = &mut roles.towers[number] {
                host.add_port(Box::new(wire.far()));
            }
            let link = LinkStorage::new(wire.near(), capabilities, limits);
            let tower = Tower::new(Arc::clone(&homes), vec![link]);
            joints.push(Joint::new(gateway, roles.gateways + number, wire));
            let name = Roles::name(number);
            match &mut storage {
                Some(storage) => storage.add_tower(name, tower),
                None => {
                    storage = Some(TowersStorage::new(capabilities, roles.limits, name, tower));
                }
            }
        }
        roles.nodes[gateway].is_up = true;
        roles.news[gateway] = Mono(0);
        storage
    }

    /// News of towers for the gateways that hear some now.
    pub(super) fn news(
        &mut self,
        now: Mono,
        evidence: &mut Evidence,
    ) -> Vec<(usize, Vec<TowerName>)> {
        let Some(roles) = &mut self.roles else {
            return Vec::new();
        };
        let mut news = Vec::new();
        for gateway in 0..roles.gateways {
            if roles.news[gateway] > now || !roles.is_up(gateway) {
                continue;
            }
            let wait = Duration::from_micros(roles.chance.between(1_000, NEWS_MICROS_MAX));
            roles.news[gateway] = now.plus(wait);
            let mut live = roles.live(now);
            if live.len() > 1 && roles.chance.chance(roles.rates.false_news) {
                evidence.count(Kind::FalseNews);
                let out = roles.chance.index(live.len());
                live.remove(out);
            }
            news.push((gateway, live));
        }
        news
    }

    /// Draws a gateway that is killed in this step, if one is; a tower may be, too.
    pub(super) fn kills(&mut self, now: Mono, evidence: &mut Evidence) -> Option<usize> {
        let roles = self.roles.as_mut()?;
        if !roles.chance.chance(roles.rates.kills) {
            return None;
        }
        let node = roles.chance.index(roles.store_node());
        if !roles.is_up(node) {
            return None;
        }
        let time = Duration::from_micros(super::cluster::seldom_long(
            &mut roles.chance,
            DOWN_MICROS_MAX,
        ));
        roles.nodes[node].back = now.plus(time);
        evidence.note(format_args!("{} node {node} is killed", now.0));
        let gateways = roles.gateways;
        self.node_ends(node, now, evidence);
        if node < gateways {
            evidence.count(Kind::GatewayKilled);
            return Some(node);
        }
        evidence.count(Kind::TowerKilled);
        if let Some(roles) = &mut self.roles {
            roles.towers[node - gateways] = None;
        }
        None
    }

    /// Draws towers that stand still from now on.
    pub(super) fn stall_towers(&mut self, now: Mono, evidence: &mut Evidence) {
        let Some(roles) = &mut self.roles else {
            return;
        };
        if roles.chance.chance(roles.rates.stalls) {
            let tower = roles.chance.index(roles.towers.len());
            let node = roles.tower_node(tower);
            let micros = super::cluster::seldom_long(&mut roles.chance, STALL_MICROS_MAX);
            roles.stall(node, now, now.plus(Duration::from_micros(micros)));
            evidence.count(Kind::TowerStalled);
            evidence.note(format_args!("{} tower {tower} stalls", now.0));
        }
    }

    /// The storage's process ends.
    pub(super) fn end_store(&mut self, now: Mono, evidence: &mut Evidence) {
        let Some(roles) = &mut self.roles else {
            return;
        };
        roles.store = None;
        let node = roles.store_node();
        self.node_ends(node, now, evidence);
    }

    /// The storage, to be told that it stops.
    pub(super) fn store_mut(&mut self) -> Option<&mut HostedStorage<JournalStorage<SimFiles>>> {
        self.roles.as_mut()?.store.as_mut()
    }

    /// A process is gone: its connections are cut, and those that it had made are of no use any more.
    fn node_ends(&mut self, node: usize, now: Mono, evidence: &mut Evidence) {
        if let Some(roles) = &mut self.roles {
            let process = &mut roles.nodes[node];
            process.is_up = false;
            process.stall = Stall::default();
            process.wake = None;
        }
        self.cut_node(node, now, evidence);
    }

    /// Draws which towers, and whether the storage, have a turn in this step.
    pub(super) fn wake_nodes(&mut self, now: Mono) {
        let Some(roles) = &self.roles else {
            return;
        };
        let nodes = roles.gateways..roles.nodes.len();
        for node in nodes {
            let dozes = self.dozes();
            if let Some(roles) = &mut self.roles {
                let is_stalled = roles.is_stalled(node, now);
                roles.nodes[node].is_awake = !is_stalled && !dozes;
            }
        }
    }

    /// A turn of the towers and of the storage; whether any has more to do now.
    pub(super) fn turn_nodes(&mut self, now: Now) -> bool {
        let Some(roles) = &mut self.roles else {
            return false;
        };
        let mut busy = false;
        let mut out = Vec::new();
        for (tower, host) in roles.towers.iter_mut().enumerate() {
            let process = &mut roles.nodes[roles.gateways + tower];
            if let (Some(host), true) = (host, process.is_awake) {
                process.wake = host.poll(now, &mut out);
                busy |= process.wake.is_some_and(|wake| wake <= now.mono);
            }
        }
        let node = roles.store_node();
        let process = &mut roles.nodes[node];
        if let (Some(store), true) = (&mut roles.store, process.is_awake) {
            process.wake = store.poll(now, &mut out);
            busy |= process.wake.is_some_and(|wake| wake <= now.mono);
        }
        let nodes = roles.nodes.iter().enumerate().skip(roles.gateways);
        let awake = nodes.filter(|(_, process)| process.is_up && process.is_awake);
        let awake: Vec<usize> = awake.map(|(node, _)| node).collect();
        busy || awake.into_iter().any(|node| self.has_due(node))
    }

    /// Whether the storage has a turn in this step.
    pub(super) fn is_store_awake(&self) -> bool {
        let roles = self.roles.as_ref().filter(|roles| roles.has_store());
        roles.is_some_and(|roles| roles.nodes[roles.store_node()].is_awake)
    }

    /// When a tower, or the storage, wants its next turn.
    pub(super) fn wake_of_nodes(&self) -> Option<Mono> {
        let roles = self.roles.as_ref()?;
        let nodes = roles.nodes.iter().skip(roles.gateways);
        let awake = nodes.filter(|process| process.is_up && process.is_awake);
        awake.filter_map(|process| process.wake).min()
    }

    /// All processes come back, and none stands still.
    pub(super) fn heal_nodes(&mut self) {
        if let Some(roles) = &mut self.roles {
            roles.rates = Rates::default();
            for process in &mut roles.nodes {
                process.back = Mono(0);
                process.stall = Stall::default();
            }
        }
    }

    fn new_wire(&mut self) -> Wire {
        let settings = self.wires();
        Wire::new(settings, self.chance_mut())
    }

    fn roles_and_joints(&mut self) -> Option<(&mut Roles, &mut Vec<Joint>)> {
        let (roles, joints) = self.parts_mut();
        Some((roles.as_mut()?, joints))
    }

    /// Limits of links.
    fn limits(&self) -> LinkLimits {
        self.link_limits()
    }
}
