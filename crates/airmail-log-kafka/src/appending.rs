//! Appends: what is handed over, what is refused before, and what the reports make of them.
//!
//! The queue of records under way is shared by all logs, and one partition may be dead. So a log may have its share of
//! it, which shrinks as the queue fills; and all logs that have not been reported for a while may have half of it
//! together: however many of them there are, the others go on.

use crate::brokers::{Brokers, NewRecord, NotTaken, Produced, Token, Unstored};
use crate::sending::{HandedOver, Proof, has_room};
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, Refusal, Tag};
use airmail_model::{Batch, Checked, LogId, MapEpoch, Mono};

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn append(
        &mut self,
        (t, id): (Tag, LogId),
        map: MapEpoch,
        batch: Checked<Batch>,
        sole: bool,
    ) {
        let stamp = batch.producer();
        let result = self.hand_over((t, id), map, &batch, sole);
        let Err(why) = result else {
            // Input: a batch that was handed over, and will be reported.
            return;
        };
        match self.logs.get_mut(&id) {
            Some(log) if log.is_open => {
                log.sending.refuse(t, stamp, why);
                self.answer_appends(id);
            }
            _ => self.out.push(Completion::Refused { t, why }),
        }
    }

    fn hand_over(
        &mut self,
        (t, id): (Tag, LogId),
        map: MapEpoch,
        batch: &Checked<Batch>,
        sole: bool,
    ) -> Result<(), Refusal> {
        let bytes = batch.bytes().len() as u64;
        let (has_room, is_closing) = (self.has_room(id, bytes), self.work.is_closing);
        let (now, sent_ms) = (self.now.mono, self.wall_ms());
        let log = self.open_log(id)?;
        let floor = log.scan.next();
        // The producer's place is noted first: what is behind a batch that is refused now is above the next.
        let admitted = match batch.producer() {
            Some(stamp) => log.sending.admit((stamp, sole), &log.scan.producers, now),
            None => Ok(Proof::Report),
        };
        if map != log.spec.epoch {
            let current = log.spec.epoch;
            return Err(Refusal::StaleMap { current });
        }
        let proof = admitted?;
        if is_closing || !has_room {
            return Err(KafkaStorage::<B>::busy());
        }
        let partition = log.partition.clone();
        let record = NewRecord {
            key: None,
            value: Some(batch.bytes().clone()),
            sent_ms,
        };
        let token = self.token(Purpose::Append(id));
        if let Err(why) = self.brokers.produce(token, &partition, record) {
            self.untoken(token);
            return Err(match why {
                NotTaken::Full | NotTaken::Failed(_) => KafkaStorage::<B>::busy(),
                NotTaken::Invalid(why) => Refusal::Unsupported(why.into()),
            });
        }
        let append = HandedOver {
            token,
            stamp: batch.producer(),
            messages: batch.numbers(),
            bytes,
            sent_ms,
            floor,
            proof,
        };
        let log = self.open_log(id)?;
        log.sending.handed_over(t, append, now);
        if let Some(at) = log.sending.deadline() {
            self.work.awaited.entry(id).or_insert(at);
        }
        self.work.under_way_bytes += bytes;
        Ok(())
    }

    /// Whether a log may have so many bytes more under way.
    fn has_room(&self, id: LogId, bytes: u64) -> bool {
        let Some(log) = self.logs.get(&id) else {
            // Input: a log that was deleted meanwhile.
            return false;
        };
        let all = self.logs.values().map(|log| &log.sending);
        let queue = (self.work.under_way_bytes, self.config.queue_bytes);
        has_room((&log.sending, all), bytes, queue, self.now.mono)
    }

    pub(crate) fn reported(&mut self, id: LogId, token: Token, result: Result<Produced, Unstored>) {
        let now = self.now.mono;
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a report of an append of a log that was deleted.
            return;
        };
        let before = log.sending.bytes();
        if log.sending.report(token, result, now) {
            self.work.under_way_bytes -= before - log.sending.bytes();
            self.answer_appends(id);
        }
    }

    /// Answers the appends of a log that can be answered by now.
    pub(crate) fn answer_appends(&mut self, id: LogId) {
        let (now, held) = (self.now.mono, self.config.durability());
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        // What a log that has stopped has not shown it never shows.
        let now = if log.suspended.is_some() {
            Mono::NEVER
        } else {
            now
        };
        let seen = (&log.scan.producers, log.scan.next());
        log.sending.answer(held, seen, now, &mut self.out);
        match log.sending.deadline() {
            Some(at) => self.work.awaited.insert(id, at),
            None => self.work.awaited.remove(&id),
        };
    }

    /// Answers appends whose records are not reported, or not read, in time.
    pub(crate) fn give_up_waiting(&mut self) {
        let awaited = self.work.awaited.iter();
        let due = awaited.filter(|(_, at)| **at <= self.now.mono);
        let due: Vec<LogId> = due.map(|(log, _)| *log).collect();
        for id in due {
            self.answer_appends(id);
        }
    }
}
