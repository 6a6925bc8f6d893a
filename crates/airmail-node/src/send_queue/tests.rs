use super::lane_queue::size_of_delivery;
use super::sample_delivery::delivery_in;
use super::*;
use crate::config::cluster::Roles;
use airmail_model::clock::SystemClock;
use airmail_model::frame::{Channel, GapReason, RequestId};
use airmail_model::{Lane, Limits, LogId, Sequence};
use std::future::Future as _;
use std::pin::pin;
use tokio_util::sync::CancellationToken;

fn queue() -> (Arc<SendQueue>, ShardHandle) {
    let clock = Arc::new(SystemClock::new());
    let stop = CancellationToken::new();
    let (handle, _receiver) = ShardHandle::new(
        ("n".into(), Roles::ALL, 1),
        Limits::DEFAULT,
        clock,
        stop,
        true,
    );
    let queue = SendQueue::new(SessionId(4), handle.clone());
    (Arc::new(queue), handle)
}

fn mark(previous: u64, next: u64) -> Event {
    Event::Reply(Reply::Mark {
        log: LogId::SYSTEM,
        previous: Sequence(previous),
        next: Sequence(next),
    })
}

fn gap(previous: u64, last: u64, why: GapReason) -> Event {
    Event::Reply(Reply::Gap {
        channel: Channel::Live,
        log: LogId::SYSTEM,
        previous: Sequence(previous),
        last: Sequence(last),
        why,
    })
}

/// With a payload of so many bytes.
fn delivery(bytes: usize) -> Event {
    delivery_in(LogId::SYSTEM, 1, bytes)
}

fn taker(queue: &Arc<SendQueue>) -> Taker {
    Taker::new(Arc::clone(queue))
}

fn take(taker: &mut Taker) -> Option<Result<Event, Error>> {
    let mut cx = Context::from_waker(Waker::noop());
    match taker.poll_take(&mut cx) {
        Poll::Ready(item) => item,
        Poll::Pending => panic!("nothing to take"),
    }
}

#[test]
fn marks_that_continue_one_another_become_one() {
    let (queue, _) = queue();
    queue.push(mark(0, 5));
    queue.push(mark(4, 9));
    queue.push(mark(20, 30));
    let mut taker = taker(&queue);
    let Some(Ok(Event::Reply(Reply::Mark { previous, next, .. }))) = take(&mut taker) else {
        panic!("a mark expected");
    };
    assert_eq!((previous, next), (Sequence(0), Sequence(9)));
    assert!(take(&mut taker).is_some());
    assert!(!taker.has_more());
}

#[test]
fn gaps_are_joined_only_for_the_same_reason() {
    let (queue, _) = queue();
    queue.push(gap(0, 5, GapReason::Loss));
    queue.push(gap(5, 9, GapReason::Loss));
    queue.push(gap(9, 12, GapReason::Retention));
    let mut taker = taker(&queue);
    let Some(Ok(Event::Reply(Reply::Gap { previous, last, .. }))) = take(&mut taker) else {
        panic!("a gap expected");
    };
    assert_eq!((previous, last), (Sequence(0), Sequence(9)));
    assert!(take(&mut taker).is_some());
    assert!(!taker.has_more());
}

#[test]
fn a_stream_ends_after_what_was_queued_and_tells_its_error_once() {
    let (queue, _) = queue();
    queue.push(mark(0, 5));
    queue.end(Err(Error::new(ErrorCode::ShuttingDown)));
    queue.push(mark(4, 9));
    let mut taker = taker(&queue);
    assert!(matches!(take(&mut taker), Some(Ok(_))));
    let Some(Err(error)) = take(&mut taker) else {
        panic!("an error expected");
    };
    assert_eq!(error.code(), ErrorCode::ShuttingDown);
    assert!(take(&mut taker).is_none());
}

#[test]
fn a_client_that_takes_nothing_is_given_up_at_the_bound() {
    let (queue, _) = queue();
    let ack = || {
        Event::Reply(Reply::Acked {
            request: RequestId(0),
            result: Err(airmail_model::frame::Refused {
                error: Error::new(ErrorCode::StorageFull),
                map: None,
            }),
        })
    };
    for _ in 0..=ITEMS_MAX {
        queue.push(ack());
    }
    let Some(Err(error)) = take(&mut taker(&queue)) else {
        panic!("an error expected");
    };
    assert_eq!(error.code(), ErrorCode::Overloaded);
    assert_eq!(error.expected(), ITEMS_MAX.to_string());
}

#[test]
fn a_client_that_grants_what_it_has_not_taken_is_cut_off_at_a_bound_of_bytes() {
    let mebibyte = delivery(1 << 20);
    let bytes = size_of_delivery(&mebibyte);
    let (queue, _) = queue();
    let mut pushed = 0;
    while !queue.state.lock().queue.is_empty() || pushed == 0 {
        pushed += bytes;
        queue.push(delivery(1 << 20));
    }
    assert!(pushed > BYTES_MAX && pushed - bytes <= BYTES_MAX);
    let Some(Err(error)) = take(&mut taker(&queue)) else {
        panic!("an error expected");
    };
    assert_eq!(error.code(), ErrorCode::Overloaded);
    assert_eq!(error.expected(), BYTES_MAX.to_string());
}

#[test]
fn what_is_pushed_together_is_taken_in_order_with_what_comes_later() {
    let (queue, _) = queue();
    let mut taker = taker(&queue);
    queue.push_all([gap(0, 1, GapReason::Loss), gap(2, 3, GapReason::Loss)]);
    let first = |taker: &mut Taker| match take(taker) {
        Some(Ok(Event::Reply(Reply::Gap { last, .. }))) => last,
        other => panic!("a gap expected: {other:?}"),
    };
    assert_eq!(first(&mut taker), Sequence(1));
    queue.push(gap(4, 5, GapReason::Loss));
    assert!(taker.has_more());
    assert_eq!([first(&mut taker), first(&mut taker)], [3, 5].map(Sequence));
    assert!(!taker.has_more());
}

#[test]
fn requests_are_read_again_when_there_is_room() {
    let (queue, _) = queue();
    for n in 0..=ROOM_ITEMS as u64 {
        queue.push(gap(2 * n, 2 * n + 1, GapReason::Loss));
    }
    let mut room = pin!(queue.room());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(room.as_mut().poll(&mut cx).is_pending());
    let mut taker = taker(&queue);
    take(&mut taker);
    assert!(room.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn a_session_gives_one_notice_however_often_credit_comes_back() {
    let (queue, handle) = queue();
    queue.return_credit(3);
    queue.return_credit(4);
    let mut sessions = Vec::new();
    handle.take_notices(&mut sessions);
    assert_eq!(sessions, [SessionId(4)]);
    let notice = queue.take_notice();
    assert_eq!((notice.credit, notice.gone), (7, false));
    drop(taker(&queue));
    handle.take_notices(&mut sessions);
    assert_eq!(sessions.len(), 2);
    let notice = queue.take_notice();
    assert_eq!((notice.credit, notice.gone), (0, true));
}

/// Whether the shard has been woken since this was last asked.
fn woken(handle: &ShardHandle) -> bool {
    let mut woken = pin!(handle.woken());
    let mut cx = Context::from_waker(Waker::noop());
    woken.as_mut().poll(&mut cx).is_ready()
}

/// Takes all that there is, and asks for more.
fn drain(taker: &mut Taker) {
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(_))) = taker.poll_take(&mut cx) {}
}

#[test]
fn the_shard_learns_what_was_taken_and_is_not_woken_for_it() {
    let (queue, handle) = queue();
    let mut taker = taker(&queue);
    let bytes = size_of_delivery(&delivery(100)) as u64;
    queue.push_all([delivery(100), mark(0, 5), delivery(100)]);
    drain(&mut taker);
    let mut sessions = Vec::new();
    handle.take_notices(&mut sessions);
    assert_eq!(sessions, [SessionId(4)]);
    assert_eq!(queue.take_notice().sent, 2 * bytes);
    assert!(!woken(&handle));
    assert_eq!(queue.take_notice().sent, 0);
}

#[test]
fn the_shard_is_woken_when_a_stream_that_it_waits_for_has_taken_all() {
    let (queue, handle) = queue();
    let mut taker = taker(&queue);
    queue.push(delivery(100));
    queue.watch();
    assert!(!woken(&handle));
    drain(&mut taker);
    assert!(woken(&handle));
    queue.take_notice();
    // It had taken all before the shard said that it waits.
    queue.push(delivery(100));
    drain(&mut taker);
    assert!(!woken(&handle));
    queue.watch();
    assert!(woken(&handle));
}

const WITHIN: Duration = Duration::from_millis(300);

#[test]
fn who_does_not_read_is_told_of_the_last_nodes_alone_and_marks_are_joined_all_the_same() {
    let (queue, _) = queue();
    queue.begin_news(WITHIN);
    for number in 0..1_000 {
        queue.push(mark(
            if number == 0 { 0 } else { number * 5 - 1 },
            (number + 1) * 5,
        ));
        let leave = number == 999;
        queue.tell_nodes(&Arc::new(Nodes {
            nodes: Vec::new(),
            leave,
        }));
        queue.say_alive(WITHIN);
    }
    let mut taker = taker(&queue);
    let Some(Ok(Event::Reply(Reply::Mark { next, .. }))) = take(&mut taker) else {
        panic!("a mark expected");
    };
    assert_eq!(next, Sequence(5_000));
    let Some(Ok(Event::Nodes(nodes))) = take(&mut taker) else {
        panic!("nodes expected");
    };
    assert!(nodes.leave && !taker.has_more());
}

#[test]
fn a_sign_of_life_comes_where_nothing_was_said_and_where_it_comes_less_often_from_now_on() {
    let (queue, _) = queue();
    let mut taker = taker(&queue);
    // An older client hears none.
    queue.say_alive(WITHIN);
    assert!(!taker.has_more());
    queue.begin_news(WITHIN);
    let mut signs = |within| {
        queue.say_alive(within);
        let has_more = taker.has_more();
        if has_more {
            assert!(matches!(take(&mut taker), Some(Ok(Event::Alive(told))) if told == within));
        }
        has_more
    };
    assert!(signs(WITHIN) && signs(WITHIN));
    queue.push(mark(0, 5));
    assert!(take_all(&queue) > 0);
    assert!(!signs(WITHIN), "something was said");
    queue.push(mark(4, 9));
    assert!(take_all(&queue) > 0);
    assert!(signs(2 * WITHIN), "it does not come as soon as was told");
    assert!(signs(2 * WITHIN));
}

/// Takes everything as a connection does, and leaves the stream open.
fn take_all(queue: &SendQueue) -> usize {
    let mut taken = VecDeque::new();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(queue.poll_take(&mut cx, &mut taken, 0).is_ready());
    taken.len()
}

/// One of lane high.
fn high_delivery(number: u64, bytes: usize) -> Event {
    let log = LogId {
        lane: Lane::High,
        ..LogId::SYSTEM
    };
    delivery_in(log, number, bytes)
}

/// The lane of a delivery that is taken, and its number.
fn take_delivery(taker: &mut Taker) -> (Lane, u64) {
    match take(taker) {
        Some(Ok(Event::Reply(Reply::Delivery(taken)))) => (taken.log.lane, taken.last.0),
        other => panic!("a delivery expected: {other:?}"),
    }
}

#[test]
fn lane_high_overtakes_also_what_the_connection_has_taken_and_not_given() {
    let (queue, handle) = queue();
    let mut taker = taker(&queue);
    for number in 1..=100 {
        queue.push(delivery_in(LogId::SYSTEM, number, 10_000));
    }
    assert_eq!(take_delivery(&mut taker), (Lane::Normal, 1));
    for number in 1..=2 {
        queue.push(high_delivery(number, 10));
        assert_eq!(
            take_delivery(&mut taker),
            (Lane::High, number),
            "of a turn that begins"
        );
        // A turn that was taken before the second one is given to its end.
        while !taker.has_none_at_hand() {
            take(&mut taker);
        }
    }
    let mut given = 0;
    while taker.has_more() {
        given += 1;
        assert_eq!(take_delivery(&mut taker).0, Lane::Normal);
    }
    assert!(given > 0 && !queue.state.lock().watched);
    let mut sessions = Vec::new();
    handle.take_notices(&mut sessions);
    assert_eq!(sessions, [SessionId(4)]);
}

#[test]
fn the_shard_learns_of_every_byte_that_is_taken_by_turns_and_is_woken_at_their_end() {
    let (queue, handle) = queue();
    let mut taker = taker(&queue);
    let mut bytes = 0;
    for number in 1..=50 {
        for event in [
            delivery_in(LogId::SYSTEM, number, 10_000),
            high_delivery(number, 1_000),
        ] {
            bytes += size_of_delivery(&event) as u64;
            queue.push(event);
        }
    }
    // The last turn may be of no delivery.
    for number in 0..5_000 {
        queue.push(mark(20 * number, 20 * number + 5));
    }
    queue.watch();
    assert!(!woken(&handle));
    drain(&mut taker);
    assert!(woken(&handle));
    assert_eq!(queue.take_notice().sent, bytes);
    assert_eq!(queue.state.lock().queue.bytes(), 0);
}

#[test]
fn requests_are_read_again_when_turns_have_made_room() {
    let (queue, _) = queue();
    queue.push(high_delivery(1, 10));
    for n in 0..=ROOM_ITEMS as u64 {
        queue.push(gap(2 * n, 2 * n + 1, GapReason::Loss));
    }
    let mut room = pin!(queue.room());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(room.as_mut().poll(&mut cx).is_pending());
    let mut taker = taker(&queue);
    take(&mut taker);
    assert!(room.as_mut().poll(&mut cx).is_ready());
}
