//! Many random runs: whatever the storage's pace, the credit, the starts and the faults, each
//! subscription's ranges tile, and it gets exactly its topic's messages, in order, but for what it
//! is told to be gone, which is never more than what is gone.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World, topic};
use airmail_broker::{Interest, SessionId, ShardConfig};
use airmail_flow::{GateSettings, LimiterKind, LimiterSettings, SharesSettings};
use airmail_log::GapWhy;
use airmail_model::frame::{Start, Until};
use airmail_model::{AppendTime, Extent, Sequence};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

const TOPICS: u32 = 6;

/// The request of a subscription.
struct Asked {
    topic: String,
    /// The first number that it must have. `None`: whatever comes after its status.
    from: Option<Sequence>,
    not_before: Option<i64>,
    history: bool,
    /// Begins with what the node says is the first.
    earliest: bool,
}

struct Run {
    world: World,
    random: SmallRng,
    publisher: SessionId,
    sessions: BTreeMap<SessionId, BTreeMap<u32, Asked>>,
    next_session: u64,
    /// By request: topic and payload of each message, and the wall time it was sent at.
    sent: BTreeMap<u64, Vec<(String, String)>>,
    messages: u64,
    /// Whether logs lose and are trimmed.
    lossy: bool,
    /// Numbers that are no longer there, or never were.
    gone: Vec<Extent>,
}

/// A small bound, and a line that is long enough for all.
fn publish_gate(random: &mut SmallRng) -> GateSettings {
    GateSettings {
        window_messages: random.random_range(1..20),
        wait_ms_max: 1 << 40,
        burst_ms: 1 << 40,
        limiter: LimiterSettings {
            kind: LimiterKind::ALL[random.random_range(0..LimiterKind::ALL.len())],
            bound_initial: random.random_range(1..30),
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    }
}

/// A delivery gate so small that every second delivery is one too many.
fn delivery_gate(random: &mut SmallRng) -> SharesSettings {
    SharesSettings {
        window: random.random_range(1..500),
        limiter: LimiterSettings {
            kind: LimiterKind::ALL[random.random_range(0..LimiterKind::ALL.len())],
            bound_initial: random.random_range(1..300),
            ..LimiterSettings::DEFAULT
        },
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut storage = VecStorage::random(seed);
        storage.topic_index = random.random_bool(0.7);
        let config = ShardConfig {
            seed,
            catch_up_readers: random.random_range(1..4),
            catch_up_step_bytes: random.random_range(200..2_000),
            catch_up_quantum_bytes: random.random_range(200..4_000),
            catch_up_span: random.random_range(1..200),
            tail_window_bytes: random.random_range(200..4_000),
            publish_gate: random.random_bool(0.5).then(|| publish_gate(&mut random)),
            delivery_gate: random.random_bool(0.5).then(|| delivery_gate(&mut random)),
            interest: if seed.is_multiple_of(3) {
                Interest::Wanted
            } else {
                Interest::All
            },
            ..ShardConfig::default()
        };
        let mut world = World::with(config, storage);
        world.quick = random.random_bool(0.5);
        let publisher = world.open(1, 0);
        Run {
            world,
            random,
            publisher,
            sessions: BTreeMap::new(),
            next_session: 2,
            sent: BTreeMap::new(),
            messages: 0,
            lossy: seed % 2 == 1,
            gone: Vec::new(),
        }
    }

    fn topic(&mut self) -> String {
        format!("t{}", self.random.random_range(0..TOPICS))
    }

    fn publish(&mut self) {
        let count = self.random.random_range(1..6);
        let mut batch = Vec::new();
        for _ in 0..count {
            self.messages += 1;
            batch.push((self.topic(), format!("m{}", self.messages)));
        }
        let parts: Vec<(&str, &str)> = batch
            .iter()
            .map(|(t, p)| (t.as_str(), p.as_str()))
            .collect();
        let request = self.world.publish(self.publisher, &parts);
        self.sent.insert(request, batch);
    }

    fn end(&self) -> u64 {
        let acks = &self.world.client(self.publisher).acks;
        let numbers = acks.iter().filter_map(|(_, r)| r.as_ref().ok());
        numbers.map(|ack| ack.extent.next().0).max().unwrap_or(1)
    }

    fn add(&mut self) {
        let Some(session) = self.session() else {
            return;
        };
        let n = self.random.random_range(0..12);
        let asked = &self.sessions[&session];
        if asked.contains_key(&n) {
            if self.random.random_bool(0.5) {
                self.world.remove(session, n);
                self.sessions.get_mut(&session).expect("open").remove(&n);
            }
            return;
        }
        let name = self.topic();
        let at = Sequence(self.random.random_range(1..self.end() + 10));
        let time = self.world.now.wall.0 - self.random.random_range(0..5_000_000);
        let (start, from, not_before) = match self.random.random_range(0..4) {
            0 => (Start::Latest, None, None),
            1 => (Start::Earliest, Some(Sequence::FIRST), None),
            2 => (Start::Sequence(at), Some(at), None),
            _ => (
                Start::Time(AppendTime(time)),
                Some(Sequence::FIRST),
                Some(time),
            ),
        };
        let begins_first = !matches!(start, Start::Sequence(_) | Start::Latest);
        let history = self.random.random_bool(0.3);
        let until = history.then_some(Until::Now);
        self.world.add_until(session, n, topic(&name), start, until);
        let asked = Asked {
            topic: name,
            from,
            not_before,
            history,
            earliest: begins_first,
        };
        self.sessions
            .get_mut(&session)
            .expect("open")
            .insert(n, asked);
    }

    fn session(&mut self) -> Option<SessionId> {
        let open: Vec<SessionId> = self.sessions.keys().copied().collect();
        if open.is_empty() {
            return None;
        }
        Some(open[self.random.random_range(0..open.len())])
    }

    fn credit(&mut self, all: bool) {
        let open: Vec<SessionId> = self.sessions.keys().copied().collect();
        for session in open {
            if all || self.random.random_bool(0.4) {
                let client = self.world.clients.get_mut(&session).expect("open");
                let owed = std::mem::take(&mut client.owed);
                self.world.credit(session, owed);
            }
        }
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..30 => self.publish(),
            30..55 => self.add(),
            55..70 => self.credit(false),
            70..73 => {
                let credit = self.random.random_range(0..1_500);
                let session = self.world.open(self.next_session, credit);
                self.next_session += 1;
                self.sessions.insert(session, BTreeMap::new());
            }
            73 => {
                if let Some(session) = self.session() {
                    self.sessions.remove(&session);
                    self.world.close(session);
                }
            }
            74 => {
                let numbers = self.random.random_range(1..5);
                self.world
                    .node
                    .storage_mut()
                    .skip(LOG, numbers, GapWhy::Unused);
            }
            75 if self.lossy => {
                let storage = self.world.node.storage_mut();
                self.gone.push(storage.skip(LOG, 3, GapWhy::Loss));
            }
            76 if self.lossy && self.end() > 1 => {
                let at = Sequence(self.random.random_range(1..self.end()));
                let storage = self.world.node.storage_mut();
                if let Some(extent) = storage.damage(LOG, at) {
                    self.gone.push(extent);
                }
            }
            77 if self.lossy && self.end() > 1 => {
                let before = Sequence(self.random.random_range(1..self.end()));
                self.world.node.storage_mut().trim_now(LOG, before);
                let first = Sequence::FIRST;
                let last = before.before();
                self.gone.push(Extent { first, last });
            }
            78 if !self.world.untaken.is_empty() => {
                let given: Vec<SessionId> = self.world.untaken.keys().copied().collect();
                let one = given[self.random.random_range(0..given.len())];
                self.world.take(one);
            }
            75..80 => {
                let time = self.random.random_range(1..2_000);
                self.world.pass(Duration::from_millis(time));
            }
            80 => {
                let why = airmail_log::Refusal::Io("broken".into());
                self.world.node.storage_mut().read_failure = Some(why);
                self.world.turn();
                self.world.node.storage_mut().read_failure = None;
            }
            _ => {
                self.world.turn();
            }
        }
    }

    /// No more faults, and credit for everybody, until nothing happens any more.
    fn heal(&mut self) {
        self.world.quick = true;
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.world.credit(session, PLENTY);
        }
        // With a delivery gate each of those behind may have to come back for every single delivery, and what
        // may be read for them in a second is bounded.
        for _ in 0..60 {
            self.world.pass(Duration::from_secs(3));
            self.world.run();
            self.credit(true);
        }
    }

    fn check(&self, seed: u64) {
        let acks = &self.world.client(self.publisher).acks;
        let mut by_topic: BTreeMap<&str, Vec<(Sequence, i64, &str)>> = BTreeMap::new();
        for (request, result) in acks {
            let ack = result.as_ref().expect("nothing was refused");
            for (n, (topic, text)) in (0u64..).zip(&self.sent[request]) {
                let message = (ack.extent.first.plus(n), ack.appended.0, text.as_str());
                by_topic.entry(topic).or_default().push(message);
            }
        }
        for (session, asked) in &self.sessions {
            for (n, asked) in asked {
                let sub = self.world.client(*session).sub(*n);
                let who = format!(
                    "seed {seed}, session {}, subscription {n}: {sub:?}",
                    session.0
                );
                let all = by_topic
                    .get(asked.topic.as_str())
                    .map_or(&[][..], Vec::as_slice);
                let last = all.last().map_or(Sequence(0), |(at, _, _)| *at);
                match sub.mode {
                    Mode::Complete => assert!(asked.history, "{who}"),
                    Mode::Live(_) => {
                        assert!(!asked.history, "{who}");
                        assert!(self.world.client(*session).position(*n) > last, "{who}");
                    }
                    // A number that has not come yet.
                    Mode::Detached => assert!(sub.next.expect("told") > last, "{who}"),
                    _ => panic!("{who}"),
                }
                let first = asked.from.or(sub.got.first().map(|(at, _)| *at));
                let end = if asked.history { sub.next } else { None };
                // From the earliest: what has been trimmed by then is not asked for.
                let first = match (asked.earliest, sub.first) {
                    (true, Some(begin)) => Some(begin),
                    _ => first,
                };
                let wanted = all.iter().filter(|(at, time, _)| {
                    first.is_some_and(|first| *at >= first)
                        && end.is_none_or(|end| *at < end)
                        && asked.not_before.is_none_or(|before| *time >= before)
                });
                let wanted: Vec<(Sequence, &str)> =
                    wanted.map(|(at, _, text)| (*at, *text)).collect();
                let told = |at: Sequence| sub.gaps.iter().any(|(gap, _)| gap.contains(at));
                let got: Vec<_> = sub
                    .got
                    .iter()
                    .map(|(at, text)| (*at, text.as_str()))
                    .collect();
                let wanted = wanted.into_iter().filter(|(at, _)| !told(*at));
                assert_eq!(got, wanted.collect::<Vec<_>>(), "{who}");
                for (gap, _) in &sub.gaps {
                    for at in (gap.first.0..=gap.last.0).map(Sequence) {
                        assert!(self.gone.iter().any(|gone| gone.contains(at)), "{at} {who}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_subscription_gets_exactly_its_messages_in_order_whatever_happens() {
    for seed in 0..150 {
        let mut run = Run::new(seed);
        for _ in 0..400 {
            run.step();
        }
        run.heal();
        run.check(seed);
        let stats = run.world.node.shard().stats();
        assert_eq!(stats.appends_in_flight, 0);
        for session in run.sessions.keys().copied().collect::<Vec<_>>() {
            run.world.close(session);
        }
        run.world.run();
        let stats = run.world.node.shard().stats();
        assert_eq!(
            (stats.live_subscriptions, stats.detached_subscriptions),
            (0, 0)
        );
        assert_eq!((stats.catch_up_readers, stats.tails), (0, 0));
        assert_eq!(run.world.node.storage().readers(), 1);
    }
}

#[test]
fn one_seed_gives_one_run() {
    let trace = |seed| {
        let mut run = Run::new(seed);
        for _ in 0..400 {
            run.step();
        }
        run.heal();
        format!(
            "{:?} {:?}",
            run.world.clients,
            run.world.node.shard().stats()
        )
    };
    for seed in 1_000..1_010 {
        assert_eq!(trace(seed), trace(seed));
    }
}
