//! Report of the findings: rows and tables.

use super::run::{Link, Pace, Run};
use super::{CopilotsArgs, Found, Series, figures};
use crate::hosts::Hosts;
use airmail_bench::{Report, Spread};
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;

/// Everything.
pub(super) fn findings(args: &CopilotsArgs, found: &Found, hosts: &Hosts) -> Findings {
    let groups = groups(args, found);
    let mut findings = Findings {
        name: "copilots".to_owned(),
        title: "Copilots: a tower, and 1, 2 and more copilots before it".to_owned(),
        about: about(args, found, hosts),
        sections: vec![speed(&groups), links(args, &groups)],
        rows: groups.iter().map(row).collect(),
        ..Findings::default()
    };
    let runs = found.runs.iter().map(run_row).collect();
    findings.courses.insert("rounds".to_owned(), runs);
    let links = found.runs.iter().flat_map(link_rows).collect();
    findings.courses.insert("links".to_owned(), links);
    findings
}

fn about(args: &CopilotsArgs, found: &Found, hosts: &Hosts) -> Vec<String> {
    let CopilotsArgs {
        subscribers,
        topics,
        size,
        log,
        ..
    } = args;
    let each = topics / subscribers;
    let mut about = vec![
        format!(
            "One publisher, {topics} topics in turn, messages of {size} bytes, through a tower that takes \
             publishes itself (storage {log}), to {subscribers} subscribers, spread evenly over the \
             copilots. Divided: each subscriber has {each} topics of its own. Shared: each has all {topics}."
        ),
        format!(
            "Throughput: {} s as fast as there is room, with the publisher a bounded number of messages \
             ahead of the slowest subscriber. Latency: from when a message was due to its delivery, at half \
             of the least rate of publishes that any number of copilots came to in the series, the same for \
             all of them. {} rounds of each, in an order that turns, with new nodes for each number of \
             copilots.",
            args.seconds(),
            args.rounds()
        ),
        "Error bars: the least and the greatest of the rounds, about their median. Bytes are what the nodes \
         count on their links, frames and signs of life included. Cores: processor time over time; the \
         publisher and each copilot's subscribers are processes of their own, and not held."
            .to_owned(),
        hosts.paragraph(),
        hosts.copilots_paragraph(),
    ];
    if found.means.is_empty() {
        about.push("Copilots were not held.".to_owned());
    } else {
        about.push(format!("Each copilot: {}.", found.means.join("; ")));
    }
    let stopped = hosts.stop().is_set();
    about.extend(stopped.then(|| "It was stopped before its end.".to_owned()));
    about
}

/// A series on so many copilots, with all rounds.
pub(super) struct Group<'a> {
    pub(super) series: Series,
    pub(super) copilots: u32,
    pub(super) fast: Vec<&'a Run>,
    pub(super) half: Vec<&'a Run>,
}

impl Group<'_> {
    /// A value of the runs as fast as there was room.
    pub(super) fn fast(&self, value: impl Fn(&Run) -> f64) -> Option<Spread> {
        Spread::of(self.fast.iter().map(|run| value(run)))
    }

    /// A value of the runs at half of that.
    pub(super) fn half(&self, value: impl Fn(&Run) -> f64) -> Option<Spread> {
        Spread::of(self.half.iter().map(|run| value(run)))
    }

    /// Bytes on a copilot's link for each that was published, over copilots and rounds.
    fn link_shares(&self) -> Option<Spread> {
        Spread::of(self.fast.iter().flat_map(|run| run.link_shares()))
    }

    /// Bytes on a copilot's link for each that is wanted behind it, over copilots and rounds.
    fn carried(&self) -> Option<Spread> {
        let links = self.fast.iter().flat_map(|run| &run.links);
        Spread::of(links.map(Link::carried))
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.fast.iter().chain(&self.half).copied()
    }
}

fn groups<'a>(args: &CopilotsArgs, found: &'a Found) -> Vec<Group<'a>> {
    let each = args.series.iter().flat_map(|series| {
        let copilots = args.copilots.iter();
        copilots.map(|copilots| (*series, *copilots))
    });
    let groups = each.map(|(series, copilots)| Group {
        series,
        copilots,
        fast: found.of(Pace::Fast, series, copilots).collect(),
        half: found.of(Pace::Half, series, copilots).collect(),
    });
    groups.filter(|group| !group.fast.is_empty()).collect()
}

pub(super) fn per_s(run: &Run) -> f64 {
    run.report.delivered_per_s
}

pub(super) fn p50_ms(run: &Run) -> f64 {
    run.report.latency_us.p50 as f64 / 1e3
}

pub(super) fn p99_ms(run: &Run) -> f64 {
    run.report.latency_us.p99 as f64 / 1e3
}

fn offered_per_s(run: &Run) -> f64 {
    run.report.offered_per_s.unwrap_or_default()
}

fn tower_cores(run: &Run) -> f64 {
    run.cores(&run.tower)
}

fn publisher_cores(run: &Run) -> f64 {
    let [publisher, _] = run.client_cores();
    publisher
}

fn subscribers_cores(run: &Run) -> f64 {
    let [_, subscribers] = run.client_cores();
    subscribers
}

/// NaN, which counts nowhere, where nothing stops copilots.
fn throttled(run: &Run) -> f64 {
    run.throttled().unwrap_or(f64::NAN)
}

fn row(group: &Group<'_>) -> Row {
    let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
    let fast = |value: fn(&Run) -> f64| median(group.fast(value));
    let half = |value: fn(&Run) -> f64| median(group.half(value));
    let total =
        |value: fn(&Report) -> u64| -> u64 { group.runs().map(|run| value(&run.report)).sum() };
    row! {
        "series": group.series.name(),
        "copilots": group.copilots,
        "messages_per_s": fast(per_s),
        "published_per_s": fast(|run| run.report.published_per_s),
        "offered_per_s": half(offered_per_s),
        "p50_us": half(|run| run.report.latency_us.p50 as f64),
        "p99_us": half(|run| run.report.latency_us.p99 as f64),
        "link_bytes_per_published": median(group.link_shares()),
        "link_bytes_per_published_max": group.link_shares().map(|spread| spread.most),
        "link_bytes_per_wanted_max": group.carried().map(|spread| spread.most),
        "tower_sent_per_published": fast(Run::sent_share),
        "late_bytes_per_published": fast(Run::late_share),
        "tower_cores": fast(tower_cores),
        "copilot_cores": fast(Run::copilot_cores),
        "copilot_periods_stopped": fast(throttled),
        "publisher_cores": fast(publisher_cores),
        "subscribers_cores": fast(subscribers_cores),
        "load": fast(|run| run.load),
        "faults": group.runs().filter(|run| run.is_judged()).flat_map(Run::faults).count(),
        "lost": total(|report| report.missing + report.failed + report.gaps),
        "duplicates": total(|report| report.duplicates),
        "reordered": total(|report| report.reordered),
        "rounds": group.fast.len(),
    }
}

fn run_row(run: &Run) -> Row {
    row! {
        "round": run.round,
        "pace": run.pace.name(),
        "series": run.series.name(),
        "copilots": run.copilots(),
        "messages_per_s": per_s(run),
        "published_per_s": run.report.published_per_s,
        "offered_per_s": run.report.offered_per_s,
        "p50_us": run.report.latency_us.p50,
        "p99_us": run.report.latency_us.p99,
        "published_bytes": run.published_bytes,
        "tower_sent_bytes": run.tower.link_bytes,
        "tower_cores": tower_cores(run),
        "copilot_cores": run.copilot_cores(),
        "publisher_cores": publisher_cores(run),
        "subscribers_cores": subscribers_cores(run),
        "load": run.load,
        "sound": run.is_sound(),
        "first_error": run.report.first_error,
    }
}

fn link_rows(run: &Run) -> Vec<Row> {
    let row = |(link, number): (&Link, u32)| {
        let Link {
            wanted_bytes,
            copilot,
        } = link;
        row! {
            "round": run.round,
            "pace": run.pace.name(),
            "series": run.series.name(),
            "copilots": run.copilots(),
            "copilot": number,
            "received_bytes": copilot.link_bytes,
            "wanted_bytes": wanted_bytes,
            "published_bytes": run.published_bytes,
            "cores": run.cores(copilot),
            "periods": copilot.throttled.map(|throttled| throttled.periods),
            "periods_stopped": copilot.throttled.map(|throttled| throttled.throttled),
        }
    };
    run.links.iter().zip(1..).map(row).collect()
}

fn cell(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or(String::new(), |spread| format!("{spread:.digits$}"))
}

fn speed(groups: &[Group<'_>]) -> Section {
    let head = [
        "series, copilots",
        "messages/s delivered",
        "at messages/s published",
        "p50, ms",
        "p99, ms",
        "cores: tower",
        "each copilot",
        "publisher",
        "subscribers",
        "periods stopped",
        "load",
    ];
    let line = |group: &Group<'_>| {
        vec![
            format!("{}, {}", group.series.name(), group.copilots),
            cell(group.fast(per_s), 0),
            group
                .half(offered_per_s)
                .map_or(String::new(), |offered| format!("{:.0}", offered.median)),
            cell(group.half(p50_ms), 1),
            cell(group.half(p99_ms), 1),
            cell(group.fast(tower_cores), 2),
            cell(group.fast(Run::copilot_cores), 2),
            cell(group.fast(publisher_cores), 2),
            cell(group.fast(subscribers_cores), 2),
            cell(group.fast(throttled), 2),
            cell(group.fast(|run| run.load), 1),
        ]
    };
    Section {
        title: "Throughput, and latency at half of the least".to_owned(),
        table: Table::new(head, groups.iter().map(line)),
        figures: vec![
            ("throughput".to_owned(), figures::throughput(groups)),
            ("latency".to_owned(), figures::latency(groups)),
        ],
        ..Section::default()
    }
}

fn links(args: &CopilotsArgs, groups: &[Group<'_>]) -> Section {
    let head = [
        "series, copilots",
        "wanted behind a link, of what was published",
        "bytes on a link for each published",
        "for each wanted behind it",
        "sent by the tower for each published",
        "read for subscribers that did not keep up",
        "links with too much",
    ];
    let line = |group: &Group<'_>| {
        let faults = group.fast.iter().flat_map(|run| run.faults()).count();
        vec![
            format!("{}, {}", group.series.name(), group.copilots),
            format!("{:.2}", group.series.wanted_share(group.copilots)),
            cell(group.link_shares(), 3),
            cell(group.carried(), 3),
            cell(group.fast(Run::sent_share), 3),
            cell(group.fast(Run::late_share), 3),
            faults.to_string(),
        ]
    };
    let behind = args.subscribers;
    Section {
        title: "Bytes on links".to_owned(),
        text: vec![format!(
            "Bytes of payload in the runs as fast as there was room. A link is to carry what is wanted \
             behind it once: an even part of all in the divided series, all of it in the shared one, where \
             each topic has {behind} subscribers, divided by the number of copilots, behind each link. \
             For those who do not keep up a copilot reads on its own, and its link may carry that too. More than 1.25 \
             times both, and 64 KiB, is too much."
        )],
        table: Table::new(head, groups.iter().map(line)),
        figures: vec![("links".to_owned(), figures::links(groups))],
    }
}
