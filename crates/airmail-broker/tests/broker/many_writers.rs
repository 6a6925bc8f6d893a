//! Nodes that append to the same logs, and know what the others do only by reading: whatever one of them has made or
//! acknowledged is there at each other one, in one order, and once.

use crate::client::{Client, Mode};
use crate::world::{LOG, NS, PLENTY, batch, topic};
use airmail_broker::{
    AllowAll, ClientInput, Command, CommandId, Engine, Outcome, Principal, SessionId, ShardConfig,
    TurnOutput,
};
use airmail_log::many_writers::{LogsHandle, SharedLogs, SharedSettings};
use airmail_model::batch::ProducerStamp;
use airmail_model::frame::{
    Ack, Request, RequestId, Start, Subscribe, SubscriptionId, Until, Wanted,
};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Batch, Checked, Error, ErrorCode, Lane, LogId, LogIndex, MapEpoch, Mono,
    NamespaceId, Now, Position, ProducerEpoch, ProducerId, ProducerSequence, Retention, Sequence,
    StorageName, Wall,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The client of each node.
const CLIENT: SessionId = SessionId(1);

pub(crate) struct Node {
    pub(crate) engine: Engine<LogsHandle>,
    client: Client,
    pub(crate) outcomes: Vec<Result<Outcome, Error>>,
}

pub(crate) struct Nodes {
    pub(crate) logs: SharedLogs,
    pub(crate) nodes: Vec<Node>,
    now: Now,
    requests: u64,
}

impl Nodes {
    pub(crate) fn new(count: usize, settings: SharedSettings) -> Nodes {
        let mut nodes = Nodes {
            logs: SharedLogs::new(settings),
            nodes: Vec::new(),
            now: Now {
                mono: Mono(1),
                wall: Wall(1_000_000_000),
            },
            requests: 0,
        };
        for number in 0..count {
            nodes.join(number as u64);
        }
        nodes.run();
        nodes
    }

    /// Another node begins.
    pub(crate) fn join(&mut self, seed: u64) {
        let config = ShardConfig {
            seed,
            ..ShardConfig::default()
        };
        let allow = || Box::new(AllowAll);
        let storage = self.logs.handle();
        let engine = Engine::new(config, storage, allow(), allow(), self.now);
        let mut node = Node {
            engine: engine.expect("a fit storage"),
            client: Client::new(PLENTY),
            outcomes: Vec::new(),
        };
        let opened = ClientInput::Opened {
            session: CLIENT,
            principal: Principal::default(),
            credit: PLENTY,
        };
        node.engine.input(self.now, opened);
        self.nodes.push(node);
    }

    /// Turns of one node, until it has nothing to do now.
    fn turn(&mut self, node: usize) {
        let Node {
            engine,
            client,
            outcomes,
        } = &mut self.nodes[node];
        for _ in 0..1_000 {
            let mut out = TurnOutput::default();
            let wake = engine.turn(self.now, &mut out);
            let any = !out.replies.is_empty() || !out.outcomes.is_empty();
            for (_, reply) in out.replies {
                client.take(reply);
            }
            outcomes.extend(out.outcomes.into_iter().map(|(_, outcome)| outcome));
            if !any && wake.is_none_or(|at| at > self.now.mono) {
                return;
            }
        }
        panic!("node {node} does not come to rest");
    }

    /// Turns of all nodes, and a little time.
    pub(crate) fn run(&mut self) {
        for _ in 0..60 {
            for node in 0..self.nodes.len() {
                self.turn(node);
            }
            self.pass(Duration::from_millis(1));
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now.mono = self.now.mono.plus(time);
        self.now.wall.0 += i64::try_from(time.as_micros()).expect("short");
    }

    fn input(&mut self, node: usize, input: ClientInput) {
        self.nodes[node].engine.input(self.now, input);
    }

    fn request(&mut self, node: usize, request: Request) {
        let session = CLIENT;
        self.input(node, ClientInput::Request { session, request });
    }

    fn publish(&mut self, node: usize, batch: Checked<Batch>) -> u64 {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.request(
            node,
            Request::Publish {
                request,
                batch,
                begins_epoch: false,
            },
        );
        self.requests
    }

    /// Publishes one message to topic a, and waits for its answer.
    pub(crate) fn tell(&mut self, node: usize, payload: &str) -> Ack {
        let request = self.publish(node, batch(LOG, 1, &[("a", payload)]));
        self.run();
        self.answer(node, request).expect("stored")
    }

    fn answer(&self, node: usize, request: u64) -> Result<Ack, ErrorCode> {
        let acks = &self.nodes[node].client.acks;
        let (_, result) = acks.iter().find(|(n, _)| *n == request).expect("answered");
        result.clone().map_err(|refused| refused.error.code())
    }

    fn add(&mut self, node: usize, n: u32, start: Start, until: Option<Until>) {
        let generation = self.nodes[node]
            .client
            .expect(n, &Wanted::Topic(topic("a")), &start);
        self.request(
            node,
            Request::Add(Subscribe {
                subscription: SubscriptionId(n),
                generation,
                namespace: NS,
                wanted: Wanted::Topic(topic("a")),
                start,
                until,
                tell_expired: false,
                filter: None,
                headers_only: false,
                matches: false,
                lanes: airmail_model::frame::Lanes::Each,
            }),
        );
    }

    fn payloads(&self, node: usize, n: u32) -> Vec<&str> {
        self.nodes[node].client.payloads(n)
    }

    pub(crate) fn create(&mut self, node: usize, name: &str) {
        let command = Command::CreateNamespace {
            name: name.to_owned(),
            logs: 1,
            retention: Retention::default(),
            durability: None,
            storage: StorageName::FIRST,
        };
        self.command(node, command);
    }

    pub(crate) fn command(&mut self, node: usize, command: Command) {
        self.requests += 1;
        let id = CommandId(self.requests);
        let principal = Principal::default();
        let command = ClientInput::Command {
            id,
            principal,
            command,
        };
        self.input(node, command);
    }
}

pub(crate) fn slow(seed: u64) -> SharedSettings {
    SharedSettings {
        seed,
        delay: Duration::from_micros(300),
        ..SharedSettings::default()
    }
}

fn stamped(sequence: u64, payload: &str) -> Checked<Batch> {
    let stamp = ProducerStamp {
        id: ProducerId(77),
        epoch: ProducerEpoch(1),
        sequence: ProducerSequence(sequence),
    };
    batch(LOG, 1, &[("a", payload)]).stamped(stamp)
}

#[test]
fn nodes_that_start_together_make_one_first_namespace() {
    let nodes = Nodes::new(3, slow(3));
    for node in &nodes.nodes {
        assert!(node.engine.shard().ready());
        let catalog = node.engine.shard().catalog();
        assert_eq!(catalog.len(), 1);
        assert!(catalog.by_name("default").is_some());
    }
}

#[test]
fn what_is_made_at_one_node_is_used_at_another_that_has_not_read_of_it() {
    let mut nodes = Nodes::new(2, SharedSettings::default());
    nodes.create(0, "orders");
    for _ in 0..20 {
        nodes.turn(0);
        nodes.pass(Duration::from_millis(1));
    }
    assert!(matches!(nodes.nodes[0].outcomes[..], [Ok(_)]));
    let known = nodes.nodes[1].engine.shard().catalog().len();
    assert_eq!(known, 1, "the other has had no turn");
    let there = LogId {
        namespace: NamespaceId(2),
        lane: Lane::Normal,
        index: LogIndex(0),
    };
    let request = nodes.publish(1, batch(there, 1, &[("a", "x")]));
    nodes.run();
    assert!(nodes.answer(1, request).is_ok());
}

#[test]
fn a_place_in_lane_high_is_gone_on_from_at_a_node_that_has_not_heard_of_the_lane() {
    let mut nodes = Nodes::new(2, SharedSettings::default());
    let high = LogId {
        lane: Lane::High,
        ..LOG
    };
    let [_, two] = ["one", "two"].map(|text| {
        let request = nodes.publish(0, batch(high, 1, &[("a", text)]));
        for _ in 0..20 {
            nodes.turn(0);
            nodes.pass(Duration::from_millis(1));
        }
        nodes.answer(0, request).expect("stored")
    });
    let at = |log, next| LogPosition {
        log,
        incarnation: (nodes.nodes[0].engine.shard().incarnation(log)).expect("open"),
        next,
    };
    let there = Position {
        namespace: NS,
        epoch: MapEpoch(1),
        logs: vec![at(LOG, Sequence::FIRST), at(high, two.extent.first)],
    };
    let known = nodes.nodes[1].engine.shard().incarnation(high);
    assert_eq!(known, None, "the other has had no turn");
    nodes.add(1, 1, Start::Position(there), None);
    nodes.run();
    let told = nodes.nodes[1].client.high.as_ref().expect("told of it");
    assert_eq!(told.payloads(1), ["two"]);
}

#[test]
fn two_creates_of_one_name_at_once_make_one_namespace() {
    let mut nodes = Nodes::new(2, slow(5));
    nodes.create(0, "orders");
    nodes.create(1, "orders");
    nodes.run();
    for node in &nodes.nodes {
        assert!(matches!(node.outcomes[..], [Ok(Outcome::Namespace(_))]));
        assert_eq!(node.engine.shard().catalog().len(), 2);
    }
    assert_eq!(nodes.nodes[0].outcomes, nodes.nodes[1].outcomes);
}

#[test]
fn a_deletion_at_one_node_ends_what_uses_the_namespace_at_another() {
    let mut nodes = Nodes::new(2, slow(6));
    nodes.add(1, 0, Start::Latest, None);
    nodes.run();
    let (name, based_on) = ("default".to_owned(), None);
    nodes.command(0, Command::DeleteNamespace { name, based_on });
    nodes.run();
    assert!(matches!(
        nodes.nodes[0].outcomes[..],
        [Ok(Outcome::Deleted)]
    ));
    let mode = &nodes.nodes[1].client.sub(0).mode;
    assert!(matches!(mode, Mode::Ended(_)), "{mode:?}");
    let request = nodes.publish(1, batch(LOG, 1, &[("a", "x")]));
    nodes.run();
    let answer = nodes.answer(1, request);
    assert_eq!(answer.expect_err("refused"), ErrorCode::NamespaceNotFound);
}

#[test]
fn a_live_subscriber_gets_what_every_node_appends_in_one_order() {
    let mut nodes = Nodes::new(3, slow(7));
    for node in 0..3 {
        nodes.add(node, 0, Start::Latest, None);
    }
    nodes.run();
    for n in 0..30 {
        nodes.publish(n % 3, batch(LOG, 1, &[("a", &n.to_string())]));
        if n % 4 == 0 {
            nodes.turn(n % 2);
            nodes.pass(Duration::from_micros(100));
        }
    }
    nodes.run();
    let first = nodes.nodes[0].client.sub(0).got.clone();
    assert_eq!(first.len(), 30);
    for node in &nodes.nodes {
        assert_eq!(node.client.sub(0).got, first);
        assert_eq!(node.client.sub(0).mode, Mode::Live(LOG));
    }
}

#[test]
fn the_latest_at_one_node_is_behind_what_another_has_acknowledged() {
    for seed in 0..20 {
        let mut nodes = Nodes::new(2, slow(seed));
        // One question is under way when the message is acknowledged; the next is asked later.
        nodes.add(1, 0, Start::Latest, None);
        nodes.turn(1);
        let request = nodes.publish(0, batch(LOG, 1, &[("a", "before")]));
        for _ in 0..20 {
            nodes.turn(0);
            nodes.pass(Duration::from_micros(50));
        }
        assert!(nodes.answer(0, request).is_ok());
        nodes.add(1, 1, Start::Latest, None);
        nodes.add(1, 2, Start::Earliest, Some(Until::Now));
        nodes.run();
        nodes.tell(0, "after");
        assert_eq!(nodes.payloads(1, 1), ["after"], "seed {seed}");
        assert_eq!(nodes.payloads(1, 2), ["before"], "seed {seed}");
    }
}

#[test]
fn a_retry_through_another_node_is_acknowledged_and_delivered_once() {
    let mut nodes = Nodes::new(2, SharedSettings::default());
    nodes.add(0, 0, Start::Latest, None);
    nodes.run();
    for node in [0, 1, 0] {
        let request = nodes.publish(node, stamped(0, "once"));
        nodes.run();
        let ack = nodes.answer(node, request).expect("stored");
        assert!(!ack.exact && !ack.duplicate, "{ack:?}");
    }
    nodes.publish(1, stamped(1, "next"));
    nodes.run();
    nodes.add(1, 0, Start::Earliest, None);
    nodes.run();
    for node in 0..2 {
        assert_eq!(nodes.payloads(node, 0), ["once", "next"]);
    }
}

#[test]
fn behind_what_a_stream_had_refused_nothing_of_its_producer_goes_on() {
    let mut nodes = Nodes::new(2, SharedSettings::default());
    let refused = |nodes: &Nodes, node, request| {
        let answer = nodes.answer(node, request);
        answer.expect_err("refused")
    };
    // Of a map of before the present one: it never gets to the storage.
    let stale = batch(LOG, 0, &[("a", "0")]).stamped(stamped(0, "").producer().expect("one"));
    let first = nodes.publish(0, stale);
    let second = nodes.publish(0, stamped(1, "1"));
    nodes.run();
    assert_eq!(refused(&nodes, 0, first), ErrorCode::MapStale);
    assert_eq!(refused(&nodes, 0, second), ErrorCode::OutOfOrder);
    for sequence in 0..2 {
        let request = nodes.publish(0, stamped(sequence, &sequence.to_string()));
        nodes.run();
        assert!(nodes.answer(0, request).is_ok());
    }
    // A new stream begins anywhere.
    let request = nodes.publish(1, stamped(2, "2"));
    nodes.run();
    assert!(nodes.answer(1, request).is_ok());
    nodes.add(1, 0, Start::Earliest, None);
    nodes.run();
    assert_eq!(nodes.payloads(1, 0), ["0", "1", "2"]);
}

#[test]
fn what_has_no_producer_gets_a_stamp_of_its_node() {
    let mut nodes = Nodes::new(2, SharedSettings::default());
    for (node, payload) in [(0, "x"), (1, "y"), (0, "z")] {
        nodes.tell(node, payload);
    }
    let (stored, _) = nodes.logs.given(LOG, 0);
    let stamps: Vec<_> = stored
        .iter()
        .filter_map(|one| one.batch.producer())
        .collect();
    assert_eq!(stamps.len(), 3);
    assert_eq!(stamps[0].id, stamps[2].id);
    assert_ne!(stamps[0].id, stamps[1].id, "each node has its own");
    let sequences: Vec<u64> = stamps.iter().map(|stamp| stamp.sequence.0).collect();
    assert_eq!(sequences, [0, 0, 1]);
}

#[test]
fn a_publish_of_unknown_outcome_ends_the_epoch_of_its_node_s_stamps() {
    let mut nodes = Nodes::new(1, SharedSettings::default());
    nodes.tell(0, "first");
    nodes.logs.set(SharedSettings {
        unknown: 1_000_000,
        ..SharedSettings::default()
    });
    let lost = nodes.publish(0, batch(LOG, 1, &[("a", "lost")]));
    let behind = nodes.publish(0, batch(LOG, 1, &[("a", "behind")]));
    nodes.run();
    nodes.logs.calm();
    assert_eq!(nodes.answer(0, lost), Err(ErrorCode::OutcomeUnknown));
    assert_eq!(nodes.answer(0, behind), Err(ErrorCode::Overloaded));
    nodes.tell(0, "last");
    let (stored, _) = nodes.logs.given(LOG, 0);
    let stamps = stored.iter().filter_map(|one| one.batch.producer());
    let places: Vec<_> = stamps.map(|of| (of.epoch.0, of.sequence.0)).collect();
    assert_eq!(places.first(), Some(&(0, 0)));
    assert_eq!(places.last(), Some(&(1, 0)));
}

/// Publishes while time passes and clocks differ; the append time of each message, in the log's order.
fn publish_for_a_while(nodes: &mut Nodes, from: usize, count: usize) -> BTreeMap<usize, i64> {
    let mut times = BTreeMap::new();
    for n in from..from + count {
        let ack = nodes.tell(n % 2, &n.to_string());
        times.insert(n, ack.appended.0);
        nodes.pass(Duration::from_millis(200));
    }
    times
}

/// The numbers of the messages whose time is so.
fn those(times: &BTreeMap<usize, i64>, is_so: impl Fn(i64) -> bool) -> Vec<String> {
    let those = times.iter().filter(|(_, at)| is_so(**at));
    those.map(|(n, _)| n.to_string()).collect()
}

#[test]
fn a_subscription_from_a_time_gets_what_is_of_that_time_and_nothing_older() {
    let mut went_back = 0;
    for seed in 0..20 {
        let mut nodes = Nodes::new(2, slow(seed));
        let mut times = publish_for_a_while(&mut nodes, 0, 20);
        let ordered: Vec<i64> = times.values().copied().collect();
        went_back += ordered.windows(2).filter(|pair| pair[0] > pair[1]).count();
        // From what is there, and from what is still to come.
        let now = nodes.now.wall.0;
        let starts = [now - 3_000_000, now - 500_000, now + 1_000_000];
        for (n, start) in (0..).zip(starts) {
            nodes.add(n as usize % 2, n, Start::Time(AppendTime(start)), None);
        }
        nodes.run();
        times.extend(publish_for_a_while(&mut nodes, 20, 40));
        for (n, start) in (0..).zip(starts) {
            let node = n as usize % 2;
            let expected = those(&times, |at| at >= start);
            assert_eq!(
                nodes.payloads(node, n),
                expected,
                "seed {seed}, from {start}"
            );
            let mode = &nodes.nodes[node].client.sub(n).mode;
            assert_eq!(
                *mode,
                Mode::Live(LOG),
                "seed {seed}: in the end nothing older comes"
            );
        }
    }
    assert!(went_back > 20, "times went back {went_back} times");
}

#[test]
fn a_history_until_a_time_has_everything_of_before_that_time() {
    for seed in 0..20 {
        let mut nodes = Nodes::new(2, slow(seed));
        let times = publish_for_a_while(&mut nodes, 0, 25);
        let now = nodes.now.wall.0;
        // The last ends with the log: nothing proves that its time is over.
        let ends = [now - 4_000_000, now - 2_500_000, now - 300_000];
        for (n, end) in (0..).zip(ends) {
            let until = Some(Until::Time(AppendTime(end)));
            nodes.add(n as usize % 2, n, Start::Earliest, until);
        }
        nodes.run();
        for (n, end) in (0..).zip(ends) {
            let node = n as usize % 2;
            let expected = those(&times, |at| at < end);
            assert_eq!(
                nodes.payloads(node, n),
                expected,
                "seed {seed}, until {end}"
            );
            let mode = &nodes.nodes[node].client.sub(n).mode;
            assert_eq!(*mode, Mode::Complete, "seed {seed}");
        }
    }
}
