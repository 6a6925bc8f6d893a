//! Report on deliveries, as rows and a table.

use super::super::OverloadArgs;
use super::super::publishes::MIB;
use super::{Deliveries, Phase, SLOWNESS};
use airmail_bench::Spread;
use airmail_experiments::results::{Row, Section, Table};
use airmail_experiments::row;

/// A phase, for programs.
pub(crate) fn row(phase: &Phase) -> Row {
    row! {
        "round": phase.round,
        "slow_subscribers": phase.slow,
        "goodput_per_s": phase.goodput_per_s,
        "p50_us": phase.p50_us,
        "p99_us": phase.p99_us,
        "slow_per_s": phase.slow_per_s.round(),
        "rss_bytes": phase.rss_bytes,
        "sound": phase.sound,
    }
}

/// All phases, for people.
pub(crate) fn section(args: &OverloadArgs, deliveries: &Deliveries<'_>) -> Section {
    let of = |slow: bool, value: fn(&Phase) -> f64| {
        let phases = deliveries
            .phases
            .iter()
            .filter(|phase| (phase.slow > 0) == slow);
        Spread::of(phases.map(value))
    };
    let cell = |slow, value, digits: usize| {
        let spread = of(slow, value);
        spread.map_or(String::new(), |spread| format!("{spread:.digits$}"))
    };
    let line = |slow: bool| {
        vec![
            if slow { args.slow_subscribers } else { 0 }.to_string(),
            cell(slow, |phase| phase.goodput_per_s, 0),
            cell(slow, |phase| phase.p50_us as f64 / 1e3, 2),
            cell(slow, |phase| phase.p99_us as f64 / 1e3, 2),
            cell(slow, |phase| phase.slow_per_s, 0),
            cell(slow, |phase| phase.rss_bytes as f64 / MIB, 0),
        ]
    };
    let node = match args.target.target {
        Some(_) => "The node is the target.",
        None => "Storage in memory without a service time; a new node each time.",
    };
    let head = [
        "slow ones beside them",
        "goodput of each, messages/s",
        "p50, ms",
        "p99, ms",
        "a slow one takes at most, messages/s",
        "node's memory, MiB",
    ];
    Section {
        title: "Deliveries beside subscribers that take a tenth".to_owned(),
        text: vec![format!(
            "{} subscribers take all of {} messages/s, beside nobody and beside {} that take one of {SLOWNESS}, \
             in processes that give way to others. {node}",
            args.quick_subscribers, args.delivery_rate, args.slow_subscribers
        )],
        table: Table::new(head, [false, true].map(line)),
        figures: Vec::new(),
    }
}
