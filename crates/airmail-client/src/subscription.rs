//! Subscriptions, as users hold them.
//!
//! A subscription has a stream of its own on the client's connection, and no task: the core runs
//! when its user asks for the next item. So one that is not read costs the others nothing; the node
//! sees its credit used up and detaches it, and it goes on where it was when it is read again.
//!
//! A lost connection is not an event: the subscription looks for a node until it finds one, and
//! goes on from its position.

mod link;

use crate::client::Shared;
use crate::core::{Backoff, Event, Subscriber, SubscriberOutput, SubscriptionKey, Wanted};
use crate::publisher::topic_name;
use crate::received::{Gap, Item, Items, Named, Names, Reading, Received};
use airmail_model::frame::{Start, State};
use airmail_model::position::LogPosition;
use airmail_model::{Error, ErrorCode, LogMap, MapEpoch, Mono, NamespaceId, Position};
use airmail_proto::hello::Welcome;
use link::{Happening, Link};
use std::collections::VecDeque;
use std::sync::Arc;

/// A subscription to be opened.
#[derive(Debug)]
#[must_use = "nothing is subscribed to before it is opened"]
pub struct SubscriptionRequest {
    shared: Arc<Shared>,
    namespace: Arc<str>,
    topic: Arc<str>,
    start: Start,
}

impl SubscriptionRequest {
    pub(crate) fn new(shared: Arc<Shared>, topic: &str) -> SubscriptionRequest {
        SubscriptionRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            topic: topic.into(),
            start: Start::Latest,
        }
    }

    /// In another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> SubscriptionRequest {
        self.namespace = namespace.into();
        self
    }

    /// Where it begins. Default: after what is stored now.
    pub fn from(mut self, start: Start) -> SubscriptionRequest {
        self.start = start;
        self
    }

    /// Opens it. When this is done the node has it: nothing published from now on is missed.
    ///
    /// # Errors
    /// `TOPIC_INVALID`, `NAMESPACE_NOT_FOUND`, `POSITION_INVALID`, `PERMISSION_DENIED`, and
    /// `DISCONNECTED` if no node answers within the client's `connect_timeout`.
    pub async fn open(self) -> Result<Subscription, Error> {
        topic_name(&self.topic)?;
        let mut config = self.shared.subscriber;
        config.seed = self.shared.seed();
        let until = self.shared.mono().plus(self.shared.connect_timeout);
        let mut subscription = Subscription {
            backoff: Backoff::new(config.backoff, config.seed),
            core: Subscriber::new(config),
            names: Names {
                named: Arc::new(Named {
                    namespace: self.namespace,
                    topic: self.topic,
                }),
                id: NamespaceId(0),
                epoch: MapEpoch(0),
            },
            start: self.start,
            key: None,
            link: Link::Closed(Mono(0)),
            events: VecDeque::new(),
            reading: None,
            standing: Standing::Connecting,
            ended: false,
            shared: self.shared,
        };
        while subscription.standing == Standing::Connecting {
            subscription.advance(Some(until)).await?;
            subscription.settle()?;
        }
        Ok(subscription)
    }
}

/// How a subscription stands with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It looks for a node, or waits for its answer.
    Connecting,
    /// At the tail: what is published comes at once.
    Live,
    /// Behind: it is sent what is stored, at its own pace.
    Detached,
}

/// Messages of one topic, in order, for ever: across lost connections, to any of the nodes.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<Shared>,
    names: Names,
    start: Start,
    core: Subscriber,
    /// Once its namespace has a number.
    key: Option<SubscriptionKey>,
    link: Link,
    backoff: Backoff,
    events: VecDeque<Event>,
    /// Its cost goes back when all of it has been given.
    reading: Option<Reading>,
    standing: Standing,
    ended: bool,
}

impl Subscription {
    /// The next message or gap; `None` once an error has ended the subscription.
    ///
    /// # Errors
    /// What ended it: `NAMESPACE_NOT_FOUND` when its namespace is deleted, `PERMISSION_DENIED`, and
    /// the like. A lost connection is none.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(reading) = &mut self.reading
                && let Some(message) = reading.next(&self.names)
            {
                return Ok(Some(Item::Message(message)));
            }
            match self.tell()? {
                Some(gap) => return Ok(Some(Item::Gap(gap))),
                None if self.reading.is_some() => {}
                None if self.ended => return Ok(None),
                None => self.advance(None).await?,
            }
        }
    }

    /// As [`Subscription::next`], but all messages of one batch together.
    ///
    /// # Errors
    /// As [`Subscription::next`].
    ///
    /// # Cancel safety
    /// As [`Subscription::next`].
    pub async fn next_batch(&mut self) -> Result<Option<Items>, Error> {
        loop {
            if let Some(reading) = &mut self.reading
                && let Some(messages) = reading.take_rest()
            {
                return Ok(Some(Items::Messages(messages)));
            }
            match self.tell()? {
                Some(gap) => return Ok(Some(Items::Gap(gap))),
                None if self.reading.is_some() => {}
                None if self.ended => return Ok(None),
                None => self.advance(None).await?,
            }
        }
    }

    /// What has arrived and can be had without waiting.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.reading.as_ref().is_some_and(Reading::has_more) || !self.events.is_empty()
    }

    /// Where it goes on after the last item that it gave. `None` before a node has answered, if it
    /// did not begin at a position.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        // What has arrived and was not given yet is still to come.
        let next = self.reading.as_ref();
        let given = next.and_then(|reading| Some(before(&reading.peek(&self.names)?)));
        given
            .or_else(|| self.events.iter().find_map(|event| self.start_of(event)))
            .or_else(|| self.core.position(self.key?))
    }

    /// The position before what an event is for the user; `None` where it is nothing.
    fn start_of(&self, event: &Event) -> Option<Position> {
        match event {
            Event::Messages(arrived) => {
                let first = Reading::new(arrived.clone()).peek(&self.names)?;
                Some(before(&first))
            }
            Event::Gap(gap) => Some(Position {
                namespace: gap.log.namespace,
                epoch: self.names.epoch,
                logs: vec![LogPosition {
                    log: gap.log,
                    incarnation: gap.incarnation,
                    next: gap.extent.first,
                }],
            }),
            Event::Status(_) => None,
        }
    }

    /// How it stands with a node.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Takes events up to the next gap or arrival, which is then being read. What was read before
    /// is done with.
    fn tell(&mut self) -> Result<Option<Gap>, Error> {
        if let Some(read) = self.reading.take() {
            self.core.consumed(read.cost());
        }
        while let Some(event) = self.events.pop_front() {
            match event {
                Event::Messages(arrived) => {
                    self.reading = Some(Reading::new(arrived));
                    return Ok(None);
                }
                Event::Gap(gap) => return Ok(Some(gap.into())),
                Event::Status(state) => self.stand(state)?,
            }
        }
        Ok(None)
    }

    /// Takes the statuses that have come. What is for the user waits: what a position was owed by
    /// another life of its log is told before the first status.
    fn settle(&mut self) -> Result<(), Error> {
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Status(state) => self.stand(state)?,
                other => self.events.push_back(other),
            }
        }
        Ok(())
    }

    fn stand(&mut self, state: State) -> Result<(), Error> {
        match state {
            State::Live { .. } => self.standing = Standing::Live,
            State::Detached { .. } => self.standing = Standing::Detached,
            State::Complete { .. } | State::Removed => self.ended = true,
            State::Failed(error) => {
                self.ended = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits for one thing to happen and takes it in; with `until`, no longer than that for a node.
    async fn advance(&mut self, until: Option<Mono>) -> Result<(), Error> {
        let mut out = SubscriberOutput::default();
        let wake = self.core.poll(self.shared.mono(), &mut out);
        self.link.send(out.requests, &self.names);
        let wait = async {
            match wake {
                Some(wake) => self.shared.sleep_until(wake).await,
                None => std::future::pending().await,
            }
        };
        let credit = self.shared.subscriber.credit_bytes;
        let happening = tokio::select! {
            happening = self.link.next(&self.shared, &self.names, credit) => happening,
            () = wait => return Ok(()),
        };
        match happening {
            Happening::Opened(welcome) => self.opened(welcome),
            Happening::Reply(reply) => {
                let mut out = SubscriberOutput::default();
                self.core.reply(self.shared.mono(), reply, &mut out);
                self.events
                    .extend(out.events.into_iter().map(|(_, event)| event));
                self.backoff.reset();
                Ok(())
            }
            Happening::Lost(error) => self.lost(error, until),
        }
    }

    fn opened(&mut self, welcome: Welcome) -> Result<(), Error> {
        let name = &*self.names.named.namespace;
        let map = welcome
            .namespaces
            .into_iter()
            .find(|named| named.name == name);
        let map: LogMap = map.ok_or_else(|| not_found(name))?.map;
        if self.key.is_some() && self.names.id != map.namespace {
            // Deleted, and made anew under the same name: not what was subscribed to.
            self.ended = true;
            return Err(not_found(name));
        }
        self.names.id = map.namespace;
        self.names.epoch = map.epoch;
        self.core.set_map(&map);
        if self.key.is_none() {
            let topic = topic_name(&self.names.named.topic)?.hash(map.namespace);
            self.key = Some(self.core.add(Wanted {
                namespace: map.namespace,
                topic,
                start: self.start.clone(),
                until: None,
            }));
        }
        self.core.connected();
        Ok(())
    }

    fn lost(&mut self, error: Error, until: Option<Mono>) -> Result<(), Error> {
        tracing::debug!(%error, topic = %self.names.named.topic, "subscribe stream lost");
        self.core.disconnected();
        self.standing = Standing::Connecting;
        let delay = match error.delay() {
            Some(least) => self.backoff.delay_after(least),
            None => self.backoff.delay(),
        };
        let retry = self.shared.mono().plus(delay);
        self.link = Link::Closed(retry);
        let late = until.is_some_and(|until| retry >= until);
        if error.code().retriable() && !late {
            return Ok(());
        }
        self.ended = true;
        Err(error)
    }
}

/// Where to go on so that this message comes again.
fn before(message: &Received) -> Position {
    let mut position = message.position();
    for log in &mut position.logs {
        log.next = message.sequence;
    }
    position
}

fn not_found(namespace: &str) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("namespace")
        .value(namespace)
}
