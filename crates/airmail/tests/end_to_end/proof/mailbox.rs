//! `kill -9` of nodes and database, over and over, while 64 readers and 16 writers use one queue.
//!
//! What must hold:
//!
//! - Each message that was acknowledged to its writer is handed out, under the number of its ack.
//! - None is handed out while the lease of the one before lasts, nor after it was acknowledged by a
//!   reader. Leases begin at the database, so by a reader's clock each lasts at least from before its
//!   question on: a message that comes again before that time has passed was handed out twice.
//! - A send whose answer was lost is not made again, by the SDK as little as by the writer: its
//!   message is there once or not at all. One that was refused is not there.
//! - In the end nothing is left.
//!
//! A read that removes and loses its answer has taken the message with it, as its contract says. So
//! readers here take leases, and acknowledge; some die with their messages, some give them back,
//! some ask for more time.

mod book;
mod reading;
mod writing;

use super::Plan;
use airmail_client::Client;
use airmail_client::mailbox::{AccountId, Mailbox, QueueId, QueueSettings};
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::node::{self, Node, airmail};
use airmail_testkit::postgres::Server;
use airmail_testkit::scale;
use airmail_testkit::waiting::{Waiting, alive, waiting};
use book::Book;
use rand::Rng;
use rand::rngs::SmallRng;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const NODES: usize = 2;
const READERS: usize = 64;
const WRITERS: usize = 16;
/// Longest time that a killed process stays dead.
const DEAD_MS_MAX: u64 = 500;

#[test]
fn what_was_acknowledged_is_handed_out_and_never_to_two_over_kills_of_nodes_and_database() {
    let plan = Plan::new("mailbox", 4);
    let mut server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let mut nodes = Nodes::start(&server.new_database(), directory.path());
    let crowd = Crowd::gather(&nodes, plan.choices(u64::MAX));
    let end = scale::prove("SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut last = plan.rounds().start;
    loop {
        let more = match end {
            Some(end) => Instant::now() < end,
            None => plan.rounds().contains(&last),
        };
        if !more {
            break;
        }
        let _watch = plan.watch(last, directory.path());
        let killed = kill(&mut nodes, &mut server, &mut plan.choices(last));
        crowd.wait_for_progress();
        plan.tell(last, &format!("killed {killed}; {}", crowd.book.counts()));
        last += 1;
    }
    let _watch = plan.watch(last, directory.path());
    let counts = crowd.end();
    plan.tell(last, &format!("all there, none twice: {counts}"));
}

/// Nodes that use one database, each at an address of its own for good.
struct Nodes {
    database: String,
    data: Vec<std::path::PathBuf>,
    addresses: Vec<String>,
    running: Vec<Option<Node>>,
}

impl Nodes {
    fn start(database: &str, directory: &Path) -> Nodes {
        let names = (0..NODES).map(|which| directory.join(format!("node-{which}")));
        let mut nodes = Nodes {
            database: database.to_owned(),
            data: names.collect(),
            addresses: (0..NODES).map(|_| lasting_address()).collect(),
            running: (0..NODES).map(|_| None).collect(),
        };
        (0..NODES).for_each(|which| nodes.start_again(which));
        nodes
    }

    fn start_again(&mut self, which: usize) {
        let mut command = airmail();
        command.args(["serve", "--log", "memory:", "--http", "127.0.0.1:0"]);
        command.args(["--listen", &self.addresses[which]]);
        command.args(["--mailbox", &self.database, "--data"]);
        command.arg(&self.data[which]);
        // Small, so that the storage goes round and round under the kills.
        command.env("AIRMAIL_MAILBOX_SLOT_BYTES", "1MiB");
        command.env("AIRMAIL_LOG_LEVEL", "error");
        self.running[which] = Some(Node::spawn(command));
    }

    fn kill(&mut self, which: usize) {
        self.running[which].take().unwrap().kill();
    }

    /// All of them, that of `first` before the others.
    fn url(&self, first: usize) -> String {
        let addresses = self.addresses.iter().cycle().skip(first).take(NODES);
        let addresses: Vec<&str> = addresses.map(String::as_str).collect();
        format!("airmail://{}", addresses.join(","))
    }
}

/// Kills something, leaves it dead for a while, starts it again, and says what it was.
fn kill(nodes: &mut Nodes, server: &mut Server, choices: &mut SmallRng) -> &'static str {
    let mut wait = |most_ms: u64| {
        thread::sleep(Duration::from_millis(choices.random_range(0..most_ms)));
    };
    wait(1_000);
    let which = choices.random_range(0..NODES);
    let how = choices.random_range(0..10);
    let dead = Duration::from_millis(choices.random_range(0..DEAD_MS_MAX));
    match how {
        0..3 => {
            nodes.kill(which);
            thread::sleep(dead);
            nodes.start_again(which);
            "a node"
        }
        3..6 => {
            server.kill();
            thread::sleep(dead);
            server.start_again();
            "the database"
        }
        6..8 => {
            nodes.kill(which);
            server.kill();
            thread::sleep(dead);
            nodes.start_again(which);
            server.start_again();
            "a node and the database"
        }
        8 => {
            (0..NODES).for_each(|which| nodes.kill(which));
            thread::sleep(dead);
            (0..NODES).for_each(|which| nodes.start_again(which));
            "all nodes"
        }
        _ => {
            server.kill();
            server.start_again();
            // It has hardly begun again.
            server.kill();
            thread::sleep(dead);
            server.start_again();
            "the database, twice"
        }
    }
}

/// A client of its own for somebody of the crowd, and what it works on.
#[derive(Clone)]
struct Place {
    mailbox: Mailbox,
    queue: QueueId,
    writer: AccountId,
    reader: AccountId,
    book: Arc<Book>,
    random: SmallRng,
}

/// Readers and writers, each with a connection of its own.
struct Crowd {
    book: Arc<Book>,
    runtime: Runtime,
    watcher: Place,
    writers: Vec<JoinHandle<()>>,
    readers: Vec<JoinHandle<()>>,
    _alive: Waiting,
}

impl Crowd {
    fn gather(nodes: &Nodes, mut choices: SmallRng) -> Crowd {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let book = Arc::new(Book::default());
        let connect = |which: usize| {
            let client = Client::builder()
                .url(nodes.url(which % NODES))
                .connect_timeout(Duration::from_secs(60));
            runtime.block_on(client.connect()).unwrap().mailbox()
        };
        let mailbox = connect(0);
        let (queue, writer, reader) = runtime.block_on(async {
            let settings = QueueSettings::default();
            (
                mailbox.create_queue("work", settings).await.unwrap(),
                mailbox.create_account("writer").await.unwrap(),
                mailbox.create_account("reader").await.unwrap(),
            )
        });
        let watcher = Place {
            mailbox,
            queue,
            writer,
            reader,
            book: Arc::clone(&book),
            random: rand::SeedableRng::seed_from_u64(choices.random()),
        };
        let mut place = |which: usize| Place {
            mailbox: connect(which),
            random: rand::SeedableRng::seed_from_u64(choices.random()),
            ..watcher.clone()
        };
        let writers = (0..WRITERS).map(|which| runtime.spawn(writing::run(place(which), which)));
        let writers = writers.collect();
        let readers = (0..READERS).map(|which| runtime.spawn(reading::run(place(which))));
        let readers = readers.collect();
        Crowd {
            book,
            runtime,
            watcher,
            writers,
            readers,
            _alive: alive("readers and writers"),
        }
    }

    /// Waits until something more is acknowledged to a writer, and by a reader.
    fn wait_for_progress(&self) {
        let before = self.book.counts();
        node::wait_until("something to be sent and done", || {
            self.book.check();
            let now = self.book.counts();
            now.acknowledged > before.acknowledged && now.done > before.done
        });
    }

    /// Lets writers end, then readers when nothing is left, and looks through the book.
    fn end(self) -> book::Counts {
        self.book.writing.store(false, Ordering::Relaxed);
        let ending = waiting("writers to end");
        for writer in self.writers {
            self.runtime.block_on(writer).unwrap();
        }
        drop(ending);
        let left = || {
            let counts = self.watcher.mailbox.counts(self.watcher.queue);
            let counts = self.runtime.block_on(counts).ok()?;
            Some(counts.ready + counts.delayed + counts.leased)
        };
        node::wait_until("an empty queue", || {
            self.book.check();
            left() == Some(0)
        });
        self.book.reading.store(false, Ordering::Relaxed);
        let _ending = waiting("readers to end");
        for reader in self.readers {
            self.runtime.block_on(reader).unwrap();
        }
        self.book.check();
        self.book.check_all_were_handed_out();
        self.book.counts()
    }
}
