//! Acts on the lock, the identity and the directory itself: taken away or exchanged.

use crate::proof::hostile::history::Event;
use crate::proof::hostile::stage::Stage;
use airmail_log::disk::Identity;
use airmail_model::{NodeId, StorageName, Wall};
use airmail_testkit::node::{self, Node};
use airmail_testkit::scale;
use rand::Rng;
use rand::rngs::SmallRng;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

const IDENTITIES: [&str; 2] = ["identity", "identity.copy"];

/// While no node runs, one of the identities or both become another directory's. A node starts, and then
/// nothing is lost; or it refuses and names it, and starts when all is as it was.
pub(super) fn anothers(stage: &mut Stage, choices: &mut SmallRng) {
    stage.end(choices);
    let another = Identity {
        cluster: choices.random(),
        node: NodeId(choices.random()),
        shards: scale::shards(),
        created: Wall(1_700_000_000_000_000),
        storage: StorageName::FIRST,
        needs: airmail_log::Needs::Nothing,
    };
    let which = choices.random_range(0..3);
    let paths = IDENTITIES.map(|name| stage.victim.data.join(name));
    let before = paths.clone().map(|path| fs::read(path).unwrap());
    for (path, _) in paths.iter().zip(0..).filter(|(_, place)| which != *place) {
        fs::write(path, another.to_string()).unwrap();
    }
    if let Err(refused) = stage.try_to_start() {
        let names_it = ["identity", "belongs to"]
            .iter()
            .any(|word| refused.said.contains(word));
        assert!(names_it, "{refused}");
        for (path, before) in paths.iter().zip(before) {
            fs::write(path, before).unwrap();
        }
        stage.start();
    }
}

/// While the node runs, LOCK is removed or another file takes its place, or the identities go too. A
/// second node is refused, and the first goes on, if need be after a start when all is back.
pub(super) fn lock(stage: &mut Stage, choices: &mut SmallRng) {
    let lock = stage.victim.data.join("LOCK");
    if lock.exists() {
        fs::remove_file(&lock).unwrap();
    }
    if choices.random() {
        fs::write(&lock, "").unwrap();
    }
    let gone = &IDENTITIES[..choices.random_range(0..=IDENTITIES.len())];
    let away = |name: &str| -> (PathBuf, PathBuf) {
        (
            stage.victim.data.join(name),
            stage.root.join(format!("away-{name}")),
        )
    };
    let moved: Vec<(PathBuf, PathBuf)> = gone.iter().map(|name| away(name)).collect();
    if !moved.is_empty() {
        stage.note(Event::Taken);
    }
    for (path, away) in &moved {
        fs::rename(path, away).unwrap();
    }
    thread::sleep(Duration::from_millis(choices.random_range(0..1500)));
    second_node_is_refused(stage);
    for (path, away) in &moved {
        fs::rename(away, path).unwrap();
    }
    if moved.is_empty() {
        stage.progress();
    } else {
        stage.goes_on_or_is_started_anew(choices);
        stage.note(Event::Back);
    }
}

fn second_node_is_refused(stage: &Stage) {
    match Node::attempt(node::serve(&stage.victim.data)) {
        Ok(_) => panic!("a second node started on a directory that is in use"),
        Err(refused) => {
            let data = stage.victim.data.display().to_string();
            assert!(refused.said.contains(&data), "{refused}");
            assert_eq!(refused.status.code(), Some(1), "{refused}");
        }
    }
}

/// While the node runs, its directory is elsewhere for a while, perhaps with an empty one in its place,
/// and then back: nothing that was acknowledged meanwhile is lost, and the node goes on, if need be after
/// a start.
pub(super) fn renamed(stage: &mut Stage, choices: &mut SmallRng) {
    let (data, away) = (stage.victim.data.clone(), stage.root.join("elsewhere"));
    stage.note(Event::Taken);
    fs::rename(&data, &away).unwrap();
    let replaced = choices.random();
    if replaced {
        fs::create_dir(&data).unwrap();
    }
    thread::sleep(Duration::from_millis(choices.random_range(50..2500)));
    if data.exists() {
        fs::remove_dir_all(&data).unwrap();
    }
    fs::rename(&away, &data).unwrap();
    stage.goes_on_or_is_started_anew(choices);
    stage.note(Event::Back);
}
