//! The whole way: publishers publish, subscribers receive, each message from its publish to its
//! delivery.
//!
//! Every client has a connection of its own, and every (subscriber, topic) a task with its own
//! account. First all subscriptions stand, then publishing begins; at the end the subscribers are
//! given time for what is still under way, as long as anything comes.

mod publishing;
mod receiving;

use std::sync::Arc;
use std::time::Duration;

use airmail_client::{Client, Clock, Error, SystemClock};
use airmail_model::{Limits, TopicName};

use crate::latency::Latencies;
use crate::ledger::Tally;
use crate::progress::Progress;
use crate::report::Report;
use crate::settings::Settings;
use publishing::Publishers;
use receiving::Subscribers;

/// How long nothing may come before the rest counts as missing.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long subscribers listen after the last message, for what comes again.
const AFTERMATH: Duration = Duration::from_millis(200);

/// What is run, and where.
#[derive(Clone, Debug)]
pub struct Run {
    /// The node, as `airmail://HOST:PORT`.
    pub target: String,
    /// What to do.
    pub settings: Settings,
    /// Distinguishes this run's topics and messages from others'.
    pub id: u32,
}

/// What all tasks of a run share.
#[derive(Clone, Debug)]
struct Context {
    run: Arc<Run>,
    clock: SystemClock,
    progress: Arc<Progress>,
}

impl Context {
    fn now_us(&self) -> u64 {
        self.clock.now().mono.0 / 1000
    }

    fn topic(&self, topic: u32) -> Result<TopicName, Error> {
        TopicName::new(
            &format!("bench/{:08x}/{topic}", self.run.id),
            &Limits::DEFAULT,
        )
    }

    async fn connect(&self) -> Result<Client, Error> {
        Client::connect(&self.run.target).await
    }
}

/// Runs it to its end. Messages that fail or go missing are in the report.
///
/// # Errors
/// No client could connect, or no subscription could be opened.
pub async fn run(run: Run, progress: Arc<Progress>) -> Result<Report, Error> {
    let context = Context {
        run: Arc::new(run),
        clock: SystemClock::default(),
        progress,
    };
    let subscribers = Subscribers::open(&context).await?;
    let publishers = Publishers::connect(&context).await?;
    let start_us = context.now_us();
    let published = publishers.publish(&context, start_us).await;
    subscribers.wait_for(&context, published.acknowledged).await;
    let received = subscribers.close().await;
    Ok(report(&context, start_us, published, received))
}

/// What the publishers found.
#[derive(Debug, Default)]
struct PublishedAll {
    acknowledged: u64,
    failed: u64,
    latencies: Latencies,
    last_us: u64,
    first_error: Option<String>,
}

/// What the subscribers found.
#[derive(Debug, Default)]
struct ReceivedAll {
    tally: Tally,
    disagreements: u64,
    gaps: u64,
    latencies: Latencies,
    last_us: u64,
    first_error: Option<String>,
}

fn report(
    context: &Context,
    start_us: u64,
    published: PublishedAll,
    received: ReceivedAll,
) -> Report {
    let settings = context.run.settings.clone();
    let seconds = |until_us: u64| until_us.saturating_sub(start_us).max(1) as f64 / 1e6;
    let due = published.acknowledged * u64::from(settings.subscribers);
    Report {
        published_per_s: (published.acknowledged as f64 / seconds(published.last_us)).round(),
        delivered_per_s: (received.tally.delivered as f64 / seconds(received.last_us)).round(),
        acknowledged: published.acknowledged,
        failed: published.failed,
        delivered: received.tally.delivered,
        missing: due.saturating_sub(received.tally.delivered),
        duplicates: received.tally.duplicates,
        reordered: received.tally.reordered + received.disagreements,
        strange: received.tally.strange,
        gaps: received.gaps,
        latency_us: received.latencies.percentiles(),
        ack_latency_us: published.latencies.percentiles(),
        seconds: seconds(received.last_us.max(published.last_us)),
        settings,
        first_error: published.first_error.or(received.first_error),
    }
}
