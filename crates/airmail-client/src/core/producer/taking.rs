//! Taking a message: which log it goes to, and into that log's open batch.
//!
//! In two steps, so that whoever has a clock need not read it for each message: [`Producer::place`]
//! says whether the message would be the first of its batch, whose time is the one that expiry goes
//! by, and [`Producer::take`] takes it. A later message of a batch may be given a time that is a
//! little old.

use super::queue::{Pushed, Queue};
use super::{Producer, ProducerOutput, PublishError, Ticket};
use airmail_model::batch::PushError;
use airmail_model::bug;
use airmail_model::{
    Error, ErrorCode, Lane, LogId, MapEpoch, Message, NamespaceId, Now, TopicHash, TopicName,
};

/// A message as it is handed over.
#[derive(Clone, Copy, Debug)]
pub enum Offer<'a> {
    /// With all that one may have.
    Message(&'a Message),
    /// A payload and nothing else.
    Payload(&'a TopicName, &'a [u8]),
}

impl Offer<'_> {
    /// Where it goes.
    #[must_use]
    pub fn topic(&self) -> &TopicName {
        match self {
            Offer::Message(message) => &message.topic,
            Offer::Payload(topic, _) => topic,
        }
    }
}

/// Where the next message of a topic goes. Good until the producer is changed.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    log: LogId,
    hash: TopicHash,
    /// Nothing gathers there: the message's time will be its batch's.
    pub begins: bool,
}

/// What taking a message has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The message is the first of its batch.
    pub began: bool,
    /// There may be something to be sent: [`Producer::poll`].
    pub due: bool,
}

/// The topic asked for last: what is published together is often of one topic.
#[derive(Debug)]
pub(super) struct LastTopic {
    namespace: NamespaceId,
    topic: TopicName,
    hash: TopicHash,
    log: LogId,
}

impl Producer {
    /// Finds where a topic's next message goes.
    ///
    /// # Errors
    /// [`PublishError::Unresolved`].
    pub fn place(
        &mut self,
        namespace: NamespaceId,
        topic: &TopicName,
    ) -> Result<Place, PublishError> {
        let same = |last: &&LastTopic| last.namespace == namespace && last.topic.is(topic);
        let (hash, log) = match self.last.as_ref().filter(same) {
            Some(last) => (last.hash, last.log),
            None => self.find(namespace, topic)?,
        };
        let begins = match self.queues.get(&log) {
            Some(queue) => queue.is_gathering_nothing(),
            None => {
                self.open_queue(log);
                true
            }
        };
        Ok(Place { log, hash, begins })
    }

    #[cold]
    fn find(
        &mut self,
        namespace: NamespaceId,
        topic: &TopicName,
    ) -> Result<(TopicHash, LogId), PublishError> {
        let space = self.spaces.get(&namespace);
        let map = &space.ok_or(PublishError::Unresolved)?.map;
        let hash = topic.hash(namespace);
        let log = map.log(hash, Lane::Normal);
        self.last = Some(LastTopic {
            namespace,
            topic: topic.clone(),
            hash,
            log,
        });
        Ok((hash, log))
    }

    /// Takes a message of the topic that `place` was found for. It goes out with a later
    /// [`Producer::poll`].
    ///
    /// # Errors
    /// [`PublishError`]; the message is then not taken and its ticket will not come back.
    pub fn take(
        &mut self,
        now: Now,
        place: Place,
        offer: Offer<'_>,
        ticket: Ticket,
    ) -> Result<Taken, PublishError> {
        let before = self.before_taking();
        let taken = self.put(now, place, offer, ticket);
        self.after(before, taken.is_ok().into(), &ProducerOutput::default());
        taken
    }

    #[inline]
    fn put(
        &mut self,
        now: Now,
        place: Place,
        offer: Offer<'_>,
        ticket: Ticket,
    ) -> Result<Taken, PublishError> {
        let bytes = super::open::held_bytes(&offer);
        if self.held_bytes > 0 && self.held_bytes + bytes > self.config.memory_bytes {
            return Err(PublishError::Full);
        }
        let queue = self.queues.get_mut(&place.log);
        let queue = queue.ok_or(PublishError::Unresolved)?;
        if let Some(error) = &queue.fenced {
            return Err(PublishError::Refused(error.clone()));
        }
        let time = (now.mono, now.wall.0);
        let pushed = queue.push(&offer, place.hash, bytes, ticket, time, &self.config.limits);
        let Pushed { began, sealed } = pushed.map_err(|error| match error {
            PushError::Refused(error) => PublishError::Refused(error),
            PushError::Full => {
                bug!("{}: an empty batch is full for {bytes} bytes", place.log);
                PublishError::Refused(Error::new(ErrorCode::BatchTooLarge))
            }
        })?;
        let due = (began || sealed) && self.connected && self.is_log_due(place.log);
        self.held_bytes += bytes;
        Ok(Taken { began, due })
    }

    #[cold]
    fn open_queue(&mut self, log: LogId) {
        let space = self.spaces.get(&log.namespace);
        let epoch = space.map_or_else(
            || {
                bug!("{log} was found without a map of its namespace");
                MapEpoch(1)
            },
            |space| space.map.epoch,
        );
        let queue = Queue::new(log, epoch, self.id, self.epoch);
        self.queues.insert(log, queue);
    }

    /// Takes a message: [`Producer::place`] and [`Producer::take`] in one.
    ///
    /// # Errors
    /// As these.
    pub fn publish(
        &mut self,
        now: Now,
        namespace: NamespaceId,
        message: &Message,
        ticket: Ticket,
    ) -> Result<(), PublishError> {
        let place = self.place(namespace, &message.topic)?;
        self.take(now, place, Offer::Message(message), ticket)
            .map(|_| ())
    }
}
