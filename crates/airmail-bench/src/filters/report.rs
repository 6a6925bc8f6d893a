//! Report on filters: the index beside a loop.

use super::Kind;
use crate::spread::Spread;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// Bars of the workload of intervals at 100,000 filters on 4 attributes: messages a second, times the loop's
/// rate, the loop's own rate in filters a second, bytes a filter, and microseconds until all are made.
const MESSAGES_PER_S_MIN: f64 = 100_000.0;
const RATIO_MIN: f64 = 50.0;
const LOOP_FILTERS_PER_S_MIN: f64 = 30e6;
const BYTES_EACH_MAX: f64 = 600.0;
const MADE_US_MAX: u64 = 10_000_000;

/// Measurements of one kind of filters.
#[derive(Clone, Debug, Serialize)]
pub struct FiltersRun {
    /// The kind.
    pub kind: Kind,
    /// Filters.
    pub filters: u32,
    /// Messages a second of processor time by the index, on one core, over the rounds.
    pub messages_per_s: Spread,
    /// Messages a second by the loop, in turn with the index.
    pub loop_messages_per_s: Spread,
    /// Filters that a message matches, in the mean.
    pub matches_each: f64,
    /// Conjunctions that a message is compared with, in the mean.
    pub candidates_each: f64,
    /// Memory of filters and index, and of the cursor for a message, in bytes for each filter.
    pub bytes_each: f64,
    /// Time from the filters' texts to an index that was tended, in microseconds.
    pub made_us: u64,
    /// The index has found what the loop has found.
    pub sound: bool,
}

impl FiltersRun {
    /// Times the loop's rate that the index has.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.messages_per_s.median / self.loop_messages_per_s.median.max(f64::MIN_POSITIVE)
    }

    /// Filters a second that the loop asks.
    #[must_use]
    pub fn loop_filters_per_s(&self) -> f64 {
        self.loop_messages_per_s.median * f64::from(self.filters)
    }

    /// The bars that it misses, each as a sentence.
    fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let mut judge = |name: &str, is_met: bool| {
            if !is_met {
                missed.push(name.to_owned());
            }
        };
        judge(
            "100,000 messages/s",
            self.messages_per_s.median >= MESSAGES_PER_S_MIN,
        );
        judge("50 times the loop", self.ratio() >= RATIO_MIN);
        judge(
            "30 million filters/s of the loop",
            self.loop_filters_per_s() >= LOOP_FILTERS_PER_S_MIN,
        );
        judge("600 bytes a filter", self.bytes_each <= BYTES_EACH_MAX);
        judge("all made in 10 s", self.made_us <= MADE_US_MAX);
        missed
    }
}

/// Measurements of filters of several kinds.
#[derive(Clone, Debug, Serialize)]
pub struct FiltersReport {
    /// Filters of each kind.
    pub filters: u32,
    /// Attributes that each filter tests.
    pub attributes: u32,
    /// Width of each interval, as a share of all values.
    pub interval: f64,
    /// The runs, one for each kind.
    pub runs: Vec<FiltersRun>,
}

impl FiltersReport {
    /// Whether index and loop have found the same in every run.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.runs.iter().all(|run| run.sound)
    }

    /// The bars that the first run misses; the others have none.
    #[must_use]
    pub fn missed(&self) -> Vec<String> {
        self.runs
            .first()
            .map(FiltersRun::missed)
            .unwrap_or_default()
    }

    /// The runs as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from(
            "kind,filters,messages_per_s,messages_per_s_least,messages_per_s_most,ratio,loop_filters_per_s,\
             matches_each,candidates_each,bytes_each,made_us,sound\n",
        );
        for run in &self.runs {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{:.0},{:.0},{:.0},{:.1},{:.0},{:.2},{:.2},{:.1},{},{}",
                run.kind.name(),
                run.filters,
                run.messages_per_s.median,
                run.messages_per_s.least,
                run.messages_per_s.most,
                run.ratio(),
                run.loop_filters_per_s(),
                run.matches_each,
                run.candidates_each,
                run.bytes_each,
                run.made_us,
                run.sound,
            );
        }
        text
    }
}

impl fmt::Display for FiltersRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.messages_per_s.to_string();
        write!(
            f,
            "{:<10} {rate:>25} {:>7.0} {:>9.1} {:>8.1} {:>10.1} {:>8.0} {:>6.2}{}",
            self.kind.name(),
            self.ratio(),
            self.loop_filters_per_s() / 1e6,
            self.matches_each,
            self.candidates_each,
            self.bytes_each,
            self.made_us as f64 / 1e6,
            if self.sound {
                ""
            } else {
                "  NOT WHAT THE LOOP FINDS"
            },
        )
    }
}

impl fmt::Display for FiltersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} filters on {} attributes each, intervals of {:.1} % of the values, one core; messages/s of its time as \
             median (least-most) of the rounds\n\
             kind                      messages/s  x loop  loop M/s  matches candidates  bytes/f made s",
            self.filters,
            self.attributes,
            self.interval * 100.0,
        )?;
        self.runs.iter().try_for_each(|run| writeln!(f, "{run}"))
    }
}
