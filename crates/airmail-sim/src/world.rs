//! The whole node with its clients: the shards over their journals, the SDK's producers and subscribers,
//! and between them streams that are late and break.
//!
//! [`Stage::World`] has one shard. [`Stage::Cluster`] has two to four, joined by links that are slow, cut and
//! silent; their wall clocks differ, and one may stall while the others go on. A client's stream leads to any of them,
//! and after a break to another one. In half of the runs each has a journal of its own: a log is used at every shard,
//! and is at one; all of them are of one process, which a crash takes as a whole. In the others each is a process of its
//! own: a gateway, which uses all logs through several towers, or a node of a tree (`roles.rs`).
//!
//! In some runs of either stage namespaces are moved between two storages of the node (`moves.rs`).
//! In some runs of either stage the logs are on none of the nodes: each appends to them itself (`writers.rs`). In those of
//! [`Stage::Kafka`] they are on the model of Kafka's brokers, by the real core (`kafka.rs`).

mod admin;
mod audit;
mod client;
mod cluster;
mod faults;
mod heal;
mod isolation;
mod link;
mod moves;
mod node;
mod node_storage;
mod plug;
mod publisher;
mod restore;
mod shard;
mod statuses;
mod subscribing;
mod traffic;
mod truth;
mod watch;
mod wire;

use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::invariants::audience::Audiences;
use crate::invariants::bounded::Budget;
use crate::invariants::expiry::Expiry;
use crate::invariants::filters::Filters;
use crate::invariants::selections::Selections;
use crate::invariants::{Checked, Violation};
use crate::ledger::Places;
use crate::plant::Plant;
use crate::shape::Shape;
use crate::swarm::Swarm;
use crate::tuning;
use crate::weather::{Pace, START, Weather};
use crate::{Report, Stage};
use airmail_broker::SessionId;
use airmail_model::{LogMap, Mono, NamespaceId, Retention, Synced};
use client::Client;
use cluster::{Cluster, Writers};
use moves::{Moved, Moves};
use publisher::Publisher;
use restore::Restore;
use shard::Shard;
use std::collections::BTreeMap;

const PACE: Pace = Pace {
    usual_micros: 1_500,
    slow_micros: 200_000,
};

/// A namespace of the run, as it is to be or is.
#[derive(Clone, Debug)]
struct Space {
    name: String,
    id: NamespaceId,
    /// Its first map, whose logs stand for their lines.
    map: LogMap,
    /// Every gateway knew that it has lane high when a client was last to do something with it.
    has_high: bool,
    /// Topics that it may have.
    topics: u64,
    /// The weakest that may be in force: while it is being changed, of both.
    durability: Synced,
    /// Its durability was below `fsync` at some time.
    weak: bool,
    /// Its retention has taken records at some time, or may have.
    shrinks: bool,
    /// Settings that are asked for, perhaps not yet in force.
    wanted: Option<(Retention, Synced)>,
    /// The version on which other settings were asked for last: as long as it is that, they may still come.
    asked_on: Option<u64>,
    /// It is to be deleted.
    doomed: bool,
    /// Its deletion has been asked for: from here on it may be gone.
    leaving: bool,
    /// Its moves, in a run that has them.
    moved: Option<Moved>,
}

/// A namespace that is still to be created.
#[derive(Clone, Debug)]
struct Plan {
    name: String,
    logs: u16,
    topics: u64,
    retention: Retention,
    durability: Synced,
}

/// The program at a stream's other end.
#[derive(Clone, Copy, Debug)]
enum End {
    Publisher(usize),
    Client(usize),
}

/// A stream, as long as it is open.
#[derive(Clone, Copy, Debug)]
struct Stream {
    end: End,
    /// The shard that it leads to.
    shard: usize,
    budget: Budget,
}

/// A run of the whole node.
#[derive(Debug)]
pub struct World {
    chance: Entropy,
    /// For what is said of clocks, so that no other draw depends on it.
    clock_chance: Entropy,
    weather: Weather,
    evidence: Evidence,
    shape: Shape,
    cluster: Cluster,
    shards: Vec<Shard>,
    down_until: Mono,
    plans: Vec<Plan>,
    spaces: Vec<Space>,
    /// Names from a listing of topics.
    listed: Vec<String>,
    /// There are no more.
    listed_all: bool,
    publishers: Vec<Publisher>,
    /// Publishers there ever were.
    born: u64,
    clients: Vec<Client>,
    streams: BTreeMap<SessionId, Stream>,
    /// Closed since the last turn of their shard, which may still have something for them.
    closed: BTreeMap<SessionId, usize>,
    last_session: u64,
    last_command: u64,
    boots: u64,
    /// Number of the node's replies, but for progress marks.
    heard: u64,
    restore: Restore,
    moves: Option<Moves>,
    plant: Option<Plant>,
}

/// The seed by which publishers draw lanes, if something is published to lane high in the run of a seed: in about a third
/// of them.
fn lanes(seed: u64) -> Option<u64> {
    let mut chance = Entropy::new(seed ^ 0x1a9e_0017);
    chance.chance(350_000).then(|| chance.next())
}

impl World {
    /// The run of a seed.
    #[must_use]
    pub fn new(stage: Stage, seed: u64, plant: Option<Plant>, show: bool) -> World {
        let mut chance = Entropy::new(seed ^ 0x0770_411d);
        let is_on_kafka = stage == Stage::Kafka;
        let is_of_writers = is_on_kafka || Writers::are_of(seed);
        let cluster = cluster(stage, is_of_writers, plant, &mut chance);
        let mut swarm = Swarm::of(&mut chance);
        if is_of_writers {
            swarm = swarm.without_disks();
            if is_on_kafka {
                // Hours pass there in another way.
                swarm.leap = 0;
            }
        }
        let has_moves = Moves::are_of(seed) || plant.is_some_and(Plant::is_of_moves);
        let moves = (!is_of_writers && has_moves).then(|| Moves::of(seed));
        let disks = cluster.disks() * (1 + usize::from(moves.is_some()));
        let mut weather = Weather::new(swarm, disks, &mut chance, plant);
        let mut evidence = Evidence::new(show);
        if moves.is_some() {
            (weather.swarm.copied, weather.swarm.restored) = (0, 0);
        }
        if cluster.roles.is_some() {
            evidence.ledger.acks_outlive = true;
            // Nobody sets the files of a storage back under gateways that run.
            (weather.swarm.copied, weather.swarm.restored) = (0, 0);
        }
        if is_of_writers {
            evidence.ledger.places = Some(Places::default());
            evidence.count(Kind::ManyWriters);
        }
        let old_leaders = cluster.kafka().map(|kafka| kafka.has_old_leaders());
        evidence.ledger.old_ends = old_leaders == Some(true);
        let shape = Shape::of(&mut chance);
        let (audiences, filters) = (Audiences::new(seed), Filters::new(seed));
        let plans = (0..shape.spaces)
            .map(|number| plan(number, &shape, &cluster, &mut chance))
            .collect();
        evidence.ledger.lanes = lanes(seed);
        let publishers: Vec<Publisher> = (0..u32::try_from(shape.publishers).unwrap_or(1))
            .map(|number| Publisher::new(number, plant, &mut chance).with_lanes(lanes(seed)))
            .collect();
        let clients: Vec<Client> = (0..u32::try_from(shape.clients).unwrap_or(1))
            .map(|number| Client::new(number, plant, (&audiences, &filters), &mut chance))
            .collect();
        (evidence.ledger.audiences, evidence.ledger.filters) = (audiences, filters);
        evidence.ledger.selections = Selections::new(seed);
        evidence.ledger.expiry = expiry(seed, &cluster, is_of_writers);
        World {
            clock_chance: Entropy::new(seed ^ 0xc10c),
            chance,
            weather,
            evidence,
            shape,
            shards: (0..cluster.shards()).map(|_| Shard::default()).collect(),
            cluster,
            down_until: Mono(0),
            plans,
            spaces: Vec::new(),
            listed: Vec::new(),
            listed_all: false,
            born: shape.publishers,
            publishers,
            clients,
            streams: BTreeMap::new(),
            closed: BTreeMap::new(),
            last_session: 0,
            last_command: 0,
            boots: 0,
            heard: 0,
            restore: Restore::default(),
            moves,
            plant,
        }
    }

    /// Runs `steps` steps of faults, then heals.
    ///
    /// # Errors
    /// The first violation.
    pub fn run(mut self, steps: u64) -> Result<Report, Violation> {
        self.evidence.note(format_args!(
            "{:?} {:?} {:?}",
            self.shape, self.weather.swarm, self.plans
        ));
        if self.shards.len() > 1 {
            self.evidence.note(format_args!("{:?}", self.cluster));
        }
        self.count_shape();
        let is_tree = self.cluster.is_tree();
        self.evidence.add(Kind::Tree, u64::from(is_tree));
        for _ in 0..self.shape.steps(steps) {
            self.step()?;
        }
        self.heal()?;
        if let Some(kafka) = self.cluster.kafka() {
            kafka.count(&mut self.evidence);
        }
        Ok(self.evidence.report(&self.weather.machine))
    }

    fn count_shape(&mut self) {
        let Shape {
            spaces,
            topics,
            publishers,
            clients,
            ..
        } = self.shape;
        for (met, kind) in [
            (spaces >= 5, Kind::ManySpaces),
            (topics >= 500, Kind::ManyTopics),
            (publishers >= 20, Kind::ManyPublishers),
            (clients >= 50, Kind::ManyClients),
        ] {
            self.evidence.add(kind, u64::from(met));
        }
    }

    fn step(&mut self) -> Checked {
        self.weather
            .pass_time(PACE, &mut self.chance, &mut self.evidence);
        self.faults()?;
        if !self.is_running() && self.weather.now.mono >= self.down_until {
            self.boot()?;
        }
        self.start_nodes()?;
        self.administer();
        self.connect();
        self.work()?;
        self.exchange()?;
        self.after_restore();
        Ok(())
    }
}

/// The facts by which expiry is judged in a run that begins.
fn expiry(seed: u64, cluster: &Cluster, is_of_writers: bool) -> Expiry {
    let mut expiry = Expiry::new(seed);
    expiry.pass(START);
    expiry.is_astray = is_of_writers;
    expiry.is_exact = cluster.shards() == 1;
    expiry
}

/// The nodes of a run.
fn cluster(
    stage: Stage,
    is_of_writers: bool,
    plant: Option<Plant>,
    chance: &mut Entropy,
) -> Cluster {
    let cluster = match stage {
        Stage::Cluster | Stage::Kafka => Cluster::of(chance.fork(), plant),
        Stage::Storage | Stage::World => Cluster::alone(),
    };
    let cluster = if is_of_writers {
        cluster.of_writers(chance.clone().fork())
    } else {
        cluster
    };
    if stage == Stage::Kafka {
        cluster.on_kafka(START, plant)
    } else {
        cluster
    }
}

fn plan(number: u64, shape: &Shape, cluster: &Cluster, chance: &mut Entropy) -> Plan {
    Plan {
        name: format!("space-{number}"),
        logs: u16::try_from(chance.between(1, 3)).unwrap_or(1),
        topics: chance.between(1, shape.topics),
        retention: retention(cluster, chance),
        durability: durability(chance),
    }
}

fn durability(chance: &mut Entropy) -> Synced {
    tuning::durability(chance, 5)
}

fn retention(cluster: &Cluster, chance: &mut Entropy) -> Retention {
    match cluster.kafka() {
        Some(kafka) => kafka.retention(chance),
        None => tuning::retention(chance, 6, 100..=10_000, 2_000..=100_000),
    }
}
