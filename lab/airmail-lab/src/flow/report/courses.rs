//! Finer rows of the report: every decision and every period of every run, and every run of the sweeps.

use super::super::case::Case;
use super::super::outcome::{courses as courses_of, periods_of};
use super::super::runs::{Measured, Round};
use super::super::summary::names;
use airmail_experiments::results::Row;
use airmail_experiments::row;
use serde::Serialize;
use std::collections::BTreeMap;

/// By storage and place the decisions, and all periods; and the runs of every sweep.
pub(super) fn courses(measured: &Measured) -> BTreeMap<String, Vec<Row>> {
    let mut courses = BTreeMap::new();
    for measurement in &measured.cases {
        for (number, round) in measurement.rounds.iter().enumerate() {
            enter(&mut courses, &measurement.case, number + 1, round);
        }
    }
    for change in &measured.changes {
        for (number, round) in change.rounds.iter().enumerate() {
            enter(&mut courses, &change.case, number + 1, round);
        }
    }
    let sweep = measured.sweeps.iter().flat_map(|found| {
        let setup = &found.setup;
        found.sweep.runs().map(move |run| {
            row! {
                "storage": setup.storage.option().unwrap_or_else(|| setup.storage.to_string()),
                "where": setup.place.name(),
                "publishers": setup.publishers,
                "topics": setup.topics,
                "bound": run.bound,
                "rate_per_s": run.rate_per_s,
                "latency_s": run.latency_s,
            }
        })
    });
    courses.insert("sweep".to_owned(), sweep.collect());
    courses
}

fn enter(courses: &mut BTreeMap<String, Vec<Row>>, case: &Case, number: usize, round: &Round) {
    let place = case.setup.place;
    let decisions = format!("{}-{}", case.setup.storage, place.name());
    let mut put = |course: String, of: Option<String>, found: Vec<Row>| {
        let rows = found.into_iter().map(|found| {
            let mut row = names(case);
            row.insert("round".to_owned(), number.into());
            row.extend(of.clone().map(|of| ("of".to_owned(), of.into())));
            row.extend(found);
            row
        });
        courses.entry(course).or_default().extend(rows);
    };
    for (limiter, windows) in round.windows(place).iter().enumerate() {
        put(decisions.clone(), Some(limiter.to_string()), rows(windows));
    }
    let periods = periods_of(&courses_of(place, round), 0.0, f64::INFINITY);
    put("periods".to_owned(), None, rows(&periods));
}

fn rows<T: Serialize>(found: &[T]) -> Vec<Row> {
    let row = |one: &T| match serde_json::to_value(one) {
        Ok(serde_json::Value::Object(row)) => Some(row),
        _ => None,
    };
    found.iter().filter_map(row).collect()
}
