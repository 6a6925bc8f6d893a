//! The request body and the task are woken for everything that they have to do, so neither has to
//! look by itself.

mod lanes;

use super::*;
use airmail_model::clock::Clock;
use airmail_model::frame::{self, NamedMap, Welcome};
use airmail_model::{Error, ErrorCode, Limits, LogIndex, LogMap, MapEpoch, Mono, TopicName, Wall};
use airmail_proto::error::error_to_proto;
use airmail_proto::v1::{self, publish_response::Kind};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

/// A clock that stands until it is set.
#[derive(Clone, Debug, Default)]
struct ManualClock(Arc<AtomicU64>);

impl Clock for ManualClock {
    fn now(&self) -> Now {
        let ns = self.0.load(Ordering::Relaxed);
        Now {
            mono: Mono(ns),
            wall: Wall(1),
        }
    }
}

/// A waker that counts how often it is woken.
#[derive(Default)]
struct CountingWaker(AtomicU64);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// An accumulator with a request body that drains it when it is woken, and a task that comes in
/// time.
struct Harness {
    accumulator: Accumulator,
    clock: ManualClock,
    waker: Arc<CountingWaker>,
    stream: u64,
    /// Time to which the task's timer is set.
    armed: Mono,
}

impl Harness {
    /// Opens a stream that has nothing to send and waits.
    fn open() -> Harness {
        Harness::of(|_| {})
    }

    /// Opens such a stream of a client with other settings.
    fn of(change: impl FnOnce(&mut ClientContext)) -> Harness {
        let clock = ManualClock::default();
        let mut context = ClientContext::without_nodes(Arc::new(clock.clone()));
        change(&mut context);
        let accumulator = Accumulator::new(Arc::new(context));
        let mut harness = Harness {
            accumulator,
            clock,
            waker: Arc::default(),
            stream: 0,
            armed: Mono::NEVER,
        };
        harness.connect();
        assert!(!harness.sends());
        harness
    }

    fn connect(&mut self) {
        self.stream = self.accumulator.begin_stream();
        let map = LogMap::even(NamespaceId(1), MapEpoch(1), LogIndex(0), 1);
        let name = DEFAULT_NAMESPACE.to_owned();
        self.accumulator.stream_opened(Welcome {
            protocol: 1,
            nodes: frame::Nodes::default(),
            alive: None,
            node: "node".to_owned(),
            limits: Limits::DEFAULT,
            namespaces: vec![NamedMap { name, map }],
        });
    }

    fn offer(&self, payload: &str) -> AckFuture {
        let topic = TopicName::new("a", &Limits::DEFAULT).unwrap();
        let namespace: Arc<str> = "".into();
        let message = MessageRef::Payload(&topic, payload.as_bytes());
        self.accumulator
            .try_append(&namespace, message)
            .unwrap()
            .unwrap()
    }

    /// Drains until there is nothing more to send; tells whether there was something.
    fn sends(&self) -> bool {
        self.waker.0.store(0, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.waker));
        let context = Context::from_waker(&waker);
        let mut pieces = VecDeque::new();
        let mut sent = false;
        loop {
            match self.accumulator.drain(self.stream, &context, &mut pieces) {
                Drained::Bytes => sent = true,
                Drained::Nothing => return sent,
                Drained::StreamEnded => panic!("not the current stream"),
            }
            pieces.clear();
        }
    }

    fn is_woken(&self) -> bool {
        self.waker.0.load(Ordering::Relaxed) > 0
    }

    fn refuse(&self, request: u64, error: &Error) {
        let ack = v1::Ack {
            request,
            error: Some(error_to_proto(error)),
            ..v1::Ack::default()
        };
        let acks = v1::Acks { acks: vec![ack] };
        self.accumulator.apply_response(Kind::Acks(acks)).unwrap();
    }

    /// Gives the publishing task its turn.
    fn give_turn(&mut self) {
        let AccumulatorStatus { wake, .. } = self.accumulator.advance(self.armed);
        self.armed = self.armed.min(wake);
    }

    /// Sets the clock to so late; the task comes if its timer has fired.
    fn late(&mut self, ms: u64) {
        let now = Mono(ms * 1_000_000);
        self.clock.0.store(now.0, Ordering::Relaxed);
        if self.armed <= now {
            self.armed = Mono::NEVER;
            self.give_turn();
        }
    }
}

fn failure(ack: &mut AckFuture) -> Option<ErrorCode> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(ack).poll(&mut context) {
        Poll::Ready(result) => result.err().map(|error| error.code()),
        Poll::Pending => None,
    }
}

#[test]
fn a_message_after_an_unknown_outcome_is_sent_long_before_its_time_is_over() {
    let mut harness = Harness::open();
    let mut first = harness.offer("0");
    assert!(harness.is_woken() && harness.sends());
    harness.give_turn();
    harness.connect();
    assert!(harness.sends(), "again, by the new stream");
    harness.give_turn();
    harness.refuse(1, &Error::new(ErrorCode::OutOfOrder));
    assert_eq!(failure(&mut first), Some(ErrorCode::OutcomeUnknown));
    harness.give_turn();
    harness.sends();
    let _second = harness.offer("1");
    (0..10_000).step_by(10).for_each(|ms| harness.late(ms));
    assert!(harness.is_woken() && harness.sends());
}

#[test]
fn a_message_that_comes_before_the_tasks_turn_after_a_refusal_is_sent() {
    let mut harness = Harness::open();
    let mut first = harness.offer("0");
    assert!(harness.sends());
    harness.give_turn();
    harness.refuse(0, &Error::new(ErrorCode::PermissionDenied));
    assert_eq!(failure(&mut first), Some(ErrorCode::PermissionDenied));
    let _second = harness.offer("1");
    harness.give_turn();
    assert!(harness.is_woken() && harness.sends());
}

#[test]
fn what_waits_behind_something_that_expires_is_sent() {
    let mut harness = Harness::open();
    let mut acks = Vec::new();
    for payload in ["0", "1"] {
        acks.push(harness.offer(payload));
        assert!(harness.sends());
        harness.give_turn();
    }
    harness.late(10_000);
    let _behind = harness.offer("2");
    assert!(!harness.sends(), "two are in flight");
    harness.late(30_000);
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert!(acks.iter_mut().all(|r| failure(r) == unknown));
    assert!(harness.is_woken() && harness.sends());
}

#[test]
fn a_message_expires_in_time_even_if_the_transport_takes_nothing() {
    let mut harness = Harness::open();
    let mut ack = harness.offer("0");
    assert!(harness.sends());
    harness.give_turn();
    let pause = Duration::from_millis(700);
    harness.refuse(0, &Error::new(ErrorCode::StorageFull).retry_after(pause));
    harness.give_turn();
    // The stream does not ask again.
    (0..30_000).step_by(50).for_each(|ms| harness.late(ms));
    assert_eq!(failure(&mut ack), None);
    harness.late(30_000);
    assert_eq!(failure(&mut ack), Some(ErrorCode::StorageFull));
}
