//! A node over a [`VecStorage`], its clients, and a clock that moves when told.

use crate::client::Client;
use crate::vec_storage::VecStorage;
use airmail_broker::{
    AllowAll, ClientInput, Command, CommandId, Engine, Input, Outcome, Principal, SessionId,
    ShardConfig, TurnOutput,
};
use airmail_model::batch::BatchTarget;
use airmail_model::filter::Filter;
use airmail_model::frame::{
    Change, Generation, Reply, Request, RequestId, Start, Subscribe, SubscriptionId, Until, Wanted,
};
use airmail_model::selector::Selector;
use airmail_model::verdict::Roles;
use airmail_model::{
    Batch, BatchEncoder, Checked, Error, Lane, Limits, LogId, LogIndex, MapEpoch, Message, Mono,
    NamespaceId, Now, Retention, RoleId, Sequence, StorageName, TopicHash, TopicName, Wall,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The namespace `default`.
pub(crate) const NS: NamespaceId = NamespaceId(1);
/// Its only log, unless a test makes more.
pub(crate) const LOG: LogId = LogId {
    namespace: NS,
    lane: Lane::Normal,
    index: LogIndex(0),
};
/// Credit for everything that a test delivers.
pub(crate) const PLENTY: u32 = 1 << 30;

pub(crate) struct World {
    pub(crate) node: Engine<VecStorage>,
    pub(crate) now: Now,
    pub(crate) clients: BTreeMap<SessionId, Client>,
    pub(crate) outcomes: BTreeMap<CommandId, Result<Outcome, Error>>,
    /// When the node wants its next turn.
    pub(crate) wake: Option<Mono>,
    /// Bytes of deliveries that connections have been given and not taken.
    pub(crate) untaken: BTreeMap<SessionId, u64>,
    /// Streams of which the node wants to know what they take.
    pub(crate) watched: BTreeSet<SessionId>,
    /// Connections take at once what they are given.
    pub(crate) quick: bool,
    requests: u64,
    commands: u64,
}

pub(crate) fn topic(name: &str) -> TopicHash {
    topic_in(NS, name)
}

pub(crate) fn topic_in(namespace: NamespaceId, name: &str) -> TopicHash {
    TopicName::hash_of(namespace, name)
}

/// A batch of (topic, payload, time to live in milliseconds) for the log of `default`.
pub(crate) fn expiring(messages: &[(&str, &str, u32)]) -> Checked<Batch> {
    let messages = messages.iter().map(|(topic, payload, ttl_ms)| Message {
        ttl_ms: Some(*ttl_ms),
        ..message(topic, payload)
    });
    batch_of(LOG, 1, messages)
}

pub(crate) fn message(topic: &str, payload: &str) -> Message {
    let topic = TopicName::new(topic, &Limits::DEFAULT).expect("a good name");
    Message::new(topic, payload.as_bytes().to_vec())
}

/// A batch of messages for a log.
pub(crate) fn batch_of(
    log: LogId,
    epoch: u32,
    messages: impl IntoIterator<Item = Message>,
) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(log.namespace);
    for message in messages {
        let pushed = encoder.push(&message, 0, &Limits::DEFAULT);
        pushed.expect("it fits");
    }
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(epoch),
        producer: None,
        producer_time: 0,
    })
}

/// A batch of (topic, payload) for a log.
pub(crate) fn batch(log: LogId, epoch: u32, messages: &[(&str, &str)]) -> Checked<Batch> {
    let messages = messages.iter();
    let messages = messages.map(|(topic, payload)| message(topic, payload));
    batch_of(log, epoch, messages)
}

/// A subscription without an end, with payloads, and told of nothing that expires.
fn wanted(namespace: NamespaceId, n: u32, topic: TopicHash, start: Start) -> Subscribe {
    Subscribe {
        subscription: SubscriptionId(n),
        generation: Generation(0),
        namespace,
        wanted: Wanted::Topic(topic),
        start,
        until: None,
        tell_expired: false,
        filter: None,
        headers_only: false,
        matches: false,
        lanes: airmail_model::frame::Lanes::Each,
    }
}

impl World {
    pub(crate) fn new() -> World {
        World::with(ShardConfig::default(), VecStorage::new())
    }

    pub(crate) fn with(config: ShardConfig, storage: VecStorage) -> World {
        let mut world = World::starting(config, storage);
        world.run();
        assert!(world.node.shard().ready());
        world
    }

    pub(crate) fn starting(config: ShardConfig, storage: VecStorage) -> World {
        let now = Now {
            mono: Mono(1),
            wall: Wall(1_000),
        };
        let allow = || Box::new(AllowAll);
        World {
            node: Engine::new(config, storage, allow(), allow(), now).expect("a fit storage"),
            now,
            clients: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            wake: None,
            untaken: BTreeMap::new(),
            watched: BTreeSet::new(),
            quick: true,
            requests: 0,
            commands: 0,
        }
    }

    /// One turn, without time passing.
    pub(crate) fn turn(&mut self) -> bool {
        let mut out = TurnOutput::default();
        self.wake = self.node.turn(self.now, &mut out);
        let any = !out.replies.is_empty() || !out.outcomes.is_empty();
        for (session, reply) in out.replies {
            if let Reply::Delivery(delivery) = &reply {
                *self.untaken.entry(session).or_default() += delivery.body.len() as u64;
            }
            // What was said before a session ended may still be on its way.
            if let Some(client) = self.clients.get_mut(&session) {
                client.take(reply);
            }
        }
        self.outcomes.extend(out.outcomes);
        self.watched.extend(out.watch);
        if self.quick {
            self.take_all();
        }
        any || self.wake.is_some_and(|at| at <= self.now.mono)
    }

    /// A connection takes all that it was given.
    pub(crate) fn take(&mut self, session: SessionId) {
        if let Some(bytes) = self.untaken.remove(&session) {
            self.input(ClientInput::Sent { session, bytes });
        }
    }

    /// Every connection does.
    pub(crate) fn take_all(&mut self) {
        for session in self.untaken.keys().copied().collect::<Vec<_>>() {
            self.take(session);
        }
    }

    /// Turns until nothing happens any more.
    pub(crate) fn run(&mut self) {
        let mut quiet = 0;
        for _ in 0..100_000 {
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet > 3 && (quiet > 40 || self.node.storage().chance.is_none()) {
                return;
            }
        }
        panic!("the node does not come to rest");
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now.mono = self.now.mono.plus(time);
        self.now.wall.0 += i64::try_from(time.as_micros()).expect("short");
    }

    pub(crate) fn open(&mut self, id: u64, credit: u32) -> SessionId {
        let session = SessionId(id);
        self.clients.insert(session, Client::new(credit));
        self.input(ClientInput::Opened {
            session,
            principal: Principal::default(),
            credit,
        });
        session
    }

    /// Opens a stream of a client that has these roles.
    pub(crate) fn open_as(&mut self, id: u64, roles: &[RoleId]) -> SessionId {
        let session = self.open(id, PLENTY);
        let roles = Roles::of(roles.iter().copied());
        self.request(session, Request::Roles(roles));
        session
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.clients.remove(&session);
        self.input(ClientInput::Closed { session });
    }

    pub(crate) fn input(&mut self, input: impl Into<Input>) {
        self.node.input(self.now, input);
    }

    pub(crate) fn request(&mut self, session: SessionId, request: Request) {
        self.input(ClientInput::Request { session, request });
    }

    pub(crate) fn client(&self, session: SessionId) -> &Client {
        &self.clients[&session]
    }

    pub(crate) fn credit(&mut self, session: SessionId, bytes: u32) {
        let client = self.clients.get_mut(&session).expect("open");
        client.credit += i64::from(bytes);
        self.request(session, Request::Credit { bytes });
    }

    /// Publishes to log 0 of `default`; the number comes with the answer.
    pub(crate) fn publish(&mut self, session: SessionId, messages: &[(&str, &str)]) -> u64 {
        self.publish_batch(session, batch(LOG, 1, messages))
    }

    pub(crate) fn publish_batch(&mut self, session: SessionId, batch: Checked<Batch>) -> u64 {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.request(
            session,
            Request::Publish {
                request,
                batch,
                begins_epoch: false,
            },
        );
        self.requests
    }

    pub(crate) fn add(&mut self, session: SessionId, n: u32, name: &str, start: Start) {
        self.add_until(session, n, topic(name), start, None);
    }

    /// Subscribes to a topic of `default`, to be told of what has expired.
    pub(crate) fn add_told(&mut self, session: SessionId, n: u32, name: &str, start: Start) {
        let wanted = wanted(NS, n, topic(name), start);
        let tell_expired = true;
        self.subscribe(
            session,
            Subscribe {
                tell_expired,
                ..wanted
            },
        );
    }

    /// Subscribes to a topic of `default`, without payloads.
    pub(crate) fn add_headers(&mut self, session: SessionId, n: u32, name: &str, start: Start) {
        let wanted = wanted(NS, n, topic(name), start);
        let headers_only = true;
        self.subscribe(
            session,
            Subscribe {
                headers_only,
                ..wanted
            },
        );
    }

    /// Subscribes to a topic of `default`, for what a filter matches.
    pub(crate) fn add_filtered(
        &mut self,
        session: SessionId,
        n: u32,
        name: &str,
        start: Start,
        filter: &str,
    ) {
        let wanted = wanted(NS, n, topic(name), start);
        let filter = Filter::parse(filter).expect("a filter");
        self.subscribe(
            session,
            Subscribe {
                tell_expired: true,
                filter: Some(Arc::new(filter)),
                ..wanted
            },
        );
    }

    /// Subscribes to what is asked for, for what a filter matches, on a stream whose deliveries say for whom messages are.
    pub(crate) fn add_matching(
        &mut self,
        session: SessionId,
        n: u32,
        (asked, filter): (Wanted, &str),
        start: Start,
    ) {
        let filter = Filter::parse(filter).expect("a filter");
        self.subscribe(
            session,
            Subscribe {
                wanted: asked,
                filter: Some(Arc::new(filter)),
                matches: true,
                ..wanted(NS, n, TopicHash(0), start)
            },
        );
    }

    /// Asks for another filter for a subscription, under this generation.
    pub(crate) fn change(&mut self, session: SessionId, n: u32, generation: u32, filter: &str) {
        let filter = Filter::parse(filter).expect("a filter");
        let change = Change {
            subscription: SubscriptionId(n),
            generation: Generation(generation),
            filter: Arc::new(filter),
        };
        self.request(session, Request::Change(change));
    }

    /// Subscribes to what is asked for.
    pub(crate) fn add_wanted(&mut self, session: SessionId, n: u32, asked: Wanted, start: Start) {
        let wanted = wanted(NS, n, TopicHash(0), start);
        self.subscribe(
            session,
            Subscribe {
                wanted: asked,
                ..wanted
            },
        );
    }

    /// Subscribes to a selection of log 0 of `default`, for what a filter matches if there is one, to be told of what has
    /// expired.
    pub(crate) fn select(
        &mut self,
        session: SessionId,
        n: u32,
        (selector, filter): (Selector, Option<&str>),
        start: Start,
        until: Option<Until>,
    ) {
        let filter = filter.map(|text| Arc::new(Filter::parse(text).expect("a filter")));
        let selector = Arc::new(selector);
        let topics = Wanted::Selected {
            log: None,
            selector,
        };
        self.subscribe(
            session,
            Subscribe {
                wanted: topics,
                tell_expired: true,
                filter,
                until,
                ..wanted(NS, n, TopicHash(0), start)
            },
        );
    }

    pub(crate) fn add_until(
        &mut self,
        session: SessionId,
        n: u32,
        topic: TopicHash,
        start: Start,
        until: Option<Until>,
    ) {
        self.add_in(NS, session, n, topic, start, until);
    }

    pub(crate) fn add_in(
        &mut self,
        namespace: NamespaceId,
        session: SessionId,
        n: u32,
        topic: TopicHash,
        start: Start,
        until: Option<Until>,
    ) {
        let wanted = wanted(namespace, n, topic, start);
        self.subscribe(session, Subscribe { until, ..wanted });
    }

    /// Asks for a subscription, under the generation that its client expects.
    fn subscribe(&mut self, session: SessionId, wanted: Subscribe) {
        let client = self.clients.get_mut(&session).expect("open");
        client.headers_only.get_or_insert(wanted.headers_only);
        client.matches.get_or_insert(wanted.matches);
        let generation = client.expect(wanted.subscription.0, &wanted.wanted, &wanted.start);
        let wanted = Subscribe {
            generation,
            ..wanted
        };
        self.request(session, Request::Add(wanted));
    }

    pub(crate) fn remove(&mut self, session: SessionId, n: u32) {
        let subscription = SubscriptionId(n);
        self.request(session, Request::Remove { subscription });
    }

    /// Gives a command and runs until it is answered.
    pub(crate) fn command(&mut self, command: Command) -> Result<Outcome, Error> {
        let id = self.begin(command);
        self.run();
        self.outcomes.remove(&id).expect("answered")
    }

    pub(crate) fn begin(&mut self, command: Command) -> CommandId {
        self.commands += 1;
        let id = CommandId(self.commands);
        self.input(ClientInput::Command {
            id,
            principal: Principal::default(),
            command,
        });
        id
    }

    pub(crate) fn create(&mut self, name: &str, logs: u16) -> Result<Outcome, Error> {
        self.command(Command::CreateNamespace {
            name: name.to_owned(),
            logs,
            retention: Retention::default(),
            durability: None,
            storage: StorageName::FIRST,
        })
    }

    /// Publishes one message and gives its number.
    pub(crate) fn tell(&mut self, session: SessionId, topic: &str, payload: &str) -> Sequence {
        let request = self.publish(session, &[(topic, payload)]);
        self.run();
        self.acked(session, request)
    }

    pub(crate) fn acked(&self, session: SessionId, request: u64) -> Sequence {
        let acks = &self.client(session).acks;
        let (_, result) = acks.iter().find(|(n, _)| *n == request).expect("answered");
        result.as_ref().expect("stored").extent.first
    }

    pub(crate) fn refused(&self, session: SessionId, request: u64) -> &Error {
        let acks = &self.client(session).acks;
        let (_, result) = acks.iter().find(|(n, _)| *n == request).expect("answered");
        &result.as_ref().expect_err("refused").error
    }
}
