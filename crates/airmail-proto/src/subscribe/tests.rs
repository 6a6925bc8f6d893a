use super::*;
use crate::message::position_of;
use airmail_model::batch::BatchTarget;
use airmail_model::frame::{
    Channel, Delivered, Delivery, Expired, GapReason, Matches, Reply, State, Wanted,
};
use airmail_model::position::LogPosition;
use airmail_model::verdict::ClockReading;
use airmail_model::{
    Batch, BatchEncoder, Checked, Incarnation, Lane, LogId, LogIndex, MapEpoch, Message, Mono,
    TopicName,
};
use prost::Message as _;

const LOG: LogId = LogId {
    namespace: NamespaceId(4),
    lane: Lane::Normal,
    index: LogIndex(3),
};

fn there_and_back(reply: &Reply) -> Reply {
    let wire = reply_to_proto(reply, |_| MapEpoch(7)).unwrap();
    match reply_from_proto(wire, false).unwrap() {
        FromNode::Reply(reply) => reply,
        other => panic!("a reply became {other:?}"),
    }
}

#[test]
fn every_gap_survives_on_every_channel() {
    for why in [GapReason::Unused, GapReason::Retention, GapReason::Loss] {
        for channel in [
            Channel::Live,
            Channel::Detached(SubscriptionId(0), Generation(9)),
        ] {
            let gap = Reply::Gap {
                channel,
                log: LOG,
                previous: Sequence(3),
                last: Sequence(9),
                why,
            };
            assert_eq!(format!("{:?}", there_and_back(&gap)), format!("{gap:?}"));
        }
    }
}

#[test]
fn every_state_survives() {
    let (incarnation, next) = (Incarnation(5), Sequence(8));
    let place = LogPosition {
        log: LOG,
        incarnation,
        next,
    };
    let high = LogId {
        lane: Lane::High,
        ..LOG
    };
    let both = [
        place,
        LogPosition {
            log: high,
            incarnation: Incarnation(6),
            next: Sequence(1),
        },
    ];
    let states = [
        State::live(place),
        State::Live {
            places: both.into_iter().collect(),
        },
        State::Detached {
            log: LOG,
            incarnation,
            next,
            resumed: false,
            lost_before: None,
            beside: None,
        },
        State::Detached {
            log: LOG,
            incarnation,
            next,
            resumed: true,
            lost_before: Some(Sequence(99)),
            beside: Some(LogPosition { log: high, ..place }),
        },
        State::complete(place),
        State::Complete {
            places: both.into_iter().collect(),
        },
        State::Changed {
            places: both.into_iter().collect(),
        },
        State::Changed {
            places: airmail_model::frame::Places::new(),
        },
        State::Unchanged(namespace_not_found("nowhere")),
        State::Removed,
        State::Failed(namespace_not_found("nowhere")),
    ];
    for state in states {
        let status = Reply::Status {
            subscription: SubscriptionId(2),
            generation: Generation(6),
            state,
        };
        assert_eq!(
            format!("{:?}", there_and_back(&status)),
            format!("{status:?}")
        );
    }
}

#[test]
fn a_detached_status_that_names_no_log_of_the_other_lane_beside_its_own_is_refused() {
    let detached = State::Detached {
        log: LOG,
        incarnation: Incarnation(5),
        next: Sequence(8),
        resumed: false,
        lost_before: None,
        beside: None,
    };
    let status = Reply::Status {
        subscription: SubscriptionId(2),
        generation: Generation(6),
        state: detached,
    };
    let twin = LogId {
        lane: Lane::High,
        ..LOG
    };
    let of_another_index = LogId {
        index: LogIndex(4),
        ..twin
    };
    for further in [vec![LOG], vec![of_another_index], vec![twin, twin]] {
        let mut wire = reply_to_proto(&status, |_| MapEpoch(7)).unwrap();
        let Some(v1::subscribe_response::Kind::Status(status)) = &mut wire.kind else {
            panic!("{wire:?}");
        };
        let at = |log| v1::At {
            log: Some(crate::message::log_to_proto(log)),
            ..Default::default()
        };
        status.further = further.into_iter().map(at).collect();
        let error = reply_from_proto(wire, false).unwrap_err();
        assert_eq!(error.field_name(), "status.further");
    }
}

/// A batch of so many messages to one topic, with this payload.
fn batch_of(messages: usize, payload: &[u8]) -> Checked<Batch> {
    let topic = TopicName::new("a", &Limits::DEFAULT).unwrap();
    let message = Message::new(topic, payload.to_vec());
    let mut encoder = BatchEncoder::new(LOG.namespace);
    for _ in 0..messages {
        encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    }
    encoder.finish(&BatchTarget {
        log: LOG,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}

#[test]
fn a_head_and_the_batch_behind_it_are_the_delivery() {
    let channels = [
        Channel::Live,
        Channel::Detached(SubscriptionId(1), Generation(9)),
    ];
    for payload_bytes in [0, 1, 100, 20_000] {
        let body = Delivered::Whole(batch_of(1, &vec![7; payload_bytes]));
        let ids = [1, 1 << 20].map(SubscriptionId).to_vec();
        let matches = Some(Arc::new(Matches::new(&[2], ids).unwrap()));
        let kinds = channels.into_iter().zip([matches, None]);
        for (channel, matches) in kinds {
            let delivery = Delivery {
                channel,
                log: LOG,
                previous: Sequence(3),
                last: Sequence(1 << 40),
                base: Sequence(4),
                appended: AppendTime(1_700_000_000_000_000),
                clock: Some(ClockReading {
                    clock: AppendTime(1_700_000_000_000_001),
                    at: Mono(u64::MAX),
                }),
                body: body.clone(),
                matches,
            };
            let head = DeliveryHead::new(&delivery);
            let mut bytes = head.bytes().to_vec();
            bytes.extend_from_slice(&body.to_bytes());
            bytes.extend_from_slice(head.tail());
            assert_eq!(bytes.len(), head.message_len());
            let delivery = delivery_to_proto(&delivery);
            let kind = Some(v1::subscribe_response::Kind::Delivery(delivery));
            let found = v1::SubscribeResponse::decode(&bytes[..]).unwrap();
            assert_eq!(found, v1::SubscribeResponse { kind });
        }
    }
}

#[test]
fn a_delivery_is_refused_that_has_payloads_where_none_were_asked_for_and_the_other_way_round() {
    let batch = batch_of(1, b"payload");
    let headers = Delivered::Slice(batch.headers_of(&[0]).unwrap());
    let wire = |body| {
        delivery_to_proto(&Delivery {
            channel: Channel::Live,
            log: LOG,
            previous: Sequence(0),
            last: Sequence(1),
            base: Sequence(1),
            appended: AppendTime(7),
            clock: None,
            body,
            matches: None,
        })
    };
    let (whole, headers) = (wire(Delivered::Whole(batch)), wire(headers));
    assert!(delivery_from_proto(whole.clone(), false).is_ok());
    let read = delivery_from_proto(headers.clone(), true).unwrap();
    assert!(read.body.into_batch().record(0).payload.is_empty());
    let error = delivery_from_proto(whole, true).unwrap_err();
    assert_eq!(
        (error.code(), error.field_name(), error.found()),
        (
            ErrorCode::Unimplemented,
            "headers_only",
            "a delivery with payloads"
        )
    );
    let error = delivery_from_proto(headers, false).unwrap_err();
    assert_eq!(error.field_name(), "batch.flags");
}

#[test]
fn word_of_what_has_expired_survives_and_names_something() {
    let expired = Expired {
        subscription: SubscriptionId(3),
        generation: Generation(4),
        log: LOG,
        numbers: vec![Sequence(7), Sequence(1 << 40)],
    };
    let clock = Reply::Clock {
        asked: Mono(5),
        node: Mono(6),
    };
    for reply in [Reply::Expired(expired.clone()), clock] {
        assert_eq!(
            format!("{:?}", there_and_back(&reply)),
            format!("{reply:?}")
        );
    }
    for numbers in [vec![], vec![Sequence(2), Sequence(1)]] {
        let wrong = Expired {
            numbers,
            ..expired.clone()
        };
        let error = expired_from_proto(&expired_to_proto(&wrong)).unwrap_err();
        assert_eq!(error.field_name(), "expired.numbers");
    }
}

#[test]
fn whom_messages_are_for_survives_and_what_does_not_add_up_is_refused() {
    let batch = batch_of(3, b"payload");
    let wire = |counts: &[u32], all: &[u32]| v1::Delivery {
        log: Some(crate::message::log_to_proto(LOG)),
        body: Some(v1::delivery::Body::Batch(batch.bytes().clone())),
        matches: Some(v1::Matches {
            counts: counts.to_vec(),
            subscriptions: all.to_vec(),
        }),
        ..Default::default()
    };
    for (counts, all) in [(&[1, 2, 1][..], &[5, 0, 9, 5][..]), (&[], &[4, 4, 7])] {
        let delivery = delivery_from_proto(wire(counts, all), false).unwrap();
        let back = delivery_to_proto(&delivery).matches.unwrap();
        assert_eq!((&*back.counts, &*back.subscriptions), (counts, all));
    }
    let wrong: [(&[u32], &[u32]); 4] = [
        (&[], &[1, 2]),
        (&[1, 1], &[1, 2]),
        (&[1, 0, 1], &[1, 2]),
        (&[1, 1, 2], &[1, 2, 3]),
    ];
    for (counts, all) in wrong {
        let error = delivery_from_proto(wire(counts, all), false).unwrap_err();
        assert_eq!(error.field_name(), "delivery.matches");
    }
}

#[test]
fn a_change_survives() {
    let change = Change {
        subscription: SubscriptionId(3),
        generation: Generation(4),
        filter: Arc::new(Filter::parse("a = 1 and has b").unwrap()),
    };
    let back = change_from_proto(&change_to_proto(&change)).unwrap();
    assert_eq!(back, change);
    let none = v1::Change::default();
    let error = change_from_proto(&none).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FilterInvalid);
}

#[test]
fn a_mark_survives() {
    let mark = Reply::Mark {
        log: LOG,
        previous: Sequence(3),
        next: Sequence(9),
    };
    assert_eq!(format!("{:?}", there_and_back(&mark)), format!("{mark:?}"));
}

#[test]
fn a_subscription_survives_with_every_start() {
    let position = position_of(LOG, Incarnation(1), MapEpoch(2), Sequence(3));
    for start in [
        Start::Latest,
        Start::Earliest,
        Start::Sequence(Sequence(12)),
        Start::Time(AppendTime(13)),
        Start::Position(position),
    ] {
        let subscribe = Subscribe {
            subscription: SubscriptionId(1),
            generation: Generation(2),
            namespace: NamespaceId(4),
            wanted: Wanted::Topic(TopicName::hash_of(NamespaceId(4), "a")),
            start,
            until: None,
            tell_expired: true,
            filter: None,
            headers_only: true,
            matches: true,
            lanes: Lanes::Each,
        };
        let wire = subscribe_to_proto(&subscribe, "logs", "a", true);
        let back = subscribe_from_proto(&wire, &Limits::DEFAULT, |name| {
            (name == "logs").then_some(NamespaceId(4))
        });
        assert_eq!(back.unwrap(), subscribe);
    }
}

/// A subscription from a number on, in lane high from there.
fn with_high(high: &str) -> v1::Add {
    let start = v1::Start {
        high: high.to_owned(),
        ..start_to_proto(&Start::Sequence(Sequence(12)))
    };
    v1::Add {
        topic: "a".into(),
        start: Some(start),
        ..Default::default()
    }
}

const HIGH: LogId = LogId {
    lane: Lane::High,
    ..LOG
};

/// A subscription of [`LOG`]'s namespace.
fn of_logs(add: &v1::Add) -> Result<Subscribe, Error> {
    subscribe_from_proto(add, &Limits::DEFAULT, |_| Some(LOG.namespace))
}

#[test]
fn where_a_subscription_goes_on_in_lane_high_survives() {
    let position = position_of(HIGH, Incarnation(7), MapEpoch(1), Sequence(3));
    let subscribe = of_logs(&with_high(&position.to_string())).unwrap();
    assert_eq!(subscribe.start, Start::Sequence(Sequence(12)));
    assert_eq!(subscribe.lanes, Lanes::HighFrom(position.logs[0]));
    let back = subscribe_to_proto(&subscribe, "", "a", true);
    assert_eq!(of_logs(&back).unwrap(), subscribe);
}

#[test]
fn only_a_position_in_one_log_of_lane_high_says_where_to_go_on_in_it() {
    let of = |log| position_of(log, Incarnation(7), MapEpoch(1), Sequence(3));
    let beside = LogId {
        index: LogIndex(HIGH.index.0 + 1),
        ..HIGH
    };
    let both = |one: LogId, other: LogId| Position {
        logs: [of(one).logs, of(other).logs].concat(),
        ..of(one)
    };
    for position in [of(LOG), both(HIGH, beside), both(LOG, HIGH)] {
        let error = read(&with_high(&position.to_string())).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert_eq!(error.field_name(), "start.high");
    }
    for garbage in ["x", "12", &of(HIGH).to_string()[1..]] {
        let error = read(&with_high(garbage)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PositionInvalid);
    }
}

/// An Add of this selector.
fn selection(selector: v1::add::Selector, log: Option<u32>) -> v1::Add {
    v1::Add {
        selector: Some(selector),
        log,
        ..Default::default()
    }
}

fn read(add: &v1::Add) -> Result<Subscribe, Error> {
    subscribe_from_proto(add, &Limits::DEFAULT, |_| Some(NamespaceId(1)))
}

#[test]
fn a_selection_survives_with_every_selector() {
    for (selector, log) in [
        (v1::add::Selector::Prefix("a/".into()), Some(3)),
        (v1::add::Selector::Pattern("a/*/\\*b**".into()), Some(0)),
        (v1::add::Selector::Everything(true), None),
    ] {
        let add = selection(selector, log);
        let subscribe = read(&add).unwrap();
        let back = subscribe_to_proto(&subscribe, "", "", false);
        assert_eq!((&back.selector, back.log), (&add.selector, add.log));
        assert_eq!(read(&back).unwrap(), subscribe);
        let past = v1::history_request::Selector::from(add.selector.clone().unwrap());
        assert_eq!(Some(v1::add::Selector::from(past)), add.selector);
    }
}

#[test]
fn what_is_no_selection_is_refused_by_the_field_that_is_wrong() {
    let refused = |add: v1::Add| read(&add).unwrap_err().to_string();
    let of = |selector| selection(selector, None);
    let everything = of(v1::add::Selector::Everything(true));
    for (add, field) in [
        (of(v1::add::Selector::Everything(false)), "everything"),
        (of(v1::add::Selector::Pattern("a\\".into())), "pattern"),
        (of(v1::add::Selector::Pattern(String::new())), "pattern"),
        (of(v1::add::Selector::Prefix("a".repeat(1025))), "prefix"),
        (
            selection(v1::add::Selector::Everything(true), Some(4096)),
            "log",
        ),
        (
            v1::Add {
                topic: "a".into(),
                ..everything
            },
            "topic",
        ),
        (
            v1::Add {
                topic: "a".into(),
                log: Some(0),
                ..Default::default()
            },
            "log",
        ),
    ] {
        let error = refused(add);
        let is_named = error.starts_with("SUBSCRIPTION_INVALID: ");
        assert!(is_named && error.contains(&format!("({field}")), "{error}");
    }
}

#[test]
fn what_is_reserved_is_refused_by_name() {
    let name = v1::Add {
        topic: "a".into(),
        name: "mine".into(),
        ..Default::default()
    };
    let error = subscribe_from_proto(&name, &Limits::DEFAULT, |_| Some(NamespaceId(1)));
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unimplemented);
    assert_eq!(error.field_name(), "name");
}

#[test]
fn a_filter_is_read_from_its_text_and_written_as_one() {
    let add = |filter: &str| v1::Add {
        topic: "a".into(),
        filter: filter.into(),
        ..Default::default()
    };
    let read = |add| subscribe_from_proto(&add, &Limits::DEFAULT, |_| Some(NamespaceId(1)));
    let subscribe = read(add("x>1 AND (y='z')")).unwrap();
    let back = subscribe_to_proto(&subscribe, "default", "a", false);
    assert_eq!(back.filter, "x > 1 and y = 'z'");
    assert_eq!(read(back).unwrap(), subscribe);
    assert_eq!(read(add("")).unwrap().filter, None);
    assert_eq!(
        read(add("x >")).unwrap_err().code(),
        ErrorCode::FilterInvalid
    );
}

#[test]
fn latest_is_no_end_of_a_history() {
    let until = start_to_proto(&Start::Latest);
    let error = until_from_proto(Some(&until)).unwrap_err();
    assert_eq!((error.field_name(), error.found()), ("until", "latest"));
    for until in [Until::Sequence(Sequence(4)), Until::Time(AppendTime(5))] {
        let back = until_from_proto(until_to_proto(until).as_ref());
        assert_eq!(back.unwrap(), until);
    }
    assert_eq!(until_from_proto(None).unwrap(), Until::Now);
}
