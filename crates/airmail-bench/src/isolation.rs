//! Cost, to other subscribers, of one that stops, is slow, or catches up.
//!
//! One run has phases, in which the others do the same with and without such a subscriber beside
//! them. The result is the ratio of two phases of one round, because a machine has slow minutes:
//! the median of the rounds, with the least and the most.

mod text;

use self::text::pace;
use crate::bystander::{Conduct, Taken};
use crate::counters::Counters;
use crate::process::Usage;
use crate::report::Report;
use crate::spread::Spread;
use serde::Serialize;

/// Bar: the share of their rate that the others have beside one that reads from the earliest.
const DELIVERED_MIN: f64 = 0.95;

/// Figures of the others in one phase, and the subscriber beside them.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// Number of the round, from 1.
    pub round: u32,
    /// True as fast as there is room; false at the run's rate.
    pub saturated: bool,
    /// The subscriber beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Conduct>,
    /// Messages delivered to them a second.
    pub delivered_per_s: f64,
    /// Half of their messages took at most this from when they were due (saturated: sent) to delivery,
    /// in microseconds.
    pub p50_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
    /// 99 of 100 were handed over at most this much late.
    pub late_p99_us: u64,
    /// Acknowledged messages that did not arrive, or refused ones.
    pub missing: u64,
    /// Messages that arrived again.
    pub duplicates: u64,
    /// Messages that arrived out of order.
    pub reordered: u64,
    /// Gaps that they were told.
    pub gaps: u64,
    /// Processor time of their clients for each delivered message, in nanoseconds.
    pub client_ns_each: f64,
    /// Processor time of the node for each message delivered to them, in nanoseconds.
    pub node_ns_each: f64,
    /// Processor time of the shard's thread in this, in nanoseconds.
    pub shard_ns_each: f64,
    /// Part of the time that the shard's thread worked.
    pub shard_busy: f64,
    /// Times that the node detached a live subscription, theirs or that one's, for want of credit.
    pub detached: u64,
    /// Bytes that the node read for subscriptions that were behind.
    pub late_bytes: u64,
    /// Messages of the subscriber beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// Nothing was missing, doubled or out of order, on either side.
    pub sound: bool,
}

/// Resources that the node used during a phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeUse {
    /// All of it.
    pub node: Usage,
    /// The shard's thread.
    pub shard: Usage,
    /// The node's own counters.
    pub counters: Counters,
}

impl NodeUse {
    /// Increase since an earlier look.
    #[must_use]
    pub fn since(self, before: &NodeUse) -> NodeUse {
        NodeUse {
            node: self.node.since(&before.node),
            shard: self.shard.since(&before.shard),
            counters: self.counters.since(&before.counters),
        }
    }
}

impl Phase {
    /// Computes the figures from the others' run.
    #[must_use]
    pub fn new(
        (round, saturated): (u32, bool),
        beside: Option<(Conduct, Taken)>,
        report: &Report,
        node: NodeUse,
    ) -> Phase {
        let each = |cpu_us: u64| (cpu_us * 1000) as f64 / report.delivered.max(1) as f64;
        let taken = beside.map(|(_, taken)| taken);
        let whole =
            |taken: Taken| [taken.missing, taken.again, taken.strange, taken.gaps] == [0; 4];
        Phase {
            round,
            saturated,
            beside: beside.map(|(conduct, _)| conduct),
            delivered_per_s: report.delivered_per_s,
            p50_us: report.latency_us.p50,
            p99_us: report.latency_us.p99,
            late_p99_us: report.late_us.p99,
            missing: report.missing + report.failed,
            duplicates: report.duplicates,
            reordered: report.reordered,
            gaps: report.gaps,
            client_ns_each: each(report.client_cpu_us),
            node_ns_each: each(node.node.cpu_us),
            shard_ns_each: each(node.shard.cpu_us),
            shard_busy: node.shard.cpu_us as f64 / (report.seconds * 1e6).max(1.0),
            detached: node.counters.detached,
            late_bytes: node.counters.late_bytes,
            taken,
            sound: report.is_sound() && taken.is_none_or(whole),
        }
    }
}

/// Figures beside one, over those of the same round beside nobody.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratios {
    /// The subscriber beside them.
    pub beside: Conduct,
    /// True as fast as there is room; false at the run's rate.
    pub saturated: bool,
    /// Messages delivered a second.
    pub delivered: Spread,
    /// Half of the messages' time to delivery.
    pub p50: Spread,
    /// 99 of 100.
    pub p99: Spread,
    /// Bytes of payload a second that the one beside them got.
    pub taken_bytes_per_s: Spread,
    /// Part of the shard's working time that went to that one: what is left when each message of the
    /// others is reckoned at what it takes beside nobody.
    pub shard_share: Spread,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct IsolationReport {
    /// The measured system.
    pub system: &'static str,
    /// Bytes of payload that were stored before.
    pub backlog_bytes: u64,
    /// Lane in which they are; the others use lane normal.
    pub backlog_lane: String,
    /// Messages a second, as fast as there was room.
    pub saturated_per_s: f64,
    /// Messages a second of the phases that have a rate: half of it.
    pub offered_per_s: f64,
    /// Payload of each message, in bytes.
    pub size: usize,
    /// Publishers of the others.
    pub publishers: u32,
    /// Subscribers of the others.
    pub subscribers: u32,
    /// Ratios over the rounds.
    pub ratios: Vec<Ratios>,
    /// All phases, in order.
    pub phases: Vec<Phase>,
}

impl IsolationReport {
    /// Reckons the ratios of the phases.
    pub fn reckon(&mut self) {
        let combinations = [
            (Conduct::Stopped, false),
            (Conduct::Slow, false),
            (Conduct::Earliest, false),
            (Conduct::Earliest, true),
        ];
        let ratios = combinations.map(|(beside, saturated)| self.ratios_of(beside, saturated));
        self.ratios = ratios.into();
    }

    fn ratios_of(&self, beside: Conduct, saturated: bool) -> Ratios {
        let of = |round: u32, beside: Option<Conduct>| {
            self.phases.iter().find(|phase| {
                (phase.round, phase.saturated, phase.beside) == (round, saturated, beside)
            })
        };
        let rounds = self.phases.iter().map(|phase| phase.round).max();
        let pairs: Vec<(&Phase, &Phase)> = (1..=rounds.unwrap_or_default())
            .filter_map(|round| of(round, Some(beside)).zip(of(round, None)))
            .collect();
        let spread = |figure: fn(&Phase, &Phase) -> f64| {
            let figures = pairs.iter().map(|(with, alone)| figure(with, alone));
            Spread::of(figures).unwrap_or_default()
        };
        Ratios {
            beside,
            saturated,
            delivered: spread(|with, alone| with.delivered_per_s / alone.delivered_per_s.max(1.0)),
            p50: spread(|with, alone| with.p50_us as f64 / alone.p50_us.max(1) as f64),
            p99: spread(|with, alone| with.p99_us as f64 / alone.p99_us.max(1) as f64),
            taken_bytes_per_s: spread(|with, _| {
                let taken = with.taken.unwrap_or_default();
                taken.bytes as f64 * 1e6 / taken.time_us.max(1) as f64
            }),
            shard_share: spread(|with, alone| {
                1.0 - alone.shard_ns_each / with.shard_ns_each.max(1.0)
            }),
        }
    }

    /// The bars that the medians miss, each as a sentence: the others go on as fast, whatever somebody reads from the
    /// earliest.
    #[must_use]
    pub fn missed(&self) -> Vec<String> {
        let beside = self.ratios.iter();
        let beside = beside.filter(|ratios| ratios.beside == Conduct::Earliest);
        let slow = beside.filter(|ratios| ratios.delivered.median < DELIVERED_MIN);
        slow.map(|ratios| {
            format!(
                "{}, beside one from the earliest: {DELIVERED_MIN} times the rate beside nobody",
                pace(ratios.saturated)
            )
        })
        .collect()
    }

    /// Whether nothing was missing, doubled or out of order in any phase.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.phases.iter().all(|phase| phase.sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;
    use crate::settings::Settings;

    fn phase(round: u32, beside: Option<Conduct>, delivered_per_s: f64, shard_ns: f64) -> Phase {
        let report = Report::new("airmail", timed(), Part::default(), None);
        let beside = beside.map(|conduct| (conduct, Taken::default()));
        Phase {
            delivered_per_s,
            shard_ns_each: shard_ns,
            ..Phase::new((round, false), beside, &report, NodeUse::default())
        }
    }

    fn report(phases: Vec<Phase>) -> IsolationReport {
        let mut report = IsolationReport {
            system: "airmail",
            backlog_bytes: 0,
            backlog_lane: "high".to_owned(),
            saturated_per_s: 2.0,
            offered_per_s: 1.0,
            size: 100,
            publishers: 1,
            subscribers: 1,
            ratios: Vec::new(),
            phases,
        };
        report.reckon();
        report
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine was half as fast in the second round, and twice as dear.
        let slow = Some(Conduct::Slow);
        let report = report(vec![
            phase(1, slow, 90.0, 125.0),
            phase(1, None, 100.0, 100.0),
            phase(2, None, 50.0, 200.0),
            phase(2, slow, 45.0, 250.0),
        ]);
        let ratios = report
            .ratios
            .iter()
            .find(|found| Some(found.beside) == slow);
        let ratios = ratios.unwrap();
        assert!((ratios.delivered.least - 0.9).abs() < 1e-9, "{ratios:?}");
        assert!((ratios.delivered.most - 0.9).abs() < 1e-9, "{ratios:?}");
        assert!((ratios.shard_share.median - 0.2).abs() < 1e-9, "{ratios:?}");
    }

    #[test]
    fn others_that_are_slower_beside_one_from_the_earliest_miss_the_bar() {
        let beside = |delivered_per_s| {
            let late = phase(1, Some(Conduct::Earliest), delivered_per_s, 1.0);
            let mut report = report(vec![phase(1, None, 100.0, 1.0), late]);
            report.ratios.retain(|ratios| !ratios.saturated);
            report.missed().len()
        };
        assert_eq!([beside(96.0), beside(94.0)], [0, 1]);
    }

    #[test]
    fn the_table_has_every_column_for_every_phase() {
        let report = report(vec![
            phase(1, None, 1.0, 1.0),
            phase(1, Some(Conduct::Slow), 1.0, 1.0),
        ]);
        let table = report.table();
        let columns = table.lines().map(|line| line.split(',').count());
        assert_eq!(columns.collect::<Vec<_>>(), [17, 17, 17]);
    }

    #[test]
    fn one_that_misses_something_while_it_reads_slowly_makes_the_run_fail() {
        let mut whole = phase(1, None, 1.0, 1.0);
        assert!(report(vec![whole.clone()]).is_sound());
        let found = Report::new("airmail", timed(), Part::default(), None);
        let taken = Taken {
            missing: 1,
            ..Taken::default()
        };
        let beside = Some((Conduct::Slow, taken));
        whole = Phase::new((1, false), beside, &found, NodeUse::default());
        assert!(!report(vec![whole]).is_sound());
    }

    fn timed() -> Settings {
        Settings {
            messages: None,
            duration_ms: Some(1),
            ..Settings::default()
        }
    }
}
