//! Report of the findings: a line for each run while they come, rows, tables, and what was asked for.

use super::subject::Subject;
use super::{Found, PilotArgs, Run, Series};
use crate::hosts::Hosts;
use airmail_bench::Spread;
use airmail_experiments::results::{Findings, Row, Section, Table, machine};
use airmail_experiments::row;

/// Bytes a second beside those of librdkafka with the same batches, at least.
const BYTES_MIN: f64 = 0.85;
/// Messages a second beside those of librdkafka with a record for each at its best linger, at least.
const MESSAGES_MIN: f64 = 1.2;
/// Messages a second with so many topics, beside those with one, at least.
const TOPICS_MIN: [(u32, f64); 3] = [(16, 0.9), (256, 0.9), (100_000, 0.6)];
/// p50 and p99 beside librdkafka's, at most.
const LATENCY_MAX: [f64; 2] = [1.2, 1.5];
/// Messages a second of several pilots beside as many times those of one, at least.
const LINEAR_MIN: f64 = 0.8;

/// A run, in a line.
pub(super) fn line(run: &Run) -> String {
    let report = &run.report;
    let of = match run.series {
        Series::Topics => format!(", {} topics", run.count),
        Series::Pilots => format!(", {} pilots", run.count),
        Series::Rate | Series::Latency => String::new(),
    };
    let name = run.subject.name();
    let start = format!("{}, round {}, {name}{of}", run.series.name(), run.round);
    let found = match run.series {
        Series::Latency => format!(
            "p50 {} µs, p99 {} µs",
            report.latency_us.p50, report.latency_us.p99
        ),
        _ => format!(
            "{:.0} messages/s, {:.1} MB/s",
            run.messages_per_s(),
            run.bytes_per_s() / 1e6
        ),
    };
    if report.is_sound() {
        return format!("{start}: {found}");
    }
    format!("{start}: {found}; {}", report.complaint())
}

/// Everything.
pub(super) fn findings(args: &PilotArgs, found: &Found, hosts: &Hosts) -> Findings {
    let runs = &found.runs;
    let sections = args.series.iter().map(|series| section(*series, runs));
    Findings {
        name: "pilot".to_owned(),
        title: "A pilot on Kafka beside librdkafka".to_owned(),
        about: about(args, found, hosts),
        sections: sections.collect(),
        rows: runs.iter().map(row).collect(),
        ..Findings::default()
    }
}

fn about(args: &PilotArgs, found: &Found, hosts: &Hosts) -> Vec<String> {
    let seconds = args.duration_ms() as f64 / 1e3;
    let broker = match (&found.version, &args.log) {
        (Some(version), _) => format!("one broker, {version}, which was started for it"),
        (None, logs) => format!("{logs:?}, which was there"),
    };
    let mut about = vec![
        format!(
            "One publisher, messages of {} bytes, {seconds} s as fast as there is room, to the ack (acks=all, an idempotent \
             producer), on Kafka: {broker}. {} rounds, in each of which all take turns in an order that turns; ratios are \
             within a round. Median, with the least and the greatest.",
            args.size,
            args.rounds()
        ),
        "librdkafka alone is a producer in the program that measures. A message through Airmail goes from there to a \
         process of a pilot, and from that to Kafka. Bytes are those of records: of Airmail's batches with their heads, of \
         librdkafka's messages their payloads."
            .to_owned(),
        machine(),
        hosts.paragraph(),
    ];
    if !found.means.is_empty() {
        about.push(format!(
            "Each of several pilots: {}.",
            found.means.join("; ")
        ));
    }
    let stopped = hosts.stop().is_set();
    about.extend(stopped.then(|| "It was stopped before its end.".to_owned()));
    about
}

/// A subject with its number of topics or pilots, in all rounds.
struct Group<'a> {
    subject: Subject,
    count: u32,
    runs: Vec<&'a Run>,
}

impl Group<'_> {
    fn spread(&self, value: impl Fn(&Run) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|run| value(run)))
    }

    fn cell(&self, value: impl Fn(&Run) -> f64, digits: usize) -> String {
        let spread = self.spread(value);
        spread.map_or(String::new(), |spread| format!("{spread:.digits$}"))
    }

    /// A value beside that of another group's, within each round.
    fn beside(&self, other: &Group<'_>, value: impl Fn(&Run) -> f64) -> Option<Spread> {
        let pairs = self.runs.iter().filter_map(|run| {
            let of_round = |one: &&&Run| one.round == run.round;
            Some(value(run) / value(other.runs.iter().find(of_round)?))
        });
        Spread::of(pairs)
    }
}

fn groups(series: Series, runs: &[Run]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs.iter().filter(|run| run.series == series) {
        let is_same =
            |group: &&mut Group<'_>| group.subject.is_like(run.subject) && group.count == run.count;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group {
                subject: run.subject,
                count: run.count,
                runs: vec![run],
            }),
        }
    }
    groups.sort_by_key(|group| (group.subject != Subject::Pilot, group.count));
    groups
}

fn section(series: Series, runs: &[Run]) -> Section {
    let groups = groups(series, runs);
    let (title, counted) = match series {
        Series::Rate => ("Rate", ""),
        Series::Topics => ("More topics", "topics"),
        Series::Latency => ("From due to delivered, at 10,000 messages a second", ""),
        Series::Pilots => ("Several pilots, each held to a part of a core", "pilots"),
    };
    let text = match series {
        Series::Rate => rate(&groups),
        Series::Topics => topics(&groups),
        Series::Latency => latency(&groups),
        Series::Pilots => pilots(&groups),
    };
    Section {
        title: title.to_owned(),
        text,
        table: table(series, counted, &groups),
        ..Section::default()
    }
}

fn table(series: Series, counted: &str, groups: &[Group<'_>]) -> Table {
    let measured = match series {
        Series::Latency => ["p50, µs", "p99, µs"],
        _ => ["messages/s", "MB/s"],
    };
    let head = [
        "of",
        counted,
        measured[0],
        measured[1],
        "client, µs a message",
        "pilots",
        "broker",
    ];
    let each = |cpu_us: Option<u64>, run: &Run| {
        let messages = run.messages_per_s() / run.report.published_per_s.max(1.0);
        cpu_us.map_or(f64::NAN, |us| {
            us as f64 / (run.report.acknowledged as f64 * messages).max(1.0)
        })
    };
    let line = |group: &Group<'_>| {
        let counts = if counted.is_empty() {
            String::new()
        } else {
            group.count.to_string()
        };
        let measured = match series {
            Series::Latency => [
                group.cell(|run| run.report.latency_us.p50 as f64, 0),
                group.cell(|run| run.report.latency_us.p99 as f64, 0),
            ],
            _ => [
                group.cell(Run::messages_per_s, 0),
                group.cell(|run| run.bytes_per_s() / 1e6, 1),
            ],
        };
        let [first, second] = measured;
        vec![
            group.subject.name(),
            counts,
            first,
            second,
            group.cell(|run| each(Some(run.report.client_cpu_us), run), 2),
            group.cell(|run| each(run.report.node_cpu_us, run), 2),
            group.cell(|run| each(run.broker_cpu_us, run), 2),
        ]
    };
    Table::new(head, groups.iter().map(line))
}

/// A sentence on a ratio, and whether it is what is asked for.
fn judged(what: &str, ratio: Option<Spread>, is_kept: impl Fn(f64) -> bool, asked: &str) -> String {
    match ratio {
        None => format!("{what}: not measured; {asked} is asked for."),
        Some(ratio) => {
            let verdict = if is_kept(ratio.median) { "yes" } else { "no" };
            format!("{what}: {ratio:.2}; {asked} is asked for: {verdict}.")
        }
    }
}

fn at_least(what: &str, ratio: Option<Spread>, least: f64) -> String {
    judged(
        what,
        ratio,
        |median| median >= least,
        &format!("at least {least}"),
    )
}

fn of<'a, 'b>(
    groups: &'a [Group<'b>],
    wanted: impl Fn(&Group<'_>) -> bool,
) -> Option<&'a Group<'b>> {
    groups.iter().find(|group| wanted(group))
}

fn rate(groups: &[Group<'_>]) -> Vec<String> {
    let pilot = of(groups, |group| group.subject == Subject::Pilot);
    let records = of(groups, |group| matches!(group.subject, Subject::Records(_)));
    let bytes = pilot.zip(records);
    let bytes = bytes.and_then(|(pilot, records)| pilot.beside(records, Run::bytes_per_s));
    let median = |group: &&Group<'_>| group.spread(Run::messages_per_s).map_or(0.0, |s| s.median);
    let bare = groups
        .iter()
        .filter(|group| matches!(group.subject, Subject::Linger(_)));
    let best = bare.max_by(|a, b| median(a).total_cmp(&median(b)));
    let messages = pilot.zip(best);
    let messages = messages.and_then(|(pilot, best)| pilot.beside(best, Run::messages_per_s));
    let name = best.map_or("librdkafka".to_owned(), |best| best.subject.name());
    vec![
        at_least("Bytes/s beside librdkafka with the same batches as records", bytes, BYTES_MIN),
        at_least(&format!("Messages/s beside a record a message at its best ({name})"), messages, MESSAGES_MIN),
        "The paper: 70,000 to 80,000 messages/s a publisher and 140,000 to 160,000 a pilot at 100 to 200 ms, and 2,000 \
         where each waits for its ack."
            .to_owned(),
    ]
}

fn topics(groups: &[Group<'_>]) -> Vec<String> {
    let one = of(groups, |group| group.count == 1);
    let sentence = |(count, least): &(u32, f64)| {
        let many = of(groups, |group| group.count == *count)?;
        let ratio = one.and_then(|one| many.beside(one, Run::messages_per_s));
        Some(at_least(
            &format!("{count} topics beside one"),
            ratio,
            *least,
        ))
    };
    TOPICS_MIN.iter().filter_map(sentence).collect()
}

fn latency(groups: &[Group<'_>]) -> Vec<String> {
    let pilot = of(groups, |group| group.subject == Subject::Pilot);
    let bare = of(groups, |group| group.subject != Subject::Pilot);
    let pair = pilot.zip(bare);
    let p50 =
        pair.and_then(|(pilot, bare)| pilot.beside(bare, |run| run.report.latency_us.p50 as f64));
    let p99 =
        pair.and_then(|(pilot, bare)| pilot.beside(bare, |run| run.report.latency_us.p99 as f64));
    let sentence = |(what, ratio, most): (&str, Option<Spread>, f64)| {
        judged(
            what,
            ratio,
            |median| median <= most,
            &format!("at most {most}"),
        )
    };
    let [p50_max, p99_max] = LATENCY_MAX;
    let both = [
        ("p50 beside librdkafka's", p50, p50_max),
        ("p99 beside librdkafka's", p99, p99_max),
    ];
    both.into_iter().map(sentence).collect()
}

fn pilots(groups: &[Group<'_>]) -> Vec<String> {
    let one = of(groups, |group| group.count == 1);
    let several = groups.iter().filter(|group| group.count > 1);
    let sentence = |group: &Group<'_>| {
        let linear = |run: &Run| run.messages_per_s() / f64::from(run.count);
        let ratio = one.and_then(|one| group.beside(one, linear));
        at_least(
            &format!("{} pilots beside as many times one", group.count),
            ratio,
            LINEAR_MIN,
        )
    };
    several.map(sentence).collect()
}

fn row(run: &Run) -> Row {
    let report = &run.report;
    let (messages_each, bytes_each) = match run.subject {
        Subject::Records(batches) => (batches.messages_each, batches.bytes_each),
        _ => (1.0, run.stored_bytes_each),
    };
    row! {
        "series": run.series.name(),
        "of": run.subject.name(),
        "count": run.count,
        "round": run.round,
        "messages_per_s": run.messages_per_s(),
        "bytes_per_s": run.bytes_per_s(),
        "messages_a_record": messages_each,
        "bytes_a_record": bytes_each,
        "p50_us": report.latency_us.p50,
        "p99_us": report.latency_us.p99,
        "ack_p50_us": report.ack_latency_us.p50,
        "ack_p99_us": report.ack_latency_us.p99,
        "client_cpu_us": report.client_cpu_us,
        "pilots_cpu_us": report.node_cpu_us,
        "broker_cpu_us": run.broker_cpu_us,
        "seconds": report.seconds,
        "sound": report.is_sound(),
        "first_error": report.first_error.as_ref(),
    }
}
