//! Maintenance: what a node does beside requests, on a connection of its own.
//!
//! - It listens for notifications: whoever makes something readable notifies all nodes, if any has said
//!   that its readers wait. [`NotifySwitch`](super::notify_switch::NotifySwitch) sees to that before a
//!   reader waits.
//! - It makes messages ready whose delay or lease has ended, and removes those that have expired.
//! - It raises the low-water marks of inboxes ([`super::low_water`]).
//! - It keeps the storage small (`airmail.tend`).
//!
//! Each of these may be done by any node, or by several at once.

use super::StoreContext;
use super::connection::{DatabaseConnection, OnNotification};
use super::liveness::LOG_AGAIN;
use super::notify_switch::SwitchState;
use super::settled_ids::{EpochRaised, SettledIds};
use super::statement_error::StatementError;
use crate::id::QueueId;
use crate::message::Inbox;
use crate::receiver::{receiver, recipients};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::Instant;

const TICK: Duration = Duration::from_millis(100);
const RETRY: Duration = Duration::from_millis(200);
/// Interval of the work on the storage.
const STORAGE_INTERVAL: Duration = Duration::from_secs(1);
/// Rows that one statement makes ready or removes.
const MOVED_MAX: i32 = 500;
/// Messages of a slot that are moved in one statement, while others wait.
const SLOT_MOVED_MAX: i32 = 1000;
/// Time for which a node says in advance that its readers wait.
const WAIT_AHEAD_S: i32 = 30;
/// Interval at which a node whose readers wait says so again.
const WAIT_INTERVAL: Duration = Duration::from_secs(10);
/// Time for which senders are waited for that may not have heard that readers wait. One in a longer
/// transaction notifies nobody, and the search once a second finds what it sent.
const SENDERS_END_MAX: Duration = Duration::from_secs(1);
/// Pause between two checks of such senders.
const SENDERS_PAUSE: Duration = Duration::from_millis(2);
/// Overlap of searches for due rows, for transactions that end late; now and then a search begins at the
/// very first row.
const DUE_OVERLAP: Duration = Duration::from_secs(10);
const FULL_SEARCH_INTERVAL: Duration = Duration::from_secs(10);

/// Does the maintenance until the store stops.
pub(super) async fn run(context: Arc<StoreContext>, mut stopped: watch::Receiver<bool>) {
    let notifier = Arc::clone(&context.notifier);
    let on_notification: OnNotification = Arc::new(move |payload: &str| {
        if let Some((inbox, count)) = read_payload(payload) {
            notifier.notify(inbox, count);
        }
    });
    loop {
        let ended = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return,
            ended = connect_and_work(&context, &on_notification) => ended,
        };
        // Notifications may have been missed, and the marks may be another database's.
        context.low_water.forget_all();
        let is_wanted = !context.notify_switch.is(SwitchState::Off);
        context.notify_switch.set(if is_wanted {
            SwitchState::Requested
        } else {
            SwitchState::Off
        });
        if let Err(error) = ended {
            tracing::debug!(error, "the connection for maintenance ended");
        }
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

/// Works on one connection until it ends.
async fn connect_and_work(
    context: &StoreContext,
    on_notification: &OnNotification,
) -> Result<(), String> {
    let connection =
        DatabaseConnection::open(&context.config, Some(Arc::clone(on_notification))).await;
    let connection = connection.map_err(|failure| failure.to_string())?;
    let started = Instant::now();
    let mut maintenance = Maintenance {
        context,
        connection,
        settled_ids: SettledIds::default(),
        due_at: started,
        searched_to: None,
        full_search_at: started,
        storage_at: started,
        wait_said_at: None,
        obstacle_logged_at: None,
    };
    let worked = maintenance.work().await;
    worked.map_err(|error| format!("{error:?}"))
}

/// The state of maintenance on one connection.
struct Maintenance<'a> {
    context: &'a StoreContext,
    connection: DatabaseConnection,
    settled_ids: SettledIds,
    /// Time of the next search for due rows.
    due_at: Instant,
    /// Database time from which the next search for due rows begins; none: the first row.
    searched_to: Option<SystemTime>,
    /// Time of the last search that began at the first row.
    full_search_at: Instant,
    /// Time of the last work on the storage.
    storage_at: Instant,
    /// Time at which senders were last told that readers wait.
    wait_said_at: Option<Instant>,
    /// Time at which it was last logged that somebody's lock is in the way.
    obstacle_logged_at: Option<Instant>,
}

impl Maintenance<'_> {
    async fn work(&mut self) -> Result<(), StatementError> {
        // A commit that is lost with the server is repeated: nothing here is acknowledged to anybody.
        self.connection
            .run("SET synchronous_commit = off; LISTEN airmail_mailbox")
            .await?;
        loop {
            if self.context.notify_switch.is(SwitchState::Requested) {
                self.switch_notifications_on().await?;
            }
            let now = Instant::now();
            if self.due_at <= now {
                self.due_at = now + TICK;
                let done = self.make_due_ready().await;
                self.tolerate(done)?;
            }
            if self.storage_at.elapsed() >= STORAGE_INTERVAL {
                self.storage_at = now;
                let done = self.keep_storage_small().await;
                self.tolerate(done)?;
                let done = self.search_for_waiters().await;
                self.tolerate(done)?;
            }
            let done = self.raise_low_water_marks().await;
            self.tolerate(done)?;
            let until = self.due_at.min(Instant::now() + TICK);
            tokio::select! {
                biased;
                () = self.connection.closed() => return Err(StatementError::ConnectionLost),
                () = self.context.notify_switch.requested() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Logs an error after which maintenance goes on: the statement is tried again later. A lock that is
    /// in the way is logged once a minute.
    fn tolerate(&mut self, done: Result<(), StatementError>) -> Result<(), StatementError> {
        let error = match done {
            Ok(()) => return Ok(()),
            Err(StatementError::ConnectionLost) => return Err(StatementError::ConnectionLost),
            Err(StatementError::TimedOut(failure)) => {
                let logged = self.obstacle_logged_at;
                if logged.is_none_or(|logged| logged.elapsed() >= LOG_AGAIN) {
                    self.obstacle_logged_at = Some(Instant::now());
                    tracing::warn!(error = %failure, "the mailboxes cannot be looked after now");
                }
                return Ok(());
            }
            Err(error) => error.into_failure(),
        };
        tracing::warn!(%error, "the mailboxes could not be looked after");
        Ok(())
    }

    /// Says that readers wait, and waits until those senders have ended who may not have heard it.
    async fn switch_notifications_on(&mut self) -> Result<(), StatementError> {
        self.say_that_readers_wait().await?;
        let EpochRaised {
            epoch, mut held, ..
        } = self.raise_epoch().await?;
        let deadline = Instant::now() + SENDERS_END_MAX;
        while held.is_some_and(|held| held < epoch) && Instant::now() < deadline {
            tokio::time::sleep(SENDERS_PAUSE).await;
            held = self.raise_epoch().await?.held;
        }
        self.context.notify_switch.set(SwitchState::On);
        self.context.notifier.notify_all();
        Ok(())
    }

    async fn say_that_readers_wait(&mut self) -> Result<(), StatementError> {
        let sql = "SELECT airmail.wait_for($1)::text";
        self.connection.query(sql, &[&WAIT_AHEAD_S]).await?;
        self.wait_said_at = Some(Instant::now());
        Ok(())
    }

    /// Raises the epoch, and notes which ids are settled.
    async fn raise_epoch(&mut self) -> Result<EpochRaised, StatementError> {
        let sql = "SELECT raised, settled, held FROM airmail.settle()";
        let rows = self.connection.query(sql, &[]).await?;
        let row = rows.first().ok_or(StatementError::ConnectionLost)?;
        let raised = EpochRaised {
            epoch: row.get("raised"),
            last_id: row.get("settled"),
            held: row.get("held"),
        };
        self.settled_ids.note(raised);
        Ok(raised)
    }

    /// Raises the marks of the inboxes that were read since the last time.
    async fn raise_low_water_marks(&mut self) -> Result<(), StatementError> {
        let (generation, used) = self.context.low_water.take_used();
        if used.is_empty() {
            return Ok(());
        }
        self.raise_epoch().await?;
        let settled = self.settled_ids.last();
        let inboxes: Vec<Inbox> = used.iter().map(|(inbox, _)| *inbox).collect();
        let lows: Vec<i64> = used.iter().map(|(_, low)| *low).collect();
        let first_places = self.first_places(&inboxes, &lows).await?;
        let proven = inboxes.into_iter().zip(first_places).map(|(inbox, first)| {
            let low = first.map_or(settled + 1, |place| place.min(settled + 1));
            (inbox, low)
        });
        self.context.low_water.raise(generation, proven);
        Ok(())
    }

    /// Finds the first place, from each low on, at which each inbox has a message.
    async fn first_places(
        &mut self,
        inboxes: &[Inbox],
        lows: &[i64],
    ) -> Result<Vec<Option<i64>>, StatementError> {
        let queues: Vec<i32> = inboxes.iter().map(|inbox| inbox.queue.0).collect();
        let receivers: Vec<i32> = inboxes
            .iter()
            .map(|inbox| receiver(inbox.recipients))
            .collect();
        let sql = "SELECT place FROM airmail.heads($1, $2, $3) ORDER BY at";
        let rows = self
            .connection
            .query(sql, &[&queues, &receivers, &lows])
            .await?;
        Ok(rows.iter().map(|row| row.get("place")).collect())
    }

    /// Makes messages ready whose delay or lease has ended, and finds out when the next is due.
    async fn make_due_ready(&mut self) -> Result<(), StatementError> {
        if self.full_search_at.elapsed() >= FULL_SEARCH_INTERVAL {
            self.full_search_at = Instant::now();
            self.searched_to = None;
        }
        let sql = "SELECT moved, next_ms, clock_timestamp() AS searched_to
                   FROM airmail.move_due($1, $2)";
        let rows = self
            .connection
            .query(sql, &[&self.searched_to, &MOVED_MAX])
            .await?;
        let row = rows.first().ok_or(StatementError::ConnectionLost)?;
        let (moved, next_ms): (i32, Option<i64>) = (row.get("moved"), row.get("next_ms"));
        if moved == MOVED_MAX {
            self.due_at = Instant::now();
            return Ok(());
        }
        let searched_to = row.get::<_, SystemTime>("searched_to");
        self.searched_to = searched_to.checked_sub(DUE_OVERLAP);
        let next = next_ms.and_then(|ms| u64::try_from(ms).ok());
        let next = next.map_or(TICK, Duration::from_millis);
        self.due_at = Instant::now() + next.min(TICK);
        Ok(())
    }

    /// Removes what has expired, and empties slots.
    async fn keep_storage_small(&mut self) -> Result<(), StatementError> {
        let sql = "SELECT airmail.expire($1)";
        while self
            .connection
            .query(sql, &[&MOVED_MAX])
            .await?
            .first()
            .map(|row| row.get(0))
            == Some(MOVED_MAX)
        {}
        let slot_bytes = i64::try_from(self.context.options.slot_bytes).unwrap_or(i64::MAX);
        let sql = "SELECT airmail.tend($1, $2)";
        let rows = self
            .connection
            .query(sql, &[&slot_bytes, &SLOT_MOVED_MAX])
            .await?;
        if let Some(done) = rows.first().and_then(|row| row.get::<_, Option<&str>>(0))
            && !done.is_empty()
        {
            tracing::debug!(done, "the storage of the mailboxes was looked after");
        }
        Ok(())
    }

    /// Searches the inboxes that have waiters. A transaction that gives back what it took notifies
    /// nobody, and neither does a sender that has gone on for too long: this finds their messages, with
    /// one statement a second, however many readers wait.
    async fn search_for_waiters(&mut self) -> Result<(), StatementError> {
        let inboxes = self.context.notifier.awaited_inboxes();
        let is_stale = self
            .wait_said_at
            .is_some_and(|said| said.elapsed() >= WAIT_INTERVAL);
        if inboxes.is_empty() {
            if is_stale {
                self.context.notify_switch.set(SwitchState::Off);
                self.wait_said_at = None;
            }
            return Ok(());
        }
        if self.context.notify_switch.is(SwitchState::Off) {
            // A reader began to wait in the moment in which the switch was set to off.
            self.context.notify_switch.set(SwitchState::Requested);
        } else if is_stale {
            self.say_that_readers_wait().await?;
        }
        let lows = vec![i64::MIN; inboxes.len()];
        let first_places = self.first_places(&inboxes, &lows).await?;
        for (inbox, first) in inboxes.iter().zip(first_places) {
            if first.is_some() {
                self.context.notifier.notify(*inbox, 1);
            }
        }
        Ok(())
    }
}

/// Reads the payload of a notification (`airmail.ring`): queue, receiver and number of messages.
fn read_payload(payload: &str) -> Option<(Inbox, usize)> {
    let mut words = payload.split(' ');
    let queue = QueueId(words.next()?.parse().ok()?);
    let recipients = recipients(words.next()?.parse().ok()?);
    let count = words.next()?.parse().ok()?;
    Some((Inbox { queue, recipients }, count))
}
