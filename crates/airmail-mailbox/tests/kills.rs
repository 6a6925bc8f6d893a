//! Many readers and writers on one queue while the database is killed and started again: every
//! message that was acknowledged to its sender is handed out, and none twice before its lease ended.
//!
//! `AIRMAIL_TEST_MAILBOX_SECONDS` makes it longer than continuous integration has time for.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::Mailboxes;
use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::id::{LeaseId, MessageId};
use airmail_mailbox::message::{Settle, Take};
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_testkit::{postgres, waiting};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const READERS: usize = 64;
const WRITERS: u64 = 16;
const NODES: usize = 3;
const LEASE: Duration = Duration::from_millis(1500);

/// The ledger of writers and readers about each message.
#[derive(Debug, Default)]
struct Ledger {
    acknowledged: BTreeSet<MessageId>,
    /// The last hand-out of each.
    held: BTreeMap<MessageId, Held>,
    done: BTreeSet<MessageId>,
    handed_out: u64,
}

/// A hand-out, by the reader's clock.
#[derive(Clone, Copy, Debug)]
struct Held {
    lease: Option<LeaseId>,
    /// Time at which its answer was here: its lease began before.
    since: Instant,
    /// Earliest time at which its lease may end.
    until: Instant,
}

impl Ledger {
    /// Leases have rising numbers. An answer may be under way for longer than its lease, and be entered
    /// when the next one's has been: then that one's lease must have begun after this one's.
    fn enter(&mut self, message: MessageId, held: Held) {
        self.handed_out += 1;
        let before = self.held.get(&message).copied();
        if let Some(later) = before.filter(|before| before.lease > held.lease) {
            assert!(held.until <= later.since, "handed out twice");
            return;
        }
        assert!(!self.done.contains(&message), "handed out after its end");
        assert!(
            before.is_none_or(|before| before.until <= held.since),
            "handed out twice"
        );
        self.held.insert(message, held);
    }
}

#[derive(Clone, Debug)]
struct Scene {
    nodes: Vec<Fixture>,
    ledger: Arc<Mutex<Ledger>>,
    sending: Arc<AtomicBool>,
    reading: Arc<AtomicBool>,
}

#[test]
fn what_was_acknowledged_is_handed_out_and_never_to_two() {
    let _alive = waiting::alive("mailboxes");
    let seconds = seconds();
    let mut server = postgres::Server::start();
    let url = server.new_database();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let ledger = runtime.block_on(async {
        let scene = scene(&url).await;
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            tasks.spawn(write(scene.clone(), writer));
        }
        for reader in 0..READERS {
            tasks.spawn(read(scene.clone(), reader));
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut kills = 0;
        while Instant::now() < end || kills < 2 {
            tokio::time::sleep(Duration::from_secs((seconds / 5).max(1))).await;
            tokio::task::block_in_place(|| {
                server.kill();
                server.start_again();
            });
            kills += 1;
        }
        scene.sending.store(false, Ordering::Relaxed);
        drained(&scene).await;
        scene.reading.store(false, Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        for node in &scene.nodes {
            node.mailboxes.close().await.unwrap();
        }
        scene.ledger
    });
    let ledger = ledger.lock();
    let handed_out = |id: &MessageId| ledger.held.contains_key(id);
    let lost: Vec<_> = ledger
        .acknowledged
        .iter()
        .filter(|id| !handed_out(id))
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {} lost: {lost:?}",
        lost.len(),
        ledger.acknowledged.len()
    );
    println!(
        "{} sent, {} handed out",
        ledger.acknowledged.len(),
        ledger.handed_out
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test's own setting, read only here"
)]
fn seconds() -> u64 {
    let told = std::env::var("AIRMAIL_TEST_MAILBOX_SECONDS").ok();
    told.and_then(|text| text.parse().ok()).unwrap_or(6)
}

async fn scene(url: &str) -> Scene {
    let start = || {
        let options = Options {
            patience_ms: 60_000,
            slot_bytes: 1 << 20,
            ..Options::new(url)
        };
        Mailboxes::new(Arc::new(PostgresStore::start(options).unwrap()))
    };
    let first = Fixture::new(start()).await;
    let others = (1..NODES).map(|_| Fixture {
        mailboxes: start(),
        ..first.clone()
    });
    Scene {
        nodes: others.chain([first.clone()]).collect(),
        ledger: Arc::default(),
        sending: Arc::new(AtomicBool::new(true)),
        reading: Arc::new(AtomicBool::new(true)),
    }
}

async fn write(scene: Scene, writer: u64) {
    let mut random = SmallRng::seed_from_u64(writer);
    let fixture = &scene.nodes[usize::try_from(writer).unwrap() % NODES];
    while scene.sending.load(Ordering::Relaxed) {
        let count = random.random_range(1..20);
        let messages = (0..count)
            .map(|n| fixture.message(&n.to_string()))
            .collect();
        // An unknown outcome is just that: it may have been stored, and then it is handed out too.
        let Ok(results) = fixture.mailboxes.send_all(messages).await else {
            continue;
        };
        let mut ledger = scene.ledger.lock();
        let stored = results.into_iter().filter_map(Result::ok);
        ledger.acknowledged.extend(stored);
    }
}

async fn read(scene: Scene, reader: usize) {
    let mut random = SmallRng::seed_from_u64(u64::MAX - reader as u64);
    let fixture = &scene.nodes[reader % NODES];
    let lease_ms = u64::try_from(LEASE.as_millis()).unwrap();
    while scene.reading.load(Ordering::Relaxed) {
        let count = random.random_range(1..30);
        let request = fixture
            .for_bob()
            .count(count)
            .take(Take::Lease { lease_ms });
        let asked = Instant::now();
        let Ok(found) = fixture
            .mailboxes
            .receive(request, Duration::from_millis(300))
            .await
        else {
            continue;
        };
        for message in &found {
            let mut ledger = scene.ledger.lock();
            let held = Held {
                lease: message.lease,
                since: Instant::now(),
                // The lease began after the question: it cannot have ended earlier than this.
                until: asked + LEASE,
            };
            ledger.enter(message.id, held);
        }
        // Some readers die with what they have.
        if random.random_range(0..10) == 0 {
            continue;
        }
        let receipts: Vec<_> = found
            .iter()
            .filter_map(|message| message.receipt())
            .collect();
        let Ok(settled) = fixture
            .mailboxes
            .settle(receipts, Settle::Acknowledge)
            .await
        else {
            continue;
        };
        let mut ledger = scene.ledger.lock();
        for (message, settled) in found.iter().zip(settled) {
            if settled.is_ok() {
                ledger.done.insert(message.id);
            }
        }
    }
}

/// Waits until nothing is left.
async fn drained(scene: &Scene) {
    let fixture = &scene.nodes[0];
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let Ok(counts) = fixture.mailboxes.counts(fixture.queue).await else {
            continue;
        };
        if counts.ready + counts.delayed + counts.leased == 0 {
            break;
        }
    }
}
