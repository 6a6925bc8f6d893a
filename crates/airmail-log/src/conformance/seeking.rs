//! Finding a place by time: never too late, and not much too early.

use super::batches::log;
use super::trimming::trim;
use super::{Driver, Subject};
use crate::contract::{Call, Completion};
use airmail_model::{AppendTime, LogId, Sequence};
use std::time::Duration;

fn clock<S: Subject>(d: &mut Driver<'_, S>, log: LogId) -> AppendTime {
    match d.ask(|t| Call::Clock { t, log }) {
        Completion::Clock { at, .. } => at,
        other => panic!("a question for the clock was answered with {other:?}"),
    }
}

pub(super) fn find<S: Subject>(d: &mut Driver<'_, S>, log: LogId, at: i64) -> Sequence {
    match d.ask(|t| Call::FindTime {
        t,
        log,
        at: AppendTime(at),
    }) {
        Completion::Found { at, .. } => at,
        other => panic!("find_time was answered with {other:?}"),
    }
}

/// Batches of two records with two seconds between; (first number, append time) of each.
pub(super) fn spread<S: Subject>(
    d: &mut Driver<'_, S>,
    batches: u32,
    bytes: usize,
) -> Vec<(u64, i64)> {
    let filler = "x".repeat(bytes);
    let mut times = Vec::new();
    for _ in 0..batches {
        let batch = super::Maker::new(log(0)).batch(&[("a", &filler), ("b", "y")]);
        match d.offer(&batch) {
            Completion::Appended { extent, at, .. } => times.push((extent.first.0, at.0)),
            other => panic!("an append was answered with {other:?}"),
        }
        d.sleep(Duration::from_secs(2));
    }
    times
}

/// Seeks each time, just before and just after.
pub fn a_time_is_found_never_too_late<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let times = spread(d, 20, 1);
    for (n, &(first, at)) in times.iter().enumerate() {
        for wanted in [at - 1, at] {
            assert!(find(d, log(0), wanted) <= Sequence(first));
        }
        // Where clocks may go back the next one need not be later.
        let mut later = times[n + 1..].iter().filter(|(_, next)| *next > at);
        let next = later.next().map_or(41, |next| next.0);
        assert!(find(d, log(0), at + 1) <= Sequence(next));
    }
}

/// Asks before each append: what was appended by then is not later, and what is appended afterwards is not earlier; also
/// while the wall clock is set back and ahead, where it is the only one.
pub fn a_logs_clock_is_that_of_its_append_times<S: Subject>(d: &mut Driver<'_, S>) {
    let most = d.clock_back();
    d.open(log(0));
    let mut latest = AppendTime(i64::MIN);
    for n in 0..9 {
        match n % 3 {
            _ if most > 0 => {}
            1 => d.turn_back(Duration::from_secs(60)),
            2 => d.turn_ahead(Duration::from_secs(90)),
            _ => {}
        }
        let wall = d.now().wall.0;
        let shown = clock(d, log(0));
        assert!(shown.0 >= wall, "{shown}, asked at {wall}");
        assert!(
            shown.0 >= latest.0.saturating_sub(most),
            "{shown} after {latest}"
        );
        match d.offer(&super::Maker::new(log(0)).batch(&[("a", "x")])) {
            Completion::Appended { at, .. } => {
                let earliest = shown.0.saturating_sub(most);
                assert!(at.0 >= earliest, "{at} after {shown}");
                latest = latest.max(at);
            }
            other => panic!("an append was answered with {other:?}"),
        }
    }
}

/// Turns the only wall clock back by an hour: what is appended afterwards grows old as before, within a fiftieth.
pub fn a_logs_clock_goes_on_while_the_wall_clock_is_set_back<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let before = clock(d, log(0));
    if d.clock_back() > 0 {
        return;
    }
    d.turn_back(Duration::from_secs(3600));
    let mut last = before;
    for _ in 0..5 {
        let at = match d.offer(&super::Maker::new(log(0)).batch(&[("a", "x")])) {
            Completion::Appended { at, .. } => at,
            other => panic!("an append was answered with {other:?}"),
        };
        assert!(at >= last, "{at} after {last}");
        let asked = d.now().mono;
        d.sleep(Duration::from_secs(50));
        last = clock(d, log(0));
        let passed_us = d.now().mono.since(asked).as_micros() as i64;
        let age_us = last.0 - at.0;
        assert!(
            age_us >= passed_us - passed_us / 50,
            "{age_us} us old after {passed_us}"
        );
    }
    let passed = last.0 - before.0;
    assert!(passed <= 300_000_000, "{passed} us for five times 50 s");
}

/// Nothing is earlier.
pub fn a_time_before_everything_is_the_first_number<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    assert_eq!(find(d, log(0), 0), Sequence(1));
    spread(d, 3, 1);
    for wanted in [i64::MIN, -1, 0, 1] {
        assert_eq!(find(d, log(0), wanted), Sequence(1));
    }
}

/// Where the next record will be, or at most one index entry earlier.
pub fn a_time_after_everything_is_the_end<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let times = spread(d, 3, 1);
    let last = times.iter().map(|(_, at)| *at).max().unwrap_or(0);
    for wanted in [last + 1, i64::MAX] {
        assert!(find(d, log(0), wanted) <= Sequence(7));
    }
    let found = find(d, log(0), d.now().wall.0 + 1);
    assert!(found <= d.append(log(0), &[("a", "x")]).first);
}

/// Finds within the bounds, whatever was trimmed: a tower takes what was found as a number that the log has reached.
pub fn a_time_is_found_within_the_bounds<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let times = spread(d, 4, 1);
    for below in [times[0].0, times[2].0, times[3].0 + 2] {
        trim(d, log(0), below);
        let bounds = d.bounds(log(0));
        for wanted in [i64::MIN, times[0].1, times[3].1, i64::MAX] {
            let found = find(d, log(0), wanted);
            assert!(
                (bounds.first..=bounds.next).contains(&found),
                "{found:?} was found in {bounds:?}"
            );
        }
    }
}

/// Index entries are never so far apart that it is read whole.
pub fn a_time_in_a_long_log_is_found_near<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let times = spread(d, 300, 2000);
    let mut last = Sequence(0);
    for &(first, at) in times.iter().step_by(7) {
        let found = find(d, log(0), at);
        assert!(found <= Sequence(first));
        assert!(found >= last, "a later time was found earlier");
        last = found;
    }
}

/// Seeks a time before the first kept record: trimmed records cannot be where to begin.
pub fn a_time_in_what_was_trimmed_is_the_first_kept<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let times = spread(d, 10, 1);
    trim(d, log(0), times[5].0);
    for &(_, at) in &times[..5] {
        let found = find(d, log(0), at);
        // Where clocks may go back, the first kept need not be later than all that was trimmed.
        let later = times[5..].iter().find(|(_, kept)| *kept >= at);
        let later = later.map_or(21, |later| later.0);
        assert!(
            found >= Sequence(times[5].0) && found <= Sequence(later),
            "{found}"
        );
    }
    assert!(find(d, log(0), times[7].1) >= Sequence(times[5].0));
}
