//! Filters: how many messages a second one core holds against very many of them, by the index and by a loop.
//!
//! By [`measure`] nothing is sent: this is the matching alone, of attributes as they lie in a batch. The loop asks each filter, of
//! attributes that were decoded once a message; its own rate is given, so that nobody takes the ratio for more
//! than it is. The two take turns, in rounds, and what they find is compared: a run in which they differ is not
//! sound. Rates are by the processor time of the one thread that does it, so that a busy machine is not taken for a
//! slow index. [`Delivered`] has a node do it.

mod backlog;
mod delivered;
mod report;
mod workload;

use crate::clock::now_us;
use crate::spread::Spread;
use airmail_match::{Cursor, FilterId, Matcher, MatcherLimits, TooComplex};
use airmail_model::filter::{Facts, Filter, FilterError};
use airmail_model::{Batch, Checked};
pub use backlog::{FilteredBacklog, FilteredBacklogRun};
pub use delivered::{Delivered, DeliveredRun};
pub use report::{FiltersReport, FiltersRun};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
pub use workload::Kind;

/// Messages whose matches are compared, one by one, with those of a loop.
const COMPARED: usize = 32;
/// Messages between two looks at the clock.
const MESSAGES_OF_LOOK: usize = 32;
/// Work of one call that tends the index: some milliseconds.
const TEND_UNITS: u32 = 1 << 20;

/// A measurement that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Filters, at least 1.
    pub filters: u32,
    /// Attributes that each filter tests, and that each message has, 1 to 16.
    pub attributes: u32,
    /// Width of each interval, as a share of all values, above 0, at most 1.
    pub interval: f64,
    /// Rounds, in each of which index and loop have a turn.
    pub rounds: u32,
    /// Processor time of a turn, in milliseconds.
    pub turn_ms: u64,
    /// The number that filters and messages follow from.
    pub seed: u64,
}

/// The reason for which nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A filter of the workload is refused by the language.
    #[error("{0}")]
    Filter(#[from] FilterError),
    /// The filters exceed a bound of the index.
    #[error("{0}")]
    Matcher(#[from] TooComplex),
}

/// Measures filters of each kind, one kind after another.
///
/// # Errors
/// The filters are refused.
pub fn measure(wanted: &Wanted, kinds: &[Kind]) -> Result<FiltersReport, Failure> {
    let runs = kinds.iter().map(|kind| measure_kind(wanted, *kind));
    Ok(FiltersReport {
        filters: wanted.filters,
        attributes: wanted.attributes,
        interval: wanted.interval,
        runs: runs.collect::<Result<_, _>>()?,
    })
}

fn measure_kind(wanted: &Wanted, kind: Kind) -> Result<FiltersRun, Failure> {
    let texts = workload::filters(wanted, kind);
    let batch = workload::batch(wanted, kind);
    let begun_us = now_us();
    // The bound on memory is what is to be seen here, not to be met.
    let mut matcher = Matcher::new(MatcherLimits {
        bytes: usize::MAX,
        ..MatcherLimits::DEFAULT
    });
    let mut ids = BTreeMap::new();
    for (number, text) in texts.iter().enumerate() {
        ids.insert(matcher.insert(Filter::parse(text)?)?, number);
    }
    while matcher.tend(TEND_UNITS) {}
    let made_us = now_us() - begun_us;
    let filters: Vec<Filter> = texts
        .iter()
        .map(|text| Filter::parse(text))
        .collect::<Result<_, _>>()?;
    let mut index = ByIndex {
        matcher,
        cursor: Cursor::new(),
    };
    let sound = (0..COMPARED).all(|n| index.agrees(&batch, n, &filters, &ids));
    let before = index.matcher.stats();
    let (mut indexed, mut looped) = (Vec::new(), Vec::new());
    for _ in 0..wanted.rounds.max(1) {
        indexed.push(turn(&batch, wanted.turn_ms, MESSAGES_OF_LOOK, |facts| {
            index.matches(facts)
        }));
        looped.push(turn(&batch, wanted.turn_ms, 1, |facts| {
            by_loop(&filters, facts)
        }));
    }
    let after = index.matcher.stats();
    let records = (after.records - before.records).max(1) as f64;
    let bytes = index.matcher.bytes() + index.cursor.bytes();
    Ok(FiltersRun {
        kind,
        filters: wanted.filters,
        messages_per_s: Spread::of(indexed).unwrap_or_default(),
        loop_messages_per_s: Spread::of(looped).unwrap_or_default(),
        matches_each: (after.matches - before.matches) as f64 / records,
        candidates_each: (after.candidates - before.candidates) as f64 / records,
        bytes_each: bytes as f64 / f64::from(wanted.filters.max(1)),
        made_us,
        sound,
    })
}

/// The index, and a cursor for one message after another.
struct ByIndex {
    matcher: Matcher,
    cursor: Cursor,
}

impl ByIndex {
    /// Number of filters that a message matches.
    fn matches(&mut self, facts: &Facts<'_>) -> usize {
        self.matcher.begin(facts, &mut self.cursor);
        let mut units = u32::MAX;
        while !self.matcher.advance(facts, &mut self.cursor, &mut units) {
            units = u32::MAX;
        }
        self.cursor.matches().len()
    }

    /// Whether a message matches the same filters as by a loop.
    fn agrees(
        &mut self,
        batch: &Checked<Batch>,
        message: usize,
        filters: &[Filter],
        ids: &BTreeMap<FilterId, usize>,
    ) -> bool {
        let Some(record) = batch.iter().nth(message) else {
            // Input: fewer messages than are compared.
            return true;
        };
        let facts = Facts::read(record.attributes);
        self.matches(&facts);
        let found = self.cursor.matches().iter();
        let mut found: Vec<_> = found.map(|id| ids.get(id).copied()).collect();
        found.sort_unstable();
        let all = filters.iter().enumerate();
        let wanted = all.filter(|(_, filter)| filter.matches(&record));
        found.into_iter().eq(wanted.map(|(number, _)| Some(number)))
    }
}

/// Number of filters that a message matches, by asking each.
fn by_loop(filters: &[Filter], facts: &Facts<'_>) -> usize {
    filters
        .iter()
        .filter(|filter| filter.matches_facts(facts))
        .count()
}

/// Processor time of this thread so far, in microseconds.
fn processor_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000 + time.tv_nsec / 1000).unwrap_or_default()
}

/// Messages a second of processor time, over the batch again and again.
fn turn(
    batch: &Checked<Batch>,
    turn_ms: u64,
    messages_of_look: usize,
    mut matches: impl FnMut(&Facts<'_>) -> usize,
) -> f64 {
    let begun_us = processor_us();
    let (mut messages, mut found) = (0_u64, 0);
    let mut records = batch.iter();
    let taken_us = loop {
        for _ in 0..messages_of_look {
            let record = match records.next() {
                Some(record) => record,
                None => {
                    records = batch.iter();
                    continue;
                }
            };
            found += matches(&Facts::read(record.attributes));
            messages += 1;
        }
        let taken_us = processor_us() - begun_us;
        if taken_us >= turn_ms * 1000 {
            break taken_us;
        }
    };
    // Seen, so that nothing is left out for having no use.
    std::hint::black_box(found);
    messages as f64 * 1e6 / taken_us.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_finds_what_the_loop_finds_of_every_kind() {
        let wanted = Wanted {
            filters: 500,
            attributes: 4,
            interval: 0.3,
            rounds: 1,
            turn_ms: 1,
            seed: 7,
        };
        let report = measure(&wanted, Kind::ALL).unwrap();
        assert!(report.is_sound(), "{report}");
        assert_eq!(report.runs.len(), Kind::ALL.len());
        for run in &report.runs {
            assert!(run.matches_each > 0.0, "{report}");
            assert!(run.messages_per_s.least > 0.0 && run.loop_messages_per_s.least > 0.0);
        }
        let columns = report
            .table()
            .lines()
            .map(|line| line.split(',').count())
            .collect::<Vec<_>>();
        assert_eq!(columns, [columns[0]; 5]);
    }
}
