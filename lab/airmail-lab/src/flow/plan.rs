//! Plan of the runs: a preset's parameters, and the command line's changes.

use super::FlowArgs;
use super::case::{Case, Place, Storage};
use airmail_bench::run::Share;
use airmail_experiments::flow::{Distribution, Load, Throttling};
use airmail_flow::{LimiterKind, LimiterSettings};

/// Publishers, each with a subscriber beside it: the paper's.
pub(super) const PUBLISHERS: u32 = 2;
/// The bound of a publisher that leaves it to the node: it sends what its SDK has room for.
const UNBOUNDED: u64 = 1_000_000;
/// Memory of an SDK without a bound, in bytes: enough to offer always more than a node takes, and
/// so little that the wait in it does not become most of the delivery latency.
const UNBOUNDED_MEMORY_BYTES: usize = 2 << 20;

/// Parameters to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Preset {
    /// 500,000 messages a publisher or 8 s, from 200 in flight, N 5,000, delta 20
    Short,
    /// The paper's for memory: 8 million, from 200 in flight, N 25,000, delta 20
    Memory,
    /// The paper's for Kafka, on disk: 70 million, from 1,000 in flight, N 50,000, delta 100
    Kafka,
}

/// Plan of the runs.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) topics: Vec<u32>,
    pub(super) distributions: Vec<Distribution>,
    pub(super) limiters: Vec<LimiterKind>,
    pub(super) storages: Vec<Storage>,
    pub(super) places: Vec<Place>,
    /// Messages of each publisher.
    pub(super) messages: u64,
    /// N.
    pub(super) window: u64,
    pub(super) delta: u64,
    pub(super) initial: u64,
    pub(super) repeat: u32,
    /// Size of a payload, in bytes.
    pub(super) size: usize,
    pub(super) duration_ms: Option<u64>,
    /// 0: there is none.
    pub(super) sweep_ms: u64,
}

impl Plan {
    pub(super) fn new(args: &FlowArgs) -> Plan {
        let mut plan = Plan::of(args.preset);
        if args.common.quick {
            plan = Plan {
                topics: vec![1],
                distributions: vec![Distribution::Uniform],
                repeat: 1,
                duration_ms: Some(2_000),
                sweep_ms: 300,
                ..plan
            };
        }
        let replace = |value: &mut u64, asked: Option<u64>| *value = asked.unwrap_or(*value);
        replace(&mut plan.messages, args.messages);
        replace(&mut plan.window, args.window);
        replace(&mut plan.delta, args.delta);
        replace(&mut plan.initial, args.initial);
        replace(&mut plan.sweep_ms, args.sweep);
        choose(&mut plan.topics, &args.topics);
        choose(&mut plan.distributions, &args.distributions);
        choose(&mut plan.limiters, &args.limiters);
        choose(&mut plan.storages, &args.storages);
        plan.repeat = args.repeat.unwrap_or(plan.repeat);
        plan.duration_ms = args.duration.or(plan.duration_ms);
        plan.size = args.size as usize;
        if args.target.is_some() {
            plan.storages = vec![Storage::Target];
            // Only a node that is started for it gets other settings.
            plan.places = vec![Place::Publisher];
        }
        plan
    }

    fn of(preset: Preset) -> Plan {
        let short = Plan {
            topics: vec![1, 16, 256],
            distributions: Distribution::ALL.into(),
            limiters: LimiterKind::ALL.into(),
            storages: vec![Storage::Memory, Storage::Disk],
            places: vec![Place::Publisher, Place::Pilot],
            messages: 500_000,
            window: 5_000,
            delta: 20,
            initial: 200,
            repeat: 3,
            size: 100,
            duration_ms: Some(8_000),
            sweep_ms: 1_000,
        };
        match preset {
            Preset::Short => short,
            Preset::Memory => Plan {
                storages: vec![Storage::Memory],
                messages: 8_000_000,
                window: 25_000,
                duration_ms: None,
                ..short
            },
            Preset::Kafka => Plan {
                storages: vec![Storage::Disk],
                messages: 70_000_000,
                window: 50_000,
                delta: 100,
                initial: 1_000,
                duration_ms: None,
                ..short
            },
        }
    }

    /// All cases, those that are compared one after the other.
    pub(super) fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &storage in &self.storages {
            for &place in &self.places {
                for &topics in &self.topics {
                    for &distribution in &self.distributions {
                        cases.extend(self.limiters.iter().map(|&limiter| Case {
                            storage,
                            place,
                            topics,
                            distribution,
                            limiter,
                        }));
                    }
                }
            }
        }
        cases
    }

    /// Settings of each publisher's gate, with this limiter.
    pub(super) fn throttling(&self, limiter: LimiterKind) -> Throttling {
        Throttling {
            limiter,
            bound_initial: self.initial,
            delta: self.delta,
            window_messages: self.window,
        }
    }

    /// Load of a case.
    pub(super) fn load(&self, case: &Case, url: &str, id: u32) -> Load {
        let load = Load {
            url: url.to_owned(),
            id,
            prefix: format!("bench/flow-{id:08x}"),
            topics: case.topics,
            distribution: case.distribution,
            publishers: PUBLISHERS,
            share: Share::ALL,
            size: self.size,
            messages: self.messages,
            duration_ms: self.duration_ms,
            publish_memory_bytes: None,
            throttling: self.throttling(case.limiter),
            pilot: None,
        };
        match case.place {
            Place::Publisher => load,
            Place::Pilot => Load {
                publish_memory_bytes: Some(UNBOUNDED_MEMORY_BYTES),
                throttling: fixed(UNBOUNDED, self.window),
                ..load
            },
        }
    }

    /// A fixed bound of the sweep, wherever it is.
    pub(super) fn sweep_throttling(bound: u64) -> Throttling {
        // Several times what is in flight, and yet several of them in the time that there is.
        fixed(bound, (bound * 2).max(20))
    }

    /// Load of the sweep: publishers with this bound, or offering more than a publish gate with it
    /// takes.
    pub(super) fn sweep_load(&self, case: &Case, bound: u64, url: &str, id: u32) -> Load {
        let load = self.load(case, url, id);
        Load {
            messages: u64::MAX,
            duration_ms: Some(self.sweep_ms),
            throttling: match case.place {
                Place::Publisher => Plan::sweep_throttling(bound),
                Place::Pilot => load.throttling,
            },
            ..load
        }
    }
}

fn fixed(bound_initial: u64, window_messages: u64) -> Throttling {
    Throttling {
        limiter: LimiterKind::Fixed,
        bound_initial,
        delta: LimiterSettings::DEFAULT.delta,
        window_messages,
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
pub(super) mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: FlowArgs,
    }

    /// Makes the plan for a command line.
    pub(crate) fn plan(line: &str) -> Plan {
        let words = std::iter::once("flow").chain(line.split_whitespace());
        Plan::new(&Line::try_parse_from(words).unwrap().args)
    }

    #[test]
    fn presets_have_the_papers_parameters() {
        let memory = plan("--preset memory");
        let numbers = |plan: &Plan| (plan.initial, plan.window, plan.delta, plan.messages);
        assert_eq!(numbers(&memory), (200, 25_000, 20, 8_000_000));
        assert_eq!(memory.storages, [Storage::Memory]);
        let kafka = plan("--preset kafka");
        assert_eq!(numbers(&kafka), (1_000, 50_000, 100, 70_000_000));
        assert_eq!(kafka.storages, [Storage::Disk]);
        for plan in [memory, kafka] {
            assert_eq!((&*plan.topics, plan.duration_ms), (&[1, 16, 256][..], None));
            assert_eq!(plan.distributions, Distribution::ALL);
        }
    }

    #[test]
    fn every_combination_is_a_case_once() {
        let plan = plan("--topics 1,16,1 --storages disk --limiters gradient,fixed");
        let cases = plan.cases();
        assert_eq!(cases.len(), 2 * 3 * 2 * plan.places.len());
        for (at, case) in cases.iter().enumerate() {
            assert!(!cases[..at].contains(case), "{case}");
        }
    }

    #[test]
    fn quick_has_all_limiters_on_both_storages_for_a_short_time() {
        let plan = plan("--quick --messages 7");
        assert_eq!(plan.cases().len(), 8 * plan.places.len());
        assert_eq!((plan.repeat, plan.messages), (1, 7));
        let seconds = plan.duration_ms.unwrap() * plan.cases().len() as u64 / 1000;
        assert!(seconds <= 60);
    }

    #[test]
    fn a_target_has_the_storage_that_it_has() {
        let plan = plan("--target airmail://a --storages disk");
        assert_eq!(plan.storages, [Storage::Target]);
        assert_eq!(plan.places, [Place::Publisher]);
    }

    #[test]
    fn what_the_pilot_limits_the_publishers_do_not() {
        let plan = plan("--quick");
        let case = |place| Case {
            place,
            ..plan.cases()[0]
        };
        let load = plan.load(&case(Place::Pilot), "", 0);
        assert_eq!(load.throttling.bound_initial, UNBOUNDED);
        assert!(load.throttling.gate().validate().is_ok());
        let load = plan.sweep_load(&case(Place::Pilot), 64, "", 0);
        assert_eq!(load.throttling.bound_initial, UNBOUNDED);
        let load = plan.load(&case(Place::Publisher), "", 0);
        assert_eq!(load.throttling.bound_initial, 200);
        let load = plan.sweep_load(&case(Place::Publisher), 64, "", 0);
        assert_eq!(
            (
                load.throttling.bound_initial,
                load.throttling.window_messages
            ),
            (64, 128)
        );
    }
}
