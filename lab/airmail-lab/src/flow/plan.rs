//! Plan of the runs: a preset's parameters, and the command line's changes.

use super::FlowArgs;
use super::case::{Case, Place, Setup, Storage};
use airmail_bench::run::Share;
use airmail_experiments::flow::{Distribution, Load, PERIOD_BOUNDS, PERIOD_S, Throttling};
use airmail_flow::LimiterKind;

/// The bound of a publisher that leaves it to the node: it sends what its SDK has room for.
const UNBOUNDED: u64 = 1_000_000;
/// Memory of an SDK without a bound, in bytes: enough to offer always more than a node takes, and
/// so little that the wait in it does not become most of the delivery latency.
const UNBOUNDED_MEMORY_BYTES: usize = 2 << 20;
/// Messages between the counters of a publisher that has no limiter to count for.
const COUNTED_MESSAGES: u64 = 5_000;

/// Size of a batch that an SDK cuts when it is held back, in bytes.
const BATCH_BYTES: usize = 64 << 10;
/// Bytes of a batch that are no message, and those of a message that are no payload.
const BATCH_HEAD_BYTES: usize = 128;
const MESSAGE_HEAD_BYTES: usize = 20;

/// A publisher's gate where nothing else is asked for: as the node's own comes.
const BOUND_INITIAL: u64 = 256;
const WINDOW_MESSAGES: u64 = 1_000;
const DELTA: u64 = 20;
const LATENCY_FLOOR_MS: u64 = 10;

/// Limiters that are compared where no others are named, by place.
const LIMITERS_PILOT: [LimiterKind; 2] = [LimiterKind::Gradient, LimiterKind::Ladder];
const LIMITERS_PUBLISHER: [LimiterKind; 1] = [LimiterKind::LatencyTarget];
/// Those of the paper.
const LIMITERS_PAPER: [LimiterKind; 2] = [LimiterKind::LastThreePoints, LimiterKind::Adaptive];

/// Parameters to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Preset {
    /// A node as it comes: runs of 5 s, its own settings, 1, 2 and 8 publishers
    Node,
    /// The paper's for memory: 8 million, from 200 in flight, N 25,000, delta 20
    Memory,
    /// The paper's for Kafka, on disk unless --log says where one is: 70 million, from 1,000 in flight, N 50,000, delta 100
    Kafka,
}

/// Settings of gates that were asked for; the rest is as it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// N.
    pub(super) window: Option<u64>,
    pub(super) delta: Option<u64>,
    pub(super) initial: Option<u64>,
    pub(super) floor_ms: Option<u64>,
}

/// When a run ends: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Until {
    /// Messages of each publisher.
    pub(super) messages: u64,
    pub(super) duration_ms: Option<u64>,
}

impl Until {
    /// After a time.
    pub(super) fn time_ms(time_ms: u64) -> Until {
        Until {
            messages: u64::MAX,
            duration_ms: Some(time_ms),
        }
    }
}

/// Plan of the runs.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) topics: Vec<u32>,
    pub(super) distributions: Vec<Distribution>,
    /// Limiters that were asked for; none: those that the place has.
    limiters: Vec<LimiterKind>,
    pub(super) storages: Vec<Storage>,
    pub(super) places: Vec<Place>,
    pub(super) publishers: Vec<u32>,
    pub(super) gates: Asked,
    /// Messages of each publisher; absent: as many as there is time for.
    pub(super) messages: Option<u64>,
    pub(super) repeat: u32,
    /// Size of a payload, in bytes.
    pub(super) size: usize,
    pub(super) duration_ms: Option<u64>,
    /// Time of each run of the sweep. 0: there is none.
    pub(super) sweep_ms: u64,
    /// Runs of each bound.
    pub(super) sweep_runs: u32,
    /// Time of each capacity, where it changes. 0: it does not.
    pub(super) change_ms: u64,
    /// Time of a batch at full capacity there, in microseconds.
    pub(super) service_us: u32,
    /// Neighbours on the disk while its capacity changes. 0: it does not.
    pub(super) neighbours: u32,
}

impl Plan {
    pub(super) fn new(args: &FlowArgs) -> Plan {
        let mut plan = Plan::of(args.preset);
        if args.common.quick {
            plan = Plan {
                topics: vec![1],
                distributions: vec![Distribution::Uniform],
                publishers: vec![2],
                repeat: 1,
                duration_ms: Some(2_000),
                sweep_ms: 300,
                sweep_runs: 1,
                change_ms: 0,
                ..plan
            };
        }
        choose(&mut plan.topics, &args.topics);
        choose(&mut plan.distributions, &args.distributions);
        choose(&mut plan.limiters, &args.limiters);
        if args.log.is_some() {
            plan.storages = vec![Storage::Kafka, Storage::KafkaApart];
        }
        choose(&mut plan.storages, &args.storages);
        choose(&mut plan.places, &args.side);
        choose(&mut plan.publishers, &args.publishers);
        plan.gates = Asked {
            window: args.window.or(plan.gates.window),
            delta: args.delta.or(plan.gates.delta),
            initial: args.initial.or(plan.gates.initial),
            floor_ms: args.floor.or(plan.gates.floor_ms),
        };
        plan.messages = args.messages.or(plan.messages);
        plan.repeat = args.repeat.unwrap_or(plan.repeat);
        plan.duration_ms = args.duration.or(plan.duration_ms);
        plan.sweep_ms = args.sweep.unwrap_or(plan.sweep_ms);
        plan.sweep_runs = args.sweep_runs.unwrap_or(plan.sweep_runs);
        plan.change_ms = args.change.unwrap_or(plan.change_ms);
        plan.size = args.size as usize;
        plan.service_us = args.service_us;
        plan.neighbours = args.neighbours;
        if plan.storages.iter().all(|storage| storage.is_on_kafka()) {
            plan.change_ms = 0;
        }
        if args.target.is_some() {
            plan.storages = vec![Storage::Target];
            // Only a node that is started for it gets other settings.
            plan.places = vec![Place::Publisher];
            plan.change_ms = 0;
        }
        plan
    }

    /// The plan of a preset, as it comes.
    pub(super) fn of(preset: Preset) -> Plan {
        let node = Plan {
            topics: vec![1, 16, 256],
            distributions: Distribution::ALL.into(),
            limiters: Vec::new(),
            storages: vec![Storage::Memory, Storage::Disk],
            places: vec![Place::Publisher, Place::Pilot],
            publishers: vec![1, 2, 8],
            gates: Asked::default(),
            messages: None,
            repeat: 5,
            size: 100,
            duration_ms: Some(5_000),
            sweep_ms: 1_500,
            sweep_runs: 3,
            change_ms: 5_000,
            service_us: 1_000,
            neighbours: 0,
        };
        let paper = Plan {
            limiters: LIMITERS_PAPER.into(),
            places: vec![Place::Publisher],
            publishers: vec![2],
            duration_ms: None,
            change_ms: 0,
            repeat: 3,
            ..node.clone()
        };
        match preset {
            Preset::Node => node,
            Preset::Memory => Plan {
                storages: vec![Storage::Memory],
                messages: Some(8_000_000),
                gates: asked(25_000, 20, 200),
                ..paper
            },
            Preset::Kafka => Plan {
                storages: vec![Storage::Disk],
                messages: Some(70_000_000),
                gates: asked(50_000, 100, 1_000),
                ..paper
            },
        }
    }

    /// All setups, those that differ least one after the other.
    pub(super) fn setups(&self) -> Vec<Setup> {
        let mut setups = Vec::new();
        for &storage in &self.storages {
            for &place in &self.places {
                for &publishers in &self.publishers {
                    for &topics in &self.topics {
                        setups.extend(self.distributions.iter().map(|&distribution| Setup {
                            storage,
                            place,
                            publishers,
                            topics,
                            distribution,
                        }));
                    }
                }
            }
        }
        setups
    }

    /// Whether the capacity of a disk changes.
    pub(super) fn shares_the_disk(&self) -> bool {
        let changing = self.changing_setups().into_iter();
        changing
            .map(|setup| setup.storage)
            .any(|storage| storage == Storage::SharedDiskAWhile)
    }

    /// Setups in which the capacity changes: at its full capacity.
    pub(super) fn changing_setups(&self) -> Vec<Setup> {
        // Without a sweep there is no knee to come back to.
        if self.change_ms == 0 || self.sweep_ms == 0 {
            return Vec::new();
        }
        let mut storages = vec![Storage::Served(self.service_us)];
        if self.neighbours > 0 && self.storages.contains(&Storage::Disk) {
            storages.push(Storage::SharedDiskAWhile);
        }
        let mut changing = Vec::new();
        for storage in storages {
            for &place in &self.places {
                changing.extend(self.publishers.iter().map(|&publishers| Setup {
                    storage,
                    place,
                    publishers,
                    topics: 1,
                    distribution: Distribution::Uniform,
                }));
            }
        }
        changing
    }

    /// Limiters that are compared at a place, beside a fixed bound; none of them is `fixed`.
    pub(super) fn limiters(&self, place: Place) -> Vec<LimiterKind> {
        let of_place: &[LimiterKind] = match place {
            Place::Pilot => &LIMITERS_PILOT,
            Place::Publisher => &LIMITERS_PUBLISHER,
        };
        let mut limiters = if self.limiters.is_empty() {
            of_place.to_vec()
        } else {
            self.limiters.clone()
        };
        limiters.retain(|limiter| *limiter != LimiterKind::Fixed);
        limiters
    }

    /// Whether a fixed bound is of interest also where nothing says which would be the best.
    pub(super) fn asks_for_fixed(&self) -> bool {
        self.limiters.contains(&LimiterKind::Fixed)
    }

    /// All limiters at any place, `fixed` first.
    pub(super) fn all_limiters(&self) -> Vec<LimiterKind> {
        let mut all = vec![LimiterKind::Fixed];
        let places = self.places.iter();
        for limiter in places.flat_map(|place| self.limiters(*place)) {
            if !all.contains(&limiter) {
                all.push(limiter);
            }
        }
        all
    }

    /// Number of publishers of the figures that have one: the paper's two, if there are.
    pub(super) fn publishers_shown(&self) -> u32 {
        let first = self.publishers.first().copied().unwrap_or(1);
        if self.publishers.contains(&2) {
            2
        } else {
            first
        }
    }

    /// N of a publisher's gate, in messages.
    pub(super) fn window(&self) -> u64 {
        self.gates.window.unwrap_or(WINDOW_MESSAGES)
    }

    /// First bound of a publisher's gate, in messages.
    pub(super) fn initial(&self) -> u64 {
        self.gates.initial.unwrap_or(BOUND_INITIAL)
    }

    /// The lowest bound of a sweep: one batch in the pilot, because that is what goes at once.
    pub(super) fn lowest_bound(&self, place: Place) -> u64 {
        match place {
            Place::Publisher => 1,
            Place::Pilot => {
                let room = BATCH_BYTES - BATCH_HEAD_BYTES;
                (room / (self.size + MESSAGE_HEAD_BYTES)).max(1) as u64
            }
        }
    }

    /// Settings of each publisher's gate, with this limiter.
    pub(super) fn throttling(&self, limiter: LimiterKind) -> Throttling {
        Throttling {
            limiter,
            bound_initial: self.initial(),
            delta: self.gates.delta.unwrap_or(DELTA),
            window_messages: self.window(),
            latency_floor_ms: self.gates.floor_ms.unwrap_or(LATENCY_FLOOR_MS),
        }
    }

    /// Settings of a gate with a fixed bound: windows as long as anybody's, at this throughput of one
    /// limiter.
    pub(super) fn fixed(&self, bound: u64, rate_per_s: f64) -> Throttling {
        let round_trips = bound.saturating_mul(PERIOD_BOUNDS as u64);
        let window = self.window().max(round_trips);
        Throttling {
            bound_initial: bound,
            window_messages: window.max((rate_per_s * PERIOD_S) as u64),
            ..self.throttling(LimiterKind::Fixed)
        }
    }

    /// When a run of a case ends.
    pub(super) fn until(&self) -> Until {
        Until {
            messages: self.messages.unwrap_or(u64::MAX),
            duration_ms: self.duration_ms,
        }
    }

    /// Load of a setup whose publishers have this gate, if the limiter is theirs. It has neither a node nor
    /// a number yet.
    pub(super) fn load(&self, setup: &Setup, gate: Throttling, until: Until) -> Load {
        let load = Load {
            url: String::new(),
            namespace: None,
            id: 0,
            prefix: String::new(),
            topics: setup.topics,
            distribution: setup.distribution,
            publishers: setup.publishers,
            share: Share::ALL,
            size: self.size,
            messages: until.messages,
            duration_ms: until.duration_ms,
            publish_memory_bytes: None,
            throttling: gate,
            watch_pilot: false,
        };
        match setup.place {
            Place::Publisher => load,
            Place::Pilot => Load {
                publish_memory_bytes: Some(UNBOUNDED_MEMORY_BYTES),
                throttling: Throttling {
                    bound_initial: UNBOUNDED,
                    window_messages: COUNTED_MESSAGES,
                    ..self.throttling(LimiterKind::Fixed)
                },
                watch_pilot: true,
                ..load
            },
        }
    }

    /// All cases, those that are compared one after the other.
    pub(super) fn cases(&self) -> Vec<Case> {
        let setups = self.setups().into_iter();
        let cases = setups.flat_map(|setup| self.cases_of(setup));
        cases.collect()
    }

    /// Cases of a setup: the fixed bound, then the limiters.
    pub(super) fn cases_of(&self, setup: Setup) -> Vec<Case> {
        let fixed = std::iter::once(LimiterKind::Fixed);
        let limiters = fixed.chain(self.limiters(setup.place));
        limiters.map(|limiter| Case { setup, limiter }).collect()
    }
}

fn asked(window: u64, delta: u64, initial: u64) -> Asked {
    Asked {
        window: Some(window),
        delta: Some(delta),
        initial: Some(initial),
        floor_ms: None,
    }
}

/// Replaces the preset's choice by the command line's, each value once, if it has any.
fn choose<T: Copy + PartialEq>(chosen: &mut Vec<T>, asked: &[T]) {
    if !asked.is_empty() {
        chosen.clear();
        for &one in asked {
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
    }
}

#[cfg(test)]
#[path = "plan/tests.rs"]
pub(super) mod tests;
