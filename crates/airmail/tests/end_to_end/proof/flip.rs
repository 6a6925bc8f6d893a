//! One bit flipped, or one file cut short, anywhere in a data directory; then a node is started on
//! it and everything is read.
//!
//! What must hold: the node starts. It serves the published messages, to the byte, under the same
//! numbers, and all but those that the damage may cost (see `damage`). Missing messages, and no
//! others, are reported as lost. It takes new messages, and gives them new numbers. It is the same
//! after another start, and `airmail check` sees the damage where it cost something.

use super::Plan;
use super::damage::Damage;
use super::load::{self, Load};
use super::original::{LastEnd, Messages, Original};
use super::reading;
use super::stamp::Stamp;
use super::victim::Victim;
use airmail_model::LogId;
use airmail_testkit::node::{self, airmail};
use rand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The publisher of what is published after the damage.
const AFTERWARDS: u32 = u32::MAX;

#[test]
fn one_damage_costs_what_it_hit_and_is_told_exactly() {
    let plan = Plan::new("flip", 24);
    let originals = tempfile::tempdir().unwrap();
    let mut choices = plan.choices(u64::MAX);
    let originals = [LastEnd::Stopped, LastEnd::Killed].map(|end| {
        let path = originals.path().join(format!("{end:?}"));
        Original::make(&path, end, &mut choices)
    });
    let directory = tempfile::tempdir().unwrap();
    let mut costs = BTreeMap::new();
    let mut failures = Vec::new();
    for round in plan.rounds() {
        let mut choices = plan.choices(round);
        let original = &originals[choices.random_range(0..originals.len())];
        let damage = Damage::choose(original, &mut choices);
        let twice = choices.random_ratio(1, 4);
        let data = directory.path().join(round.to_string());
        original.copy(&data);
        damage.inflict(&data);
        let told = format!("round {round}: {damage} (of {})", original.path.display());
        let result = std::panic::catch_unwind(|| {
            let _watch = plan.watch(round, &data);
            round_of(original, &damage, &data, twice)
        });
        match result {
            Ok(missing) => *costs.entry(amount(missing)).or_insert(0) += 1,
            Err(_) => failures.push(told),
        }
        if data.exists() {
            std::fs::remove_dir_all(&data).unwrap();
        }
        if round % 50 == 49 {
            plan.tell(round, &format!("rounds by what was lost: {costs:?}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn amount(missing: usize) -> &'static str {
    match missing {
        0 => "nothing",
        1 => "one message",
        _ => "several",
    }
}

/// Damages a copy and reads it; gives how many messages are missing.
fn round_of(original: &Original, damage: &Damage, data: &Path, twice: bool) -> usize {
    let victim = Victim::new(data);
    let load = Load::new(&victim, original.topics.clone());
    let check = twice.then(|| node::run(airmail().arg("check").arg(data), b""));
    let first = victim.start();
    let missing = read_and_judge(original, damage, &load);
    if let Some(check) = check {
        let code = if missing.is_empty() {
            check.code
        } else {
            Some(1)
        };
        assert_eq!(check.code, code, "{check:?}");
        first.kill();
        let _second = victim.start();
        assert_eq!(read_and_judge(original, damage, &load), missing);
    }
    missing.len()
}

/// Reads every topic, judges what came, and publishes to each; gives what is missing.
fn read_and_judge(original: &Original, damage: &Damage, load: &Load) -> BTreeSet<(u32, u64)> {
    let client = load.connect();
    let mut served = Messages::new();
    let mut lost: BTreeMap<u32, Vec<std::ops::RangeInclusive<u64>>> = BTreeMap::new();
    for topic in &original.topics {
        let read = load.runtime.block_on(reading::history(&client, topic));
        lost.insert(topic.index, read.lost);
        let messages = read.messages.into_iter();
        let old = messages.filter(|(_, stamp)| stamp.publisher != AFTERWARDS);
        served.extend(old.map(|(number, stamp)| ((topic.index, number), stamp)));
    }
    for (place, stamp) in &served {
        assert_eq!(
            original.messages.get(place),
            Some(stamp),
            "{place:?} is not what it was"
        );
    }
    let all = original.messages.keys().copied();
    let missing: BTreeSet<_> = all.filter(|place| !served.contains_key(place)).collect();
    let beyond: Vec<_> = missing
        .difference(&damage.may_cost(original))
        .copied()
        .collect();
    assert!(
        beyond.is_empty(),
        "missing beyond what was hit: {beyond:?}, told {lost:?}"
    );
    judge_what_was_told(original, &missing, &lost);
    publish_afterwards(original, load, &client);
    missing
}

/// Each missing message is in a gap that its topic's readers are told; each number in a gap is a
/// missing message's.
fn judge_what_was_told(
    original: &Original,
    missing: &BTreeSet<(u32, u64)>,
    lost: &BTreeMap<u32, Vec<std::ops::RangeInclusive<u64>>>,
) {
    for (topic, number) in missing {
        let told = lost[topic].iter().any(|gap| gap.contains(number));
        assert!(
            told,
            "topic {topic}, number {number} is missing and not told: {lost:?}"
        );
    }
    let numbers: BTreeSet<(LogId, u64)> = missing
        .iter()
        .map(|(topic, number)| (original.logs[topic], *number))
        .collect();
    for (topic, gaps) in lost {
        let log = original.logs[topic];
        for number in gaps.iter().cloned().flatten() {
            let is_missing = numbers.contains(&(log, number));
            assert!(
                is_missing,
                "{number} of {log} is told as lost, and is not: {gaps:?}"
            );
        }
    }
}

/// A message to each topic: taken, and under a number that was not used before.
fn publish_afterwards(original: &Original, load: &Load, client: &airmail_client::Client) {
    for topic in &original.topics {
        let stamp = Stamp {
            publisher: AFTERWARDS,
            topic: topic.index,
            number: 0,
            bytes: 64,
        };
        let log = original.logs[&topic.index];
        let of_log = original
            .messages
            .keys()
            .filter(|(other, _)| original.logs[other] == log);
        let last = of_log.map(|(_, number)| *number).max().unwrap();
        let publisher = client.publisher().namespace(topic.namespace);
        let published = load.runtime.block_on(async {
            let ack = publisher.send(load::message(topic, stamp)).await.unwrap();
            ack.await.unwrap()
        });
        let number = published.sequence.0;
        assert!(
            number > last,
            "number {number} of {log} was given twice: {last} was in use"
        );
    }
}
