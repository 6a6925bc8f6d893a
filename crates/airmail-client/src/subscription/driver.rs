//! The driver of a subscription, to one topic or to many: connects the core, which decides, with a
//! stream and with the user.
//!
//! There is no task: the core runs when the user asks for more. Replies that have already arrived
//! are applied together, so a burst of small deliveries costs one turn.

use super::standing::Standing;
use super::subscribe_stream::{SubscribeEvent, SubscribeStream};
use crate::context::ClientContext;
use crate::core::{
    Attempts, Backoff, Event, Patience, Subscriber, SubscriberOutput, SubscriptionKey,
    SubscriptionSpec,
};
use crate::named_topic::{NamedTopic, topic_name};
use crate::received::{BatchCursor, Gap, MessageBatch, Received};
use airmail_model::frame::{Reply, Start, State, Welcome};
use airmail_model::position::LogPosition;
use airmail_model::{Error, ErrorCode, LogMap, MapEpoch, Mono, NamespaceId, Position};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of events from which on no more replies are applied before the user takes them.
const EVENTS_AT_ONCE: usize = 64;

/// A topic, and where its subscription starts.
#[derive(Debug)]
pub(super) struct TopicStart {
    pub(super) named: Arc<NamedTopic>,
    pub(super) start: Start,
}

/// Outcome of waiting for the driver.
#[derive(Debug)]
pub(super) enum Available {
    /// Messages, to be taken by [`SubscriptionDriver::message`] or [`SubscriptionDriver::batch`].
    Messages,
    /// A gap in the topic with this number.
    Gap(usize, Gap),
    /// The end: there is nothing more, now or later.
    Ended,
}

/// Driver of one stream's subscriptions, which one user reads. Topics are numbered in the order in
/// which the user gave them.
#[derive(Debug)]
pub(super) struct SubscriptionDriver {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topics: Vec<TopicStart>,
    standings: Vec<Standing>,
    /// Number of topics that are [`Standing::Connecting`].
    connecting: usize,
    core: Subscriber,
    /// Keys of the topics' subscriptions, once the namespace has a number.
    keys: Vec<SubscriptionKey>,
    id: NamespaceId,
    epoch: MapEpoch,
    stream: SubscribeStream,
    attempts: Attempts,
    /// Error that ended the last stream, until another has given a reply.
    lost: Option<Error>,
    /// Output of the core. Empty between steps, and kept for its memory.
    out: SubscriberOutput,
    events: VecDeque<(SubscriptionKey, Event)>,
    /// Batch that the user reads. Its cost is given back when all of it has been taken.
    reading: Option<BatchCursor>,
    /// Cost of the batches that were given as a whole. They count as consumed when the user asks
    /// for more.
    given: u32,
    ended: bool,
}

impl SubscriptionDriver {
    /// Makes a driver for topics of one namespace, each of which occurs once.
    pub(super) fn new(
        shared: Arc<ClientContext>,
        namespace: Arc<str>,
        topics: Vec<TopicStart>,
    ) -> SubscriptionDriver {
        let mut config = shared.subscriber;
        config.seed = shared.seed();
        SubscriptionDriver {
            namespace,
            standings: vec![Standing::Connecting; topics.len()],
            connecting: topics.len(),
            topics,
            core: Subscriber::new(config).gathering(),
            keys: Vec::new(),
            id: NamespaceId(0),
            epoch: MapEpoch(0),
            stream: SubscribeStream::Closed(Mono(0)),
            attempts: Attempts::new(Patience::ENDLESS, Backoff::new(config.backoff, config.seed)),
            lost: None,
            out: SubscriberOutput::default(),
            events: VecDeque::new(),
            reading: None,
            given: 0,
            ended: false,
            shared,
        }
    }

    /// Waits until a node has all subscriptions, for the client's `call_timeout` at most.
    pub(super) async fn open(&mut self) -> Result<(), Error> {
        let (node, all) = (self.shared.connect_timeout, self.shared.call_timeout);
        let begun = self.shared.mono();
        self.attempts.set_patience(Patience { node, all });
        self.attempts = self.attempts.clone().from(begun);
        let opened = tokio::time::timeout(all, self.wait_for_all()).await;
        self.attempts.set_patience(Patience::ENDLESS);
        opened.unwrap_or_else(|_| {
            self.ended = true;
            let said = self.lost.take().or_else(|| self.core.refused().cloned());
            let silent = || Error::new(ErrorCode::Disconnected).field("subscription");
            let waited = self.shared.mono().since(begun);
            Err(said.unwrap_or_else(silent).waited(waited))
        })
    }

    async fn wait_for_all(&mut self) -> Result<(), Error> {
        while self.connecting > 0 && !self.ended {
            self.advance().await?;
            self.apply_statuses()?;
        }
        Ok(())
    }

    pub(super) fn topics(&self) -> &[TopicStart] {
        &self.topics
    }

    pub(super) fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// Takes the next message, if one has arrived.
    pub(super) fn message(&mut self) -> Option<Received> {
        let SubscriptionDriver {
            reading,
            topics,
            epoch,
            ..
        } = self;
        let named = |owner: SubscriptionKey| topics.get(owner.index() as usize);
        reading
            .as_mut()?
            .next(*epoch, |owner| named(owner).map(|topic| &topic.named))
    }

    /// Takes all messages of the next one's batch, if one has arrived.
    pub(super) fn batch(&mut self) -> Option<MessageBatch> {
        let reading = self.reading.take_if(|reading| reading.has_more())?;
        self.given += reading.cost();
        Some(reading.rest())
    }

    /// Tells whether a message or a gap has arrived.
    pub(super) fn ready(&self) -> bool {
        if self.reading.as_ref().is_some_and(BatchCursor::has_more) {
            return true;
        }
        for (_, event) in &self.events {
            match event {
                // A batch has a message for somebody, or there is no event.
                Event::Gap(_) | Event::Messages(_) => return true,
                Event::Status(State::Live { .. } | State::Detached { .. }) => {}
                // The end: events behind it are never given.
                Event::Status(_) => return false,
            }
        }
        false
    }

    /// Waits until there are messages, or a gap, or the end. What was given before counts as
    /// consumed.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(super) async fn wait(&mut self) -> Result<Available, Error> {
        let read = self.reading.take().map_or(0, |read| read.cost());
        let given = std::mem::take(&mut self.given);
        if read > 0 || given > 0 {
            self.core.consumed(read + given);
        }
        loop {
            while let Some((key, event)) = self.events.pop_front() {
                match event {
                    Event::Messages(received) => {
                        self.reading = Some(BatchCursor::new(received));
                        return Ok(Available::Messages);
                    }
                    Event::Gap(gap) => return Ok(Available::Gap(key.index() as usize, gap.into())),
                    Event::Status(state) => self.apply_status(key, state)?,
                }
            }
            if self.ended {
                return Ok(Available::Ended);
            }
            self.advance().await?;
        }
    }

    /// Gives the position from which a topic goes on after its last message that was given. `None`
    /// before a node has answered, if it did not start at a position.
    pub(super) fn position(&self, topic: usize) -> Option<Position> {
        let key = *self.keys.get(topic)?;
        // Messages that have arrived and were not given are still to come.
        let reading = self.reading.as_ref();
        reading
            .and_then(|reading| reading.position_of(key, self.epoch))
            .or_else(|| {
                self.events
                    .iter()
                    .find_map(|event| self.position_before(key, event))
            })
            .or_else(|| self.core.position(key))
    }

    /// Gives a topic's position before an event; `None` if the event does not concern the topic.
    fn position_before(
        &self,
        key: SubscriptionKey,
        (owner, event): &(SubscriptionKey, Event),
    ) -> Option<Position> {
        match event {
            Event::Messages(received) => {
                BatchCursor::new(received.clone()).position_of(key, self.epoch)
            }
            Event::Gap(gap) if *owner == key => Some(Position {
                namespace: gap.log.namespace,
                epoch: self.epoch,
                logs: vec![LogPosition {
                    log: gap.log,
                    incarnation: gap.incarnation,
                    next: gap.extent.first,
                }],
            }),
            Event::Gap(_) | Event::Status(_) => None,
        }
    }

    /// Applies the statuses that have come, and leaves the other events for the user: a gap may
    /// come before the first status, if a position is from another life of its log.
    fn apply_statuses(&mut self) -> Result<(), Error> {
        for (key, event) in std::mem::take(&mut self.events) {
            match event {
                Event::Status(state) => self.apply_status(key, state)?,
                other => self.events.push_back((key, other)),
            }
        }
        Ok(())
    }

    fn apply_status(&mut self, key: SubscriptionKey, state: State) -> Result<(), Error> {
        match state {
            State::Live { .. } | State::Detached { .. } => match self.core.is_live(key) {
                Some(true) => self.set_standing(key.index() as usize, Standing::Live),
                Some(false) => self.set_standing(key.index() as usize, Standing::Detached),
                // Not every log of it has been named; or a connection has been lost since.
                None => {}
            },
            State::Complete { .. } | State::Removed => self.ended = true,
            State::Failed(error) => {
                self.ended = true;
                return Err(error);
            }
        }
        Ok(())
    }

    fn set_standing(&mut self, topic: usize, standing: Standing) {
        if let Some(stood) = self.standings.get_mut(topic) {
            self.connecting -= usize::from(*stood == Standing::Connecting);
            *stood = standing;
        }
    }

    /// Waits for one event of the stream, and applies it together with those that have come by
    /// then.
    async fn advance(&mut self) -> Result<(), Error> {
        let mut wake = None;
        if self.core.is_due() {
            wake = self.core.poll(self.shared.mono(), &mut self.out);
            let topics = &self.topics;
            let topic = |index: u32| topics.get(index as usize).map(|topic| &*topic.named);
            self.stream.send(&mut self.out.requests, topic);
        }
        let credit = self.shared.subscriber.credit_bytes;
        let next = self.stream.next(&self.shared, &self.namespace, credit);
        let event = match wake {
            None => next.await,
            Some(wake) => tokio::select! {
                event = next => event,
                () = self.shared.sleep_until(wake) => return Ok(()),
            },
        };
        match event {
            SubscribeEvent::Opened(welcome) => self.opened(welcome),
            SubscribeEvent::Reply(reply) => self.replied(reply),
            SubscribeEvent::Moved => {
                self.disconnected();
                Ok(())
            }
            SubscribeEvent::Lost(error) => self.lost(error),
        }
    }

    /// Applies a reply, and those that have arrived behind it.
    fn replied(&mut self, first: Reply) -> Result<(), Error> {
        let now = self.shared.mono();
        self.attempts.succeeded();
        self.lost = None;
        let mut next = Some(SubscribeEvent::Reply(first));
        while let Some(event) = next.take() {
            match event {
                SubscribeEvent::Reply(reply) => {
                    self.core.reply(now, reply, &mut self.out);
                    self.events.extend(self.out.events.drain(..));
                    if self.events.len() < EVENTS_AT_ONCE {
                        next = self.stream.ready(&self.shared);
                    }
                }
                SubscribeEvent::Opened(_) | SubscribeEvent::Moved => {}
                SubscribeEvent::Lost(error) => return self.lost(error),
            }
        }
        Ok(())
    }

    fn opened(&mut self, welcome: Welcome) -> Result<(), Error> {
        let name = &*self.namespace;
        let map = welcome
            .namespaces
            .into_iter()
            .find(|named| named.name == name);
        let map: LogMap = map.ok_or_else(|| not_found(name))?.map;
        if !self.keys.is_empty() && self.id != map.namespace {
            // The namespace was deleted, and another one created under its name.
            self.ended = true;
            return Err(not_found(name));
        }
        self.id = map.namespace;
        self.epoch = map.epoch;
        self.core.set_map(&map);
        if self.keys.is_empty() {
            for topic in &self.topics {
                self.keys.push(self.core.add(SubscriptionSpec {
                    namespace: map.namespace,
                    topic: topic_name(&topic.named.topic)?.hash(map.namespace),
                    start: topic.start.clone(),
                    until: None,
                }));
            }
        }
        self.core.connected();
        Ok(())
    }

    fn disconnected(&mut self) {
        self.core.disconnected();
        self.standings.fill(Standing::Connecting);
        self.connecting = self.standings.len();
    }

    fn lost(&mut self, error: Error) -> Result<(), Error> {
        tracing::debug!(%error, namespace = %self.namespace, "subscribe stream lost");
        self.disconnected();
        self.lost = Some(error.clone());
        let retry = self.attempts.failed(self.shared.mono(), error);
        self.ended = retry.is_err();
        self.stream = SubscribeStream::Closed(retry?);
        Ok(())
    }
}

fn not_found(namespace: &str) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("namespace")
        .value(namespace)
}
