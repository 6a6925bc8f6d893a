//! `airmail bench lanes`: a flood of one lane, and beside it the other one, to one subscriber.

use super::measured::MeasuredArgs;
use super::print;
use crate::cli::UsageError;
use airmail_bench::lanes::{LanesLoad, LanesReport};
use airmail_bench::process::Usage;
use airmail_bench::settings;
use airmail_client::Lane;
use std::process::ExitCode;

/// Arguments of `airmail bench lanes`.
#[derive(clap::Args, Clone, Debug)]
pub struct LanesArgs {
    /// The lane that is published to as fast as goes, normal or high
    #[arg(long, value_name = "LANE", default_value = "normal")]
    pub flood: Lane,
    /// Messages a second of the other lane, and of a control of the flood's lane; 0: as fast as goes, too, and no control
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub rate: u64,
    /// One client publishes everything, over one connection
    #[arg(long)]
    pub together: bool,
    /// Time for which to publish, as 10s
    #[arg(long, value_name = "TIME", value_parser = settings::milliseconds, default_value = "10s")]
    pub duration: u64,
    /// Payload of each message, in bytes, at least 16
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(16..))]
    pub size: u32,
    /// Credit of the subscriber, as 256KiB [default: as the SDK has it]
    #[arg(long, value_name = "BYTES", value_parser = settings::bytes)]
    pub credit: Option<u64>,
    /// Rounds, each with a node of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rounds: u32,
    /// End with 1 if a median misses its bar: lane high waits half as long as a flood of lane normal at most; beside a flood of
    /// lane high, lane normal gets a fifth of the bytes in each second
    #[arg(long)]
    pub judge: bool,
    #[command(flatten)]
    pub node: MeasuredArgs,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs it: 0 if each lane came whole, once and in order, else 1.
///
/// # Errors
/// A node cannot be started or reached.
#[expect(clippy::print_stderr, reason = "what was missed")]
pub(super) async fn lanes(args: &LanesArgs) -> anyhow::Result<ExitCode> {
    if args.rounds == 0 {
        return Err(UsageError("--rounds: 0, and there has to be one at least".to_owned()).into());
    }
    if args.judge && args.flood == Lane::High && args.rate > 0 {
        let wrong =
            "--judge: with --flood high only --rate 0 has a bar, the share that lane normal gets";
        return Err(UsageError(wrong.to_owned()).into());
    }
    let mut report = LanesReport {
        duration_ms: args.duration,
        runs: Vec::new(),
    };
    for _ in 0..args.rounds {
        let node = args.node.start(None, &[])?;
        let load = LanesLoad {
            target: node.url(),
            namespace: "bench-lanes".to_owned(),
            flood: args.flood,
            rate: args.rate,
            together: args.together,
            duration_ms: args.duration,
            size: args.size as usize,
            credit: args
                .credit
                .map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX)),
        };
        let usage = || Usage::of_all(&node.pids());
        report.runs.push(load.measure(usage).await?);
    }
    let is_sound = report.is_sound();
    print(&report, is_sound, args.json)?;
    let in_memory = is_in_memory(&args.node.own.node_options);
    let missed = if args.judge {
        report.missed(in_memory)
    } else {
        Vec::new()
    };
    if args.judge && args.rounds < LanesReport::ROUNDS {
        let (rounds, meant) = (args.rounds, LanesReport::ROUNDS);
        eprintln!("airmail: judged by {rounds} rounds; the bars are for the medians of {meant}");
    }
    for bar in &missed {
        eprintln!("airmail: missed: {bar}");
    }
    Ok(ExitCode::from(u8::from(!is_sound || !missed.is_empty())))
}

/// Whether a node of these options has its logs in memory.
fn is_in_memory(options: &[String]) -> bool {
    let apart = options.iter().zip(options.iter().skip(1));
    let mut apart = apart.filter_map(|(name, url)| (name == "--log").then_some(url.as_str()));
    let mut joined = options
        .iter()
        .filter_map(|option| option.strip_prefix("--log="));
    let is_memory = |url: &str| url.starts_with("memory:");
    apart.any(is_memory) || joined.any(is_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_log_in_memory_makes_a_node_one_in_memory() {
        let of = |options: &[&str]| {
            let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
            is_in_memory(&options)
        };
        assert!(of(&["--log=memory:"]));
        assert!(of(&["--log", "memory:?service_us=5"]));
        assert!(!of(&[]));
        assert!(!of(&["--log=disk:/var/memory:"]));
        assert!(!of(&["--storage", "fast=memory:", "--log=disk:/x"]));
    }
}
