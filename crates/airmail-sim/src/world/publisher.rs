//! A publisher: the SDK's producer, with messages that the ledger knows.

use super::link::Link;
use super::{Space, TOPICS};
use crate::batching::{Part, message, topic_name};
use crate::entropy::Entropy;
use crate::files::Disk;
use crate::invariants::{Checked, Violation, durable_first};
use crate::ledger::{Acked, Ledger};
use crate::message::MessageId;
use airmail_client::core::{
    Producer, ProducerConfig, ProducerOutput, PublishError, Settled, Ticket,
};
use airmail_model::{ErrorCode, Incarnation, Lane, Now, ProducerEpoch, ProducerId};
use std::collections::BTreeSet;
use std::time::Duration;

/// One publisher.
#[derive(Debug)]
pub(super) struct Publisher {
    number: u32,
    pub(super) link: Link,
    pub(super) core: Producer,
    open: BTreeSet<MessageId>,
}

impl Publisher {
    pub(super) fn new(number: u32, chance: &mut Entropy) -> Publisher {
        let config = ProducerConfig {
            in_flight: chance.index(8) + 1,
            memory_bytes: 1 << chance.between(12, 16),
            delivery_timeout: Duration::from_secs(chance.between(1, 60)),
            seed: chance.next(),
            ..ProducerConfig::default()
        };
        let id = ProducerId(u64::from(number) + 1_000);
        Publisher {
            number,
            link: Link::default(),
            core: Producer::new(config, id, ProducerEpoch(1)),
            open: BTreeSet::new(),
        }
    }

    /// Publishes a few messages to a namespace.
    pub(super) fn publish(
        &mut self,
        now: Now,
        space: &Space,
        ledger: &mut Ledger,
        chance: &mut Entropy,
    ) -> Checked {
        let most = if chance.chance(50_000) { 200 } else { 6 };
        for _ in 0..chance.between(1, most) {
            let topic = topic_name(chance.below(TOPICS));
            let hash = topic.hash(space.id);
            let log = space.map.log(hash, Lane::Normal);
            let part = Part {
                id: ledger.create(self.number, log, hash, space.durability),
                topic,
                filler: u32::try_from(chance.below(400)).unwrap_or(0),
            };
            let ticket = Ticket(part.id.0);
            match self.core.publish(now, space.id, &message(&part), ticket) {
                Ok(()) => {
                    self.open.insert(part.id);
                }
                Err(PublishError::Full | PublishError::Unresolved) => {
                    ledger.refuse(part.id);
                    return Ok(());
                }
                Err(PublishError::Refused(error)) => {
                    return Err(Violation::new("G8 good input is taken", error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Whether everything published has been settled.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.core.is_idle()
    }

    /// Takes in what has become of messages, and gives what is to be sent.
    pub(super) fn settle(
        &mut self,
        out: &mut ProducerOutput,
        ledger: &mut Ledger,
        disk: &Disk,
    ) -> Checked {
        for settled in out.settled.drain(..) {
            for ticket in &settled.tickets {
                if !self.open.remove(&MessageId(ticket.0)) {
                    let detail = format!("message {} settled twice, or never sent", ticket.0);
                    return Err(Violation::new("G3 each is settled once", detail));
                }
            }
            settle_one(&settled, ledger, disk)?;
        }
        Ok(())
    }
}

fn settle_one(settled: &Settled, ledger: &mut Ledger, disk: &Disk) -> Checked {
    let ids = settled.tickets.iter().map(|ticket| MessageId(ticket.0));
    let ack = match &settled.result {
        Ok(ack) => ack,
        Err(error) => {
            let known = [ErrorCode::OutcomeUnknown, ErrorCode::NamespaceNotFound];
            if !error.code().retriable() && !known.contains(&error.code()) {
                return Err(Violation::new("G8 good input is taken", error.to_string()));
            }
            for id in ids {
                if error.code() != ErrorCode::OutcomeUnknown {
                    ledger.refuse(id);
                }
            }
            return Ok(());
        }
    };
    if ack.extent.numbers() != settled.tickets.len() as u64 {
        let detail = format!("{:?} for {} messages", ack.extent, settled.tickets.len());
        return Err(Violation::new("G1 an ack says what holds", detail));
    }
    for (offset, id) in ids.enumerate() {
        let Some(entry) = ledger.get(id) else {
            continue;
        };
        if ack.held < entry.durability {
            let detail = format!("message {} held {} only", id.0, ack.held);
            return Err(Violation::new("G1 an ack says what holds", detail));
        }
        durable_first::check(disk, id, entry.durability, "acknowledged")?;
        let acked = Acked {
            sequence: ack.extent.first.plus(offset as u64),
            incarnation: Incarnation(0),
            appended: ack.appended,
            held: ack.held,
        };
        ledger.ack(id, acked)?;
    }
    Ok(())
}
