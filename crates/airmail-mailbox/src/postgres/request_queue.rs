//! The request queue: jobs wait in it for a worker. It is bounded: a request that does not fit is refused.
//!
//! While one worker is busy the next jobs gather, for a round trip costs the same for one job and for
//! many. Another worker takes them only if there are many, or if one of them has waited for long: the
//! database may hold a worker up, and that must not hold up the jobs behind it. Of the workers that wait,
//! one watches for jobs that have waited for long, on a timer that stands still while nothing is under
//! way.
//!
//! A job whose statement timed out comes back, and shares its next statement with fewer others each time:
//! what it waits for (a lock that somebody holds) must not hold up the others for long.
//!
//! Invariants: `len` and `weight` are those of all queued jobs; `busy_workers` counts the assignments
//! that have not been dropped; at most one worker watches.

use super::job::{Job, JobKind};
use super::job_batch::JobBatch;
use crate::store_error::StoreFailure;
use airmail_model::bug;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Messages of one statement, unless a single job has more.
pub(super) const WEIGHT_MAX: usize = 1000;
/// Requests with a statement of their own that a worker takes at once.
pub(super) const STATEMENTS_MAX: usize = 8;
/// Jobs of one statement.
const JOBS_MAX: usize = 256;
/// Power of two by which the number of jobs in a job's statement shrinks with each of its timeouts.
const TIMEOUT_SHIFT: u32 = 2;
/// Bytes of content of one statement, unless a single job has more.
const BYTES_MAX: usize = 4 << 20;

/// Queued messages for each busy worker at which another one helps.
const HELP_WEIGHT: usize = 64;
/// Time after which a queued job is taken by the next worker that is there.
const LATE: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct QueuedJob {
    job: Job,
    since: Instant,
}

/// The jobs that one worker has taken for its next round trip. The worker counts as busy until this is
/// dropped.
#[derive(Debug)]
pub(super) struct Assignment<'a> {
    /// Batches that share no transaction: one for each kind of job, in the order in which they are to be done.
    pub(super) alone: Vec<JobBatch>,
    /// Batches that change something, which may share one; in their order, too.
    pub(super) changes: Vec<JobBatch>,
    /// Number of jobs.
    pub(super) jobs: usize,
    /// Time that all jobs together have waited.
    pub(super) waited: Duration,
    /// True if one of the jobs may take long though nothing is wrong.
    pub(super) takes_long: bool,
    /// True if a statement of one of the jobs has timed out before.
    pub(super) is_retry: bool,
    queue: &'a RequestQueue,
}

impl Drop for Assignment<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().busy_workers -= 1;
    }
}

#[derive(Debug, Default)]
struct QueueState {
    kinds: BTreeMap<JobKind, VecDeque<QueuedJob>>,
    len: usize,
    /// Weight of all queued jobs, in messages.
    weight: usize,
    busy_workers: usize,
    /// True while a worker that waits watches for late jobs.
    is_watched: bool,
    is_closed: bool,
}

/// The request queue.
#[derive(Debug)]
pub(super) struct RequestQueue {
    state: Mutex<QueueState>,
    filled: Notify,
    waiting_max: usize,
}

impl RequestQueue {
    pub(super) fn new(waiting_max: usize) -> RequestQueue {
        RequestQueue {
            state: Mutex::new(QueueState::default()),
            filled: Notify::new(),
            waiting_max,
        }
    }

    /// Adds a job.
    ///
    /// # Errors
    /// [`StoreFailure::QueueFull`], [`StoreFailure::Closed`].
    pub(super) fn push(&self, job: Job) -> Result<(), StoreFailure> {
        let state = self.state.lock();
        if state.is_closed {
            return Err(StoreFailure::Closed);
        }
        if state.len >= self.waiting_max {
            return Err(StoreFailure::QueueFull {
                waiting: state.len,
                waiting_max: self.waiting_max,
            });
        }
        self.add(state, job);
        Ok(())
    }

    /// Adds a job again that was taken, and for which nothing was done. Returns it if the queue is closed:
    /// then nothing is tried again.
    pub(super) fn push_again(&self, job: Job) -> Result<(), Job> {
        let state = self.state.lock();
        if state.is_closed {
            return Err(job);
        }
        self.add(state, job);
        Ok(())
    }

    fn add(&self, mut state: MutexGuard<'_, QueueState>, job: Job) {
        state.weight += job.weight();
        state.len += 1;
        let since = Instant::now();
        let queued = QueuedJob { job, since };
        let kind = state.kinds.entry(queued.job.kind()).or_default();
        kind.push_back(queued);
        let wakes = state.needs_another_worker() || !state.is_watched;
        drop(state);
        if wakes {
            self.filled.notify_one();
        }
    }

    /// Waits for jobs and takes as many of each kind as go in one statement. Returns none when the queue
    /// is closed and empty.
    pub(super) async fn next(&self) -> Option<Assignment<'_>> {
        loop {
            let filled = self.filled.notified();
            let watch = {
                let mut state = self.state.lock();
                if state.needs_another_worker() || state.has_late_job() {
                    let kinds = state.take();
                    if !kinds.is_empty() {
                        state.busy_workers += 1;
                        if state.needs_another_worker() {
                            self.filled.notify_one();
                        }
                        drop(state);
                        return Some(self.assign(kinds));
                    }
                }
                if state.is_closed && state.len == 0 {
                    self.filled.notify_one();
                    return None;
                }
                let watches = state.busy_workers > 0 && !state.is_watched;
                state.is_watched |= watches;
                watches.then(|| LateWatch(self))
            };
            match watch {
                Some(_watch) => drop(tokio::time::timeout(LATE, filled).await),
                None => filled.await,
            }
        }
    }

    /// Makes an assignment of taken jobs, in their order.
    fn assign(&self, kinds: Vec<Vec<QueuedJob>>) -> Assignment<'_> {
        let now = Instant::now();
        let mut assignment = Assignment {
            alone: Vec::new(),
            changes: Vec::new(),
            jobs: 0,
            waited: Duration::ZERO,
            takes_long: false,
            is_retry: false,
            queue: self,
        };
        for kind in kinds {
            assignment.jobs += kind.len();
            for QueuedJob { job, since } in &kind {
                assignment.waited += now.saturating_duration_since(*since);
                assignment.takes_long |= job.takes_long();
                assignment.is_retry |= job.wait().timeouts() > 0;
            }
            let jobs = kind.into_iter().map(|queued| queued.job);
            let Some(batch) = JobBatch::of(jobs) else {
                bug!("jobs were taken, and are none");
                continue;
            };
            if batch.shared_change().is_some() {
                assignment.changes.push(batch);
            } else {
                assignment.alone.push(batch);
            }
        }
        assignment
    }

    /// Wakes another worker, because the caller goes away: a notification for it may be another's.
    pub(super) fn wake_another(&self) {
        self.filled.notify_one();
    }

    /// Takes out all jobs that have waited for `patience` since their request.
    pub(super) fn take_overdue(&self, patience: Duration) -> Vec<Job> {
        let mut state = self.state.lock();
        let mut overdue = Vec::new();
        for queue in state.kinds.values_mut() {
            // Jobs that came back are behind younger ones, so all are looked at.
            for queued in std::mem::take(queue) {
                if queued.job.wait().is_over(patience) {
                    overdue.push(queued.job);
                } else {
                    queue.push_back(queued);
                }
            }
        }
        state.len -= overdue.len();
        state.weight -= overdue.iter().map(Job::weight).sum::<usize>();
        state.kinds.retain(|_, queue| !queue.is_empty());
        overdue
    }

    /// Closes the queue: it takes no more jobs.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.filled.notify_one();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of queued jobs.
    pub(super) fn len(&self) -> usize {
        self.state.lock().len
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}

/// Guard of the worker that watches for late jobs, until it is dropped.
#[derive(Debug)]
struct LateWatch<'a>(&'a RequestQueue);

impl Drop for LateWatch<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_watched = false;
    }
}

impl QueueState {
    /// Returns whether there are jobs that need not wait for the workers that are busy.
    fn needs_another_worker(&self) -> bool {
        self.len > 0 && (self.weight >= HELP_WEIGHT * self.busy_workers || self.is_closed)
    }

    fn has_late_job(&self) -> bool {
        let mut oldest = self.kinds.values().filter_map(VecDeque::front);
        oldest.any(|queued| queued.since.elapsed() >= LATE)
    }

    /// Takes as many jobs of each kind as go in one statement. One connection does the kinds in this
    /// order: first those that do not wait for the disk.
    fn take(&mut self) -> Vec<Vec<QueuedJob>> {
        let kinds: Vec<JobKind> = self.kinds.keys().copied().collect();
        let taken = kinds.into_iter();
        let mut taken: Vec<Vec<QueuedJob>> = taken
            .map(|kind| self.take_kind(kind))
            .filter(|jobs| !jobs.is_empty())
            .collect();
        taken.sort_by_key(|jobs| jobs.first().map(|queued| queued.job.rank()));
        taken
    }

    /// Takes as many jobs of a kind as go in one statement, and drops those that were abandoned.
    fn take_kind(&mut self, kind: JobKind) -> Vec<QueuedJob> {
        let mut jobs = Vec::new();
        let Some(queue) = self.kinds.get_mut(&kind) else {
            bug!("jobs of the kind {kind:?} are gone from the queue");
            return jobs;
        };
        let (mut weight, mut bytes, mut jobs_max) = (0, 0, JOBS_MAX);
        while let Some(QueuedJob { job, .. }) = queue.front() {
            let (is_abandoned, job_weight) = (job.is_abandoned(), job.weight());
            if !is_abandoned {
                weight += job_weight;
                bytes += job.bytes();
                jobs_max = jobs_max.min(jobs_beside(job.wait().timeouts()));
                let is_full = weight > WEIGHT_MAX || bytes > BYTES_MAX || jobs.len() >= jobs_max;
                if is_full && !jobs.is_empty() {
                    break;
                }
            }
            self.len -= 1;
            self.weight -= job_weight;
            jobs.extend(queue.pop_front().filter(|_| !is_abandoned));
        }
        if queue.is_empty() {
            self.kinds.remove(&kind);
        }
        jobs
    }
}

/// Returns the number of jobs that share a statement with one that has timed out so often, itself
/// included.
fn jobs_beside(timeouts: u32) -> usize {
    let fewer = JOBS_MAX.checked_shr(timeouts.saturating_mul(TIMEOUT_SHIFT));
    fewer.unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AccountId, QueueId};
    use crate::message::Receive;
    use crate::postgres::job::ReplySender;
    use crate::store_error::{NotFound, StoreError};
    use std::time::Duration;
    use tokio::sync::oneshot;

    type Answer = oneshot::Receiver<Result<Vec<crate::message::Message>, StoreError<NotFound>>>;

    /// A request for `count` messages.
    fn receive(count: usize) -> (Job, Answer) {
        let (reply, answer) = oneshot::channel();
        let reply = ReplySender::new(reply);
        let mut request = Receive::new(QueueId(1), AccountId(1));
        request.count = count;
        (Job::Receive { request, reply }, answer)
    }

    fn fill(queue: &RequestQueue, jobs: usize, count: usize) -> Vec<Answer> {
        let jobs = (0..jobs).map(|_| receive(count));
        jobs.map(|(job, answer)| {
            queue.push(job).unwrap();
            answer
        })
        .collect()
    }

    fn taken_jobs(assignment: &mut Assignment<'_>) -> Vec<Job> {
        let alone = std::mem::take(&mut assignment.alone).into_iter();
        let changes = std::mem::take(&mut assignment.changes).into_iter();
        alone.chain(changes).flat_map(JobBatch::into_jobs).collect()
    }

    /// The number of jobs that another worker gets within `time`.
    async fn another(queue: &RequestQueue, time: Duration) -> usize {
        let taken = tokio::time::timeout(time, queue.next()).await;
        taken.map_or(0, |taken| taken.map_or(0, |taken| taken.jobs))
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_that_come_while_a_worker_is_busy_are_its_next_round_trip() {
        let queue = RequestQueue::new(100);
        let mut answers = fill(&queue, 1, 1);
        let taken = queue.next().await.unwrap();
        assert_eq!(taken.jobs, 1);
        answers.extend(fill(&queue, 5, 1));
        assert_eq!(another(&queue, LATE / 2).await, 0);
        drop(taken);
        assert_eq!(queue.next().await.unwrap().jobs, 5);
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn many_jobs_are_taken_by_another_worker_at_once() {
        let queue = RequestQueue::new(100);
        let _first = fill(&queue, 1, 1);
        let _taken = queue.next().await.unwrap();
        let _many = fill(&queue, 2, HELP_WEIGHT / 2);
        assert_eq!(another(&queue, LATE / 2).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_has_waited_for_long_does_not_wait_for_a_worker_that_is_held_up() {
        let queue = RequestQueue::new(100);
        // Both wait before there is anything: one of them begins to watch for late jobs. Neither round
        // trip ends before both are taken.
        let taken = futures::future::join(queue.next(), queue.next());
        let filled = async {
            let first = fill(&queue, 1, 1);
            tokio::time::sleep(LATE / 10).await;
            (first, fill(&queue, 1, 1))
        };
        let both = futures::future::join(taken, filled);
        let both = tokio::time::timeout(LATE * 3, both).await;
        let ((one, other), _answers) = both.expect("nobody took it");
        assert_eq!((one.unwrap().jobs, other.unwrap().jobs), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_that_were_abandoned_take_no_room_in_a_statement() {
        let queue = RequestQueue::new(2000);
        drop(fill(&queue, JOBS_MAX, 1));
        let _answers = fill(&queue, 3, 1);
        assert_eq!(queue.next().await.unwrap().jobs, 3);
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_timed_out_shares_its_statement_with_fewer_until_it_is_alone() {
        let queue = RequestQueue::new(2000);
        let _answers = fill(&queue, JOBS_MAX, 1);
        for together in [256, 64, 16, 4, 1, 1] {
            let mut jobs = Vec::new();
            while !queue.is_empty() {
                let mut taken = queue.next().await.unwrap();
                assert_eq!(taken.jobs, together);
                jobs.extend(taken_jobs(&mut taken));
            }
            for mut job in jobs {
                job.count_timeout();
                queue.push_again(job).unwrap();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_came_back_is_overdue_by_the_time_of_its_request() {
        let queue = RequestQueue::new(10);
        let patience = Duration::from_secs(5);
        let _first = fill(&queue, 1, 1);
        let mut taken = queue.next().await.unwrap();
        tokio::time::sleep(patience).await;
        let _second = fill(&queue, 1, 1);
        for job in taken_jobs(&mut taken) {
            queue.push_again(job).unwrap();
        }
        assert_eq!(queue.take_overdue(patience).len(), 1);
        assert_eq!(queue.len(), 1);
        queue.close();
        let job = taken_jobs(&mut queue.next().await.unwrap()).remove(0);
        assert!(queue.push_again(job).is_err(), "nothing is tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_has_no_more_messages_than_it_may_and_another_worker_takes_the_rest() {
        let queue = RequestQueue::new(2000);
        let _answers = fill(&queue, 3, WEIGHT_MAX / 2);
        let taken = queue.next().await.unwrap();
        assert_eq!(taken.jobs, 2);
        assert_eq!(another(&queue, LATE / 2).await, 1);
        queue.close();
        assert!(queue.next().await.is_none());
    }
}
