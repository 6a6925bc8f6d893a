//! Promises that outlive a stop, a clean one and a crash; and limits on a log that does not outlive
//! it.

use super::batches::{EPOCH, Maker, log, spec};
use super::producers::{in_flight, maker, sent_again};
use super::reading::{assert_all, fill};
use super::sealing::seal;
use super::seeking::{find, spread};
use super::trimming::{delete, retained, trim};
use super::{Driver, End, Seen, Subject};
use crate::contract::{Bounds, Call, Completion, GapWhy, LogSpec, Refusal, TopicPage};
use airmail_model::{AppendTime, Durability, MapEpoch, Retention, Sequence, Synced};

fn durabilities<S: Subject>(d: &mut Driver<'_, S>) -> Vec<Durability> {
    let strongest = d.capabilities().strongest;
    let mut all = Synced::ALL.map(Durability::single).to_vec();
    all.retain(|one| strongest.satisfies(*one));
    all
}

/// All of them, whatever the durability: there was time to store them.
pub fn acknowledged_records_are_there_after_a_clean_stop<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    for durability in durabilities(d) {
        let index = durability.synced as u16;
        d.open_with(log(index), &spec(durability));
        fill(d, index, 30);
    }
    d.reopen(End::Clean);
    for durability in durabilities(d) {
        let index = durability.synced as u16;
        let bounds = d.open_with(log(index), &spec(durability));
        assert_eq!(
            (bounds.first, bounds.next),
            (Sequence(1), Sequence(61)),
            "{durability}"
        );
        let reader = d.read_all(log(index), 1);
        assert_all(d, reader, 1, 60);
        fill(d, index, 3);
        assert_all(d, reader, 61, 66);
    }
}

/// The suite's crash ends the process, not the system: `os` holds as `fsync` does.
pub fn acknowledged_records_are_there_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    let held = durabilities(d).into_iter();
    let held: Vec<Durability> = held
        .filter(|durability| durability.satisfies(Durability::OS))
        .collect();
    for durability in &held {
        let index = durability.synced as u16;
        d.open_with(log(index), &spec(*durability));
        fill(d, index, 30);
        // Whether these are stored nobody knows.
        for _ in 0..5 {
            d.send(&Maker::new(log(index)).batch(&[("b", "unanswered")]));
        }
    }
    d.reopen(End::Crash);
    for durability in held {
        let index = durability.synced as u16;
        let bounds = d.open_with(log(index), &spec(durability));
        assert!(bounds.next >= Sequence(61), "{durability}: {bounds:?}");
        let reader = d.read_all(log(index), 1);
        let mut records = d.records(reader);
        records.retain(|(_, topic, _)| topic == "a");
        let numbers: Vec<u64> = records.iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers, (1..=60).collect::<Vec<_>>(), "{durability}");
    }
}

/// Loses unsynced batches in a crash: nothing else gets their numbers, and the loss is reported.
pub fn numbers_are_never_used_again<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    for end in [End::Crash, End::Clean, End::Crash, End::Crash] {
        for durability in durabilities(d) {
            let index = durability.synced as u16;
            let bounds = d.open_with(log(index), &spec(durability));
            let mut highest = bounds.next.before();
            for n in 0..4 {
                let extent = d.append(log(index), &[("a", &n.to_string())]);
                assert!(
                    extent.first > highest,
                    "{durability}: {extent:?} after {highest}"
                );
                highest = extent.last;
            }
            let reader = d.read_all(log(index), 1);
            d.settle();
            assert_eq!(d.next_of(reader), highest.plus(1));
        }
        let before: Vec<_> = durabilities(d)
            .into_iter()
            .map(|durability| (durability, d.bounds(log(durability.synced as u16)).next))
            .collect();
        d.reopen(end);
        for (durability, next) in before {
            let bounds = d.open_with(log(durability.synced as u16), &spec(durability));
            assert!(
                bounds.next >= next,
                "{durability} after {end:?}: {bounds:?}"
            );
            let exact = end == End::Clean || durability == Durability::FSYNC;
            assert!(
                !exact || bounds.next == next,
                "{durability} after {end:?}: {bounds:?}"
            );
            let reader = d.read_all(log(durability.synced as u16), 1);
            for tile in d.tiles(reader) {
                let loss = !matches!(tile, Seen::Gap(_, why) if why != GapWhy::Loss);
                assert!(loss, "{durability}: {tile:?}");
            }
            assert_eq!(d.next_of(reader), bounds.next);
        }
    }
}

/// A position is good for ever.
pub fn a_durable_log_keeps_its_incarnation<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    for durability in durabilities(d) {
        let log = log(durability.synced as u16);
        let first = d.open_with(log, &spec(durability)).incarnation;
        for end in [End::Crash, End::Clean] {
            d.append(log, &[("a", "x")]);
            d.reopen(end);
            assert_eq!(d.open_with(log, &spec(durability)).incarnation, first);
        }
    }
}

/// Numbers go on, readers too, and a later change of its spec does not bring the old life back.
pub fn a_new_life_keeps_what_is_there_and_holds_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    let strongest = d.capabilities().strongest;
    let old = d.open(log(0));
    fill(d, 0, 3);
    let reader = d.read_all(log(0), 1);
    let (first, second) = (renew(d, 0), renew(d, 0));
    assert_eq!((first.first, first.next), (Sequence(1), Sequence(7)));
    assert_eq!((second.first, second.next), (Sequence(1), Sequence(7)));
    let lives = [old.incarnation, first.incarnation, second.incarnation];
    assert!(lives[0] != lives[1] && lives[1] != lives[2] && lives[0] != lives[2]);
    fill(d, 0, 3);
    assert_all(d, reader, 1, 12);
    // Both are under way at once.
    let new = d.call(|t| Call::Renew { t, log: log(0) });
    let retention = Retention {
        time_ms: None,
        bytes: Some(1 << 40),
    };
    let changed = LogSpec {
        retention,
        ..spec(strongest)
    };
    d.open_with(log(0), &changed);
    let Completion::Opened { bounds: last, .. } = d.answer(new) else {
        panic!("a new life was not begun");
    };
    assert!(!lives.contains(&last.incarnation));
    assert_eq!(d.bounds(log(0)).incarnation, last.incarnation);
    for end in [End::Crash, End::Clean] {
        d.reopen(end);
        let bounds = d.open_with(log(0), &changed);
        if d.outlives() {
            assert_eq!(bounds.incarnation, last.incarnation);
            assert_eq!((bounds.first, bounds.next), (Sequence(1), Sequence(13)));
        }
    }
    let stranger = log(9);
    match d.ask(|t| Call::Renew { t, log: stranger }) {
        Completion::Refused { why, .. } => assert_eq!(why, Refusal::NoLog),
        other => panic!("{other:?}"),
    }
}

fn renew<S: Subject>(d: &mut Driver<'_, S>, index: u16) -> Bounds {
    match d.ask(|t| Call::Renew { t, log: log(index) }) {
        Completion::Opened { bounds, .. } => bounds,
        other => panic!("a new life was answered with {other:?}"),
    }
}

/// Loses a log: a position of its former life is recognised.
pub fn a_log_that_is_lost_begins_a_new_incarnation<S: Subject>(d: &mut Driver<'_, S>) {
    if d.outlives() {
        return;
    }
    let mut lives = Vec::new();
    for end in [End::Clean, End::Crash, End::Crash] {
        let bounds = d.open(log(0));
        assert_eq!((bounds.first, bounds.bytes), (bounds.next, 0));
        assert!(
            !lives.contains(&bounds.incarnation),
            "{lives:?} and {bounds:?}"
        );
        lives.push(bounds.incarnation);
        fill(d, 0, 3);
        d.reopen(end);
    }
}

/// Expects the first one's result; and the next batch is next.
pub fn retries_are_recognised_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() || !d.capabilities().dedup.is_exact() {
        return;
    }
    let batch = |n: u64| maker().at(n * 2).batch(&[("a", "x"), ("a", "y")]);
    let mut extents = Vec::new();
    for round in 0..6u64 {
        d.open(log(0));
        for (n, extent) in extents.iter().enumerate() {
            assert_eq!(d.duplicate(&batch(n as u64)), *extent);
        }
        let refused = d.refused(&batch(round * 2 + 1));
        match (round, refused) {
            (0, Refusal::UnknownProducer) => {}
            (_, Refusal::OutOfOrder { expected, .. }) => assert_eq!(expected.0, round * 4),
            (_, other) => panic!("refused with {other:?}"),
        }
        for n in round * 2..round * 2 + 2 {
            extents.push(d.store(&batch(n)));
        }
        d.reopen([End::Crash, End::Clean][round as usize % 2]);
    }
}

/// Sends again, after a crash, all batches that were in flight.
pub fn every_batch_in_flight_is_recognised_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() || !d.capabilities().dedup.is_exact() {
        return;
    }
    d.open(log(0));
    let first = in_flight(d);
    for end in [End::Crash, End::Clean, End::Crash] {
        d.reopen(end);
        d.open(log(0));
        sent_again(d, &first);
    }
}

/// Trims all records of a producer: it is known by its results, not by its records.
pub fn a_producer_is_known_though_its_records_are_trimmed<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() || !d.capabilities().dedup.is_exact() {
        return;
    }
    d.open(log(0));
    let first = d.store(&maker().batch(&[("a", "x"), ("a", "y")]));
    fill(d, 0, 30);
    for end in [End::Clean, End::Crash, End::Crash] {
        let next = d.bounds(log(0)).next;
        trim(d, log(0), next.0);
        // Time to give the space back.
        d.sleep(std::time::Duration::from_secs(60));
        fill(d, 0, 300);
        d.reopen(end);
        d.open(log(0));
        assert_eq!(
            d.duplicate(&maker().batch(&[("a", "x"), ("a", "y")])),
            first
        );
    }
    // Nothing else is written after these.
    let filler = "x".repeat(1000);
    let batch = |n: u64| maker().at(n).batch(&[("a", &filler)]);
    let extents: Vec<_> = (2..80).map(|n| d.store(&batch(n))).collect();
    trim(d, log(0), extents[77].next().0);
    d.sleep(std::time::Duration::from_secs(60));
    d.reopen(End::Crash);
    d.open(log(0));
    assert_eq!(d.duplicate(&batch(79)), extents[77]);
    assert!(d.store(&batch(80)).first > extents[77].last);
}

/// And one that was never heard of is still unknown.
pub fn an_older_epoch_is_still_fenced_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() || !d.capabilities().dedup.is_exact() {
        return;
    }
    d.open(log(0));
    let newer = Maker::of(log(0), 77, 2);
    d.store(&maker().batch(&[("a", "x")]));
    d.store(&newer.batch(&[("a", "x")]));
    d.reopen(End::Crash);
    d.open(log(0));
    assert_eq!(
        d.refused(&maker().at(1).batch(&[("a", "x")])),
        Refusal::Fenced
    );
    let other = Maker::of(log(0), 78, 1).at(1);
    assert_eq!(
        d.refused(&other.batch(&[("a", "x")])),
        Refusal::UnknownProducer
    );
    d.store(&newer.at(1).batch(&[("a", "x")]));
}

/// Changes a log's retention, which may move it to other segments: the log stays in order.
pub fn a_change_of_retention_keeps_what_is_there_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    let mut records = 0;
    for (round, end) in [End::Crash, End::Crash, End::Clean, End::Crash]
        .into_iter()
        .enumerate()
    {
        for time_ms in [None, Some(1 << 40), Some(1 << 50), Some(1 << 40), None] {
            let mut spec = spec(d.capabilities().strongest);
            spec.retention.time_ms = time_ms;
            d.open_with(log(0), &spec);
            fill(d, 0, 30 * (round as u32 + 1));
            records += 60 * (round as u64 + 1);
        }
        d.reopen(end);
        d.open(log(0));
        let reader = d.read_all(log(0), 1);
        assert_all(d, reader, 1, records);
    }
}

/// Crashes after a trim was answered: the trimmed records stay gone.
pub fn a_trim_holds_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    d.open(log(0));
    fill(d, 0, 30);
    trim(d, log(0), 31);
    for end in [End::Crash, End::Clean, End::Crash] {
        d.reopen(end);
        assert_eq!(d.open(log(0)).first, Sequence(31));
        let reader = d.read_all(log(0), 1);
        assert_eq!(d.tiles(reader)[0], retained(1, 30));
        let reader = d.read_all(log(0), 31);
        assert_all(d, reader, 31, 60);
    }
}

/// Or two logs would take the same topics.
pub fn a_seal_holds_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    d.open(log(0));
    d.store(&maker().batch(&[("a", "x")]));
    if !seal(d, log(0)) {
        return;
    }
    for end in [End::Crash, End::Clean, End::Crash] {
        d.reopen(end);
        d.open(log(0));
        let next = MapEpoch(2);
        let why = d.refused(&maker().at(1).batch(&[("a", "x")]));
        assert_eq!(why, Refusal::Sealed { next });
        d.duplicate(&maker().batch(&[("a", "x")]));
        let reader = d.read_all(log(0), 1);
        let seen = d.seen(reader);
        assert!(seen.contains(&Seen::Sealed(Sequence(1), next)), "{seen:?}");
    }
}

/// Nothing of it comes back.
pub fn a_delete_holds_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    for index in [0, 1] {
        d.open(log(index));
        fill(d, index, 30);
    }
    delete(d, log(0));
    d.reopen(End::Crash);
    assert_eq!(
        d.refused(&Maker::new(log(0)).batch(&[("a", "x")])),
        Refusal::NoLog
    );
    let bounds = d.open(log(0));
    assert_eq!((bounds.first, bounds.bytes), (bounds.next, 0));
    d.open(log(1));
    let reader = d.read_all(log(1), 1);
    assert_all(d, reader, 1, 60);
}

/// An older map stays refused.
pub fn a_map_epoch_holds_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    let mut newer = spec(d.capabilities().strongest);
    newer.epoch = MapEpoch(4);
    d.open_with(log(0), &newer);
    d.reopen(End::Crash);
    match d.try_open(log(0), &spec(newer.durability)) {
        Completion::Refused { why, .. } => {
            let current = newer.epoch;
            assert_eq!(why, Refusal::StaleMap { current });
        }
        other => panic!(
            "map {EPOCH} after {} was answered with {other:?}",
            newer.epoch
        ),
    }
}

/// Though the clock was set back meanwhile.
pub fn append_times_go_on_after_a_crash<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    let mut last = AppendTime(0);
    for end in [End::Crash, End::Clean, End::Crash] {
        d.open(log(0));
        match d.offer(&Maker::new(log(0)).batch(&[("a", "x")])) {
            Completion::Appended { at, .. } => {
                let back = d.clock_back();
                assert!(at.0 >= last.0 - back, "{at} after {last}");
                last = at.max(last);
            }
            other => panic!("an append was answered with {other:?}"),
        }
        d.turn_back(std::time::Duration::from_secs(100));
        d.reopen(end);
    }
}

/// Finds topics and times after reopening like before.
pub fn topics_and_times_are_found_after_reopening<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    d.open(log(0));
    let times = spread(d, 60, 2000);
    d.append(log(0), &[("rare", "x")]);
    for end in [End::Crash, End::Clean] {
        d.reopen(end);
        d.open(log(0));
        for &(first, at) in times.iter().step_by(7) {
            assert!(find(d, log(0), at) <= Sequence(first));
        }
        let page = TopicPage {
            limit: 10,
            ..TopicPage::default()
        };
        let Completion::Topics { page, .. } = d.ask(|t| Call::Topics {
            t,
            log: log(0),
            page: Box::new(page.clone()),
        }) else {
            panic!("no topics");
        };
        let names: Vec<_> = page.iter().map(|seen| seen.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "rare"]);
    }
}

/// Checks that neither contents nor space change.
pub fn reopening_many_times_changes_nothing<S: Subject>(d: &mut Driver<'_, S>) {
    if !d.outlives() {
        return;
    }
    d.open(log(0));
    fill(d, 0, 60);
    d.reopen(End::Clean);
    let bounds = d.open(log(0));
    for n in 0..12 {
        d.reopen([End::Crash, End::Clean][n % 2]);
        assert_eq!(d.open(log(0)), bounds);
    }
    let reader = d.read_all(log(0), 1);
    assert_all(d, reader, 1, 120);
}
