//! Files are gone while no node runs: all of a shard, the newest segments, or derived files.

use crate::proof::hostile::history::Event;
use crate::proof::hostile::stage::Stage;
use crate::proof::stamp::Stamp;
use airmail_testkit::node::{self, airmail};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const INDEX: &str = "idx-";
const CHECKPOINT: &str = "checkpoint-";
/// Every name begins so.
const ANY_FILE: &str = "";

/// The shard's directory is not there, as when a volume is not mounted: the node refuses to start and
/// names it; when it is back, everything is there.
pub(super) fn shard(stage: &mut Stage, choices: &mut SmallRng) {
    stage.end(choices);
    let (shard, away) = (stage.shard(), stage.root.join("shard-away"));
    fs::rename(&shard, &away).unwrap();
    let Err(refused) = stage.try_to_start() else {
        panic!("a node started although {} is not there", shard.display());
    };
    let name = shard.file_name().unwrap().to_string_lossy();
    assert!(refused.said.contains(&*name), "{refused}");
    if shard.exists() {
        fs::remove_dir(&shard).unwrap();
    }
    fs::rename(&away, &shard).unwrap();
    stage.start();
}

/// The newest segments that hold messages, and what is newer, are gone. The check says so if that is
/// messages which stand nowhere else; a node refuses, or starts and tells the loss.
pub(super) fn segments(stage: &mut Stage, choices: &mut SmallRng) {
    stage.stop();
    let mut names = stage.victim.files();
    names.retain(|name| name.starts_with("seg-"));
    let mut full = choices.random_range(1..=2);
    let mut gone = Vec::new();
    while full > 0
        && let Some(name) = names.pop()
    {
        let path = stage.shard().join(&name);
        full -= usize::from(!stamps(&path).is_empty());
        gone.push(path);
    }
    let away = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        stage.root.join(format!("away-{name}"))
    };
    let moved: Vec<(PathBuf, PathBuf)> = gone.into_iter().map(|path| (away(&path), path)).collect();
    for (away, path) in &moved {
        fs::rename(path, away).unwrap();
    }
    let lost = moved.iter().flat_map(|(away, _)| stamps(away)).collect();
    start_on_damage(stage, lost, |_| {
        for (away, path) in &moved {
            fs::rename(away, path).unwrap();
        }
    });
    for (away, _) in &moved {
        if away.exists() {
            fs::remove_file(away).unwrap();
        }
    }
}

/// Indexes, one of the two checkpoints or the file of ends are gone: nothing is lost, since all that they
/// say stands elsewhere too.
pub(super) fn derived(stage: &mut Stage, choices: &mut SmallRng) {
    stage.end(choices);
    let kind = [INDEX, CHECKPOINT, "ends"][choices.random_range(0..3)];
    let mut names = stage.victim.files();
    names.retain(|name| name.starts_with(kind));
    // There are two checkpoints so that one can be missing; commands that both know are kept nowhere else.
    let one_alone = kind == CHECKPOINT || choices.random();
    if one_alone && !names.is_empty() {
        let one = choices.random_range(0..names.len());
        let gone = names.swap_remove(one);
        let is_last = kind == CHECKPOINT && names.is_empty();
        names = if is_last { Vec::new() } else { vec![gone] };
    }
    for name in names {
        fs::remove_file(stage.shard().join(name)).unwrap();
    }
    // An index is made anew when somebody reads by it; until then the check misses it.
    if kind == INDEX {
        stage.damaged.insert(INDEX);
    }
    stage.start();
}

/// Starts a node on a directory in which messages are missing: those of `hit` may be gone, and those that
/// stand nowhere else are, which the check must see. What is in another file too may be no use there: what
/// was written once more, elsewhere, is left behind where its segment was given up. A node may refuse; then
/// `mend` puts everything back, and it must start.
pub(super) fn start_on_damage(
    stage: &mut Stage,
    hit: BTreeSet<Stamp>,
    mend: impl FnOnce(&mut Stage),
) {
    let left: BTreeSet<Stamp> = stage
        .victim
        .files()
        .iter()
        .flat_map(|name| stamps(&stage.shard().join(name)))
        .collect();
    let count = hit.difference(&left).count();
    if count > 0 {
        let check = node::run(airmail().arg("check").arg(&stage.victim.data), b"");
        assert_eq!(
            check.code,
            Some(1),
            "{count} messages are gone, and the check says: {}{}",
            check.stdout,
            check.stderr
        );
    }
    stage.damaged.insert(ANY_FILE);
    let place = stage.note(Event::Removed(hit));
    if stage.try_to_start().is_err() {
        stage.history.take_back_removal(place);
        mend(stage);
        stage.start();
    }
}

/// The messages that a file holds.
pub(super) fn stamps(path: &Path) -> BTreeSet<Stamp> {
    let bytes = fs::read(path).unwrap();
    Stamp::find_all(&bytes).map(|(_, stamp)| stamp).collect()
}
