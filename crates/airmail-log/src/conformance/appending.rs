//! Promises of an append, and the refusals of one.

use super::batches::{EPOCH, Maker, log, spec};
use super::{Driver, Seen, Subject};
use crate::contract::{
    Call, Completion, Direction, Refusal, Scope, ScopeFilter, Stored, TopicPage,
};
use airmail_model::{AppendTime, Durability, Extent, MapEpoch, Sequence, Synced};
use bytes::Bytes;
use std::time::Duration;

/// Appends where a refusal could be told at once and the append before it could not.
pub fn appends_are_answered_in_call_order_refused_ones_too<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let stale = Maker {
        epoch: MapEpoch(9),
        ..Maker::new(log(0))
    };
    let mut tags = Vec::new();
    for n in 0..50u32 {
        let maker = if n % 3 == 2 {
            stale
        } else {
            Maker::new(log(0))
        };
        tags.push((n, d.send(&maker.batch(&[("a", "x")]))));
    }
    // The driver holds the order of the answers; here it is that each has the right one.
    let mut next = 1;
    for (n, tag) in tags {
        match d.answer(tag) {
            Completion::Appended { extent, .. } if n % 3 != 2 => {
                assert_eq!(extent.first, Sequence(next));
                next += 1;
            }
            Completion::Refused { .. } if n % 3 == 2 => {}
            other => panic!("append {n} was answered with {other:?}"),
        }
    }
}

/// Appends with each durability that the storage has.
pub fn an_ack_says_at_least_what_the_log_asks<S: Subject>(d: &mut Driver<'_, S>) {
    let strongest = d.capabilities().strongest;
    let is_exact = d.capabilities().dedup.is_exact();
    for durability in Synced::ALL.map(Durability::single) {
        if !strongest.satisfies(durability) {
            continue;
        }
        let log = log(durability.synced as u16);
        d.open_with(log, &spec(durability));
        match d.offer(&Maker::new(log).batch(&[("a", "x")])) {
            Completion::Appended { held, exact, .. } => {
                assert!(
                    held.satisfies(durability),
                    "{held} where {durability} was asked"
                );
                assert!(
                    strongest.satisfies(held),
                    "{held} where there is {strongest}"
                );
                assert_eq!(exact, is_exact, "stored once for certain");
            }
            other => panic!("an append was answered with {other:?}"),
        }
        let reader = d.read_all(log, 1);
        assert_eq!(d.records(reader).len(), 1);
    }
}

/// Sets the wall clock back between appends.
pub fn append_times_keep_the_order_that_its_clock_promises<S: Subject>(d: &mut Driver<'_, S>) {
    let most = d.clock_back();
    d.open(log(0));
    let mut given = Vec::new();
    for n in 0..10 {
        if n % 3 == 0 {
            d.turn_back(Duration::from_secs(60));
        }
        match d.offer(&Maker::new(log(0)).batch(&[("a", "x")])) {
            Completion::Appended { at, .. } => given.push(at),
            other => panic!("an append was answered with {other:?}"),
        }
    }
    let mut latest = AppendTime(i64::MIN);
    for at in &given {
        let earliest = latest.0.saturating_sub(most);
        assert!(
            at.0 >= earliest,
            "{at} after {latest}, by {most} us at most"
        );
        latest = latest.max(*at);
    }
    let reader = d.read_all(log(0), 1);
    let tiles = d.tiles(reader);
    let read = tiles.iter().filter_map(|tile| match tile {
        Seen::Batch(stored) => Some(stored.appended),
        _ => None,
    });
    assert_eq!(read.collect::<Vec<_>>(), given);
}

/// Older and newer ones alike: the log's own is named, so that the client can fetch it.
pub fn an_append_made_with_another_map_is_refused<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    for other in [0, 2, 7] {
        let maker = Maker {
            epoch: MapEpoch(other),
            ..Maker::new(log(0))
        };
        let why = d.refused(&maker.batch(&[("a", "x")]));
        assert_eq!(why, Refusal::StaleMap { current: EPOCH });
    }
    let mut newer = spec(d.capabilities().strongest);
    newer.epoch = MapEpoch(2);
    d.open_with(log(0), &newer);
    let why = d.refused(&Maker::new(log(0)).batch(&[("a", "x")]));
    let current = newer.epoch;
    assert_eq!(why, Refusal::StaleMap { current });
    let maker = Maker {
        epoch: newer.epoch,
        ..Maker::new(log(0))
    };
    assert_eq!(d.store(&maker.batch(&[("a", "x")])).first, Sequence(1));
}

/// The log's own is named, and the log stays as it was.
pub fn an_older_map_does_not_open_a_log<S: Subject>(d: &mut Driver<'_, S>) {
    let mut newer = spec(d.capabilities().strongest);
    newer.epoch = MapEpoch(5);
    d.open_with(log(0), &newer);
    let older = spec(newer.durability);
    match d.try_open(log(0), &older) {
        Completion::Refused { why, .. } => {
            let current = newer.epoch;
            assert_eq!(why, Refusal::StaleMap { current });
        }
        other => panic!("an older map was answered with {other:?}"),
    }
    let maker = Maker {
        epoch: newer.epoch,
        ..Maker::new(log(0))
    };
    d.store(&maker.batch(&[("a", "x")]));
}

/// The most that a batch may have.
pub fn a_batch_of_4096_records_is_one_extent<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let payloads: Vec<String> = (0..4096).map(|n| n.to_string()).collect();
    let records: Vec<_> = payloads.iter().map(|p| ("a", p.as_str())).collect();
    let extent = d.append(log(0), &records);
    assert_eq!(extent, Extent::starting_at(Sequence(1), 4096));
    let reader = d.read_all(log(0), 1);
    let got = d.records(reader);
    assert_eq!(got.len(), 4096);
    for (n, (number, _, payload)) in got.iter().enumerate() {
        assert_eq!(*number, n as u64 + 1);
        assert_eq!(payload, payloads[n].as_bytes());
    }
}

/// The largest message by default; several, so that they cannot all be in one place.
pub fn a_message_of_one_mebibyte_comes_back_whole<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let mut sent = Vec::new();
    for n in 0..5u32 {
        let payload: Bytes = (0..1u32 << 20).map(|at| (at * 31 + n) as u8).collect();
        d.store(&Maker::new(log(0)).of_bytes([("a", payload.clone())]));
        sent.push(payload);
    }
    let reader = d.read_all(log(0), 1);
    let got = d.records(reader);
    assert_eq!(got.len(), sent.len());
    for (got, sent) in got.iter().zip(&sent) {
        assert!(got.2 == *sent, "record {} is not what was sent", got.0);
    }
}

/// Each has numbers, records and readers of its own.
pub fn many_logs_do_not_see_each_other<S: Subject>(d: &mut Driver<'_, S>) {
    let logs = 40u16;
    for index in 0..logs {
        d.open(log(index));
    }
    let mut tags = Vec::new();
    for round in 0..5 {
        for index in 0..logs {
            let payload = format!("{index} {round}");
            tags.push(d.send(&Maker::new(log(index)).batch(&[("a", &payload)])));
        }
    }
    for tag in tags {
        d.answer(tag);
    }
    for index in 0..logs {
        let reader = d.read_all(log(index), 1);
        let got = d.records(reader);
        let expected: Vec<_> = (0..5u64)
            .map(|round| {
                let payload = format!("{index} {round}").into_bytes();
                (round + 1, "a".to_owned(), payload)
            })
            .collect();
        assert_eq!(got, expected);
    }
}

/// Opens a log with more durability than the storage has, on either axis: a namespace that asks for it
/// cannot be made (G1).
pub fn more_durability_than_it_has_is_refused<S: Subject>(d: &mut Driver<'_, S>) {
    let strongest = d.capabilities().strongest;
    let copies = [
        1,
        strongest.copies,
        strongest.copies.saturating_add(1),
        u8::MAX,
    ];
    let each = |synced| copies.map(|copies| Durability { synced, copies });
    for durability in Synced::ALL.into_iter().flat_map(each) {
        if !strongest.satisfies(durability) {
            match d.try_open(log(0), &spec(durability)) {
                Completion::Refused { why, .. } => {
                    assert!(matches!(why, Refusal::Unsupported(_)), "{why:?}");
                }
                other => panic!("{durability} was answered with {other:?}"),
            }
        }
    }
}

/// Makes every call on a log that is not open.
pub fn a_log_that_is_not_open_is_told_so<S: Subject>(d: &mut Driver<'_, S>) {
    let no = log(3);
    assert_eq!(
        d.refused(&Maker::new(no).batch(&[("a", "x")])),
        Refusal::NoLog
    );
    let page = TopicPage {
        limit: 10,
        ..TopicPage::default()
    };
    let answers = [
        d.ask(|t| Call::Bounds { t, log: no }),
        d.ask(|t| Call::Clock { t, log: no }),
        d.ask(|t| Call::FindTime {
            t,
            log: no,
            at: AppendTime(0),
        }),
        d.ask(|t| Call::Topics {
            t,
            log: no,
            page: Box::new(page.clone()),
        }),
        d.ask(|t| Call::Trim {
            t,
            log: no,
            before: Sequence(1),
        }),
        d.ask(|t| Call::Seal {
            t,
            log: no,
            next: MapEpoch(2),
        }),
    ];
    for answer in answers {
        match answer {
            Completion::Refused { why, .. } => assert_eq!(why, Refusal::NoLog),
            other => panic!("answered with {other:?}"),
        }
    }
    let reader = d.read_all(no, 1);
    assert_eq!(d.seen(reader), [Seen::Ended(Some(Refusal::NoLog))]);
}

/// Asks for the bounds of an empty log, and of one with something in it.
pub fn bounds_say_what_is_there<S: Subject>(d: &mut Driver<'_, S>) {
    let empty = d.open(log(0));
    assert_eq!((empty.first_time, empty.bytes), (None, 0));
    let batch = Maker::new(log(0)).batch(&[("a", "x"), ("b", "y")]);
    let Completion::Appended { at, .. } = d.offer(&batch) else {
        panic!("not appended");
    };
    d.append(log(0), &[("a", "z")]);
    let bounds = d.bounds(log(0));
    assert_eq!((bounds.first, bounds.next), (Sequence(1), Sequence(4)));
    assert_eq!(bounds.incarnation, empty.incarnation);
    assert_eq!(bounds.first_time, Some(at));
    let bytes = batch.bytes().len() as u64;
    assert!(
        bounds.bytes > bytes && bounds.bytes < bytes * 3,
        "{bounds:?}"
    );
    assert_eq!(d.open(log(0)), bounds);
}

/// Makes the calls that the capabilities deny, and those that no storage supports yet.
pub fn what_it_cannot_do_is_refused<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let can = d.capabilities();
    let batch = Maker::new(log(0)).batch(&[("a", "x")]);
    let extent = d.store(&batch);
    let copy = Stored {
        base: extent.first,
        extent,
        appended: AppendTime(0),
        batch,
    };
    if !can.heal {
        match d.ask(|t| Call::Heal {
            t,
            log: log(0),
            copy: Box::new(copy),
        }) {
            Completion::Refused { why, .. } => {
                assert!(matches!(why, Refusal::Unsupported(_)), "{why:?}");
            }
            other => panic!("heal was answered with {other:?}"),
        }
    }
    if !can.provisions {
        let spec = Box::new(spec(can.strongest));
        let (log, logs, origin) = (log(0), 1, Box::default());
        let provision = d.call(|t| Call::Provision { t, log, logs, spec });
        let withdraw = d.call(|t| Call::Withdraw {
            t,
            log,
            logs,
            origin,
        });
        for tag in [provision, withdraw] {
            match d.answer(tag) {
                Completion::Refused { why, .. } => {
                    assert!(matches!(why, Refusal::Unsupported(_)), "{why:?}");
                }
                other => panic!("provision and withdraw were answered with {other:?}"),
            }
        }
    }
    let mut denied = vec![Scope {
        direction: Direction::Backward,
        ..Scope::default()
    }];
    if !can.topic_index {
        denied.push(Scope {
            filter: ScopeFilter::Topic(Default::default()),
            ..Scope::default()
        });
    }
    for scope in denied {
        let reader = d.read(log(0), 1, scope, u32::MAX);
        let seen = d.seen(reader);
        let refused = matches!(seen[..], [Seen::Ended(Some(Refusal::Unsupported(_)))]);
        assert!(refused, "{seen:?}");
    }
}
