//! One round's node and its directory, and the clients that stay through all acts on them:
//! publishers, readers, and the history that all of them write.

use super::clock::Clock;
use super::history::{Begin, Event, History, Progress};
use super::publishing::{Pace, Publishing};
use super::readers::Readers;
use crate::proof::load::Topic;
use crate::proof::stamp::Stamp;
use crate::proof::victim::Victim;
use airmail_client::{Client, GapReason};
use airmail_model::{Durability, Retention};
use airmail_testkit::node::{self, Node, Refused, airmail, wait_until};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Connections that the node lets in at once: few, so that strangers fill them soon.
pub(super) const CONNECTIONS: usize = 48;
/// Longest time for a connection to begin: short, so that strangers are soon sent away.
const BEGIN: &str = "2s";
/// Each namespace with its logs and how long it keeps messages.
const NAMESPACES: [(&str, u16, Option<u64>); 2] = [("one", 1, None), ("hour", 2, Some(3_600_000))];
/// Two topics in one log, and one whose log has another retention, and so other segments.
const TOPICS: [(&str, &str); 3] = [("one", "first"), ("one", "second"), ("hour", "third")];
/// One that waits for each ack, and two that do not.
const PACES: [Pace; 3] = [Pace::Patient, Pace::Bursts, Pace::Bursts];
/// Interval at which progress is looked for; for two minutes at most, and for two seconds after an
/// act that may need another start of the node.
const LOOK: Duration = Duration::from_millis(25);
const PROGRESS_LOOKS: u32 = 4_800;
const HEALING_LOOKS: u32 = 80;
/// Time between looks for data still on its way from a node that has ended.
const SETTLE: Duration = Duration::from_millis(5);
const SETTLES: u32 = 10;

/// A copy of the directory, and where in the history it was begun.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    pub(super) at: usize,
    /// Where it was ended: what was handed over after that is not in it.
    pub(super) ended: usize,
    /// It has been put in place before.
    pub(super) restored: bool,
    pub(super) path: PathBuf,
}

/// See the module's documentation.
pub(super) struct Stage {
    pub(super) root: PathBuf,
    pub(super) victim: Victim,
    pub(super) clock: Clock,
    pub(super) node: Option<Node>,
    /// Whether this build bounds how long a connection may take to begin.
    bounds_beginnings: bool,
    pub(super) history: Arc<History>,
    pub(super) topics: Arc<[Topic]>,
    pub(super) readers: Readers,
    pub(super) copy: Option<Copied>,
    /// Beginnings of the names of files in which `airmail check` may rightly find damage in the
    /// end.
    pub(super) damaged: BTreeSet<&'static str>,
    /// Number of messages that the command line has published, by topic.
    visitors: BTreeMap<u32, u64>,
    publishers: Vec<JoinHandle<()>>,
    order: Arc<Order>,
    runtime: Arc<Runtime>,
}

/// Orders to the publishers.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Hand over nothing more, and end when all is answered.
    pub(super) stop: AtomicBool,
    /// Hand over nothing more for now.
    pub(super) pause: AtomicBool,
}

impl Stage {
    /// A node on a new directory, with publishers and readers on it.
    pub(super) fn new(root: &Path, choices: &mut SmallRng) -> Stage {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        std::fs::create_dir_all(root).unwrap();
        let runtime = Arc::new(runtime);
        let history = Arc::new(History::default());
        let victim = Victim::new(&root.join("data"));
        let topics: Arc<[Topic]> = topics().into();
        let readers = Readers::new(&victim, &history, &runtime, root);
        let mut stage = Stage {
            root: root.to_owned(),
            clock: Clock::new(root),
            victim,
            node: None,
            bounds_beginnings: bounds_beginnings(),
            history,
            topics,
            readers,
            copy: None,
            damaged: BTreeSet::new(),
            visitors: BTreeMap::new(),
            publishers: Vec::new(),
            order: Arc::default(),
            runtime,
        };
        stage.start();
        stage.runtime.block_on(make_namespaces(&stage.victim));
        for (id, pace) in PACES.iter().enumerate() {
            stage.publish(id as u32, *pace, choices.random());
        }
        for topic in stage.topics.clone().iter() {
            stage.readers.follow(topic, Begin::Earliest);
        }
        let topic = stage.a_topic(choices);
        stage.readers.follow(&topic, Begin::Latest);
        let topic = stage.a_topic(choices);
        stage.readers.print(&topic);
        stage.progress();
        stage
    }

    fn publish(&mut self, id: u32, pace: Pace, seed: u64) {
        let work = Publishing {
            id,
            pace,
            seed,
            client: self.victim.client(),
            topics: Arc::clone(&self.topics),
            history: Arc::clone(&self.history),
            order: Arc::clone(&self.order),
        };
        self.publishers.push(self.runtime.spawn(work.run()));
    }

    /// One of the topics.
    pub(super) fn a_topic(&self, choices: &mut SmallRng) -> Topic {
        self.topics[choices.random_range(0..self.topics.len())].clone()
    }

    /// The next message that is published by the command line.
    pub(super) fn visitors_stamp(&mut self, topic: &Topic) -> Stamp {
        let number = self.visitors.entry(topic.index).or_default();
        *number += 1;
        Stamp {
            publisher: PACES.len() as u32,
            topic: topic.index,
            number: *number - 1,
            bytes: 64,
        }
    }

    /// The command that runs a node here.
    pub(super) fn command(&self) -> Command {
        let mut command = self.victim.command();
        command.env("AIRMAIL_LISTEN_CONNECTIONS", CONNECTIONS.to_string());
        if self.bounds_beginnings {
            command.env("AIRMAIL_LISTEN_BEGIN", BEGIN);
        }
        self.clock.flags(&mut command);
        command
    }

    /// Starts the node, which must start.
    pub(super) fn start(&mut self) {
        let started = self.try_to_start();
        started.unwrap_or_else(|refused| panic!("the node did not start: {refused}"));
    }

    /// Starts the node, or gives why it refuses.
    pub(super) fn try_to_start(&mut self) -> Result<(), Refused> {
        assert!(self.node.is_none(), "one node at a time");
        self.node = Some(Node::attempt(self.command())?);
        Ok(())
    }

    /// SIGTERM, and the end of it, which must be a good one.
    pub(super) fn stop(&mut self) {
        if let Some(node) = self.node.take() {
            let status = node.stop();
            assert!(status.success(), "the node's stop ended with {status}");
        }
        self.settle();
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        if let Some(node) = self.node.take() {
            node.kill();
        }
        self.settle();
    }

    /// Starts the node and kills it after `delay`, wherever it is by then.
    pub(super) fn start_and_kill(&self, delay: Duration) {
        let mut command = self.command();
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Where the files of a shard are.
    pub(super) fn shard(&self) -> PathBuf {
        self.victim.shard()
    }

    /// Ends the node in one of both ways.
    pub(super) fn end(&mut self, choices: &mut SmallRng) {
        if choices.random() {
            self.stop();
        } else {
            self.kill();
        }
    }

    /// Lets publishers and readers take what the node had sent before its end, so that the history has it
    /// before what is done next.
    fn settle(&self) {
        self.runtime.block_on(async {
            for _ in 0..SETTLES {
                tokio::time::sleep(SETTLE).await;
            }
        });
    }

    /// Waits until each publisher has another message stored in each topic, and each reader another one;
    /// lists those that stand still if that does not come.
    #[track_caller]
    pub(super) fn progress(&self) {
        let before = self.history.progress();
        let mut still = Vec::new();
        for _ in 0..PROGRESS_LOOKS {
            still = self.stand_still(&before);
            if still.is_empty() {
                return;
            }
            std::thread::sleep(LOOK);
        }
        panic!("no progress in minutes: {}", still.join(", "));
    }

    /// Publishers and readers that have made no progress.
    fn stand_still(&self, before: &Progress) -> Vec<String> {
        let now = self.history.progress();
        let places = (0..PACES.len() as u32).flat_map(|id| {
            let topics = self.topics.iter();
            topics.map(move |topic| (id, topic.index))
        });
        let publishers = places.filter(|of| now.stored.get(of) <= before.stored.get(of));
        let publishers = publishers.map(|(id, topic)| format!("publisher {id} to topic {topic}"));
        let readers = self.readers.running();
        let readers = readers.filter(|id| now.given.get(id) <= before.given.get(id));
        let readers = readers.map(|id| format!("reader {id}"));
        publishers.chain(readers).collect()
    }

    /// Whether there is such progress by itself; else the node is started anew, and then there must be.
    pub(super) fn goes_on_or_is_started_anew(&mut self, choices: &mut SmallRng) {
        let before = self.history.progress();
        for _ in 0..HEALING_LOOKS {
            let now = self.history.progress();
            if now
                .stored
                .iter()
                .all(|(of, stored)| before.stored.get(of) < Some(stored))
            {
                return;
            }
            std::thread::sleep(LOOK);
        }
        self.end(choices);
        self.start();
        self.progress();
    }

    /// Waits until each publisher has something stored in each topic after that place of the history.
    pub(super) fn everybody_publishes_after(&self, place: usize) {
        wait_until(
            "every publisher to have stored something after a copy",
            || {
                let progress = self.history.progress();
                let of_lasting = |id: &u32| *id < PACES.len() as u32;
                let stored = progress.stored.iter();
                let mut lasting = stored.filter(|((id, _), _)| of_lasting(id));
                lasting.all(|(_, (_, last))| *last > place)
            },
        );
    }

    /// Lets publishers hand over nothing more for now, and waits until they have all answers.
    pub(super) fn pause_publishing(&self) {
        self.order.pause.store(true, Ordering::Relaxed);
        wait_until("publishers to have all answers", || {
            self.history.progress().open == 0
        });
    }

    /// Lets them go on.
    pub(super) fn go_on_publishing(&self) {
        self.order.pause.store(false, Ordering::Relaxed);
    }

    /// Waits until every reader that runs, and was given something that was published after `copied`, has
    /// been told of a loss after `restored`.
    #[track_caller]
    pub(super) fn stale_readers_are_told(&self, copied: usize, restored: usize) {
        let mut untold = BTreeSet::new();
        for _ in 0..PROGRESS_LOOKS {
            untold = untold_readers(&self.history.events(), copied, restored);
            untold.retain(|id| self.readers.running().any(|running| running == *id));
            if untold.is_empty() {
                return;
            }
            std::thread::sleep(LOOK);
        }
        panic!("readers {untold:?} have had what a restore took away, and are not told in minutes");
    }

    /// Does something in the runtime of publishers and readers.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Stops the publishers, and waits until all that they sent is answered.
    pub(super) fn stop_publishing(&mut self) {
        self.order.stop.store(true, Ordering::Relaxed);
        let publishers = std::mem::take(&mut self.publishers);
        wait_until("every publisher to have all its answers", || {
            self.history.progress();
            publishers.iter().all(JoinHandle::is_finished)
        });
        for publisher in publishers {
            self.runtime.block_on(publisher).unwrap();
        }
    }

    /// Notes an event.
    pub(super) fn note(&self, event: Event) -> usize {
        self.history.note(event)
    }
}

fn untold_readers(events: &[Event], copied: usize, restored: usize) -> BTreeSet<usize> {
    let (mut newer, mut untold) = (BTreeSet::new(), BTreeSet::new());
    for (at, event) in events.iter().enumerate().skip(copied) {
        match event {
            Event::Invoked(stamp) => drop(newer.insert(*stamp)),
            Event::Given { reader, stamp, .. } if at < restored && newer.contains(stamp) => {
                untold.insert(*reader);
            }
            Event::Told { reader, gap } if at > restored && gap.reason == GapReason::Loss => {
                untold.remove(reader);
            }
            _ => {}
        }
    }
    untold
}

/// A round that fails leaves its history beside its directory.
impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let events = self.history.events();
            let lines = events
                .iter()
                .zip(0..)
                .map(|(event, at): (_, usize)| format!("{at}: {event:?}\n"));
            std::fs::write(self.root.join("history"), lines.collect::<String>()).ok();
        }
    }
}

fn bounds_beginnings() -> bool {
    let settings = node::run(airmail().args(["serve", "--print-config"]), b"");
    settings.ok().contains("\nbegin = ")
}

fn topics() -> Vec<Topic> {
    let topics = TOPICS
        .iter()
        .zip(0..)
        .map(|((namespace, name), index)| Topic {
            namespace,
            name: (*name).to_owned(),
            index,
            reserves: false,
        });
    topics.collect()
}

async fn make_namespaces(victim: &Victim) {
    let client: Client = victim.client().connect().await.unwrap();
    let admin = client.admin();
    for (name, logs, time_ms) in NAMESPACES {
        let retention = time_ms.map(|time_ms| Retention {
            time_ms: Some(time_ms),
            bytes: None,
        });
        let durability = Some(Durability::FSYNC);
        let made = admin.create(name, Some(logs), retention, durability);
        made.await.unwrap();
    }
    client.close().await.unwrap();
}
