//! Runs whose publishers hold themselves to a limiter, as in section 5.5 of the paper.
//!
//! Each publisher has a gate of its own: a message enters, its ack gives the place back with the time
//! that it took, and every N acknowledged messages the limiter decides anew. Beside each of the first
//! [`SUBSCRIBERS_MAX`] publishers is a subscriber of all topics, which accounts for every message of every
//! publisher: what a run lost is counted before its curves are believed. A process may have a share of the
//! publishers and of their subscribers, and meet the others where all must have come to the same point.
//!
//! - [`Load`], [`run`], [`Flown`]: a run's task, the run, and its results.
//! - [`Distribution`]: distribution of messages over topics.
//! - [`Throttling`], [`Throttle`], [`Window`]: the publisher's gate, and one window of a limiter, of this
//!   gate or of the node's.
//! - [`Course`], [`Period`]: throughput, latency and bound over any part of a run, by counters.
//! - [`Sweep`]: the fixed bounds, and the knee among them.

mod course;
mod decisions;
mod distribution;
mod named;
mod publisher;
mod subscriber;
mod sweep;
mod throttle;
mod window;

use airmail_client::Client;
use airmail_model::Mono;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

pub use course::{Course, PERIOD_BOUNDS, PERIOD_S, Period, periods, together};
pub use distribution::{Distribution, Draw, UnknownDistribution};
pub use publisher::Flight;
pub use sweep::{Sweep, SweepPoint};
pub use throttle::{Seen, Throttle, Throttling};
pub use window::{Counter, Window};

use airmail_bench::alarm::Alarm;
use airmail_bench::clock::now_us;
use airmail_bench::latency::Latencies;
use airmail_bench::part::Received;
use airmail_bench::progress::Progress;
use airmail_bench::run::{Meeting, Share};
use airmail_bench::system::Failure;
use decisions::DecisionWatch;
use publisher::Publisher;
use subscriber::Subscribers;

/// Subscribers at most: the paper has 2. Each gets the messages of all publishers, so with one beside each of
/// 8 publishers a run would measure mostly deliveries, which take nearly all of the processors.
pub const SUBSCRIBERS_MAX: u32 = 2;

/// Says whether a run is to end before its time.
pub type Halt = Arc<dyn Fn() -> bool + Send + Sync>;

/// The load of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    /// The node, as `airmail://HOST:PORT`.
    pub url: String,
    /// The namespace of its topics; absent: the default one.
    pub namespace: Option<String>,
    /// Distinguishes this run's messages from others'.
    pub id: u32,
    /// Prefix of the run's topics.
    pub prefix: String,
    /// Topics; at least 1.
    pub topics: u32,
    /// Distribution of messages over them.
    #[serde(with = "named")]
    pub distribution: Distribution,
    /// Publishers; at least 1. The paper has 2. The first [`SUBSCRIBERS_MAX`] have a subscriber beside them.
    pub publishers: u32,
    /// The publishers of this process.
    pub share: Share,
    /// Payload of each message, in bytes, at least [`airmail_bench::stamp::Stamp::BYTES`].
    pub size: usize,
    /// Messages of each publisher.
    pub messages: u64,
    /// Longest time to publish, in milliseconds; absent: until all are published.
    pub duration_ms: Option<u64>,
    /// Bytes of messages that wait in a publisher's SDK; absent: as the SDK has it.
    pub publish_memory_bytes: Option<usize>,
    /// The limiter of each publisher, and N.
    pub throttling: Throttling,
    /// Whether the node's own limiter is watched.
    pub watch_pilot: bool,
}

/// Results of a run, or of the part of it that a process had.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Flown {
    /// Results of each publisher.
    pub flights: Vec<Flight>,
    /// Number of subscribers.
    pub subscribers: u64,
    /// Results of all subscribers.
    pub received: Received,
    /// Times from publish to delivery, at every subscriber.
    pub delivery: Latencies,
    /// When publishers began, by the clock of all measuring, in microseconds.
    pub start_us: u64,
    /// Time from the first publish to the last delivery, in seconds.
    pub seconds: f64,
    /// Windows of the node's publish gate, if it was watched.
    pub pilot: Vec<Window>,
}

impl Load {
    /// The run's topics, in the order of their places.
    fn topic_names(&self) -> Vec<String> {
        let names = 0..self.topics;
        names
            .map(|topic| format!("{}/{topic}", self.prefix))
            .collect()
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let mut builder = Client::builder().url(&*self.url);
        if let Some(namespace) = &self.namespace {
            builder = builder.namespace(&**namespace);
        }
        if let Some(bytes) = self.publish_memory_bytes {
            builder = builder.publish_memory_bytes(bytes);
        }
        Ok(builder.connect().await?)
    }
}

/// Runs it to its end. Messages that fail or go missing are in what comes back.
///
/// # Errors
/// No client could connect, no subscription could be opened, or the other processes are gone.
pub async fn run(load: Load, halt: Halt, meeting: &mut impl Meeting) -> Result<Flown, Failure> {
    let load = Arc::new(load);
    let progress = Arc::new(Progress::default());
    let subscribers = Subscribers::open(&load, &progress).await?;
    let mut clients = Vec::new();
    for _ in load.share.of(load.publishers) {
        clients.push(load.connect().await?);
    }
    let start_us = meeting.ready().await?;
    // Every process sees the same pilot.
    let looks = load.watch_pilot && load.share.part == 0;
    let looking = looks.then(|| DecisionWatch::start(&load.url, start_us));
    let looking = looking.transpose()?;
    Alarm::new()?.wait_until(start_us).await?;
    let start = Mono(start_us.saturating_mul(1000));
    let duration = load.duration_ms.map(Duration::from_millis);
    let end = duration.map_or(Mono::NEVER, |duration| start.plus(duration));
    let mut tasks = JoinSet::new();
    for (number, client) in load.share.of(load.publishers).zip(clients) {
        let publisher = Publisher {
            load: Arc::clone(&load),
            number,
            client,
            start,
            end,
            halt: Arc::clone(&halt),
            progress: Arc::clone(&progress),
            awaited: match load.share.parts {
                1 => subscribers.count(),
                _ => 0,
            },
        };
        tasks.spawn(publisher.publish());
    }
    let mut flights = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        flights.push(ended.unwrap_or_else(|error| Flight {
            first_error: Some(error.to_string()),
            ..Flight::default()
        }));
    }
    let acknowledged = flights.iter().map(|flight| flight.acknowledged).sum();
    let total = meeting.published(acknowledged).await?;
    let count = subscribers.count();
    let pilot = looking.map(DecisionWatch::stop).unwrap_or_default();
    subscribers.wait_for(total, &progress, &halt).await;
    let received = subscribers.close().await;
    let last = Mono(received.last_us.saturating_mul(1000));
    Ok(Flown {
        flights,
        subscribers: count,
        received,
        delivery: progress.take_latencies(),
        start_us,
        seconds: last.since(start).as_secs_f64(),
        pilot,
    })
}

impl Flown {
    /// Adds another process's part of the same run.
    pub fn add(&mut self, other: Flown) {
        self.flights.extend(other.flights);
        self.subscribers += other.subscribers;
        self.received.add(&other.received);
        self.delivery.add(&other.delivery);
        self.start_us = self.start_us.max(other.start_us);
        self.seconds = self.seconds.max(other.seconds);
        self.pilot.extend(other.pilot);
    }

    /// Messages handed over.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.flights.iter().map(|flight| flight.sent).sum()
    }

    /// Messages acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.flights.iter().map(|flight| flight.acknowledged).sum()
    }

    /// Messages that the node refused, or whose outcome is not known.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.sent().saturating_sub(self.acknowledged())
    }

    /// Acknowledged messages that did not arrive, at all subscribers together. A message that failed
    /// and came all the same must not make up for another.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let due = self.acknowledged() * self.subscribers;
        let short = due.saturating_sub(self.received.tally.delivered);
        let holes = self.received.holes;
        short.max(holes.saturating_sub(self.failed() * self.subscribers))
    }

    /// Messages that arrived after a later one of their publisher and topic; and one more for each
    /// topic that two subscribers saw in different orders.
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.received.tally.reordered + self.received.disagreements
    }

    /// The first error that a publisher or a subscriber met.
    #[must_use]
    pub fn first_error(&self) -> Option<&str> {
        let published = self
            .flights
            .iter()
            .find_map(|flight| flight.first_error.as_deref());
        published.or(self.received.first_error.as_deref())
    }

    /// Whether all that was sent was acknowledged and arrived, once, in order, everywhere.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let tally = &self.received.tally;
        let lost = [self.failed(), self.missing(), self.received.gaps];
        let wrong = [tally.duplicates, self.reordered(), tally.strange];
        lost == [0; 3] && wrong == [0; 3] && self.first_error().is_none()
    }
}

/// Present time, by the clock that stamps messages.
fn now() -> Mono {
    Mono(now_us().saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_bench::ledger::Tally;

    fn flown(acknowledged: u64, delivered: u64, holes: u64) -> Flown {
        let flight = Flight {
            sent: 100,
            acknowledged,
            ..Flight::default()
        };
        let mut flown = Flown {
            flights: vec![flight.clone(), flight],
            subscribers: 2,
            ..Flown::default()
        };
        flown.received.tally = Tally {
            delivered,
            ..Tally::default()
        };
        flown.received.holes = holes;
        flown
    }

    #[test]
    fn what_everyone_got_is_sound() {
        let flown = flown(100, 400, 0);
        assert!(flown.is_sound() && flown.missing() == 0);
    }

    #[test]
    fn the_parts_of_two_processes_are_one_run() {
        let part = |delivered| {
            let mut part = flown(100, delivered, 0);
            part.flights.truncate(1);
            part.subscribers = 1;
            let words = serde_json::to_string(&part).unwrap();
            serde_json::from_str::<Flown>(&words).unwrap()
        };
        let mut whole = part(200);
        whole.add(part(200));
        assert!(whole.is_sound() && whole.sent() == 200);
        let mut short = part(200);
        short.add(part(199));
        assert_eq!(short.missing(), 1);
    }

    #[test]
    fn an_acknowledged_message_that_did_not_come_is_missing() {
        assert_eq!(flown(100, 397, 3).missing(), 3);
        assert_eq!(flown(100, 397, 0).missing(), 3);
        assert!(!flown(100, 397, 3).is_sound());
    }

    #[test]
    fn a_failed_message_that_came_makes_up_for_none() {
        let flown = flown(99, 396, 5);
        assert_eq!((flown.failed(), flown.missing()), (2, 1));
        assert!(!flown.is_sound());
    }
}
