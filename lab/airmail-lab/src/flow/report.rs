//! Report of the findings: the limiters beside the knee first, then each of them in the order in which the
//! paper tells it.

mod changed;
mod courses;
mod tables;

use super::case::{Place, Storage, topics_text};
use super::figures::Figures;
use super::paper;
use super::plan::Plan;
use super::run_node::PARTITIONS;
use super::runs::Measured;
use super::summary::Summary;
use crate::hosts::Hosts;
use airmail_experiments::flow::{Distribution, PERIOD_BOUNDS, PERIOD_S, SUBSCRIBERS_MAX};
use airmail_experiments::results::{Findings, Section};
use airmail_flow::LimiterKind;
use airmail_plot::Figure;

/// All of it.
pub(super) fn findings(plan: &Plan, measured: &Measured, hosts: &Hosts) -> Findings {
    let figures = Figures { plan, measured };
    let summaries = measured.cases.iter();
    let summaries: Vec<Summary> = summaries.map(Summary::of).collect();
    let mut sections = vec![tables::beside(plan, &figures, &summaries)];
    sections.push(tables::results(&summaries));
    for &storage in &plan.storages {
        for &place in &plan.places {
            sections.extend(tables::knees(plan, measured, &figures, storage, place));
            sections.extend(comparisons(plan, &figures, storage, place));
        }
    }
    sections.extend(changed::sections(plan, measured, &figures));
    sections.extend(distributions(plan, &figures));
    for &storage in &plan.storages {
        for limiter in plan.all_limiters() {
            sections.extend(limiter_sections(plan, &figures, storage, limiter));
        }
    }
    let mut rows: Vec<_> = summaries.iter().map(Summary::row).collect();
    rows.extend(changed::rows(plan, measured));
    Findings {
        name: "flow".to_owned(),
        title: "Flow control by Little's law: the limiters on a real node".to_owned(),
        about: about(plan, measured, hosts),
        sections,
        rows,
        courses: courses::courses(measured),
    }
}

fn about(plan: &Plan, measured: &Measured, hosts: &Hosts) -> Vec<String> {
    let Plan { repeat, size, .. } = plan;
    let time = plan.duration_ms.map(|ms| format!("{} s", ms as f64 / 1e3));
    let messages = plan
        .messages
        .map(|messages| format!("{messages} messages from each publisher"));
    let length: Vec<String> = time.into_iter().chain(messages).collect();
    let length = length.join(" or ");
    let least_ms = PERIOD_S * 1e3;
    let mut about = vec![
        format!(
            "Messages of {size} bytes; the first {SUBSCRIBERS_MAX} publishers have a subscriber of all topics \
             beside them, in the same process. A run lasts {length}, on a node of its own. Rounds: {repeat}."
        ),
        format!(
            "Figures of a run are of its last half, by counters: throughput is what was acknowledged over \
             the time, latency the time that all of those took over their number. A look at how a run goes \
             is a period of at least {least_ms:.0} ms and {PERIOD_BOUNDS:.0} bounds of messages, the same for \
             fixed bounds and for limiters. Bound and messages in flight are of one limiter, messages/s of \
             all together; deliveries are of the whole run."
        ),
        format!(
            "Publishers' gates begin with {} in flight, N {}; the node's own has what the node comes with, \
             or what was asked for.",
            plan.initial(),
            plan.window()
        ),
        hosts.paragraph(),
    ];
    if plan.storages.iter().any(|storage| storage.is_on_kafka()) {
        about.push(format!(
            "On Kafka a run's messages are in {PARTITIONS} partitions; the node is one process, or (kafka-apart) a pilot, \
             a copilot and a tower."
        ));
    }
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

/// Curves, relations and delivery of one limiter in publishers.
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

fn comparisons(plan: &Plan, figures: &Figures<'_>, storage: Storage, place: Place) -> Vec<Section> {
    let number = match (storage, place) {
        (Storage::Memory, Place::Publisher) => "Section 5.7.3: ",
        (Storage::Disk, Place::Publisher) => "Section 5.8.3 (disk in Kafka's place): ",
        (Storage::Kafka, Place::Publisher) => "Section 5.8.3: ",
        (Storage::KafkaApart, Place::Publisher) => "Section 5.8.3 (roles apart): ",
        _ => "",
    };
    let one = |topics: u32, distribution: Distribution| {
        let setup = figures.setup(storage, place, topics, distribution);
        let figure = figures.comparison(&setup)?;
        let title = format!("{number}the limiters compared: {setup}");
        let file = format!("{storage}-{}-{topics}-{distribution}", place.name());
        Some(section(title, file, figure))
    };
    let topics = plan.topics.iter();
    let both = topics.flat_map(|&topics| {
        let distributions = plan.distributions.iter();
        distributions.map(move |&distribution| (topics, distribution))
    });
    both.filter_map(|(topics, distribution)| one(topics, distribution))
        .collect()
}

fn section(title: String, file: String, figure: Figure) -> Section {
    Section {
        title,
        figures: vec![(file, figure)],
        ..Section::default()
    }
}
