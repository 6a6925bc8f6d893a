//! The history of several logs as one, by what a node would send.

use super::*;
use crate::history::{History, HistoryRequest};
use crate::named_topic::AskedTopics;
use crate::sample_batch::batch_in;
use airmail_model::clock::SystemClock;
use airmail_model::frame::{Channel, Delivered, GapReason, Generation, SubscriptionId};
use airmail_model::{Lane, LogId, LogIndex, NamespaceId, Position};
use airmail_proto::subscribe::{delivery_to_proto, gap_to_proto, place_to_proto};
use airmail_proto::v1::history_response::Kind;
use futures::FutureExt as _;

const LIFE: Incarnation = Incarnation(7);
const CHANNEL: Channel = Channel::Detached(SubscriptionId(0), Generation(0));

fn log(index: u16) -> LogId {
    LogId {
        namespace: NamespaceId(1),
        lane: Lane::Normal,
        index: LogIndex(index),
    }
}

fn place(index: u16, next: u64) -> LogPosition {
    LogPosition {
        log: log(index),
        incarnation: LIFE,
        next: Sequence(next),
    }
}

/// The history of a selection from so many logs, opened, and as if it had been asked for.
fn history(logs: u16, limit: Option<u64>) -> History {
    let context = ClientContext::without_nodes(Arc::new(SystemClock::default()));
    let request = HistoryRequest::new(Arc::new(context), AskedTopics::everything());
    let request = match limit {
        Some(limit) => request.limit(limit),
        None => request,
    };
    let mut history = request.open().expect("a good request");
    history.begin((0..logs).map(|log| (Some(log), Lane::Normal)));
    history
}

fn told(history: &mut History, log: u16, kind: Kind) {
    let response = v1::HistoryResponse { kind: Some(kind) };
    let log = &mut history.logs[usize::from(log)];
    log.apply(response).expect("a good response");
}

/// A node's word of where a log begins.
fn begins(history: &mut History, index: u16, next: u64) {
    let at = place_to_proto(place(index, next), MapEpoch(1));
    told(history, index, Kind::Begin(at));
}

/// A batch of messages, each by its topic.
fn delivered(history: &mut History, index: u16, (first, appended): (u64, i64), topics: &[&str]) {
    let delivery = delivery_to_proto(&Delivery {
        channel: CHANNEL,
        log: log(index),
        previous: Sequence(first - 1),
        last: Sequence(first + topics.len() as u64 - 1),
        base: Sequence(first),
        appended: AppendTime(appended),
        clock: None,
        body: Delivered::Whole(batch_in(log(index), topics)),
        matches: None,
    });
    told(history, index, Kind::Delivery(delivery));
}

/// The same of a namespace that has lane high.
fn begins_beside_high(history: &mut History, index: u16, next: u64) {
    let at = place_to_proto(place(index, next), MapEpoch(1));
    let has_high = true;
    told(history, index, Kind::Begin(v1::At { has_high, ..at }));
}

/// Item that the history gives next, which is known.
fn next(history: &mut History) -> Option<Item> {
    let next = history.next().now_or_never();
    next.expect("no node is asked").expect("no error")
}

fn ended(history: &mut History) {
    for log in &mut history.logs {
        log.done = true;
    }
}

/// Everything that there is, a log and a number each, where all of it is known.
fn given(history: &mut History) -> Vec<Item> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let mut given = Vec::new();
    runtime.expect("a runtime").block_on(async {
        while let Some(item) = history.next().await.expect("no node is asked") {
            given.push(item);
        }
    });
    given
}

fn shown(items: &[Item]) -> Vec<String> {
    let shown = items.iter().map(|item| match item {
        Item::Message(message) => {
            let (log, topic) = (message.log().index.0, message.topic());
            format!("{log}:{} {topic}", message.sequence)
        }
        Item::Gap(gap) => format!("{}:{} to {}", gap.log.index.0, gap.first, gap.last),
        Item::Expired(gone) => format!("{}:{} expired", gone.log.index.0, gone.sequence),
    });
    shown.collect()
}

fn places(position: &Position) -> Vec<(u16, u64)> {
    let places = position.logs.iter();
    places.map(|at| (at.log.index.0, at.next.0)).collect()
}

#[test]
fn several_logs_come_as_one_by_time_and_each_message_knows_its_topic() {
    let mut history = history(2, None);
    begins(&mut history, 0, 1);
    delivered(&mut history, 0, (1, 10), &["a", "b"]);
    assert!(!history.ready(), "nothing is known of the other log");
    begins(&mut history, 1, 5);
    delivered(&mut history, 1, (5, 5), &["c"]);
    assert!(history.ready());
    delivered(&mut history, 0, (3, 30), &["a"]);
    delivered(&mut history, 1, (7, 20), &["d", "c"]);
    ended(&mut history);
    let items = given(&mut history);
    assert_eq!(
        shown(&items),
        ["1:5 c", "0:1 a", "0:2 b", "1:7 d", "1:8 c", "0:3 a"]
    );
}

#[test]
fn a_position_goes_on_in_every_log_after_what_was_given_of_it() {
    let mut history = history(3, None);
    begins(&mut history, 0, 1);
    begins(&mut history, 1, 5);
    // The last has nothing.
    begins(&mut history, 2, 70);
    delivered(&mut history, 0, (1, 10), &["a", "b"]);
    delivered(&mut history, 1, (5, 10), &["c"]);
    delivered(&mut history, 0, (3, 30), &["a"]);
    ended(&mut history);
    let items = given(&mut history);
    let positions = items.iter().filter_map(|item| match item {
        Item::Message(message) => Some(places(&message.position())),
        _ => None,
    });
    let positions: Vec<_> = positions.collect();
    assert_eq!(
        positions,
        [
            [(0, 2), (1, 5), (2, 70)],
            [(0, 3), (1, 5), (2, 70)],
            [(0, 3), (1, 6), (2, 70)],
            [(0, 4), (1, 6), (2, 70)],
        ],
        "also of messages that were kept"
    );
}

#[test]
fn a_limit_is_one_of_all_logs_together_and_gaps_are_not_counted() {
    let mut history = history(2, Some(3));
    for log in [0, 1] {
        begins(&mut history, log, 1);
        let previous = (Sequence(0), Sequence(2));
        let gap = gap_to_proto(CHANNEL, self::log(log), previous, GapReason::Retention);
        told(&mut history, log, Kind::Gap(gap));
        delivered(&mut history, log, (3, 10), &["a", "b"]);
    }
    assert!(history.ready());
    ended(&mut history);
    let items = given(&mut history);
    let wanted = ["0:1 to 2", "1:1 to 2", "0:3 a", "0:4 b", "1:3 a"];
    assert_eq!(shown(&items), wanted);
    assert!(!history.ready());
}

#[test]
fn a_log_goes_on_where_it_was_and_its_history_may_go_over_several() {
    let mut history = history(2, None);
    begins(&mut history, 0, 1);
    delivered(&mut history, 0, (1, 10), &["a"]);
    let Start::Position(since) = &history.logs[0].since else {
        panic!("it has a position");
    };
    assert_eq!(places(since), [(0, 2)]);
    assert!(matches!(history.logs[1].since, Start::Earliest));
    let next = place_to_proto(place(5, 1), MapEpoch(2));
    told(&mut history, 0, Kind::Begin(next));
    delivered(&mut history, 0, (1, 20), &["b"]);
    begins(&mut history, 1, 1);
    delivered(&mut history, 1, (1, 15), &["c"]);
    ended(&mut history);
    let items = given(&mut history);
    let Some(Item::Message(last)) = items.last() else {
        panic!("a message is last");
    };
    assert_eq!(shown(&items), ["0:1 a", "1:1 c", "5:1 b"]);
    assert_eq!(places(&last.position()), [(1, 2), (5, 2)]);
}

#[test]
fn a_history_that_has_given_something_goes_on_where_it_is_though_it_hears_of_lane_high() {
    let mut history = history(1, Some(4));
    begins(&mut history, 0, 1);
    delivered(&mut history, 0, (1, 10), &["a", "b"]);
    let mut items = Vec::from_iter(next(&mut history));
    // The stream is lost, and another one goes on.
    begins_beside_high(&mut history, 0, 3);
    delivered(&mut history, 0, (3, 20), &["c", "d"]);
    ended(&mut history);
    items.extend(given(&mut history));
    assert_eq!(shown(&items), ["0:1 a", "0:2 b", "0:3 c", "0:4 d"]);
    assert_eq!(history.left, Some(0), "each is counted once");
    let Some(Item::Message(last)) = items.last() else {
        panic!("a message is last");
    };
    assert_eq!(places(&last.position()), [(0, 5)]);
}

#[test]
fn a_history_that_has_given_nothing_begins_anew_with_both_lanes() {
    let mut history = history(2, None);
    begins(&mut history, 0, 1);
    delivered(&mut history, 0, (1, 10), &["a"]);
    begins_beside_high(&mut history, 1, 1);
    history.settle();
    let lanes: Vec<_> = history.logs.iter().map(|log| log.lane).collect();
    let [normal, high] = Lane::ALL;
    assert_eq!(lanes, [normal, high, normal, high]);
    assert!(history.logs.iter().all(|log| log.ready.is_empty()));
}

#[test]
fn an_end_of_lane_high_of_which_a_node_has_said_nothing_is_an_error_to_wait_for() {
    let mut history = history(1, None);
    history.begin(Lane::ALL.map(|lane| (Some(0), lane)));
    let [normal, high] = &mut history.logs[..] else {
        panic!("a log of each lane");
    };
    normal.stream_ended().expect("the end");
    assert!(normal.is_known());
    let error = high.stream_ended().expect_err("no end");
    assert!(error.code().waited_for(), "{error}");
    assert_eq!((error.field_name(), error.found()), ("lane", "high"));
    assert!(!high.is_known());
    begins(&mut history, 1, 1);
    history.logs[1].stream_ended().expect("the end");
    assert!(history.logs[1].is_known());
}

#[test]
fn a_gap_in_a_log_that_it_has_not_begun_in_does_not_change_where_it_goes_on() {
    let mut history = history(1, None);
    let previous = (Sequence(6), Sequence(8));
    let gap = |index| {
        let reason = GapReason::Retention;
        Kind::Gap(gap_to_proto(CHANNEL, log(index), previous, reason))
    };
    told(&mut history, 0, gap(0));
    assert!(matches!(history.logs[0].since, Start::Earliest));
    begins(&mut history, 0, 9);
    told(&mut history, 0, gap(5));
    assert!(matches!(history.logs[0].since, Start::Earliest));
    delivered(&mut history, 0, (9, 10), &["a"]);
    told(&mut history, 0, gap(5));
    let Start::Position(since) = &history.logs[0].since else {
        panic!("it has a position");
    };
    assert_eq!(places(since), [(0, 10)]);
}
