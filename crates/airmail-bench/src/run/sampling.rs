//! A run's course: a look at its counts and times at every interval.

use super::sleep_until;
use crate::clock::now_us;
use crate::part::{Counts, Course, Sample};
use crate::progress::Progress;
use crate::settings::Settings;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Time between looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// Looks until it is stopped.
#[derive(Debug)]
pub(super) struct Sampler {
    task: JoinSet<Course>,
    stop: watch::Sender<bool>,
}

impl Sampler {
    pub(super) fn start(progress: &Arc<Progress>, settings: &Settings, start_us: u64) -> Sampler {
        let (stop, stopped) = watch::channel(false);
        let looking = Looking {
            progress: Arc::clone(progress),
            start_us,
            warm_us: start_us + settings.warmup_ms * 1000,
            last: Counts::default(),
            course: Course::default(),
        };
        let mut task = JoinSet::new();
        task.spawn(looking.look_until(stopped));
        Sampler { task, stop }
    }

    /// All that it saw.
    pub(super) async fn stop(mut self) -> Course {
        self.stop.send_replace(true);
        let looked = self.task.join_next().await;
        looked.and_then(Result::ok).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Looking {
    progress: Arc<Progress>,
    start_us: u64,
    warm_us: u64,
    last: Counts,
    course: Course,
}

impl Looking {
    async fn look_until(mut self, mut stopped: watch::Receiver<bool>) -> Course {
        sleep_until(self.start_us).await;
        self.last.at_us = self.start_us;
        self.course.warm.at_us = self.start_us;
        let mut warm = self.warm_us <= self.start_us;
        let mut next_us = self.start_us;
        loop {
            next_us += INTERVAL.as_micros() as u64;
            let wake_us = if warm {
                next_us
            } else {
                next_us.min(self.warm_us)
            };
            tokio::select! {
                () = sleep_until(wake_us) => {}
                _ = stopped.changed() => break,
            }
            self.look();
            if !warm && now_us() >= self.warm_us {
                warm = true;
                self.course.warm = self.last;
                self.course.latencies.clear();
            }
        }
        self.look();
        self.course
    }

    fn look(&mut self) {
        let now = Counts {
            at_us: now_us(),
            acknowledged: self.progress.acknowledged(),
            delivered: self.progress.delivered(),
        };
        let latencies = self.progress.take_latencies();
        let seconds = |us: u64| us.max(1) as f64 / 1e6;
        let span = seconds(now.at_us.saturating_sub(self.last.at_us));
        let times = latencies.percentiles();
        self.course.samples.push(Sample {
            seconds: seconds(now.at_us.saturating_sub(self.start_us)),
            acknowledged_per_s: (now.acknowledged - self.last.acknowledged) as f64 / span,
            delivered_per_s: (now.delivered - self.last.delivered) as f64 / span,
            p50_us: times.p50,
            p99_us: times.p99,
            max_us: times.max,
        });
        self.course.latencies.add(&latencies);
        self.last = now;
    }
}
