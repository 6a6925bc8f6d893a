//! `cargo xtask prove soak`: a node at a part of its highest load, for as long as one likes, with its
//! oldest messages going all the time.
//!
//! It passes if the node's memory is flat: the median of the last third of the samples is at most
//! that of the first third, a twentieth more, and 16 MiB. Any message that is lost, repeated or
//! reordered fails it too. Latency is reported, not judged: it is the machine's as well.

mod node;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::process;
use node::{Node, Usage};

/// Growth of memory that is no trend: what a loaded allocator keeps more or less of.
const SLACK_KIB: f64 = 16.0 * 1024.0;
/// Messages of the first run, which only finds out how many the others need.
const FIRST_MESSAGES: u64 = 500_000;
/// How long each of the runs takes that look for the highest load, in seconds.
const SATURATION_SECONDS: f64 = 10.0;
/// How many there are: the median counts.
const SATURATION_RUNS: usize = 3;

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// For how long.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// The part of the highest load that is offered.
    #[arg(long, default_value_t = 0.8)]
    load: f64,
    /// Payload of each message, in bytes.
    #[arg(long, default_value_t = 100)]
    size: u32,
    /// How much of its messages the node keeps.
    #[arg(long, default_value = "1GiB")]
    keep: String,
    /// How long each sample takes, in seconds.
    #[arg(long, default_value_t = 10)]
    sample_seconds: u64,
    /// Where the samples are written.
    #[arg(long, default_value = "target/soak.csv")]
    csv: PathBuf,
    /// Where the node's data is meanwhile; removed afterwards. Choose a real disk.
    #[arg(long, default_value = "/var/tmp/airmail-soak")]
    data: PathBuf,
}

/// What one sample says.
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
    judge(&samples)
}

/// Messages a second, as fast as there is room: the median of some runs.
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
    Ok(median(rates.into_iter().skip(1)))
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

/// Compares the first third with the last.
fn judge(samples: &[Sample]) -> anyhow::Result<()> {
    let third = samples.len() / 3;
    ensure!(
        third > 0,
        "{} samples say nothing of a trend",
        samples.len()
    );
    let first = &samples[..third];
    let last = &samples[samples.len() - third..];
    let both = |of: fn(&Sample) -> f64| (median(first.iter().map(of)), median(last.iter().map(of)));
    for (name, of) in [
        ("p50, us", (|sample| sample.p50_us) as fn(&Sample) -> f64),
        ("p99, us", |sample| sample.p99_us),
        ("cpu, s", |sample| sample.usage.cpu_s),
        ("disk, bytes", |sample| sample.usage.disk_bytes as f64),
    ] {
        let (before, after) = both(of);
        println!("{name}: first third {before:.1}, last third {after:.1}");
    }
    let (before, after) = both(|sample| sample.usage.resident_kib as f64);
    println!("memory, KiB: first third {before:.0}, last third {after:.0}");
    ensure!(after <= before * 1.05 + SLACK_KIB, "memory grows");
    println!("memory is flat");
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(resident_kib: impl Iterator<Item = u64>) -> Vec<Sample> {
        let sample = |resident_kib| Sample {
            seconds: 0.0,
            usage: Usage {
                resident_kib,
                cpu_s: 0.0,
                disk_bytes: 0,
            },
            per_s: 0.0,
            p50_us: 0.0,
            p99_us: 0.0,
        };
        resident_kib.map(sample).collect()
    }

    #[test]
    fn memory_that_grows_fails_the_soak() {
        assert!(judge(&samples((0..180).map(|n| 100_000 + n * 1_000))).is_err());
    }

    #[test]
    fn memory_that_varies_passes_it() {
        assert!(judge(&samples((0..180).map(|n| 100_000 + n % 7 * 1_000))).is_ok());
    }
}
