//! Messages of every kind, at random.

#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]
#![allow(dead_code, reason = "each test file uses some of it")]

use airmail_link::{Ancestor, FromHost, Heartbeat, ToHost};
use airmail_log::{
    Bounds, Call, Completion, Direction, GapWhy, LogSpec, Origin, ReaderId, Refusal, Scope,
    ScopeFilter, Soundness, Stored, Tag, TopicPage, TopicSeen, WantEdit,
};
use airmail_model::batch::BatchTarget;
use airmail_model::provisions::PROVISIONS_BYTES_MAX;
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Durability, Extent, GroupId, Holder, Incarnation,
    Lane, Limits, LogId, LogIndex, MapEpoch, Message, NamespaceId, NodeId, ProducerSequence,
    Provisions, Retention, Sequence, StorageName, Synced, Term, TopicHash, TopicName,
};
use proptest::option;
use proptest::prelude::*;
use std::time::Duration;

/// A batch of one message of so many bytes.
pub(crate) fn batch(payload: usize) -> Checked<Batch> {
    let log = LogId::SYSTEM;
    let topic = TopicName::new("topic", &Limits::DEFAULT).unwrap();
    let mut encoder = BatchEncoder::new(log.namespace);
    let message = Message::new(topic, vec![b'x'; payload]);
    encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 5,
    })
}

pub(crate) fn append(batch: Checked<Batch>) -> ToHost {
    ToHost::Call {
        generation: 1,
        call: Call::Append {
            t: Tag(2),
            log: LogId::SYSTEM,
            map: MapEpoch(3),
            batch,
            sole: false,
        },
    }
}

fn batches() -> impl Strategy<Value = Checked<Batch>> {
    prop_oneof![0..300_usize, 4_000..4_200_usize, 16_000..17_000_usize].prop_map(batch)
}

fn log() -> impl Strategy<Value = LogId> {
    (any::<u32>(), any::<bool>(), any::<u16>()).prop_map(|(namespace, high, index)| LogId {
        namespace: NamespaceId(namespace),
        lane: if high { Lane::High } else { Lane::Normal },
        index: LogIndex(index),
    })
}

fn tag() -> impl Strategy<Value = Tag> {
    any::<u64>().prop_map(Tag)
}

fn reader() -> impl Strategy<Value = ReaderId> {
    any::<u64>().prop_map(ReaderId)
}

fn number() -> impl Strategy<Value = Sequence> {
    any::<u64>().prop_map(Sequence)
}

fn epoch() -> impl Strategy<Value = MapEpoch> {
    any::<u32>().prop_map(MapEpoch)
}

fn time() -> impl Strategy<Value = AppendTime> {
    any::<i64>().prop_map(AppendTime)
}

fn extent() -> impl Strategy<Value = Extent> {
    (any::<u64>(), any::<u32>()).prop_map(|(first, more)| Extent {
        first: Sequence(first),
        last: Sequence(first.saturating_add(more.into())),
    })
}

fn durability() -> impl Strategy<Value = Durability> {
    let synced = prop::sample::select(Synced::ALL.to_vec());
    (synced, 1..=u8::MAX).prop_map(|(synced, copies)| Durability { synced, copies })
}

fn storage() -> impl Strategy<Value = StorageName> {
    let names = ["a", "fast-1", "an-name-of-thirty-two-characters"];
    option::of(prop::sample::select(names.to_vec()))
        .prop_map(|name| name.map_or(StorageName::FIRST, |name| StorageName::new(name).unwrap()))
}

fn origin() -> impl Strategy<Value = Box<Origin>> {
    (storage(), provisions()).prop_map(|(storage, provisions)| {
        Box::new(Origin {
            storage,
            provisions,
        })
    })
}

fn spec() -> impl Strategy<Value = LogSpec> {
    let retention = (option::of(any::<u64>()), option::of(any::<u64>()));
    let storage = (storage(), provisions(), soundness());
    (durability(), retention, epoch(), number(), storage).prop_map(
        |(durability, (time_ms, bytes), epoch, as_of, (storage, provisions, soundness))| LogSpec {
            durability,
            retention: Retention { time_ms, bytes },
            epoch,
            as_of,
            storage,
            provisions,
            soundness,
        },
    )
}

fn soundness() -> impl Strategy<Value = Soundness> {
    (any::<u32>(), number(), any::<bool>()).prop_map(|(cuts, cut_at, is_suspended)| Soundness {
        cuts,
        cut_at,
        is_suspended,
    })
}

fn provisions() -> impl Strategy<Value = Provisions> {
    let bytes = prop::collection::vec(any::<u8>(), 0..=PROVISIONS_BYTES_MAX);
    bytes.prop_map(|bytes| Provisions::new(&bytes).unwrap())
}

fn topics() -> impl Strategy<Value = Vec<TopicHash>> {
    prop::collection::vec(any::<u128>().prop_map(TopicHash), 0..20)
}

fn scope() -> impl Strategy<Value = Scope> {
    let filter = prop_oneof![
        Just(ScopeFilter::All),
        Just(ScopeFilter::Wanted),
        any::<u128>().prop_map(|topic| ScopeFilter::Topic(TopicHash(topic))),
    ];
    (filter, option::of(number()), any::<bool>()).prop_map(|(filter, until, backward)| Scope {
        filter,
        until,
        direction: if backward {
            Direction::Backward
        } else {
            Direction::Forward
        },
    })
}

fn stored() -> impl Strategy<Value = Stored> {
    (number(), extent(), time(), batches()).prop_map(|(base, extent, appended, batch)| Stored {
        base,
        extent,
        appended,
        batch,
    })
}

fn read() -> impl Strategy<Value = Call> {
    (reader(), log(), number(), scope(), any::<u32>()).prop_map(|(r, log, from, scope, credit)| {
        Call::Read {
            r,
            log,
            from,
            scope: Box::new(scope),
            credit,
        }
    })
}

fn of_reader() -> impl Strategy<Value = Call> {
    let want = (reader(), any::<u32>(), topics(), topics(), any::<bool>());
    prop_oneof![
        read(),
        (reader(), any::<u32>()).prop_map(|(r, bytes)| Call::Credit { r, bytes }),
        reader().prop_map(|r| Call::Stop { r }),
        want.prop_map(|(r, edit, add, drop, more)| Call::Want {
            r,
            edit,
            topics: Box::new(WantEdit { add, drop, more })
        }),
    ]
}

fn tagged() -> impl Strategy<Value = Call> {
    let page = ("[a-z/é]{0,9}", "[a-z]{0,9}", any::<u32>());
    prop_oneof![
        (tag(), log(), epoch(), batches()).prop_map(|(t, log, map, batch)| Call::Append {
            t,
            log,
            map,
            batch,
            sole: false,
        }),
        (tag(), log(), spec()).prop_map(|(t, log, spec)| Call::Open {
            t,
            log,
            spec: Box::new(spec)
        }),
        (tag(), log(), time()).prop_map(|(t, log, at)| Call::FindTime { t, log, at }),
        (tag(), log()).prop_map(|(t, log)| Call::Bounds { t, log }),
        (tag(), log()).prop_map(|(t, log)| Call::Clock { t, log }),
        (tag(), log(), page).prop_map(|(t, log, (prefix, after, limit))| Call::Topics {
            t,
            log,
            page: Box::new(TopicPage {
                prefix,
                after,
                limit
            })
        }),
        (tag(), log(), number()).prop_map(|(t, log, before)| Call::Trim { t, log, before }),
        (tag(), log(), epoch()).prop_map(|(t, log, next)| Call::Seal { t, log, next }),
        (tag(), log(), stored()).prop_map(|(t, log, copy)| Call::Heal {
            t,
            log,
            copy: Box::new(copy)
        }),
        (tag(), log()).prop_map(|(t, log)| Call::Renew { t, log }),
        (tag(), log(), any::<u16>(), spec()).prop_map(|(t, log, logs, spec)| Call::Provision {
            t,
            log,
            logs,
            spec: Box::new(spec)
        }),
        (tag(), log(), any::<u16>(), origin()).prop_map(|(t, log, logs, origin)| {
            Call::Withdraw {
                t,
                log,
                logs,
                origin,
            }
        }),
        (tag(), log(), number(), origin()).prop_map(|(t, log, as_of, origin)| Call::Delete {
            t,
            log,
            as_of,
            origin,
        }),
    ]
}

/// Messages to the node that has the logs.
pub(crate) fn to_host() -> impl Strategy<Value = ToHost> {
    prop_oneof![
        1 => any::<u64>().prop_map(|generation| ToHost::Begin { generation }),
        1 => any::<u64>().prop_map(|generation| ToHost::Closing { generation }),
        1 => (any::<u32>(), any::<u64>())
            .prop_map(|(children, asked_us)| ToHost::Below { children, asked_us }),
        4 => (any::<u64>(), of_reader())
            .prop_map(|(generation, call)| ToHost::Call { generation, call }),
        8 => (any::<u64>(), tagged())
            .prop_map(|(generation, call)| ToHost::Call { generation, call }),
        1 => (any::<u64>(), reader(), read())
            .prop_map(|(generation, of, call)| ToHost::Resume { generation, of, call }),
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_micros)
}

fn refusal() -> impl Strategy<Value = Refusal> {
    let holder = (
        option::of(any::<u64>()),
        option::of(any::<u32>()),
        any::<u64>(),
    );
    prop_oneof![
        duration().prop_map(|retry_after| Refusal::Full { retry_after }),
        duration().prop_map(|retry_after| Refusal::Busy { retry_after }),
        duration().prop_map(|retry_after| Refusal::Away { retry_after }),
        epoch().prop_map(|current| Refusal::StaleMap { current }),
        epoch().prop_map(|next| Refusal::Sealed { next }),
        (any::<u64>(), any::<u64>()).prop_map(|(expected, found)| Refusal::OutOfOrder {
            expected: ProducerSequence(expected),
            found: ProducerSequence(found),
        }),
        Just(Refusal::UnknownProducer),
        Just(Refusal::Fenced),
        Just(Refusal::NoLog),
        holder.prop_map(|(node, group, term)| Refusal::Elsewhere(Holder {
            node: node.map(NodeId),
            group: group.map(GroupId),
            term: Term(term),
        })),
        "[a-z ]{0,20}".prop_map(|what| Refusal::Unsupported(what.into())),
        Just(Refusal::OutcomeUnknown),
        "[a-z ]{0,20}".prop_map(Refusal::Io),
        "[a-z ]{0,20}".prop_map(Refusal::Suspended),
    ]
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let numbers = (number(), number(), number());
    let kept = (option::of(time()), any::<u64>());
    (numbers, any::<u64>(), kept, option::of(epoch())).prop_map(
        |((first, next, reach), incarnation, (first_time, bytes), sealed)| Bounds {
            first,
            next,
            reach,
            incarnation: Incarnation(incarnation),
            first_time,
            bytes,
            sealed,
        },
    )
}

fn answer() -> impl Strategy<Value = Completion> {
    let appended = (
        (tag(), extent(), time()),
        (durability(), any::<bool>(), any::<bool>()),
    );
    let topic = ("[a-z/]{0,9}", number()).prop_map(|(name, last)| TopicSeen { name, last });
    prop_oneof![
        (tag(), provisions()).prop_map(|(t, provisions)| Completion::Provisioned {
            t,
            provisions: Box::new(provisions)
        }),
        (tag(), bounds()).prop_map(|(t, bounds)| Completion::Opened { t, bounds }),
        (tag(), bounds()).prop_map(|(t, bounds)| Completion::Bounds { t, bounds }),
        appended.prop_map(|((t, extent, at), (held, duplicate, exact))| {
            Completion::Appended {
                t,
                extent,
                at,
                held,
                duplicate,
                exact,
            }
        }),
        (tag(), refusal()).prop_map(|(t, why)| Completion::Refused { t, why }),
        (tag(), number()).prop_map(|(t, at)| Completion::Found { t, at }),
        (tag(), time()).prop_map(|(t, at)| Completion::Clock { t, at }),
        (tag(), prop::collection::vec(topic, 0..5))
            .prop_map(|(t, page)| Completion::Topics { t, page }),
        tag().prop_map(|t| Completion::Done { t }),
        (log(), bounds()).prop_map(|(log, bounds)| Completion::Gained { log, bounds }),
        log().prop_map(|log| Completion::Lost { log }),
    ]
}

fn mark() -> impl Strategy<Value = Completion> {
    prop_oneof![
        (reader(), number()).prop_map(|(r, next)| Completion::Tail { r, next }),
        (reader(), number(), epoch()).prop_map(|(r, last, next)| Completion::Sealed {
            r,
            last,
            next
        }),
        (reader(), any::<u32>(), option::of(number()))
            .prop_map(|(r, edit, at)| Completion::Effective { r, edit, at }),
        reader().prop_map(|r| Completion::WantsLost { r }),
        (reader(), option::of(refusal())).prop_map(|(r, why)| Completion::Ended { r, why }),
    ]
}

fn range() -> impl Strategy<Value = Completion> {
    let whys = vec![GapWhy::Unused, GapWhy::Retention, GapWhy::Loss];
    prop_oneof![
        (reader(), stored()).prop_map(|(r, stored)| Completion::Batch { r, stored }),
        (reader(), extent(), prop::sample::select(whys))
            .prop_map(|(r, extent, why)| Completion::Gap { r, extent, why }),
    ]
}

/// Messages of the node that has the logs.
pub(crate) fn from_host() -> impl Strategy<Value = FromHost> {
    prop_oneof![
        4 => (any::<u64>(), answer())
            .prop_map(|(generation, completion)| FromHost::Told { generation, completion }),
        3 => (any::<u64>(), mark())
            .prop_map(|(generation, completion)| FromHost::Told { generation, completion }),
        4 => (any::<u64>(), number(), range()).prop_map(|(generation, previous, completion)| {
            FromHost::Range { generation, previous, completion }
        }),
        1 => (any::<u64>(), reader()).prop_map(|(generation, r)| FromHost::Behind { generation, r }),
        1 => (heartbeat(), any::<u64>()).prop_map(|(heartbeat, asked_us)| FromHost::Heartbeat {
            heartbeat: Box::new(heartbeat),
            asked_us,
        }),
    ]
}

fn heartbeat() -> impl Strategy<Value = Heartbeat> {
    let above = (any::<u64>(), "[a-z]{0,9}", "[a-z:0-9]{0,9}");
    let above = above.prop_map(|(node, name, address)| Ancestor {
        node: NodeId(node),
        name,
        address,
    });
    let path = prop::collection::vec(above, 0..4);
    (any::<u64>(), any::<u64>(), path).prop_map(|(boot, count, path)| Heartbeat {
        boot,
        count,
        path,
    })
}
