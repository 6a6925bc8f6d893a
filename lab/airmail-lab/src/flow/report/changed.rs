//! The part of the report on changes of capacity.

use super::super::changes::{Phase, PhaseFound};
use super::super::figures::Figures;
use super::super::plan::Plan;
use super::super::runs::Measured;
use super::super::summary::{names, spread_text};
use airmail_bench::Spread;
use airmail_experiments::results::{Row, Section, Table};
use serde_json::json;

/// A table of all limiters and phases, and a picture for each place; nothing if nothing changed.
pub(super) fn sections(plan: &Plan, measured: &Measured, figures: &Figures<'_>) -> Option<Section> {
    if measured.changes.is_empty() {
        return None;
    }
    let head = [
        "storage",
        "where",
        "publishers",
        "limiter",
        "capacity",
        "knee",
        "bound",
        "share of the knee's messages/s",
        "times its latency",
        "windows until there",
        "runs that came there",
        "limiters that told the change",
        "after, s",
    ];
    let rows = measured.changes.iter().flat_map(|change| {
        Phase::ALL.map(|phase| {
            let setup = &change.case.setup;
            let mut cells = vec![
                setup.storage.to_string(),
                setup.place.name().to_owned(),
                setup.publishers.to_string(),
                change.case.limiter.to_string(),
            ];
            let found = change.phase(phase, plan, measured);
            cells.extend(phase_cells(&found, change.rounds.len()));
            cells
        })
    });
    let shown = plan.changing_setups().into_iter();
    let shown = shown.filter(|setup| setup.publishers == plan.publishers_shown());
    let pictures = shown.filter_map(|setup| {
        let name = format!("changed-{}-{}", setup.storage, setup.place.name());
        Some((name, figures.changed(&setup)?))
    });
    let mut text = vec![format!(
        "The storage takes {full_us} µs for each batch, one after another, then twice as long, then {full_us} µs \
         again, each for {length_s} s; each capacity has a sweep of its own, whose knee is what limiters are held \
         against. Shares and multiples are of the last half of each capacity's time. `fixed` stays at the knee \
         of the full capacity.",
        full_us = plan.service_us,
        length_s = plan.change_ms as f64 / 1e3,
    )];
    if plan.shares_the_disk() {
        text.push(format!(
            "On the shared disk {} neighbours write a MiB and sync it, without a pause, for as long.",
            plan.neighbours
        ));
    }
    Some(Section {
        title: "Capacity halved and doubled".to_owned(),
        text,
        table: Table::new(head, rows),
        figures: pictures.collect(),
    })
}

fn phase_cells(found: &PhaseFound, rounds: usize) -> Vec<String> {
    let text = |spread: Option<Spread>, digits: usize| spread_text(spread, digits, rounds > 1);
    vec![
        found.phase.name().to_owned(),
        found
            .knee
            .map_or_else(|| "-".to_owned(), |knee| knee.bound.to_string()),
        text(found.bound, 0),
        text(found.rate_share, 2),
        text(found.latency_ratio, 2),
        text(found.windows, 0),
        format!("{} of {rounds}", found.recovered),
        format!("{} of {}", found.told, found.limiters),
        text(found.told_s, 2),
    ]
}

/// A row for each limiter and phase.
pub(super) fn rows(plan: &Plan, measured: &Measured) -> Vec<Row> {
    let rows = measured.changes.iter().flat_map(|change| {
        Phase::ALL.map(|phase| {
            let found = change.phase(phase, plan, measured);
            let mut row = names(&change.case);
            let median = |spread: Option<Spread>| json!(spread.map(|spread| spread.median));
            for (name, value) in [
                ("capacity", json!(phase.name())),
                ("rounds", json!(change.rounds.len())),
                ("knee_bound", json!(found.knee.map(|knee| knee.bound))),
                ("bound", median(found.bound)),
                ("rate_share", median(found.rate_share)),
                ("latency_ratio", median(found.latency_ratio)),
                ("windows_to_knee", median(found.windows)),
                ("rounds_at_knee", json!(found.recovered)),
                ("limiters", json!(found.limiters)),
                ("limiters_that_told", json!(found.told)),
                ("seconds_to_tell", median(found.told_s)),
                (
                    "sound",
                    json!(change.rounds.iter().all(|round| round.flown.is_sound())),
                ),
            ] {
                row.insert(name.to_owned(), value);
            }
            row
        })
    });
    rows.collect()
}
