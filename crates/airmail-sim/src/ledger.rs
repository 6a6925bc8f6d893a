//! The oracle: every message of the run, the answers that publishers and readers got about it, and
//! the losses that a fault excuses.

use crate::invariants::audience::Audiences;
use crate::invariants::expiry::Expiry;
use crate::invariants::filters::Filters;
use crate::invariants::numbers::Numbers;
use crate::invariants::selections::Selections;
use crate::invariants::{Checked, Violation};
use crate::lines::Lines;
use crate::message::MessageId;
use airmail_model::{
    AppendTime, Incarnation, LogId, Mono, RoleId, Sequence, Synced, TopicHash, TopicName,
};
use std::collections::{BTreeMap, BTreeSet};

/// Facts known of one message.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its publisher.
    pub publisher: u32,
    /// The line of its log. Topics keep to their line for a whole run.
    pub log: LogId,
    /// Its topic.
    pub topic: TopicHash,
    /// The name of its topic.
    pub topic_name: TopicName,
    /// The place and append time of its ack.
    pub acked: Option<Acked>,
    /// Durability that its namespace asks for.
    pub durability: Synced,
    /// A fault has happened since its ack that the durability does not cover: it may be gone.
    pub excused: bool,
    /// A fault has happened that the durability does not cover: if it was not acknowledged, it may
    /// be stored once more.
    pub reborn: bool,
    /// Its publisher was told that it is not stored.
    pub refused: bool,
    /// Milliseconds after its append time when it expires.
    pub ttl_ms: Option<u32>,
    /// The roles that it is for; none: everybody.
    pub audience: Vec<RoleId>,
    /// The number that it has as an attribute.
    pub number: Option<i64>,
    /// When it was published.
    pub published: Mono,
}

/// Contents of an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The place in the line.
    pub sequence: Sequence,
    /// The log's life.
    pub incarnation: Incarnation,
    /// When appended.
    pub appended: AppendTime,
    /// The durability that held.
    pub held: Synced,
}

/// Harm to a log from outside, which nothing mends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Its newest records are gone, and others may come in their places.
    Cut,
    /// All of it is gone.
    Gone,
}

/// The whole run's messages.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: BTreeMap<MessageId, Entry>,
    by_log: BTreeMap<(LogId, Sequence), MessageId>,
    /// Lines of logs, by which everything here goes.
    pub lines: Lines,
    /// Owners of the logs' numbers.
    pub numbers: Numbers,
    /// Messages whose stored bytes were changed.
    pub damaged: BTreeSet<MessageId>,
    /// Logs below `fsync` that have seen a crash: they skip numbers.
    pub bereft: BTreeSet<LogId>,
    /// The files have been set back to an older copy.
    pub restored: bool,
    /// Where messages stand, if acks do not tell it: retries are recognised only when they are read. Then the logs are
    /// on no disk of the run, and append times may go back.
    pub places: Option<Places>,
    /// An ack or a delivery may be on its way while the process that gave it ends.
    pub acks_outlive: bool,
    /// The end of a log that is told may be one that was.
    pub old_ends: bool,
    /// The seed by which publishers draw lanes, if something is published to lane high.
    pub lanes: Option<u64>,
    /// Facts by which audiences are judged.
    pub audiences: Audiences,
    /// Facts by which filters are judged.
    pub filters: Filters,
    /// Facts by which selections are judged.
    pub selections: Selections,
    /// Facts by which expiry is judged.
    pub expiry: Expiry,
    /// Logs that somebody has harmed from outside.
    harmed: BTreeMap<LogId, Harm>,
    last: u64,
}

/// Number and append time of each message that readers are given.
#[derive(Debug, Default)]
pub struct Places(BTreeMap<MessageId, (Sequence, AppendTime)>);

/// Facts known of all messages at one moment.
#[derive(Debug)]
pub struct Standing {
    /// Acknowledged, and may not be missing.
    held: BTreeSet<MessageId>,
    /// Refused for certain.
    refused: BTreeSet<MessageId>,
}

impl Ledger {
    /// A new message's number.
    pub fn create(
        &mut self,
        publisher: u32,
        log: LogId,
        topic: &TopicName,
        durability: Synced,
    ) -> MessageId {
        self.last += 1;
        let id = MessageId(self.last);
        let entry = Entry {
            publisher,
            log,
            topic: topic.hash(log.namespace),
            topic_name: topic.clone(),
            acked: None,
            durability,
            excused: false,
            reborn: false,
            refused: false,
            ttl_ms: self.expiry.ttl_ms(id, log.namespace),
            number: self.filters.of_message(id),
            audience: self.audiences.of_message(id, log.namespace),
            published: self.expiry.now().mono,
        };
        self.entries.insert(id, entry);
        id
    }

    /// The message that was created last.
    #[must_use]
    pub const fn newest(&self) -> MessageId {
        MessageId(self.last)
    }

    /// Facts known of a message.
    #[must_use]
    pub fn get(&self, id: MessageId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// Every message, in order of creation.
    pub fn iter(&self) -> impl Iterator<Item = (MessageId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// The acknowledged messages of a log with numbers in `[from, to)`, in order.
    pub fn acked(
        &self,
        log: LogId,
        from: Sequence,
        to: Sequence,
    ) -> impl Iterator<Item = (Sequence, MessageId, &Entry)> {
        let range = (log, from)..(log, to.max(from));
        self.by_log.range(range).filter_map(|((_, sequence), id)| {
            let entry = self.entries.get(id)?;
            Some((*sequence, *id, entry))
        })
    }

    /// The highest acknowledged number of a log; 0 if there is none.
    #[must_use]
    pub fn last_acked(&self, log: LogId) -> Sequence {
        let all = (log, Sequence(0))..=(log, Sequence::MAX);
        let last = self.by_log.range(all).next_back();
        last.map_or(Sequence(0), |((_, sequence), _)| *sequence)
    }

    /// An ack was given.
    ///
    /// # Errors
    /// Its number is another message's, or the message has another number.
    pub fn ack(&mut self, id: MessageId, acked: Acked) -> Checked {
        let Some(entry) = self.entries.get_mut(&id) else {
            return Ok(());
        };
        let log = entry.log;
        entry.acked = Some(acked);
        entry.excused &= self.acks_outlive;
        self.by_log.insert((log, acked.sequence), id);
        self.numbers
            .see((log, acked.incarnation, acked.sequence), id, "acknowledged")
    }

    /// A message stands at a number of its log, with an append time.
    ///
    /// # Errors
    /// It stands at another one, too.
    pub fn stands(&mut self, id: MessageId, place: (Sequence, AppendTime)) -> Checked {
        let Some(Places(places)) = &mut self.places else {
            return Ok(());
        };
        let first = *places.entry(id).or_insert(place);
        if first == place {
            return Ok(());
        }
        let detail = format!("message {} is number {} and {}", id.0, first.0, place.0);
        Err(Violation::new("G3 nothing is given twice", detail))
    }

    /// Where an acknowledged message stands: as its ack says, if that can tell.
    ///
    /// # Errors
    /// It stands nowhere.
    pub fn place(
        &self,
        id: MessageId,
        acked: (Sequence, AppendTime),
    ) -> Result<(Sequence, AppendTime), Violation> {
        let Some(Places(places)) = &self.places else {
            return Ok(acked);
        };
        places.get(&id).copied().ok_or_else(|| {
            let log = self.get(id).map(|entry| entry.log);
            let detail = format!(
                "message {} of {log:?} is acknowledged as number {}, and no reader is given it",
                id.0, acked.0
            );
            Violation::new("G1 acknowledged means held", detail)
        })
    }

    /// The durability that the disks of the run have to give a message.
    #[must_use]
    pub fn on_disk(&self, id: MessageId) -> Synced {
        let entry = self.get(id).filter(|_| self.places.is_none());
        entry.map_or(Synced::Memory, |entry| entry.durability)
    }

    /// Stored bytes of messages were changed. In a namespace that may be moved, one whose publisher has not heard of it may
    /// be stored once more: no log may have it, or know its producer, any more.
    pub fn damage(&mut self, ids: impl IntoIterator<Item = MessageId>) {
        for id in ids {
            self.damaged.insert(id);
            let entry = self.entries.get_mut(&id);
            let is_open =
                |entry: &&mut Entry| entry.acked.is_none() && self.lines.may_move(entry.log);
            if let Some(entry) = entry.filter(is_open) {
                entry.reborn = true;
                self.numbers.may_be_twice(id);
            }
        }
    }

    /// The publisher was told that the message is not stored.
    pub fn refuse(&mut self, id: MessageId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.refused = true;
        }
    }

    /// The process was killed, or (`power`) all of the machine: what a weaker durability promised is
    /// excused. `weak`: the logs below `fsync`.
    pub fn crash(&mut self, power: bool, weak: &[LogId]) {
        // They go on above their reservations, whatever was lost of them (G4).
        self.bereft.extend(weak);
        for (id, entry) in &mut self.entries {
            let hit = match entry.durability {
                Synced::Memory => true,
                Synced::Os => power,
                Synced::Fsync => false,
            };
            if hit {
                entry.excused = true;
                entry.reborn = true;
                self.numbers.release(*id);
                if self.acks_outlive {
                    // It may be on its way to somebody, too.
                    self.numbers.may_be_twice(*id);
                }
            }
        }
    }

    /// A log's life has ended, with all that it held: what is acknowledged of it may be gone, and
    /// published again into the next.
    pub fn forget(&mut self, log: LogId) {
        let all = (log, Sequence(0))..=(log, Sequence::MAX);
        let gone: Vec<_> = self.by_log.range(all).map(|(place, _)| *place).collect();
        for place in gone {
            self.by_log.remove(&place);
        }
        for (id, entry) in &mut self.entries {
            if entry.log == log {
                entry.excused = true;
                entry.reborn = true;
                self.numbers.release(*id);
            }
        }
    }

    /// All files were set back to a copy, made when they stood as they did `then`: the others may be gone,
    /// their numbers are given again, and those that nobody was told of may come under others.
    ///
    /// What was refused after that may be in the copy; of what was refused before it is still known that
    /// it is not.
    pub fn restore(&mut self, then: &Standing, logs: impl IntoIterator<Item = LogId>) {
        self.restored = true;
        self.bereft.extend(logs);
        for (id, entry) in &mut self.entries {
            if entry.durability == Synced::Fsync && then.held.contains(id) {
                continue;
            }
            entry.refused &= then.refused.contains(id);
            if entry.acked.is_none() {
                self.numbers.may_be_twice(*id);
            }
            entry.excused = true;
            entry.reborn = true;
            entry.acked = None;
        }
        let entries = &self.entries;
        let gone = |id: &MessageId| entries.get(id).is_none_or(|entry| entry.excused);
        self.by_log.retain(|_, id| !gone(id));
        self.numbers.forget_all(gone);
    }

    /// A log has been harmed: what is acknowledged of it may be gone.
    pub fn harm(&mut self, log: LogId, harm: Harm) {
        self.forget(log);
        self.harmed.insert(log, harm);
    }

    /// Whether any log was harmed.
    #[must_use]
    pub fn has_harm(&self) -> bool {
        !self.harmed.is_empty()
    }

    /// Harm that was done to a log.
    #[must_use]
    pub fn harm_of(&self, log: LogId) -> Option<Harm> {
        self.harmed.get(&log).copied()
    }

    /// Facts known of all messages now.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let held = self.entries.iter().filter(|(id, entry)| {
            entry.acked.is_some() && !entry.excused && !self.damaged.contains(id)
        });
        let refused = self.entries.iter().filter(|(_, entry)| entry.refused);
        Standing {
            held: held.map(|(id, _)| *id).collect(),
            refused: refused.map(|(id, _)| *id).collect(),
        }
    }

    /// A log is kept otherwise: what it has not acknowledged is held at least as the weaker says.
    pub fn respecify(&mut self, log: LogId, durability: Synced) {
        for entry in self.entries.values_mut() {
            if entry.log == log && entry.acked.is_none() {
                entry.durability = entry.durability.min(durability);
            }
        }
    }

    /// Whether a message may be missing.
    #[must_use]
    pub fn may_be_missing(&self, id: MessageId) -> bool {
        self.damaged.contains(&id) || self.entries.get(&id).is_none_or(|entry| entry.excused)
    }
}
