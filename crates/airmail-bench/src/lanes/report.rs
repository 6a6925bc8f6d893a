//! Report on lanes.

use crate::latency::Percentiles;
use serde::Serialize;
use std::fmt;

/// Seconds at the beginning of which nothing is said of shares: queues fill.
const WARM_UP_S: usize = 2;
/// Bars: the share of a flood's latency that lane high beside it may have, and of the bytes that lane normal gets beside one.
const LATENCY_MAX: f64 = 0.5;
const SHARE_MIN: f64 = 0.2;

/// Outcome of one lane.
#[derive(Clone, Debug, Serialize)]
pub struct LaneOfRun {
    /// `normal` or `high`.
    pub lane: String,
    /// Messages that were published.
    pub published: u64,
    /// Messages that came.
    pub delivered: u64,
    /// Messages that came behind later ones, or again.
    pub out_of_order: u64,
    /// Time from when a message was handed over, or due, until it came.
    pub latency_us: Percentiles,
    /// Bytes of payload that came in each second.
    pub bytes_by_second: Vec<u64>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct LanesRun {
    /// The lane of the flood.
    pub flood: String,
    /// Messages a second of the other one; 0: a flood, too.
    pub rate: u64,
    /// Lane normal, and lane high.
    pub lanes: Vec<LaneOfRun>,
    /// Time of the whole, in microseconds.
    pub time_us: u64,
    /// Processor time of publishers and reader, in microseconds.
    pub cpu_us: u64,
    /// Processor time of the node, in microseconds.
    pub node_cpu_us: u64,
}

impl LanesRun {
    /// Whether each lane came whole, once and in order.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.all(|lane| lane.published == lane.delivered && lane.out_of_order == 0)
    }

    fn lane(&self, name: &str) -> Option<&LaneOfRun> {
        self.lanes.iter().find(|lane| lane.lane == name)
    }

    /// Share that lane high's percentile has of lane normal's.
    fn ratio(&self, of: impl Fn(&Percentiles) -> u64) -> f64 {
        let of = |name| self.lane(name).map_or(0, |lane| of(&lane.latency_us));
        of("high") as f64 / of("normal").max(1) as f64
    }

    /// Share that lane high's median latency has of lane normal's.
    #[must_use]
    pub fn p50_ratio(&self) -> f64 {
        self.ratio(|latency| latency.p50)
    }

    /// The same of the 99th percentile.
    #[must_use]
    pub fn p99_ratio(&self) -> f64 {
        self.ratio(|latency| latency.p99)
    }

    /// Least share of the bytes that lane normal had in a whole second, while both were published, from the third on.
    #[must_use]
    pub fn least_share_of_normal(&self, duration_ms: u64) -> Option<f64> {
        let (normal, high) = self.lane("normal").zip(self.lane("high"))?;
        let seconds = usize::try_from(duration_ms / 1_000).unwrap_or(usize::MAX);
        let both = normal.bytes_by_second.iter().zip(&high.bytes_by_second);
        let both = both.take(seconds).skip(WARM_UP_S);
        let shares = both.map(|(normal, high)| *normal as f64 / (normal + high).max(1) as f64);
        shares.min_by(f64::total_cmp)
    }
}

/// Runs of one load, with the bars that they are held against.
#[derive(Clone, Debug, Serialize)]
pub struct LanesReport {
    /// Time for which each published, in milliseconds.
    pub duration_ms: u64,
    /// The runs.
    pub runs: Vec<LanesRun>,
}

impl LanesReport {
    /// Whether each lane came whole, once and in order, in every run.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.runs.iter().all(LanesRun::is_sound)
    }

    fn median(&self, of: impl Fn(&LanesRun) -> f64) -> f64 {
        let mut all: Vec<f64> = self.runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    }

    /// The bars that the medians miss, each as a sentence. `in_memory`: nothing waits for a disk.
    #[must_use]
    pub fn missed(&self, in_memory: bool) -> Vec<String> {
        let mut missed = Vec::new();
        let Some(first) = self.runs.first() else {
            return missed;
        };
        if first.rate > 0 && first.flood == "normal" {
            if self.median(LanesRun::p50_ratio) > LATENCY_MAX {
                missed.push(format!(
                    "p50 of lane high at most {LATENCY_MAX} times normal's"
                ));
            }
            if in_memory && self.median(LanesRun::p99_ratio) > LATENCY_MAX {
                missed.push(format!(
                    "p99 of lane high at most {LATENCY_MAX} times normal's"
                ));
            }
        }
        if first.rate == 0 {
            let least = |run: &LanesRun| run.least_share_of_normal(self.duration_ms).unwrap_or(0.0);
            if self.median(least) < SHARE_MIN {
                missed.push(format!(
                    "lane normal gets {SHARE_MIN} of the bytes in each second"
                ));
            }
        }
        missed
    }
}

impl fmt::Display for LanesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            let other = match run.rate {
                0 => "a flood of the other one".to_owned(),
                rate => format!("{rate} messages/s of the other one"),
            };
            writeln!(f, "a flood of lane {}, and {other}", run.flood)?;
            for lane in &run.lanes {
                let seconds = run.time_us.max(1) as f64 / 1e6;
                let ms = |us: u64| us as f64 / 1e3;
                let latency = &lane.latency_us;
                writeln!(
                    f,
                    "  {:6} {:9} messages, {:8.0}/s, out of order {}: p50 {:.2} ms, p99 {:.2} ms, longest {:.1} ms",
                    lane.lane,
                    lane.delivered,
                    lane.delivered as f64 / seconds,
                    lane.out_of_order,
                    ms(latency.p50),
                    ms(latency.p99),
                    ms(latency.max),
                )?;
            }
            write!(
                f,
                "  high of normal: p50 {:.3}, p99 {:.3}",
                run.p50_ratio(),
                run.p99_ratio()
            )?;
            if let Some(share) = run.least_share_of_normal(self.duration_ms) {
                write!(f, "; least share of lane normal in a second {share:.2}")?;
            }
            writeln!(f)?;
        }
        write!(
            f,
            "medians, high of normal: p50 {:.3}, p99 {:.3}",
            self.median(LanesRun::p50_ratio),
            self.median(LanesRun::p99_ratio)
        )
    }
}
