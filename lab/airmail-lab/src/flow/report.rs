//! Report of the findings, in the order in which the paper tells it.

use super::case::{Case, Place, Storage, topics_text};
use super::figures::Figures;
use super::paper;
use super::plan::{PUBLISHERS, Plan};
use super::runs::{Measured, Measurement, SweepOf};
use super::summary::{HEAD, Summary};
use crate::hosts::Hosts;
use airmail_bench::Spread;
use airmail_experiments::flow::{
    Distribution, NEARLY_ALL, REACHED_SHARE, REACHED_WINDOWS, SweepPoint,
};
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;
use airmail_flow::LimiterKind;
use airmail_plot::Figure;
use serde::Serialize;
use std::collections::BTreeMap;

/// All of it.
pub(super) fn findings(plan: &Plan, measured: &Measured, hosts: &Hosts) -> Findings {
    let figures = Figures { plan, measured };
    let summaries = measured.cases.iter();
    let summary = |case| Summary::of(case, measured, plan.window);
    let summaries: Vec<Summary> = summaries.map(summary).collect();
    let mut sections = vec![results(&summaries)];
    sections.extend(distributions(plan, &figures));
    for &storage in &plan.storages {
        sections.extend(optimum(measured, &figures, storage, Place::Publisher));
        for &limiter in &plan.limiters {
            sections.extend(limiter_sections(plan, &figures, storage, limiter));
        }
        sections.extend(comparisons(plan, &figures, storage));
        sections.extend(optimum(measured, &figures, storage, Place::Pilot));
        sections.extend(pilots(plan, &figures, storage));
    }
    Findings {
        name: "flow".to_owned(),
        title: "Flow control by Little's law: the limiters on a real node".to_owned(),
        about: about(plan, measured, hosts),
        sections,
        rows: summaries.iter().map(Summary::row).collect(),
        courses: courses(measured),
    }
}

fn about(plan: &Plan, measured: &Measured, hosts: &Hosts) -> Vec<String> {
    let Plan {
        messages,
        window,
        delta,
        initial,
        repeat,
        size,
        ..
    } = plan;
    let ends = plan.duration_ms.map_or(String::new(), |duration_ms| {
        format!(", or for {} s", duration_ms as f64 / 1e3)
    });
    let mut about = vec![
        format!(
            "{PUBLISHERS} publishers, each with a subscriber of all topics beside it, in the same process; \
             {messages} messages of {size} bytes from each{ends}. Each publisher begins with {initial} \
             messages in flight; N is {window}, delta {delta}. Rounds: {repeat}."
        ),
        "Curves have the median of all publishers and rounds at the same window, error bars the least \
         and the greatest. Tables have the last third of the windows; bound, messages in flight and \
         latency are a publisher's, messages/s those of all publishers together."
            .to_owned(),
        hosts.paragraph(),
    ];
    about.extend(measured.ended.clone());
    if !measured.is_sound() {
        about.push(
            "Not every message arrived once and in order: the rows say of which runs.".to_owned(),
        );
    }
    if !measured.sweep_faults.is_empty() {
        let faults = measured.sweep_faults.join("; ");
        about.push(format!(
            "Of the sweeps, these runs were not whole: {faults}."
        ));
    }
    about
}

fn results(summaries: &[Summary]) -> Section {
    let percent = REACHED_SHARE * 100.0;
    Section {
        title: "All cases".to_owned(),
        text: vec![format!(
            "Power is throughput over latency, which is greatest at the knee; its share is of the best \
             fixed bound's, found by the sweep. The last column is how many windows passed until \
             {REACHED_WINDOWS} together had {percent:.0} % of it."
        )],
        table: Table::new(HEAD, summaries.iter().map(Summary::cells)),
        figures: Vec::new(),
    }
}

fn distributions(plan: &Plan, figures: &Figures<'_>) -> Option<Section> {
    let topics = plan
        .topics
        .iter()
        .copied()
        .max()
        .filter(|topics| *topics > 1)?;
    Some(Section {
        title: "Figures 5.1, 5.2, 5.3: the distributions of messages over topics".to_owned(),
        figures: vec![("distributions".to_owned(), figures.distributions(topics))],
        ..Section::default()
    })
}

/// Section on fixed bounds, in the publishers or in the node's publish gate.
fn optimum(
    measured: &Measured,
    figures: &Figures<'_>,
    storage: Storage,
    place: Place,
) -> Option<Section> {
    let figure = figures.sweep(storage, place)?;
    let sweeps = measured.sweeps.iter();
    let sweeps = sweeps.filter(|found| (found.storage, found.place) == (storage, place));
    // A sweep's rates are those of one limiter.
    let limiters = match place {
        Place::Publisher => f64::from(PUBLISHERS),
        Place::Pilot => 1.0,
    };
    let rows = sweeps.filter_map(|found| {
        let (best, nearly) = (found.sweep.best()?, found.sweep.nearly_all()?);
        let point = |point: &SweepPoint| {
            let rate = point.rate_per_s().map_or(0.0, |rate| rate.median);
            let latency_s = point.latency_s().map_or(0.0, |latency| latency.median);
            [
                point.bound.to_string(),
                format!("{:.0}", rate * limiters),
                format!("{:.2}", latency_s * 1e3),
            ]
        };
        let peak = format!("{:.0}", found.sweep.peak_per_s() * limiters);
        let mut cells = vec![found.topics.to_string(), peak];
        cells.extend(point(best));
        cells.extend(point(nearly));
        Some(cells)
    });
    let share = NEARLY_ALL * 100.0;
    let head = [
        "topics",
        "peak, messages/s",
        "best bound",
        "messages/s",
        "ms",
        &format!("bound for {share:.0} % of the peak"),
        "messages/s",
        "ms",
    ];
    let name = place.name();
    Some(Section {
        title: format!(
            "As figure 3.6: throughput and latency against messages in flight, {storage}, \
             bounds in the {name}"
        ),
        text: vec![
            "Fixed bounds from 1 to where only latency grows, and two beside the best; uniform \
             distribution. Bound and curves are of one limiter, messages/s in the table of all \
             publishers together."
                .to_owned(),
        ],
        table: Table::new(head, rows),
        figures: vec![(format!("{storage}-optimum-{name}"), figure)],
    })
}

/// Curves, relations and delivery of one limiter.
fn limiter_sections(
    plan: &Plan,
    figures: &Figures<'_>,
    storage: Storage,
    limiter: LimiterKind,
) -> Vec<Section> {
    let paper = paper::figures(storage, limiter);
    let mut sections = Vec::new();
    let mut add = |numbers: &[&str], title: String, file: String, figure: Option<Figure>| {
        let title = paper::prefix(storage, numbers) + &title;
        sections.extend(figure.map(|figure| section(title, file, figure)));
    };
    let name = format!("{storage}-{limiter}");
    for &distribution in &plan.distributions {
        let numbers = paper.map(|paper| paper.curves(distribution));
        add(
            numbers.as_ref().map_or(&[][..], |numbers| &numbers[..]),
            format!("{limiter}, {storage}: in flight, latency, throughput; {distribution}"),
            format!("{name}-{distribution}"),
            figures.curves(storage, limiter, distribution),
        );
    }
    let topics = plan.topics.iter().copied().max().unwrap_or(1);
    for &distribution in &plan.distributions {
        let paper = paper.filter(|_| topics == paper::RELATION_TOPICS);
        let number = paper.map(|paper| paper.relation(distribution));
        let topics_text = topics_text(topics);
        add(
            number.as_slice(),
            format!(
                "{limiter}, {storage}: throughput and latency against messages in flight; \
                 {distribution}, {topics_text}"
            ),
            format!("{name}-{distribution}-relation"),
            figures.relation(storage, limiter, distribution, topics),
        );
    }
    let number = paper.map(|paper| paper.delivery());
    add(
        number.as_slice(),
        format!("{limiter}, {storage}: delivery latency, 99th percentile"),
        format!("{name}-delivery"),
        figures.delivery(storage, limiter),
    );
    sections
}

fn comparisons(plan: &Plan, figures: &Figures<'_>, storage: Storage) -> Vec<Section> {
    let number = match storage {
        Storage::Memory => "Section 5.7.3: ",
        Storage::Disk => "Section 5.8.3 (disk in Kafka's place): ",
        Storage::Target => "",
    };
    each(plan, |topics, distribution| {
        let figure = figures.comparison(storage, topics, distribution)?;
        let text = topics_text(topics);
        let title = format!("{number}the limiters compared, {storage}, {text}, {distribution}");
        let file = format!("{storage}-compared-{topics}-{distribution}");
        Some(section(title, file, figure))
    })
}

fn pilots(plan: &Plan, figures: &Figures<'_>, storage: Storage) -> Vec<Section> {
    each(plan, |topics, distribution| {
        let figure = figures.pilot(storage, topics, distribution)?;
        let text = topics_text(topics);
        let title = format!("The same in the pilot: {storage}, {text}, {distribution}");
        let file = format!("{storage}-pilot-{topics}-{distribution}");
        Some(section(title, file, figure))
    })
}

fn each(plan: &Plan, section: impl Fn(u32, Distribution) -> Option<Section>) -> Vec<Section> {
    let topics = plan.topics.iter();
    let both = topics.flat_map(|&topics| {
        let distributions = plan.distributions.iter();
        distributions.map(move |&distribution| (topics, distribution))
    });
    both.filter_map(|(topics, distribution)| section(topics, distribution))
        .collect()
}

fn section(title: String, file: String, figure: Figure) -> Section {
    Section {
        title,
        figures: vec![(file, figure)],
        ..Section::default()
    }
}

/// Every window of every run, by storage; and every point of every sweep.
fn courses(measured: &Measured) -> BTreeMap<String, Vec<Row>> {
    let mut courses: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for Measurement { case, rounds } in &measured.cases {
        for (number, round) in rounds.iter().enumerate() {
            let mut enter = |who: &str, rows: Vec<Row>| {
                let course = format!("{}-{}", case.storage, case.place.name());
                courses
                    .entry(course)
                    .or_default()
                    .extend(rows.into_iter().map(|row| {
                        let mut named = names(case, number + 1, who);
                        named.extend(row);
                        named
                    }));
            };
            if case.place == Place::Publisher {
                for (publisher, flight) in round.flown.flights.iter().enumerate() {
                    enter(&publisher.to_string(), rows(&flight.windows));
                }
            } else {
                enter("pilot", rows(&round.pilot));
            }
        }
    }
    let sweep = measured.sweeps.iter().flat_map(|found| {
        let points = found.sweep.points.iter();
        points.map(|point| sweep_row(found, point))
    });
    courses.insert("sweep".to_owned(), sweep.collect());
    courses
}

fn names(case: &Case, round: usize, who: &str) -> Row {
    row! {
        "topics": case.topics,
        "distribution": case.distribution.name(),
        "limiter": case.limiter.name(),
        "round": round,
        "of": who,
    }
}

fn rows<T: Serialize>(windows: &[T]) -> Vec<Row> {
    let row = |window: &T| match serde_json::to_value(window) {
        Ok(serde_json::Value::Object(row)) => Some(row),
        _ => None,
    };
    windows.iter().filter_map(row).collect()
}

fn sweep_row(found: &SweepOf, point: &SweepPoint) -> Row {
    let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
    row! {
        "storage": found.storage.name(),
        "where": found.place.name(),
        "topics": found.topics,
        "bound": point.bound,
        "measured": point.means.len(),
        "rate_per_s": median(point.rate_per_s()),
        "latency_s": median(point.latency_s()),
        "power": median(point.power()),
    }
}
