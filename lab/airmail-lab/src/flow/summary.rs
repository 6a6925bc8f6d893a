//! A case in numbers: the results of its rounds, as a row and as a line of a table.

use super::case::{Case, Place};
use super::runs::{Measured, Measurement, Round};
use airmail_bench::Spread;
use airmail_experiments::flow::{Flown, Mean, Reached, reached, reached_by_pilot};
use airmail_experiments::results::Row;
use serde_json::{Value, json};

/// Heads of the columns of [`Summary::cells`].
pub(super) const HEAD: [&str; 12] = [
    "storage",
    "topics",
    "distribution",
    "limiter",
    "where",
    "bound",
    "in flight",
    "latency, ms",
    "messages/s",
    "delivery p99, ms",
    "power, share of the best",
    "windows until there",
];

/// A case's rounds together. Everything but counts is of the last third of a run's windows.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    case: Case,
    rounds: usize,
    /// Bound of each publisher, or of the node's gate, in messages.
    bound: Option<Spread>,
    in_flight: Option<Spread>,
    latency_ms: Option<Spread>,
    /// Throughput of all publishers together.
    throughput_per_s: Option<Spread>,
    delivery_p50_ms: Option<Spread>,
    delivery_p99_ms: Option<Spread>,
    power_ratio: Option<Spread>,
    /// Times of the limiters' runs that came near the best.
    reached: Vec<Reached>,
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
    sound: bool,
}

impl Summary {
    /// Summary of a case, beside the sweep of its storage and topics; `window` is N.
    pub(super) fn of(measurement: &Measurement, measured: &Measured, window: u64) -> Summary {
        let Measurement { case, rounds } = measurement;
        let best = measured.power_best(case);
        let ends = rounds.iter().filter_map(|round| match case.place {
            Place::Publisher => end_of_publishers(round),
            Place::Pilot => end_of_pilot(round),
        });
        let ends: Vec<(usize, Mean)> = ends.collect();
        let over = |of: fn(&(usize, Mean)) -> f64| Spread::of(ends.iter().map(of));
        let delivery =
            |of: fn(&Round) -> u64| Spread::of(rounds.iter().map(|round| of(round) as f64 / 1e3));
        let near: Vec<Option<Reached>> = best.map_or(Vec::new(), |best| {
            let near = rounds
                .iter()
                .map(|round| near(case.place, round, window, best));
            near.flatten().collect()
        });
        Summary {
            case: *case,
            rounds: rounds.len(),
            bound: over(|(_, mean)| mean.bound),
            in_flight: over(|(_, mean)| mean.in_flight),
            latency_ms: over(|(_, mean)| mean.latency_s * 1e3),
            throughput_per_s: over(|(publishers, mean)| mean.rate_per_s * *publishers as f64),
            delivery_p50_ms: delivery(|round| round.flown.delivery.percentiles().p50),
            delivery_p99_ms: delivery(|round| round.flown.delivery.percentiles().p99),
            power_ratio: best
                .and_then(|best| Spread::of(ends.iter().map(|(_, mean)| mean.power() / best))),
            tried: near.len(),
            reached: near.into_iter().flatten().collect(),
            counts: Counts::of(rounds.iter().map(|round| &round.flown)),
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

    /// The median number of windows, seconds and messages until it was near the best, if at least half
    /// of the limiters' runs were.
    fn until(&self) -> Option<[f64; 3]> {
        if self.tried == 0 || self.reached.len() * 2 < self.tried {
            return None;
        }
        let median = |of: fn(&Reached) -> f64| Spread::of(self.reached.iter().map(of));
        let windows = median(|reached| reached.windows as f64)?;
        let seconds = median(|reached| reached.seconds)?;
        let messages = median(|reached| reached.messages as f64)?;
        Some([windows.median, seconds.median, messages.median])
    }

    /// Row for programs.
    pub(super) fn row(&self) -> Row {
        let Case {
            storage,
            place,
            topics,
            distribution,
            limiter,
        } = &self.case;
        let mut row = Row::new();
        let mut put = |name: &str, value: Value| {
            row.insert(name.to_owned(), value);
        };
        put("topics", json!(topics));
        put("distribution", json!(distribution.name()));
        put("limiter", json!(limiter.name()));
        put("storage", json!(storage.name()));
        put("where", json!(place.name()));
        put("rounds", json!(self.rounds));
        put("messages", json!(self.counts.acknowledged));
        for (name, spread) in [
            ("bound", self.bound),
            ("in_flight", self.in_flight),
            ("latency_ms", self.latency_ms),
            ("throughput_per_s", self.throughput_per_s),
            ("delivery_p50_ms", self.delivery_p50_ms),
            ("delivery_p99_ms", self.delivery_p99_ms),
            ("power_ratio", self.power_ratio),
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
        for (place, name) in ["windows", "seconds", "messages"].into_iter().enumerate() {
            put(
                &format!("{name}_to_optimum"),
                json!(until.map(|until| until[place])),
            );
        }
        let counts = &self.counts;
        for (name, count) in [
            ("sent", counts.sent),
            ("failed", counts.failed),
            ("delivered", counts.delivered),
            ("missing", counts.missing),
            ("duplicates", counts.duplicates),
            ("reordered", counts.reordered),
        ] {
            put(name, json!(count));
        }
        put("sound", json!(counts.sound));
        put("first_error", json!(self.first_error));
        row
    }

    /// Cells for people, under [`HEAD`].
    pub(super) fn cells(&self) -> Vec<String> {
        let case = &self.case;
        let text = |spread: Option<Spread>, digits: usize| match spread {
            None => "-".to_owned(),
            Some(spread) if self.rounds > 1 => format!("{spread:.digits$}"),
            Some(Spread { median, .. }) => format!("{median:.digits$}"),
        };
        let until = match self.until() {
            Some([windows, ..]) => format!("{windows:.0}"),
            None if self.tried > 0 => "never".to_owned(),
            None => "-".to_owned(),
        };
        vec![
            case.storage.to_string(),
            case.topics.to_string(),
            case.distribution.to_string(),
            case.limiter.to_string(),
            case.place.name().to_owned(),
            text(self.bound, 0),
            text(self.in_flight, 0),
            text(self.latency_ms, 2),
            text(self.throughput_per_s, 0),
            text(self.delivery_p99_ms, 1),
            text(self.power_ratio, 2),
            until,
        ]
    }
}

impl Counts {
    fn of<'a>(runs: impl Iterator<Item = &'a Flown>) -> Counts {
        let mut counts = Counts {
            sound: true,
            ..Counts::default()
        };
        for flown in runs {
            let tally = &flown.received.tally;
            counts.sent += flown.sent();
            counts.acknowledged += flown.acknowledged();
            counts.failed += flown.failed();
            counts.delivered += tally.delivered;
            counts.missing += flown.missing();
            counts.duplicates += tally.duplicates;
            counts.reordered += flown.reordered();
            counts.sound &= flown.is_sound();
        }
        counts
    }
}

/// Publishers of a round, and what one of them had at its end, in the mean.
fn end_of_publishers(round: &Round) -> Option<(usize, Mean)> {
    let flights = round.flown.flights.iter();
    let ends: Vec<Mean> = flights
        .filter_map(|flight| Mean::of_end(&flight.windows))
        .collect();
    let count = ends.len() as f64;
    let mean = |of: fn(&Mean) -> f64| ends.iter().map(of).sum::<f64>() / count;
    (!ends.is_empty()).then(|| {
        let mean = Mean {
            bound: mean(|end| end.bound),
            in_flight: mean(|end| end.in_flight),
            latency_s: mean(|end| end.latency_s),
            rate_per_s: mean(|end| end.rate_per_s),
        };
        (ends.len(), mean)
    })
}

/// Mean of the node's gate at the end of a round: one, for all publishers.
fn end_of_pilot(round: &Round) -> Option<(usize, Mean)> {
    let looks = &round.pilot;
    let end = &looks[looks.len() - looks.len().div_ceil(3)..];
    Some((1, Mean::of_pilot(end)?))
}

/// When each limiter of a round came near the best.
fn near(place: Place, round: &Round, window: u64, best: f64) -> Vec<Option<Reached>> {
    let flights = round.flown.flights.iter();
    match place {
        Place::Publisher => flights
            .map(|flight| reached(&flight.windows, best))
            .collect(),
        Place::Pilot => vec![reached_by_pilot(&round.pilot, window, best)],
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Storage;
    use super::super::runs::SweepOf;
    use super::*;
    use airmail_experiments::flow::{Distribution, Flight, PilotWindow, Sweep, Window};
    use airmail_flow::LimiterKind;

    fn flight(bound: u64, rate_per_s: f64) -> Flight {
        let windows = (0..9).map(|number| Window {
            seconds: f64::from(number),
            messages: 1000 * number as u64,
            bound,
            in_flight: bound as f64,
            latency_s: bound as f64 / rate_per_s,
            rate_per_s: if number < 3 { 1.0 } else { rate_per_s },
            rule: "fixed".into(),
        });
        Flight {
            windows: windows.collect(),
            sent: 9000,
            acknowledged: 9000,
            first_error: None,
        }
    }

    fn round(rate_per_s: f64) -> Round {
        let mut round = Round::default();
        round.flown.flights = vec![flight(10, rate_per_s), flight(10, rate_per_s)];
        round.flown.received.tally.delivered = 36_000;
        round.flown.delivery.record(1_500);
        round
    }

    fn measurement(place: Place, rounds: Vec<Round>) -> Measurement {
        let case = Case {
            storage: Storage::Memory,
            place,
            topics: 1,
            distribution: Distribution::Uniform,
            limiter: LimiterKind::Fixed,
        };
        Measurement { case, rounds }
    }

    fn measured() -> Measured {
        let sweep_of = |place| {
            let mut sweep = Sweep::default();
            let best = Mean {
                bound: 10.0,
                in_flight: 10.0,
                latency_s: 0.01,
                rate_per_s: 1000.0,
            };
            sweep.enter(10, [best]);
            SweepOf {
                storage: Storage::Memory,
                place,
                topics: 1,
                sweep,
            }
        };
        Measured {
            sweeps: [Place::Publisher, Place::Pilot].map(sweep_of).into(),
            ..Measured::default()
        }
    }

    #[test]
    fn a_row_has_the_end_of_the_runs_and_what_was_lost() {
        let measurement = measurement(Place::Publisher, vec![round(1000.0), round(500.0)]);
        let row = Summary::of(&measurement, &measured(), 1000).row();
        assert_eq!(row["throughput_per_s"], 1500.0);
        assert_eq!(row["throughput_per_s_max"], 2000.0);
        assert_eq!(row["delivery_p99_ms"], 1.5);
        assert_eq!(row["power_ratio_max"], 1.0);
        assert_eq!(
            (&row["messages"], &row["sound"]),
            (&json!(36_000), &json!(true))
        );
        assert_eq!(row["missing"], 0);
        assert_eq!(row["windows_to_optimum"], 3.0);
        assert_eq!(row["messages_to_optimum"], 3000.0);
    }

    #[test]
    fn what_most_runs_never_came_near_is_never_reached() {
        let rounds = vec![round(1000.0), round(100.0), round(100.0)];
        let summary = Summary::of(&measurement(Place::Publisher, rounds), &measured(), 1000);
        assert_eq!(summary.row()["windows_to_optimum"], Value::Null);
        assert_eq!(summary.cells().last().unwrap(), "never");
        assert_eq!(summary.cells().len(), HEAD.len());
    }

    #[test]
    fn a_pilots_row_is_what_it_said_of_itself_and_has_no_power_in_front_of_memory() {
        let mut round = round(1000.0);
        round.pilot = (0..3)
            .map(|number| PilotWindow {
                seconds: f64::from(number),
                bound: 100.0,
                in_flight: 90.0,
                latency_s: 0.001,
                rate_per_s: f64::from(number) * 50_000.0,
            })
            .collect();
        let row = Summary::of(&measurement(Place::Pilot, vec![round]), &measured(), 1000).row();
        assert_eq!(
            (&row["bound"], &row["in_flight"]),
            (&json!(100.0), &json!(90.0))
        );
        assert_eq!(row["throughput_per_s"], 100_000.0);
        assert_eq!(row["power_ratio"], Value::Null);
        assert_eq!(row["where"], "pilot");
    }
}
