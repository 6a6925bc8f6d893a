//! Hostile acts in random combinations: the harm that failed backups, other people's programs and
//! tired operators do to a node, several to one directory, while publishers and readers are left
//! running.
//!
//! A round is one directory. Its acts ([`act::Act`]) are drawn by the seed, three to eight; each
//! states the effects that it expects at once. Every request, answer and delivery is written down
//! ([`history`]). In the end the node is stopped and started in order, all clients come back and
//! catch up, and the [`judge`] looks at the whole: nothing acknowledged is lost, doubled or
//! reordered; a loss that an act may cause is reported to each reader that misses it; and after it
//! everything goes on.
//!
//! `AIRMAIL_PROVE_ACTS=kill,restore` draws from these acts alone; the names are in [`act`].

mod act;
mod clock;
mod history;
mod judge;
mod publishing;
mod readers;
mod stage;

use super::Plan;
use super::load::Topic;
use super::stamp::Stamp;
use act::Act;
use airmail_client::{Client, Item};
use airmail_testkit::node::{self, airmail};
use airmail_testkit::scale;
use history::{Hole, Place};
use judge::Kept;
use rand::rngs::SmallRng;
use stage::Stage;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Rounds in continuous integration.
const SAMPLE: u64 = 4;
/// Failures after which nobody looks at more.
const ENOUGH: usize = 10;
/// Interval at which readers are looked at until they have everything, and the number of looks: two
/// minutes.
const LOOK: Duration = Duration::from_millis(50);
const COMPLETE_LOOKS: u32 = 2_400;
/// Longest time for reading the whole of a topic.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

#[test]
fn unkindness_in_any_combination_loses_nothing_silently() {
    let plan = Plan::new("hostile", SAMPLE);
    let directory = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    for round in plan.rounds() {
        let mut choices = plan.choices(round);
        let acts = Act::draw(&mut choices);
        let names: Vec<&str> = acts.iter().map(|act| act.name()).collect();
        let names = names.join(", ");
        let root = directory.path().join(round.to_string());
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let _watch = plan.watch(round, &root);
            round_of(&root, &acts, &mut choices)
        }));
        match result {
            Ok(messages) => plan.tell(round, &format!("{names}: {messages} messages")),
            Err(_) => failures.push(format!("round {round}: {names}")),
        }
        if root.exists() {
            std::fs::remove_dir_all(&root).unwrap();
        }
        if failures.len() >= ENOUGH {
            break;
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Says what was being done when a round failed.
struct Doing(&'static str);

impl Drop for Doing {
    fn drop(&mut self) {
        if thread::panicking() {
            scale::say(&format!("prove hostile: while doing: {}\n", self.0));
        }
    }
}

/// One round; gives how many messages are kept in the end.
fn round_of(root: &Path, acts: &[Act], choices: &mut SmallRng) -> usize {
    let mut stage = Stage::new(root, choices);
    for act in acts {
        let _doing = Doing(act.name());
        act.perform(&mut stage, choices);
        stage.progress();
    }
    let _doing = Doing("the end");
    stage.stop_publishing();
    stage.stop();
    stage.start();
    let kept = read_all(&stage);
    stage.readers.all_come_back();
    everybody_has_everything(&stage, &kept);
    stage.readers.end();
    stage.stop();
    check(&stage);
    let wrong = judge::judge(&stage.history.events(), &kept);
    let shown = wrong
        .iter()
        .take(20)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{count} things are wrong, the first:\n{shown}"
    );
    kept.values().map(|kept| kept.messages.len()).sum()
}

/// Checks that `airmail check` finds no damage but that which acts have done.
fn check(stage: &Stage) {
    let done = node::run(airmail().arg("check").arg(&stage.victim.data), b"");
    assert!(matches!(done.code, Some(0 | 1)), "{done:#?}");
    let found = done.stdout.lines();
    let found = found.filter_map(|line| line.strip_prefix("damage: "));
    // Of several shards each is named before its files.
    let found = found.map(|file| match file.split_once('/') {
        Some((shard, file)) if shard.starts_with("shard-") => file,
        _ => file,
    });
    let mut new = found.filter(|file| !stage.damaged.iter().any(|known| file.starts_with(known)));
    assert_eq!(new.next(), None, "{done:#?}");
}

/// Waits until no reader lacks anything that it was not told; lists what each still lacks if that does not come
/// within minutes.
fn everybody_has_everything(stage: &Stage, kept: &BTreeMap<u32, Kept>) {
    let mut lacks = Vec::new();
    for _ in 0..COMPLETE_LOOKS {
        stage.history.progress();
        lacks = judge::incomplete(&stage.history.events(), kept);
        if lacks.is_empty() {
            return;
        }
        thread::sleep(LOOK);
    }
    panic!(
        "in minutes, and with nothing more published: {}",
        lacks.join("\n")
    );
}

/// Contents of each topic, by its whole history.
fn read_all(stage: &Stage) -> BTreeMap<u32, Kept> {
    stage.run(async {
        let client = stage.victim.client().connect().await.unwrap();
        let mut all = BTreeMap::new();
        for topic in stage.topics.iter() {
            let read = tokio::time::timeout(READ_TIMEOUT, read(&client, topic)).await;
            let read =
                read.unwrap_or_else(|_| panic!("{topic:?} was not read in {READ_TIMEOUT:?}"));
            all.insert(topic.index, read);
        }
        client.close().await.unwrap();
        all
    })
}

async fn read(client: &Client, topic: &Topic) -> Kept {
    let mut kept = Kept::default();
    let request = client.history(&topic.name).namespace(topic.namespace);
    let mut history = request.open().unwrap();
    loop {
        let item = history.next().await;
        match item.unwrap_or_else(|error| panic!("the history of {topic:?}: {error}")) {
            None => return kept,
            Some(Item::Gap(gap)) => kept.gaps.push(Hole {
                first: gap.first.0,
                last: gap.last.0,
                reason: gap.reason,
            }),
            Some(Item::Expired(gone)) => panic!("nothing expires: {gone:?}"),
            Some(Item::Message(message)) => {
                let place = Place {
                    life: message.position().logs[0].incarnation.0,
                    number: message.sequence.0,
                };
                let stamp = Stamp::read(&message.payload);
                let stamp = stamp.filter(|stamp| stamp.topic == topic.index);
                let stamp = stamp.unwrap_or_else(|| panic!("never published: {place:?}"));
                kept.messages.push((place, stamp));
            }
        }
    }
}
