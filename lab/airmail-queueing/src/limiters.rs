//! The limiters' table: each one's distance from the knee, and its recovery when the capacity has changed.
//!
//! A run is as long as 250 windows at the largest throughput: 100 at full capacity, of which the first 50
//! are for finding the knee, then 100 at half of it, then 50 at full capacity again. The knee is found for
//! each capacity by a sweep over fixed bounds (`sweep`), and then a fixed bound at the knee runs with each
//! seed beside the limiters: what they are compared with is what it did in the same stretch of time, under
//! the same noise.

mod row;
mod sweep;
mod trace;

use crate::course::{Course, Phase};
use crate::knee::KneeError;
use crate::subject::Subject;
use airmail_flow::{
    GateSettings, GradientSettings, LadderSettings, LatencyTargetSettings, LimiterKind,
    LimiterSettings,
};

pub use row::{Recovery, Row, Told};
pub use sweep::{Curve, Point};
pub use trace::Trace;

/// Windows at full capacity, at half of it, and at full capacity again, of the length that they have at the
/// largest throughput; and the capacity.
pub const PHASES: [(u64, f64); 3] = [(100, 1.0), (100, 0.5), (50, 1.0)];
/// Windows of each phase that a limiter has to find the knee, of the same length.
pub const SEARCH_WINDOWS: [u64; 3] = [50, 40, 20];
/// Latency that `latency-target` aims at, in seconds: the column W over it is for all limiters.
pub const LATENCY_TARGET_S: f64 = LatencyTargetSettings::DEFAULT.target_us as f64 / 1e6;
/// A fixed bound's record is so much finer than the limiters' windows.
const FINER: u64 = 50;

/// Extent of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Runs of each limiter on each system. Default: 20.
    pub seeds: u64,
    /// The limiters. Default: all.
    pub limiters: &'static [LimiterKind],
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seeds: 20,
            limiters: &LimiterKind::ALL,
        }
    }
}

/// A limiter in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The limiter.
    pub kind: LimiterKind,
    /// The latency floor of `gradient`, in milliseconds.
    pub latency_floor_ms: u64,
}

impl Contender {
    /// Those of the plan, in its order; `gradient` also as a node has it by default.
    #[must_use]
    pub fn of(plan: &Plan) -> Vec<Contender> {
        let contender = |kind, latency_floor_ms| Contender {
            kind,
            latency_floor_ms,
        };
        let kinds = plan.limiters.iter();
        let mut all: Vec<Contender> = kinds.map(|kind| contender(*kind, 0)).collect();
        if plan.limiters.contains(&LimiterKind::Gradient) {
            all.push(contender(LimiterKind::Gradient, NODE_FLOOR_MS));
        }
        all
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> String {
        match self.latency_floor_ms {
            0 => self.kind.name().to_owned(),
            floor_ms => format!("{}, {floor_ms} ms", self.kind.name()),
        }
    }

    fn settings(&self, subject: &Subject, bound_initial: u64) -> GateSettings {
        GateSettings {
            window_messages: subject.window_messages(),
            limiter: LimiterSettings {
                kind: self.kind,
                bound_initial,
                bound_min: match self.kind {
                    LimiterKind::Ladder | LimiterKind::LatencyTarget => subject.bound_least(),
                    _ => LimiterSettings::DEFAULT.bound_min,
                },
                // A tenth of the first bound, as in the paper.
                delta: subject.bound_initial() / 10,
                gradient: GradientSettings {
                    latency_floor_ms: self.latency_floor_ms,
                    ..GradientSettings::DEFAULT
                },
                ladder: LadderSettings {
                    floor_us: match subject {
                        // Their messages take as little as 0.1 ms, and it is the knee that is asked for.
                        Subject::Servers(_) => 0,
                        Subject::Node(_) => LadderSettings::DEFAULT.floor_us,
                    },
                    ..LadderSettings::DEFAULT
                },
                ..LimiterSettings::DEFAULT
            },
            ..GateSettings::DEFAULT
        }
    }
}

/// The latency floor of a node's publish gate by default, in milliseconds.
const NODE_FLOOR_MS: u64 = 10;

/// All that was measured on a system.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The system.
    pub subject: Subject,
    /// Curves at full capacity, and at half of it.
    pub curves: [Curve; 2],
    /// A line for each limiter.
    pub rows: Vec<Row>,
    /// A trace for each limiter.
    pub traces: Vec<Trace>,
}

/// The runs of one seed: a limiter's, and beside it fixed bounds at the knee of each phase.
#[derive(Clone, Copy, Debug)]
struct Runs<'a> {
    limiter: &'a Course,
    /// Latencies within which shares of its deliveries came back, at full capacity; in seconds.
    delivery_s: Option<[f64; 2]>,
    fixed: [&'a Course; 3],
}

/// Times of the phases on a subject.
#[derive(Clone, Copy, Debug)]
struct Timetable {
    window_ns: u64,
}

impl Timetable {
    fn of(subject: &Subject) -> Timetable {
        Timetable {
            window_ns: subject.window_ns(),
        }
    }

    fn phases(self) -> [Phase; 3] {
        PHASES.map(|(windows, capacity)| Phase {
            span_ns: windows * self.window_ns,
            capacity,
        })
    }

    /// Begin and end of a phase, in nanoseconds.
    fn phase_ns(self, phase: usize) -> (u64, u64) {
        let before: u64 = PHASES[..phase].iter().map(|(windows, _)| windows).sum();
        let begin = before * self.window_ns;
        (begin, begin + PHASES[phase].0 * self.window_ns)
    }

    /// The part of a phase that is judged, in nanoseconds.
    fn judged_ns(self, phase: usize) -> (u64, u64) {
        let (begin, end) = self.phase_ns(phase);
        (begin + SEARCH_WINDOWS[phase] * self.window_ns, end)
    }
}

/// Measures a system; calls `progress` after each run of a limiter, [`runs`] times.
///
/// # Errors
/// The sweep has no knee.
pub fn measure(subject: Subject, plan: &Plan, progress: &dyn Fn()) -> Result<Report, KneeError> {
    let curves = [sweep::sweep(&subject, 1.0)?, sweep::sweep(&subject, 0.5)?];
    let knees = [&curves[0], &curves[1], &curves[0]].map(|curve| curve.knee);
    let timetable = Timetable::of(&subject);
    let fixed: Vec<[Course; 2]> = (0..plan.seeds.max(1))
        .map(|seed| {
            [0, 1].map(|curve| {
                let bound = curves[curve].knee.bound;
                let settings = sweep::fixed(&subject, bound);
                let mut course = subject.run(settings, &timetable.phases(), seed);
                course.deliveries = Vec::new();
                course
            })
        })
        .collect();
    let mut rows = Vec::new();
    let mut traces = Vec::new();
    for contender in Contender::of(plan) {
        let initial = match contender.kind {
            LimiterKind::Fixed => knees[0].bound,
            _ => subject.bound_initial(),
        };
        let settings = contender.settings(&subject, initial);
        // Deliveries are most of a course's memory: all that is told of them is taken at once.
        let (from, to) = timetable.judged_ns(0);
        let courses: Vec<(Course, Option<[f64; 2]>)> = (0..plan.seeds.max(1))
            .map(|seed| {
                let mut course = subject.run(settings, &timetable.phases(), seed);
                let delivery_s = course.delivery_s(from, to, row::DELIVERY_SHARES);
                course.deliveries = Vec::new();
                progress();
                (course, delivery_s)
            })
            .collect();
        let runs: Vec<Runs<'_>> = courses
            .iter()
            .zip(&fixed)
            .map(|((limiter, delivery_s), [full, half])| Runs {
                limiter,
                delivery_s: *delivery_s,
                fixed: [full, half, full],
            })
            .collect();
        rows.push(row::row(&subject, contender, knees, &runs));
        traces.push(trace::trace(contender, timetable, &runs));
    }
    Ok(Report {
        subject,
        curves,
        rows,
        traces,
    })
}

/// Number of runs of limiters that [`measure`] makes of one system.
#[must_use]
pub fn runs(plan: &Plan) -> u64 {
    plan.seeds.max(1) * Contender::of(plan).len() as u64
}
