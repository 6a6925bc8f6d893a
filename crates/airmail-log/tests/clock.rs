//! A wall clock that jumps: it removes nothing that the true time would keep.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

use airmail_log::conformance::{Driver, End, Maker, log, run, spec};
use airmail_log::files::{FileOp, FileToken, Files};
use airmail_log::journal::JournalConfig;
use airmail_log::{Call, ClockState, Completion, LogSpec, LogStorage};
use airmail_model::{Durability, Retention, Sequence};
use std::time::Duration;
use subjects::{OnKept, tiny};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

type Bench<'a> = Driver<'a, OnKept>;

/// A log that keeps what it has for three hours.
fn open(d: &mut Bench<'_>) {
    let retention = Retention {
        time_ms: Some(3 * 3_600_000),
        bytes: None,
    };
    let durability = Durability::FSYNC;
    d.open_with(
        log(0),
        &LogSpec {
            retention,
            ..spec(durability)
        },
    );
}

fn append(d: &mut Bench<'_>, count: u64) {
    for _ in 0..count {
        d.append(log(0), &[("a", "x")]);
    }
}

fn first(d: &mut Bench<'_>) -> u64 {
    d.bounds(log(0)).first.0
}

fn pass(d: &mut Bench<'_>, time: Duration) {
    let mut left = time;
    while left > Duration::ZERO {
        let step = left.min(MINUTE);
        d.sleep(step);
        left -= step;
    }
}

/// The journal's clock state; believed first, if `accept`.
fn clock(d: &mut Bench<'_>, accept: bool) -> ClockState {
    let now = d.now();
    if accept {
        d.storage().accept_clock(now);
    }
    let state = d.storage().clock();
    let answer = d.ask(|t| Call::Bounds { t, log: log(0) });
    assert!(matches!(answer, Completion::Bounds { .. }), "{answer:?}");
    state
}

fn with(test: impl FnOnce(&mut Bench<'_>)) {
    run(&mut OnKept::new(tiny(JournalConfig::default())), |d| {
        open(d);
        test(d);
    });
}

#[test]
fn a_jump_ahead_takes_nothing_before_the_clock_has_agreed_with_it_for_as_long() {
    with(|d| {
        append(d, 5);
        d.turn_ahead(10 * HOUR);
        pass(d, 2 * HOUR + 50 * MINUTE);
        assert_eq!(first(d), 1, "by the true time they are to be kept");
        pass(d, 20 * MINUTE);
        assert_eq!(first(d), 6, "and by that they go");
        append(d, 1);
        pass(d, 2 * HOUR);
        append(d, 1);
        pass(d, 2 * HOUR);
        // These have a time ten hours ahead, and the trusted one is not there.
        assert_eq!(first(d), 6);
        pass(d, 3 * HOUR);
        assert_eq!(clock(d, false).held, None, "ten hours are over");
        assert_eq!(first(d), 8);
    });
}

#[test]
fn a_jump_that_goes_back_has_taken_nothing_and_new_times_do_not_run_backwards() {
    with(|d| {
        append(d, 2);
        d.turn_ahead(DAY);
        pass(d, HOUR);
        append(d, 1);
        d.turn_back(DAY);
        pass(d, MINUTE);
        assert_eq!(clock(d, false).held, None);
        append(d, 2);
        pass(d, MINUTE);
        let bounds = d.bounds(log(0));
        assert_eq!((bounds.first, bounds.next), (Sequence(1), Sequence(6)));
        pass(d, 3 * HOUR);
        assert_eq!(
            first(d),
            3,
            "what has a time a day ahead is kept for longer"
        );
        pass(d, DAY);
        assert_eq!(first(d), 6);
    });
}

#[test]
fn who_says_that_the_clock_is_right_is_believed_at_once() {
    with(|d| {
        append(d, 5);
        d.turn_ahead(DAY);
        pass(d, MINUTE);
        let held = clock(d, false).held.unwrap();
        assert!(held.by_us.abs_diff(86_400_000_000) < 1_000_000, "{held:?}");
        assert_eq!(first(d), 1);
        let state = clock(d, true);
        assert_eq!((state.held, state.trusted), (None, state.wall));
        pass(d, MINUTE);
        assert_eq!(first(d), 6);
    });
}

#[test]
fn a_restart_with_a_clock_that_is_ahead_takes_nothing_whatever_was_stored_with_it() {
    for end in [End::Clean, End::Crash] {
        with(|d| {
            append(d, 5);
            pass(d, MINUTE);
            d.turn_ahead(DAY);
            pass(d, MINUTE);
            append(d, 1);
            for _ in 0..3 {
                d.reopen(end);
                open(d);
                assert_eq!(clock(d, false).jumps, 1, "told at each start");
                pass(d, 20 * MINUTE);
                assert_eq!(first(d), 1);
            }
            d.turn_back(DAY);
            d.reopen(end);
            open(d);
            assert_eq!(clock(d, false).jumps, 0);
            pass(d, MINUTE);
            assert_eq!(first(d), 1);
        });
    }
}

#[test]
fn a_long_stop_is_held_and_a_short_one_or_a_kill_after_long_quiet_is_not() {
    for (stop, jumps) in [(50 * MINUTE, 0), (70 * MINUTE, 1)] {
        with(|d| {
            append(d, 1);
            // Nothing happens, for longer than what is a jump.
            pass(d, 2 * HOUR);
            d.reopen(End::Crash);
            open(d);
            assert_eq!(clock(d, false).jumps, 0);
            d.reopen(End::Clean);
            open(d);
            d.turn_ahead(stop);
            d.reopen(End::Clean);
            open(d);
            assert_eq!(clock(d, false).jumps, jumps, "{stop:?}");
        });
    }
}

#[test]
fn where_the_file_is_lost_the_newest_append_time_is_what_was_known() {
    let mut subject = OnKept::new(tiny(JournalConfig::default()));
    let files = subject.files.clone();
    run(&mut subject, |d| {
        open(d);
        append(d, 1);
        let name = "clock".into();
        files
            .clone()
            .submit(FileToken(u64::MAX), FileOp::Remove { name });
        d.turn_ahead(DAY);
        d.reopen(End::Crash);
        open(d);
        let held = clock(d, false).held.unwrap();
        assert!(held.by_us.abs_diff(86_400_000_000) < 1_000_000, "{held:?}");
        assert_eq!(first(d), 1);
    });
}

#[test]
fn a_jump_makes_no_producer_be_forgotten() {
    with(|d| {
        let batch = Maker::of(log(0), 7, 1).batch(&[("a", "once")]);
        let stored = d.store(&batch);
        d.turn_ahead(3 * DAY);
        pass(d, MINUTE);
        assert_eq!(d.duplicate(&batch), stored);
    });
}
