//! Writes the small data directory that a test opens for ever, and beside it what is in it:
//! `cargo run -p airmail-log --example write_data_vector -- vectors/data/v1`.
//!
//! Run once for each version of the format, when that is final; never again afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a tool for the tests"
)]

#[path = "../tests/vector/mod.rs"]
mod vector;

use airmail_log::LogStorage;
use airmail_log::conformance::{Driver, End, Maker, log, spec};
use airmail_model::{MapEpoch, Sequence};
use std::path::Path;
use vector::{Directory, WEAK, describe, durability};

/// What the directory of version 1 holds: a log with everything, a trimmed one, a sealed one, one
/// that was deleted, a weaker one with a loss behind a crash.
fn write(d: &mut Driver<'_, Directory>) {
    for index in 0..5 {
        d.open_with(log(index), &spec(durability(index)));
    }
    for n in 0..24u64 {
        for index in 0..5 {
            let first = format!("first of batch {n} in log {index}");
            let topic = format!("topic/{}", n % 5);
            let producer = Maker::of(log(index), 100 + u64::from(index), 1).at(n * 2);
            d.store(&producer.batch(&[(&topic, &first), ("every", "second")]));
        }
    }
    d.ask(|s, t| s.trim(t, log(1), Sequence(31)));
    d.ask(|s, t| s.seal(t, log(2), MapEpoch(2)));
    d.ask(|s, t| s.delete(t, log(3)));
    d.reopen(End::Crash);
    for index in [0, 1, WEAK] {
        d.open_with(log(index), &spec(durability(index)));
        d.append(log(index), &[("after", "the crash")]);
    }
    d.reopen(End::Clean);
}

fn main() {
    let path = std::env::args_os()
        .nth(1)
        .expect("the directory to be written");
    let path = Path::new(&path);
    assert!(!path.exists(), "{} is there already", path.display());
    let mut directory = Directory::at(path);
    let mut d = Driver::new(&mut directory);
    write(&mut d);
    let text = describe(&mut d);
    d.reopen(End::Clean);
    drop(d);
    drop(directory);
    std::fs::remove_file(path.join("LOCK")).expect("the lock is of no use");
    std::fs::write(path.with_extension("txt"), text).expect("the description is written");
}
