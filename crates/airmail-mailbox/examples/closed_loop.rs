//! The workload of the Paštas report (table 6.2) on a store, in closed loop, without a network between:
//! it measures the rate of requests and their latency.
//!
//! `cargo run --release -p airmail-mailbox --example closed_loop -- URL [nodes] [clients] [seconds]
//! [connections] [batch] [report every s]`. URL is `postgres://…` or `sqlite:PATH`. With a batch
//! above 1, half of the clients send that many at once and the others take as many.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it reports")]

use airmail_mailbox::id::{AccountId, QueueId};
use airmail_mailbox::message::{Outgoing, Receive, Recipients, Take};
use airmail_mailbox::postgres::{Options, PostgresStore};
use airmail_mailbox::sqlite::{SqliteStore, WAITING_MAX};
use airmail_mailbox::store::QueueSettings;
use airmail_mailbox::{MailboxStore, Mailboxes};
use airmail_model::Error;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone, Debug)]
struct Things {
    queues: Vec<QueueId>,
    accounts: Vec<AccountId>,
    batch: usize,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| {
        arguments
            .get(at)
            .and_then(|text| text.parse().ok())
            .unwrap_or(otherwise)
    };
    let (nodes, clients, seconds) = (number(1, 2), number(2, 10), number(3, 10));
    let mut stores: Vec<Mailboxes> = Vec::new();
    let url = arguments
        .first()
        .map_or("sqlite:/tmp/mailboxes.db", String::as_str);
    for _ in 0..nodes {
        let store: Arc<dyn MailboxStore> = match url.strip_prefix("sqlite:") {
            Some(path) if stores.is_empty() => {
                Arc::new(SqliteStore::start(Path::new(path), WAITING_MAX)?)
            }
            Some(_) => break,
            None => Arc::new(PostgresStore::start(Options {
                connections: usize::try_from(number(4, 4)).unwrap_or(4),
                ..Options::new(url)
            })?),
        };
        stores.push(Mailboxes::new(store));
    }
    let things = prepare(&stores[0], usize::try_from(number(5, 1)).unwrap_or(1)).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..clients {
        let node = stores[usize::try_from(client).unwrap_or(0) % stores.len()].clone();
        tasks.spawn(run(node, things.clone(), client));
    }
    let every = number(6, seconds);
    let mut last = 0;
    for step in 1..=seconds / every {
        tokio::time::sleep(Duration::from_secs(every)).await;
        let done = things.done.load(Ordering::Relaxed);
        println!(
            "{:5} s: {:9.1} /s",
            step * every,
            (done - last) as f64 / every as f64
        );
        last = done;
    }
    things.stop.store(true, Ordering::Relaxed);
    let mut times: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    times.sort_unstable();
    let at = |share: f64| {
        times
            .get(((times.len() as f64) * share) as usize)
            .copied()
            .unwrap_or(0)
    };
    println!(
        "{:.1} /s, p50 {} us, p90 {} us, p99 {} us, max {} us",
        last as f64 / (seconds / every * every) as f64,
        at(0.5),
        at(0.9),
        at(0.99),
        times.last().copied().unwrap_or(0)
    );
    for store in stores {
        store.close().await?;
    }
    Ok(())
}

async fn prepare(mailboxes: &Mailboxes, batch: usize) -> Result<Things, Error> {
    let (mut queues, mut accounts) = (Vec::new(), Vec::new());
    for n in 0..2 {
        let name = format!("queue {n}");
        queues.push(
            match mailboxes
                .create_queue(&name, QueueSettings::default())
                .await
            {
                Ok(queue) => queue,
                Err(_) => mailboxes.find_queue(&name).await?,
            },
        );
    }
    for n in 0..10 {
        let name = format!("account {n}");
        accounts.push(match mailboxes.create_account(&name).await {
            Ok(account) => account,
            Err(_) => mailboxes.find_account(&name).await?,
        });
    }
    Ok(Things {
        queues,
        accounts,
        batch,
        stop: Arc::default(),
        done: Arc::default(),
    })
}

async fn run(mailboxes: Mailboxes, things: Things, client: u64) -> Vec<u64> {
    let mut random = SmallRng::seed_from_u64(client);
    let mut times = Vec::new();
    while !things.stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let done = if things.batch > 1 {
            batched(&mailboxes, &things, &mut random, client).await
        } else {
            one(&mailboxes, &things, &mut random, client).await
        };
        things.done.fetch_add(done, Ordering::Relaxed);
        times.push(u64::try_from(began.elapsed().as_micros()).unwrap_or(0));
    }
    times
}

async fn one(mailboxes: &Mailboxes, things: &Things, random: &mut SmallRng, client: u64) -> u64 {
    let queue = things.queues[random.random_range(0..things.queues.len())];
    let me = things.accounts[usize::try_from(client).unwrap_or(0) % things.accounts.len()];
    let dice = random.random_range(0..10);
    if dice < 2 {
        let to = things.accounts[random.random_range(0..things.accounts.len())];
        let recipients = if random.random_range(0..10) == 0 {
            Recipients::Broadcast
        } else {
            Recipients::Direct(to)
        };
        let size = if random.random() { 200 } else { 2000 };
        let message = Outgoing::new(queue, me, recipients, vec![b'x'; size]);
        if let Err(error) = mailboxes.send(message).await {
            eprintln!("{error}");
        }
    } else {
        let mut request = Receive::new(queue, me);
        request.broadcast = dice >= 8;
        if random.random_range(0..10) == 0 {
            request.take = Take::Peek;
        }
        let _ = mailboxes.receive(request, Duration::ZERO).await;
    }
    1
}

async fn batched(
    mailboxes: &Mailboxes,
    things: &Things,
    random: &mut SmallRng,
    client: u64,
) -> u64 {
    let queue = things.queues[0];
    let me = things.accounts[0];
    let _ = random;
    if client.is_multiple_of(2) {
        let message = Outgoing::new(queue, me, Recipients::Direct(me), vec![b'x'; 200]);
        let sent = mailboxes.send_all(vec![message; things.batch]).await;
        sent.map_or(0, |sent| sent.len() as u64)
    } else {
        let request = Receive::new(queue, me).count(things.batch);
        let got = mailboxes.receive(request, Duration::from_secs(1)).await;
        got.map_or(0, |got| got.len() as u64)
    }
}
