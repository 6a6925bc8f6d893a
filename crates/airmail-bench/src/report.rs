//! What a run found, as JSON and as text.

use std::fmt;

use serde::Serialize;

use crate::latency::Percentiles;
use crate::settings::Settings;

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Acknowledged messages a second, from the first publish to the last ack.
    pub published_per_s: f64,
    /// Messages delivered to all subscribers together a second, from the first publish to the last
    /// delivery.
    pub delivered_per_s: f64,
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
    /// Messages on this run's topics that are none of its own.
    pub strange: u64,
    /// Gaps that subscribers were told.
    pub gaps: u64,
    /// From publish to delivery, in microseconds.
    pub latency_us: Percentiles,
    /// From publish to ack, in microseconds.
    pub ack_latency_us: Percentiles,
    /// From the first publish to the last delivery, in seconds.
    pub seconds: f64,
    /// What was asked for.
    pub settings: Settings,
    /// The first error that a publisher or a subscriber met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}

impl Report {
    /// Whether all that was to be published arrived, once, in order, everywhere.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let lost = [self.failed, self.missing, self.gaps];
        let wrong = [self.duplicates, self.reordered, self.strange];
        lost == [0; 3] && wrong == [0; 3] && self.acknowledged == self.settings.messages
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            messages,
            size,
            publishers,
            subscribers,
            topics,
            rate,
            ..
        } = &self.settings;
        let pace = rate.map_or("as fast as there is room".to_owned(), |rate| {
            format!("{rate}/s")
        });
        writeln!(f, "{messages} messages of {size} bytes, {pace}")?;
        writeln!(
            f,
            "{publishers} publishers, {subscribers} subscribers, {topics} topics"
        )?;
        writeln!(f)?;
        writeln!(f, "published    {:>12.0} /s", self.published_per_s)?;
        writeln!(f, "delivered    {:>12.0} /s", self.delivered_per_s)?;
        writeln!(
            f,
            "acknowledged {:>12}    failed     {}",
            self.acknowledged, self.failed
        )?;
        writeln!(
            f,
            "delivered    {:>12}    missing    {}",
            self.delivered, self.missing
        )?;
        writeln!(
            f,
            "duplicates   {:>12}    reordered  {}",
            self.duplicates, self.reordered
        )?;
        writeln!(f)?;
        writeln!(
            f,
            "microseconds      p50      p90      p99    p99.9   p99.99      max"
        )?;
        row(f, "to the ack", &self.ack_latency_us)?;
        row(f, "to delivery", &self.latency_us)?;
        match &self.first_error {
            Some(error) => writeln!(f, "\nfirst error: {error}"),
            None => Ok(()),
        }
    }
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
