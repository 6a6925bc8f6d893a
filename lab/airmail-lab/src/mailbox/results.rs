//! Results of each run, read from a record.

use super::case::Case;
use airmail_bench::latency::{Latencies, Percentiles};
use airmail_experiments::mailbox::record::{Reader, RecordError, Run};
use airmail_experiments::mailbox::{Call, Kind, Outcome};
use airmail_experiments::results::{Confidence, Interval};
use std::collections::BTreeMap;

/// Parts that a run is cut into, to see how sure its means are.
pub(super) const PARTS: usize = 10;
/// Stretches of its course over time at most: the paper's minutes of an hour.
const STRETCHES: usize = 60;

/// A run.
#[derive(Debug)]
pub(super) struct RunResult {
    pub(super) run: Run<Case>,
    /// Requests that failed.
    pub(super) failed: u64,
    /// Requests answered a second; that there was nothing is an answer.
    pub(super) per_s: f64,
    /// Messages sent and received a second.
    pub(super) messages_per_s: f64,
    /// Mean time of a request.
    pub(super) mean_ms: f64,
    /// All times.
    pub(super) times_us: Percentiles,
    /// Confidence intervals of the rate and of the mean time.
    pub(super) rate_interval: Option<Interval>,
    pub(super) time_interval: Option<Interval>,
    pub(super) kinds: BTreeMap<Kind, Share>,
    pub(super) course: Vec<Stretch>,
    /// Requests a second in each tenth of the run.
    pub(super) tenths: Vec<f64>,
    /// Processors that were busy, of the machine's, as far as it told.
    pub(super) busy: Usage,
}

/// The requests of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub(super) calls: u64,
    pub(super) nothing: u64,
    took_us: u64,
}

impl Share {
    fn take(&mut self, call: &Call) {
        self.calls += 1;
        self.nothing += u64::from(call.outcome == Outcome::Nothing);
        self.took_us += call.took_us;
    }

    /// Mean time of one.
    pub(super) fn mean_ms(&self) -> f64 {
        self.took_us as f64 / 1e3 / self.calls.max(1) as f64
    }
}

/// A stretch of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretch {
    /// Its middle, in seconds since the begin of what is measured.
    pub(super) seconds: f64,
    pub(super) length_s: f64,
    pub(super) all: Share,
    pub(super) kinds: BTreeMap<Kind, Share>,
}

impl Stretch {
    pub(super) fn per_s(&self) -> f64 {
        self.all.calls as f64 / self.length_s
    }
}

/// Processors in use, on the average of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Use of the whole machine, as a share of all its processors.
    pub(super) machine: Option<f64>,
    pub(super) nodes: Option<f64>,
    pub(super) database: Option<f64>,
    pub(super) clients: Option<f64>,
}

/// All runs that came to their end.
pub(super) fn read(reader: &Reader) -> Result<Vec<RunResult>, RecordError> {
    let runs = reader.runs::<Case>()?;
    runs.into_iter().map(|run| result(reader, run)).collect()
}

fn result(reader: &Reader, run: Run<Case>) -> Result<RunResult, RecordError> {
    let count = STRETCHES.min(run.seconds() as usize).max(PARTS);
    let mut course = stretches(&run, count);
    let mut parts = stretches(&run, PARTS);
    let mut times = Latencies::new();
    let mut kinds: BTreeMap<Kind, Share> = BTreeMap::new();
    let (mut all, mut failed, mut messages) = (Share::default(), 0, 0_u64);
    reader.calls(&run, |call| {
        if call.outcome == Outcome::Failed {
            failed += 1;
            return;
        }
        all.take(&call);
        messages += u64::from(call.messages);
        times.record(call.took_us);
        kinds.entry(call.kind).or_default().take(&call);
        for stretches in [&mut course, &mut parts] {
            let place = place(&run, &call, stretches.len());
            stretches[place].all.take(&call);
            stretches[place]
                .kinds
                .entry(call.kind)
                .or_default()
                .take(&call);
        }
    })?;
    let of_parts =
        |value: fn(&Stretch) -> f64| Interval::of(Confidence::P95, parts.iter().map(value));
    Ok(RunResult {
        failed,
        per_s: all.calls as f64 / run.seconds(),
        messages_per_s: messages as f64 / run.seconds(),
        mean_ms: all.mean_ms(),
        times_us: times.percentiles(),
        rate_interval: of_parts(Stretch::per_s),
        time_interval: of_parts(|part| part.all.mean_ms()),
        tenths: parts.iter().map(Stretch::per_s).collect(),
        kinds,
        course,
        busy: usage(reader, &run)?,
        run,
    })
}

fn stretches(run: &Run<Case>, count: usize) -> Vec<Stretch> {
    let length_s = run.seconds() / count as f64;
    let stretch = |nth| Stretch {
        seconds: (nth as f64 + 0.5) * length_s,
        length_s,
        ..Stretch::default()
    };
    (0..count).map(stretch).collect()
}

/// Index of the stretch, out of `count`, in which a call ended.
fn place(run: &Run<Case>, call: &Call, count: usize) -> usize {
    let length_us = run.end_us.saturating_sub(run.begin_us).max(1);
    let since_us = call.ended_us.saturating_sub(run.begin_us);
    let nth = u128::from(since_us) * count as u128 / u128::from(length_us);
    usize::try_from(nth).unwrap_or(0).min(count - 1)
}

fn usage(reader: &Reader, run: &Run<Case>) -> Result<Usage, RecordError> {
    let per_s = |name: &str| rate(reader, run, name);
    let machine = per_s("machine_busy_s")?.zip(per_s("machine_s")?);
    Ok(Usage {
        machine: machine.map(|(busy, all)| busy / all.max(1e-9)),
        nodes: per_s("nodes_cpu_s")?,
        database: per_s("database_cpu_s")?,
        clients: per_s("clients_cpu_s")?,
    })
}

/// Rise of a counter in a second, while the run was measured.
fn rate(reader: &Reader, run: &Run<Case>, name: &str) -> Result<Option<f64>, RecordError> {
    let samples = reader.samples(run, name)?;
    let within = samples
        .iter()
        .filter(|(at_us, _)| (run.begin_us..=run.end_us).contains(at_us));
    let within: Vec<&(u64, f64)> = within.collect();
    Ok(match within[..] {
        [first, .., last] => Some((last.1 - first.1) / ((last.0 - first.0) as f64 / 1e6)),
        _ => None,
    })
}

/// Rise of a counter in each second of a run, each with its time since the run's begin.
pub(super) fn slope(
    reader: &Reader,
    run: &Run<Case>,
    name: &str,
) -> Result<Vec<(f64, f64)>, RecordError> {
    let samples = reader.samples(run, name)?;
    let within = samples
        .windows(2)
        .filter(|pair| pair[0].0 >= run.begin_us && pair[1].0 <= run.end_us);
    let slope = within.map(|pair| {
        let seconds = (pair[1].0 - pair[0].0) as f64 / 1e6;
        let at = (pair[1].0 - run.begin_us) as f64 / 1e6;
        (at, (pair[1].1 - pair[0].1) / seconds.max(1e-3))
    });
    Ok(slope.collect())
}
