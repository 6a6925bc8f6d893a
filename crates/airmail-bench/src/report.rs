//! Report of a run, as JSON and as text.

use crate::latency::Percentiles;
use crate::part::{Part, Published, Received, Sample};
use crate::process::Usage;
use crate::settings::Settings;
use serde::Serialize;
use std::fmt;

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The measured system: `airmail`, `nats`, `jetstream` or `null`.
    pub system: String,
    /// Acknowledged messages a second, from the end of the warm-up to the last ack.
    pub published_per_s: f64,
    /// Messages delivered to all subscribers together a second, from the end of the warm-up to the
    /// last delivery.
    pub delivered_per_s: f64,
    /// Messages a second that the timetable asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Messages handed over.
    pub sent: u64,
    /// Messages that the node acknowledged.
    pub acknowledged: u64,
    /// Messages that the node refused, or whose outcome is not known.
    pub failed: u64,
    /// Messages that arrived for the first time, at all subscribers together.
    pub delivered: u64,
    /// Acknowledged messages that did not arrive, at all subscribers together.
    pub missing: u64,
    /// Messages that arrived again.
    pub duplicates: u64,
    /// Messages that arrived after a later one of the same publisher and topic; and one more for each
    /// topic that two subscribers saw in different orders.
    pub reordered: u64,
    /// Messages of other runs on this run's topics.
    pub strange: u64,
    /// Gaps that subscribers were told.
    pub gaps: u64,
    /// Times from publish to delivery, in microseconds.
    pub latency_us: Percentiles,
    /// Times from publish to ack, in microseconds; warm-up included.
    pub ack_latency_us: Percentiles,
    /// Delays between the times at which messages were due and were handed over, in microseconds:
    /// the instrument's own part.
    pub late_us: Percentiles,
    /// Time from the first publish to the last delivery, in seconds.
    pub seconds: f64,
    /// Processor time of the clients, in microseconds.
    pub client_cpu_us: u64,
    /// Memory of the clients at the end.
    pub client_rss_bytes: u64,
    /// Processor time of the node, in microseconds, if its process is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_cpu_us: Option<u64>,
    /// Memory of the node at the end, if its process is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_rss_bytes: Option<u64>,
    /// Settings of the run.
    pub settings: Settings,
    /// The first error that a publisher or a subscriber met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// Quantiles of the time from publish to delivery, each with its microseconds.
    pub curve: Vec<(f64, u64)>,
    /// The run over time.
    pub samples: Vec<Sample>,
}

impl Report {
    /// Adds up a run's findings.
    #[must_use]
    pub fn new(system: &str, settings: Settings, part: Part, node: Option<Usage>) -> Report {
        let Part {
            start_us,
            published,
            received,
            course,
            ..
        } = part;
        let warm = course.warm;
        let per_s = |count: u64, until_us: u64| {
            let seconds = until_us.saturating_sub(warm.at_us.max(start_us)).max(1) as f64 / 1e6;
            (count as f64 / seconds).round()
        };
        let delivered = received.tally.delivered;
        let last_us = received.last_us.max(published.last_us);
        Report {
            system: system.to_owned(),
            published_per_s: per_s(
                published.acknowledged - warm.acknowledged,
                published.last_us,
            ),
            delivered_per_s: per_s(delivered - warm.delivered, received.last_us),
            offered_per_s: settings.rate.map(|rate| rate as f64),
            sent: published.sent,
            acknowledged: published.acknowledged,
            failed: published.sent.saturating_sub(published.acknowledged),
            delivered,
            missing: missing(&settings, &published, &received),
            duplicates: received.tally.duplicates,
            reordered: received.tally.reordered + received.disagreements,
            strange: received.tally.strange,
            gaps: received.gaps,
            latency_us: course.latencies.percentiles(),
            ack_latency_us: published.latencies.percentiles(),
            late_us: published.lateness.percentiles(),
            seconds: last_us.saturating_sub(start_us).max(1) as f64 / 1e6,
            client_cpu_us: part.cpu_us,
            client_rss_bytes: part.rss_bytes,
            node_cpu_us: node.map(|usage| usage.cpu_us),
            node_rss_bytes: node.map(|usage| usage.rss_bytes),
            first_error: published.first_error.or(received.first_error),
            curve: course.latencies.curve(),
            samples: course.samples,
            settings,
        }
    }

    /// A line for a run that is not sound: what was lost, doubled or out of order, and the first error.
    #[must_use]
    pub fn complaint(&self) -> String {
        let Report {
            missing,
            failed,
            duplicates,
            reordered,
            first_error,
            ..
        } = self;
        format!(
            "missing {missing}, failed {failed}, doubled {duplicates}, out of order {reordered} {first_error:?}"
        )
    }

    /// Whether all that was to be published arrived, once, in order, everywhere.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let lost = [self.failed, self.missing, self.gaps];
        let wrong = [self.duplicates, self.reordered, self.strange];
        let due = if self.settings.publishes() {
            self.settings.messages
        } else {
            None
        };
        let whole = due.is_none_or(|messages| self.acknowledged == messages)
            || self.settings.duration_ms.is_some();
        lost == [0; 3] && wrong == [0; 3] && whole && self.first_error.is_none()
    }
}

/// Number of messages that should have arrived and did not. A refused message leaves a hole that is
/// no loss; one that was refused and came all the same must not make up for another.
fn missing(settings: &Settings, published: &Published, received: &Received) -> u64 {
    if !settings.subscribes() {
        return 0;
    }
    let readers = settings.readers();
    let (each, refused) = if settings.publishes() {
        (published.acknowledged, published.failed * readers)
    } else {
        (settings.messages.unwrap_or_default(), 0)
    };
    let short = (each * readers).saturating_sub(received.tally.delivered);
    short.max(received.holes.saturating_sub(refused))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        heading(f, self)?;
        writeln!(f, "published    {:>12.0} /s", self.published_per_s)?;
        writeln!(f, "delivered    {:>12.0} /s", self.delivered_per_s)?;
        let counts = [
            ("acknowledged", self.acknowledged, "failed", self.failed),
            ("delivered", self.delivered, "missing", self.missing),
            ("duplicates", self.duplicates, "reordered", self.reordered),
        ];
        for (name, count, other, of_other) in counts {
            writeln!(f, "{name:<12} {count:>12}    {other:<10} {of_other}")?;
        }
        let busiest = self.acknowledged.max(self.delivered).max(1);
        let each = |cpu_us: u64| cpu_us * 1000 / busiest;
        write!(
            f,
            "processor    {:>9} ns a message in the clients",
            each(self.client_cpu_us)
        )?;
        if let Some(cpu_us) = self.node_cpu_us {
            write!(f, ", {} in the node", each(cpu_us))?;
        }
        writeln!(f, "\n")?;
        writeln!(
            f,
            "microseconds      p50      p90      p99    p99.9   p99.99      max"
        )?;
        row(f, "to the ack", &self.ack_latency_us)?;
        row(f, "to delivery", &self.latency_us)?;
        if self.settings.rate.is_some() {
            row(f, "sent late", &self.late_us)?;
        }
        match &self.first_error {
            Some(error) => writeln!(f, "\nfirst error: {error}"),
            None => Ok(()),
        }
    }
}

fn heading(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let Settings {
        size,
        publishers,
        subscribers,
        topics,
        rate,
        ..
    } = &report.settings;
    let pace = rate.map_or("as fast as there is room".to_owned(), |rate| {
        format!("{rate}/s")
    });
    let count = report.sent.max(report.delivered);
    let (system, seconds) = (&report.system, report.seconds);
    writeln!(
        f,
        "{system}: {count} messages of {size} bytes in {seconds:.2} s, {pace}"
    )?;
    writeln!(
        f,
        "{publishers} publishers, {subscribers} subscribers, {topics} topics\n"
    )
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, times: &Percentiles) -> fmt::Result {
    let Percentiles {
        p50,
        p90,
        p99,
        p999,
        p9999,
        max,
    } = times;
    writeln!(
        f,
        "{name:<12} {p50:>8} {p90:>8} {p99:>8} {p999:>8} {p9999:>8} {max:>8}"
    )
}
