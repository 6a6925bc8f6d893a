//! Report of the measurements, as rows, tables and figures, beside the paper's numbers.

mod faults;
mod tables;

use airmail_experiments::results::Interval;
use airmail_plot::{Axis, Mark, Panel, Series};

pub(super) use faults::faults;
pub(super) use tables::tables;

use super::jars::Jars;
use super::metric::Metric;
use super::policy::Policy;
use super::runs::Runs;
use super::{Limit, PartitionersArgs};

/// Paragraphs on the runs.
pub(super) fn about(args: &PartitionersArgs, jars: &Jars, machine: &str) -> Vec<String> {
    let (records, warm_up) = (args.records(), args.warm_up());
    let resource = match args.limit {
        Limit::Cpu => format!("{} of a core", args.cores),
        Limit::Network => format!("{:.1} MB/s in either direction", args.line as f64 / 1e6),
        Limit::None => "nothing of its own".to_owned(),
    };
    let rounds = args.rounds();
    vec![
        machine.to_owned(),
        format!(
            "Kafka {}, its brokers with 256 MiB of heap each and {resource}; a controller beside them that \
             is not held. Everything else as it comes, but a broker that is silent counts as dead after 3 s \
             where faults are made, and else after a minute.",
            jars.version
        ),
        format!(
            "Each run sends {warm_up} records of {} bytes that do not count, then {records} that do, with \
             Kafka's own performance tool at full speed, from a Java machine that has just begun; the \
             paper's runs had 100 million. Policies take turns in {rounds} rounds; values are means over \
             them with their 99 % confidence interval, ratios are taken within rounds.",
            args.size
        ),
        format!(
            "Latency is from before send, with what a record waits there for room, to its ack, and every \
             record is in the histogram. MB are 2^20 bytes of payload, as the tool counts. Adaptive is run \
             with its interceptor, all policies with the defaults of {}.",
            "their properties"
        ),
    ]
}

/// An interval as a cell.
fn cell(interval: Option<Interval>, metric: Metric) -> String {
    let digits = match metric {
        Metric::Io => 0,
        Metric::Max => 0,
        Metric::Throughput | Metric::Ttc => 2,
        _ => 1,
    };
    interval.map_or(String::new(), |interval| format!("{interval:.digits$}"))
}

/// A ratio as a cell, with how the policy stands.
fn ratio(runs: &Runs, policy: Policy, to: Policy, metric: Metric) -> String {
    if policy == to {
        return String::new();
    }
    let ratio = runs.ratio(policy, to, metric);
    let standing = runs.standing(policy, to, metric);
    match (ratio, standing) {
        (Some(ratio), Some(standing)) => format!("{ratio:.2} {standing}"),
        _ => String::new(),
    }
}

/// A dot for each policy with its interval.
fn panel(runs: &Runs, metric: Metric) -> Panel {
    let policies = runs.policies();
    let series = policies.iter().zip(1..).filter_map(|(policy, place)| {
        let interval = runs.interval(*policy, metric)?;
        Some(Series {
            name: format!("{}: {:.2}", policy.title(), interval.mean),
            points: vec![interval.at(f64::from(place))],
            mark: Mark::Dots,
            colour: policy.colour(),
        })
    });
    let axis = match metric {
        Metric::Throughput => Axis::linear(metric.title()),
        _ => Axis::log(metric.title()),
    };
    Panel {
        title: format!("{}: means with 99 % confidence", metric.title()),
        x: Axis::of(policies.iter().map(|policy| policy.title())),
        y: axis,
        series: series.collect(),
    }
}
