//! `cargo xtask prove soak`: a node at a part of its highest load, for as long as one likes, with its
//! oldest messages going all the time.
//!
//! The conditions for passing are in `verdict`. Any message that is lost, repeated or reordered
//! fails it too.

mod node;
mod verdict;

use crate::process;
use anyhow::Context as _;
use node::{Node, Usage};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use verdict::judge;

/// Messages of the first run, which only finds out how many the others need.
const FIRST_MESSAGES: u64 = 500_000;
/// Duration of each run that looks for the highest load, in seconds.
const SATURATION_SECONDS: f64 = 10.0;
/// Number of those runs. The lowest result counts: the load that the machine carries in each of its
/// moods, since with a higher one the soak would measure the machine's bad minutes, as a queue that
/// grows.
const SATURATION_RUNS: usize = 5;

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Time in minutes.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// The part of the highest load that is offered.
    #[arg(long, default_value_t = 0.8)]
    load: f64,
    /// Payload of each message, in bytes.
    #[arg(long, default_value_t = 100)]
    size: u32,
    /// Size of the messages that the node keeps.
    #[arg(long, default_value = "1GiB")]
    keep: String,
    /// Duration of each sample, in seconds.
    #[arg(long, default_value_t = 10)]
    sample_seconds: u64,
    /// Where the samples are written.
    #[arg(long, default_value = "target/soak.csv")]
    csv: PathBuf,
    /// Where the node's data is meanwhile; removed afterwards. Choose a real disk.
    #[arg(long, default_value = "/var/tmp/airmail-soak")]
    data: PathBuf,
}

/// Measurements of one sample.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    usage: Usage,
    per_s: f64,
    p50_us: f64,
    p99_us: f64,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let node = Node::start(&options.data)?;
    let keep = ["--retention-bytes", options.keep.as_str()];
    process::run(node.airmail(&["namespace", "update", "default"]).args(keep))?;
    let highest = saturation(&node, options)?;
    let rate = highest * options.load;
    println!(
        "highest load {highest:.0}/s; offered {rate:.0}/s for {} minutes",
        options.minutes
    );
    let samples = sample(&node, options, rate)?;
    fs::write(&options.csv, table(&samples, ','))
        .with_context(|| format!("cannot write {}", options.csv.display()))?;
    println!("\nsamples in {}", options.csv.display());
    judge(&samples, rate)
}

/// Messages a second, as fast as there is room: the lowest of some runs.
fn saturation(node: &Node, options: &Options) -> anyhow::Result<f64> {
    let mut messages = FIRST_MESSAGES;
    let mut rates = Vec::new();
    for _ in 0..=SATURATION_RUNS {
        let messages_text = messages.to_string();
        let report = bench(node, options, &["e2e", "--messages", &messages_text])?;
        let rate = number(&report, "delivered_per_s")?;
        messages = (rate * SATURATION_SECONDS) as u64;
        rates.push(rate);
    }
    Ok(rates.into_iter().skip(1).fold(f64::INFINITY, f64::min))
}

/// Runs one workload after the other until the time is over.
#[expect(
    clippy::disallowed_methods,
    reason = "a measurement of this machine, by its clock"
)]
fn sample(node: &Node, options: &Options, rate: f64) -> anyhow::Result<Vec<Sample>> {
    let began = Instant::now();
    let whole = Duration::from_secs_f64(options.minutes * 60.0);
    let rate_text = format!("{rate:.0}");
    let messages = (rate * options.sample_seconds as f64) as u64;
    let messages = messages.to_string();
    let mut samples: Vec<Sample> = Vec::new();
    println!("{}", heading('\t'));
    while began.elapsed() < whole {
        let before = node.usage()?;
        let workload = ["latency", "--messages", &messages, "--rate", &rate_text];
        let report = bench(node, options, &workload)?;
        let usage = node.usage()?;
        let latency = &report["latency_us"];
        let sample = Sample {
            seconds: began.elapsed().as_secs_f64(),
            usage: usage.since(&before),
            per_s: number(&report, "delivered_per_s")?,
            p50_us: number(latency, "p50")?,
            p99_us: number(latency, "p99")?,
        };
        println!("{}", row(&sample, '\t'));
        samples.push(sample);
    }
    Ok(samples)
}

/// One run of `airmail bench`, which fails if a message is lost, repeated or reordered.
fn bench(node: &Node, options: &Options, workload: &[&str]) -> anyhow::Result<Value> {
    let size = options.size.to_string();
    let mut command: Command = node.airmail(&["bench"]);
    command.args(workload).args(["--size", &size, "--json"]);
    command.args(["--target", &node.url()]);
    Ok(serde_json::from_str(&process::output(&mut command)?)?)
}

fn number(report: &Value, field: &str) -> anyhow::Result<f64> {
    report[field]
        .as_f64()
        .with_context(|| format!("a report without {field}: {report}"))
}

fn heading(between: char) -> String {
    let names = [
        "seconds", "rss_kib", "cpu_s", "disk_mib", "per_s", "p50_us", "p99_us",
    ];
    names.join(&between.to_string())
}

fn row(sample: &Sample, between: char) -> String {
    let Sample {
        seconds,
        usage,
        per_s,
        p50_us,
        p99_us,
    } = sample;
    let Usage {
        resident_kib,
        cpu_s,
        disk_bytes,
    } = usage;
    let disk_mib = disk_bytes >> 20;
    let fields = [
        format!("{seconds:.0}"),
        format!("{resident_kib}"),
        format!("{cpu_s:.2}"),
        format!("{disk_mib}"),
        format!("{per_s:.0}"),
        format!("{p50_us:.0}"),
        format!("{p99_us:.0}"),
    ];
    fields.join(&between.to_string())
}

fn table(samples: &[Sample], between: char) -> String {
    let mut text = heading(between) + "\n";
    for sample in samples {
        let _ = writeln!(text, "{}", row(sample, between));
    }
    text
}
