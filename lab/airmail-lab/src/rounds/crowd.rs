//! Many clients in a process of their own, each with a subscription to the same topic.
//!
//! The process gets its task as JSON on standard input, says `ready` when all subscriptions stand,
//! is told `stop ROUNDS`, waits until every client has that many rounds, or nothing comes any more,
//! and ends with their results as JSON.

use super::round_book::RoundBook;
use airmail_bench::clock::now_us;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::family::member::Member;
use airmail_bench::latency::Latencies;
use airmail_bench::process::Usage;
use airmail_bench::process::raise_open_files;
use airmail_client::{Client, Items, Subscription};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Clients that connect at the same time.
const CONNECTING: usize = 64;
/// Silence after which missing messages count as lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which it is looked whether all have everything.
const LOOK: Duration = Duration::from_millis(20);

/// Task of a process of clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The node, as `airmail://HOST:PORT`.
    pub(super) target: String,
    /// Name of the machine that the clients say they are on; absent: the system's.
    pub(super) host: Option<String>,
    /// The topic that all subscribe to.
    pub(super) topic: String,
    /// The run whose messages count.
    pub(super) run: u32,
    /// Connections of their own.
    pub(super) connections: u32,
    /// Clients; those beyond the connections are further streams on these.
    pub(super) clients: u32,
    /// A round that takes longer has timed out, in microseconds.
    pub(super) timeout_us: u32,
}

/// Messages that the clients of a process got.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Got {
    /// Results of each round, in order.
    pub(crate) rounds: Vec<Round>,
    /// Batches of messages that came.
    pub(crate) deliveries: u64,
    /// Messages that should not have come, or not then.
    pub(crate) wrong: u64,
    /// The first subscription's error.
    pub(crate) error: Option<String>,
    /// Processor time of the process while it received, in microseconds.
    pub(crate) cpu_us: u64,
}

/// A round, for many clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Times of the clients that completed it.
    pub(crate) took: Latencies,
    /// Sum of these, in microseconds.
    pub(crate) sum_us: u64,
    /// Clients for which it took too long.
    pub(crate) late: u64,
    /// Clients that never completed it.
    pub(crate) incomplete: u64,
}

impl Got {
    /// Adds another process's.
    pub(super) fn add(&mut self, other: Got) {
        let most = self.rounds.len().max(other.rounds.len());
        self.rounds.resize(most, Round::default());
        for (round, more) in self.rounds.iter_mut().zip(&other.rounds) {
            round.add(more);
        }
        self.deliveries += other.deliveries;
        self.wrong += other.wrong;
        self.cpu_us += other.cpu_us;
        self.error = self.error.take().or(other.error);
    }

    /// Adds a client's.
    fn enter(&mut self, book: &RoundBook, timeout_us: u32) {
        self.deliveries += book.deliveries;
        self.wrong += book.wrong;
        for (place, round) in self.rounds.iter_mut().enumerate() {
            let Some(took_us) = book.took_us.get(place) else {
                round.incomplete += 1;
                continue;
            };
            round.took.record((*took_us).into());
            round.sum_us += u64::from(*took_us);
            round.late += u64::from(*took_us > timeout_us);
        }
    }
}

impl Round {
    /// Adds that of other clients.
    pub(super) fn add(&mut self, other: &Round) {
        self.took.add(&other.took);
        self.sum_us += other.sum_us;
        self.late += other.late;
        self.incomplete += other.incomplete;
    }
}

/// The process as seen by the one that started it.
#[derive(Debug)]
pub(super) struct Crowd(Member);

impl Crowd {
    /// One that has been started; waits until all its subscriptions stand. From then on it is
    /// to tell what it got, also of rounds that were stopped.
    pub(super) fn stand(mut member: Member) -> anyhow::Result<Crowd> {
        member.hear("ready")?;
        member.outlast_stop();
        Ok(Crowd(member))
    }

    /// Tells the process the number of rounds.
    pub(super) fn stop(&mut self, rounds: u32) -> anyhow::Result<()> {
        Ok(self.0.tell(&format!("stop {rounds}"))?)
    }

    /// Ends the process; gives the messages that its clients got.
    pub(super) fn end(self) -> anyhow::Result<Got> {
        Ok(self.0.end()?)
    }
}

/// Runs the process of clients.
///
/// # Errors
/// The node cannot be reached, or the leader is gone.
pub(crate) fn be_a_crowd() -> anyhow::Result<ExitCode> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Exit)?;
    raise_open_files();
    let runtime = airmail_bench::family::runtime(false)?;
    let got = runtime.block_on(async {
        let standing = Standing::open(&task).await?;
        say("ready")?;
        let rounds = leader.number("stop")?;
        anyhow::Ok(standing.close(u32::try_from(rounds)?).await)
    })?;
    say(&serde_json::to_string(&got)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Clients whose subscriptions stand.
#[derive(Debug)]
struct Standing {
    task: Task,
    readers: JoinSet<(RoundBook, Option<String>)>,
    /// Rounds that clients have completed, all together.
    completed: Arc<AtomicU64>,
    stop: watch::Sender<bool>,
    before: Usage,
    /// Kept as long as they are subscribed.
    clients: Vec<Client>,
}

impl Standing {
    async fn open(task: &Task) -> anyhow::Result<Standing> {
        let connecting = (0..task.connections).map(|_| connect(&task.target, task.host.as_deref()));
        let connecting = stream::iter(connecting).buffer_unordered(CONNECTING);
        let clients: Vec<Client> = connecting.try_collect().await?;
        let of_client = clients.iter().cycle().take(task.clients as usize);
        let opening = of_client.map(|client| client.subscribe(&task.topic).open());
        let opening = stream::iter(opening).buffer_unordered(CONNECTING);
        let subscriptions: Vec<Subscription> = opening.try_collect().await?;
        let (stop, stopped) = watch::channel(false);
        let completed = Arc::new(AtomicU64::new(0));
        let mut readers = JoinSet::new();
        for subscription in subscriptions {
            let reader = Reader {
                run: task.run,
                book: RoundBook::default(),
                completed: Arc::clone(&completed),
            };
            readers.spawn(reader.read(subscription, stopped.clone()));
        }
        Ok(Standing {
            task: task.clone(),
            readers,
            completed,
            stop,
            before: Usage::own(),
            clients,
        })
    }

    /// Waits until all have everything, or nothing comes any more.
    async fn close(mut self, rounds: u32) -> Got {
        let due = u64::from(rounds) * u64::from(self.task.clients);
        let (mut seen, mut waited) = (0, Duration::ZERO);
        while seen < due && waited < PATIENCE {
            sleep(LOOK).await;
            let now = self.completed.load(Ordering::Relaxed);
            waited = if now == seen {
                waited + LOOK
            } else {
                Duration::ZERO
            };
            seen = now;
        }
        self.stop.send_replace(true);
        let mut got = Got {
            rounds: vec![Round::default(); rounds as usize],
            cpu_us: Usage::own().since(&self.before).cpu_us,
            ..Got::default()
        };
        while let Some(ended) = self.readers.join_next().await {
            match ended {
                Ok((book, error)) => {
                    got.enter(&book, self.task.timeout_us);
                    got.error = got.error.take().or(error);
                }
                Err(error) => got.error = Some(error.to_string()),
            }
        }
        drop(self.clients);
        got
    }
}

/// Connects a client that says it is on the machine of this name; absent: the system's.
///
/// # Errors
/// The node cannot be reached.
pub(super) async fn connect(
    target: &str,
    host: Option<&str>,
) -> Result<Client, airmail_client::Error> {
    let mut builder = Client::builder().url(target);
    if let Some(host) = host {
        builder = builder.host(host);
    }
    builder.connect().await
}

/// Reads one client's subscription.
#[derive(Debug)]
struct Reader {
    run: u32,
    book: RoundBook,
    completed: Arc<AtomicU64>,
}

impl Reader {
    /// Reads until it is told to stop, or the subscription ends; then gives the reason.
    async fn read(
        mut self,
        mut subscription: Subscription,
        mut stopped: watch::Receiver<bool>,
    ) -> (RoundBook, Option<String>) {
        loop {
            let next = tokio::select! {
                biased;
                next = subscription.next_batch() => next,
                _ = stopped.changed() => return (self.book, None),
            };
            match next {
                Ok(Some(items)) => self.enter(&items),
                Ok(None) => return (self.book, Some("the subscription has ended".to_owned())),
                Err(error) => return (self.book, Some(error.to_string())),
            }
        }
    }

    fn enter(&mut self, items: &Items) {
        let before = self.book.took_us.len();
        match items {
            Items::Messages(messages) => {
                self.book.deliveries += 1;
                let now_us = now_us();
                for (_, record) in messages.iter() {
                    self.book.take(self.run, record.payload, now_us);
                }
            }
            Items::Gap(_) => self.book.take_gap(),
            // Nobody asks to be told of what has expired.
            Items::Expired(_) => {}
        }
        let completed = self.book.took_us.len() - before;
        if completed > 0 {
            self.completed
                .fetch_add(completed as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_add_up_and_what_is_late_or_incomplete_is_counted() {
        let book = |took_us: &[u32]| {
            let mut book = RoundBook::default();
            book.took_us = took_us.into();
            book
        };
        let mut got = Got {
            rounds: vec![Round::default(); 2],
            ..Got::default()
        };
        got.enter(&book(&[1000, 3000]), 2000);
        got.enter(&book(&[3000]), 2000);
        got.add(got.clone());
        let counts = |round: &Round| {
            (
                round.took.count(),
                round.sum_us,
                round.late,
                round.incomplete,
            )
        };
        assert_eq!(counts(&got.rounds[0]), (4, 8000, 2, 0));
        assert_eq!(counts(&got.rounds[1]), (2, 6000, 2, 2));
    }
}
