//! `airmail plan`: the machines that a number of topics takes, by the paper's figures and by Airmail's measured ones.
//!
//! After the RocketSpeed report, section 2.3.6, tables 2.1 to 2.3: the routing table of the control towers, the machines
//! that have room for it, and how long recent messages fit in the rest of their memory. It asks no node.

use super::lines::printed;
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use std::str::FromStr;

/// Bytes that a wanted topic takes in a tower's table for the first copilot, as measured with a million of them
/// (docs/deploy.md), and the most for each further one, which `airmail-link`'s test of the memory of wants holds.
const WANT_BYTES: f64 = 36.0;
const WANT_BYTES_FURTHER: f64 = 2.0;
/// Bytes of a topic's name in the paper's table, and bits for each copilot.
const PAPER_NAME_BYTES: f64 = 100.0;
const SECONDS_A_DAY: f64 = 86_400.0;

/// Arguments of `airmail plan`.
#[derive(clap::Args, Clone, Debug)]
pub struct PlanArgs {
    /// Topics that there are, such as 1e12
    #[arg(long, value_name = "N", default_value = "1e12")]
    pub topics: Amount,
    /// The part of them that somebody wants, such as 1%
    #[arg(long, value_name = "PART", default_value = "1%")]
    pub active: Amount,
    /// Copilots
    #[arg(long, value_name = "N", default_value = "1000")]
    pub copilots: Amount,
    /// Copilots that want an active topic, on average
    #[arg(long, value_name = "N", default_value = "1")]
    pub wanted_by: Amount,
    /// Memory of each tower for its table
    #[arg(long, value_name = "BYTES", default_value = "20GB")]
    pub table: Amount,
    /// Memory of each tower for recent messages
    #[arg(long, value_name = "BYTES", default_value = "80GB")]
    pub cache: Amount,
    /// Messages a day, of all topics
    #[arg(long, value_name = "N", default_value = "1e12")]
    pub messages: Amount,
    /// Bytes of a message
    #[arg(long, value_name = "BYTES", default_value = "1KB")]
    pub size: Amount,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// A number, with a unit or none: `1e12`, `1%`, `20GB`, `4GiB`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount(pub f64);

/// Units, longer ones before those that they end with.
const UNITS: [(&str, f64); 11] = [
    ("TiB", 1_099_511_627_776.0),
    ("GiB", 1_073_741_824.0),
    ("MiB", 1_048_576.0),
    ("KiB", 1_024.0),
    ("TB", 1e12),
    ("GB", 1e9),
    ("MB", 1e6),
    ("kB", 1e3),
    ("KB", 1e3),
    ("B", 1.0),
    ("%", 0.01),
];

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        let text = text.trim();
        let with_unit = UNITS
            .iter()
            .find_map(|(unit, value)| Some((text.strip_suffix(unit)?, *value)));
        let (number, unit) = with_unit.unwrap_or((text, 1.0));
        let number: Option<f64> = number.trim().replace('_', "").parse().ok();
        let amount = number.map(|number| number * unit);
        let amount = amount.filter(|amount| amount.is_finite() && *amount > 0.0);
        amount
            .map(Amount)
            .ok_or_else(|| "a number above 0, such as 1e12, 1%, 20GB or 4GiB".to_owned())
    }
}

/// The need of one system.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Need {
    system: &'static str,
    bytes_a_topic: f64,
    table_bytes: f64,
    machines: f64,
    /// Time for which recent messages fit in the memory of all of them.
    cache_seconds: f64,
}

/// Everything that a plan says.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Plan {
    active_topics: f64,
    bytes_a_second: f64,
    needs: [Need; 2],
    /// The number of machines that the paper has, where its own figures give another one.
    paper_has: Option<f64>,
}

fn plan(args: &PlanArgs) -> Plan {
    let active_topics = args.topics.0 * args.active.0;
    let bytes_a_second = args.messages.0 * args.size.0 / SECONDS_A_DAY;
    let need = |system, bytes_a_topic: f64| {
        let table_bytes = active_topics * bytes_a_topic;
        // A hair's breadth above a whole number is rounding.
        let machines = (table_bytes / args.table.0 - 1e-9).ceil().max(1.0);
        Need {
            system,
            bytes_a_topic,
            table_bytes,
            machines,
            cache_seconds: machines * args.cache.0 / bytes_a_second,
        }
    };
    let further = (args.wanted_by.0 - 1.0).max(0.0);
    let needs = [
        need(
            "RocketSpeed, as in the paper",
            PAPER_NAME_BYTES + args.copilots.0 / 8.0,
        ),
        need(
            "Airmail, as measured",
            WANT_BYTES + WANT_BYTES_FURTHER * further,
        ),
    ];
    // Table 2.2: 4.5 TB in machines of 20 GB.
    let is_the_papers = needs[0].machines.to_bits() == 225.0_f64.to_bits();
    Plan {
        active_topics,
        bytes_a_second,
        paper_has: is_the_papers.then_some(250.0),
        needs,
    }
}

/// Runs it.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    printed(show(&mut io::stdout(), args))?;
    Ok(ExitCode::SUCCESS)
}

/// A number of bytes with three digits.
fn bytes(bytes: f64) -> String {
    let units = [
        (1e12, "TB"),
        (1e9, "GB"),
        (1e6, "MB"),
        (1e3, "kB"),
        (1.0, "B"),
    ];
    let unit = units.iter().find(|(size, _)| bytes >= *size);
    let (size, name) = unit.copied().unwrap_or((1.0, "B"));
    let value = bytes / size;
    let digits = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {name}")
}

fn span(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else if seconds < 7_200.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}

fn show(out: &mut impl Write, args: &PlanArgs) -> anyhow::Result<()> {
    let plan = plan(args);
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&plan)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "{:e} topics are wanted, each by {} of {} copilots; {}/s come in",
        plan.active_topics,
        args.wanted_by.0,
        args.copilots.0,
        bytes(plan.bytes_a_second)
    )?;
    let (table, cache) = (bytes(args.table.0), bytes(args.cache.0));
    writeln!(
        out,
        "{:28}  {:>7}  {:>8}  {:>24}  {}",
        "",
        "B/topic",
        "table",
        format!("towers with {table} for it"),
        format_args!("recent messages in {cache} of each")
    )?;
    for need in &plan.needs {
        writeln!(
            out,
            "{:28}  {:>7.0}  {:>8}  {:>24}  {}",
            need.system,
            need.bytes_a_topic,
            bytes(need.table_bytes),
            need.machines,
            span(need.cache_seconds)
        )?;
    }
    if let Some(has) = plan.paper_has {
        let [paper, _] = &plan.needs;
        writeln!(
            out,
            "the paper's table 2.2 has {has} machines here, and {} / {table} are {}",
            bytes(paper.table_bytes),
            paper.machines
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: PlanArgs,
    }

    fn args(flags: &[&str]) -> PlanArgs {
        Line::parse_from(std::iter::once(&"plan").chain(flags)).args
    }

    /// Tables 2.1 to 2.3 of the report: topics in percent, memory for the table and for messages in GB, machines, and
    /// minutes of messages.
    #[test]
    fn the_papers_tables_are_what_the_papers_figures_give() {
        for (active, table, cache, routing, machines, minutes) in [
            ("1%", "20GB", "80GB", 2.25e12, 113.0, 13.0),
            ("1%", "30GB", "70GB", 2.25e12, 75.0, 7.5),
            // It has 250 machines, and 28 minutes with them.
            ("2%", "20GB", "80GB", 4.5e12, 225.0, 25.9),
            ("2%", "30GB", "70GB", 4.5e12, 150.0, 15.1),
        ] {
            let flags = ["--active", active, "--table", table, "--cache", cache];
            let [paper, _] = plan(&args(&flags)).needs;
            assert!((paper.table_bytes - routing).abs() < 1.0, "{paper:?}");
            assert!((paper.machines - machines).abs() < 0.5, "{paper:?}");
            assert!(
                (paper.cache_seconds / 60.0 - minutes).abs() < 0.1,
                "{paper:?}"
            );
        }
    }

    #[test]
    fn where_the_paper_has_another_number_it_is_said() {
        let shown = |flags: &[&str]| {
            let mut out = Vec::new();
            show(&mut out, &args(flags)).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = shown(&["--active", "2%"]);
        assert!(
            text.ends_with(
                "the paper's table 2.2 has 250 machines here, and 4.50 TB / 20.0 GB are 225\n"
            ),
            "{text}"
        );
        let text = shown(&[]);
        assert_eq!(
            text,
            "1e10 topics are wanted, each by 1 of 1000 copilots; 11.6 GB/s come in\n\
             \x20                             B/topic     table  towers with 20.0 GB for it  recent messages in 80.0 GB of each\n\
             RocketSpeed, as in the paper      225   2.25 TB                       113  13.0 min\n\
             Airmail, as measured               36    360 GB                        18  2.1 min\n"
        );
        let json: serde_json::Value = serde_json::from_str(&shown(&["--json"])).unwrap();
        assert_eq!(json["needs"][0]["machines"], 113.0);
    }

    #[test]
    fn further_copilots_take_little_and_amounts_are_checked() {
        let [_, ours] = plan(&args(&["--wanted-by", "10"])).needs;
        assert!((ours.bytes_a_topic - 54.0).abs() < 1e-9);
        for wrong in ["", "0", "-1", "x", "1e999", "5 XB"] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
        assert_eq!("4 GiB".parse(), Ok(Amount(4_294_967_296.0)));
        assert_eq!("1_000".parse(), Ok(Amount(1_000.0)));
    }
}
