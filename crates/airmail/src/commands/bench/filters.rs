//! `airmail bench filters`: very many filters, and how many messages a second one core holds against them; or, with streams, how
//! many a node holds against them and delivers.

use super::measured::{Measured, MeasuredArgs};
use crate::cli::UsageError;
use crate::commands::lines::say;
use airmail_bench::filters::{Delivered, FilteredBacklog, Kind, Wanted, measure};
use airmail_bench::process::Usage;
use airmail_bench::settings;
use serde::Serialize;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `airmail bench filters`.
#[derive(clap::Args, Clone, Debug)]
pub struct FiltersArgs {
    /// Filters
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub filters: u32,
    /// Attributes that each filter tests
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub attributes: u32,
    /// Width of each interval, as a share of all values
    #[arg(long, value_name = "PERCENT", default_value = "10%")]
    pub interval: String,
    /// Rounds, in each of which the index and the loop have a turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Processor time of a turn
    #[arg(long, value_name = "TIME", value_parser = settings::milliseconds, default_value = "500ms")]
    pub turn: u64,
    /// Seed of filters and messages
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Leave out equalities, skewed intervals and 16 names, which are measured beside intervals
    #[arg(long)]
    pub alone: bool,
    /// End with 1 if intervals miss a bar: 100,000 messages/s, 50 times the loop, which itself asks 30 million
    /// filters/s, 600 bytes a filter, all made in 10 s. They are meant for 100,000 filters on 4 attributes. With streams:
    /// the rate is kept, and 99 of 100 messages come within 250 ms
    #[arg(long)]
    pub judge: bool,
    #[command(flatten)]
    pub delivered: DeliveredArgs,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report as a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Arguments of a run through a node.
#[derive(clap::Args, Clone, Debug)]
pub struct DeliveredArgs {
    /// Have a node hold messages against the filters, which so many streams share, and deliver what matches
    #[arg(long, value_name = "N")]
    pub streams: Option<NonZeroU32>,
    /// Connections that the streams share
    #[arg(long, value_name = "N", default_value = "8", requires = "streams")]
    pub connections: NonZeroU32,
    /// Topics, used in turn
    #[arg(long, value_name = "N", default_value = "16", requires = "streams")]
    pub topics: NonZeroU32,
    /// Messages a second, whether or not the node keeps up
    #[arg(long, value_name = "N", requires = "streams", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rate: u64,
    /// Time for which to publish
    #[arg(long, value_name = "TIME", value_parser = settings::milliseconds, default_value = "10s", requires = "streams")]
    pub duration: u64,
    /// Filters a second that are changed meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, requires = "streams")]
    pub changes: u64,
    /// Store so much payload first, as 1GiB, and have it read by one who is late and whose filter matches little
    #[arg(long, value_name = "BYTES", value_parser = settings::bytes, conflicts_with = "streams")]
    pub backlog: Option<u64>,
    /// Payload of each message of the backlog, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1000,
        requires = "backlog"
    )]
    pub size: usize,
    /// Messages of the backlog of which the filter matches one
    #[arg(long, value_name = "N", default_value = "10000", requires = "backlog")]
    pub one_in: NonZeroU32,
    /// A node that runs already, as airmail://HOST:PORT [default: one is started for the run]
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    #[command(flatten)]
    pub node: MeasuredArgs,
}

/// Runs it, through a node where there are streams or a backlog: 0 if everything was delivered that matches, and nothing else, and
/// no bar was missed that was asked for, else 1.
///
/// # Errors
/// A node cannot be started or reached, or refuses something.
pub(super) async fn delivered(args: &FiltersArgs) -> anyhow::Result<ExitCode> {
    let of = &args.delivered;
    if of.streams.is_none() && of.backlog.is_none() {
        return filters(args);
    }
    let node = match of.target {
        Some(_) => None,
        None => Some(of.node.start(None, &[])?),
    };
    let own = || node.as_ref().map(Measured::url);
    let target = of.target.clone().or_else(own).unwrap_or_default();
    let namespace = format!("bench-filters-{:08x}", std::process::id());
    let Some(streams) = of.streams else {
        let backlog = FilteredBacklog {
            target,
            namespace,
            bytes: of.backlog.unwrap_or_default(),
            size: of.size,
            one_in: of.one_in,
            rounds: args.rounds,
        };
        let run = backlog.measure().await?;
        return report(args, &run, true, &run.missed());
    };
    let load = Delivered {
        target,
        namespace,
        wanted: args.wanted()?,
        streams,
        connections: of.connections,
        topics: of.topics,
        rate: of.rate,
        duration_ms: of.duration,
        changes: of.changes,
    };
    let pids = node.as_ref().map_or(Vec::new(), Measured::pids);
    let run = load.measure(|| Usage::of_all(&pids)).await?;
    report(args, &run, run.is_sound(), &run.missed(of.rate))
}

/// Says how a run went: 0 if it was sound, and no bar was missed that was asked for, else 1.
#[expect(clippy::print_stderr, reason = "a command's result")]
fn report<R: Display + Serialize>(
    args: &FiltersArgs,
    run: &R,
    is_sound: bool,
    missed: &[String],
) -> anyhow::Result<ExitCode> {
    if args.json {
        say(&format!("{}\n", serde_json::to_string(run)?))?;
    } else {
        say(&run.to_string())?;
    }
    let mut is_good = is_sound;
    for bar in missed.iter().filter(|_| args.judge) {
        eprintln!("airmail: missed: {bar}");
        is_good = false;
    }
    Ok(ExitCode::from(u8::from(!is_good)))
}

impl FiltersArgs {
    fn wanted(&self) -> Result<Wanted, UsageError> {
        Ok(Wanted {
            filters: self.filters,
            attributes: self.attributes,
            interval: share(&self.interval)?,
            rounds: self.rounds,
            turn_ms: self.turn,
            seed: self.seed,
        })
    }
}

/// Runs it: 0 if the index found what the loop found, and no bar was missed that was asked for, else 1.
///
/// # Errors
/// The width is none, or a file cannot be written.
pub(super) fn filters(args: &FiltersArgs) -> anyhow::Result<ExitCode> {
    let wanted = args.wanted()?;
    let kinds = if args.alone {
        &Kind::ALL[..1]
    } else {
        Kind::ALL
    };
    let report = measure(&wanted, kinds)?;
    if let Some(path) = &args.csv {
        super::write(path, &report.table())?;
    }
    self::report(args, &report, report.is_sound(), &report.missed())
}

/// The share of a percentage, as `10%` or `0.5`.
fn share(percentage: &str) -> Result<f64, UsageError> {
    let number = percentage.strip_suffix('%').unwrap_or(percentage);
    let percents = number.parse::<f64>().ok();
    let percents = percents.filter(|percents| *percents > 0.0 && *percents <= 100.0);
    percents.map(|percents| percents / 100.0).ok_or_else(|| {
        UsageError(format!(
            "--interval: `{percentage}`, and it has to be above 0 % and at most 100 %"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_a_percentage_of_something_and_not_more_than_all() {
        assert_eq!(share("10%").unwrap(), 0.1);
        assert_eq!(share("100").unwrap(), 1.0);
        for none in ["0%", "101%", "NaN", "-1", "x", ""] {
            assert!(share(none).is_err(), "{none}");
        }
    }
}
