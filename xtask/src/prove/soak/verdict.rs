//! Verdict on a soak: the load was there, memory is flat, latency is flat.
//!
//! The first third of the samples is left out of the trend of memory: caches and allocators fill in
//! it. Each sample's latency is taken over a few seconds, in which anything else on the machine
//! shows; so medians of many samples are compared, with room for the machine's own drift.

use super::Sample;
use crate::quartiles::Quartiles;
use anyhow::ensure;
use std::collections::BTreeMap;

/// Growth of memory that is no trend: what a loaded allocator keeps more or less of.
const SLACK_KIB: f64 = 16.0 * 1024.0;
/// Growth as a part of all memory that is no trend.
const SLACK_PART: f64 = 0.05;
/// Part of the offered load that must have been carried.
const LOAD_PART: f64 = 0.95;
/// Largest ratio of the last third's latency to the first third's, beside the slack.
const LATENCY_TIMES: f64 = 1.25;
/// A difference in latency that is the machine's, in microseconds.
const LATENCY_SLACK_US: f64 = 500.0;

/// Prints the verdict on the samples; fails unless all conditions hold. `rate` is the offered load.
pub(super) fn judge(samples: &[Sample], rate: f64) -> anyhow::Result<()> {
    let third = samples.len() / 3;
    let enough = third > 0;
    ensure!(enough, "{} samples show no trend", samples.len());
    by_minute(samples);
    let first = &samples[..third];
    let last = &samples[samples.len() - third..];
    let both = |of: fn(&Sample) -> f64| (median(first.iter().map(of)), median(last.iter().map(of)));
    for (name, of) in [
        (
            "cpu, s",
            (|sample| sample.usage.cpu_s) as fn(&Sample) -> f64,
        ),
        ("disk, bytes", |sample| sample.usage.disk_bytes as f64),
    ] {
        let (before, after) = both(of);
        println!("{name}: first third {before:.1}, last third {after:.1}");
    }
    let (p50, p99) = (both(|s| s.p50_us), both(|s| s.p99_us));
    // All of them, before any fails.
    let checks = [
        load(samples, rate),
        memory(&samples[third..]),
        latency("p50", p50),
        latency("p99", p99),
    ];
    checks.into_iter().collect()
}

fn load(samples: &[Sample], rate: f64) -> anyhow::Result<()> {
    let carried = median(samples.iter().map(|sample| sample.per_s));
    println!("load: {carried:.0}/s of {rate:.0}/s");
    ensure!(carried >= rate * LOAD_PART, "the load was not carried");
    Ok(())
}

fn memory(samples: &[Sample]) -> anyhow::Result<()> {
    let kib = |sample: &Sample| sample.usage.resident_kib as f64;
    let usual = median(samples.iter().map(kib));
    let points = samples.iter().map(|sample| (sample.seconds, kib(sample)));
    let growth = growth(&points.collect::<Vec<_>>());
    println!("memory: {usual:.0} KiB; over the last two thirds of the time {growth:+.0} KiB");
    ensure!(growth <= usual * SLACK_PART + SLACK_KIB, "memory grows");
    Ok(())
}

fn latency(name: &str, (before, after): (f64, f64)) -> anyhow::Result<()> {
    println!("{name}: first third {before:.0} us, last third {after:.0} us");
    ensure!(
        after <= before * LATENCY_TIMES + LATENCY_SLACK_US,
        "the latency's {name} grows"
    );
    Ok(())
}

/// Rise of the line of least squares through the points, from the first to the last.
fn growth(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let over = points.iter().map(|point| (point.0 - x) * (point.1 - y));
    let under: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    match (points.first(), points.last()) {
        (Some(first), Some(last)) if under > 0.0 => over.sum::<f64>() / under * (last.0 - first.0),
        _ => 0.0,
    }
}

/// Shows memory and latency of each minute: medians of its samples.
fn by_minute(samples: &[Sample]) {
    let mut minutes: BTreeMap<u64, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let minute = (sample.seconds / 60.0) as u64;
        minutes.entry(minute).or_default().push(sample);
    }
    println!("minute\trss_mib\tp50_us\tp99_us");
    for (minute, samples) in minutes {
        let of = |of: fn(&Sample) -> f64| median(samples.iter().map(|sample| of(sample)));
        let mib = of(|sample| sample.usage.resident_kib as f64 / 1024.0);
        let (p50, p99) = (of(|sample| sample.p50_us), of(|sample| sample.p99_us));
        println!("{minute}\t{mib:.0}\t{p50:.0}\t{p99:.0}");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    Quartiles::of(values).median
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::soak::Usage;

    fn samples(of: impl Fn(u64) -> (u64, f64)) -> Vec<Sample> {
        let sample = |n| {
            let (resident_kib, p99_us) = of(n);
            Sample {
                seconds: n as f64 * 10.0,
                usage: Usage {
                    resident_kib,
                    cpu_s: 0.0,
                    disk_bytes: 0,
                },
                per_s: 1_000.0,
                p50_us: 100.0,
                p99_us,
            }
        };
        (0..180).map(sample).collect()
    }

    #[test]
    fn memory_that_grows_fails_the_soak() {
        let grows = samples(|n| (100_000 + n * 1_000, 500.0));
        assert!(judge(&grows, 1_000.0).is_err());
    }

    #[test]
    fn memory_that_varies_or_fills_at_first_passes_it() {
        let varies = samples(|n| (100_000 + n % 7 * 1_000, 500.0));
        assert!(judge(&varies, 1_000.0).is_ok());
        let fills = samples(|n| (100_000 + n.min(50) * 1_000, 500.0));
        assert!(judge(&fills, 1_000.0).is_ok());
    }

    #[test]
    fn latency_that_grows_fails_the_soak_and_single_bad_samples_do_not() {
        let grows = samples(|n| (100_000, 500.0 + n as f64 * 20.0));
        assert!(judge(&grows, 1_000.0).is_err());
        let shaken = samples(|n| (100_000, if n % 10 == 9 { 90_000.0 } else { 500.0 }));
        assert!(judge(&shaken, 1_000.0).is_ok());
    }

    #[test]
    fn a_load_that_is_not_carried_fails_the_soak() {
        assert!(judge(&samples(|_| (100_000, 500.0)), 1_100.0).is_err());
    }
}
