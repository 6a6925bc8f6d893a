use super::*;
use crate::core::{GapSeen, Subscriber, SubscriberConfig, SubscriberOutput, SubscriptionSpec};
use crate::received::BatchCursor;
use crate::sample_batch::batch_in;
use crate::subscription::places::places_of;
use airmail_model::frame::{
    Channel, Delivered, Delivery, GapReason, Places, Reply, Request, Start, State, Wanted,
};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Extent, Incarnation, LogId, LogIndex, Mono, NamespaceId, Sequence, TopicName,
};

const LIFE: Incarnation = Incarnation(7);
const NAMESPACE: NamespaceId = NamespaceId(1);
const NORMAL: Option<Lane> = Some(Lane::Normal);
const HIGH: Option<Lane> = Some(Lane::High);
/// More than all that is here has.
const CREDIT: usize = 1 << 20;

fn log(lane: Lane) -> LogId {
    LogId {
        namespace: NAMESPACE,
        lane,
        index: LogIndex(0),
    }
}

fn place(lane: Lane, next: u64) -> LogPosition {
    LogPosition {
        log: log(lane),
        incarnation: LIFE,
        next: Sequence(next),
    }
}

fn gap(lane: Lane, number: u64) -> Event {
    Event::Gap(GapSeen {
        log: log(lane),
        incarnation: LIFE,
        extent: Extent {
            first: Sequence(number),
            last: Sequence(number),
        },
        why: GapReason::Retention,
    })
}

fn live(lanes: &[(Lane, u64)]) -> State {
    let places = lanes.iter().map(|(lane, next)| place(*lane, *next));
    State::Live {
        places: places.collect(),
    }
}

/// A core with a subscription that is live in both lanes, from 5 in normal and from 20 in high.
fn subscribed() -> (Subscriber, SubscriptionKey) {
    let mut core = Subscriber::new(SubscriberConfig::default());
    let key = core.add(SubscriptionSpec {
        namespace: NAMESPACE,
        wanted: Wanted::Topic(TopicName::hash_of(NAMESPACE, "t")),
        start: Start::Latest,
        until: None,
        tell_expired: false,
        filter: None,
        headers_only: false,
    });
    core.connected();
    let mut out = SubscriberOutput::default();
    core.poll(Mono(0), &mut out);
    let Some(Request::Add(add)) = out.requests.pop() else {
        panic!("an Add expected");
    };
    let status = Reply::Status {
        subscription: add.subscription,
        generation: add.generation,
        state: live(&[(Lane::Normal, 5), (Lane::High, 20)]),
    };
    core.reply(Mono(0), status, &mut out);
    (core, key)
}

/// The core is told of two messages of a lane, from this number on.
fn deliver(core: &mut Subscriber, arrived: &mut Arrived, lane: Lane, first: u64) {
    let delivery = Reply::Delivery(Delivery {
        channel: Channel::Live,
        log: log(lane),
        previous: Sequence(first - 1),
        last: Sequence(first + 1),
        base: Sequence(first),
        appended: AppendTime(0),
        clock: None,
        body: Delivered::Whole(batch_in(log(lane), ["t", "t"])),
        matches: None,
    });
    let mut out = SubscriberOutput::default();
    core.reply(Mono(0), delivery, &mut out);
    arrived.extend(out.events.drain(..));
}

/// The lane and number of all that is handed over; of a status no number.
fn handed_over(arrived: &mut Arrived) -> Vec<(Option<Lane>, u64)> {
    let events = std::iter::from_fn(|| arrived.pop());
    let told = events.map(|(_, event)| match &event {
        Event::Gap(gap) => (Some(gap.log.lane), gap.extent.first.0),
        Event::Status(state) => (state.lane(), 0),
        other => panic!("{other:?}"),
    });
    told.collect()
}

#[test]
fn a_position_taken_from_what_overtook_does_not_skip_what_was_overtaken() {
    let (mut core, key) = subscribed();
    let mut arrived = Arrived::default();
    deliver(&mut core, &mut arrived, Lane::Normal, 5);
    deliver(&mut core, &mut arrived, Lane::High, 20);
    let next = |arrived: &Arrived, reading: Option<&BatchCursor>| {
        let places = places_of(&core, key, reading, arrived).unwrap_or_default();
        let nexts = places.iter().map(|at| (at.log.lane, at.next.0));
        nexts.collect::<Vec<_>>()
    };
    assert_eq!(next(&arrived, None), [(Lane::Normal, 5), (Lane::High, 20)]);
    for (lane, while_read, after) in [
        (Lane::High, [5, 20], [5, 22]),
        (Lane::Normal, [5, 22], [7, 22]),
    ] {
        let Some((_, Event::Messages(received))) = arrived.pop() else {
            panic!("messages expected");
        };
        assert_eq!(received.log.lane, lane);
        let reading = BatchCursor::new(received);
        let numbers = |next: Vec<(Lane, u64)>| [next[0].1, next[1].1];
        assert_eq!(numbers(next(&arrived, Some(&reading))), while_read);
        assert_eq!(numbers(next(&arrived, None)), after);
    }
}

#[test]
fn high_is_handed_over_first_and_normal_has_a_quarter_while_both_wait() {
    let (_, key) = subscribed();
    let mut arrived = Arrived::default();
    for lane in Lane::ALL {
        arrived.extend((0..40).map(|number| (key, gap(lane, number))));
    }
    let given = handed_over(&mut arrived);
    assert_eq!(given[0], (HIGH, 0));
    let normal = given[..40].iter().filter(|(lane, _)| *lane == NORMAL);
    assert_eq!(normal.count(), 10);
    for lane in [NORMAL, HIGH] {
        let of_lane = given.iter().filter(|(of, _)| *of == lane);
        assert!(of_lane.map(|(_, number)| *number).eq(0..40), "{lane:?}");
    }
}

#[test]
fn a_status_of_one_lane_stays_in_it_and_one_of_both_is_passed_by_nothing() {
    let (_, key) = subscribed();
    let both = [(Lane::Normal, 5), (Lane::High, 20)];
    let changed = State::Changed {
        places: Places::from_iter([place(Lane::High, 20)]),
    };
    let events = [
        gap(Lane::Normal, 1),
        Event::Status(live(&both[..1])),
        Event::Status(live(&both)),
        gap(Lane::Normal, 2),
        gap(Lane::High, 1),
        Event::Status(live(&both[1..])),
        Event::Status(changed),
        gap(Lane::High, 2),
    ];
    let mut arrived = Arrived::default();
    arrived.extend(events.map(|event| (key, event)));
    let listed: Vec<Option<Lane>> = arrived.in_order().map(|(_, at)| lane_of(at)).collect();
    let expected = [
        (NORMAL, 1),
        (NORMAL, 0),
        (None, 0),
        (HIGH, 1),
        (NORMAL, 2),
        (HIGH, 0),
        (None, 0),
        (HIGH, 2),
    ];
    assert_eq!(handed_over(&mut arrived), expected);
    let high_first = [NORMAL, NORMAL, None, HIGH, HIGH, NORMAL, None, HIGH];
    assert_eq!(listed, high_first);
}

#[test]
fn more_is_applied_once_there_is_lane_high_and_only_where_it_may_overtake() {
    let (_, key) = subscribed();
    let mut arrived = Arrived::default();
    arrived.extend((0..64).map(|number| (key, gap(Lane::Normal, number))));
    assert!(!arrived.has_room() && !arrived.may_be_overtaken(CREDIT));
    arrived.push((key, gap(Lane::High, 1)));
    assert!(
        arrived.has_room() && !arrived.may_be_overtaken(CREDIT),
        "it goes next"
    );
    arrived.pop();
    assert!(arrived.may_be_overtaken(CREDIT));
    arrived.extend((64..1024).map(|number| (key, gap(Lane::Normal, number))));
    assert!(!arrived.has_room() && !arrived.may_be_overtaken(CREDIT));
}

#[test]
fn nothing_is_looked_for_where_as_much_waits_as_a_streams_credit_allows() {
    let (mut core, key) = subscribed();
    let mut arrived = Arrived::default();
    arrived.push((key, gap(Lane::High, 1)));
    arrived.pop();
    assert_eq!(arrived.bytes, 0);
    let batches = [5, 7, 9].map(|first| {
        deliver(&mut core, &mut arrived, Lane::Normal, first);
        arrived.bytes
    });
    let [one, two, credit] = batches;
    assert!(0 < one && one < two && two < credit);
    assert!(!arrived.may_be_overtaken(credit));
    assert!(arrived.may_be_overtaken(credit + 1));
    arrived.pop();
    assert!(arrived.may_be_overtaken(credit), "one was taken");
    while arrived.pop().is_some() {}
    assert_eq!(arrived.bytes, 0);
}

#[test]
fn of_a_lane_nothing_of_the_other_is_listed() {
    let (_, key) = subscribed();
    let both = live(&[(Lane::Normal, 5), (Lane::High, 20)]);
    let mut arrived = Arrived::default();
    arrived.push((key, Event::Status(both)));
    for lane in [Lane::Normal, Lane::High, Lane::Normal] {
        arrived.push((key, gap(lane, 1)));
    }
    let lanes = |lane| {
        let listed = arrived.of_lane(lane).map(|(_, event)| lane_of(event));
        listed.collect::<Vec<_>>()
    };
    assert_eq!(lanes(Lane::Normal), [None, NORMAL, NORMAL]);
    assert_eq!(lanes(Lane::High), [HIGH]);
    assert_eq!(arrived.by_lane().count(), 4);
}
