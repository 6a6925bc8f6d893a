//! When what waits can't go as it is: too old, numbers to be given anew, another map.

use super::open::held_bytes;
use super::queue::{Phase, Queue, Sealed};
use super::{Offer, Producer, ProducerOutput, Settled, Ticket};
use airmail_model::batch::{PushError, Record};
use airmail_model::bug;
use airmail_model::{
    Error, ErrorCode, Lane, Limits, LogId, Message, Mono, NamespaceId, Now, ProducerEpoch,
};
use bytes::Bytes;
use std::collections::VecDeque;

impl Producer {
    /// Fails what has waited longer than the delivery timeout.
    pub(super) fn expire(&mut self, now: Mono, out: &mut ProducerOutput) {
        let timeout = self.config.delivery_timeout;
        let connected = self.connected;
        let late = |since: Mono| since.plus(timeout) <= now;
        for queue in self.queues.values_mut() {
            while queue.oldest().is_some_and(late) {
                let code = if connected {
                    ErrorCode::Overloaded
                } else {
                    ErrorCode::Disconnected
                };
                let limit = format!("{} ms", timeout.as_millis());
                let error = Error::new(code).field("delivery_timeout").limit(limit);
                // What only tells of numbers tells a user nothing.
                let reason = |batch: &Sealed| {
                    let last = batch.last_error.clone();
                    last.filter(|last| last.code().waited_for())
                        .unwrap_or_else(|| error.clone())
                };
                self.held_bytes -= match queue.batches.front() {
                    None => queue.fail_open(&error, &mut out.settled),
                    Some(batch) if batch.uncertain || batch.request.is_some() => {
                        let error = reason(batch);
                        queue.fail_uncertain(&error, &mut out.settled)
                    }
                    Some(batch) => {
                        let error = reason(batch);
                        queue.fail(0, &error, &mut out.settled)
                    }
                };
            }
        }
    }

    /// Gives new numbers to the logs that need them and have nothing in flight.
    pub(super) fn rebuild(&mut self, now: Now, out: &mut ProducerOutput) {
        let limits = &self.config.limits;
        for (log, queue) in &mut self.queues {
            let Phase::Rebuild { until } = queue.phase else {
                // Input: a node that has not refused for good.
                continue;
            };
            if queue.any_in_flight() {
                continue;
            }
            let lost = Error::new(ErrorCode::OutcomeUnknown);
            self.held_bytes -= queue.fail_uncertain(&lost, &mut out.settled);
            let waiting = take_messages(queue);
            for item in waiting {
                self.held_bytes -= item.put(queue, *log, now, limits, &mut out.settled);
            }
            queue.phase = Phase::Waiting { until };
        }
    }

    /// Puts newer maps in force where nothing sent by the old one may still be answered.
    pub(super) fn switch_maps(&mut self, now: Now, out: &mut ProducerOutput) {
        let of = |namespace| lowest(namespace)..=highest(namespace);
        let switching = self.spaces.iter().filter_map(|(namespace, space)| {
            let mut queues = self.queues.range(of(*namespace));
            let ready = queues.all(|(_, queue)| !queue.any_uncertain());
            (space.newer.is_some() && ready).then_some(*namespace)
        });
        for namespace in switching.collect::<Vec<_>>() {
            let mut waiting = VecDeque::new();
            let space = self.spaces.get_mut(&namespace);
            let Some((space, map)) = space.and_then(|space| {
                let newer = space.newer.take()?;
                Some((space, newer))
            }) else {
                bug!("no newer map of {namespace}, which was to come into force");
                continue;
            };
            space.map = map.clone();
            self.last = None;
            for (_, queue) in self.queues.range_mut(of(namespace)) {
                waiting.extend(take_messages(queue));
                queue.map = map.epoch;
                queue.phase = Phase::Sending;
            }
            let limits = self.config.limits.clone();
            for item in waiting {
                let log = map.log(item.message.topic.hash(namespace), Lane::Normal);
                let (id, epoch) = (self.id, self.epoch);
                let queue = self.queues.entry(log);
                let queue = queue.or_insert_with(|| Queue::new(log, map.epoch, id, epoch));
                self.held_bytes -= item.put(queue, log, now, &limits, &mut out.settled);
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

/// A message on its way into another batch.
struct Waiting {
    message: Message,
    ticket: Ticket,
    since: Mono,
    time: i64,
}

impl Waiting {
    /// Puts it into a queue; returns the bytes set free if it can't be (the limits have changed).
    fn put(
        self,
        queue: &mut Queue,
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
        let offer = Offer::Message(&self.message);
        let hash = self.message.topic.hash(log.namespace);
        let (bytes, time) = (held_bytes(&offer), (self.since, time));
        let pushed = queue.push(&offer, hash, bytes, self.ticket, time, limits);
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

/// Takes everything out of a queue, in order, and sets its numbers back to the first free one.
fn take_messages(queue: &mut Queue) -> Vec<Waiting> {
    queue.seal();
    let batches = queue.take_batches();
    if std::mem::take(&mut queue.tainted) {
        queue.epoch = ProducerEpoch(queue.epoch.0.saturating_add(1));
        queue.acked = 0;
    }
    queue.next = queue.acked;
    batches.iter().flat_map(messages_of).collect()
}

fn messages_of(sealed: &Sealed) -> impl Iterator<Item = Waiting> {
    let records = sealed.batch.iter().zip(&sealed.tickets);
    records.map(|(record, ticket)| Waiting {
        message: message_of(&record, sealed.batch.share(record.payload)),
        ticket: *ticket,
        since: sealed.since,
        time: record.time,
    })
}

/// The message that a record was made of.
fn message_of(record: &Record<'_>, payload: Bytes) -> Message {
    let owned = |(name, value): (&str, _)| (name.to_owned(), value);
    Message {
        topic: record.name(),
        payload,
        attributes: record.attributes.map(owned).collect(),
        key: None,
        ttl_ms: None,
        deliver_at: None,
        version: None,
        audience: Vec::new(),
    }
}
