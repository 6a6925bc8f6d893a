//! Translation of the command line's options into the collector's settings.

use super::CollectArgs;
use crate::cli::UsageError;
use airmail_collect::shell::{Begin, Origin, Route, Settings};
use airmail_collect::{Bounds, Order};
use airmail_partition::Policy;
use std::fmt::Display;
use std::time::Duration;

/// Bytes of a batch; the adaptive policy stays with a partition until it is full.
const BATCH_BYTES: u32 = 64 << 10;

/// Reads and checks all of it.
///
/// # Errors
/// Wrong usage, with the flag and what it takes.
pub(super) fn settings(args: &CollectArgs, seed: u64) -> Result<Settings, UsageError> {
    let policy: Policy = args
        .policy
        .parse()
        .map_err(|error| wrong("--policy", error))?;
    let order: Order = args
        .order
        .parse()
        .map_err(|error| wrong("--order", error))?;
    let mut partitioning = airmail_partition::Settings::new(policy, seed);
    partitioning.ignore_keys = args.ignore_keys;
    partitioning.sticky_bytes = BATCH_BYTES;
    partitioning.sticky = partitioning.sticky.max(args.linger);
    bounded(
        "--linger",
        args.linger,
        Duration::ZERO,
        Duration::from_secs(60),
    )?;
    bounded(
        "--session",
        args.session,
        Duration::from_secs(6),
        Duration::from_secs(1_800),
    )?;
    bounded(
        "--hand-over",
        args.hand_over,
        Duration::ZERO,
        Duration::from_secs(120),
    )?;
    bounded(
        "--commit-every",
        args.commit_every,
        Duration::ZERO,
        Duration::from_secs(60),
    )?;
    if args.outstanding == 0 || args.outstanding > 10_000_000 {
        return Err(wrong("--outstanding", "1 to 10000000 records"));
    }
    partitioning
        .validate()
        .map_err(|error| UsageError(error.to_string()))?;
    Ok(Settings {
        origin: origin(args)?,
        target: brokers("--target", &args.target)?,
        routes: routes(&args.topics)?,
        name: args.name.clone(),
        group: args.group.clone(),
        begin: match &*args.from {
            "earliest" => Begin::Earliest,
            "latest" => Begin::Latest,
            _ => return Err(wrong("--from", "earliest or latest")),
        },
        order,
        partitioning,
        bounds: Bounds {
            records: args.outstanding,
            bytes: args.outstanding_bytes.0.max(1),
        },
        commit_every: args.commit_every,
        hand_over: args.hand_over,
        session: args.session,
        linger: args.linger,
        batch_bytes: BATCH_BYTES,
        source_properties: properties("--source-property", &args.source_property)?,
        target_properties: properties("--target-property", &args.target_property)?,
    })
}

fn wrong(flag: &str, what: impl Display) -> UsageError {
    UsageError(format!("{flag}: {what}"))
}

fn bounded(flag: &str, time: Duration, min: Duration, max: Duration) -> Result<(), UsageError> {
    if (min..=max).contains(&time) {
        return Ok(());
    }
    let (time, min) = (
        humantime::format_duration(time),
        humantime::format_duration(min),
    );
    let max = humantime::format_duration(max);
    Err(wrong(flag, format_args!("{time}: from {min} to {max}")))
}

fn origin(args: &CollectArgs) -> Result<Origin, UsageError> {
    if args.source.starts_with("airmail://") {
        airmail_client::parse_url(&args.source).map_err(|error| wrong("--source", error))?;
        return Ok(Origin::Airmail {
            url: args.source.clone(),
            namespace: args.namespace.clone(),
        });
    }
    let brokers = brokers("--source", &args.source)?;
    Ok(Origin::Kafka { brokers })
}

fn brokers(flag: &str, url: &str) -> Result<String, UsageError> {
    let brokers = url.strip_prefix("kafka://").unwrap_or_default();
    let is_address = |address: &str| {
        let port = address
            .rsplit_once(':')
            .map(|(_, port)| port.parse::<u16>());
        matches!(port, Some(Ok(_)))
    };
    if brokers.split(',').all(is_address) {
        return Ok(brokers.to_owned());
    }
    Err(wrong(
        flag,
        format_args!("{url}: kafka://HOST:PORT[,HOST:PORT…]"),
    ))
}

fn routes(topics: &[String]) -> Result<Vec<Route>, UsageError> {
    let mut routes: Vec<Route> = Vec::new();
    for topic in topics {
        let (from, to) = topic.split_once('=').unwrap_or((topic, topic));
        if from.is_empty() || to.is_empty() {
            return Err(wrong(
                "--topic",
                format_args!("{topic:?}: TOPIC or TOPIC=TARGET"),
            ));
        }
        if routes.iter().any(|route| route.from == from) {
            return Err(wrong("--topic", format_args!("{from} is given twice")));
        }
        let (from, to) = (from.to_owned(), to.to_owned());
        routes.push(Route { from, to });
    }
    Ok(routes)
}

fn properties(flag: &str, given: &[String]) -> Result<Vec<(String, String)>, UsageError> {
    let pair = |text: &String| {
        let pair = text.split_once('=');
        let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| wrong(flag, format_args!("{text}: NAME=VALUE")))
    };
    given.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn read(arguments: &[&str]) -> Result<Settings, UsageError> {
        let given = [
            "airmail",
            "collect",
            "--target",
            "kafka://main:9092",
            "--topic",
            "A=B",
        ];
        let cli = Cli::try_parse_from(given.iter().chain(arguments)).unwrap();
        match cli.command {
            Command::Collect(args) => settings(&args, 1),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_url_says_what_is_collected_from() {
        let settings = read(&["--source", "kafka://a:1,b:2", "--topic", "C"]).unwrap();
        let brokers = "a:1,b:2".to_owned();
        assert_eq!(settings.origin, Origin::Kafka { brokers });
        assert_eq!(settings.target, "main:9092");
        let routes = settings
            .routes
            .iter()
            .map(|route| (&*route.from, &*route.to));
        assert_eq!(routes.collect::<Vec<_>>(), [("A", "B"), ("C", "C")]);
        let settings = read(&["--source", "airmail://n:7400", "--namespace", "logs"]).unwrap();
        let (url, namespace) = ("airmail://n:7400".to_owned(), "logs".to_owned());
        assert_eq!(settings.origin, Origin::Airmail { url, namespace });
    }

    #[test]
    fn what_cannot_be_is_told_with_its_flag() {
        for (arguments, flag) in [
            (&["--source", "http://a:1"][..], "--source"),
            (&["--source", "kafka://a"], "--source"),
            (&["--source", "kafka://a:1", "--policy", "best"], "--policy"),
            (&["--source", "kafka://a:1", "--order", "some"], "--order"),
            (&["--source", "kafka://a:1", "--from", "1h"], "--from"),
            (&["--source", "kafka://a:1", "--topic", "A"], "--topic"),
            (&["--source", "kafka://a:1", "--topic", "=A"], "--topic"),
            (&["--source", "kafka://a:1", "--session", "1s"], "--session"),
            (
                &["--source", "kafka://a:1", "--outstanding", "0"],
                "--outstanding",
            ),
            (
                &["--source", "kafka://a:1", "--source-property", "x"],
                "--source-property",
            ),
        ] {
            let refused = read(arguments).unwrap_err().to_string();
            assert!(refused.starts_with(flag), "{refused}");
        }
    }
}
