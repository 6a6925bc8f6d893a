//! The far end of a link, message by message: what it does for a guest, and what it leaves undone.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_link::{Event, FromHost, HostedStorage, LinkLimits, Port, ToHost};
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::memory::{self, MemoryStorage};
use airmail_log::{Call, Completion, LogStorage, ReaderId, Scope, Tag};
use airmail_model::{Durability, Mono, Now, Sequence, Wall};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The guest's end of a port: what the far end will receive, and what it has sent.
#[derive(Default)]
struct Script {
    coming: VecDeque<Event<ToHost>>,
    sent: Vec<FromHost>,
    /// The guest takes nothing.
    is_full: bool,
}

struct Scripted(Arc<Mutex<Script>>);

impl Port for Scripted {
    type Out = FromHost;
    type In = ToHost;

    fn send(&mut self, message: FromHost) -> Result<(), FromHost> {
        let mut script = self.0.lock();
        if script.is_full {
            return Err(message);
        }
        script.sent.push(message);
        Ok(())
    }

    fn receive(&mut self) -> Option<Event<ToHost>> {
        self.0.lock().coming.pop_front()
    }

    fn flush(&mut self) {}
}

/// A far end with a guest, whose connection has begun as generation 2; the log is open.
struct Far {
    host: HostedStorage<MemoryStorage>,
    script: Arc<Mutex<Script>>,
    now: Now,
    own: Vec<Completion>,
}

impl Far {
    fn open(limits: LinkLimits) -> Far {
        let now = Now {
            mono: Mono(1),
            wall: Wall(1_790_000_000_000_000),
        };
        let mut host = HostedStorage::new(memory::open(1, now).unwrap(), limits);
        let script = Arc::<Mutex<Script>>::default();
        host.add_port(Box::new(Scripted(Arc::clone(&script))));
        let own = Vec::new();
        let mut far = Far {
            host,
            script,
            now,
            own,
        };
        far.comes(Event::Up);
        far.comes(Event::Message(ToHost::Begin { generation: 2 }));
        let spec = Box::new(spec(Durability::MEMORY));
        far.asks(
            2,
            Call::Open {
                t: Tag(1),
                log: log(0),
                spec,
            },
        );
        let sent = far.sent();
        let is_opened = matches!(
            sent[..],
            [FromHost::Told {
                generation: 2,
                completion: Completion::Opened { t: Tag(1), .. }
            }]
        );
        assert!(is_opened, "{sent:?}");
        far
    }

    fn poll(&mut self) {
        for _ in 0..4 {
            self.now.mono.0 += 1_000;
            self.host.poll(self.now, &mut self.own);
        }
    }

    fn comes(&mut self, event: Event<ToHost>) {
        self.script.lock().coming.push_back(event);
        self.poll();
    }

    fn asks(&mut self, generation: u64, call: Call) {
        self.comes(Event::Message(ToHost::Call { generation, call }));
    }

    fn sent(&mut self) -> Vec<FromHost> {
        std::mem::take(&mut self.script.lock().sent)
    }

    fn append(&mut self, generation: u64, t: u64) {
        let batch = Maker::new(log(0)).batch(&[("a", "x")]);
        let map = batch.map_epoch();
        let (t, log) = (Tag(t), log(0));
        self.asks(
            generation,
            Call::Append {
                t,
                log,
                map,
                batch,
                sole: false,
            },
        );
    }

    fn read(&mut self, r: u64) {
        self.asks(
            2,
            Call::Read {
                r: ReaderId(r),
                log: log(0),
                from: Sequence::FIRST,
                scope: Box::new(Scope::default()),
                credit: 1 << 20,
            },
        );
    }

    /// The end of the log, as the host's own shard sees it.
    fn end(&mut self) -> Sequence {
        self.own.clear();
        let (t, log) = (Tag(77), log(0));
        self.host.submit(Call::Bounds { t, log });
        self.poll();
        match self.own[..] {
            [Completion::Bounds { bounds, .. }] => bounds.next,
            ref other => panic!("{other:?} in place of bounds"),
        }
    }
}

#[test]
fn a_call_of_another_generation_is_left_undone() {
    let mut far = Far::open(LinkLimits::default());
    far.append(1, 5);
    far.comes(Event::Message(ToHost::Begin { generation: 1 }));
    assert_eq!(far.sent(), []);
    assert_eq!(far.end(), Sequence(1));
    far.append(2, 6);
    assert_eq!(far.end(), Sequence(2));
}

#[test]
fn what_a_guest_asked_before_a_cut_is_done_and_not_told() {
    let mut far = Far::open(LinkLimits::default());
    far.read(3);
    far.sent();
    far.comes(Event::Cut);
    far.comes(Event::Up);
    far.comes(Event::Message(ToHost::Begin { generation: 3 }));
    far.append(3, 6);
    let sent = far.sent();
    let is_answer = |of: &FromHost| {
        matches!(
            of,
            FromHost::Told {
                generation: 3,
                completion: Completion::Appended { .. }
            }
        )
    };
    assert!(sent.iter().all(is_answer), "the reader has ended: {sent:?}");
    assert_eq!(sent.len(), 1);
}

#[test]
fn a_guest_that_takes_nothing_is_given_a_bounded_amount_and_holds_up_nobody() {
    let limits = LinkLimits {
        marks: 8,
        ..LinkLimits::default()
    };
    let mut far = Far::open(limits);
    far.read(3);
    far.sent();
    far.script.lock().is_full = true;
    let log = log(0);
    for t in 0..100 {
        let batch = Maker::new(log).batch(&[("a", "x")]);
        let (t, map) = (Tag(t), batch.map_epoch());
        far.host.submit(Call::Append {
            t,
            log,
            map,
            batch,
            sole: false,
        });
        far.poll();
    }
    let stored = |of: &&Completion| matches!(of, Completion::Appended { .. });
    assert_eq!(far.own.iter().filter(stored).count(), 100);
    far.script.lock().is_full = false;
    far.poll();
    let sent = far.sent();
    assert!(sent.len() <= limits.marks + 1, "{} messages", sent.len());
    let last = sent.last();
    assert!(
        matches!(last, Some(FromHost::Behind { r: ReaderId(3), .. })),
        "{last:?}"
    );
}

#[test]
fn a_near_end_that_counts_as_another_did_before_it_gets_nothing_of_that_ones() {
    let mut far = Far::open(LinkLimits::default());
    let asks = |t| {
        let call = Call::Bounds { t, log: log(0) };
        Event::Message(ToHost::Call {
            generation: 2,
            call,
        })
    };
    let begins = Event::Message(ToHost::Begin { generation: 2 });
    let events = [asks(Tag(5)), Event::Cut, Event::Up, begins, asks(Tag(6))];
    far.script.lock().coming.extend(events);
    far.poll();
    let sent = far.sent();
    let is_answer = matches!(
        sent[..],
        [FromHost::Told {
            completion: Completion::Bounds { t: Tag(6), .. },
            ..
        }]
    );
    assert!(is_answer, "{sent:?}");
}

#[test]
fn a_guest_that_arrives_while_the_storage_is_used_is_served_as_the_others() {
    let mut far = Far::open(LinkLimits::default());
    let script = Arc::<Mutex<Script>>::default();
    let begins = Event::Message(ToHost::Begin { generation: 1 });
    let call = Call::Bounds {
        t: Tag(7),
        log: log(0),
    };
    let asks = Event::Message(ToHost::Call {
        generation: 1,
        call,
    });
    script.lock().coming.extend([Event::Up, begins, asks]);
    let arrivals = far.host.arrivals();
    arrivals
        .send(Box::new(Scripted(Arc::clone(&script))))
        .unwrap();
    far.poll();
    assert_eq!(script.lock().sent.len(), 1);
}
