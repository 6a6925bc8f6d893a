//! Writes the small data directory that a test opens for ever, and beside it what is in it:
//! `cargo run -p airmail-log --example write_data_vector -- vectors/data/v3`; and, beside it too,
//! the same as a crash would leave it.
//!
//! Run once for each version of the format, when that is final; never again afterwards. The version is that of
//! checkpoints; `v2-last` is of the last program that wrote version 2, whose directories have more files than
//! those of the first. `v3-lanes` has a log of lane high, too, and an identity that says so: what it is called decides.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a tool for the tests"
)]

#[path = "../tests/vector/mod.rs"]
mod vector;

use airmail_log::conformance::{Driver, End, Maker, log, spec};
use airmail_log::{Call, LogSpec, Needs};
use airmail_model::{Durability, LogId, MapEpoch, Sequence};
use std::path::Path;
use std::time::Duration;
use vector::{Directory, HIGH, SYSTEM, WEAK, describe, durability, high};

/// Place in log 0 of the deletions.
const DELETED: Sequence = Sequence(9);
/// A log that was deleted, and was not there.
const NEVER_MADE: u16 = 6;

/// Settings of a log, each of a place of its own in log 0.
fn placed(index: u16) -> LogSpec {
    LogSpec {
        as_of: Sequence(u64::from(index) + 1),
        ..spec(durability(index))
    }
}

/// Writes the logs of the vector: one with everything, a trimmed one, a sealed one, one that was
/// deleted and one that never was there before, a weaker one with a loss behind a crash, and the log of
/// namespaces, which is held in checkpoints too.
fn write(d: &mut Driver<'_, Directory>, has_lanes: bool) {
    for index in 0..5 {
        d.open_with(log(index), &placed(index));
    }
    d.open_with(LogId::SYSTEM, &spec(Durability::FSYNC));
    if has_lanes {
        d.open_with(high(), &placed(0));
    }
    for n in 0..24u64 {
        for index in 0..5 {
            let first = format!("first of batch {n} in log {index}");
            let topic = format!("topic/{}", n % 5);
            let producer = Maker::of(log(index), 100 + u64::from(index), 1).at(n * 2);
            d.store(&producer.batch(&[(&topic, &first), ("every", "second")]));
        }
        if has_lanes && n % 3 == 0 {
            let producer = Maker::of(high(), 100, 1).at(n / 3);
            d.store(&producer.batch(&[("topic/0", &format!("urgent, number {n}"))]));
        }
        if n % 4 == 0 {
            d.append(LogId::SYSTEM, &[("command", &format!("number {n}"))]);
        }
    }
    d.ask(|t| Call::Trim {
        t,
        log: log(1),
        before: Sequence(31),
    });
    d.ask(|t| Call::Seal {
        t,
        log: log(2),
        next: MapEpoch(2),
    });
    // The last was never made.
    for index in [3, NEVER_MADE] {
        d.ask(|t| Call::Delete {
            t,
            log: log(index),
            as_of: DELETED,
            origin: Box::default(),
        });
    }
    d.reopen(End::Crash);
    for index in [0, 1, WEAK] {
        d.open_with(log(index), &placed(index));
        d.append(log(index), &[("after", "the crash")]);
    }
    d.open_with(LogId::SYSTEM, &spec(Durability::FSYNC));
    d.append(LogId::SYSTEM, &[("command", "after the crash")]);
    if has_lanes {
        d.open_with(high(), &placed(0));
        d.append(high(), &[("after", "the crash")]);
    }
}

fn main() {
    let path = std::env::args_os()
        .nth(1)
        .expect("the directory to be written");
    let path = Path::new(&path);
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.expect("a name");
    assert!(!path.exists(), "{} is there already", path.display());
    let has_lanes = name.ends_with("-lanes");
    let (needs, further): (_, &[&str]) = if has_lanes {
        (Needs::Lanes, &[SYSTEM, HIGH])
    } else {
        (Needs::Nothing, &[SYSTEM])
    };
    let mut directory = Directory::needing(needs, path);
    let mut d = Driver::new(&mut directory);
    write(&mut d, has_lanes);
    // What the files are still at comes to its end: so a crash would leave it.
    for _ in 0..5 {
        d.settle();
        std::thread::sleep(Duration::from_millis(200));
    }
    let crashed = path.with_file_name(format!("{name}-crashed"));
    copy(path, &crashed);
    d.reopen(End::Clean);
    let text = describe(&mut d, further);
    d.reopen(End::Clean);
    drop(d);
    drop(directory);
    kept(path, &text);
    // What is opened is changed.
    let opened = path.with_file_name(format!("{name}-opened"));
    copy(&crashed, &opened);
    let mut directory = Directory::at(&opened);
    let text = describe(&mut Driver::new(&mut directory), further);
    drop(directory);
    std::fs::remove_dir_all(opened).expect("a directory is removed");
    kept(&crashed, &text);
}

fn kept(path: &Path, text: &str) {
    std::fs::remove_file(path.join("LOCK")).expect("the lock is of no use");
    std::fs::write(path.with_extension("txt"), text).expect("the description is written");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory is made");
    for entry in std::fs::read_dir(from).expect("the directory is read") {
        let entry = entry.expect("the directory is read");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("a file is copied");
        }
    }
}
