//! Requests that wait for a clerk. Bounded: what does not fit is refused.
//!
//! While one clerk is at work the next jobs gather, for what a round trip costs is the same for one and
//! for many. Another takes them only if they are a crowd, or one of them has waited for long: a clerk may
//! be held up by the database, and its neighbours must not be. Of the clerks that wait, one looks after
//! that, on a clock that stands still while nothing is under way.
//!
//! A job that the database was too late with comes back, and is tried again in smaller company each
//! time: what one of them waits for (a lock that somebody holds) must not hold up the others for long.

use super::job::{Job, Kind};
use airmail_model::{Error, ErrorCode};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Messages of one statement, as long as no single job has more.
pub(super) const WEIGHT_MAX: usize = 1000;
/// Other requests, each a statement of its own, that a clerk takes at once.
pub(super) const CALLS_MAX: usize = 8;
/// Jobs of one statement.
const JOBS_MAX: usize = 256;
/// Each time that a job was late, its statement has so many times fewer jobs, as a power of two.
const FEWER_SHIFT: u32 = 2;
/// Bytes of content of one statement, as long as no single job has more.
const BYTES_MAX: usize = 4 << 20;

/// So many messages wait for each clerk at work, and another one helps.
const CROWD: usize = 64;
/// A job that has waited for so long is taken by the next clerk that is there.
const LATE: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct Waiting {
    job: Job,
    since: Instant,
}

/// What a clerk has taken; it is at work until this is dropped.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    /// Jobs of one kind each, in the order in which they are to be done.
    pub(super) kinds: Vec<Vec<Job>>,
    /// What they waited, together.
    pub(super) waited: Duration,
    tray: &'a Tray,
}

impl Taken<'_> {
    /// How many jobs.
    pub(super) fn len(&self) -> usize {
        self.kinds.iter().map(Vec::len).sum()
    }

    /// Whether some of them may take long, though nothing is wrong.
    pub(super) fn takes_long(&self) -> bool {
        self.kinds.iter().flatten().any(Job::takes_long)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.tray.contents.lock().at_work -= 1;
    }
}

#[derive(Debug, Default)]
struct Contents {
    kinds: BTreeMap<Kind, VecDeque<Waiting>>,
    len: usize,
    /// Of all jobs, in messages.
    weight: usize,
    /// Clerks at work.
    at_work: usize,
    /// A clerk that waits looks after jobs that are late.
    is_watched: bool,
    closed: bool,
}

/// The tray.
#[derive(Debug)]
pub(super) struct Tray {
    contents: Mutex<Contents>,
    filled: Notify,
    waiting_max: usize,
}

impl Tray {
    pub(super) fn new(waiting_max: usize) -> Tray {
        Tray {
            contents: Mutex::new(Contents::default()),
            filled: Notify::new(),
            waiting_max,
        }
    }

    /// Adds a job, or says why not.
    pub(super) fn put(&self, job: Job) -> Result<(), Error> {
        let contents = self.contents.lock();
        if contents.closed {
            return Err(Error::new(ErrorCode::ShuttingDown));
        }
        if contents.len >= self.waiting_max {
            return Err(Error::new(ErrorCode::Overloaded)
                .field("requests that wait")
                .value(contents.len)
                .limit(self.waiting_max)
                .retry_after(Duration::from_millis(100)));
        }
        self.add(contents, job);
        Ok(())
    }

    /// Adds a job that was taken, and for which nothing was done. It is given back if nothing is
    /// tried again.
    pub(super) fn put_back(&self, job: Job) -> Result<(), Job> {
        let contents = self.contents.lock();
        if contents.closed {
            return Err(job);
        }
        self.add(contents, job);
        Ok(())
    }

    fn add(&self, mut contents: MutexGuard<'_, Contents>, job: Job) {
        contents.weight += job.weight();
        contents.len += 1;
        let since = Instant::now();
        let waiting = Waiting { job, since };
        let kind = contents.kinds.entry(waiting.job.kind()).or_default();
        kind.push_back(waiting);
        let wakes = contents.is_for_another() || !contents.is_watched;
        drop(contents);
        if wakes {
            self.filled.notify_one();
        }
    }

    /// What waits, as much of each kind as goes in one statement. None: the tray is closed and empty.
    pub(super) async fn next(&self) -> Option<Taken<'_>> {
        loop {
            let filled = self.filled.notified();
            let watch = {
                let mut contents = self.contents.lock();
                if contents.is_for_another() || contents.is_late() {
                    let (kinds, waited) = contents.take();
                    if !kinds.is_empty() {
                        contents.at_work += 1;
                        if contents.is_for_another() {
                            self.filled.notify_one();
                        }
                        drop(contents);
                        return Some(Taken {
                            kinds,
                            waited,
                            tray: self,
                        });
                    }
                }
                if contents.closed && contents.len == 0 {
                    self.filled.notify_one();
                    return None;
                }
                let watches = contents.at_work > 0 && !contents.is_watched;
                contents.is_watched |= watches;
                watches.then(|| Watch(self))
            };
            match watch {
                Some(_watch) => drop(tokio::time::timeout(LATE, filled).await),
                None => filled.await,
            }
        }
    }

    /// A clerk goes away: what waits for it may be another's.
    pub(super) fn pass_on(&self) {
        self.filled.notify_one();
    }

    /// Takes out all that was asked for longer than `patience` ago.
    pub(super) fn take_overdue(&self, patience: Duration) -> Vec<Job> {
        let mut contents = self.contents.lock();
        let mut overdue = Vec::new();
        for queue in contents.kinds.values_mut() {
            // Those that were put back are behind younger ones.
            for waiting in std::mem::take(queue) {
                if waiting.job.wait().is_over(patience) {
                    overdue.push(waiting.job);
                } else {
                    queue.push_back(waiting);
                }
            }
        }
        contents.len -= overdue.len();
        contents.weight -= overdue.iter().map(Job::weight).sum::<usize>();
        contents.kinds.retain(|_, queue| !queue.is_empty());
        overdue
    }

    /// Takes no more jobs.
    pub(super) fn close(&self) {
        self.contents.lock().closed = true;
        self.filled.notify_one();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many jobs wait.
    pub(super) fn len(&self) -> usize {
        self.contents.lock().len
    }

    pub(super) fn is_closed(&self) -> bool {
        self.contents.lock().closed
    }
}

/// Looks after jobs that are late, until it is dropped.
#[derive(Debug)]
struct Watch<'a>(&'a Tray);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.contents.lock().is_watched = false;
    }
}

impl Contents {
    /// Whether there is something that need not wait for those at work.
    fn is_for_another(&self) -> bool {
        self.len > 0 && (self.weight >= CROWD * self.at_work || self.closed)
    }

    fn is_late(&self) -> bool {
        let mut oldest = self.kinds.values().filter_map(VecDeque::front);
        oldest.any(|waiting| waiting.since.elapsed() >= LATE)
    }

    /// As much of each kind as goes in one statement, and what all of it waited together.
    fn take(&mut self) -> (Vec<Vec<Job>>, Duration) {
        let (now, mut waited) = (Instant::now(), Duration::ZERO);
        let kinds: Vec<Kind> = self.kinds.keys().copied().collect();
        let taken = kinds.into_iter();
        let mut taken: Vec<Vec<Job>> = taken
            .map(|kind| self.take_kind(kind, now, &mut waited))
            .filter(|jobs| !jobs.is_empty())
            .collect();
        // One connection does them in this order: first those that do not wait for the disk.
        taken.sort_by_key(|jobs| jobs.first().map(Job::order));
        (taken, waited)
    }

    /// As many jobs of a kind as go in one statement; adds what they waited.
    fn take_kind(&mut self, kind: Kind, now: Instant, waited: &mut Duration) -> Vec<Job> {
        let mut jobs = Vec::new();
        let Some(queue) = self.kinds.get_mut(&kind) else {
            return jobs;
        };
        let (mut weight, mut bytes, mut most) = (0, 0, JOBS_MAX);
        while let Some(waiting) = queue.front() {
            let (is_given_up, next) = (waiting.job.is_given_up(), waiting.job.weight());
            if !is_given_up {
                weight += next;
                bytes += waiting.job.bytes();
                most = most.min(company(waiting.job.wait().lates()));
                let full = weight > WEIGHT_MAX || bytes > BYTES_MAX || jobs.len() >= most;
                if full && !jobs.is_empty() {
                    break;
                }
            }
            self.len -= 1;
            self.weight -= next;
            if let Some(Waiting { job, since }) = queue.pop_front().filter(|_| !is_given_up) {
                jobs.push(job);
                *waited += now.saturating_duration_since(since);
            }
        }
        if queue.is_empty() {
            self.kinds.remove(&kind);
        }
        jobs
    }
}

/// With how many a job that was late so often shares a statement, itself included.
fn company(lates: u32) -> usize {
    let fewer = JOBS_MAX.checked_shr(lates.saturating_mul(FEWER_SHIFT));
    fewer.unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AccountId, QueueId};
    use crate::message::Receive;
    use crate::postgres::job::Reply;
    use std::time::Duration;
    use tokio::sync::oneshot;

    type Answer = oneshot::Receiver<Result<Vec<crate::message::Message>, Error>>;

    /// A request for so many messages.
    fn receive(count: usize) -> (Job, Answer) {
        let (reply, answer) = oneshot::channel();
        let reply = Reply::new(reply);
        let mut request = Receive::new(QueueId(1), AccountId(1));
        request.count = count;
        (Job::Receive { request, reply }, answer)
    }

    fn fill(tray: &Tray, jobs: usize, count: usize) -> Vec<Answer> {
        let jobs = (0..jobs).map(|_| receive(count));
        jobs.map(|(job, answer)| {
            tray.put(job).unwrap();
            answer
        })
        .collect()
    }

    /// What another clerk gets, if anything, within `time`.
    async fn another(tray: &Tray, time: Duration) -> usize {
        let taken = tokio::time::timeout(time, tray.next()).await;
        taken.map_or(0, |taken| taken.map_or(0, |taken| taken.len()))
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_a_clerk_is_at_work_is_its_next_round() {
        let tray = Tray::new(100);
        let mut answers = fill(&tray, 1, 1);
        let taken = tray.next().await.unwrap();
        assert_eq!(taken.len(), 1);
        answers.extend(fill(&tray, 5, 1));
        assert_eq!(another(&tray, LATE / 2).await, 0);
        drop(taken);
        assert_eq!(tray.next().await.unwrap().len(), 5);
        assert!(tray.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_taken_by_another_clerk_at_once() {
        let tray = Tray::new(100);
        let _first = fill(&tray, 1, 1);
        let _taken = tray.next().await.unwrap();
        let _crowd = fill(&tray, 2, CROWD / 2);
        assert_eq!(another(&tray, LATE / 2).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_long_does_not_wait_for_a_clerk_that_is_held_up() {
        let tray = Tray::new(100);
        // Both wait before there is anything: one of them begins to look after what is late. Neither
        // round ends before both are taken.
        let taken = futures::future::join(tray.next(), tray.next());
        let filled = async {
            let first = fill(&tray, 1, 1);
            tokio::time::sleep(LATE / 10).await;
            (first, fill(&tray, 1, 1))
        };
        let both = futures::future::join(taken, filled);
        let both = tokio::time::timeout(LATE * 3, both).await;
        let ((one, other), _answers) = both.expect("nobody took it");
        assert_eq!((one.unwrap().len(), other.unwrap().len()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_that_were_given_up_take_nobodys_place() {
        let tray = Tray::new(2000);
        drop(fill(&tray, JOBS_MAX, 1));
        let _answers = fill(&tray, 3, 1);
        assert_eq!(tray.next().await.unwrap().len(), 3);
        assert!(tray.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_late_comes_back_in_smaller_company_until_alone() {
        let tray = Tray::new(2000);
        let _answers = fill(&tray, JOBS_MAX, 1);
        for company in [256, 64, 16, 4, 1, 1] {
            let mut jobs = Vec::new();
            while !tray.is_empty() {
                let mut taken = tray.next().await.unwrap();
                assert_eq!(taken.len(), company);
                jobs.extend(std::mem::take(&mut taken.kinds).into_iter().flatten());
            }
            for mut job in jobs {
                job.was_late();
                tray.put_back(job).unwrap();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_back_is_overdue_by_when_it_was_asked_for() {
        let tray = Tray::new(10);
        let patience = Duration::from_secs(5);
        let _first = fill(&tray, 1, 1);
        let mut taken = tray.next().await.unwrap();
        tokio::time::sleep(patience).await;
        let _second = fill(&tray, 1, 1);
        for job in std::mem::take(&mut taken.kinds).into_iter().flatten() {
            tray.put_back(job).unwrap();
        }
        assert_eq!(tray.take_overdue(patience).len(), 1);
        assert_eq!(tray.len(), 1);
        tray.close();
        let job = tray.next().await.unwrap().kinds.remove(0).remove(0);
        assert!(tray.put_back(job).is_err(), "nothing is tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_has_no_more_messages_than_it_may_and_the_rest_is_anothers() {
        let tray = Tray::new(2000);
        let _answers = fill(&tray, 3, WEIGHT_MAX / 2);
        let taken = tray.next().await.unwrap();
        assert_eq!(taken.len(), 2);
        assert_eq!(another(&tray, LATE / 2).await, 1);
        tray.close();
        assert!(tray.next().await.is_none());
    }
}
