//! Two lanes: lane high overtakes what waits of lane normal, which gets its share.

use super::super::entry::Entry;
use super::super::lane_queue::LaneQueue;
use super::*;

const HIGH: LogId = LogId {
    lane: Lane::High,
    ..LOG
};

/// A bench with a log of each lane open, slots in this order: normal, high; each has a batch, number 0 of its
/// producer, so their segment is made.
fn both(spec: LogSpec) -> Bench {
    let mut bench = Bench::open_as(spec, MemoryFiles::new(), 1);
    bench.ask_to_open(2, HIGH, spec);
    bench.poll();
    bench.send(0, batch(0, "x"));
    bench.send(0, batch_to(HIGH, 0, "x"));
    for _ in 0..40 {
        bench.poll();
    }
    bench.out.clear();
    bench
}

/// A step of the journal, before any file has answered.
fn step(bench: &mut Bench) {
    bench.storage.journal.advance(bench.now);
}

/// The tags of the appends that were done, in order.
fn done(out: &[Completion]) -> Vec<u64> {
    let tags = out.iter().filter_map(|completion| match completion {
        Completion::Appended { t, .. } => Some(t.0),
        _ => None,
    });
    tags.collect()
}

/// The readers that were given batches, in order.
fn given(out: &[Completion]) -> Vec<u64> {
    let readers = out.iter().filter_map(|completion| match completion {
        Completion::Batch { r, .. } => Some(r.0),
        _ => None,
    });
    readers.collect()
}

fn records_of(bench: &mut Bench, log: LogId) -> Vec<Sequence> {
    bench.out.clear();
    bench.read_all(9, log);
    for _ in 0..40 {
        bench.poll();
    }
    bench.storage.submit(Call::Stop { r: ReaderId(9) });
    bench.poll();
    let numbers = bench
        .out
        .drain(..)
        .filter_map(|completion| match completion {
            Completion::Batch { stored, .. } => Some(stored.extent.first),
            gap @ Completion::Gap { .. } => panic!("{gap:?}"),
            _ => None,
        });
    numbers.collect()
}

fn numbers(count: u64) -> Vec<Sequence> {
    (1..=count).map(Sequence).collect()
}

#[test]
fn a_high_append_waits_for_the_commit_under_way_and_no_other() {
    let mut bench = both(LogSpec::default());
    bench.send(1, batch(1, "x"));
    step(&mut bench);
    // Each commit takes two of these.
    for n in 2..20 {
        bench.send(n, batch(n, &"x".repeat(3_000)));
    }
    bench.send(100, batch_to(HIGH, 1, "x"));
    step(&mut bench);
    assert_eq!(bench.storage.journal.commits.len(), 1);
    for _ in 0..40 {
        bench.poll();
    }
    let done = done(&bench.out);
    let place = done.iter().position(|t| *t == 100);
    assert!(place.is_some_and(|place| place <= 3), "{done:?}");
    let normal: Vec<u64> = done.iter().copied().filter(|t| *t != 100).collect();
    assert_eq!(normal, (1..20).collect::<Vec<u64>>());
    for lap in 0..2 {
        assert_eq!(records_of(&mut bench, LOG), numbers(20), "{lap}");
        assert_eq!(records_of(&mut bench, HIGH), numbers(2), "{lap}");
        bench = Bench::open(bench.close(), 2 + lap);
        bench.ask_to_open(2, HIGH, LogSpec::default());
        bench.poll();
    }
}

#[test]
fn while_both_lanes_wait_normal_gets_a_quarter_of_each_commit() {
    let mut bench = both(LogSpec::default());
    bench.send(90, batch(1, "x"));
    step(&mut bench);
    for n in 1..=40 {
        bench.send(n, batch(n + 1, &"x".repeat(800)));
        bench.send(100 + n, batch_to(HIGH, n, &"x".repeat(800)));
    }
    for _ in 0..60 {
        bench.poll();
    }
    let done = done(&bench.out);
    assert_eq!((done.len(), done[0]), (81, 90));
    // A commit has room for eight; the answers to those of one come in order of log.
    for commits in 1..=6 {
        let normal = done[1..=8 * commits].iter().filter(|t| **t < 100).count();
        assert!(normal.abs_diff(2 * commits) <= 1, "{commits}: {done:?}");
    }
    assert_eq!(records_of(&mut bench, LOG), numbers(42));
    assert_eq!(records_of(&mut bench, HIGH), numbers(41));
}

#[test]
fn a_high_append_does_not_wait_for_more_to_gather() {
    let weak = LogSpec {
        durability: Durability::MEMORY,
        ..LogSpec::default()
    };
    let mut bench = both(weak);
    let waiting = |bench: &Bench| bench.storage.journal.commits.waiting().iter().count();
    bench.append(1, 3);
    assert_eq!(waiting(&bench), 3);
    bench.send(100, batch_to(HIGH, 1, "x"));
    bench.poll();
    assert_eq!(waiting(&bench), 0);
}

/// Sends more batches of a log than there is room for, each taken up by a step; the bytes that wait then.
fn fill(bench: &mut Bench, log: LogId, from: u64) -> u64 {
    for n in from..from + 100 {
        bench.send(n, batch_to(log, n, &"x".repeat(500)));
        step(bench);
    }
    bench.storage.journal.commits.bytes()
}

#[test]
fn a_full_queue_of_normal_leaves_high_an_eighth_more() {
    let mut bench = both(LogSpec::default());
    bench.storage.journal.config.pending_bytes = 40_000;
    bench.send(1, batch(1, "x"));
    step(&mut bench);
    // Nothing follows the commit under way any more: there is no room for this one in its segment.
    bench.send(2, batch(2, &"x".repeat(32_000)));
    step(&mut bench);
    let normal = fill(&mut bench, LOG, 3);
    assert!((39_000..=40_000).contains(&normal), "{normal}");
    let both = fill(&mut bench, HIGH, 1);
    assert!((44_000..=45_000).contains(&both), "{both}");
    for _ in 0..60 {
        bench.poll();
    }
    let is_busy = |completion: &&Completion| {
        let Completion::Refused { why, .. } = completion else {
            return false;
        };
        assert!(matches!(why, Refusal::Busy { .. }), "{why}");
        true
    };
    let refused = bench.out.iter().filter(is_busy).count();
    assert_eq!(refused + done(&bench.out).len(), 202);
    assert!(refused > 0);
}

#[test]
fn calls_of_normal_that_find_no_room_leave_high_its_own() {
    let mut bench = both(LogSpec::default());
    bench.storage.journal.config.pending_bytes = 8_000;
    for n in 1..10 {
        bench.send(n, batch(n, &"x".repeat(1_000)));
    }
    bench.send(100, batch_to(HIGH, 1, &"x".repeat(500)));
    for _ in 0..20 {
        bench.poll();
    }
    let done = done(&bench.out);
    assert!(done.contains(&100), "{done:?}");
    let normal: Vec<u64> = done.into_iter().filter(|t| *t != 100).collect();
    assert_eq!(normal, (1..7).collect::<Vec<u64>>());
}

/// An entry of a log, of so many numbers as its first.
fn entry(log: LogId, first: u64, copy: bool) -> Entry {
    let batch = batch_to(log, first, "x");
    let length = batch.bytes().len() as u32;
    let slot = Slot(u32::from(log.lane == Lane::High));
    let envelope =
        super::super::format::Envelope::of_batch(slot, Sequence(first), 1, AppendTime(0), length);
    Entry {
        copy,
        ..Entry::again(&envelope, batch)
    }
}

#[test]
fn what_a_commit_leaves_goes_back_in_order_and_a_copy_is_found_in_either_lane() {
    let mut queue = LaneQueue::default();
    for first in 1..=5 {
        queue.add(entry(LOG, first, false));
        queue.add(entry(HIGH, first, false));
    }
    queue.check();
    let bytes = queue.bytes();
    let kept: Vec<Entry> = (0..7).map_while(|_| queue.next([true; 2])).collect();
    queue.put_back(kept);
    queue.check();
    assert_eq!(queue.bytes(), bytes);
    assert!(!queue.begins_with_a_copy());
    for log in [HIGH, LOG] {
        queue.put_back(vec![entry(log, 1, true)]);
        assert!(queue.begins_with_a_copy());
        let open = [log.lane == Lane::Normal, log.lane == Lane::High];
        let next = queue.next(open);
        assert!(next.is_some_and(|next| next.copy && next.lane() == log.lane));
        assert!(!queue.begins_with_a_copy());
    }
    queue.forget_log(Slot(1));
    let left = queue.take_all();
    let left: Vec<_> = left
        .iter()
        .map(|entry| (entry.lane(), entry.first))
        .collect();
    let of_normal: Vec<_> = numbers(5)
        .into_iter()
        .map(|first| (Lane::Normal, first))
        .collect();
    assert_eq!(left, of_normal);
    assert!(queue.is_empty());
    queue.check();
}

#[test]
fn at_the_tails_high_is_given_before_normal() {
    let mut bench = both(LogSpec::default());
    bench.read_all(1, LOG);
    bench.read_all(2, HIGH);
    bench.poll();
    bench.out.clear();
    bench.send(1, batch(1, "x"));
    bench.send(100, batch_to(HIGH, 1, "x"));
    bench.poll();
    assert_eq!(given(&bench.out), [2, 1]);
}

/// A bench whose logs have 20 batches each on the disk; one more of normal is in memory.
fn with_old() -> Bench {
    let mut bench = both(LogSpec::default());
    for n in 1..20 {
        bench.send(n, batch(n, &"x".repeat(800)));
        bench.send(100 + n, batch_to(HIGH, n, &"x".repeat(800)));
        bench.poll();
    }
    let mut bench = Bench::open(bench.close(), 2);
    bench.ask_to_open(2, HIGH, LogSpec::default());
    bench.send(20, batch(20, "x"));
    bench.poll();
    bench.out.clear();
    bench
}

#[test]
fn who_reads_an_old_high_log_does_not_overtake_who_follows_a_live_normal_one() {
    let mut bench = with_old();
    bench.storage.submit(Call::Read {
        r: ReaderId(5),
        log: LOG,
        from: Sequence(22),
        scope: Box::default(),
        credit: u32::MAX,
    });
    bench.poll();
    bench.read_all(1, HIGH);
    step(&mut bench);
    bench.send(21, batch(21, "x"));
    step(&mut bench);
    // The read and the commit end in the same moment.
    bench.poll();
    let given = given(&bench.out);
    assert_eq!((given[0], given.len()), (5, 21), "{given:?}");
}

#[test]
fn of_those_behind_who_wait_to_read_high_reads_first() {
    let mut bench = with_old();
    bench.storage.journal.config.reads_max = 1;
    bench.read_all(1, LOG);
    bench.read_all(2, LOG);
    step(&mut bench);
    bench.read_all(3, HIGH);
    for _ in 0..20 {
        bench.poll();
    }
    let given = given(&bench.out);
    let first = |r: u64| given.iter().position(|of| *of == r);
    assert!(first(3).is_some() && first(3) < first(2), "{given:?}");
    assert_eq!(given.len(), 62);
}

#[test]
fn those_behind_in_high_do_not_keep_normal_from_reading() {
    let mut bench = both(LogSpec::default());
    let config = &mut bench.storage.journal.config;
    // A batch is a read, its place is known without one, and nothing is in memory.
    (config.read_bytes, config.block_bytes) = (1_000, 1 << 20);
    (config.cache_bytes, config.run_cache_bytes, config.reads_max) = (0, 0, 1);
    for n in 1..20 {
        bench.send(n, batch(n, &"x".repeat(800)));
        bench.send(100 + n, batch_to(HIGH, n, &"x".repeat(800)));
        bench.poll();
    }
    bench.out.clear();
    bench.read_all(1, HIGH);
    bench.read_all(2, HIGH);
    bench.read_all(3, LOG);
    for _ in 0..20 {
        bench.poll();
    }
    let given = given(&bench.out);
    let last_of_high = given.iter().rposition(|r| *r != 3).unwrap_or(0);
    let of_normal = given[..last_of_high].iter().filter(|r| **r == 3).count();
    assert!(of_normal >= last_of_high / 4 - 1, "{given:?}");
    assert_eq!(given.len(), 60);
}
