//! A whole node without its sockets: whatever clients ask, in whatever order, it does not panic,
//! answers each publish once, sends nothing on a closed stream, and leaves no hole in a range.

#![no_main]

use airmail_broker::{
    AllowAll, ClientInput, Command, CommandId, Engine, Principal, SessionId, ShardConfig,
    TurnOutput,
};
use airmail_fuzz::directory::Directory;
use airmail_fuzz::fuzz_target;
use airmail_fuzz::number::number;
use airmail_fuzz::ranges::Ranges;
use airmail_fuzz::wish::{filter, wanted};
use airmail_log::TopicPage;
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_model::batch::{BatchTarget, ProducerStamp};
use airmail_model::frame::{
    Change, Generation, Lanes, Reply, Request, RequestId, Start, Subscribe, SubscriptionId, Until,
};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Incarnation, Lane, Limits, LogId, LogIndex, MapEpoch,
    Message, Mono, NamespaceId, Now, Position, ProducerEpoch, ProducerId, ProducerSequence,
    Retention, Sequence, StorageName, TopicName, Wall,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SESSIONS: u8 = 3;

#[derive(Arbitrary, Debug)]
enum Step {
    Open {
        session: u8,
        credit: u16,
    },
    Close {
        session: u8,
    },
    Publish {
        session: u8,
        namespace: u8,
        log: u8,
        topics: u8,
        epoch: u8,
        producer: u8,
        at: u8,
    },
    Add {
        session: u8,
        which: u8,
        namespace: u8,
        topic: u8,
        start: u8,
        at: u8,
        until: Option<u8>,
        lanes: u8,
    },
    Remove {
        session: u8,
        which: u8,
    },
    Change {
        session: u8,
        which: u8,
        topic: u8,
    },
    Credit {
        session: u8,
        bytes: u16,
    },
    Create {
        name: u8,
        logs: u8,
        keep_bytes: Option<u8>,
    },
    Update {
        name: u8,
        keep_bytes: Option<u8>,
        based_on: Option<u8>,
    },
    Delete {
        name: u8,
        based_on: Option<u8>,
    },
    List {
        namespace: u8,
        prefix: u8,
        limit: u8,
    },
    Wait {
        ms: u16,
    },
}

fn name(number: u8) -> String {
    ["default", "a", "b", "_bad"][usize::from(number % 4)].to_owned()
}

fn topic(number: u8) -> TopicName {
    let name = ["t", "u", "v", "w"][usize::from(number % 4)];
    TopicName::new(name, &Limits::DEFAULT).expect("a name")
}

fn log(namespace: u8, index: u8) -> LogId {
    LogId {
        namespace: NamespaceId(u32::from(namespace % 4)),
        lane: lane(index & 64 != 0),
        index: LogIndex(u16::from(index % 3)),
    }
}

fn lane(is_high: bool) -> Lane {
    if is_high { Lane::High } else { Lane::Normal }
}

/// Lanes in which a subscription is that begins so; only what has an end is in one of them alone.
fn lanes(namespace: NamespaceId, drawn: u8, at: u8, has_end: bool) -> Lanes {
    match drawn % 4 {
        0 if has_end => Lanes::Only(lane(drawn & 64 != 0)),
        1 => {
            let log = LogId {
                // Whose it is nobody has looked at yet.
                namespace: if drawn < 240 {
                    namespace
                } else {
                    NamespaceId(9)
                },
                lane: Lane::High,
                index: LogIndex(u16::from(drawn / 4 % 3)),
            };
            Lanes::HighFrom(place(log, at))
        }
        _ => Lanes::Each,
    }
}

/// A place in a log.
fn place(log: LogId, at: u8) -> LogPosition {
    LogPosition {
        log,
        incarnation: Incarnation(at.into()),
        next: Sequence(number(at)),
    }
}

fn retention(keep_bytes: Option<u8>) -> Retention {
    Retention {
        time_ms: None,
        bytes: keep_bytes.map(u64::from),
    }
}

/// The node under test, and what its clients have been told.
struct World {
    node: Engine<JournalStorage<Directory>>,
    out: TurnOutput,
    now: Now,
    /// The stream of each client; every stream has a number of its own.
    open: BTreeMap<u8, u64>,
    streams: u64,
    requests: u64,
    unanswered: BTreeSet<(u64, u64)>,
    commands: u64,
    uncommanded: BTreeSet<u64>,
    ranges: Ranges,
}

impl World {
    fn new() -> World {
        let now = Now {
            mono: Mono(1),
            wall: Wall(1_000_000),
        };
        let storage =
            JournalStorage::open(Directory::new(Vec::new()), JournalConfig::memory(1), now);
        let storage = storage.expect("memory opens");
        let limits = Limits {
            subscriptions: 3,
            ..Limits::DEFAULT
        };
        let config = ShardConfig {
            limits,
            catch_up_readers: 2,
            catch_up_step_bytes: 256,
            commands: 2,
            ..ShardConfig::default()
        };
        let node = Engine::new(config, storage, Box::new(AllowAll), Box::new(AllowAll), now);
        let node = node.expect("a shard can honour a journal");
        World {
            node,
            out: TurnOutput::default(),
            now,
            open: BTreeMap::new(),
            streams: 0,
            requests: 0,
            unanswered: BTreeSet::new(),
            commands: 0,
            uncommanded: BTreeSet::new(),
            ranges: Ranges::default(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Open { session, credit } => self.open(session, credit.into()),
            Step::Close { session } => self.close(session),
            Step::Create {
                name: n,
                logs,
                keep_bytes,
            } => self.command(Command::CreateNamespace {
                name: name(n),
                logs: logs.into(),
                retention: retention(keep_bytes),
                durability: None,
                storage: StorageName::FIRST,
            }),
            Step::Update {
                name: n,
                keep_bytes,
                based_on,
            } => {
                self.command(Command::UpdateNamespace {
                    name: name(n),
                    logs: None,
                    retention: Some(retention(keep_bytes)),
                    durability: None,
                    storage: None,
                    based_on: based_on.map(u64::from),
                });
            }
            Step::Delete { name: n, based_on } => self.command(Command::DeleteNamespace {
                name: name(n),
                based_on: based_on.map(u64::from),
            }),
            Step::List {
                namespace,
                prefix,
                limit,
            } => {
                let prefix = ["", "t", "x"][usize::from(prefix % 3)].to_owned();
                let page = TopicPage {
                    prefix,
                    limit: limit.into(),
                    ..TopicPage::default()
                };
                let namespace = log(namespace, 0).namespace;
                self.command(Command::ListTopics { namespace, page });
            }
            Step::Wait { ms } => {
                self.now.mono = self.now.mono.plus(Duration::from_millis(ms.into()));
                self.now.wall.0 += i64::from(ms) * 1000;
            }
            Step::Publish {
                session,
                namespace,
                log: n,
                topics,
                epoch,
                producer,
                at,
            } => {
                self.publish(
                    session,
                    batch(log(namespace, n), topics, epoch, producer, at),
                );
            }
            Step::Add {
                session,
                which,
                namespace,
                topic: n,
                start: kind,
                at,
                until,
                lanes: drawn,
            } => {
                let id = log(namespace, 0).namespace;
                let subscribe = Subscribe {
                    subscription: SubscriptionId(u32::from(which % 5)),
                    generation: Generation(u32::from(which / 5)),
                    namespace: id,
                    wanted: wanted(id, &topic(n), n),
                    start: start(id, kind, at),
                    until: until.map(|until| match until {
                        0 => Until::Now,
                        n => Until::Sequence(Sequence(number(n))),
                    }),
                    tell_expired: at % 2 == 0,
                    filter: filter(n),
                    headers_only: at % 3 == 0,
                    // As the stream's first one, nearly always.
                    matches: (session % 2 == 0) != (which == 77),
                    lanes: lanes(id, drawn, at, until.is_some()),
                };
                self.request(session, Request::Add(subscribe));
            }
            Step::Change {
                session,
                which,
                topic: n,
            } => {
                if let Some(filter) = filter(n) {
                    let change = Change {
                        subscription: SubscriptionId(u32::from(which % 5)),
                        generation: Generation(u32::from(which / 5) + 1),
                        filter,
                    };
                    self.request(session, Request::Change(change));
                }
            }
            Step::Remove { session, which } => {
                let subscription = SubscriptionId(u32::from(which % 5));
                self.request(session, Request::Remove { subscription });
            }
            Step::Credit { session, bytes } => {
                self.request(
                    session,
                    Request::Credit {
                        bytes: bytes.into(),
                    },
                );
            }
        }
        self.turns(2);
    }

    fn open(&mut self, client: u8, credit: u32) {
        self.close(client);
        self.streams += 1;
        self.open.insert(client % SESSIONS, self.streams);
        let session = SessionId(self.streams);
        let principal = Principal::default();
        self.node.input(
            self.now,
            ClientInput::Opened {
                session,
                principal,
                credit,
            },
        );
    }

    fn close(&mut self, client: u8) {
        if let Some(stream) = self.open.remove(&(client % SESSIONS)) {
            self.unanswered.retain(|(session, _)| *session != stream);
            let session = SessionId(stream);
            self.node.input(self.now, ClientInput::Closed { session });
        }
    }

    fn request(&mut self, client: u8, request: Request) {
        if let Some(&stream) = self.open.get(&(client % SESSIONS)) {
            let session = SessionId(stream);
            self.node
                .input(self.now, ClientInput::Request { session, request });
        }
    }

    fn publish(&mut self, client: u8, batch: Checked<Batch>) {
        if let Some(&stream) = self.open.get(&(client % SESSIONS)) {
            self.requests += 1;
            self.unanswered.insert((stream, self.requests));
            let request = RequestId(self.requests);
            self.request(
                client,
                Request::Publish {
                    request,
                    batch,
                    begins_epoch: false,
                },
            );
        }
    }

    fn command(&mut self, command: Command) {
        self.commands += 1;
        self.uncommanded.insert(self.commands);
        let (id, principal) = (CommandId(self.commands), Principal::default());
        self.node.input(
            self.now,
            ClientInput::Command {
                id,
                principal,
                command,
            },
        );
    }

    fn turns(&mut self, times: usize) {
        for _ in 0..times {
            self.node.turn(self.now, &mut self.out);
            for (session, reply) in std::mem::take(&mut self.out.replies) {
                self.told(session.0, &reply);
            }
            for (id, _) in self.out.outcomes.drain(..) {
                assert!(self.uncommanded.remove(&id.0), "answered twice");
            }
        }
    }

    fn all_answered(&self) -> bool {
        self.uncommanded.is_empty() && self.unanswered.is_empty()
    }

    fn told(&mut self, stream: u64, reply: &Reply) {
        assert!(
            self.open.values().any(|open| *open == stream),
            "sent on a closed stream"
        );
        match reply {
            Reply::Acked { request, .. } => {
                assert!(
                    self.unanswered.remove(&(stream, request.0)),
                    "answered twice"
                );
            }
            other => self.ranges.told(stream, other),
        }
    }
}

fn start(namespace: NamespaceId, kind: u8, at: u8) -> Start {
    match kind % 6 {
        0 => Start::Latest,
        1 => Start::Earliest,
        2 => Start::Sequence(Sequence(number(at))),
        3 => Start::Time(AppendTime(i64::from(at) * 100_000)),
        _ => Start::Position(Position {
            namespace: if kind & 128 == 0 {
                namespace
            } else {
                NamespaceId(9)
            },
            epoch: MapEpoch(u32::from(kind / 64)),
            logs: (0..at % 6)
                .map(|which| LogId {
                    namespace,
                    lane: lane(which % 2 == 1),
                    index: LogIndex(u16::from(which / 2)),
                })
                .map(|log| place(log, at))
                .collect(),
        }),
    }
}

/// A batch of the topics whose bits are set.
fn batch(log: LogId, topics: u8, epoch: u8, producer: u8, at: u8) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(log.namespace);
    for n in (0..8).filter(|n| topics & (1 << n) != 0 || *n == 7) {
        let mut message = Message::new(topic(n), vec![b'x'; usize::from(n) * 16]);
        message.ttl_ms = (n % 3 == 1).then_some(u32::from(n) * 100);
        encoder
            .push(&message, 0, &Limits::DEFAULT)
            .expect("it fits");
    }
    let producer = (producer % 3 != 0).then(|| ProducerStamp {
        id: ProducerId(u64::from(producer % 3)),
        epoch: ProducerEpoch(u32::from(producer / 128)),
        sequence: ProducerSequence(number(at).min(u64::MAX >> 1)),
    });
    // Nearly always of the present map.
    let epoch = MapEpoch(if epoch < 240 { 1 } else { u32::from(epoch) });
    encoder.finish(&BatchTarget {
        log,
        epoch,
        producer,
        producer_time: 0,
    })
}

fuzz_target!(|steps: Vec<Step>| {
    let mut world = World::new();
    world.turns(4);
    world.open(0, 4096);
    for step in steps {
        world.step(step);
    }
    // In the end all that was asked is answered. What is sent after that is looked at as well.
    for _ in 0..4 {
        world.now.mono = world.now.mono.plus(Duration::from_secs(2));
        world.turns(if world.all_answered() { 2 } else { 8 });
    }
    assert!(world.all_answered(), "not answered");
});
