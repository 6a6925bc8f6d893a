//! A case in numbers: the results of its rounds, as a row and as a line of a table.

use super::case::{Case, Setup};
use super::outcome::{Outcome, courses, periods_of, recovery};
use super::runs::{Measurement, Round};
use airmail_bench::Spread;
use airmail_experiments::flow::{Flown, Window};
use airmail_experiments::results::Row;
use airmail_flow::{LatencyTargetSettings, LimiterKind};
use serde_json::{Value, json};

/// Heads of the columns of [`Summary::cells`].
pub(super) const HEAD: [&str; 16] = [
    "storage",
    "publishers",
    "topics",
    "distribution",
    "where",
    "limiter",
    "bound",
    "in flight",
    "latency, ms",
    "messages/s",
    "share of the knee's",
    "times its latency",
    "bound, sd/mean",
    "windows until there",
    "delivery p50, ms",
    "p99, ms",
];

/// A case's rounds together. Everything but counts and deliveries is of the last half of a run.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    pub(super) case: Case,
    rounds: usize,
    /// Bound of the fixed one that the limiters are held against.
    knee_bound: Option<u64>,
    /// Bound of each publisher, or of the node's gate, in messages.
    bound: Option<Spread>,
    in_flight: Option<Spread>,
    latency_ms: Option<Spread>,
    /// Throughput of all publishers together.
    throughput_per_s: Option<Spread>,
    /// Share of the throughput and multiple of the latency of the fixed bound at the knee, each of the
    /// same round.
    pub(super) rate_share: Option<Spread>,
    pub(super) latency_ratio: Option<Spread>,
    /// Standard deviation of the bound over its mean, of each limiter of each round.
    pub(super) bound_spread: Option<Spread>,
    /// The most that a publisher had over the least.
    pub(super) unevenness: Option<Spread>,
    /// Latency over the one that the limiter keeps, if it has one.
    pub(super) target_ratio: Option<Spread>,
    delivery_p50_ms: Option<Spread>,
    delivery_p99_ms: Option<Spread>,
    /// Periods and seconds until the runs were at the knee that came there.
    reached: Vec<(usize, f64)>,
    /// Runs that could have.
    tried: usize,
    counts: Counts,
    first_error: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    acknowledged: u64,
    failed: u64,
    delivered: u64,
    missing: u64,
    duplicates: u64,
    reordered: u64,
    decisions: u64,
    decisions_unseen: u64,
    changes_told: u64,
    sound: bool,
}

impl Summary {
    /// Summary of a case, each round beside the fixed bound of the same round.
    pub(super) fn of(measurement: &Measurement) -> Summary {
        let Measurement { case, rounds } = measurement;
        let runs = rounds.iter().map(|round| courses(case.setup.place, round));
        let runs: Vec<_> = runs.collect();
        let outcomes = runs.iter().zip(rounds);
        let outcomes = outcomes.filter_map(|(run, round)| Some((Outcome::of_run(run)?, round)));
        let outcomes: Vec<(Outcome, &Round)> = outcomes.collect();
        let over =
            |of: fn(&Outcome) -> f64| Spread::of(outcomes.iter().map(|(found, _)| of(found)));
        let beside = outcomes.iter().filter_map(|(found, round)| {
            let knee = round.beside.as_ref()?;
            Some(found.beside(knee))
        });
        let beside: Vec<_> = beside.collect();
        let spreads = outcomes
            .iter()
            .flat_map(|(found, _)| found.bound_spreads.clone());
        let delivery =
            |of: fn(&Round) -> u64| Spread::of(rounds.iter().map(|round| of(round) as f64 / 1e3));
        let tries = runs.iter().zip(rounds).filter_map(|(run, round)| {
            let knee = round.beside.as_ref()?;
            Some(recovery(&periods_of(run, 0.0, f64::INFINITY), 0.0, knee))
        });
        let tries: Vec<Option<(usize, f64)>> = tries.collect();
        Summary {
            case: *case,
            rounds: rounds.len(),
            knee_bound: rounds.iter().find_map(|round| Some(round.beside?.bound)),
            bound: over(|found| found.bound),
            in_flight: over(|found| found.in_flight),
            latency_ms: over(|found| found.latency_s * 1e3),
            throughput_per_s: over(|found| found.rate_per_s),
            rate_share: Spread::of(beside.iter().map(|beside| beside.rate_share)),
            latency_ratio: Spread::of(beside.iter().map(|beside| beside.latency_ratio)),
            bound_spread: Spread::of(spreads),
            unevenness: Spread::of(outcomes.iter().filter_map(|(found, _)| found.unevenness())),
            target_ratio: target_s(case).and_then(|target_s| {
                Spread::of(outcomes.iter().map(|(found, _)| found.latency_s / target_s))
            }),
            delivery_p50_ms: delivery(|round| round.flown.delivery.percentiles().p50),
            delivery_p99_ms: delivery(|round| round.flown.delivery.percentiles().p99),
            tried: tries.len(),
            reached: tries.into_iter().flatten().collect(),
            counts: Counts::of(&case.setup, rounds),
            first_error: rounds
                .iter()
                .find_map(|round| round.flown.first_error())
                .map(str::to_owned),
        }
    }

    /// Delivery latency of 99 out of 100, in milliseconds.
    pub(super) fn delivery_p99_ms(&self) -> Option<Spread> {
        self.delivery_p99_ms
    }

    /// The median number of periods and of seconds until it was at the knee, if at least half of the runs
    /// were.
    pub(super) fn until(&self) -> Option<[f64; 2]> {
        if self.tried == 0 || self.reached.len() * 2 < self.tried {
            return None;
        }
        let windows = Spread::of(self.reached.iter().map(|(windows, _)| *windows as f64))?;
        let seconds = Spread::of(self.reached.iter().map(|(_, seconds)| *seconds))?;
        Some([windows.median, seconds.median])
    }

    /// Row for programs.
    pub(super) fn row(&self) -> Row {
        let mut row = names(&self.case);
        let mut put = |name: &str, value: Value| {
            row.insert(name.to_owned(), value);
        };
        put("rounds", json!(self.rounds));
        put("messages", json!(self.counts.acknowledged));
        put("knee_bound", json!(self.knee_bound));
        for (name, spread) in [
            ("bound", self.bound),
            ("in_flight", self.in_flight),
            ("latency_ms", self.latency_ms),
            ("throughput_per_s", self.throughput_per_s),
            ("rate_share", self.rate_share),
            ("latency_ratio", self.latency_ratio),
            ("bound_spread", self.bound_spread),
            ("unevenness", self.unevenness),
            ("target_ratio", self.target_ratio),
            ("delivery_p50_ms", self.delivery_p50_ms),
            ("delivery_p99_ms", self.delivery_p99_ms),
        ] {
            put(name, json!(spread.map(|spread| spread.median)));
            put(
                &format!("{name}_min"),
                json!(spread.map(|spread| spread.least)),
            );
            put(
                &format!("{name}_max"),
                json!(spread.map(|spread| spread.most)),
            );
        }
        let until = self.until();
        put("windows_to_knee", json!(until.map(|until| until[0])));
        put("seconds_to_knee", json!(until.map(|until| until[1])));
        put("rounds_at_knee", json!(self.reached.len()));
        let counts = &self.counts;
        for (name, count) in [
            ("sent", counts.sent),
            ("failed", counts.failed),
            ("delivered", counts.delivered),
            ("missing", counts.missing),
            ("duplicates", counts.duplicates),
            ("reordered", counts.reordered),
            ("decisions", counts.decisions),
            ("decisions_unseen", counts.decisions_unseen),
            ("changes_told", counts.changes_told),
        ] {
            put(name, json!(count));
        }
        put("sound", json!(counts.sound));
        put("first_error", json!(self.first_error));
        row
    }

    /// Cells for people, under [`HEAD`].
    pub(super) fn cells(&self) -> Vec<String> {
        let Setup {
            storage,
            place,
            publishers,
            topics,
            distribution,
        } = &self.case.setup;
        let several = self.rounds > 1;
        let text = |spread: Option<Spread>, digits: usize| spread_text(spread, digits, several);
        let until = match self.until() {
            Some([windows, _]) => format!("{windows:.0}"),
            None if self.tried > 0 => "never".to_owned(),
            None => "-".to_owned(),
        };
        vec![
            storage.to_string(),
            publishers.to_string(),
            topics.to_string(),
            distribution.to_string(),
            place.name().to_owned(),
            self.case.limiter.to_string(),
            text(self.bound, 0),
            text(self.in_flight, 0),
            text(self.latency_ms, 2),
            text(self.throughput_per_s, 0),
            text(self.rate_share, 2),
            text(self.latency_ratio, 2),
            text(self.bound_spread, 2),
            until,
            text(self.delivery_p50_ms, 1),
            text(self.delivery_p99_ms, 1),
        ]
    }
}

/// Latency that a case's limiter keeps, in seconds, if it has such an aim.
fn target_s(case: &Case) -> Option<f64> {
    let target_us = LatencyTargetSettings::DEFAULT.target_us;
    (case.limiter == LimiterKind::LatencyTarget).then_some(target_us as f64 / 1e6)
}

/// The names of a case, as a row begins.
pub(super) fn names(case: &Case) -> Row {
    let Setup {
        storage,
        place,
        publishers,
        topics,
        distribution,
    } = &case.setup;
    airmail_experiments::row! {
        "topics": topics,
        "distribution": distribution.name(),
        "limiter": case.limiter.name(),
        "storage": storage.name(),
        "where": place.name(),
        "publishers": publishers,
    }
}

/// The median, and the least and the greatest of several.
pub(super) fn spread_text(spread: Option<Spread>, digits: usize, several: bool) -> String {
    match spread {
        None => "-".to_owned(),
        Some(spread) if several => format!("{spread:.digits$}"),
        Some(Spread { median, .. }) => format!("{median:.digits$}"),
    }
}

impl Counts {
    fn of(setup: &Setup, rounds: &[Round]) -> Counts {
        let mut counts = Counts {
            sound: true,
            ..Counts::default()
        };
        for round in rounds {
            counts.add(&round.flown);
            let windows = round.windows(setup.place);
            windows
                .iter()
                .for_each(|windows| counts.add_windows(windows));
        }
        counts
    }

    fn add(&mut self, flown: &Flown) {
        let tally = &flown.received.tally;
        self.sent += flown.sent();
        self.acknowledged += flown.acknowledged();
        self.failed += flown.failed();
        self.delivered += tally.delivered;
        self.missing += flown.missing();
        self.duplicates += tally.duplicates;
        self.reordered += flown.reordered();
        self.sound &= flown.is_sound();
    }

    fn add_windows(&mut self, windows: &[Window]) {
        self.decisions += windows.len() as u64;
        // Numbers have no gaps, so those that are not there were not seen.
        let numbers = windows.first().zip(windows.last());
        let made = numbers.map_or(0, |(first, last)| last.number - first.number + 1);
        self.decisions_unseen += made.saturating_sub(windows.len() as u64);
        let told = windows.iter().filter(|window| window.tells_a_change());
        self.changes_told += told.count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{Place, Storage};
    use super::super::runs::tests::flight;
    use super::*;
    use airmail_experiments::flow::Distribution;
    use airmail_queueing::knee::Knee;

    const KNEE: Knee = Knee {
        bound: 10,
        rate_per_s: 2_000.0,
        latency_s: 0.01,
        peak_per_s: 2_100.0,
    };

    fn round(rate_per_s: f64) -> Round {
        let mut round = Round {
            beside: Some(KNEE),
            ..Round::default()
        };
        round.flown.flights = vec![flight(10, 4.0, rate_per_s), flight(10, 4.0, rate_per_s)];
        let acknowledged = round.flown.acknowledged();
        round.flown.received.tally.delivered = 2 * acknowledged;
        round.flown.delivery.record(1_500);
        round
    }

    fn summary(place: Place, rounds: Vec<Round>) -> Summary {
        let case = Case {
            setup: Setup {
                storage: Storage::Memory,
                place,
                publishers: 2,
                topics: 1,
                distribution: Distribution::Uniform,
            },
            limiter: LimiterKind::Gradient,
        };
        Summary::of(&Measurement { case, rounds })
    }

    fn near(value: &Value, expected: f64) -> bool {
        let value = value.as_f64().unwrap();
        (value - expected).abs() < 1e-6 * expected.max(1.0)
    }

    #[test]
    fn a_row_is_held_against_the_fixed_bound_of_the_same_round() {
        let row = summary(Place::Publisher, vec![round(1_000.0), round(500.0)]).row();
        assert!(near(&row["throughput_per_s"], 1_500.0), "{row:?}");
        assert!(near(&row["rate_share_max"], 1.0) && near(&row["rate_share_min"], 0.5));
        assert!(near(&row["latency_ratio_max"], 2.0));
        assert!(near(&row["unevenness"], 1.0));
        assert!(near(&row["bound_spread"], 0.0), "{row:?}");
        assert_eq!(row["knee_bound"], 10);
        assert_eq!(
            (&row["messages"], &row["sound"]),
            (&json!(12_000), &json!(true))
        );
        assert_eq!(row["delivery_p99_ms"], 1.5);
        assert_eq!(
            (&row["windows_to_knee"], &row["rounds_at_knee"]),
            (&json!(0.0), &json!(1))
        );
        assert_eq!(
            (&row["decisions"], &row["decisions_unseen"]),
            (&json!(160), &json!(0))
        );
    }

    #[test]
    fn what_most_runs_never_came_near_is_never_reached() {
        let rounds = vec![round(1_000.0), round(100.0), round(100.0)];
        let summary = summary(Place::Publisher, rounds);
        assert_eq!(summary.row()["windows_to_knee"], Value::Null);
        let cells = summary.cells();
        assert_eq!((cells.len(), &*cells[13]), (HEAD.len(), "never"));
    }

    #[test]
    fn a_pilots_row_has_its_own_bound_and_latency_and_what_clients_counted() {
        let mut round = round(1_000.0);
        let mut own = flight(100, 4.0, 2_000.0).windows;
        own.remove(3);
        for window in &mut own {
            window.latency_s = 0.02;
        }
        round.flown.pilot = own;
        let row = summary(Place::Pilot, vec![round]).row();
        assert!(
            near(&row["bound"], 100.0) && near(&row["latency_ms"], 20.0),
            "{row:?}"
        );
        assert!(near(&row["throughput_per_s"], 2_000.0));
        assert_eq!(
            (&row["decisions"], &row["decisions_unseen"]),
            (&json!(39), &json!(1))
        );
        assert_eq!(
            (&row["where"], &row["unevenness"]),
            (&json!("pilot"), &Value::Null)
        );
    }

    #[test]
    fn without_a_knee_there_is_nothing_to_be_held_against() {
        let mut alone = round(1_000.0);
        alone.beside = None;
        let row = summary(Place::Publisher, vec![alone]).row();
        assert_eq!(
            (&row["rate_share"], &row["windows_to_knee"]),
            (&Value::Null, &Value::Null)
        );
    }
}
