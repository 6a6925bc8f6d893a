//! Report of the findings: rows, a table, and figures like the paper's.

use super::ClientsArgs;
use super::step::Step;
use crate::hosts::Hosts;
use crate::rounds::{MESSAGES, Round};
use airmail_bench::Spread;
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};

/// The paper's results on a single machine: the average round, in milliseconds, and the time-out
/// rate, up to this many clients.
const PAPER_MS: f64 = 50.0;
const PAPER_TIMEOUTS: f64 = 0.005;
const PAPER_CLIENTS: u32 = 2000;
/// And its time-out rate at 20,000.
const PAPER_TIMEOUTS_MANY: f64 = 0.03;
/// The colour of the 99th percentile, which has no error bars: they would hide the mean's.
const P99: usize = 1;

/// Everything.
pub(super) fn findings(args: &ClientsArgs, steps: &[Step], hosts: &Hosts) -> Findings {
    let mut findings = Findings {
        name: "clients".to_owned(),
        title: "Clients: a round of 20 messages to each".to_owned(),
        about: about(args, steps, hosts),
        sections: vec![section(steps)],
        rows: steps.iter().map(row).collect(),
        ..Findings::default()
    };
    let rounds = steps.iter().flat_map(round_rows).collect();
    findings.courses.insert("rounds".to_owned(), rounds);
    findings
}

fn about(args: &ClientsArgs, steps: &[Step], hosts: &Hosts) -> Vec<String> {
    let mut about = vec![
        format!(
            "Each client has a subscription to one topic, from now; each round is {MESSAGES} messages of \
             {} bytes, published one after the other through the SDK, which makes what batches it likes, {} rounds, one every {} ms. A round \
             takes from just before its first publish until the client has its last message; more than {} \
             ms is a time-out. All rounds count. Storage in memory, and a new node for each step, where the node is one of the run's own.",
            args.size,
            args.rounds(),
            args.interval_ms,
            args.timeout_ms
        ),
        hosts.paragraph(),
        "The processes of clients and publisher are not held. \
         The paper does not say the size of its messages, how fast they were published, or how many topics \
         there were; its clients were goroutines of one process."
            .to_owned(),
    ];
    match steps.first() {
        Some(step) if step.node.means.is_empty() => about.push("The node was not held.".to_owned()),
        Some(step) => {
            let most = steps.iter().map(|step| step.node.connecting_cpu_share);
            about.push(format!(
                "The node: {}. While clients connected it had at most {:.2} of a core.",
                step.node.means.join("; "),
                most.fold(0.0, f64::max)
            ));
        }
        None => {}
    }
    let shared = steps
        .iter()
        .filter(|step| step.node.connections < step.outcome.clients);
    about.extend(shared.map(|step| {
        let (clients, connections) = (step.outcome.clients, step.node.connections);
        let further = clients - connections;
        format!(
            "Of {clients} clients {connections} have a connection of their own; {further} are further \
             streams that share these: more sockets than one process may have here, or was to have."
        )
    }));
    let stopped = hosts.stop().is_set();
    about.extend(stopped.then(|| "It was stopped before its end.".to_owned()));
    about
}

fn row(step: &Step) -> Row {
    let all = step.outcome.all();
    row! {
        "clients": step.outcome.clients,
        "connections": step.node.connections,
        "streams": step.outcome.clients,
        "processes": step.outcome.processes,
        "rounds": step.outcome.rounds,
        "round_ms_mean": all.mean_ms(),
        "round_ms_p50": all.took.percentiles().p50 as f64 / 1e3,
        "round_ms_p99": all.p99_ms(),
        "round_ms_max": all.took.percentiles().max as f64 / 1e3,
        "timeout_rate": all.timeout_rate(),
        "timeouts": all.timeouts(),
        "incomplete": all.incomplete,
        "wrong": step.outcome.got.wrong,
        "error": step.outcome.got.error,
        "deliveries_a_round": step.outcome.deliveries(),
        "node_cpu_share": step.node.cpu_share,
        "node_cpu_ms_a_round": step.work_ms(),
        "node_cpu_share_connecting": step.node.connecting_cpu_share,
        "node_throttled_periods": step.node.throttled.map(|throttled| throttled.throttled),
        "node_periods": step.node.throttled.map(|throttled| throttled.periods),
        "node_rss_bytes": step.node.rss_bytes,
        "clients_cpu_us": step.outcome.got.cpu_us,
    }
}

fn round_rows(step: &Step) -> Vec<Row> {
    let row = |(round, number): (&Round, usize)| {
        row! {
            "clients": step.outcome.clients,
            "round": number,
            "round_ms_mean": round.mean_ms(),
            "round_ms_p99": round.p99_ms(),
            "timeouts": round.timeouts(),
        }
    };
    step.outcome.got.rounds.iter().zip(1..).map(row).collect()
}

fn section(steps: &[Step]) -> Section {
    let head = [
        "clients",
        "connections",
        "round, mean, ms",
        "p99, ms",
        "longest, ms",
        "timed out, %",
        "deliveries to each",
        "node's work, ms",
        "periods stopped, %",
        "node's memory, MiB",
    ];
    let line = |step: &Step| {
        let all = step.outcome.all();
        let stopped = step.node.throttled.map_or(String::new(), |throttled| {
            let share = throttled.throttled as f64 / throttled.periods.max(1) as f64;
            format!("{:.0}", share * 100.0)
        });
        vec![
            step.outcome.clients.to_string(),
            step.node.connections.to_string(),
            format!("{:.1}", all.mean_ms()),
            format!("{:.1}", all.p99_ms()),
            format!("{:.1}", all.took.percentiles().max as f64 / 1e3),
            format!("{:.3}", all.timeout_rate() * 100.0),
            format!("{:.1}", step.outcome.deliveries()),
            format!("{:.0}", step.work_ms()),
            stopped,
            (step.node.rss_bytes >> 20).to_string(),
        ]
    };
    let few: Vec<&Step> = steps
        .iter()
        .filter(|step| step.outcome.clients <= PAPER_CLIENTS)
        .collect();
    let mut figures = Vec::new();
    if !few.is_empty() {
        let title =
            "Round time and time-outs by number of clients (as the paper's figures 3, 5, 6, 8, 9)";
        let axes = ["clients", "round, ms"].map(Axis::linear);
        let figure = figure(title, &few, axes);
        figures.push(("rounds".to_owned(), figure));
    }
    if few.len() < steps.len() {
        let all: Vec<&Step> = steps.iter().collect();
        let most = all
            .iter()
            .map(|step| step.outcome.clients)
            .max()
            .unwrap_or(0);
        // Three decades at least, which are divided by tens.
        let clients = Axis::log("clients").from_to(50.0, (f64::from(most) * 2.0).max(50_000.0));
        let figure = figure(
            "The same for all steps",
            &all,
            [clients, Axis::log("round, ms")],
        );
        figures.push(("all".to_owned(), figure));
    }
    Section {
        title: "Rounds".to_owned(),
        text: vec![format!(
            "The paper, for a single machine: about {PAPER_MS} ms on average and under {} % timed out up to \
             {PAPER_CLIENTS} clients, about {} % at 20,000. Its figures 5, 6, 8 and 9 have clusters \
             of four nodes too, which this is not. Error bars: between the rounds' own means.",
            PAPER_TIMEOUTS * 100.0,
            PAPER_TIMEOUTS_MANY * 100.0
        )],
        table: Table::new(head, steps.iter().map(line)),
        figures,
    }
}

fn figure(title: &str, steps: &[&Step], [x, y]: [Axis; 2]) -> Figure {
    let series = |name: &str, value: fn(&Round) -> f64, colour| Series {
        name: name.to_owned(),
        points: steps
            .iter()
            .map(|step| point(step, value, colour != P99))
            .collect(),
        mark: Mark::LineAndDots,
        colour,
    };
    let paper = |name: &str, y: f64| Series {
        name: name.to_owned(),
        points: [100.0, PAPER_CLIENTS.into()]
            .map(|x| Point::new(x, y))
            .into(),
        mark: Mark::Dashes,
        colour: 0,
    };
    let percent = |round: &Round| round.timeout_rate() * 100.0;
    let mut timeouts = vec![
        series("timed out", percent, 4),
        paper("the paper: under 0.5 %", PAPER_TIMEOUTS * 100.0),
    ];
    if steps
        .iter()
        .any(|step| step.outcome.clients > PAPER_CLIENTS)
    {
        timeouts.push(Series {
            name: "the paper at 20,000".to_owned(),
            points: vec![Point::new(20_000.0, PAPER_TIMEOUTS_MANY * 100.0)],
            mark: Mark::Dots,
            colour: 0,
        });
    }
    Figure {
        title: title.to_owned(),
        panels: vec![
            Panel {
                x: x.clone(),
                y,
                series: vec![
                    series("mean", Round::mean_ms, 3),
                    series("p99", Round::p99_ms, P99),
                    paper("the paper: mean 50 ms", PAPER_MS),
                ],
                ..Panel::default()
            },
            Panel {
                x,
                y: Axis::linear("clients timed out, %"),
                series: timeouts,
                ..Panel::default()
            },
        ],
    }
}

/// Point over all rounds, with a bar between the least and the greatest if asked.
fn point(step: &Step, value: fn(&Round) -> f64, bar: bool) -> Point {
    let point = Point::new(step.outcome.clients.into(), value(&step.outcome.all()));
    match Spread::of(step.outcome.got.rounds.iter().map(value)) {
        Some(spread) if bar => point.with_bar(spread.least, spread.most),
        _ => point,
    }
}
