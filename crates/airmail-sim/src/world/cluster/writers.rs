//! Writers: nodes that are processes of their own and append to the same logs, which are on none of them. Each has a
//! handle of its own, and knows what the others do only by reading.
//!
//! The logs stand for an engine elsewhere that loses nothing. Any node is killed, and comes back with nothing; nodes stand
//! still, and their appends come late. Appends are refused, stored twice, and of some nobody knows whether they are stored.
//! In half of the runs the logs of a namespace have to be provisioned for.
//!
//! A log that is opened without what was made for it is never opened, and what is withdrawn though log 0 names it is a bug
//! of the logs themselves. In the end nothing may be left of what was made for namespaces that are deleted.
//!
//! In the runs of [`Stage::Kafka`](crate::Stage::Kafka) the logs are on the model of Kafka's brokers ([`Kafka`]), and a
//! node may come late.

use super::kafka::Kafka;
use super::{CLOCK_MICROS_MAX, Cluster, seldom_long};
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::invariants::{Checked, Violation};
use crate::ledger::{Harm, Ledger};
use crate::message::identify;
use crate::plant::Plant;
use crate::world::World;
use crate::world::node_storage::NodeStorage;
use airmail_log::many_writers::{SharedLogs, SharedSettings};
use airmail_model::{LogId, Mono, Now, random};
use std::collections::BTreeMap;
use std::time::Duration;

/// One run in so many is of such nodes.
const RUNS: u64 = 6;
/// Tells the draw of these runs from all others. The seeds in `tests/seeds.rs` are of none: they walk what they are kept
/// for.
const DRAW: u64 = 0x6d61_6e79;
/// Remainder of the draws that are of such runs.
const DRAWN: u64 = 1;
/// Longest time that a call, or its answer, takes, in microseconds.
const DELAY_MICROS_MAX: u64 = 150_000;
/// Longest time until a node is back, in microseconds, nearly always and now and then.
const DOWN_MICROS_MAX: [u64; 2] = [200_000, 5_000_000];

/// Latest that a node comes which is not there from the beginning, in microseconds.
const JOIN_MICROS_MAX: u64 = 5_000_000;
/// Microseconds of a day.
const DAY_MICROS: u64 = 86_400_000_000;
/// Factor by which clocks are farther from the truth in some runs on Kafka.
const CLOCKS_ASTRAY: i64 = 400;

/// A process.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    is_up: bool,
    /// It comes back then.
    back: Mono,
}

/// The engine that has the logs.
#[derive(Debug)]
enum Engine {
    Memory(SharedLogs),
    Kafka(Box<Kafka>),
}

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::world) struct Writers {
    engine: Engine,
    has_begun: bool,
    nodes: Vec<Node>,
    /// Rate of kills, in parts of a million for each step.
    kills: u32,
    chance: Entropy,
    /// Batches of each log whose messages the ledger knows.
    read: BTreeMap<LogId, usize>,
}

impl Writers {
    /// Whether the run of a seed is of such nodes.
    pub(in crate::world) const fn are_of(seed: u64) -> bool {
        random::nth(seed ^ DRAW, 0) % RUNS == DRAWN
    }

    fn of(nodes: usize, mut chance: Entropy) -> Writers {
        // Shifts no other draw.
        let provisions = chance.clone().fork().coin();
        let mut rate = |high: u64| {
            if chance.coin() {
                u32::try_from(chance.between(high / 20, high)).unwrap_or(0)
            } else {
                0
            }
        };
        let (kills, delay) = (rate(6_000), rate(DELAY_MICROS_MAX));
        let (busy, unknown, twice) = (rate(50_000), rate(20_000), rate(100_000));
        let apart = rate(2_000_000);
        let settings = SharedSettings {
            seed: chance.next(),
            clocks_apart: Duration::from_micros(apart.into()),
            delay: Duration::from_micros(delay.into()),
            busy,
            unknown,
            twice,
            provisions,
        };
        Writers {
            engine: Engine::Memory(SharedLogs::new(settings)),
            has_begun: false,
            nodes: vec![Node::default(); nodes],
            kills,
            chance,
            read: BTreeMap::new(),
        }
    }

    /// The same nodes, with their logs on Kafka's brokers.
    fn on_kafka(mut self, now: Now, plant: Option<Plant>) -> Writers {
        self.engine = Engine::Kafka(Box::new(Kafka::of(now, self.chance.fork(), plant)));
        if self.chance.coin()
            && let Some(last) = self.nodes.last_mut()
        {
            let time = Duration::from_micros(self.chance.between(1, JOIN_MICROS_MAX));
            last.back = now.mono.plus(time);
        }
        self
    }

    /// The brokers, if the logs are on Kafka.
    pub(in crate::world) fn kafka(&self) -> Option<&Kafka> {
        match &self.engine {
            Engine::Memory(_) => None,
            Engine::Kafka(kafka) => Some(kafka),
        }
    }

    /// Whether the nodes have ever begun.
    pub(in crate::world) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether a node is not there from the beginning.
    pub(in crate::world) fn is_late(&self, node: usize) -> bool {
        self.nodes[node].back > Mono(0)
    }

    pub(super) fn due(&self, now: Mono) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        let due = nodes.filter(|(_, node)| !node.is_up && node.back <= now && self.has_begun());
        due.map(|(node, _)| node).collect()
    }

    /// The storage of a node that starts.
    pub(in crate::world) fn start(&mut self, node: usize) -> NodeStorage {
        self.nodes[node].is_up = true;
        self.has_begun = true;
        match &mut self.engine {
            Engine::Memory(logs) => NodeStorage::Writer(logs.handle()),
            Engine::Kafka(kafka) => kafka.start(),
        }
    }

    /// Lets the engine fail, as the seed says. Time that passes at once, if some does.
    pub(super) fn fail(&mut self, now: Mono, evidence: &mut Evidence) -> Option<Duration> {
        match &mut self.engine {
            Engine::Memory(_) => None,
            Engine::Kafka(kafka) => kafka.fail(now, evidence),
        }
    }

    /// Draws a node that is killed in this step, if one is.
    pub(super) fn victim(&mut self, now: Mono, evidence: &mut Evidence) -> Option<usize> {
        if !self.chance.chance(self.kills) {
            return None;
        }
        let node = self.chance.index(self.nodes.len());
        if !self.nodes[node].is_up {
            return None;
        }
        let time = Duration::from_micros(seldom_long(&mut self.chance, DOWN_MICROS_MAX) + 1);
        self.nodes[node] = Node {
            is_up: false,
            back: now.plus(time),
        };
        evidence.count(Kind::WriterKilled);
        evidence.note(format_args!("{} node {node} is killed", now.0));
        Some(node)
    }

    /// All nodes come back, and the logs fail nobody any more.
    pub(super) fn heal(&mut self) {
        self.kills = 0;
        match &mut self.engine {
            Engine::Memory(logs) => logs.calm(),
            Engine::Kafka(kafka) => kafka.heal(),
        }
        for node in &mut self.nodes {
            node.back = node.back.min(Mono(1));
        }
    }

    /// Tells the ledger where the messages of logs stand that have come since.
    ///
    /// # Errors
    /// One is given twice.
    pub(in crate::world) fn read(
        &mut self,
        logs: impl IntoIterator<Item = LogId>,
        ledger: &mut Ledger,
    ) -> Checked {
        for log in logs {
            let from = self.read.entry(log).or_default();
            let (batches, next) = match &self.engine {
                Engine::Memory(logs) => logs.given(log, *from),
                Engine::Kafka(kafka) => {
                    let truth = kafka.truth();
                    let mut truth = truth.lock();
                    let (batches, next) = truth.given(log, *from);
                    (batches.to_vec(), next)
                }
            };
            *from = next;
            for stored in batches {
                for record in stored.batch.iter() {
                    let Some((id, _)) = identify(record.payload) else {
                        let detail = format!("{log} has what nobody published");
                        return Err(Violation::new("G7 what is served was published", detail));
                    };
                    let number = stored.base.plus(record.index.into());
                    ledger.stands(id, (number, stored.appended))?;
                }
            }
        }
        if let Engine::Kafka(kafka) = &self.engine {
            let truth = kafka.truth();
            let mut truth = truth.lock();
            truth.check_topics()?;
            for log in truth.doubted() {
                ledger.harm(log, Harm::Cut);
            }
        }
        Ok(())
    }
}

impl World {
    /// Waits until the logs have nothing any more that was made for namespaces which are deleted.
    ///
    /// # Errors
    /// Something is left.
    pub(in crate::world) fn until_provisions_are_gone(&mut self) -> Checked {
        let engine = self.cluster.writers.as_ref().map(|of| &of.engine);
        let Some(Engine::Memory(logs)) = engine else {
            // Input: a run of other nodes, or on Kafka.
            return Ok(());
        };
        let logs = logs.clone();
        self.until("deleted", |world| {
            let catalogs = world.catalogs();
            let is_there = |id| catalogs.iter().all(|catalog| catalog.get(id).is_some());
            logs.provisioned().into_iter().all(is_there)
        })?;
        let is_provisioned = !logs.provisioned().is_empty();
        self.evidence
            .add(Kind::Provisioned, u64::from(is_provisioned));
        self.evidence.add(Kind::Withdrawn, logs.withdrawn());
        Ok(())
    }
}

impl Cluster {
    /// The same shards, each with a handle of its own of the same logs.
    pub(in crate::world) fn of_writers(mut self, mut chance: Entropy) -> Cluster {
        if self.roles.take().is_some() {
            self.shards = chance.index(3) + 2;
            self.clocks.resize(self.shards, 0);
        }
        self.writers = Some(Writers::of(self.shards, chance));
        self
    }

    /// The same nodes, whose logs are on Kafka's brokers. In some runs their clocks are minutes from the truth, or one is a
    /// day ahead.
    pub(in crate::world) fn on_kafka(mut self, now: Now, plant: Option<Plant>) -> Cluster {
        match self.chance.below(6) {
            0 | 1 => {
                let most = CLOCK_MICROS_MAX.cast_signed() * CLOCKS_ASTRAY;
                for clock in &mut self.clocks {
                    *clock = (*clock * CLOCKS_ASTRAY).clamp(-most, most);
                }
            }
            2 => {
                let ahead = self.chance.between(DAY_MICROS, 2 * DAY_MICROS);
                self.clocks[0] = ahead.cast_signed();
            }
            _ => {}
        }
        self.writers = self.writers.map(|writers| writers.on_kafka(now, plant));
        self
    }

    /// Lets the engine of nodes that append to the same logs fail. Time that passes at once, if some does.
    pub(in crate::world) fn fail_engine(
        &mut self,
        now: Mono,
        evidence: &mut Evidence,
    ) -> Option<Duration> {
        self.writers.as_mut()?.fail(now, evidence)
    }

    /// A node does nothing for a while, and reads late what retention may have removed.
    pub(in crate::world) fn falls_behind(&self) {
        if let Some(kafka) = self.kafka() {
            kafka.truth().lock().is_late = true;
        }
    }

    /// The model of Kafka's brokers, if the logs are there.
    pub(in crate::world) fn kafka(&self) -> Option<&Kafka> {
        self.writers.as_ref()?.kafka()
    }
}
