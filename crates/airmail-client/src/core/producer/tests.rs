//! A producer against a scripted node that checks numbers as a log does (G3).

mod failures;
mod invariants;
mod lanes;
mod node;
mod order;
mod transcripts;
mod waking;

use super::*;
use airmail_model::frame::{Refused, Reply};
use airmail_model::{ErrorCode, LogIndex, MapEpoch, Message, TopicName, Wall};
use node::Node;

const NAMESPACE: NamespaceId = NamespaceId(1);

fn map(epoch: u32, logs: u16) -> LogMap {
    LogMap::even(NAMESPACE, MapEpoch(epoch), LogIndex(0), logs)
}

/// Drives a producer: keeps its outputs, and has a clock in milliseconds.
struct Driver {
    producer: Producer,
    now: u64,
    sent: Vec<Request>,
    settled: Vec<Settled>,
    wake: Option<Mono>,
}

impl Driver {
    fn new(logs: u16, change: impl FnOnce(&mut ProducerConfig)) -> Driver {
        let mut config = ProducerConfig::default();
        change(&mut config);
        let mut producer = Producer::new(config, ProducerId(7), ProducerEpoch(0));
        producer.set_map(map(1, logs));
        Driver {
            producer,
            now: 1_000,
            sent: Vec::new(),
            settled: Vec::new(),
            wake: None,
        }
    }

    fn connected(logs: u16) -> Driver {
        let mut driver = Driver::new(logs, |_| {});
        driver.producer.connected();
        driver
    }

    fn now(&self) -> Now {
        Now {
            mono: Mono(self.now * 1_000_000),
            wall: Wall(1_700_000_000_000_000 + self.now as i64 * 1_000),
        }
    }

    fn publish(&mut self, topic: &str, ticket: u64) {
        let message = message(topic, &ticket.to_string());
        let (now, ticket) = (self.now(), Ticket(ticket));
        let published = self.producer.publish(now, NAMESPACE, &message, ticket);
        assert_eq!(published, Ok(()));
    }

    /// Publishes in two steps, as the SDK does; gives the effect.
    fn accept(&mut self, topic: &str, ticket: u64) -> Accepted {
        let message = message(topic, &ticket.to_string());
        let (now, ticket) = (self.now(), Ticket(ticket));
        let topic = &message.topic;
        let destination = self.producer.destination(NAMESPACE, topic, message.lane);
        let destination = destination.unwrap();
        let message = MessageRef::Message(&message);
        let accepted = self.producer.accept(now, destination, message, ticket);
        accepted.unwrap()
    }

    fn advance(&mut self) {
        let mut out = ProducerOutput::default();
        self.wake = self.producer.advance(self.now(), &mut out);
        self.settled.append(&mut out.settled);
    }

    fn poll(&mut self) -> usize {
        let mut out = ProducerOutput::default();
        self.wake = self.producer.poll(self.now(), &mut out);
        let requests = out.requests.len();
        self.sent.append(&mut out.requests);
        self.settled.append(&mut out.settled);
        requests
    }

    fn reply(&mut self, reply: Reply) {
        let mut out = ProducerOutput::default();
        self.producer.reply(self.now(), reply, &mut out);
        self.settled.append(&mut out.settled);
    }

    /// Lets the node answer everything sent, and what is sent upon that, until all is quiet.
    fn run(&mut self, node: &mut Node) {
        for _ in 0..1_000 {
            self.poll();
            let sent = std::mem::take(&mut self.sent);
            if sent.is_empty() {
                match self.wake {
                    Some(wake) if !self.producer.is_idle() => self.now = wake.0 / 1_000_000 + 1,
                    _ => return,
                }
            }
            for request in sent {
                let reply = node.answer(&request);
                self.reply(reply);
            }
        }
        panic!("never quiet");
    }

    /// Gives the error code of each ticket that failed, `None` of one that was stored, in order of
    /// ticket.
    fn outcomes(&self) -> Vec<(u64, Option<ErrorCode>)> {
        let mut outcomes: Vec<(u64, Option<ErrorCode>)> = Vec::new();
        for settled in &self.settled {
            let code = settled.result.as_ref().err().map(Error::code);
            outcomes.extend(settled.tickets.iter().map(|ticket| (ticket.0, code)));
        }
        outcomes.sort_by_key(|(ticket, _)| *ticket);
        outcomes
    }
}

fn message(topic: &str, payload: &str) -> Message {
    let topic = TopicName::new(topic, &Limits::DEFAULT).unwrap();
    Message::new(topic, payload.to_owned())
}

fn all_stored(tickets: std::ops::Range<u64>) -> Vec<(u64, Option<ErrorCode>)> {
    tickets.map(|ticket| (ticket, None)).collect()
}
