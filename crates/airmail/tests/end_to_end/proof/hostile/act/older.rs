//! One file of the shard is replaced by an older version of itself, as by a restore that went wrong
//! or a tool that synchronises directories. Records written to it since are missing, and reported;
//! a derived file loses nothing.

use super::missing::{stamps, start_on_damage};
use crate::proof::hostile::stage::Stage;
use rand::Rng;
use rand::rngs::SmallRng;
use std::fs;

/// Takes a file's content, lets everybody go on, stops the node, and puts that content back.
pub(super) fn older(stage: &mut Stage, choices: &mut SmallRng) {
    let names = stage.victim.files();
    let name = &names[choices.random_range(0..names.len())];
    let path = stage.shard().join(name);
    // It may be gone by now: the node runs.
    let older = fs::read(&path).unwrap_or_default();
    stage.progress();
    stage.stop();
    let newer = fs::read(&path).unwrap_or_default();
    if older.is_empty() || newer.is_empty() || older == newer {
        stage.start();
        return;
    }
    let hit = stamps(&path);
    fs::write(&path, older).unwrap();
    start_on_damage(stage, hit, |_| fs::write(&path, newer).unwrap());
}
