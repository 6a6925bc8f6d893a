//! Tables of the report: limiters beside the knee over all cases, each case, and the knees themselves.

use super::super::case::{Place, Storage};
use super::super::figures::Figures;
use super::super::plan::Plan;
use super::super::runs::Measured;
use super::super::summary::{HEAD, Summary};
use super::super::sweeps::SweepOf;
use airmail_bench::Spread;
use airmail_experiments::results::{Section, Table};
use airmail_flow::LimiterKind;
use airmail_queueing::knee::KneeRule;
use airmail_queueing::recovery::{LATENCY_RATIO_MAX, RATE_SHARE_MIN, TOGETHER};

/// Reason for which power is shown and judges nothing.
const POWER: &str = "Power, throughput over latency, is a curve here and no aim: a node commits in groups, \
                     each at a fixed cost, and then the most power lies at half of the throughput.";

/// Every limiter over all of its cases: medians, and the worst of them.
pub(super) fn beside(plan: &Plan, figures: &Figures<'_>, summaries: &[Summary]) -> Section {
    let mut rows = Vec::new();
    let mut pictures = Vec::new();
    for &place in &plan.places {
        for limiter in plan.limiters(place) {
            let of =
                |found: &&Summary| (found.case.setup.place, found.case.limiter) == (place, limiter);
            let found: Vec<&Summary> = summaries.iter().filter(of).collect();
            rows.extend((!found.is_empty()).then(|| beside_row(place, limiter, &found)));
        }
        let name = format!("beside-the-knee-{}", place.name());
        pictures.extend(figures.beside_the_knee(place).map(|figure| (name, figure)));
    }
    let head = [
        "where",
        "limiter",
        "cases",
        "share of the knee's messages/s",
        "times its latency",
        "bound, sd/mean",
        "windows until there",
        "cases that came there",
        "most over least publisher",
        "latency over target",
    ];
    Section {
        title: "Beside the knee".to_owned(),
        text: vec![
            format!(
                "The knee is the least bound with {:.0} % of the peak's throughput, within a latency of {:.0} ms \
                 or twice that of the lowest bound; the sweep finds it, and that fixed bound runs beside each \
                 limiter in each round. Shares and multiples are of the same round; here are medians of the \
                 cases, from the least to the greatest. A limiter is there when {TOGETHER} periods together \
                 have {RATE_SHARE_MIN} of its throughput at no more than {LATENCY_RATIO_MAX} times its latency.",
                KneeRule::DEFAULT.share * 100.0,
                KneeRule::DEFAULT.latency_budget_s * 1e3,
            ),
            "Publishers compete: with more in flight one takes from the others, so for them the throughput of \
             all, the latency and the most over the least say what a limiter does."
                .to_owned(),
        ],
        table: Table::new(head, rows),
        figures: pictures,
    }
}

fn beside_row(place: Place, limiter: LimiterKind, found: &[&Summary]) -> Vec<String> {
    let over = |of: &dyn Fn(&Summary) -> Option<f64>| {
        let spread = Spread::of(found.iter().filter_map(|found| of(found)));
        spread.map_or_else(|| "-".to_owned(), |spread| format!("{spread:.2}"))
    };
    let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
    let there = found.iter().filter(|found| found.until().is_some()).count();
    vec![
        place.name().to_owned(),
        limiter.to_string(),
        found.len().to_string(),
        over(&|found| median(found.rate_share)),
        over(&|found| median(found.latency_ratio)),
        over(&|found| median(found.bound_spread)),
        over(&|found| found.until().map(|[windows, _]| windows)),
        there.to_string(),
        over(&|found| median(found.unevenness)),
        over(&|found| median(found.target_ratio)),
    ]
}

/// Every case.
pub(super) fn results(summaries: &[Summary]) -> Section {
    Section {
        title: "All cases".to_owned(),
        text: Vec::new(),
        table: Table::new(HEAD, summaries.iter().map(Summary::cells)),
        figures: Vec::new(),
    }
}

/// Section on fixed bounds, in the publishers or in the node's publish gate.
pub(super) fn knees(
    plan: &Plan,
    measured: &Measured,
    figures: &Figures<'_>,
    storage: Storage,
    place: Place,
) -> Option<Section> {
    let sweeps = measured.sweeps.iter();
    let of = |found: &&SweepOf| (found.setup.storage, found.setup.place) == (storage, place);
    let mut sweeps: Vec<&SweepOf> = sweeps.filter(of).collect();
    sweeps.sort_by_key(|found| (found.setup.publishers, found.setup.topics));
    if sweeps.is_empty() {
        return None;
    }
    let figures = plan.publishers.iter().filter_map(|&publishers| {
        let figure = figures.sweep(storage, place, publishers)?;
        Some((
            format!("{storage}-knee-{}-{publishers}", place.name()),
            figure,
        ))
    });
    let head = [
        "publishers",
        "topics",
        "bounds",
        "knee",
        "messages/s",
        "ms",
        "peak, messages/s",
        "bound of the most power",
        "its share of the peak",
    ];
    let lowest = plan.lowest_bound(place);
    Some(Section {
        title: format!(
            "As figure 3.6: throughput and latency against messages in flight, {storage}, \
             bounds in the {}",
            place.name()
        ),
        text: vec![
            format!(
                "Fixed bounds from {lowest} in doublings until three of them together gained less than 5 %, or \
                 one took too long, and two beside the knee; uniform distribution. Medians, {} runs a bound, \
                 interleaved. Bounds are of one limiter, messages/s of all together.",
                plan.sweep_runs
            ),
            POWER.to_owned(),
        ],
        table: Table::new(head, sweeps.into_iter().map(knee_row)),
        figures: figures.collect(),
    })
}

fn knee_row(found: &SweepOf) -> Vec<String> {
    let bounds = found.sweep.bounds();
    let ends = bounds.first().zip(bounds.last());
    let mut cells = vec![
        found.setup.publishers.to_string(),
        found.setup.topics.to_string(),
        ends.map_or_else(String::new, |(low, high)| format!("{low}-{high}")),
    ];
    match (found.sweep.knee(), found.sweep.most_power()) {
        (Ok(knee), Some(power)) => cells.extend([
            knee.bound.to_string(),
            format!("{:.0}", knee.rate_per_s),
            format!("{:.2}", knee.latency_s * 1e3),
            format!("{:.0}", knee.peak_per_s),
            power.bound.to_string(),
            format!("{:.2}", power.rate_per_s.median / knee.peak_per_s),
        ]),
        (Err(none), _) => {
            cells.push(none.to_string());
            cells.resize(9, "-".to_owned());
        }
        (Ok(_), None) => cells.resize(9, "-".to_owned()),
    }
    cells
}
