//! The SDK's producer: whatever a node answers, in whatever order, it does not panic, its invariants hold
//! after each step ([`Producer::check`]), and each message that it took is settled at most once.

#![no_main]

use airmail_client::core::{Producer, ProducerConfig, ProducerOutput, Ticket};
use airmail_fuzz::fuzz_target;
use airmail_fuzz::number::number;
use airmail_model::frame::{Ack, Refused, Reply, Request, RequestId};
use airmail_model::{
    AppendTime, Durability, Error, ErrorCode, Extent, Lane, Limits, LogIndex, LogMap, MapEpoch,
    Message, Mono, NamespaceId, Now, ProducerEpoch, ProducerId, Sequence, TopicName, Wall,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use std::collections::BTreeSet;
use std::time::Duration;

const NAMESPACE: NamespaceId = NamespaceId(1);

#[derive(Arbitrary, Debug)]
enum Step {
    Publish {
        topic: u8,
        bytes: u8,
        times: u8,
    },
    Poll {
        later_ms: u16,
    },
    Connect,
    Disconnect,
    Map {
        epoch: u8,
        first: u8,
        logs: u8,
    },
    Limits {
        batch_bytes: u16,
        batch_records: u16,
        message_bytes: u16,
        unacked_bytes: u16,
    },
    Stored {
        which: u8,
        first: u8,
        more: u8,
        duplicate: bool,
    },
    Refused {
        which: u8,
        code: u8,
        after_ms: u8,
        map: Option<u8>,
    },
    Answered {
        request: u8,
    },
    Abandon,
}

struct World {
    producer: Producer,
    out: ProducerOutput,
    sent: Vec<RequestId>,
    open: BTreeSet<Ticket>,
    next: u64,
    now: Now,
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Publish {
                topic,
                bytes,
                times,
            } => {
                for _ in 0..times % 8 {
                    self.publish(topic, bytes);
                }
            }
            Step::Poll { later_ms } => {
                self.now.mono = self.now.mono.plus(Duration::from_millis(later_ms.into()));
                self.producer.poll(self.now, &mut self.out);
            }
            Step::Connect => {
                self.sent.clear();
                self.producer.connected();
            }
            Step::Disconnect => self.producer.disconnected(),
            Step::Map { epoch, first, logs } => self.producer.set_map(map(epoch, first, logs)),
            Step::Limits {
                batch_bytes,
                batch_records,
                message_bytes,
                unacked_bytes,
            } => {
                self.producer.set_limits(Limits {
                    batch_bytes: batch_bytes.into(),
                    batch_records,
                    message_bytes: message_bytes.into(),
                    unacked_bytes: unacked_bytes.into(),
                    ..Limits::DEFAULT
                });
            }
            Step::Abandon => {
                let error = Error::new(ErrorCode::Disconnected);
                self.producer.abandon(&error, &mut self.out);
            }
            answer => self.answer(answer),
        }
        self.look();
    }

    fn publish(&mut self, name_and_lane: u8, bytes: u8) {
        let name = ["a", "b", "c", "d"][usize::from(name_and_lane % 4)];
        let topic = TopicName::new(name, &Limits::DEFAULT).expect("a name");
        let lane = if name_and_lane & 0x80 == 0 {
            Lane::Normal
        } else {
            Lane::High
        };
        let message = Message::new(topic, vec![7; bytes.into()]).lane(lane);
        let ticket = Ticket(self.next);
        if self
            .producer
            .publish(self.now, NAMESPACE, &message, ticket)
            .is_ok()
        {
            self.next += 1;
            self.open.insert(ticket);
        }
    }

    fn answer(&mut self, step: Step) {
        // Mostly one that was sent, in whatever order; sometimes one that never was.
        let which = |sent: &mut Vec<RequestId>, which: u8| match sent.len() {
            0 => RequestId(which.into()),
            n => sent.remove(usize::from(which) % n),
        };
        let (request, result) = match step {
            Step::Stored {
                which: n,
                first,
                more,
                duplicate,
            } => {
                let first = Sequence(number(first));
                let extent = Extent {
                    first,
                    last: Sequence(first.0.saturating_add(more.into())),
                };
                let ack = Ack {
                    extent,
                    appended: AppendTime(0),
                    held: Durability::FSYNC,
                    duplicate,
                    exact: true,
                };
                (which(&mut self.sent, n), Ok(ack))
            }
            Step::Refused {
                which: n,
                code,
                after_ms,
                map: newer,
            } => {
                let code = ErrorCode::ALL[usize::from(code) % ErrorCode::ALL.len()];
                let delay = Duration::from_millis(after_ms.into());
                let error = Error::new(code).retry_after(delay);
                let map = newer.map(|epoch| map(epoch, 0, 2));
                (which(&mut self.sent, n), Err(Refused { error, map }))
            }
            Step::Answered { request } => {
                let error = Error::new(ErrorCode::Overloaded);
                (RequestId(request.into()), Err(Refused { error, map: None }))
            }
            _ => unreachable!("the other steps are no answers"),
        };
        self.producer
            .reply(self.now, Reply::Acked { request, result }, &mut self.out);
    }

    fn look(&mut self) {
        for request in self.out.requests.drain(..) {
            if let Request::Publish { request, batch, .. } = request {
                assert!(batch.producer().is_some());
                self.sent.push(request);
            }
        }
        for settled in self.out.settled.drain(..) {
            for ticket in settled.tickets {
                assert!(self.open.remove(&ticket), "settled twice, or never taken");
            }
        }
        assert!(
            !self.open.is_empty() || self.producer.held_bytes() == 0,
            "held for nothing"
        );
    }
}

fn map(epoch: u8, first: u8, logs: u8) -> LogMap {
    let first = LogIndex((first % 8).into());
    LogMap::even(
        NAMESPACE,
        MapEpoch(epoch.into()),
        first,
        u16::from(logs % 4) + 1,
    )
}

fuzz_target!(|steps: Vec<Step>| {
    let config = ProducerConfig {
        memory_bytes: 8 << 10,
        ..ProducerConfig::default()
    };
    let mut world = World {
        producer: Producer::new(config, ProducerId(7), ProducerEpoch(1)),
        out: ProducerOutput::default(),
        sent: Vec::new(),
        open: BTreeSet::new(),
        next: 0,
        now: Now {
            mono: Mono(1),
            wall: Wall(1),
        },
    };
    world.producer.set_map(map(1, 0, 2));
    world.producer.connected();
    for step in steps {
        world.step(step);
    }
    // Given up, nothing stays.
    world.step(Step::Abandon);
    assert!(world.open.is_empty() && world.producer.is_idle());
});
