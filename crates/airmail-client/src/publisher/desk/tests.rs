//! The stream and the task are told of all that goes on: they come by themselves for nothing.

use super::*;
use crate::core::{ProducerConfig, SubscriberConfig};
use crate::nodes::Nodes;
use airmail_model::clock::Clock;
use airmail_model::{Limits, LogIndex, LogMap, MapEpoch, TopicName, Wall};
use airmail_proto::error::error_to_proto;
use airmail_proto::hello::{NamedMap, Welcome};
use airmail_proto::v1::{self, publish_response::Kind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

/// A clock that stands until it is set.
#[derive(Clone, Debug, Default)]
struct Hands(Arc<AtomicU64>);

impl Clock for Hands {
    fn now(&self) -> Now {
        let ns = self.0.load(Ordering::Relaxed);
        Now {
            mono: Mono(ns),
            wall: Wall(1),
        }
    }
}

/// Counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicU64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A desk with a stream that asks when it is woken, and a task that comes in time.
struct Office {
    desk: Desk,
    hands: Hands,
    bell: Arc<Bell>,
    stream: u64,
    /// The task's timer.
    armed: Mono,
}

impl Office {
    /// With a stream that has nothing to send and waits.
    fn open() -> Office {
        let hands = Hands::default();
        let clock = Arc::new(hands.clone());
        let desk = Desk::new(Arc::new(ClientContext {
            nodes: Nodes::new(Vec::new(), "test".to_owned(), clock),
            namespace: "".into(),
            producer: ProducerConfig::default(),
            subscriber: SubscriberConfig::default(),
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(10),
            seeds: 7.into(),
        }));
        let mut office = Office {
            desk,
            hands,
            bell: Arc::default(),
            stream: 0,
            armed: Mono::NEVER,
        };
        office.connect();
        assert!(!office.sends());
        office
    }

    fn connect(&mut self) {
        self.stream = self.desk.begin_stream();
        let map = LogMap::even(NamespaceId(1), MapEpoch(1), LogIndex(0), 1);
        let name = DEFAULT_NAMESPACE.to_owned();
        self.desk.opened(Welcome {
            protocol: 1,
            node: "node".to_owned(),
            limits: Limits::DEFAULT,
            namespaces: vec![NamedMap { name, map }],
        });
    }

    fn offer(&self, payload: &str) -> Receipt {
        let topic = TopicName::new("a", &Limits::DEFAULT).unwrap();
        let namespace: Arc<str> = "".into();
        let offer = Offer::Payload(&topic, payload.as_bytes());
        self.desk.offer(&namespace, offer).unwrap().unwrap()
    }

    /// Whether the stream had something to send; it waits then.
    fn sends(&self) -> bool {
        self.bell.0.store(0, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.bell));
        let context = Context::from_waker(&waker);
        let mut pieces = VecDeque::new();
        let mut sent = false;
        loop {
            match self.desk.pieces(self.stream, &context, &mut pieces) {
                Pieces::More => sent = true,
                Pieces::None => return sent,
                Pieces::Ended => panic!("not the stream of the moment"),
            }
            pieces.clear();
        }
    }

    fn is_woken(&self) -> bool {
        self.bell.0.load(Ordering::Relaxed) > 0
    }

    fn refuse(&self, request: u64, error: &Error) {
        let ack = v1::Ack {
            request,
            error: Some(error_to_proto(error)),
            ..v1::Ack::default()
        };
        let acks = v1::Acks { acks: vec![ack] };
        self.desk.answered(Kind::Acks(acks)).unwrap();
    }

    /// The task's turn.
    fn tend(&mut self) {
        let Standing { wake, .. } = self.desk.tend(self.armed);
        self.armed = self.armed.min(wake);
    }

    /// It is this late; the task comes if its timer says so.
    fn late(&mut self, ms: u64) {
        let now = Mono(ms * 1_000_000);
        self.hands.0.store(now.0, Ordering::Relaxed);
        if self.armed <= now {
            self.armed = Mono::NEVER;
            self.tend();
        }
    }
}

fn fate(receipt: &mut Receipt) -> Option<ErrorCode> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(receipt).poll(&mut context) {
        Poll::Ready(fate) => fate.err().map(|error| error.code()),
        Poll::Pending => None,
    }
}

#[test]
fn a_message_after_an_unknown_outcome_is_sent_long_before_its_time_is_over() {
    let mut office = Office::open();
    let mut first = office.offer("0");
    assert!(office.is_woken() && office.sends());
    office.tend();
    office.connect();
    assert!(office.sends(), "again, by the new stream");
    office.tend();
    office.refuse(1, &Error::new(ErrorCode::OutOfOrder));
    assert_eq!(fate(&mut first), Some(ErrorCode::OutcomeUnknown));
    office.tend();
    office.sends();
    let _second = office.offer("1");
    (0..10_000).step_by(10).for_each(|ms| office.late(ms));
    assert!(office.is_woken() && office.sends());
}

#[test]
fn a_message_that_comes_before_the_tasks_turn_after_a_refusal_is_sent() {
    let mut office = Office::open();
    let mut first = office.offer("0");
    assert!(office.sends());
    office.tend();
    office.refuse(0, &Error::new(ErrorCode::OutcomeUnknown));
    assert_eq!(fate(&mut first), Some(ErrorCode::OutcomeUnknown));
    let _second = office.offer("1");
    office.tend();
    assert!(office.is_woken() && office.sends());
}

#[test]
fn what_waits_behind_something_that_expires_is_sent() {
    let mut office = Office::open();
    let mut receipts = Vec::new();
    for payload in ["0", "1"] {
        receipts.push(office.offer(payload));
        assert!(office.sends());
        office.tend();
    }
    office.late(10_000);
    let _behind = office.offer("2");
    assert!(!office.sends(), "two are in flight");
    office.late(30_000);
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert!(receipts.iter_mut().all(|r| fate(r) == unknown));
    assert!(office.is_woken() && office.sends());
}

#[test]
fn a_message_expires_in_time_even_if_the_transport_takes_nothing() {
    let mut office = Office::open();
    let mut receipt = office.offer("0");
    assert!(office.sends());
    office.tend();
    let pause = Duration::from_millis(700);
    office.refuse(0, &Error::new(ErrorCode::StorageFull).retry_after(pause));
    office.tend();
    // The stream does not ask again.
    (0..30_000).step_by(50).for_each(|ms| office.late(ms));
    assert_eq!(fate(&mut receipt), None);
    office.late(30_000);
    assert_eq!(fate(&mut receipt), Some(ErrorCode::StorageFull));
}
