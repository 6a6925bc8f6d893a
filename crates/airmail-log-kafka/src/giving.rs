//! Readers of the owner's: they begin, are given what there is, and end.

use crate::asking::Waiter;
use crate::brokers::Brokers;
use crate::entry::Window;
use crate::place::{Offset, place_of};
use crate::reader::{Gift, Given, Reader, ReaderKey};
use crate::storage::KafkaStorage;
use airmail_log::{Completion, Direction, GapWhy, ReaderId, Refusal, Scope, ScopeFilter};
use airmail_model::{LogId, Sequence};

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn read(
        &mut self,
        r: ReaderId,
        id: LogId,
        from: Sequence,
        scope: &Scope,
        credit: u32,
    ) {
        let refused = match (self.open_log(id), scope.direction, scope.filter) {
            (Err(why), ..) => Some(why),
            (_, Direction::Backward, _) => Some(Refusal::Unsupported("reading backward".into())),
            (_, _, ScopeFilter::Topic(_)) => Some(Refusal::Unsupported("reading a topic".into())),
            (Ok(_), Direction::Forward, ScopeFilter::All | ScopeFilter::Wanted) => None,
        };
        if refused.is_some() {
            self.out.push(Completion::Ended { r, why: refused });
            return;
        }
        self.begin_reader(ReaderKey::Owner(r), Reader::new(id, from, scope, credit));
    }

    pub(crate) fn begin_reader(&mut self, key: ReaderKey, mut reader: Reader) {
        let id = reader.log;
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        log.readers.insert(key);
        reader.is_checked = reader.next > log.next();
        let is_checked = reader.is_checked;
        self.readers.insert(key, reader);
        if is_checked {
            self.wait_for_bounds(id, Waiter::Reader(key));
        }
        self.give(key);
    }

    /// The log's end is known, for a reader that may begin beyond it.
    pub(crate) fn reader_bounded(&mut self, key: ReaderKey, end: Offset) {
        let Some(reader) = self.readers.get_mut(&key) else {
            // Input: a reader that was stopped meanwhile.
            return;
        };
        reader.is_checked = false;
        let is_beyond = reader.next > end.number();
        match key {
            ReaderKey::Owner(r) if is_beyond => {
                let why = Refusal::Unsupported("reading from beyond the end".into());
                self.stop_reader(r, Some(why));
            }
            key => self.give(key),
        }
    }

    pub(crate) fn credit(&mut self, r: ReaderId, bytes: u32) {
        let key = ReaderKey::Owner(r);
        let Some(reader) = self.readers.get_mut(&key) else {
            // Input: credit for a reader that has just ended.
            return;
        };
        let most = i64::from(u32::MAX);
        reader.credit = reader.credit.saturating_add(bytes.into()).min(most);
        self.give(key);
    }

    pub(crate) fn want(&mut self, r: ReaderId, edit: u32, has_more: bool) {
        let key = ReaderKey::Owner(r);
        let Some(reader) = self.readers.get_mut(&key) else {
            // Input: an edit for a reader that has just ended.
            return;
        };
        if has_more {
            return;
        }
        reader.is_wanting = true;
        let at = Some(reader.next);
        self.out.push(Completion::Effective { r, edit, at });
        self.give(key);
    }

    pub(crate) fn stop_reader(&mut self, r: ReaderId, why: Option<Refusal>) {
        if self.remove_reader(ReaderKey::Owner(r)) {
            self.out.push(Completion::Ended { r, why });
        }
    }

    /// Whether it was there.
    fn remove_reader(&mut self, key: ReaderKey) -> bool {
        self.work.behind.remove(&key);
        let Some(reader) = self.readers.remove(&key) else {
            // Input: a stop of a reader that has just ended.
            return false;
        };
        if let Some(log) = self.logs.get_mut(&reader.log) {
            log.readers.remove(&key);
        }
        true
    }

    /// Gives the readers of logs in which something has happened what there is for them.
    pub(crate) fn give_stirred(&mut self) {
        while let Some(id) = self.stirred.pop_first() {
            let log = self.logs.get(&id);
            let readers: Vec<ReaderKey> = log
                .into_iter()
                .flat_map(|log| &log.readers)
                .copied()
                .collect();
            for key in readers {
                self.give(key);
            }
            // Whoever has credit has them now.
            let most = self.config.recent_bytes;
            if let Some(log) = self.logs.get_mut(&id) {
                log.scan.newest.shrink(most);
            }
        }
    }

    /// Gives a reader what the newest entries have for it, or takes note that it is behind them.
    pub(crate) fn give(&mut self, key: ReaderKey) {
        let Some(reader) = self.readers.get_mut(&key) else {
            // Input: a reader that has just ended.
            return;
        };
        let Some(log) = self.logs.get_mut(&reader.log) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let first = log.first().number();
        if reader.next < first && reader.is_hungry() {
            let why = if log.is_trimmed() {
                GapWhy::Retention
            } else {
                GapWhy::Unused
            };
            let mut gifts = Vec::new();
            reader.gap(first, why, &mut gifts);
            let is_over = reader.until.is_some_and(|until| reader.next >= until);
            self.hand(key, gifts);
            if is_over {
                return self.end_reader(key);
            }
        }
        let Some(reader) = self.readers.get(&key) else {
            // Input: a reader that has just ended.
            return;
        };
        let (id, place) = (reader.log, place_of(reader.next).0);
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        if log.scan.newest.first <= place && place <= log.scan.next() {
            let window = std::mem::take(&mut log.scan.newest);
            let is_end = log.scan.is_at_end;
            self.give_of(key, &window, is_end);
            if let Some(log) = self.logs.get_mut(&id) {
                log.scan.newest = window;
            }
        }
        self.place_reader(key);
    }

    /// Gives a reader what a window has for it.
    pub(crate) fn give_of(&mut self, key: ReaderKey, window: &Window, is_end: bool) {
        let mut gifts = Vec::new();
        let Some(reader) = self.readers.get_mut(&key) else {
            // Input: a reader that has just ended.
            return;
        };
        let given = reader.give(window, is_end, &mut gifts);
        self.hand(key, gifts);
        if given == Given::Ends {
            self.end_reader(key);
        }
    }

    fn hand(&mut self, key: ReaderKey, gifts: Vec<Gift>) {
        #[cfg(feature = "sabotage")]
        let gifts = if self.config.has_bug(crate::sabotage::Bug::HoleIsRetention) {
            let told = gifts.into_iter().map(|gift| match gift {
                Gift::Gap(extent, _) => Gift::Gap(extent, GapWhy::Retention),
                other => other,
            });
            told.collect()
        } else {
            gifts
        };
        match key {
            ReaderKey::Owner(r) => {
                let completions = gifts.into_iter().map(|gift| gift.completion(r));
                self.out.extend(completions);
            }
            ReaderKey::Own(t) => self.looked(t, &gifts),
        }
    }

    /// A reader has come to the number at which it ends.
    fn end_reader(&mut self, key: ReaderKey) {
        if !self.remove_reader(key) {
            return;
        }
        match key {
            ReaderKey::Owner(r) => self.out.push(Completion::Ended { r, why: None }),
            ReaderKey::Own(t) => self.look_over(t),
        }
    }
}
