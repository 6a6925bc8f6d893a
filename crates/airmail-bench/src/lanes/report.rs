//! Report on lanes.

use super::stream::Role;
use crate::latency::Percentiles;
use serde::Serialize;
use std::fmt;

/// Seconds at the beginning of which nothing is said of shares: queues fill.
const WARM_UP_S: usize = 2;
/// Bars: the share of normal's latency that lane high may have, and of the bytes that lane normal gets beside a flood of high.
const LATENCY_MAX: f64 = 0.5;
const SHARE_MIN: f64 = 0.2;

/// Outcome of one publisher's messages.
#[derive(Clone, Debug, Serialize)]
pub struct StreamOfRun {
    /// `normal` or `high`.
    pub lane: String,
    /// Its part.
    pub role: Role,
    /// Messages that were published.
    pub published: u64,
    /// Messages that came.
    pub delivered: u64,
    /// Messages that came behind later ones, or again.
    pub out_of_order: u64,
    /// Time from when a message was handed over, or due, until it came.
    pub latency_us: Percentiles,
    /// Bytes of payload that came in each second, up to the last in which something came.
    pub bytes_by_second: Vec<u64>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct LanesRun {
    /// The lane of the flood.
    pub flood: String,
    /// Messages a second of the other one and of the control; 0: a flood, too, and no control.
    pub rate: u64,
    /// One client has published everything.
    pub together: bool,
    /// The flood, the other lane, and the control.
    pub streams: Vec<StreamOfRun>,
    /// Time of the whole, in microseconds.
    pub time_us: u64,
    /// Processor time of publishers and reader, in microseconds.
    pub cpu_us: u64,
    /// Processor time of the node, in microseconds.
    pub node_cpu_us: u64,
}

impl LanesRun {
    /// Whether what each published came whole, once and in order.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.all(|stream| stream.published == stream.delivered && stream.out_of_order == 0)
    }

    fn stream(&self, role: Role) -> Option<&StreamOfRun> {
        self.streams.iter().find(|stream| stream.role == role)
    }

    /// Share that the percentile of the lane beside the flood has of another's.
    #[must_use]
    pub fn ratio(&self, to: Role, of: impl Fn(&Percentiles) -> u64) -> f64 {
        let of = |role| self.stream(role).map_or(0, |stream| of(&stream.latency_us));
        of(Role::Beside) as f64 / of(to).max(1) as f64
    }

    /// Bytes of a lane that came in a second of the run.
    fn bytes(&self, lane: &str, second: usize) -> u64 {
        let of_lane = self.streams.iter().filter(|stream| stream.lane == lane);
        let in_second = of_lane.map(|stream| stream.bytes_by_second.get(second));
        in_second.flatten().sum()
    }

    /// Least share of the bytes that lane normal had in a whole second in which both were published, from the third on. 0 in
    /// one in which nothing came. `None`: there was no such second.
    #[must_use]
    pub fn least_share_of_normal(&self, duration_ms: u64) -> Option<f64> {
        let seconds = usize::try_from(duration_ms / 1_000).unwrap_or(usize::MAX);
        let shares = (WARM_UP_S..seconds).map(|second| {
            let [normal, high] = ["normal", "high"].map(|lane| self.bytes(lane, second) as f64);
            normal / (normal + high).max(1.0)
        });
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
    /// Rounds whose medians the bars are meant for.
    pub const ROUNDS: u32 = 9;

    /// Whether what each published came whole, once and in order, in every run.
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
            // Where one client publishes everything, only its lane tells the other from the control.
            let others = [Role::Flood, Role::Control];
            let others = &others[..1 + usize::from(first.together)];
            let most = |of: fn(&Percentiles) -> u64| {
                let ratios = others
                    .iter()
                    .map(|other| self.median(|run| run.ratio(*other, of)));
                ratios.fold(0.0, f64::max)
            };
            let [p50, p99] = [most(|latency| latency.p50), most(|latency| latency.p99)];
            if p50 > LATENCY_MAX {
                let bar = format!("p50 of lane high at most {LATENCY_MAX} times normal's");
                missed.push(bar);
            }
            if in_memory && p99 > LATENCY_MAX {
                let bar = format!("p99 of lane high at most {LATENCY_MAX} times normal's");
                missed.push(bar);
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

    /// The medians of what the lane beside the flood has of another's, if there is that.
    fn write_ratio(&self, to: Role, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_there = |run: &LanesRun| run.stream(to).is_some();
        if !self.runs.iter().all(is_there) {
            return Ok(());
        }
        write!(
            f,
            "; of the {}: p50 {:.3}, p99 {:.3}",
            to.name(),
            self.median(|run| run.ratio(to, |latency| latency.p50)),
            self.median(|run| run.ratio(to, |latency| latency.p99)),
        )
    }
}

impl fmt::Display for LanesRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = match self.rate {
            0 => "a flood of the other one".to_owned(),
            rate => format!("{rate} messages/s of the other one"),
        };
        let by = if self.together { ", by one client" } else { "" };
        writeln!(f, "a flood of lane {}, and {other}{by}", self.flood)?;
        for stream in &self.streams {
            let seconds = self.time_us.max(1) as f64 / 1e6;
            let ms = |us: u64| us as f64 / 1e3;
            let latency = &stream.latency_us;
            writeln!(
                f,
                "  {:7} {:6} {:9} messages, {:8.0}/s, out of order {}: p50 {:.2} ms, p99 {:.2} ms, longest {:.1} ms",
                stream.role.name(),
                stream.lane,
                stream.delivered,
                stream.delivered as f64 / seconds,
                stream.out_of_order,
                ms(latency.p50),
                ms(latency.p99),
                ms(latency.max),
            )?;
        }
        let cpu = |us: u64| us as f64 / self.time_us.max(1) as f64;
        let (clients, node) = (cpu(self.cpu_us), cpu(self.node_cpu_us));
        write!(f, "  processors: clients {clients:.2}, node {node:.2}")
    }
}

impl fmt::Display for LanesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            write!(f, "{run}")?;
            let share = run.least_share_of_normal(self.duration_ms);
            if let Some(share) = share.filter(|_| run.rate == 0) {
                write!(f, "; least share of lane normal in a second {share:.2}")?;
            }
            writeln!(f)?;
        }
        write!(f, "medians of the lane beside")?;
        self.write_ratio(Role::Flood, f)?;
        self.write_ratio(Role::Control, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream((lane, role): (&str, Role), p50: u64, bytes_by_second: &[u64]) -> StreamOfRun {
        StreamOfRun {
            lane: lane.to_owned(),
            role,
            published: 0,
            delivered: 0,
            out_of_order: 0,
            latency_us: Percentiles {
                p50,
                p99: 2 * p50,
                ..Percentiles::default()
            },
            bytes_by_second: bytes_by_second.to_vec(),
        }
    }

    fn report(flood: &str, rate: u64, streams: Vec<StreamOfRun>) -> LanesReport {
        let run = LanesRun {
            flood: flood.to_owned(),
            rate,
            together: false,
            streams,
            time_us: 1,
            cpu_us: 1,
            node_cpu_us: 1,
        };
        LanesReport {
            duration_ms: 5_000,
            runs: vec![run],
        }
    }

    #[test]
    fn seconds_in_which_nothing_came_of_lane_normal_count() {
        let beside = |seconds: &[u64]| {
            let flood = stream(("high", Role::Flood), 1, &[3; 5]);
            report(
                "high",
                0,
                vec![flood, stream(("normal", Role::Beside), 1, seconds)],
            )
        };
        assert_eq!(beside(&[0, 0, 1, 1, 1]).missed(true), Vec::<String>::new());
        // Nothing came at its end, or in the midst.
        assert_eq!(beside(&[1, 1, 1, 1]).missed(true).len(), 1);
        assert_eq!(beside(&[1, 1, 1, 0, 1]).missed(true).len(), 1);
        assert_eq!(beside(&[]).missed(true).len(), 1);
    }

    #[test]
    fn a_run_that_is_too_short_to_say_anything_of_shares_misses_its_bar() {
        let both = vec![
            stream(("high", Role::Flood), 1, &[3, 3]),
            stream(("normal", Role::Beside), 1, &[3, 3]),
        ];
        let mut report = report("high", 0, both);
        report.duration_ms = 2_000;
        assert_eq!(report.missed(true).len(), 1);
    }

    #[test]
    fn lane_high_is_held_against_the_flood_and_where_one_client_publishes_against_the_control() {
        let beside = |p50| {
            report(
                "normal",
                1_000,
                vec![
                    stream(("normal", Role::Flood), 10, &[]),
                    stream(("high", Role::Beside), p50, &[]),
                    stream(("normal", Role::Control), 8, &[]),
                ],
            )
        };
        assert_eq!(beside(5).missed(true), Vec::<String>::new());
        let mut together = beside(5);
        together.runs[0].together = true;
        assert_eq!(together.missed(true).len(), 2);
        assert_eq!(beside(6).missed(true).len(), 2);
        assert_eq!(beside(6).missed(false).len(), 1);
        assert_eq!(
            beside(4).to_string().lines().last(),
            Some(
                "medians of the lane beside; of the flood: p50 0.400, p99 0.400; of the control: p50 0.500, p99 0.500"
            )
        );
    }
}
