//! What a subscription is made of, to one topic or to many: a stream, the core that decides, and
//! what it has to tell its user.
//!
//! There is no task: the core runs when the user asks for more. What a node has said is taken in
//! while it is there already, so a burst of small deliveries costs one turn.

use super::Standing;
use super::link::{Happening, Link};
use crate::context::ClientContext;
use crate::core::{
    Attempts, Backoff, Event, Patience, Subscriber, SubscriberOutput, SubscriptionKey,
    SubscriptionSpec,
};
use crate::named_topic::{NamedTopic, topic_name};
use crate::received::{Gap, MessageBatch, Reading, Received};
use airmail_model::frame::{Reply, Start, State};
use airmail_model::position::LogPosition;
use airmail_model::{Error, ErrorCode, LogMap, MapEpoch, Mono, NamespaceId, Position};
use airmail_proto::hello::Welcome;
use std::collections::VecDeque;
use std::sync::Arc;

/// With this much to tell its user, a subscription takes in no more.
const EVENTS_AT_ONCE: usize = 64;

/// A topic that was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) named: Arc<NamedTopic>,
    pub(super) start: Start,
}

/// What going on has led to.
#[derive(Debug)]
pub(super) enum Step {
    /// There are messages.
    Messages,
    /// Something of the topic with this number is missing for good.
    Gap(usize, Gap),
    /// There will be nothing more.
    Ended,
}

/// One stream's subscriptions, which one user reads. Topics are numbered as they were asked for.
#[derive(Debug)]
pub(super) struct Feed {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topics: Vec<Asked>,
    standings: Vec<Standing>,
    /// How many of them are [`Standing::Connecting`].
    connecting: usize,
    core: Subscriber,
    /// The topics', once their namespace has a number.
    keys: Vec<SubscriptionKey>,
    id: NamespaceId,
    epoch: MapEpoch,
    link: Link,
    attempts: Attempts,
    /// Why there is no stream, since the last one said something.
    lost: Option<Error>,
    /// Empty, but for its memory.
    out: SubscriberOutput,
    events: VecDeque<(SubscriptionKey, Event)>,
    /// Its cost goes back when all of it has been given.
    reading: Option<Reading>,
    /// The cost of what was given as a whole, and is done with when more is asked for.
    given: u32,
    ended: bool,
}

impl Feed {
    /// Topics of one namespace, each only once.
    pub(super) fn new(shared: Arc<ClientContext>, namespace: Arc<str>, topics: Vec<Asked>) -> Feed {
        let mut config = shared.subscriber;
        config.seed = shared.seed();
        Feed {
            namespace,
            standings: vec![Standing::Connecting; topics.len()],
            connecting: topics.len(),
            topics,
            core: Subscriber::new(config).gathering(),
            keys: Vec::new(),
            id: NamespaceId(0),
            epoch: MapEpoch(0),
            link: Link::Closed(Mono(0)),
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

    /// Waits until a node has all of them, for the client's `call_timeout` at most.
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
            self.settle()?;
        }
        Ok(())
    }

    pub(super) fn topics(&self) -> &[Asked] {
        &self.topics
    }

    pub(super) fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The next message that is here.
    pub(super) fn message(&mut self) -> Option<Received> {
        let Feed {
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

    /// All messages that came with the next one, if that is here.
    pub(super) fn batch(&mut self) -> Option<MessageBatch> {
        let reading = self.reading.take_if(|reading| reading.has_more())?;
        self.given += reading.cost();
        Some(reading.rest())
    }

    /// Whether a message or a gap is here. What else has come is taken in on the way to the next one,
    /// and is nothing that could be given.
    pub(super) fn ready(&self) -> bool {
        if self.reading.as_ref().is_some_and(Reading::has_more) {
            return true;
        }
        for (_, event) in &self.events {
            match event {
                // What has arrived has a message for somebody, or it is not told.
                Event::Gap(_) | Event::Messages(_) => return true,
                Event::Status(State::Live { .. } | State::Detached { .. }) => {}
                // The end, which comes before what is behind it.
                Event::Status(_) => return false,
            }
        }
        false
    }

    /// Goes on until there are messages, or a gap, or the end. What was given is done with.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(super) async fn go_on(&mut self) -> Result<Step, Error> {
        let read = self.reading.take().map_or(0, |read| read.cost());
        let given = std::mem::take(&mut self.given);
        if read > 0 || given > 0 {
            self.core.consumed(read + given);
        }
        loop {
            while let Some((key, event)) = self.events.pop_front() {
                match event {
                    Event::Messages(arrived) => {
                        self.reading = Some(Reading::new(arrived));
                        return Ok(Step::Messages);
                    }
                    Event::Gap(gap) => return Ok(Step::Gap(key.index() as usize, gap.into())),
                    Event::Status(state) => self.stand(key, state)?,
                }
            }
            if self.ended {
                return Ok(Step::Ended);
            }
            self.advance().await?;
        }
    }

    /// Where a topic goes on after the last that was given of it. `None` before a node has answered,
    /// if it did not begin at a position.
    pub(super) fn position(&self, topic: usize) -> Option<Position> {
        let key = *self.keys.get(topic)?;
        // What has arrived and was not given yet is still to come.
        let given = self.reading.as_ref();
        given
            .and_then(|reading| reading.before(key, self.epoch))
            .or_else(|| {
                self.events
                    .iter()
                    .find_map(|event| self.start_of(key, event))
            })
            .or_else(|| self.core.position(key))
    }

    /// The position before what an event is for a topic; `None` where it is nothing.
    fn start_of(
        &self,
        key: SubscriptionKey,
        (of, event): &(SubscriptionKey, Event),
    ) -> Option<Position> {
        match event {
            Event::Messages(arrived) => Reading::new(arrived.clone()).before(key, self.epoch),
            Event::Gap(gap) if *of == key => Some(Position {
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

    /// Takes the statuses that have come. What is for the user waits: what a position was owed by
    /// another life of its log is told before the first status.
    fn settle(&mut self) -> Result<(), Error> {
        for (key, event) in std::mem::take(&mut self.events) {
            match event {
                Event::Status(state) => self.stand(key, state)?,
                other => self.events.push_back((key, other)),
            }
        }
        Ok(())
    }

    fn stand(&mut self, key: SubscriptionKey, state: State) -> Result<(), Error> {
        match state {
            State::Live { .. } => self.set_standing(key.index() as usize, Standing::Live),
            State::Detached { .. } => self.set_standing(key.index() as usize, Standing::Detached),
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

    /// Waits for one thing to happen and takes it in, with what else has come by then.
    async fn advance(&mut self) -> Result<(), Error> {
        let mut wake = None;
        if self.core.is_due() {
            wake = self.core.poll(self.shared.mono(), &mut self.out);
            let topics = &self.topics;
            let topic = |index: u32| topics.get(index as usize).map(|topic| &*topic.named);
            self.link.send(&mut self.out.requests, topic);
        }
        let credit = self.shared.subscriber.credit_bytes;
        let next = self.link.next(&self.shared, &self.namespace, credit);
        let happening = match wake {
            None => next.await,
            Some(wake) => tokio::select! {
                happening = next => happening,
                () = self.shared.sleep_until(wake) => return Ok(()),
            },
        };
        match happening {
            Happening::Opened(welcome) => self.opened(welcome),
            Happening::Reply(reply) => self.replied(reply),
            Happening::Lost(error) => self.lost(error),
        }
    }

    /// Takes in what a node says, and what it said right after that.
    fn replied(&mut self, first: Reply) -> Result<(), Error> {
        let now = self.shared.mono();
        self.attempts.succeeded();
        self.lost = None;
        let mut next = Some(Happening::Reply(first));
        while let Some(happening) = next.take() {
            match happening {
                Happening::Reply(reply) => {
                    self.core.reply(now, reply, &mut self.out);
                    self.events.extend(self.out.events.drain(..));
                    if self.events.len() < EVENTS_AT_ONCE {
                        next = self.link.ready(&self.shared);
                    }
                }
                Happening::Opened(_) => {}
                Happening::Lost(error) => return self.lost(error),
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
            // Deleted, and made anew under the same name: not what was subscribed to.
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

    fn lost(&mut self, error: Error) -> Result<(), Error> {
        tracing::debug!(%error, namespace = %self.namespace, "subscribe stream lost");
        self.core.disconnected();
        self.standings.fill(Standing::Connecting);
        self.connecting = self.standings.len();
        self.lost = Some(error.clone());
        let retry = self.attempts.failed(self.shared.mono(), error);
        self.ended = retry.is_err();
        self.link = Link::Closed(retry?);
        Ok(())
    }
}

fn not_found(namespace: &str) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("namespace")
        .value(namespace)
}
