//! Kafka: the model of brokers that all nodes of a run share, and what goes wrong with it.
//!
//! Each node has a client of its own. Partitions are dead for a while, for a day and more too; leaders are isolated and
//! go on answering, a node is cut off, brokers are slow. Once in a run, perhaps, somebody harms a log: an unclean
//! election cuts it, or its topic is deleted, or made again under its name. Log 0 is harmed by nobody, and its leader
//! is not isolated: what an old leader says of its end is too low, as Kafka allows, and a namespace would not be known.

use super::seldom_long;
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::ledger::Harm;
use crate::plant::Plant;
use crate::tuning;
use crate::world::node_storage::NodeStorage;
use crate::world::truth::Truth;
use airmail_log_kafka::brokers::{Brokers as _, Partition, Topic};
use airmail_log_kafka::config::StatementConfig;
use airmail_log_kafka::model::{Faults, ModelCluster};
use airmail_log_kafka::place::Offset;
use airmail_log_kafka::{ApartStorage, KafkaAppender, KafkaConfig, KafkaStorage};
use airmail_model::{LogId, Mono, Now, Retention};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Longest time for which a partition is dead, in microseconds, nearly always and now and then.
const DEAD_MICROS_MAX: [u64; 2] = [3_000_000, 25 * HOUR_MICROS];
/// Longest time for which a node is cut off, or an old leader answers, in microseconds, nearly always and now and then.
const APART_MICROS_MAX: [u64; 2] = [2_000_000, 90_000_000];
/// Longest time for which brokers are slow, in microseconds, nearly always and now and then.
const SLOW_MICROS_MAX: [u64; 2] = [500_000, 20_000_000];
/// Longest time that anything takes while brokers are slow, in microseconds.
const SLOWNESS_MICROS_MAX: u64 = 3_000_000;
/// Rate at which hours pass once a partition is dead for long.
const LEAPS_BEHIND_DEATH: u32 = 10_000;
/// Longest time that passes at once, in microseconds.
const LEAP_MICROS_MAX: u64 = 26 * HOUR_MICROS;
/// Microseconds of an hour.
const HOUR_MICROS: u64 = 3_600_000_000;
/// Beginning of the names of all topics.
const PREFIX: &str = "sim";

/// Rates of faults, in parts of a million for each step.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    dead: u32,
    isolated: u32,
    cut_off: u32,
    slow: u32,
    leaps: u32,
    harm: u32,
}

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::world) struct Kafka {
    cluster: ModelCluster,
    truth: Arc<Mutex<Truth>>,
    rates: Rates,
    faults: Faults,
    slow_until: Mono,
    /// A partition is dead for so long that this time is to be waited for.
    dead_until: Option<Mono>,
    chance: Entropy,
    plant: Option<Plant>,
}

impl Kafka {
    /// The brokers of a seed, whose clocks are right `now`, but for what the faults make of them.
    pub(super) fn of(now: Now, mut chance: Entropy, plant: Option<Plant>) -> Kafka {
        let mut rate = |high: u64| {
            if chance.coin() {
                u32::try_from(chance.between(high / 20, high)).unwrap_or(0)
            } else {
                0
            }
        };
        let rates = Rates {
            dead: rate(5_000),
            isolated: rate(5_000),
            cut_off: rate(5_000),
            slow: rate(3_000),
            leaps: rate(2_000),
            harm: if rate(2) > 0 { 2_000 } else { 0 },
        };
        let delay = Duration::from_micros(rate(100_000).into());
        let mut share = |high: u64| u16::try_from(rate(high)).unwrap_or(0);
        let faults = Faults {
            delay_min: Duration::ZERO,
            delay_max: delay,
            unknown_stored: share(20),
            unknown_lost: share(20),
            twice: share(100),
            leader_moves: share(50),
            // Where records are kept for seconds, they must not be old when they come.
            skew_ms: share(if rates.leaps > 0 { 2_500 } else { 250 }),
            old_answers: 0,
            unanswered: share(30),
            full: share(30),
            holes: share(50),
        };
        let cluster = ModelCluster::new(chance.next(), faults);
        // Brokers go by the time that they were told first.
        cluster.client().poll(now, &mut Vec::new());
        Kafka {
            truth: Arc::new(Mutex::new(Truth::new(cluster.clone()))),
            cluster,
            rates,
            faults,
            slow_until: Mono(0),
            dead_until: None,
            chance,
            plant,
        }
    }

    /// Whether an old leader may say where a log ends.
    pub(in crate::world) const fn has_old_leaders(&self) -> bool {
        self.rates.isolated > 0
    }

    /// A log's retention. Where hours pass at once there is none: nobody could state what was read before it went.
    pub(in crate::world) fn retention(&self, chance: &mut Entropy) -> Retention {
        if self.rates.leaps > 0 {
            return Retention::default();
        }
        tuning::retention(chance, 4, 2_000..=10_000, 400_000..=1_000_000)
    }

    /// The truth about the logs.
    pub(in crate::world) fn truth(&self) -> Arc<Mutex<Truth>> {
        Arc::clone(&self.truth)
    }

    /// The storage of a node that starts.
    pub(super) fn start(&mut self) -> NodeStorage {
        let config = KafkaConfig {
            prefix: PREFIX.to_owned(),
            cluster: 1,
            seed: self.chance.next(),
            is_flushed: true,
            queue_bytes: 1 << self.chance.between(17, 22),
            recent_bytes: [0, 2_000, 4 << 20][self.chance.index(3)],
            catch_up_readers: u8::try_from(self.chance.between(1, 4)).unwrap_or(1),
            statements: StatementConfig {
                interval: Duration::from_millis(self.chance.between(20, 200)),
                bytes: 1 << self.chance.between(11, 16),
                ..StatementConfig::default()
            },
            bug: self.plant.and_then(Plant::in_kafka),
            ..KafkaConfig::default()
        };
        let appender = self.chance.coin().then(|| {
            let brokers = self.cluster.client();
            KafkaAppender::new(config.clone(), brokers)
        });
        let storage = KafkaStorage::new(config, self.cluster.client());
        match appender {
            Some(appender) => NodeStorage::Apart(Box::new(ApartStorage::new(appender, storage))),
            None => NodeStorage::Kafka(Box::new(storage)),
        }
    }

    /// Lets the brokers fail, as the seed says. Time that passes at once, if some does.
    pub(super) fn fail(&mut self, now: Mono, evidence: &mut Evidence) -> Option<Duration> {
        self.slow_down(now, evidence);
        if self.chance.chance(self.rates.dead) {
            self.stop(now, evidence);
        }
        if self.chance.chance(self.rates.isolated)
            && let Some(partition) = self.any_log()
        {
            let micros = seldom_long(&mut self.chance, APART_MICROS_MAX);
            evidence.count(Kind::LeaderIsolated);
            evidence.note(format_args!(
                "{} {partition}: leader isolated for {micros} us",
                now.0
            ));
            self.cluster
                .isolate_leader(&partition, Duration::from_micros(micros));
        }
        if self.chance.chance(self.rates.cut_off) {
            let micros = seldom_long(&mut self.chance, APART_MICROS_MAX);
            let node = self.chance.index(8);
            evidence.count(Kind::BrokersCutOff);
            evidence.note(format_args!(
                "{} client {node} is cut off for {micros} us",
                now.0
            ));
            self.cluster.cut_off(node, Duration::from_micros(micros));
            self.truth.lock().is_late = true;
        }
        if self.chance.chance(self.rates.harm) {
            self.harm(now, evidence);
        }
        let rate = match self.dead_until {
            Some(_) => LEAPS_BEHIND_DEATH,
            None => self.rates.leaps,
        };
        self.chance.chance(rate).then(|| {
            evidence.count(Kind::HoursPassed);
            let micros = self.chance.below(LEAP_MICROS_MAX);
            let behind = Duration::from_micros(self.chance.below(DEAD_MICROS_MAX[0]));
            let dead = self.dead_until.take().map(|until| until.since(now));
            let time = dead.map_or(Duration::from_micros(micros), |dead| dead + behind);
            evidence.note(format_args!("{} then {time:?} pass", now.0));
            time
        })
    }

    /// A partition is dead for a while; one of a log, if it is for long.
    fn stop(&mut self, now: Mono, evidence: &mut Evidence) {
        let micros = seldom_long(&mut self.chance, DEAD_MICROS_MAX);
        let is_long = micros > DEAD_MICROS_MAX[0];
        let partition = if is_long {
            self.any_log()
        } else {
            self.any_partition()
        };
        let Some(partition) = partition else {
            // Input: nobody has written to any log yet.
            return;
        };
        let time = Duration::from_micros(micros);
        evidence.count(if is_long {
            Kind::DeadForLong
        } else {
            Kind::PartitionDead
        });
        evidence.note(format_args!("{} {partition} is dead for {time:?}", now.0));
        if is_long && self.rates.leaps > 0 {
            // What has waited for it is late only if it is back in this run.
            self.dead_until = Some(now.plus(time));
        }
        self.cluster.stop(&partition, time);
        self.truth.lock().is_late = true;
    }

    /// Lets the brokers be slow for a while, or ends it.
    fn slow_down(&mut self, now: Mono, evidence: &mut Evidence) {
        if self.slow_until > Mono(0) && self.slow_until <= now {
            self.slow_until = Mono(0);
            self.cluster.set_faults(self.faults);
        }
        if self.slow_until == Mono(0) && self.chance.chance(self.rates.slow) {
            let micros = seldom_long(&mut self.chance, SLOW_MICROS_MAX);
            self.slow_until = now.plus(Duration::from_micros(micros));
            evidence.count(Kind::BrokersSlow);
            evidence.note(format_args!("{} brokers are slow for {micros} us", now.0));
            self.truth.lock().is_late = true;
            let slowness = self.chance.below(SLOWNESS_MICROS_MAX);
            self.cluster.set_faults(Faults {
                delay_max: Duration::from_micros(slowness),
                ..self.faults
            });
        }
    }

    /// Somebody harms a log, once in a run.
    fn harm(&mut self, now: Mono, evidence: &mut Evidence) {
        let logs = self.truth.lock().sound();
        let Some(log) = self.chance.pick(&logs).copied() else {
            // Input: nobody has written to any log yet.
            return;
        };
        let Some(partition) = self.truth.lock().partition(log) else {
            // Input: nobody has written to any log yet.
            return;
        };
        self.rates.harm = 0;
        let kind = self.chance.below(3);
        let harm = if kind == 0 { Harm::Cut } else { Harm::Gone };
        let harmed = self.truth.lock().harm(log, harm);
        for log in &harmed {
            evidence.ledger.harm(*log, harm);
        }
        let topic = &partition.topic;
        match kind {
            0 => {
                let (low, high) = (self.cluster.low(&partition), self.cluster.high(&partition));
                let at = Offset(self.chance.between(low.0, high.0));
                self.cluster.truncate(&partition, at);
                evidence.count(Kind::UncleanElection);
            }
            1 => {
                let records = if self.chance.coin() {
                    self.chance.index(200)
                } else {
                    0
                };
                self.cluster.remake_badly(topic, records);
                evidence.count(Kind::TopicMadeAgain);
            }
            _ => {
                self.cluster.delete(topic);
                self.truth.lock().deleted(topic);
                evidence.count(Kind::TopicDeleted);
            }
        }
        evidence.note(format_args!(
            "{} {harmed:?} are harmed: {harm:?} {partition}",
            now.0
        ));
    }

    fn topics(&self) -> Vec<Topic> {
        self.cluster.topics()
    }

    /// Any partition.
    fn any_partition(&mut self) -> Option<Partition> {
        let topics = self.topics();
        let topic = self.chance.pick(&topics)?;
        let count = usize::from(self.cluster.partitions(topic));
        let number = u16::try_from(self.chance.index(count)).unwrap_or(0);
        Some(Partition::new(topic, number))
    }

    /// The partition of any log but log 0.
    fn any_log(&mut self) -> Option<Partition> {
        let mut truth = self.truth.lock();
        let logs = truth.sound();
        let log: &LogId = self.chance.pick(&logs)?;
        truth.partition(*log)
    }

    /// The brokers fail nobody any more.
    pub(super) fn heal(&mut self) {
        self.rates = Rates::default();
        self.dead_until = None;
        self.cluster.calm();
    }

    /// Counts what the brokers were given that nobody is given.
    pub(in crate::world) fn count(&self, evidence: &mut Evidence) {
        let left_out = self.truth.lock().left_out;
        evidence.add(Kind::CopyLeftOut, left_out.copies);
        evidence.add(Kind::StragglerLeftOut, left_out.stragglers);
    }
}
