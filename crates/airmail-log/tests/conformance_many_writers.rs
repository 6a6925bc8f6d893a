//! The conformance suite on logs that many write to; and what several handles of them tell each other.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the whole binary is a test")]

use airmail_log::conformance::{End, Maker, Subject, log, spec};
use airmail_log::many_writers::{LogsHandle, SharedLogs, SharedSettings};
use airmail_log::{Call, Completion, GapWhy, LogStorage, ReaderId, Refusal, Scope, Tag};
use airmail_model::{Durability, Extent, Mono, Now, Sequence, Wall};

/// Logs and the last handle of them, which outlives no process but its own.
struct Shared {
    settings: SharedSettings,
    logs: SharedLogs,
}

impl Shared {
    fn new(settings: SharedSettings) -> Shared {
        Shared {
            settings,
            logs: SharedLogs::new(settings),
        }
    }
}

impl Subject for Shared {
    type Storage = LogsHandle;

    fn fresh(&mut self, _: Now) -> LogsHandle {
        self.logs = SharedLogs::new(self.settings);
        self.logs.handle()
    }

    fn reopen(&mut self, _: LogsHandle, _: End, _: Now) -> LogsHandle {
        self.logs.handle()
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        false
    }

    fn wait(&mut self) {}
}

airmail_log::conformance!(Shared::new(SharedSettings::default()));

mod provisioned {
    use super::*;

    airmail_log::conformance!(Shared::new(SharedSettings {
        provisions: true,
        ..SharedSettings::default()
    }));
}

/// Polls at this time, in seconds.
fn poll(handle: &mut LogsHandle, second: u64) -> Vec<Completion> {
    let now = Now {
        mono: Mono(second * 1_000_000_000),
        wall: Wall(second as i64 * 1_000_000),
    };
    let mut out = Vec::new();
    handle.poll(now, &mut out);
    out
}

fn open(handle: &mut LogsHandle) {
    let (t, log) = (Tag(0), log(0));
    let spec = Box::new(spec(Durability::FSYNC));
    handle.submit(Call::Open { t, log, spec });
    assert!(matches!(poll(handle, 1)[..], [Completion::Opened { .. }]));
}

fn append(handle: &mut LogsHandle, maker: Maker, records: usize) -> Completion {
    let batch = maker.batch(&vec![("a", "x"); records]);
    handle.submit(Call::Append {
        t: Tag(1),
        log: log(0),
        map: batch.map_epoch(),
        batch,
        sole: false,
    });
    poll(handle, 2).remove(0)
}

fn extent(answer: &Completion) -> Extent {
    match answer {
        Completion::Appended { extent, .. } => *extent,
        other => panic!("an append was answered with {other:?}"),
    }
}

fn refused(answer: Completion) -> Refusal {
    match answer {
        Completion::Refused { why, .. } => why,
        other => panic!("an append was answered with {other:?}"),
    }
}

/// The numbers that a reader of everything is given, and those it is told as unused.
fn read(handle: &mut LogsHandle) -> (Vec<u64>, u64) {
    let r = ReaderId(9);
    handle.submit(Call::Read {
        r,
        log: log(0),
        from: Sequence::FIRST,
        scope: Box::new(Scope::default()),
        credit: u32::MAX,
    });
    let (mut given, mut unused) = (Vec::new(), 0);
    for completion in poll(handle, 3) {
        match completion {
            Completion::Batch { stored, .. } => {
                let numbers = stored.batch.iter();
                given.extend(numbers.map(|one| stored.base.plus(one.index.into()).0));
            }
            Completion::Gap { extent, why, .. } => {
                assert_eq!(why, GapWhy::Unused);
                unused += extent.numbers();
            }
            _ => {}
        }
    }
    handle.submit(Call::Stop { r });
    poll(handle, 3);
    (given, unused)
}

#[test]
fn a_retry_by_another_writer_is_stored_again_and_left_out_when_read() {
    let logs = SharedLogs::new(SharedSettings::default());
    let (mut one, mut other) = (logs.handle(), logs.handle());
    open(&mut one);
    open(&mut other);
    let maker = Maker::of(log(0), 5, 1);
    let first = extent(&append(&mut one, maker, 2));
    let again = extent(&append(&mut other, maker, 2));
    // Old in part: the first record of two.
    let part = extent(&append(&mut other, maker.at(1), 2));
    assert!(first.last < again.first && again.last < part.first);
    let (given, unused) = read(&mut one);
    assert_eq!(given, [first.first.0, first.last.0, part.last.0]);
    assert_eq!(unused + 3, part.last.0);
    assert_eq!(read(&mut other), (given, unused));
}

#[test]
fn what_stands_behind_a_hole_is_given_and_what_fills_it_later_is_not() {
    let logs = SharedLogs::new(SharedSettings::default());
    let mut one = logs.handle();
    open(&mut one);
    let maker = Maker::of(log(0), 5, 1);
    let behind = extent(&append(&mut one, maker.at(3), 1));
    append(&mut one, maker.at(0), 1);
    let newer = extent(&append(&mut one, Maker::of(log(0), 5, 2), 1));
    append(&mut one, maker.at(4), 1);
    let (given, _) = read(&mut one);
    assert_eq!(given, [behind.first.0, newer.first.0]);
}

#[test]
fn a_handle_stores_nothing_behind_what_it_has_refused() {
    let logs = SharedLogs::new(SharedSettings {
        busy: 1_000_000,
        ..SharedSettings::default()
    });
    let mut one = logs.handle();
    open(&mut one);
    let maker = Maker::of(log(0), 5, 1);
    let why = refused(append(&mut one, maker.at(4), 1));
    assert!(matches!(why, Refusal::Busy { .. }), "{why:?}");
    logs.calm();
    let why = refused(append(&mut one, maker.at(5), 1));
    assert!(matches!(why, Refusal::OutOfOrder { .. }), "{why:?}");
    extent(&append(&mut one, maker.at(4), 1));
    extent(&append(&mut one, maker.at(5), 1));
}

#[test]
fn a_handle_stores_nothing_more_of_an_epoch_with_an_unknown_outcome() {
    let logs = SharedLogs::new(SharedSettings {
        unknown: 1_000_000,
        ..SharedSettings::default()
    });
    let (mut one, mut other) = (logs.handle(), logs.handle());
    open(&mut one);
    open(&mut other);
    let maker = Maker::of(log(0), 5, 1);
    let why = refused(append(&mut one, maker, 1));
    assert_eq!(why, Refusal::OutcomeUnknown);
    logs.calm();
    for sequence in [0, 1] {
        let why = refused(append(&mut one, maker.at(sequence), 1));
        assert_eq!(why, Refusal::UnknownProducer);
    }
    extent(&append(&mut one, Maker::of(log(0), 5, 2), 1));
    extent(&append(&mut other, Maker::of(log(0), 6, 1), 1));
}

#[test]
fn a_new_life_begun_by_one_handle_is_told_to_the_others() {
    let logs = SharedLogs::new(SharedSettings::default());
    let (mut one, mut other) = (logs.handle(), logs.handle());
    open(&mut one);
    open(&mut other);
    let (t, log) = (Tag(1), log(0));
    one.submit(Call::Renew { t, log });
    let renewed = poll(&mut one, 2);
    let [Completion::Opened { bounds, .. }] = renewed[..] else {
        panic!("{renewed:?}");
    };
    assert_eq!(poll(&mut other, 2), [Completion::Gained { log, bounds }]);
    assert_eq!(poll(&mut other, 2), []);
}
