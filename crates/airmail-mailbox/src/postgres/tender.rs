//! What a node does beside requests, on a connection of its own.
//!
//! - It listens for rings: who makes something readable tells all nodes, if any has said that its
//!   readers wait. [`Arming`] sees to that before a reader waits.
//! - It puts back what is due and removes what has expired.
//! - It learns where lines begin, for [`super::heads`].
//! - It keeps the storage small: `airmail.tend`.
//!
//! Each of these may be done by any node, or by several at once.

use super::Surroundings;
use super::fault::Fault;
use super::link::{Heard, Link};
use super::pulse::TELL_AGAIN;
use super::row::number;
use crate::id::{AccountId, QueueId};
use crate::message::{Inbox, Recipients};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

const TICK: Duration = Duration::from_millis(100);
const RETRY: Duration = Duration::from_millis(200);
/// The storage is looked after so often.
const TEND_EVERY: Duration = Duration::from_secs(1);
/// Rows that are put back or removed in one statement.
const MOVED_MAX: i32 = 500;
/// Alive messages of a slot that are moved in one go, while others wait.
const LIVE_MAX: i32 = 1000;
/// So long a node says ahead that its readers wait.
const WAIT_AHEAD_S: i32 = 30;
const WAIT_AGAIN: Duration = Duration::from_secs(10);
/// A sender in a transaction that takes longer than this is not waited for: its end rings nobody,
/// and the look that is taken once a second finds what it sent.
const SENDERS_END_MAX: Duration = Duration::from_secs(1);
/// How far behind the latest look for due rows begins, for transactions that end late; now and then
/// a look begins at the very first.
const LATE_MAX: Duration = Duration::from_secs(10);
const LOOK_AT_ALL_EVERY: Duration = Duration::from_secs(10);

/// Whether all senders know that readers of this node wait.
#[derive(Debug, Default)]
pub(super) struct Arming {
    state: AtomicU32,
    wanted: Notify,
    armed: Notify,
}

const IDLE: u32 = 0;
const WANTED: u32 = 1;
const ARMED: u32 = 2;

impl Arming {
    /// Ends when every message that becomes readable from now on rings.
    pub(super) async fn armed(&self) {
        loop {
            let armed = self.armed.notified();
            tokio::pin!(armed);
            armed.as_mut().enable();
            if self.state.load(Ordering::Acquire) == ARMED {
                return;
            }
            let _ = self
                .state
                .compare_exchange(IDLE, WANTED, Ordering::AcqRel, Ordering::Acquire);
            self.wanted.notify_one();
            armed.await;
        }
    }

    fn is(&self, state: u32) -> bool {
        self.state.load(Ordering::Acquire) == state
    }

    fn set(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        self.armed.notify_waiters();
    }
}

/// Tends until told to stop.
pub(super) async fn run(with: Arc<Surroundings>, mut stopped: watch::Receiver<bool>) {
    let bell = Arc::clone(&with.bell);
    let heard: Heard = Arc::new(move |told: &str| {
        if let Some((line, count)) = read(told) {
            bell.ring(line, count);
        }
    });
    loop {
        let tended = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return,
            tended = tend(&with, &heard) => tended,
        };
        // Rings may have been missed, and heads may be another database's.
        with.heads.forget();
        let wanted = !with.arming.is(IDLE);
        with.arming.set(if wanted { WANTED } else { IDLE });
        if let Err(error) = tended {
            tracing::debug!(error, "the tender's connection ended");
        }
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

async fn tend(with: &Surroundings, heard: &Heard) -> Result<(), String> {
    let link = Link::connect(&with.config, Some(Arc::clone(heard))).await;
    let link = link.map_err(|error| error.to_string())?;
    let started = Instant::now();
    let mut tender = Tender {
        with,
        link,
        epochs: VecDeque::new(),
        settled: 0,
        due_at: started,
        looked_to: None,
        looked_at_all: started,
        tended: started,
        said: None,
        late_told: None,
    };
    let worked = tender.work().await;
    worked.map_err(|fault| format!("{fault:?}"))
}

struct Tender<'a> {
    with: &'a Surroundings,
    link: Link,
    /// Epochs whose senders may still be under way, each with the ids that are decided at its end.
    epochs: VecDeque<(i64, i64)>,
    settled: i64,
    due_at: Instant,
    looked_to: Option<SystemTime>,
    looked_at_all: Instant,
    tended: Instant,
    said: Option<Instant>,
    /// When it was told that somebody's lock stands in the way.
    late_told: Option<Instant>,
}

impl Tender<'_> {
    async fn work(&mut self) -> Result<(), Fault> {
        // A commit that is lost with the server is made again: nothing here is waited for.
        self.link
            .run("SET synchronous_commit = off; LISTEN airmail_mailbox")
            .await?;
        loop {
            if self.with.arming.is(WANTED) {
                self.arm().await?;
            }
            let now = Instant::now();
            if self.due_at <= now {
                self.due_at = now + TICK;
                let done = self.put_back().await;
                self.go_on(done)?;
            }
            if self.tended.elapsed() >= TEND_EVERY {
                self.tended = now;
                let done = self.keep_small().await;
                self.go_on(done)?;
                let done = self.look_for_waiting().await;
                self.go_on(done)?;
            }
            let done = self.learn().await;
            self.go_on(done)?;
            let until = self.due_at.min(Instant::now() + TICK);
            tokio::select! {
                biased;
                () = self.link.closed() => return Err(Fault::Lost),
                () = self.with.arming.wanted.notified() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// What the database refused is in the log, and is tried again; the rest is done all the same. So it
    /// is with what somebody's lock stands in the way of, which is told once a minute.
    fn go_on(&mut self, done: Result<(), Fault>) -> Result<(), Fault> {
        match done {
            Err(Fault::Refused(error)) => {
                tracing::warn!(error = %error, "the mailboxes could not be looked after");
                Ok(())
            }
            Err(Fault::Late(error)) => {
                if (self.late_told).is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
                    self.late_told = Some(Instant::now());
                    tracing::warn!(error = %error, "the mailboxes cannot be looked after now");
                }
                Ok(())
            }
            done => done,
        }
    }

    /// Says that readers wait, and lets those senders end who may not have heard it.
    async fn arm(&mut self) -> Result<(), Fault> {
        self.say_that_readers_wait().await?;
        let (raised, _, mut held) = self.settle().await?;
        let deadline = Instant::now() + SENDERS_END_MAX;
        while held.is_some_and(|held| held < raised) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(2)).await;
            (_, _, held) = self.settle().await?;
        }
        self.with.arming.set(ARMED);
        self.with.bell.ring_all();
        Ok(())
    }

    async fn say_that_readers_wait(&mut self) -> Result<(), Fault> {
        let sql = "SELECT airmail.wait_for($1)::text";
        self.link.query(sql, &[&WAIT_AHEAD_S]).await?;
        self.said = Some(Instant::now());
        Ok(())
    }

    async fn settle(&mut self) -> Result<(i64, i64, Option<i64>), Fault> {
        let sql = "SELECT raised, settled, held FROM airmail.settle()";
        let rows = self.link.query(sql, &[]).await?;
        let row = rows.first().ok_or(Fault::Lost)?;
        let (raised, settled) = (row.get("raised"), row.get("settled"));
        let held: Option<i64> = row.get("held");
        self.epochs.push_back((raised, settled));
        while let Some(&(epoch, settled)) = self.epochs.front()
            && held.is_none_or(|held| held >= epoch)
        {
            self.settled = settled;
            self.epochs.pop_front();
        }
        // A transaction that sends and does not end: the last few are enough to go on behind it.
        if self.epochs.len() > 1000 {
            self.epochs.remove(1);
        }
        Ok((raised, settled, held))
    }

    /// Finds where the lines begin that were read since the last time.
    async fn learn(&mut self) -> Result<(), Fault> {
        let (generation, asked) = self.with.heads.asked();
        if asked.is_empty() {
            return Ok(());
        }
        self.settle().await?;
        let settled = self.settled;
        let lines: Vec<Inbox> = asked.iter().map(|(line, _)| *line).collect();
        let lows: Vec<i64> = asked.iter().map(|(_, low)| *low).collect();
        let heads = self.heads(&lines, &lows).await?;
        let found = lines.into_iter().zip(heads).map(|(line, head)| {
            let low = head.map_or(settled + 1, |place| place.min(settled + 1));
            (line, low)
        });
        self.with.heads.learn(generation, found);
        Ok(())
    }

    /// The first place, from each low on, at which each line has something.
    async fn heads(&mut self, lines: &[Inbox], lows: &[i64]) -> Result<Vec<Option<i64>>, Fault> {
        let queues: Vec<i32> = lines.iter().map(|line| line.queue.0).collect();
        let receivers: Vec<i32> = lines.iter().map(|line| number(line.recipients)).collect();
        let sql = "SELECT place FROM airmail.heads($1, $2, $3) ORDER BY at";
        let rows = self.link.query(sql, &[&queues, &receivers, &lows]).await?;
        Ok(rows.iter().map(|row| row.get("place")).collect())
    }

    async fn put_back(&mut self) -> Result<(), Fault> {
        let look_at_all = self.looked_at_all.elapsed() >= LOOK_AT_ALL_EVERY;
        if look_at_all {
            self.looked_at_all = Instant::now();
            self.looked_to = None;
        }
        let sql = "SELECT moved, next_ms, clock_timestamp() AS looked_to
                   FROM airmail.move_due($1, $2)";
        let rows = self.link.query(sql, &[&self.looked_to, &MOVED_MAX]).await?;
        let row = rows.first().ok_or(Fault::Lost)?;
        let (moved, next_ms): (i32, Option<i64>) = (row.get("moved"), row.get("next_ms"));
        if moved == MOVED_MAX {
            self.due_at = Instant::now();
            return Ok(());
        }
        self.looked_to = row.get::<_, SystemTime>("looked_to").checked_sub(LATE_MAX);
        let next = next_ms.and_then(|ms| u64::try_from(ms).ok());
        let next = next.map_or(TICK, Duration::from_millis);
        self.due_at = Instant::now() + next.min(TICK);
        Ok(())
    }

    async fn keep_small(&mut self) -> Result<(), Fault> {
        let sql = "SELECT airmail.expire($1)";
        while self
            .link
            .query(sql, &[&MOVED_MAX])
            .await?
            .first()
            .map(|row| row.get(0))
            == Some(MOVED_MAX)
        {}
        let slot_bytes = i64::try_from(self.with.options.slot_bytes).unwrap_or(i64::MAX);
        let sql = "SELECT airmail.tend($1, $2)";
        let rows = self.link.query(sql, &[&slot_bytes, &LIVE_MAX]).await?;
        if let Some(done) = rows.first().and_then(|row| row.get::<_, Option<&str>>(0))
            && !done.is_empty()
        {
            tracing::debug!(done, "the storage of the mailboxes was looked after");
        }
        Ok(())
    }

    /// What a transaction took and gave back rings nobody, nor what it sent if it went on for too
    /// long: one look a second, however many wait.
    async fn look_for_waiting(&mut self) -> Result<(), Fault> {
        let lines = self.with.bell.watched();
        if lines.is_empty() {
            if self.said.is_some_and(|said| said.elapsed() >= WAIT_AGAIN) {
                self.with.arming.set(IDLE);
                self.said = None;
            }
            return Ok(());
        }
        if self.with.arming.is(IDLE) {
            // Somebody began to wait in the moment in which nobody did.
            self.with.arming.set(WANTED);
        } else if self.said.is_some_and(|said| said.elapsed() >= WAIT_AGAIN) {
            self.say_that_readers_wait().await?;
        }
        let lows = vec![i64::MIN; lines.len()];
        let heads = self.heads(&lines, &lows).await?;
        for (line, head) in lines.iter().zip(heads) {
            if head.is_some() {
                self.with.bell.ring(*line, 1);
            }
        }
        Ok(())
    }
}

/// Reads what `airmail.ring` tells: queue, receiver and how many messages.
fn read(told: &str) -> Option<(Inbox, usize)> {
    let mut words = told.split(' ');
    let queue = QueueId(words.next()?.parse().ok()?);
    let recipients = match words.next()?.parse().ok()? {
        0 => Recipients::Broadcast,
        receiver => Recipients::Direct(AccountId(receiver)),
    };
    let count = words.next()?.parse().ok()?;
    Some((Inbox { queue, recipients }, count))
}
