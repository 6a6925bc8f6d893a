//! Report of the findings, as rows, a table and figures.

use super::{SizeArgs, Storage};
use crate::hosts::Hosts;
use airmail_bench::Report;
use airmail_bench::Spread;
use airmail_experiments::results::Plotted as _;
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;
use airmail_plot::{Axis, Figure, Mark, Panel, Series};
use std::fmt;

const MB: f64 = 1e6;

/// A storage and a size, once.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Number of the round, from 1.
    pub(super) round: u32,
    /// Where it was stored.
    pub(super) storage: Storage,
    /// Payload, in bytes.
    pub(super) size: u32,
    /// Report of the run as fast as there was room.
    pub(super) fast: Report,
    /// Report of the run at half of that.
    pub(super) calm: Report,
    /// Memory of the node after both; 0: not known.
    pub(super) rss_bytes: u64,
}

impl Case {
    /// Nothing was lost, doubled or out of order.
    pub(super) fn is_sound(&self) -> bool {
        self.fast.is_sound() && self.calm.is_sound()
    }

    fn per_s(&self) -> f64 {
        self.fast.delivered_per_s
    }

    fn mb_per_s(&self) -> f64 {
        self.per_s() * f64::from(self.size) / MB
    }

    fn p50_ms(&self) -> f64 {
        self.calm.latency_us.p50 as f64 / 1e3
    }

    fn p99_ms(&self) -> f64 {
        self.calm.latency_us.p99 as f64 / 1e3
    }
}

/// Shows a case to a user who waits for the end.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (storage, size, round) = (self.storage.name(), self.size, self.round);
        let (per_s, mb_per_s, p99) = (self.per_s(), self.mb_per_s(), self.p99_ms());
        write!(
            f,
            "round {round}, {storage}, {size} bytes: {per_s:.0} messages/s, {mb_per_s:.1} MB/s, p99 at \
             half of that {p99:.2} ms"
        )?;
        for report in [&self.fast, &self.calm]
            .into_iter()
            .filter(|report| !report.is_sound())
        {
            let (missing, failed, error) = (report.missing, report.failed, &report.first_error);
            write!(f, "; missing {missing}, failed {failed} {error:?}")?;
        }
        Ok(())
    }
}

/// Everything.
pub(super) fn findings(args: &SizeArgs, cases: &[Case], hosts: &Hosts) -> Findings {
    let renewed = match args.target.target {
        Some(_) => "",
        None => ", a new node for each storage, size and round",
    };
    let mut about = vec![
        format!(
            "One publisher and one subscriber in a process of their own, on one topic, through the SDK \
             with its defaults. Throughput: {} ms as fast as there is room, at most 1 GiB. Latency: from \
             publish (when it was due) to delivery, at half of that rate. {} rounds{renewed}.",
            args.run_ms,
            args.rounds()
        ),
        "Error bars: the least and the greatest of the rounds, about their median. Payloads of less than 24 \
         bytes carry the bench's short stamp. MB: 1,000,000 bytes of payload."
            .to_owned(),
        hosts.paragraph(),
    ];
    let stopped = hosts.stop().is_set();
    about.extend(stopped.then(|| "It was stopped before its end.".to_owned()));
    let groups = groups(cases);
    let mut findings = Findings {
        name: "size".to_owned(),
        title: "Payload size: 16 bytes to 1 MiB".to_owned(),
        about,
        sections: vec![section(&groups)],
        rows: groups.iter().map(row).collect(),
        ..Findings::default()
    };
    let rounds = cases.iter().map(round_row).collect();
    findings.courses.insert("rounds".to_owned(), rounds);
    findings
}

/// A storage and a size, with all rounds.
struct Group<'a> {
    storage: Storage,
    size: u32,
    cases: Vec<&'a Case>,
}

impl Group<'_> {
    fn spread(&self, value: fn(&Case) -> f64) -> Option<Spread> {
        Spread::of(self.cases.iter().map(|case| value(case)))
    }

    fn cell(&self, value: fn(&Case) -> f64, digits: usize) -> String {
        let spread = self.spread(value);
        spread.map_or(String::new(), |spread| format!("{spread:.digits$}"))
    }
}

fn groups(cases: &[Case]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for case in cases {
        let same =
            |group: &&mut Group<'_>| (group.storage, group.size) == (case.storage, case.size);
        match groups.iter_mut().find(same) {
            Some(group) => group.cases.push(case),
            None => groups.push(Group {
                storage: case.storage,
                size: case.size,
                cases: vec![case],
            }),
        }
    }
    groups
}

fn row(group: &Group<'_>) -> Row {
    let median = |value: fn(&Case) -> f64| group.spread(value).map(|spread| spread.median);
    let total = |value: fn(&Report) -> u64| -> u64 {
        let reports = group.cases.iter().flat_map(|case| [&case.fast, &case.calm]);
        reports.map(value).sum()
    };
    row! {
        "storage": group.storage.name(),
        "size_bytes": group.size,
        "messages_per_s": median(Case::per_s),
        "mb_per_s": median(Case::mb_per_s),
        "p50_us": median(|case| case.calm.latency_us.p50 as f64),
        "p99_us": median(|case| case.calm.latency_us.p99 as f64),
        "offered_per_s": median(|case| case.calm.offered_per_s.unwrap_or_default()),
        "node_rss_bytes": median(|case| case.rss_bytes as f64).filter(|bytes| *bytes > 0.0),
        "lost": total(|report| report.missing + report.failed + report.gaps),
        "duplicates": total(|report| report.duplicates),
        "reordered": total(|report| report.reordered),
        "rounds": group.cases.len(),
    }
}

fn round_row(case: &Case) -> Row {
    row! {
        "round": case.round,
        "storage": case.storage.name(),
        "size_bytes": case.size,
        "messages_per_s": case.per_s(),
        "mb_per_s": case.mb_per_s(),
        "p50_us": case.calm.latency_us.p50,
        "p99_us": case.calm.latency_us.p99,
        "sound": case.is_sound(),
        "first_error": case.fast.first_error.as_ref().or(case.calm.first_error.as_ref()),
    }
}

fn section(groups: &[Group<'_>]) -> Section {
    let head = [
        "storage",
        "payload, bytes",
        "messages/s",
        "MB/s",
        "p50 at half of it, ms",
        "p99, ms",
    ];
    let line = |group: &Group<'_>| {
        vec![
            group.storage.name().to_owned(),
            group.size.to_string(),
            group.cell(Case::per_s, 0),
            group.cell(Case::mb_per_s, 1),
            group.cell(Case::p50_ms, 2),
            group.cell(Case::p99_ms, 2),
        ]
    };
    let throughput = Figure {
        title: "Throughput by payload".to_owned(),
        panels: vec![
            panel(groups, "messages/s", &[("", Case::per_s)]),
            panel(groups, "MB/s", &[("", Case::mb_per_s)]),
        ],
    };
    let latency = Figure {
        title: "From publish to delivery, at half of that rate".to_owned(),
        panels: vec![panel(
            groups,
            "ms",
            &[(", p50", Case::p50_ms), (", p99", Case::p99_ms)],
        )],
    };
    Section {
        title: "Throughput and latency".to_owned(),
        table: Table::new(head, groups.iter().map(line)),
        figures: vec![
            ("throughput".to_owned(), throughput),
            ("latency".to_owned(), latency),
        ],
        ..Section::default()
    }
}

/// A value of each case, by what it is called beside the storage.
type Named = (&'static str, fn(&Case) -> f64);

/// Some values by payload, for each storage.
fn panel(groups: &[Group<'_>], y: &str, values: &[Named]) -> Panel {
    let line = |storage: Storage, nth: usize, (name, value): Named| {
        let of_storage = groups.iter().filter(|group| group.storage == storage);
        let point = |group: &Group<'_>| Some(group.spread(value)?.at(group.size.into()));
        let colours = match storage {
            Storage::Memory | Storage::Target => [3, 6],
            Storage::Disk => [4, 1],
            Storage::Kafka => [2, 5],
        };
        Series {
            name: format!("{}{name}", storage.name()),
            points: of_storage.filter_map(point).collect(),
            mark: Mark::LineAndDots,
            colour: colours[nth % 2],
        }
    };
    let storages = [
        Storage::Memory,
        Storage::Disk,
        Storage::Kafka,
        Storage::Target,
    ];
    let of_storage = |storage| {
        let values = values.iter().enumerate();
        values.map(move |(nth, value)| line(storage, nth, *value))
    };
    let series = storages.into_iter().flat_map(of_storage);
    Panel {
        x: Axis::log("payload, bytes"),
        y: Axis::log(y),
        series: series.filter(|series| !series.points.is_empty()).collect(),
        ..Panel::default()
    }
}
