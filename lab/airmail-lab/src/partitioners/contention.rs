//! Many threads on one producer: their waits, and whether any of them is for a lock of ours.
//!
//! The Java machine's flight recorder reports every wait for a monitor and every thread that is
//! parked, however short, with the methods below which it was.

use super::bench::Bench;
use super::cluster::{LONG_SESSION_MS, Resource};
use super::policy::Policy;
use super::scene::Topic;
use super::{Given, PartitionersArgs};
use crate::narration::say;
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

/// Records of each thread.
const RECORDS: u64 = 20_000;
const RECORDS_QUICK: u64 = 5_000;

/// The program's report.
#[derive(Clone, Debug, Deserialize)]
struct Told {
    /// Waits below a method of ours.
    ours: u64,
    ours_ms: f64,
    waits: Vec<Wait>,
}

/// Waits for one class from one place.
#[derive(Clone, Debug, Deserialize)]
struct Wait {
    lock: String,
    at: String,
    count: u64,
    ms: f64,
}

impl Told {
    /// All waits of sending threads, with their sum in milliseconds.
    fn all(&self) -> (u64, f64) {
        let counts = self.waits.iter().map(|wait| wait.count);
        (counts.sum(), self.waits.iter().map(|wait| wait.ms).sum())
    }

    fn longest(&self) -> Option<&Wait> {
        let waits = self.waits.iter();
        waits.max_by(|one, other| one.ms.total_cmp(&other.ms))
    }
}

pub(super) fn run(given: Given<'_>, findings: &mut Findings) -> anyhow::Result<bool> {
    let args = given.args;
    let mut bench = Bench::start(given, 2, (Resource::Shared, LONG_SESSION_MS))?;
    let found = given.times.each(args.policies(), |policy| {
        let told = watch(given, &mut bench, policy)?;
        let (all, ms) = told.all();
        say(&format!(
            "{} threads, {}: {} waits of ours; {all} in all, {ms:.0} ms",
            args.threads,
            policy.name(),
            told.ours
        ));
        Ok((policy, told))
    })?;
    let line = |(policy, told): &(Policy, Told)| -> Row {
        row! {
            "part": "contention",
            "policy": policy.name(),
            "threads": args.threads,
            "ours": told.ours,
            "ours_ms": told.ours_ms,
            "waits": told.all().0,
            "waits_ms": told.all().1,
        }
    };
    findings.rows.extend(found.iter().map(line));
    findings.sections.push(section(args, &found));
    Ok(found.iter().all(|(_, told)| told.ours == 0))
}

fn watch(given: Given<'_>, bench: &mut Bench<'_>, policy: Policy) -> anyhow::Result<Told> {
    let Given { args, jars, times } = given;
    let topic = bench.new_topic();
    bench.desk.create(&topic, &Topic::U2.replicas())?;
    let mut properties: serde_json::Map<String, Value> = policy
        .properties()
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let bootstrap = bench.cluster.bootstrap.clone();
    properties.insert("bootstrap.servers".to_owned(), bootstrap.into());
    let records = if args.common.quick {
        RECORDS_QUICK
    } else {
        RECORDS
    };
    let task = json!({
        "topic": topic,
        "threads": args.threads,
        "records": records,
        "size": args.size,
        "properties": properties,
    });
    let mut program = jars.start("Contention", &[], bench.scratch(), &times.stop)?;
    program.tell(&task.to_string())?;
    let told = program.hear("sent").context("the watched producer")?;
    bench.desk.delete(&topic)?;
    Ok(serde_json::from_str(&told)?)
}

fn section(args: &PartitionersArgs, found: &[(Policy, Told)]) -> Section {
    let line = |(policy, told): &(Policy, Told)| {
        let (all, ms) = told.all();
        let longest = told.longest();
        let longest = longest.map(|wait| {
            let Wait { lock, at, ms, .. } = wait;
            format!("{lock} in {at}, {ms:.0} ms")
        });
        vec![
            policy.title().to_owned(),
            format!("{}, {:.1} ms", told.ours, told.ours_ms),
            format!("{all}, {ms:.0} ms"),
            longest.unwrap_or_default(),
        ]
    };
    Section {
        title: format!("{} threads on one producer", args.threads),
        text: vec![
            "Every wait for a monitor and every parked thread while records were sent, as the Java \
             machine's flight recorder tells it, however short. Ours are those below a method of a \
             partitioner or its interceptor."
                .to_owned(),
        ],
        table: Table::new(
            ["policy", "waits of ours", "waits in all", "most time"],
            found.iter().map(line),
        ),
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_added_up_and_the_longest_is_told() {
        let told: Told = serde_json::from_str(
            r#"{"ours": 0, "ours_ms": 0.0, "waits": [
                {"lock": "ArrayDeque", "at": "append", "count": 3, "ms": 1.5},
                {"lock": "Other", "at": "send", "count": 1, "ms": 2.5}]}"#,
        )
        .unwrap();
        assert_eq!(told.all(), (4, 4.0));
        assert_eq!(told.longest().unwrap().lock, "Other");
    }
}
