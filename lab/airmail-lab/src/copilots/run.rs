//! One run of a series on a cluster, and what is exact about it: the bytes on each link beside the bytes
//! that are wanted behind it.
//!
//! A copilot wants what its subscribers have topics of. In the divided series that is an even part of all
//! that is published, since each topic has as many messages as any other; in the shared one it is all of
//! it, once, however many subscribers have it. What a link carries beside that is framing, which is at
//! most a quarter where batches are full, and a few bytes of what nodes say among themselves. So runs as
//! fast as there is room are judged; at a low rate a batch may have a single message, and be mostly frame.
//! For a subscriber that does not keep up a copilot reads on its own, behind what it reads for the others, so
//! its link may carry that too.

use super::cluster::{Cluster, Look};
use super::{CopilotsArgs, Series};
use crate::hold::Throttled;
use crate::hosts::Hosts;
use airmail_bench::clock::now_us;
use airmail_bench::part::Part;
use airmail_bench::run::Job;
use airmail_bench::{Report, Settings, Workload};
use std::fmt;
use std::fs;

/// Bytes that a link may carry for each byte that is wanted behind it.
const CARRIED_MAX: f64 = 1.25;
/// Bytes beside that: signs of life, answers to what is wanted, marks of progress.
const LIFE_BYTES: u64 = 64 << 10;

/// Ways to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// No rate: as fast as there is room, only so far ahead of the slowest subscriber.
    Fast,
    /// Half of the least rate that came of that.
    Half,
}

impl Pace {
    /// Name in rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Pace::Fast => "fast",
            Pace::Half => "half",
        }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) pace: Pace,
    pub(super) series: Series,
    /// Number of the round, from 1.
    pub(super) round: u32,
    pub(super) report: Report,
    /// Bytes of payload that were published.
    pub(super) published_bytes: u64,
    /// Copilots, each with what it used and carried, and what was wanted behind it.
    pub(super) links: Vec<Link>,
    /// Resources that the tower used, and bytes that it sent to all copilots.
    pub(super) tower: Look,
    /// Time that nodes were looked at, in seconds.
    pub(super) looked_s: f64,
    /// Processor time of the publisher's process, and of the subscribers' processes, in microseconds.
    pub(super) client_cpu_us: [u64; 2],
    /// Load of this machine at the end, over a minute.
    pub(super) load: f64,
}

/// A copilot in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Bytes of payload that its subscribers want, each once.
    pub(super) wanted_bytes: u64,
    pub(super) copilot: Look,
}

impl Link {
    /// Bytes on the link for each that is wanted behind it.
    pub(super) fn carried(&self) -> f64 {
        self.copilot.link_bytes as f64 / self.wanted_bytes.max(1) as f64
    }

    /// Whether it carried what is wanted behind it once, and what was read for those who did not keep up.
    fn is_once(&self) -> bool {
        let bytes = self.wanted_bytes + self.copilot.late_bytes;
        let most = bytes as f64 * CARRIED_MAX;
        self.copilot.link_bytes <= most as u64 + LIFE_BYTES
    }
}

impl Run {
    /// Makes it, at a rate or as fast as there is room.
    ///
    /// # Errors
    /// A node or a process of clients fails, or the run is stopped.
    pub(super) fn make(
        args: &CopilotsArgs,
        hosts: &Hosts,
        cluster: &mut Cluster,
        (series, round): (Series, u32),
        rate: Option<u64>,
    ) -> anyhow::Result<Run> {
        let settings = settings(args, series, rate);
        let id = hosts.next_run();
        let job = Job {
            settings: settings.clone(),
            id,
            prefix: format!("bench/copilots/{id:08x}"),
            ..Job::default()
        };
        let (begun_us, (tower_before, before)) = (now_us(), cluster.look()?);
        let parts = hosts.run_each(cluster.jobs(&job))?;
        let (tower, after) = cluster.look()?;
        let looked_s = now_us().saturating_sub(begun_us).max(1) as f64 / 1e6;
        let size = u64::from(args.size);
        let published_bytes = parts.first().map_or(0, acknowledged) * size;
        let subscribers = parts.get(1..).unwrap_or_default();
        let cpu_us = |parts: &[Part]| parts.iter().map(|part| part.cpu_us).sum();
        let links = subscribers.iter().zip(after.iter().zip(&before));
        let links = links.map(|(part, (after, before))| Link {
            wanted_bytes: match series {
                Series::Divided => part.received.tally.delivered * size,
                Series::Shared => published_bytes,
            },
            copilot: after.since(before),
        });
        let sum = parts.iter().cloned().reduce(|mut sum, part| {
            sum.add(&part);
            sum
        });
        Ok(Run {
            pace: rate.map_or(Pace::Fast, |_| Pace::Half),
            series,
            round,
            published_bytes,
            links: links.collect(),
            tower: tower.since(&tower_before),
            looked_s,
            client_cpu_us: [cpu_us(&parts[..parts.len().min(1)]), cpu_us(subscribers)],
            load: load(),
            report: Report::new("airmail", settings, sum.unwrap_or_default(), None),
        })
    }

    pub(super) fn copilots(&self) -> u32 {
        self.links.len() as u32
    }

    /// Whether nothing was lost, doubled or out of order.
    pub(super) fn is_sound(&self) -> bool {
        self.report.is_sound()
    }

    /// Whether its bytes are judged: there are some.
    pub(super) fn is_judged(&self) -> bool {
        self.pace == Pace::Fast && self.published_bytes > 0
    }

    /// Links that carried more than they should, in words.
    pub(super) fn faults(&self) -> impl Iterator<Item = String> {
        let copilots = self.copilots();
        let share = match self.series {
            Series::Divided => self.published_bytes / u64::from(copilots.max(1)),
            Series::Shared => self.published_bytes,
        };
        let (name, round) = (self.series.name(), self.round);
        let links = self.links.iter().zip(1..);
        links.filter_map(move |(link, number)| {
            let (carried, wanted) = (link.copilot.link_bytes, link.wanted_bytes);
            let late = link.copilot.late_bytes;
            let is_right = wanted == share && link.is_once();
            (!is_right).then(|| {
                format!(
                    "{name}, round {round}: the link of copilot {number} of {copilots} carried {carried} \
                     bytes, where {wanted} are wanted behind it, an even part is {share}, and {late} were \
                     read for those who did not keep up"
                )
            })
        })
    }

    /// Bytes on each copilot's link for each that was published.
    pub(super) fn link_shares(&self) -> impl Iterator<Item = f64> {
        let published = self.published_bytes.max(1) as f64;
        let links = self.links.iter();
        links.map(move |link| link.copilot.link_bytes as f64 / published)
    }

    /// Bytes that the tower sent for each that was published.
    pub(super) fn sent_share(&self) -> f64 {
        self.tower.link_bytes as f64 / self.published_bytes.max(1) as f64
    }

    /// Bytes that copilots read for subscribers that did not keep up, for each that was published.
    pub(super) fn late_share(&self) -> f64 {
        let late: u64 = self.links.iter().map(|link| link.copilot.late_bytes).sum();
        late as f64 / self.published_bytes.max(1) as f64
    }

    /// Cores that a node had.
    pub(super) fn cores(&self, look: &Look) -> f64 {
        look.usage.cpu_us as f64 / 1e6 / self.looked_s
    }

    /// Cores that each copilot had, on average.
    pub(super) fn copilot_cores(&self) -> f64 {
        let all: f64 = self
            .links
            .iter()
            .map(|link| self.cores(&link.copilot))
            .sum();
        all / f64::from(self.copilots().max(1))
    }

    /// Cores of the publisher's process, and of the subscribers' processes together.
    pub(super) fn client_cores(&self) -> [f64; 2] {
        let seconds = self.report.seconds;
        self.client_cpu_us
            .map(|cpu_us| cpu_us as f64 / 1e6 / seconds)
    }

    /// Part of the copilots' periods in which they were stopped; `None` where nothing stops them.
    pub(super) fn throttled(&self) -> Option<f64> {
        let links = self.links.iter();
        Throttled::share(links.filter_map(|link| link.copilot.throttled))
    }
}

/// Shows a run to a user who waits for the end.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (series, copilots, round) = (self.series.name(), self.copilots(), self.round);
        let (per_s, p99) = (self.report.delivered_per_s, self.report.latency_us.p99);
        let most = self.link_shares().fold(0.0, f64::max);
        write!(f, "round {round}, {series}, {copilots} copilots: ")?;
        match self.report.offered_per_s {
            None => write!(f, "{per_s:.0} messages/s")?,
            Some(offered) => write!(f, "p99 {:.1} ms at {offered}/s", p99 as f64 / 1e3)?,
        }
        write!(f, ", at most {most:.2} bytes on a link for each published")?;
        let late = self.late_share();
        if late > 0.0 {
            write!(f, ", {late:.2} read for subscribers that did not keep up")?;
        }
        if !self.is_sound() {
            write!(f, "; {}", self.report.complaint())?;
        }
        Ok(())
    }
}

fn settings(args: &CopilotsArgs, series: Series, rate: Option<u64>) -> Settings {
    let duration_ms = (args.seconds() * 1e3) as u64;
    let (topics, own_topics) = (args.topics, series == Series::Divided);
    // Each topic as often as any other.
    let messages = rate.map(|rate| {
        let messages = (rate * duration_ms / 1000).max(1);
        messages.next_multiple_of(topics.into())
    });
    Settings {
        workload: rate.map_or(Workload::E2e, |_| Workload::Latency),
        messages,
        duration_ms: rate.is_none().then_some(duration_ms),
        warmup_ms: duration_ms / 10,
        size: args.size as usize,
        subscribers: args.subscribers,
        topics,
        own_topics,
        rate,
        ..Settings::default()
    }
}

fn acknowledged(part: &Part) -> u64 {
    part.published.acknowledged
}

/// Load of this machine over the last minute; 0 where it is not told.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|load| load.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: u64 = 1_000_000;

    /// A run with two copilots, of which each link carried and each has subscribers who want so many bytes.
    fn run(series: Series, links: [(u64, u64); 2]) -> Run {
        let link = |(link_bytes, wanted_bytes)| Link {
            wanted_bytes,
            copilot: Look {
                link_bytes,
                ..Look::default()
            },
        };
        Run {
            pace: Pace::Fast,
            series,
            round: 1,
            report: Report::new("airmail", Settings::default(), Part::default(), None),
            published_bytes: PUBLISHED,
            links: links.map(link).into(),
            tower: Look::default(),
            looked_s: 1.0,
            client_cpu_us: [0; 2],
            load: 0.0,
        }
    }

    #[test]
    fn a_link_carries_what_is_wanted_behind_it_and_a_quarter_of_that_and_signs_of_life() {
        let (half, most) = (PUBLISHED / 2, PUBLISHED / 8 * 5 + LIFE_BYTES);
        let faults = |series, links| run(series, links).faults().count();
        assert_eq!(faults(Series::Divided, [(most, half), (half, half)]), 0);
        assert_eq!(faults(Series::Divided, [(most + 1, half), (half, half)]), 1);
        let most = PUBLISHED / 4 * 5 + LIFE_BYTES;
        assert_eq!(faults(Series::Shared, [(most, PUBLISHED); 2]), 0);
        assert_eq!(faults(Series::Shared, [(most + 1, PUBLISHED); 2]), 2);
    }

    #[test]
    fn what_was_read_for_those_who_did_not_keep_up_may_be_carried_too() {
        let mut late = run(Series::Shared, [(PUBLISHED * 2, PUBLISHED); 2]);
        assert_eq!(late.faults().count(), 2);
        late.links[0].copilot.late_bytes = PUBLISHED;
        assert_eq!(late.faults().count(), 1);
        late.links[1].copilot.late_bytes = PUBLISHED;
        assert_eq!(late.faults().count(), 0);
    }

    #[test]
    fn a_copilot_that_wants_more_than_an_even_part_is_a_fault_whatever_its_link_carried() {
        let (more, less) = (PUBLISHED / 2 + 1, PUBLISHED / 2 - 1);
        let run = run(Series::Divided, [(more, more), (less, less)]);
        let faults: Vec<String> = run.faults().collect();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("copilot 1 of 2"), "{faults:?}");
    }

    #[test]
    fn bytes_are_told_for_each_that_was_published_and_for_each_that_is_wanted() {
        let half = PUBLISHED / 2;
        let mut run = run(Series::Divided, [(PUBLISHED, half), (half, half)]);
        run.tower.link_bytes = PUBLISHED + half;
        assert_eq!(run.link_shares().collect::<Vec<_>>(), [1.0, 0.5]);
        assert_eq!([run.links[0].carried(), run.sent_share()], [2.0, 1.5]);
    }
}
