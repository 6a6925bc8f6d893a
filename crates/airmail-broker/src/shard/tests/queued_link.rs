//! Gateway and tower with a queue between them, in which messages wait for as long as chance will: whatever
//! crosses, every subscription gets its topic's messages, in order and once, and every publish its answer.
//!
//! In the shard no message waits. That both sides stay right when one does is what lets a queue be put between
//! them later.

use crate::access::{AllowAll, Principal};
use crate::catalog::{Catalog, Entry, Order};
use crate::config::ShardConfig;
use crate::gateway::{Gateway, GatewayEffects, GatewayInput};
use crate::input::{ClientInput, SessionId};
use crate::link::{FromTower, ToTower};
use crate::tower::{Tower, TowerEffects, TowerInput};
use crate::transcript::{self, LOG, NAMESPACE};
use airmail_log::memory::{self, MemoryStorage};
use airmail_log::{LogSpec, LogStorage, Soundness};
use airmail_model::frame::{
    Channel, Delivered, Delivery, Generation, Reply, Request, RequestId, Start, State, Subscribe,
    SubscriptionId, Wanted,
};
use airmail_model::{
    Durability, LogIndex, MapEpoch, Mono, Namespace, NamespaceSpec, Now, Provisions, Retention,
    Sequence, StorageName, TopicName, Wall,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

const TOPICS: [&str; 3] = ["a", "b", "c"];
const SESSIONS: u64 = 3;
const PLENTY: u32 = 1 << 30;

/// A subscription as its client sees it.
struct Sub {
    session: SessionId,
    topic: &'static str,
    /// The first number that it is to have. `None`: what its first status says.
    from: Option<Sequence>,
    /// The first number not accounted for.
    next: Option<Sequence>,
    is_live: bool,
    got: Vec<Sequence>,
}

/// Both sides, what is on its way between them, and a storage.
struct QueuedLink {
    gateway: Gateway,
    tower: Tower,
    storage: MemoryStorage,
    from_gateway: GatewayEffects,
    from_tower: TowerEffects,
    to_tower: VecDeque<ToTower>,
    to_gateway: VecDeque<FromTower>,
    now: Now,
    random: SmallRng,
    subs: BTreeMap<u32, Sub>,
    /// Live ranges, by session.
    ranges: BTreeMap<SessionId, Sequence>,
    sent: BTreeMap<RequestId, Vec<&'static str>>,
    stored: Vec<(Sequence, &'static str)>,
}

impl QueuedLink {
    fn new(seed: u64) -> QueuedLink {
        let config = ShardConfig {
            catch_up_readers: 2,
            catch_up_step_bytes: 600,
            catch_up_quantum_bytes: 2_000,
            catch_up_span: 20,
            tail_window_bytes: 1_000,
            ..ShardConfig::default()
        };
        let now = Now {
            mono: Mono(1),
            wall: Wall(1_000_000),
        };
        let storage = memory::open(seed, now).expect("memory");
        let allow = || Box::new(AllowAll);
        let mut link = QueuedLink {
            gateway: Gateway::new(config.clone(), &storage.capabilities(), allow(), allow()),
            tower: Tower::new(config, storage.capabilities()),
            storage,
            from_gateway: GatewayEffects::default(),
            from_tower: TowerEffects::default(),
            to_tower: VecDeque::new(),
            to_gateway: VecDeque::new(),
            now,
            random: SmallRng::seed_from_u64(seed),
            subs: BTreeMap::new(),
            ranges: BTreeMap::new(),
            sent: BTreeMap::new(),
            stored: Vec::new(),
        };
        link.begin();
        link
    }

    fn begin(&mut self) {
        let spec = LogSpec {
            durability: Durability::MEMORY,
            retention: Retention::default(),
            epoch: MapEpoch(1),
            as_of: Sequence(1),
            storage: StorageName::FIRST,
            provisions: Provisions::NONE,
            soundness: Soundness::default(),
        };
        self.tower(TowerInput::Order(Order::Open {
            log: LOG,
            spec,
            seal: None,
        }));
        let mut catalog = Catalog::default();
        let namespace = Namespace {
            id: NAMESPACE,
            name: "default".to_owned(),
            spec: NamespaceSpec {
                logs: 1,
                retention: Retention::default(),
                durability: Durability::MEMORY,
                storage: StorageName::FIRST,
            },
            version: 1,
            epoch: MapEpoch(1),
            first_log: LogIndex(0),
            earlier: Vec::new(),
        };
        catalog.put(Entry::new(namespace, Provisions::NONE, Sequence(1)));
        self.gateway(GatewayInput::Namespaces {
            catalog: Arc::new(catalog),
            is_ready: true,
        });
        for id in 1..=SESSIONS {
            self.gateway(GatewayInput::Client(ClientInput::Opened {
                session: SessionId(id),
                principal: Principal::default(),
                credit: 500,
            }));
        }
        self.settle();
    }

    fn gateway(&mut self, input: GatewayInput) {
        self.gateway.apply(self.now, input, &mut self.from_gateway);
        self.gateway.finish_step(self.now, &mut self.from_gateway);
        self.gateway.check();
        self.to_tower.append(&mut self.from_gateway.to_tower);
        for (session, reply) in std::mem::take(&mut self.from_gateway.replies) {
            self.reply(session, reply);
        }
    }

    fn tower(&mut self, input: TowerInput) {
        self.tower.apply(self.now, input, &mut self.from_tower);
        self.tower.finish_step(self.now, &mut self.from_tower);
        self.tower.check();
        self.to_gateway.append(&mut self.from_tower.to_gateway);
        self.from_tower.to_catalog.clear();
        for call in self.from_tower.storage.drain(..) {
            self.storage.submit(call);
        }
    }

    /// Something arrives, or the storage has something to say.
    fn pass_one(&mut self) -> bool {
        match self.random.random_range(0..3) {
            0 => match self.to_tower.pop_front() {
                Some(message) => self.tower(TowerInput::FromGateway(message)),
                None => return false,
            },
            1 => match self.to_gateway.pop_front() {
                Some(message) => self.gateway(GatewayInput::FromTower(message)),
                None => return false,
            },
            _ => return self.poll(),
        }
        true
    }

    fn poll(&mut self) -> bool {
        let mut completions = Vec::new();
        self.storage.poll(self.now, &mut completions);
        let any = !completions.is_empty();
        for completion in completions {
            self.tower(TowerInput::Storage(completion));
        }
        any
    }

    fn pass_time(&mut self, ms: u64) {
        let time = Duration::from_millis(ms);
        self.now.mono = self.now.mono.plus(time);
        self.now.wall.0 += i64::try_from(ms * 1_000).expect("short");
        self.tower(TowerInput::Timer);
        self.gateway(GatewayInput::Timer);
    }

    /// Until nothing is on its way any more.
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 60 {
            quiet = if self.pass_one() { 0 } else { quiet + 1 };
        }
    }

    fn request(&mut self, session: SessionId, request: Request) {
        let request = ClientInput::Request { session, request };
        self.gateway(GatewayInput::Client(request));
    }

    fn publish(&mut self) {
        let count = self.random.random_range(1..4);
        let topics = (0..count).map(|_| TOPICS[self.random.random_range(0..TOPICS.len())]);
        let topics: Vec<&'static str> = topics.collect();
        let request = RequestId(self.sent.len() as u64 + 1);
        let batch = transcript::batch(&topics);
        self.sent.insert(request, topics);
        self.request(
            SessionId(1),
            Request::Publish {
                request,
                batch,
                begins_epoch: false,
            },
        );
    }

    fn add(&mut self) {
        let session = SessionId(self.random.random_range(1..=SESSIONS));
        let topic = TOPICS[self.random.random_range(0..TOPICS.len())];
        let end = self.stored.last().map_or(1, |(at, _)| at.0 + 1);
        let at = Sequence(self.random.random_range(1..end + 5));
        let (start, from) = match self.random.random_range(0..3) {
            0 => (Start::Latest, None),
            1 => (Start::Earliest, Some(Sequence::FIRST)),
            _ => (Start::Sequence(at), Some(at)),
        };
        let id = u32::try_from(self.subs.len()).expect("few");
        let next = if matches!(start, Start::Sequence(_)) {
            from
        } else {
            None
        };
        let sub = Sub {
            session,
            topic,
            from,
            next,
            is_live: false,
            got: Vec::new(),
        };
        self.subs.insert(id, sub);
        let wanted = Subscribe {
            subscription: SubscriptionId(id),
            generation: Generation(1),
            namespace: NAMESPACE,
            wanted: Wanted::Topic(TopicName::hash_of(NAMESPACE, topic)),
            start,
            until: None,
            tell_expired: false,
            filter: None,
            headers_only: false,
            matches: false,
            lanes: airmail_model::frame::Lanes::Each,
        };
        self.request(session, Request::Add(wanted));
    }

    fn grant(&mut self, bytes: u32) {
        for id in 1..=SESSIONS {
            self.request(SessionId(id), Request::Credit { bytes });
        }
    }

    fn step(&mut self) {
        match self.random.random_range(0..20) {
            0..4 => self.publish(),
            4 if self.subs.len() < 12 => self.add(),
            5 => {
                let bytes = self.random.random_range(0..600);
                self.grant(bytes);
            }
            6 => {
                let ms = self.random.random_range(1..700);
                self.pass_time(ms);
            }
            _ => _ = self.pass_one(),
        }
    }

    fn reply(&mut self, session: SessionId, reply: Reply) {
        match reply {
            Reply::Acked { request, result } => {
                let first = result.expect("stored").extent.first;
                let topics = self.sent.remove(&request).expect("answered once");
                let numbered = (0..).zip(topics);
                self.stored
                    .extend(numbered.map(|(n, topic)| (first.plus(n), topic)));
                self.sent.insert(request, Vec::new());
            }
            Reply::Delivery(delivery) => self.delivery(session, &delivery),
            Reply::Gap {
                channel,
                previous,
                last,
                ..
            } => {
                self.account(session, channel, previous, last);
            }
            // Nothing expires, and nobody asks for the clock.
            Reply::Expired(_) | Reply::Clock { .. } => panic!("{reply:?}"),
            Reply::Mark { previous, next, .. } => {
                if next > self.ranges[&session] {
                    self.account(session, Channel::Live, previous, next.before());
                }
            }
            Reply::Status {
                subscription,
                state,
                ..
            } => self.status(session, subscription, &state),
        }
    }

    fn status(&mut self, session: SessionId, id: SubscriptionId, state: &State) {
        let sub = self.subs.get_mut(&id.0).expect("asked for");
        match state {
            State::Live { places } => {
                let next = places[0].next;
                sub.is_live = true;
                let own = *sub.next.get_or_insert(next);
                assert!(next <= own, "live beyond what was accounted for");
                self.ranges.entry(session).or_insert(next);
            }
            State::Detached { next, .. } => {
                let own = *sub.next.get_or_insert(*next);
                if std::mem::take(&mut sub.is_live) {
                    sub.next = Some(own.max(self.ranges[&session]));
                }
                assert!(sub.next >= Some(*next), "detached beyond that");
            }
            other => panic!("{other:?}"),
        }
        if sub.from.is_none() {
            sub.from = sub.next;
        }
    }

    /// Moves what is accounted for; gives where it was.
    fn account(
        &mut self,
        session: SessionId,
        channel: Channel,
        previous: Sequence,
        last: Sequence,
    ) -> Sequence {
        let next = match channel {
            Channel::Live => self.ranges.get_mut(&session).expect("a range"),
            Channel::Detached(id, _) => {
                let sub = self.subs.get_mut(&id.0).expect("asked for");
                assert!(!sub.is_live, "read for while it is live");
                sub.next.as_mut().expect("told")
            }
        };
        assert!(previous < *next, "a hole: {previous} after {next}");
        let before = *next;
        *next = before.max(last.plus(1));
        before
    }

    fn delivery(&mut self, session: SessionId, delivery: &Delivery) {
        let Delivery {
            channel,
            previous,
            last,
            base,
            ref body,
            ..
        } = *delivery;
        let from = self.account(session, channel, previous, last);
        let batch = match body {
            Delivered::Whole(batch) => batch.clone(),
            Delivered::Slice(slice) => slice.to_batch(),
        };
        for record in batch.iter() {
            let at = base.plus(record.index.into());
            for (id, sub) in &mut self.subs {
                let is_meant = match channel {
                    Channel::Live => sub.is_live && sub.session == session,
                    Channel::Detached(of, _) => of.0 == *id,
                };
                let is_new = match channel {
                    Channel::Live => at >= from && Some(at) >= sub.next,
                    Channel::Detached(..) => at >= from,
                };
                if is_meant && is_new && sub.topic == record.topic_name {
                    sub.got.push(at);
                }
            }
        }
    }

    fn check(&self, seed: u64) {
        assert!(
            self.sent.values().all(Vec::is_empty),
            "seed {seed}: answers"
        );
        for (id, sub) in &self.subs {
            let from = sub.from.expect("told");
            let wanted = self
                .stored
                .iter()
                .filter(|(at, topic)| *at >= from && *topic == sub.topic);
            let wanted: Vec<Sequence> = wanted.map(|(at, _)| *at).collect();
            assert_eq!(sub.got, wanted, "seed {seed}: {id} on {}", sub.topic);
        }
    }
}

#[test]
fn whatever_crosses_everybody_gets_what_was_asked_for() {
    for seed in 0..300 {
        let mut link = QueuedLink::new(seed);
        for _ in 0..400 {
            link.step();
        }
        for _ in 0..40 {
            link.grant(PLENTY);
            link.settle();
            link.pass_time(1_000);
        }
        link.settle();
        link.check(seed);
    }
}
