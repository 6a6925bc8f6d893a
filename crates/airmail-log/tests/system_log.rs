//! Log 0 is held twice: whichever file is lost, all of it is still read.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

use airmail_log::conformance::{Driver, End, Maker, log, spec};
use airmail_log::files::Files;
use airmail_log::journal::JournalConfig;
use airmail_log::memory::MemoryFiles;
use airmail_model::{Durability, LogId};
use subjects::{OnKept, tiny};

const BATCHES: u64 = 30;

/// The files that a node leaves when it ends in this way: commands, with many batches of another
/// log around them.
fn written(end: End) -> MemoryFiles {
    let mut subject = OnKept::new(tiny(JournalConfig::default()));
    let files = subject.files.clone();
    let mut d = Driver::new(&mut subject);
    d.open_with(LogId::SYSTEM, &spec(Durability::FSYNC));
    d.open(log(0));
    for n in 0..BATCHES {
        let command = Maker::new(LogId::SYSTEM).batch(&[("command", &n.to_string())]);
        d.store(&command);
        for _ in 0..5 {
            d.append(log(0), &[("a", &"x".repeat(500))]);
        }
    }
    d.settle();
    d.reopen(end);
    d.settle();
    drop(d);
    files.0.lock().clone()
}

/// Every command, in order, from files of which one was changed.
fn assert_all(files: MemoryFiles, what: &str) {
    let mut subject = OnKept::new(tiny(JournalConfig::default()));
    let kept = subject.files.clone();
    let mut d = Driver::new(&mut subject);
    *kept.0.lock() = files;
    d.reopen(End::Crash);
    d.open_with(LogId::SYSTEM, &spec(Durability::FSYNC));
    let reader = d.read_all(LogId::SYSTEM, 1);
    let got = d.records(reader).into_iter().map(|(_, _, payload)| payload);
    let wanted = (0..BATCHES).map(|n| n.to_string().into_bytes());
    assert_eq!(
        got.collect::<Vec<_>>(),
        wanted.collect::<Vec<_>>(),
        "{what}"
    );
}

fn each_file(end: End, change: impl Fn(&[u8]) -> Vec<u8>, what: &str) {
    let mut files = written(end);
    let names = files.list().unwrap();
    assert!(names.len() > 5);
    for (name, _) in names {
        let mut changed = files.clone();
        let contents = changed.contents(&name).unwrap();
        changed.put(&name, &change(&contents));
        assert_all(changed, &format!("{name} {what}, {end:?}"));
    }
}

#[test]
fn a_file_of_zeros_loses_nothing_of_log_0() {
    for end in [End::Clean, End::Crash] {
        each_file(end, |contents| vec![0; contents.len()], "is zeros");
    }
}

#[test]
fn a_file_cut_in_half_loses_nothing_of_log_0() {
    for end in [End::Clean, End::Crash] {
        let half = |contents: &[u8]| contents[..contents.len() / 2].to_vec();
        each_file(end, half, "is cut in half");
    }
}
