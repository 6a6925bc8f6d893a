//! A run: publishers publish, subscribers receive, each message from its publish to its delivery.
//!
//! Every client has a connection of its own, and every subscriber a task, with an account of each
//! topic. First all subscriptions stand, then publishing begins; at the end the subscribers are
//! given time for what is still under way, as long as anything comes.
//!
//! Measuring must not disturb the measured: a chunk of messages has one reading of the clock, and
//! messages that arrived together another; counts and times are entered once for each of these.
//! Without a rate, a `window` lets publishers run only so far ahead of the slowest subscriber; with
//! one, a `timetable` wakes more finely than an async runtime's timer.
//!
//! A run may be a [`Share`] of one that several processes make; they meet where all must have come to
//! the same point ([`Meeting`]).

mod account;
mod acks;
mod levels;
mod meeting;
mod publishing;
mod receiving;
mod sampling;
mod timetable;
mod window;

use crate::clock::now_us;
use crate::part::Part;
use crate::process::Usage;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::system::{Failure, System};
pub use account::Account;
pub use levels::LevelFile;
pub use meeting::{Alone, Meeting, Share, start_us};
use publishing::Publishers;
use receiving::Subscribers;
use sampling::Sampler;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use window::Window;

/// Silence after which missing messages count as lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for which subscribers listen after the last message, for messages that come again.
const AFTERMATH: Duration = Duration::from_millis(200);

/// A run to be made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The system's URL, as [`crate::Target`] reads it.
    pub target: String,
    /// A namespace is made for the run, and deleted after it, rather than one used that is there.
    pub own_namespace: bool,
    /// Settings of the run.
    pub settings: Settings,
    /// Distinguishes this run's messages from others'.
    pub id: u32,
    /// Prefix of the run's topics.
    pub prefix: String,
    /// The share of it that this process does.
    pub share: Share,
    /// Number of processes that only publish: the first ones, with an even part of the publishers each, while
    /// the others only subscribe. 0: each process does both.
    pub apart: u32,
    /// Name of the machine that clients say they are on: they prefer a node of the same. Absent: the system's.
    pub host: Option<String>,
    /// Where the processes of the run tell one another how far they are: the path of a [`LevelFile`].
    pub levels: Option<PathBuf>,
}

impl Default for Job {
    fn default() -> Job {
        Job {
            target: "null:".to_owned(),
            own_namespace: false,
            settings: Settings::default(),
            id: 0,
            prefix: "bench".to_owned(),
            share: Share::ALL,
            apart: 0,
            host: None,
            levels: None,
        }
    }
}

impl Job {
    /// This process's share of the publishers.
    fn publishing(&self) -> Share {
        let Share { part, .. } = self.share;
        match self.apart {
            0 => self.share,
            parts if part < parts => Share { part, parts },
            _ => Share::NONE,
        }
    }

    /// This process's share of the subscribers.
    fn subscribing(&self) -> Share {
        let Share { part, parts } = self.share;
        match (part.checked_sub(self.apart), parts - self.apart.min(parts)) {
            (Some(part), parts) => Share { part, parts },
            (None, _) => Share::NONE,
        }
    }
}

/// State that all tasks of a run share.
#[derive(Debug)]
struct Running<S> {
    system: S,
    job: Job,
    topics: Vec<String>,
    progress: Arc<Progress>,
    window: Arc<Window>,
}

/// Runs it to its end. Messages that fail or go missing are in what comes back.
///
/// # Errors
/// No client could connect, no subscription could be opened, or the other processes are gone.
pub async fn run<S: System>(
    system: S,
    job: Job,
    meeting: &mut impl Meeting,
    progress: Arc<Progress>,
) -> Result<Part, Failure> {
    let first = job.share.part == 0;
    let prefix = job.prefix.clone();
    if first {
        system.prepare(&prefix).await?;
        meeting.prepared().await?;
    }
    let part = run_prepared(system.clone(), job, meeting, progress).await;
    if first {
        system.clear(&prefix).await?;
    }
    part
}

async fn run_prepared<S: System>(
    system: S,
    job: Job,
    meeting: &mut impl Meeting,
    progress: Arc<Progress>,
) -> Result<Part, Failure> {
    let settings = &job.settings;
    let topics = (0..settings.topics).map(|topic| format!("{}/{topic}", job.prefix));
    let subscribers = job.subscribing().of(settings.subscribers).count();
    let window = Arc::new(Window::new(settings, subscribers));
    let _exchanging = window.join(&job)?;
    let run = Arc::new(Running {
        window,
        topics: topics.collect(),
        system,
        job,
        progress,
    });
    let subscribers = Subscribers::open(&run).await?;
    let publishers = Publishers::connect(&run).await?;
    let start_us = meeting.ready().await?;
    let sampler = Sampler::start(&run.progress, &run.job.settings, start_us);
    let before = Usage::own();
    let published = publishers.publish(&run, start_us).await;
    let total = meeting.published(published.acknowledged).await?;
    subscribers.wait_for(&run, total, start_us).await;
    let usage = Usage::own().since(&before);
    let received = subscribers.close(&run).await;
    let course = sampler.stop().await;
    Ok(Part {
        start_us,
        published,
        received,
        course,
        cpu_us: usage.cpu_us,
        rss_bytes: usage.rss_bytes,
    })
}

impl<S> Running<S> {
    fn settings(&self) -> &Settings {
        &self.job.settings
    }

    /// When publishing ends, if it ends by time.
    fn end_us(&self, start_us: u64) -> u64 {
        let duration_ms = self.settings().duration_ms;
        duration_ms.map_or(u64::MAX, |duration_ms| start_us + duration_ms * 1000)
    }
}

/// Sleeps until the clock says so, to the millisecond.
async fn sleep_until(until_us: u64) {
    let wait_us = until_us.saturating_sub(now_us());
    tokio::time::sleep(Duration::from_micros(wait_us)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_only_publish_leave_all_subscribers_to_the_others() {
        let job = |part| Job {
            share: Share { part, parts: 4 },
            apart: 1,
            ..Job::default()
        };
        let publishers = |part| job(part).publishing().of(2).collect::<Vec<_>>();
        let subscribers = |part| job(part).subscribing().of(6).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3].map(publishers), [&[0, 1][..], &[], &[], &[]]);
        assert_eq!(
            [0, 1, 2, 3].map(subscribers),
            [&[][..], &[0, 3], &[1, 4], &[2, 5]]
        );
    }

    #[test]
    fn a_process_does_both_where_nothing_else_is_asked_for() {
        let share = Share { part: 1, parts: 2 };
        let job = Job {
            share,
            ..Job::default()
        };
        assert_eq!((job.publishing(), job.subscribing()), (share, share));
    }
}
