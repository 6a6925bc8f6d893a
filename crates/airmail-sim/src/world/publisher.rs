//! A publisher: the SDK's producer, with messages that the ledger knows.

use super::Space;
use super::link::Link;
use crate::batching::{Part, message, topic_name};
use crate::census::{Census, Kind};
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::files::Machine;
use crate::invariants::{Checked, Violation, durable_first};
use crate::ledger::{Acked, Ledger};
use crate::lines::Lines;
use crate::message::MessageId;
use crate::plant::Plant;
use crate::shape::{Shape, popular};
use airmail_client::core::{
    Producer, ProducerConfig, ProducerOutput, PublishError, Settled, Ticket,
};
use airmail_model::{
    Error, ErrorCode, Incarnation, Lane, LogId, Now, ProducerEpoch, ProducerId, TopicName,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// One publisher.
#[derive(Debug)]
pub(super) struct Publisher {
    number: u32,
    pub(super) link: Link,
    pub(super) core: Producer,
    open: BTreeSet<MessageId>,
    id: ProducerId,
    epoch: ProducerEpoch,
    /// Draws of lanes, if it publishes to both: aside, so that no other depends on them.
    lanes: Option<Entropy>,
    /// Another with its id and a higher epoch has taken over: it may be fenced.
    pub(super) succeeded: bool,
}

/// Whether a publisher of this number has an id that others may go on under.
const fn shares_id(number: u32) -> bool {
    number % 2 == 1
}

impl Publisher {
    pub(super) fn new(number: u32, plant: Option<Plant>, chance: &mut Entropy) -> Publisher {
        let config = ProducerConfig {
            in_flight: 1 << chance.between(0, 6),
            memory_bytes: 1 << chance.between(12, 16),
            delivery_timeout: patience(chance),
            seed: chance.next(),
            is_id_shared: shares_id(number),
            bug: plant.and_then(Plant::in_client),
            ..ProducerConfig::default()
        };
        let id = ProducerId(u64::from(number) + 1_000);
        let epoch = ProducerEpoch(1);
        Publisher {
            number,
            link: Link::default(),
            core: Producer::new(config, id, epoch),
            open: BTreeSet::new(),
            id,
            epoch,
            lanes: None,
            succeeded: false,
        }
    }

    /// It publishes to both lanes, if there is a seed of the run to draw them by.
    pub(super) fn with_lanes(mut self, seed: Option<u64>) -> Publisher {
        let number = u64::from(self.number);
        self.lanes = seed.map(|seed| Entropy::new(seed ^ number));
        self
    }

    /// The lane of its next message.
    fn lane(&mut self) -> Lane {
        let lanes = self.lanes.as_mut();
        if lanes.is_some_and(|lanes| lanes.chance(300_000)) {
            Lane::High
        } else {
            Lane::Normal
        }
    }

    /// Whether another may take over its id.
    pub(super) fn may_be_succeeded(&self) -> bool {
        !self.succeeded && shares_id(self.number)
    }

    /// One that takes over this one's id, with a higher epoch. Its own messages count anew.
    pub(super) fn successor(&mut self, number: u32, chance: &mut Entropy) -> Publisher {
        self.succeeded = true;
        let mut next = Publisher::new(number, None, chance);
        next.id = self.id;
        // An epoch that the older one gives up by itself is below this.
        next.epoch = ProducerEpoch(self.epoch.0 + 1_000);
        let config = ProducerConfig {
            is_id_shared: true,
            ..ProducerConfig::default()
        };
        next.core = Producer::new(config, next.id, next.epoch);
        next
    }

    /// Publishes a few messages to a namespace.
    pub(super) fn publish(
        &mut self,
        now: Now,
        space: &Space,
        shape: &Shape,
        evidence: &mut Evidence,
        chance: &mut Entropy,
    ) -> Checked {
        let most = if chance.chance(30_000) {
            200
        } else {
            shape.burst
        };
        for _ in 0..chance.between(1, most) {
            let topic = topic_name(popular(chance, space.topics));
            let filler = chance.below(shape.filler);
            if !self.publish_one(now, space, topic, filler, evidence)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Publishes a message; whether it was taken.
    pub(super) fn publish_one(
        &mut self,
        now: Now,
        space: &Space,
        topic: TopicName,
        filler: u64,
        evidence: &mut Evidence,
    ) -> Result<bool, Violation> {
        let Evidence { ledger, census, .. } = evidence;
        let hash = topic.hash(space.id);
        let lane = self.lane();
        census.add(Kind::PublishedHigh, u64::from(lane == Lane::High));
        let log = space.map.log(hash, lane);
        let id = ledger.create(self.number, log, &topic, space.durability);
        let entry = ledger.get(id);
        let ttl_ms = entry.and_then(|entry| entry.ttl_ms);
        let audience = entry.map_or(Vec::new(), |entry| entry.audience.clone());
        census.add(Kind::PublishedRestricted, u64::from(!audience.is_empty()));
        census.add(Kind::PublishedExpiring, u64::from(ttl_ms.is_some()));
        let part = Part {
            lane,
            id,
            ttl_ms,
            audience,
            number: ledger.get(id).and_then(|entry| entry.number),
            topic,
            filler: u32::try_from(filler).unwrap_or(0),
        };
        let ticket = Ticket(part.id.0);
        match self.core.publish(now, space.id, &message(&part), ticket) {
            Ok(()) => {
                self.open.insert(part.id);
                return Ok(true);
            }
            Err(PublishError::Full | PublishError::Unresolved) => census.count(Kind::MemoryFull),
            Err(PublishError::Refused(error))
                if self.succeeded && error.code() == ErrorCode::ProducerFenced => {}
            Err(PublishError::Refused(error)) => {
                return Err(Violation::new("G8 good input is taken", error.to_string()));
            }
        }
        ledger.refuse(part.id);
        Ok(false)
    }

    /// Whether everything published has been settled, but for what is of logs that were harmed.
    pub(super) fn is_idle(&self, ledger: &Ledger) -> bool {
        let is_harmed = |id: &MessageId| {
            let entry = ledger.get(*id);
            entry.is_some_and(|entry| ledger.harm_of(entry.log).is_some())
        };
        if self.open.is_empty() {
            return self.core.is_idle();
        }
        self.open.iter().all(is_harmed)
    }

    /// Logs for which it waits.
    pub(super) fn waits_for(&self, ledger: &Ledger) -> BTreeSet<LogId> {
        let entries = self.open.iter().filter_map(|id| ledger.get(*id));
        entries.map(|entry| entry.log).collect()
    }

    /// Takes in what has become of messages, and gives what is to be sent.
    pub(super) fn settle(
        &mut self,
        out: &mut ProducerOutput,
        evidence: &mut Evidence,
        machine: &Machine,
        spaces: &[Space],
    ) -> Checked {
        let Evidence { ledger, census, .. } = evidence;
        for settled in out.settled.drain(..) {
            for ticket in &settled.tickets {
                if !self.open.remove(&MessageId(ticket.0)) {
                    let detail = format!("message {} settled twice, or never sent", ticket.0);
                    return Err(Violation::new("G3 each is settled once", detail));
                }
            }
            let fenced = matches!(&settled.result, Err(error)
                if error.code() == ErrorCode::ProducerFenced);
            if fenced && self.succeeded {
                census.count(Kind::PublisherFenced);
                continue;
            }
            count(&settled, census);
            count_over_moves(&settled, &ledger.lines, spaces, census);
            settle_one(&settled, ledger, machine, spaces)?;
        }
        Ok(())
    }
}

/// Time that a publisher waits for an ack: some give up before the node could have restarted.
fn patience(chance: &mut Entropy) -> Duration {
    Duration::from_millis(if chance.chance(200_000) {
        chance.between(5, 300)
    } else {
        chance.between(1_000, 60_000)
    })
}

fn count(settled: &Settled, census: &mut Census) {
    let Err(error) = &settled.result else { return };
    let kind = match error.code() {
        ErrorCode::OutcomeUnknown => Kind::OutcomeUnknown,
        ErrorCode::StorageFull => Kind::RefusedFull,
        ErrorCode::Overloaded => Kind::RefusedBusy,
        ErrorCode::NamespaceNotFound => Kind::NamespaceGone,
        _ => Kind::MessageTimedOut,
    };
    census.count(kind);
}

/// Counts a retry that an earlier map's log knew, where the namespace has been moved since.
fn count_over_moves(settled: &Settled, lines: &Lines, spaces: &[Space], census: &mut Census) {
    let is_known = matches!(&settled.result, Ok(ack) if ack.duplicate);
    let of = spaces
        .iter()
        .find(|space| space.id == settled.log.namespace);
    let is_earlier = of.is_some_and(|of| of.moves() > lines.moves_before(settled.log));
    census.add(Kind::RetryOverMove, u64::from(is_known && is_earlier));
}

fn settle_one(
    settled: &Settled,
    ledger: &mut Ledger,
    machine: &Machine,
    spaces: &[Space],
) -> Checked {
    let ids = settled.tickets.iter().map(|ticket| MessageId(ticket.0));
    let ack = match &settled.result {
        Ok(ack) => ack,
        Err(error) => return settle_failure(settled, error, ledger, spaces),
    };
    if ack.extent.numbers() != settled.tickets.len() as u64 {
        let detail = format!("{:?} for {} messages", ack.extent, settled.tickets.len());
        return Err(Violation::new("G1 an ack says what holds", detail));
    }
    if ack.exact != ledger.places.is_none() {
        let detail = format!("{ack:?}, of a storage whose acks are otherwise");
        return Err(Violation::new("G1 an ack says what holds", detail));
    }
    let published = ids.clone().filter_map(|id| ledger.get(id));
    if let Some(published) = published.map(|entry| entry.published).max() {
        let (log, appended) = (settled.log, ack.appended);
        ledger.expiry.acked(log, appended, published);
    }
    for (offset, id) in ids.enumerate() {
        let Some(entry) = ledger.get(id) else {
            continue;
        };
        if ack.held.synced < entry.durability {
            let detail = format!("message {} held {} only", id.0, ack.held);
            return Err(Violation::new("G1 an ack says what holds", detail));
        }
        let number = ack.extent.first.plus(offset as u64);
        let told = (ledger.lines.place(settled.log, number), ack.appended);
        if ledger.lines.of(settled.log) != entry.log {
            let detail = format!(
                "message {} of {} is stored in {}",
                id.0, entry.log, settled.log
            );
            return Err(Violation::new("a topic keeps to its log", detail));
        }
        if ledger.harm_of(entry.log).is_some() {
            // It was there, before the harm; or a topic that somebody has made again has it, and its report came before
            // a node had read the other birth.
            continue;
        }
        durable_first::check(machine, id, ledger.on_disk(id), "acknowledged")?;
        let of_log = entry.log.namespace;
        let is_leaving = spaces.iter().any(|of| of.leaving && of.id == of_log);
        let (sequence, appended) = match ledger.place(id, told) {
            // With its log, nobody can look where it stood.
            Err(_) if is_leaving => continue,
            place => place?,
        };
        let acked = Acked {
            sequence,
            incarnation: Incarnation(0),
            appended,
            held: ack.held.synced,
        };
        ledger.ack(id, acked)?;
    }
    Ok(())
}

/// Messages have failed.
///
/// # Errors
/// They could have been published.
fn settle_failure(
    settled: &Settled,
    error: &Error,
    ledger: &mut Ledger,
    spaces: &[Space],
) -> Checked {
    let first = settled.tickets.first();
    let first = first.and_then(|ticket| ledger.get(MessageId(ticket.0)));
    let log = first.map(|entry| entry.log);
    let is_of = |space: &&Space| log.is_some_and(|log| log.namespace == space.id);
    let may_be = match error.code() {
        ErrorCode::OutcomeUnknown => true,
        ErrorCode::NamespaceNotFound => {
            spaces.iter().find(is_of).is_some_and(|space| space.leaving)
        }
        // Somebody has harmed it, and the nodes say so: nobody decides here what is to become of it.
        ErrorCode::LogSuspended => log.is_some_and(|log| ledger.harm_of(log).is_some()),
        code => code.retriable(),
    };
    if !may_be {
        return Err(Violation::new("G8 good input is taken", error.to_string()));
    }
    if error.code() != ErrorCode::OutcomeUnknown {
        let ids = settled.tickets.iter().map(|ticket| MessageId(ticket.0));
        ids.for_each(|id| ledger.refuse(id));
    }
    Ok(())
}
