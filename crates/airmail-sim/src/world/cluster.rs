//! The shards of a run and what goes wrong between them: how many there are, the wires that join them, and the
//! faults of those.
//!
//! A run of [`Stage::World`](crate::Stage::World) has one shard, no wire, and none of these faults. In half of the
//! runs of [`Stage::Cluster`](crate::Stage::Cluster) the shards are of one process; in the others they are processes
//! of their own: gateways beside towers and a storage, or the nodes of a tree ([`Roles`]). In some runs of either stage
//! every shard is a process of its own that appends to logs elsewhere ([`Writers`]).

mod kafka;
mod roles;
mod writers;

use super::audit::{Attempts, AuditedStorage};
use super::node_storage::{NodeDisk, NodeStorage};
use super::wire::{Wire, WireSettings};
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::plant::Plant;
use crate::tuning;
use airmail_broker::Interest;
use airmail_link::{HostedStorage, LinkLimits, LinkStorage, LogHomes, ShardedStorage};
use airmail_log::LogStorage as _;
use airmail_model::{LogId, Mono};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

pub(super) use roles::Roles;
pub(super) use writers::Writers;

/// Farthest that the wall clock of a shard is wrong, in microseconds.
const CLOCK_MICROS_MAX: u64 = 300_000;
/// Longest stall, in microseconds, nearly always and now and then.
const STALL_MICROS_MAX: [u64; 2] = [300_000, 5_000_000];
/// Longest time without a connection, in microseconds, nearly always and now and then.
const DOWN_MICROS_MAX: [u64; 2] = [30_000, 2_000_000];
/// Longest time for which a direction is silent before the cut, in microseconds.
const SILENT_MICROS_MAX: u64 = 500_000;

/// Storage of a shard, or of a gateway.
pub(super) type Storage = AuditedStorage<NodeStorage>;

/// Faults between the shards of a seed, in parts of a million for each step.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    /// A shard does nothing for a while, and the others go on.
    stalls: u32,
    /// A shard has no turn in this step.
    dozes: u32,
    /// The connection of a wire is cut.
    cuts: u32,
    /// A direction of a wire falls silent, and is cut later.
    silences: u32,
}

/// State of a wire.
#[derive(Clone, Copy, Debug)]
enum Condition {
    Up,
    /// One direction is silent until then.
    Silent(Mono),
    Down(Mono),
}

/// A wire, from the node that asks to the one that has the logs.
#[derive(Debug)]
struct Joint {
    near: usize,
    far: usize,
    wire: Wire,
    condition: Condition,
    /// The process that made it is gone: it is never up again.
    is_over: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Cluster {
    shards: usize,
    chance: Entropy,
    rates: Rates,
    wires: WireSettings,
    limits: LinkLimits,
    /// The part of a log whose topics somebody follows that shards ask for.
    interest: Interest,
    homes: Arc<LogHomes>,
    joints: Vec<Joint>,
    pub(super) roles: Option<Roles>,
    /// The logs that all nodes append to, if they are on none of them.
    pub(super) writers: Option<Writers>,
    /// Attempts to append, of all shards of the process, or of all gateways ever.
    attempts: Arc<Mutex<Attempts>>,
    /// Errors of the shards' wall clocks, in microseconds.
    clocks: Vec<i64>,
    /// A namespace is used when every shard knows it, not when the first does.
    waits_for_all: bool,
}

impl Cluster {
    /// One shard alone.
    pub(super) fn alone() -> Cluster {
        Cluster {
            shards: 1,
            chance: Entropy::new(0),
            rates: Rates::default(),
            wires: calm(),
            limits: LinkLimits::default(),
            interest: Interest::All,
            homes: Arc::new(LogHomes::new(1)),
            joints: Vec::new(),
            roles: None,
            writers: None,
            attempts: Arc::default(),
            clocks: vec![0],
            waits_for_all: true,
        }
    }

    /// The shards of a seed.
    pub(super) fn of(mut chance: Entropy, plant: Option<Plant>) -> Cluster {
        let shards = chance.index(3) + 2;
        let mut rate = |high: u64| {
            if chance.coin() {
                u32::try_from(chance.between(high / 20, high)).unwrap_or(0)
            } else {
                0
            }
        };
        let rates = Rates {
            stalls: rate(10_000),
            dozes: rate(500_000),
            cuts: rate(10_000),
            silences: rate(3_000),
        };
        let lost = rate(10_000);
        let wires = WireSettings {
            delay: Duration::from_micros(rate(20_000).into()),
            room: 1 << chance.between(0, 8),
            lost,
            is_late: chance.coin(),
        };
        let mut limits = tuning::link(&mut chance, plant);
        let apart = chance.coin();
        let clocks = (0..shards).map(|_| {
            let off = chance.below(2 * CLOCK_MICROS_MAX).cast_signed();
            i64::from(apart) * (off - CLOCK_MICROS_MAX.cast_signed())
        });
        let mut clocks: Vec<i64> = clocks.collect();
        let waits_for_all = chance.coin();
        let mut wanting = chance.fork();
        let interest = if wanting.coin() {
            limits.wants = tuning::wants(&mut wanting);
            Interest::Wanted
        } else {
            Interest::All
        };
        let mut roles = chance.fork();
        let roles = roles.coin().then(|| Roles::of(shards, roles, plant));
        let shards = roles.as_ref().map_or(shards, Roles::gateways);
        // Those of a tree's further nodes are right.
        clocks.resize(shards, 0);
        Cluster {
            shards,
            rates,
            wires,
            limits,
            interest,
            homes: Arc::new(LogHomes::new(shards)),
            joints: Vec::new(),
            roles,
            writers: None,
            attempts: Arc::default(),
            clocks,
            waits_for_all,
            chance,
        }
    }

    /// The part of a log whose topics somebody follows that shards ask for.
    pub(super) const fn interest(&self) -> Interest {
        self.interest
    }

    /// Number of shards.
    pub(super) const fn shards(&self) -> usize {
        self.shards
    }

    /// Number of disks: each shard of one process has its own, and gateways have none. That of many writers is not used.
    pub(super) fn disks(&self) -> usize {
        let is_one = self.roles.is_some() || self.writers.is_some();
        if is_one { 1 } else { self.shards }
    }

    /// Whether all shards are of one process, each with a disk of its own.
    pub(super) const fn is_one_process(&self) -> bool {
        self.roles.is_none() && self.writers.is_none()
    }

    /// Whether a log is at a node alone.
    pub(super) fn is_home(&self, log: LogId, node: usize) -> bool {
        self.is_one_process() && self.homes.home(log) == node
    }

    /// Error of a shard's wall clock, in microseconds.
    pub(super) fn clock(&self, shard: usize) -> i64 {
        self.clocks[shard]
    }

    /// Whether a namespace is used when every shard knows it, not when the first does.
    pub(super) const fn waits_for_all(&self) -> bool {
        self.waits_for_all
    }

    /// One of the shards.
    pub(super) fn any_shard(&self, chance: &mut Entropy) -> usize {
        if self.shards == 1 {
            0
        } else {
            chance.index(self.shards)
        }
    }

    /// Storages of shards that start now, joined by new wires.
    pub(super) fn join(&mut self, journals: Vec<NodeDisk>) -> Vec<Storage> {
        self.joints.clear();
        let limits = self.limits;
        let hosts = journals.into_iter();
        let mut hosts: Vec<_> = hosts
            .map(|journal| HostedStorage::new(journal, limits))
            .collect();
        let mut links: Vec<Vec<_>> = Vec::new();
        for near in 0..self.shards {
            let mut of_shard = Vec::new();
            for (far, host) in hosts.iter_mut().enumerate() {
                if near == far {
                    of_shard.push(None);
                    continue;
                }
                let wire = Wire::new(self.wires, &mut self.chance);
                host.add_port(Box::new(wire.far()));
                let link = LinkStorage::new(wire.near(), host.capabilities(), limits);
                of_shard.push(Some(link));
                self.joints.push(Joint::new(near, far, wire));
            }
            links.push(of_shard);
        }
        let shards = hosts.into_iter().zip(links).enumerate();
        self.attempts = Arc::default();
        let joined = shards.map(|(shard, (own, links))| {
            let storage = ShardedStorage::new(shard, Arc::clone(&self.homes), own, links);
            self.audited(NodeStorage::Shard(Box::new(storage)), shard)
        });
        joined.collect()
    }

    /// A node's storage under audit.
    pub(super) fn audited(&self, storage: NodeStorage, node: usize) -> Storage {
        let truth = self.kafka().map(|kafka| kafka.truth());
        AuditedStorage::new(storage, node, Arc::clone(&self.attempts)).with_truth(truth)
    }

    /// The process that has the disk has ended, other than in good order: what was in its memory alone of these logs is
    /// gone.
    pub(super) fn lost_memory(&self, logs: &[LogId]) {
        self.attempts.lock().lost_memory(logs);
    }

    /// Whether all of these logs have been sealed while the process ran.
    pub(super) fn are_sealed(&self, mut logs: impl Iterator<Item = LogId>) -> bool {
        let attempts = self.attempts.lock();
        logs.all(|log| attempts.is_sealed(log))
    }

    /// The process has ended, and its wires with it.
    pub(super) fn down(&mut self) {
        self.joints.clear();
    }

    /// Moves the time of the wires on; those that are due are made again, or cut.
    pub(super) fn pass(&mut self, now: Mono, evidence: &mut Evidence) {
        self.forget_ended();
        let is_tree = self.is_tree();
        for joint in &mut self.joints {
            joint.wire.pass(now);
            let is_given_up = self.roles.as_ref().is_some_and(|roles| {
                let ends = [joint.near, joint.far];
                ends.iter().any(|node| roles.is_given_up(*node, now))
            });
            if is_given_up {
                if !matches!(joint.condition, Condition::Down(_)) {
                    joint.cut(now, &mut self.chance, evidence);
                }
                continue;
            }
            match joint.condition {
                Condition::Down(until) if until <= now => {
                    let is_there = |node| self.roles.as_ref().is_none_or(|of| of.is_up(node));
                    if joint.is_over || is_tree || !is_there(joint.near) || !is_there(joint.far) {
                        continue;
                    }
                    joint.condition = Condition::Up;
                    joint.wire.up();
                    evidence.note(format_args!("{} {joint} is up", now.0));
                }
                Condition::Silent(until) if until <= now => {
                    joint.cut(now, &mut self.chance, evidence);
                }
                _ => {}
            }
        }
    }

    /// Whether the processes are a tree: a link that has ended is another one's turn.
    pub(super) fn is_tree(&self) -> bool {
        self.roles
            .as_ref()
            .is_some_and(|roles| roles.tree().is_some())
    }

    /// Forgets links of a tree that have ended and of which both ends know it.
    fn forget_ended(&mut self) {
        let roles = self.roles.as_ref();
        let Some(roles) = roles.filter(|roles| roles.tree().is_some()) else {
            return;
        };
        self.joints.retain(|joint| {
            let near = !joint.is_over && roles.is_up(joint.near) && !joint.wire.is_over_near();
            let far = roles.is_up(joint.far) && !joint.wire.is_over_far();
            near || far
        });
    }

    /// Lets wires be cut, or fall silent, as the seed says.
    pub(super) fn faults(&mut self, now: Mono, evidence: &mut Evidence) {
        let chance = &mut self.chance;
        for joint in &mut self.joints {
            if !matches!(joint.condition, Condition::Up) {
                continue;
            }
            if chance.chance(self.rates.cuts) {
                evidence.count(Kind::LinkCut);
                joint.cut(now, chance, evidence);
            } else if chance.chance(self.rates.silences) {
                evidence.count(Kind::LinkSilent);
                let to_host = chance.coin();
                joint.wire.fall_silent(to_host);
                let time = Duration::from_micros(chance.below(SILENT_MICROS_MAX));
                joint.condition = Condition::Silent(now.plus(time));
                let from = if to_host { joint.near } else { joint.far };
                evidence.note(format_args!("{} {joint} loses all from {from}", now.0));
            }
        }
    }

    /// Draws for how long a shard is to stall from now on, if it is to.
    pub(super) fn stall(&mut self) -> Option<Duration> {
        let chance = &mut self.chance;
        chance
            .chance(self.rates.stalls)
            .then(|| Duration::from_micros(seldom_long(chance, STALL_MICROS_MAX)))
    }

    /// Draws whether a shard has no turn now.
    pub(super) fn dozes(&mut self) -> bool {
        self.rates.dozes > 0 && self.chance.chance(self.rates.dozes)
    }

    /// Something has arrived for a node.
    pub(super) fn has_due(&self, node: usize) -> bool {
        self.joints.iter().any(|joint| {
            joint.near == node && !joint.is_over && joint.wire.has_due_near()
                || joint.far == node && self.is_up(node) && joint.wire.has_due_far()
        })
    }

    fn is_up(&self, node: usize) -> bool {
        self.roles.as_ref().is_none_or(|roles| roles.is_up(node))
    }

    /// The connections of the process that has the disk end, for longer than it takes to stop.
    pub(super) fn cut_store(&mut self, now: Mono, evidence: &mut Evidence) {
        let Some(node) = self.roles.as_ref().map(Roles::store_node) else {
            return;
        };
        for joint in self.joints.iter_mut().filter(|joint| joint.leads_to(node)) {
            joint.wire.pass(now);
            joint.cut(now, &mut self.chance, evidence);
            joint.condition = Condition::Down(now.plus(Duration::from_secs(2)));
        }
        if let Some(roles) = &mut self.roles {
            roles.store_stops();
        }
    }

    /// A node is gone: its connections are cut, and those that it has made never come back.
    fn cut_node(&mut self, node: usize, now: Mono, evidence: &mut Evidence) {
        let is_tree = self.is_tree();
        for joint in &mut self.joints {
            if joint.near == node || joint.far == node {
                joint.is_over |= joint.near == node;
                joint.wire.pass(now);
                joint.cut(now, &mut self.chance, evidence);
                if is_tree && joint.far == node {
                    // Where it starts again, it has other ports.
                    joint.wire.end_far();
                }
            }
        }
    }

    /// Ends all faults between shards. A wire that has lost something by itself is cut once more.
    pub(super) fn clear_up(&mut self, now: Mono, evidence: &mut Evidence) {
        self.rates = Rates::default();
        self.wires = calm();
        for joint in &mut self.joints {
            joint.wire.pass(now);
            joint.wire.calm(self.wires);
            joint.cut(now, &mut self.chance, evidence);
        }
    }
}

impl Joint {
    /// A wire between two nodes, without a connection.
    fn new(near: usize, far: usize, wire: Wire) -> Joint {
        Joint {
            near,
            far,
            wire,
            condition: Condition::Down(Mono(0)),
            is_over: false,
        }
    }

    /// Whether nobody is at either end, where this node has started again.
    fn has_ended_at(&self, node: usize) -> bool {
        self.far == node && self.is_over
    }

    /// Whether somebody asks over it what this node has.
    fn leads_to(&self, node: usize) -> bool {
        self.far == node && !self.is_over
    }

    fn cut(&mut self, now: Mono, chance: &mut Entropy, evidence: &mut Evidence) {
        self.wire.cut();
        let time = Duration::from_micros(seldom_long(chance, DOWN_MICROS_MAX));
        self.condition = Condition::Down(now.plus(time));
        evidence.note(format_args!("{} {self} is cut", now.0));
    }
}

impl std::fmt::Display for Joint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the link of node {} to {}", self.near, self.far)
    }
}

/// Wires that lose nothing.
const fn calm() -> WireSettings {
    WireSettings {
        delay: Duration::ZERO,
        room: 1_000,
        lost: 0,
        is_late: false,
    }
}

fn seldom_long(chance: &mut Entropy, most: [u64; 2]) -> u64 {
    let long = chance.chance(100_000);
    chance.below(most[usize::from(long)])
}
