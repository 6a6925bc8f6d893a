//! Batching again what waits: with new numbers after a refusal, or by a new map.

use super::log_queue::{LogQueue, Phase};
use super::open_batch::held_bytes;
use super::sealed_batch::SealedBatch;
use super::{MessageRef, Producer, ProducerOutput, Settled, Ticket};
use airmail_model::batch::{PushError, Record};
use airmail_model::bug;
use airmail_model::{
    Error, ErrorCode, Lane, Limits, LogId, Message, Mono, NamespaceId, Now, ProducerEpoch,
};
use bytes::Bytes;
use std::collections::VecDeque;

impl Producer {
    /// Gives new numbers to the messages of the logs that need them and have nothing in flight.
    pub(super) fn renumber(&mut self, now: Now, out: &mut ProducerOutput) {
        let limits = &self.config.limits;
        for (log, queue) in &mut self.queues {
            let Phase::Renumbering { until } = queue.phase else {
                // Input: a node that has not refused for good.
                continue;
            };
            if queue.any_in_flight() {
                continue;
            }
            let lost = Error::new(ErrorCode::OutcomeUnknown);
            let freed = queue.fail_maybe_stored(&lost, &mut out.settled);
            self.held_bytes.remove(log.lane, freed);
            let unbatched = unbatch(queue);
            for message in unbatched {
                let freed = message.append_to(queue, *log, now, limits, &mut out.settled);
                self.held_bytes.remove(log.lane, freed);
            }
            queue.phase = Phase::Paused { until };
        }
    }

    /// Puts newer maps in force where nothing sent by the old one may still be answered.
    pub(super) fn switch_maps(&mut self, now: Now, out: &mut ProducerOutput) {
        let logs_of = |namespace| lowest(namespace)..=highest(namespace);
        let switching = self.maps.iter().filter_map(|(namespace, known)| {
            let mut queues = self.queues.range(logs_of(*namespace));
            let ready = queues.all(|(_, queue)| !queue.any_maybe_stored());
            (known.newer.is_some() && ready).then_some(*namespace)
        });
        for namespace in switching.collect::<Vec<_>>() {
            let mut unbatched = VecDeque::new();
            let known = self.maps.get_mut(&namespace);
            let Some((known, map)) = known.and_then(|known| {
                let newer = known.newer.take()?;
                Some((known, newer))
            }) else {
                bug!("no newer map of {namespace}, which was to come into force");
                continue;
            };
            known.current = map.clone();
            self.last_topic = None;
            for (_, queue) in self.queues.range_mut(logs_of(namespace)) {
                unbatched.extend(unbatch(queue));
                queue.map_epoch = map.epoch;
                queue.phase = Phase::Sending;
            }
            let limits = self.config.limits.clone();
            for message in unbatched {
                let Message { topic, lane, .. } = &message.message;
                let log = map.log(topic.hash(namespace), *lane);
                let (id, epoch) = (self.id, self.epoch);
                let queue = self.queues.entry(log);
                let queue = queue.or_insert_with(|| LogQueue::new(log, map.epoch, id, epoch));
                let freed = message.append_to(queue, log, now, &limits, &mut out.settled);
                self.held_bytes.remove(log.lane, freed);
            }
        }
    }
}

fn lowest(namespace: NamespaceId) -> LogId {
    LogId {
        namespace,
        ..LogId::default()
    }
}

fn highest(namespace: NamespaceId) -> LogId {
    LogId {
        namespace,
        lane: Lane::High,
        index: airmail_model::LogIndex(u16::MAX),
    }
}

/// A message that was taken out of its batch, and goes into another.
struct Unbatched {
    message: Message,
    ticket: Ticket,
    published: Mono,
    time: i64,
}

impl Unbatched {
    /// Appends it to a queue; returns the bytes that become free if it fails because the limits
    /// have changed.
    fn append_to(
        self,
        queue: &mut LogQueue,
        log: LogId,
        now: Now,
        limits: &Limits,
        out: &mut Vec<Settled>,
    ) -> usize {
        let time = if self.time == 0 {
            now.wall.0
        } else {
            self.time
        };
        let message = MessageRef::Message(&self.message);
        let hash = self.message.topic.hash(log.namespace);
        let (bytes, time) = (held_bytes(&message), (self.published, time));
        let pushed = queue.push(&message, hash, bytes, self.ticket, time, limits);
        let error = match pushed {
            Ok(_) => return 0,
            Err(PushError::Refused(error)) => error,
            Err(PushError::Full) => {
                bug!("{log}: an empty batch is full for {bytes} bytes");
                Error::new(ErrorCode::BatchTooLarge)
            }
        };
        out.push(Settled {
            tickets: vec![self.ticket],
            log,
            result: Err(error),
        });
        bytes
    }
}

/// Takes all messages out of a queue, in order, and sets its numbers back to the first free one.
fn unbatch(queue: &mut LogQueue) -> Vec<Unbatched> {
    queue.seal();
    let batches = queue.take_batches();
    if std::mem::take(&mut queue.needs_new_epoch) {
        queue.epoch = ProducerEpoch(queue.epoch.0.saturating_add(1));
        queue.acked = 0;
        queue.was_cut = false;
    }
    queue.next = queue.acked;
    batches.iter().flat_map(messages_of).collect()
}

fn messages_of(sealed: &SealedBatch) -> impl Iterator<Item = Unbatched> {
    let records = sealed.batch.iter().zip(&sealed.tickets);
    records.map(|(record, ticket)| Unbatched {
        message: message_of(
            &record,
            sealed.batch.log().lane,
            sealed.batch.share(record.payload),
        ),
        ticket: *ticket,
        published: sealed.published,
        time: record.time,
    })
}

/// Restores the message that a record was made of, whole: one without its audience would be for everybody.
fn message_of(record: &Record<'_>, lane: Lane, payload: Bytes) -> Message {
    let owned = |(name, value): (&str, _)| (name.to_owned(), value);
    Message {
        topic: record.name(),
        payload,
        lane,
        attributes: record.attributes.map(owned).collect(),
        key: record.key.map(Bytes::copy_from_slice),
        ttl_ms: record.ttl_ms,
        deliver_at: record.deliver_at,
        version: record.version,
        audience: record.audience.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::batch::{AttributeValue, BatchTarget};
    use airmail_model::{BatchEncoder, MapEpoch, RoleId, TopicName};

    #[test]
    fn a_message_that_is_batched_again_loses_nothing_that_it_brought_along() {
        let limits = Limits::DEFAULT;
        let topic = TopicName::new("t", &limits).unwrap();
        let message = Message {
            key: Some(Bytes::from_static(b"k")),
            ttl_ms: Some(5),
            deliver_at: Some(6),
            version: Some(7),
            audience: vec![RoleId(8), RoleId(9)],
            lane: Lane::High,
            ..Message::new(topic, "x").attribute("a", AttributeValue::Bool(true))
        };
        let mut encoder = BatchEncoder::new(NamespaceId(0));
        encoder.push_reserved(&message, 1, &limits).unwrap();
        let batch = encoder.finish(&BatchTarget {
            log: LogId {
                lane: Lane::High,
                ..LogId::default()
            },
            epoch: MapEpoch(1),
            producer: None,
            producer_time: 1,
        });
        let record = batch.record(0);
        let payload = batch.share(record.payload);
        assert_eq!(message_of(&record, batch.log().lane, payload), message);
    }
}
