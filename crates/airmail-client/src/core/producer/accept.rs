//! Accepting a message: finding its log, and appending it to that log's open batch.
//!
//! This takes two steps, so that the caller need not read its clock for each message.
//! [`Producer::destination`] says whether the message would be the first of its batch, whose time
//! is the one that expiry goes by; [`Producer::accept`] appends it. A later message of a batch may
//! be given a time that is a little old.

use super::log_queue::{LogQueue, Pushed};
use super::{Producer, ProducerOutput, PublishError, Ticket};
use airmail_model::batch::PushError;
use airmail_model::bug;
use airmail_model::{
    Error, ErrorCode, Lane, LogId, MapEpoch, Message, NamespaceId, Now, TopicHash, TopicName,
};

/// A message that is to be published, borrowed from its owner.
#[derive(Clone, Copy, Debug)]
pub enum MessageRef<'a> {
    /// A message, attributes and all.
    Message(&'a Message),
    /// A topic and a payload, and nothing else; of lane normal.
    Payload(&'a TopicName, &'a [u8]),
}

impl MessageRef<'_> {
    /// Gives the lane that it is published to.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            MessageRef::Message(message) => message.lane,
            MessageRef::Payload(..) => Lane::Normal,
        }
    }

    /// Gives the topic that it is published to.
    #[must_use]
    pub fn topic(&self) -> &TopicName {
        match self {
            MessageRef::Message(message) => &message.topic,
            MessageRef::Payload(topic, _) => topic,
        }
    }
}

/// Log that a topic's next message of a lane goes to. Valid until the producer is changed.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    log: LogId,
    hash: TopicHash,
    /// True if that log's open batch is empty: the message's time will be its batch's.
    pub begins_batch: bool,
}

/// Effect of accepting a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// True if the message is the first of its batch.
    pub begins_batch: bool,
    /// True if there may be something to be sent: [`Producer::poll`].
    pub due: bool,
}

/// Topic that was looked up last: messages that follow each other are often of one topic.
#[derive(Debug)]
pub(super) struct LastTopic {
    namespace: NamespaceId,
    topic: TopicName,
    hash: TopicHash,
    /// Its log in each lane: a message of lane high among others costs no look-up.
    logs: [LogId; Lane::ALL.len()],
}

impl Producer {
    /// Finds the log that a topic's next message of a lane goes to.
    ///
    /// # Errors
    /// [`PublishError::Unresolved`].
    pub fn destination(
        &mut self,
        namespace: NamespaceId,
        topic: &TopicName,
        lane: Lane,
    ) -> Result<Destination, PublishError> {
        let same = |last: &&LastTopic| last.namespace == namespace && last.topic.is(topic);
        let (hash, logs) = match self.last_topic.as_ref().filter(same) {
            Some(last) => (last.hash, last.logs),
            None => self.look_up(namespace, topic)?,
        };
        let log = logs[lane as usize];
        let begins_batch = match self.queues.get(&log) {
            Some(queue) => queue.is_open_batch_empty(),
            None => {
                self.open_queue(log);
                true
            }
        };
        Ok(Destination {
            log,
            hash,
            begins_batch,
        })
    }

    #[cold]
    fn look_up(
        &mut self,
        namespace: NamespaceId,
        topic: &TopicName,
    ) -> Result<(TopicHash, [LogId; Lane::ALL.len()]), PublishError> {
        let known = self.maps.get(&namespace);
        let map = &known.ok_or(PublishError::Unresolved)?.current;
        let hash = topic.hash(namespace);
        let logs = Lane::ALL.map(|lane| map.log(hash, lane));
        self.last_topic = Some(LastTopic {
            namespace,
            topic: topic.clone(),
            hash,
            logs,
        });
        Ok((hash, logs))
    }

    /// Accepts a message of the topic and lane that `destination` was found for. A later [`Producer::poll`]
    /// sends it.
    ///
    /// # Errors
    /// [`PublishError`]; the message is then not accepted and its ticket will not come back.
    pub fn accept(
        &mut self,
        now: Now,
        destination: Destination,
        message: MessageRef<'_>,
        ticket: Ticket,
    ) -> Result<Accepted, PublishError> {
        let check = self.begin_accept_check();
        let accepted = self.append(now, destination, message, ticket);
        self.end_check(check, accepted.is_ok().into(), &ProducerOutput::default());
        accepted
    }

    #[inline]
    fn append(
        &mut self,
        now: Now,
        destination: Destination,
        message: MessageRef<'_>,
        ticket: Ticket,
    ) -> Result<Accepted, PublishError> {
        let bytes = super::open_batch::held_bytes(&message);
        let (lane, most) = (destination.log.lane, self.config.memory_bytes);
        if !self.held_bytes.fits(lane, bytes, most) {
            return Err(PublishError::Full);
        }
        let queue = self.queues.get_mut(&destination.log);
        let queue = queue.ok_or(PublishError::Unresolved)?;
        if let Some(error) = &queue.fenced {
            return Err(PublishError::Refused(error.clone()));
        }
        let time = (now.mono, now.wall.0);
        let pushed = queue.push(
            &message,
            destination.hash,
            bytes,
            ticket,
            time,
            &self.config.limits,
        );
        let Pushed {
            begins_batch,
            sealed,
        } = pushed.map_err(|error| match error {
            PushError::Refused(error) => PublishError::Refused(error),
            PushError::Full => {
                bug!(
                    "{}: an empty batch is full for {bytes} bytes",
                    destination.log
                );
                PublishError::Refused(Error::new(ErrorCode::BatchTooLarge))
            }
        })?;
        let due = (begins_batch || sealed) && self.connected && self.is_log_due(destination.log);
        self.held_bytes.add(lane, bytes);
        Ok(Accepted { begins_batch, due })
    }

    #[cold]
    fn open_queue(&mut self, log: LogId) {
        let known = self.maps.get(&log.namespace);
        let epoch = known.map_or_else(
            || {
                bug!("{log} was found without a map of its namespace");
                MapEpoch(1)
            },
            |known| known.current.epoch,
        );
        let queue = LogQueue::new(log, epoch, self.id, self.epoch);
        self.queues.insert(log, queue);
    }

    /// Accepts a message: [`Producer::destination`] and [`Producer::accept`] in one.
    ///
    /// # Errors
    /// Those of both.
    pub fn publish(
        &mut self,
        now: Now,
        namespace: NamespaceId,
        message: &Message,
        ticket: Ticket,
    ) -> Result<(), PublishError> {
        let destination = self.destination(namespace, &message.topic, message.lane)?;
        self.accept(now, destination, MessageRef::Message(message), ticket)
            .map(|_| ())
    }
}
