//! Writing statements about logs, and removing what has become superfluous of them.
//!
//! Whoever reads a log through states what is known there, a while after there is something new, or after so many bytes.
//! Nodes that read the same log do so at slightly different times, and one that sees a statement about what it has
//! waits anew: mostly one of them writes. Nothing depends on that, for each statement is true.
//!
//! Two changes of a log wait for a statement, because what they do takes away what others begin from: a trim removes records
//! that nobody can read again, so a statement about a place behind them has to be stored before; and a new life begins
//! with a statement of its own, for those about the life before do not count.
//!
//! A node writes one statement at a time, and few parts of it at once, because appends use the same queue. Statements
//! about lives that are over are removed by whoever ends the life, and by any node that knows it at its start or when it
//! has written a statement about that log.

use crate::brokers::{Brokers, NewRecord, Partition};
use crate::layout::incarnation;
use crate::place::Offset;
use crate::resuming::Follower;
use crate::start::state_partition;
use crate::statement::{Statement, digest};
use crate::statements::{Named, StatementKey, Statements, part_value};
use crate::storage::{KafkaStorage, Purpose};
use airmail_model::{Incarnation, LogId, Mono, bug, random};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Parts of a statement that are under way at once.
const PARTS_UNDER_WAY: usize = 4;
/// Share of what a log keeps after which there is another statement.
const OF_RETENTION: u32 = 4;
/// Longest time until a statement that is stored is read, where a change waits for that.
const READ: Duration = Duration::from_secs(5);
/// Shortest time between statements about a log, and after one that could not be written.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Statement that is to be written.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Mono,
    /// The place of what is new.
    since: Offset,
}

/// A statement that is being written.
#[derive(Debug)]
struct Writing {
    log: LogId,
    life: Incarnation,
    place: Offset,
    is_asked: bool,
    /// Parts that are not handed over yet; the head follows them.
    parts: Vec<(Bytes, Bytes)>,
    head: Option<(Bytes, Bytes)>,
    under_way: usize,
    is_failed: bool,
}

/// A statement that is stored, and that a log's change wants to read before it goes on: that it is whole, and not only
/// written, is what the change relies on.
#[derive(Clone, Copy, Debug)]
struct Unread {
    life: Incarnation,
    place: Offset,
    until: Mono,
}

/// Statements that are there, and those that are to be.
#[derive(Debug, Default)]
pub(crate) struct Stating {
    pub(crate) statements: Statements,
    due: BTreeMap<LogId, Due>,
    /// Logs whose change waits for a statement, with the life that it is to be about.
    asked: BTreeMap<LogId, Incarnation>,
    writing: Option<Writing>,
    unread: BTreeMap<LogId, Unread>,
    /// Logs that wait for the newest statements.
    pub(crate) followers: BTreeMap<LogId, Follower>,
    /// Logs that have them.
    pub(crate) followed: BTreeSet<LogId>,
}

impl Stating {
    /// When something is to be done, if statements may be begun.
    pub(crate) fn deadline(&self, may_begin: bool) -> Option<Mono> {
        let is_free = may_begin && self.writing.is_none();
        let due = self.due.values().map(|due| due.at).filter(|_| is_free);
        let until = self.followers.values().map(|follower| follower.until);
        let unread = self.unread.values().map(|unread| unread.until);
        due.chain(until).chain(unread).min()
    }

    /// Forgets what a log waits for, which ends here.
    pub(crate) fn forget(&mut self, id: LogId) {
        self.due.remove(&id);
        self.followers.remove(&id);
        self.followed.remove(&id);
    }
}

impl<B: Brokers> KafkaStorage<B> {
    /// A log's life, as the rows have it.
    pub(crate) fn life(&self, id: LogId, nonce: u64) -> Incarnation {
        let rows = self.rows.of(id);
        let counts = (rows.lives(nonce), rows.cuts(nonce).0);
        incarnation(self.config.cluster, id, nonce, counts)
    }

    /// Takes note that a log was read on, from this place.
    pub(crate) fn read_on(&mut self, id: LogId, since: Offset) {
        let now = self.now.mono;
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let kept = log.spec.retention.bytes;
        let of_kept = kept.map_or(u64::MAX, |bytes| bytes / u64::from(OF_RETENTION));
        let is_much = log.scan.unstated_bytes >= self.config.statements.bytes.min(of_kept);
        if log.scan.next() == since && !is_much {
            return;
        }
        let at = now.plus(self.statement_interval(id));
        let due = self.work.stating.due.entry(id);
        let due = due.or_insert(Due { at, since });
        if is_much {
            due.at = due.at.min(now);
        }
    }

    /// Time after which what is new is stated: each node has its own, by up to a sixth shorter.
    fn statement_interval(&self, id: LogId) -> Duration {
        let kept = self
            .logs
            .get(&id)
            .and_then(|log| log.spec.retention.time_ms);
        let of_kept = kept.map_or(Duration::MAX, Duration::from_millis) / OF_RETENTION;
        let interval = self.config.statements.interval.min(of_kept);
        let sixths = random::nth(self.config.seed, id.index.0.into()) % 1000;
        let shorter = interval / 6000 * u32::try_from(sixths).unwrap_or(0);
        interval.saturating_sub(shorter).max(INTERVAL_MIN)
    }

    /// Has a log stated as soon as may be.
    pub(crate) fn state_soon(&mut self, id: LogId) {
        let at = self.now.mono;
        let since = self.logs.get(&id).map_or(Offset(0), |log| log.scan.next());
        self.work.stating.due.insert(id, Due { at, since });
    }

    /// Has a statement about this life of a log written, for the log's change.
    pub(crate) fn ask_statement(&mut self, id: LogId, incarnation: Incarnation) {
        self.work.stating.asked.insert(id, incarnation);
    }

    /// Takes a statement's record, as the topic of rows has it.
    pub(crate) fn take_statement(&mut self, key: &StatementKey, value: Option<&Bytes>) {
        let Some(place) = self.work.stating.statements.take(key, value) else {
            // Input: a part, or something that was removed.
            return;
        };
        let id = key.log;
        let at = self.now.mono.plus(self.statement_interval(id));
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a statement about a log that is not read here.
            return;
        };
        if log.incarnation != key.incarnation {
            return;
        }
        if let Some(due) = self.work.stating.due.get_mut(&id)
            && place > due.since
        {
            // Somebody has stated what is due here.
            *due = Due { at, since: place };
            log.scan.unstated_bytes = 0;
            if log.scan.next() <= place {
                self.work.stating.due.remove(&id);
            }
        }
    }

    /// Goes on writing statements.
    pub(crate) fn state(&mut self) {
        self.go_on_stated();
        if !self.start.is_over() {
            return;
        }
        loop {
            if self.work.stating.writing.is_some() {
                self.hand_over_parts();
            }
            if self.work.stating.writing.is_some() || !self.begin_statement() {
                return;
            }
        }
    }

    /// Lets changes go on whose statements are read, or have not been for too long.
    fn go_on_stated(&mut self) {
        let now = self.now.mono;
        for (id, unread) in self.work.stating.unread.clone() {
            let place = self.work.stating.statements.place(id, unread.life);
            let is_read = place >= Some(unread.place);
            if is_read || unread.until <= now {
                self.work.stating.unread.remove(&id);
                self.change_stated(id, is_read);
            }
        }
    }

    /// Begins the next statement; whether there is one to be begun.
    fn begin_statement(&mut self) -> bool {
        let now = self.now.mono;
        let stating = &mut self.work.stating;
        if let Some((id, life)) = stating.asked.pop_first() {
            self.state_log(id, life, true);
            return true;
        }
        let is_closing = self.work.is_closing;
        let due = stating
            .due
            .iter()
            .filter(|(_, due)| due.at <= now && !is_closing);
        let Some(id) = due.min_by_key(|(_, due)| due.at).map(|(id, _)| *id) else {
            // Input: logs that have nothing new, or not for long.
            return false;
        };
        let due = stating.due.remove(&id);
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return true;
        };
        let (life, is_open) = (log.incarnation, log.is_open);
        let nonce = log.topics.map_or(0, |topics| topics.nonce);
        if is_open && self.life(id, nonce) == life {
            self.state_log(id, life, false);
        } else if let Some(due) = due {
            // It is being opened, or its new life is.
            let at = now.plus(INTERVAL_MIN);
            self.work.stating.due.insert(id, Due { at, ..due });
        }
        true
    }

    fn state_log(&mut self, id: LogId, life: Incarnation, is_asked: bool) {
        let statements = &self.work.stating.statements;
        let place = statements.place(id, life);
        let log = self.logs.get_mut(&id);
        let Some(log) = log.filter(|log| log.suspended.is_none() && log.scan.awaited.is_none())
        else {
            // Input: a log that was deleted or stopped meanwhile.
            return self.statement_over(id, is_asked, false);
        };
        log.scan.unstated_bytes = 0;
        if place >= Some(log.scan.next()) {
            return self.statement_over(id, is_asked, true);
        }
        let Statement { head, parts } = Statement::of(&log.scan);
        let key = |what| StatementKey {
            log: id,
            incarnation: life,
            what,
        };
        let new = parts
            .iter()
            .filter(|(part, _)| !statements.has(id, life, part));
        let parts = new.map(|(part, bytes)| {
            let value = part_value(life, head.next, bytes);
            (key(Named::Part(*part)).encode(), value)
        });
        let parts = parts.collect();
        let value = head.encode();
        let name = Named::Head(head.next, digest(&value));
        let written = (key(name).encode(), value);
        self.work.stating.writing = Some(Writing {
            log: id,
            life,
            place: head.next,
            is_asked,
            parts,
            head: Some(written),
            under_way: 0,
            is_failed: false,
        });
    }

    /// Hands over what may be under way; the head goes when all parts are stored.
    fn hand_over_parts(&mut self) {
        let partition = state_partition(&self.config);
        while let Some(writing) = &mut self.work.stating.writing {
            if writing.is_failed {
                writing.parts.clear();
                writing.head = None;
            }
            let next = match writing.parts.last() {
                Some(part) if writing.under_way < PARTS_UNDER_WAY => Some(part.clone()),
                None if writing.under_way == 0 => writing.head.clone(),
                Some(_) | None => None,
            };
            if let Some((key, value)) = next {
                if writing.parts.pop().is_none() {
                    writing.head = None;
                }
                writing.under_way += 1;
                if !self.produce_row(Purpose::Statement, &partition, key, Some(value)) {
                    self.statement_reported(false);
                }
                continue;
            }
            if writing.under_way > 0 {
                return;
            }
            let (id, is_stored) = (writing.log, !writing.is_failed);
            let unread = Unread {
                life: writing.life,
                place: writing.place,
                until: self.now.mono.plus(READ),
            };
            let is_asked = writing.is_asked;
            self.work.stating.writing = None;
            if is_asked && is_stored {
                self.work.stating.unread.insert(id, unread);
            }
            self.statement_over(id, is_asked && !is_stored, is_stored);
        }
    }

    /// Hands over a record of the topic of rows. Whether it was taken.
    fn produce_row(
        &mut self,
        purpose: Purpose,
        partition: &Partition,
        key: Bytes,
        value: Option<Bytes>,
    ) -> bool {
        let record = NewRecord {
            key: Some(key),
            value,
            sent_ms: self.wall_ms(),
        };
        let token = self.token(purpose);
        let is_taken = self.brokers.produce(token, partition, record).is_ok();
        if !is_taken {
            self.untoken(token);
        }
        is_taken
    }

    pub(crate) fn statement_reported(&mut self, is_stored: bool) {
        let Some(writing) = &mut self.work.stating.writing else {
            bug!("a statement is reported that nobody writes");
            return;
        };
        writing.under_way = writing.under_way.saturating_sub(1);
        writing.is_failed |= !is_stored;
    }

    /// A statement is written, or could not be.
    fn statement_over(&mut self, id: LogId, is_asked: bool, is_stored: bool) {
        if is_stored {
            self.remove_superfluous(id);
        } else if let Some(log) = self.logs.get(&id) {
            let (at, since) = (self.now.mono.plus(INTERVAL_MIN * 10), log.scan.next());
            self.work.stating.due.entry(id).or_insert(Due { at, since });
        }
        if is_asked {
            self.change_stated(id, is_stored);
        }
    }

    /// Removes statements about a log that have become superfluous, and all about its lives that are over.
    pub(crate) fn remove_superfluous(&mut self, id: LogId) {
        let statements = &self.work.stating.statements;
        let mut names = Vec::new();
        for life in statements.lives(id) {
            if self.is_life_over(id, life) {
                names.extend(statements.all(id, life));
            } else {
                names.extend(statements.superfluous(id, life));
            }
        }
        self.remove_records(&names);
    }

    /// Removes all statements about a log.
    pub(crate) fn remove_statements(&mut self, id: LogId) {
        let statements = &self.work.stating.statements;
        let lives = statements.lives(id).into_iter();
        let names: Vec<StatementKey> = lives.flat_map(|life| statements.all(id, life)).collect();
        self.remove_records(&names);
    }

    /// Removes statements about lives that are over, of all logs: the rows are read to their end.
    pub(crate) fn remove_gone(&mut self) {
        for id in self.work.stating.statements.logs() {
            self.remove_superfluous(id);
        }
    }

    fn remove_records(&mut self, names: &[StatementKey]) {
        let partition = state_partition(&self.config);
        for name in names {
            if !self.produce_row(Purpose::Nothing, &partition, name.encode(), None) {
                // What is left is removed with the next statement.
                return;
            }
        }
    }

    /// Whether it is certain that a life of a log is over. A life that is about to begin has statements before its row.
    fn is_life_over(&self, id: LogId, life: Incarnation) -> bool {
        let rows = self.rows.of(id);
        let spec = rows.spec.map(|(as_of, _)| as_of);
        let log = self.logs.get(&id).filter(|log| log.is_open);
        let Some(log) = log else {
            // Input: a log that is not open here, and may not be there.
            return rows.deleted.is_some_and(|deleted| spec < Some(deleted));
        };
        if spec > Some(log.spec.as_of) || rows.deleted >= Some(log.spec.as_of) {
            return false;
        }
        let nonce = log.topics.map_or(0, |topics| topics.nonce);
        let (lives, (cuts, _)) = (rows.lives(nonce), rows.cuts(nonce));
        let has_own = (self.work.stating.statements)
            .place(id, self.life(id, nonce))
            .is_some();
        // Before the first statement about the present life, one about the life before its cut may be begun from.
        let before = self.life_before(id, nonce).filter(|_| !has_own);
        let mut present = [lives, lives.saturating_add(1)].into_iter();
        let is_past = |count| incarnation(self.config.cluster, id, nonce, (count, cuts)) != life;
        before.is_none_or(|(before, _)| before != life) && present.all(is_past)
    }
}
