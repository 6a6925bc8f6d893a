//! Senders of lane high wait for nobody of lane normal.

use super::*;
use airmail_model::Lane::{High, Normal};
use airmail_model::Message;
use airmail_proto::publish::maps_to_proto;

/// Opens a stream whose client has little memory, all of which messages of lane normal take.
fn full_of_lane_normal() -> Harness {
    let harness = Harness::of(|context| context.producer.memory_bytes = 4_000);
    while append(&harness, Normal) {}
    harness
}

fn message(lane: Lane) -> Message {
    let topic = TopicName::new("a", &Limits::DEFAULT).unwrap();
    Message::new(topic, vec![b'x'; 100]).lane(lane)
}

/// Offers a message; tells whether it was appended at once.
fn append(harness: &Harness, lane: Lane) -> bool {
    let message = message(lane);
    let offered = MessageRef::Message(&message);
    let appended = harness.accumulator.try_append(&"".into(), offered);
    appended.is_some_and(|ack| ack.is_ok())
}

/// Tells whether a submission is admitted; if not, it goes on waiting.
fn is_admitted<S: Submission>(waiting: &mut WaitToSubmit<'_, S>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(waiting).poll(&mut context).is_ready()
}

/// Refuses every request up to this one, and lets the task and the stream have their turns.
fn answer_up_to(harness: &mut Harness, request: u64) {
    for request in 0..=request {
        let error = Error::new(ErrorCode::PermissionDenied);
        harness.refuse(request, &error);
    }
    harness.give_turn();
    harness.sends();
}

#[test]
fn a_sender_of_lane_high_does_not_wait_behind_those_of_lane_normal() {
    let harness = full_of_lane_normal();
    let namespace: Arc<str> = "".into();
    let wait = || WaitToSubmit::new(&harness.accumulator, &namespace, message(Normal));
    let (mut stalled, mut waiting) = (wait(), wait());
    assert!(is_admitted(&mut stalled), "held by the accumulator");
    assert!(!is_admitted(&mut waiting), "behind what is stalled");
    assert!(append(&harness, High));
    while append(&harness, High) {}
    let mut high = WaitToSubmit::new(&harness.accumulator, &namespace, message(High));
    assert!(is_admitted(&mut high), "before who waits in lane normal");
    assert!(
        !append(&harness, High),
        "behind what is stalled of its own lane"
    );
}

#[test]
fn a_sender_of_lane_high_does_not_wait_behind_one_with_messages_of_both_that_waits_for_lane_normal()
{
    let mut harness = full_of_lane_normal();
    let namespace: Arc<str> = "".into();
    {
        let mut stalled = WaitToSubmit::new(&harness.accumulator, &namespace, message(Normal));
        assert!(is_admitted(&mut stalled));
        let both = vec![message(High), message(Normal), message(High)];
        let mut both = WaitToSubmit::new(&harness.accumulator, &namespace, both);
        assert!(!is_admitted(&mut both), "lane normal is stalled");
        assert!(append(&harness, High));
        let mut high = WaitToSubmit::new(&harness.accumulator, &namespace, message(High));
        assert!(is_admitted(&mut high));
    }
    assert!(harness.sends());
    answer_up_to(&mut harness, 1);
    let both = vec![message(High), message(Normal)];
    let mut both = WaitToSubmit::new(&harness.accumulator, &namespace, both);
    assert!(is_admitted(&mut both));
}

#[test]
fn who_has_messages_of_both_lanes_keeps_its_turn_in_lane_normal_while_it_waits_in_lane_high() {
    let harness = Harness::of(|context| context.producer.memory_bytes = 4_000);
    while append(&harness, High) {}
    let namespace: Arc<str> = "".into();
    let wait = |lane| WaitToSubmit::new(&harness.accumulator, &namespace, message(lane));
    let mut stalled = wait(High);
    assert!(is_admitted(&mut stalled));
    let both = || {
        let both = vec![message(Normal), message(High)];
        WaitToSubmit::new(&harness.accumulator, &namespace, both)
    };
    let (mut first, mut second) = (both(), both());
    assert!(!is_admitted(&mut first), "lane high is stalled");
    assert!(!is_admitted(&mut second));
    let (mut normal, mut high) = (wait(Normal), wait(High));
    assert!(!is_admitted(&mut normal) && !is_admitted(&mut high));
    drop(stalled);
    harness.accumulator.with(|state| {
        let error = Error::new(ErrorCode::PermissionDenied);
        state.fail_stalled(High, &error);
    });
    assert!(!is_admitted(&mut second), "it is the turn of the first");
    assert!(!is_admitted(&mut normal) && !is_admitted(&mut high));
    drop(first);
    assert!(
        is_admitted(&mut high),
        "the second has not come to lane high"
    );
    assert!(!is_admitted(&mut normal), "behind the second");
    assert!(!is_admitted(&mut second), "lane high is stalled again");
    drop(second);
    assert!(is_admitted(&mut normal), "who leaves makes way");
}

#[test]
fn messages_of_both_lanes_that_are_handed_over_together_are_all_told_of() {
    let mut harness = Harness::open();
    let namespace: Arc<str> = "".into();
    let mut summary = {
        let both = vec![message(High), message(Normal), message(High)];
        let mut both = WaitToSubmit::new(&harness.accumulator, &namespace, both);
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut both).poll(&mut context) {
            Poll::Ready(Ok(summary)) => summary,
            other => panic!("{other:?}"),
        }
    };
    assert!(harness.sends());
    answer_up_to(&mut harness, 1);
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(summary)) = Pin::new(&mut summary).poll(&mut context) else {
        panic!("not all are settled");
    };
    assert_eq!((summary.stored, summary.failed), (0, 3));
}

#[test]
fn an_answer_for_one_lanes_namespace_leaves_the_question_of_the_other_under_way() {
    let mut harness = Harness::open();
    let namespaces: [Arc<str>; 2] = ["of-normal".into(), "of-high".into()];
    for (lane, namespace) in Lane::ALL.into_iter().zip(&namespaces) {
        let mut waiting = WaitToSubmit::new(&harness.accumulator, namespace, message(lane));
        assert!(is_admitted(&mut waiting));
    }
    harness.give_turn();
    let asked = |harness: &Harness| {
        let asked = harness.accumulator.state.lock();
        asked.lines.each_ref().map(|line| line.resolving.clone())
    };
    let [normal, high] = namespaces.map(Some);
    assert_eq!(asked(&harness), [normal, high.clone()]);
    let map = LogMap::even(NamespaceId(2), MapEpoch(1), LogIndex(0), 1);
    let name = "of-normal".to_owned();
    let maps = maps_to_proto(&[NamedMap { name, map }], &[]);
    harness
        .accumulator
        .apply_response(Kind::Maps(maps))
        .unwrap();
    assert_eq!(asked(&harness), [None, high]);
    let missing = Error::new(ErrorCode::NamespaceNotFound);
    let missing = missing.field("namespace").value("of-high");
    let maps = maps_to_proto(&[], &[missing]);
    harness
        .accumulator
        .apply_response(Kind::Maps(maps))
        .unwrap();
    assert_eq!(asked(&harness), [None, None]);
}

#[test]
fn what_is_stalled_fails_together_though_the_other_lanes_messages_are_between() {
    let harness = Harness::open();
    let namespace: Arc<str> = "elsewhere".into();
    let lanes = [Normal, Normal, High, Normal, High, High];
    let both = lanes.map(message).to_vec();
    let mut both = WaitToSubmit::new(&harness.accumulator, &namespace, both);
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(mut summary)) = Pin::new(&mut both).poll(&mut context) else {
        panic!("not admitted");
    };
    for lane in Lane::ALL {
        assert!(Pin::new(&mut summary).poll(&mut context).is_pending());
        harness.accumulator.with(|state| {
            let error = Error::new(ErrorCode::PermissionDenied);
            state.fail_stalled(lane, &error);
        });
    }
    let Poll::Ready(Ok(summary)) = Pin::new(&mut summary).poll(&mut context) else {
        panic!("not all are settled");
    };
    assert_eq!((summary.stored, summary.failed), (0, 6));
}
