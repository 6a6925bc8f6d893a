//! Sweeps: readers of what is not among the newest entries, over few consumers.
//!
//! There is no index of topics on Kafka, so whoever is behind reads the log. A *sweep* starts at the reader that is
//! furthest behind and goes on to the newest entries; every reader of that log that it meets rides along, and takes what
//! comes from the same bytes. A reader that has had its credit, and mostly gets more at once, is waited for, as long as
//! the sweep has patience: else every step of it would be a sweep of its own for the sake of whoever is ahead. One that
//! gets none by then is left behind where it is, and met by a later sweep, or by this one if nobody else is left on it.
//! Nor is much read for nobody: a sweep on which nobody rides goes on from the next one who is ahead. One on which nobody
//! waits for more gives its consumer to another log that needs one.
//!
//! Patience is for a node that has no turn for a moment, and grows again with what is read. So a reader that takes little
//! at a time slows those that ride with it to 1 MiB/s, and one that takes nothing keeps them for [`PATIENCE_MAX`] once.

use crate::brokers::{Brokers, ConsumerId, Record, Slot, Taken};
use crate::entry::{Entry, Window, read};
use crate::log::Log;
use crate::place::{Offset, place_of};
use crate::reader::{Reader, ReaderKey};
use crate::storage::KafkaStorage;
use airmail_model::{LogId, Mono};
use std::time::Duration;

/// Bytes of a sweep's window.
const WINDOW_BYTES: u64 = 256 << 10;

/// Time for which a sweep waits at most for readers that have had their credit, and what it gains of that with each window.
const PATIENCE_MAX: Duration = Duration::from_secs(2);
const PATIENCE_OF_WINDOW: Duration = Duration::from_millis(250);

/// Bytes to the next reader, about, that a sweep reads for nobody rather than begin again there: what has been fetched is
/// lost then, which is half as much.
const FOR_NOBODY_BYTES: u64 = 8 << 20;

/// A sweep of one log.
#[derive(Debug)]
pub(crate) struct Sweep {
    log: LogId,
    consumer: ConsumerId,
    slot: Slot,
    window: Window,
    is_readable: bool,
    /// Its consumer has given what the log is not read through to: it cannot go on.
    is_spent: bool,
    /// When it began to wait with this window for readers without credit.
    held_since: Option<Mono>,
    /// Time for which it would wait, from then on.
    patience: Duration,
}

impl Sweep {
    /// Ends its wait.
    fn go_on(&mut self, now: Mono) {
        if let Some(since) = self.held_since.take() {
            self.patience = self.patience.saturating_sub(now.since(since));
        }
    }
}

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn sweep_readable(&mut self, consumer: ConsumerId) {
        let mut sweeps = self.sweeps.iter_mut();
        if let Some(sweep) = sweeps.find(|sweep| sweep.consumer == consumer) {
            sweep.is_readable = true;
        }
    }

    /// Lets all sweeps go on; whether there may be more at once.
    pub(crate) fn sweep(&mut self) -> bool {
        let mut is_busy = false;
        for at in 0..self.sweeps.len() {
            self.serve_sweep(at);
            if !self.is_wanted(at) || self.is_held(at) {
                continue;
            }
            if let Some(place) = self.next_stop(at) {
                self.move_sweep(at, place);
            } else if self.sweeps[at].is_readable {
                self.fill_sweep(at);
                self.serve_sweep(at);
                is_busy = true;
            }
        }
        self.end_idle_sweeps();
        self.begin_sweeps();
        is_busy
    }

    /// Readers behind that are of a log, with their places.
    fn behind(&self, log: LogId) -> impl Iterator<Item = (ReaderKey, Offset)> {
        self.work.behind.iter().filter_map(move |key| {
            let reader = self.readers.get(key)?;
            (reader.log == log).then(|| (*key, place_of(reader.next).0))
        })
    }

    /// Gives the readers whose places are in a sweep's window what it has.
    fn serve_sweep(&mut self, at: usize) {
        let log = self.sweeps[at].log;
        let window = std::mem::take(&mut self.sweeps[at].window);
        let met = self
            .behind(log)
            .filter(|(_, place)| window.contains(*place));
        let met: Vec<ReaderKey> = met.map(|(key, _)| key).collect();
        if met.is_empty() {
            self.sweeps[at].window = window;
            return;
        }
        for key in met {
            self.give_of(key, &window, false);
            self.place_reader(key);
        }
        self.sweeps[at].window = window;
        // Whoever has come to the newest entries goes on with those.
        self.stirred.insert(log);
    }

    /// Whether somebody waits for what comes behind a sweep's window.
    fn is_wanted(&self, at: usize) -> bool {
        let sweep = &self.sweeps[at];
        let mut behind = self.behind(sweep.log);
        !sweep.is_spent && behind.any(|(_, place)| place >= sweep.window.next)
    }

    /// Whether a sweep waits with its window for a reader that has had its credit.
    fn is_held(&mut self, at: usize) -> bool {
        let sweep = &self.sweeps[at];
        let is_here = |place: Offset| sweep.window.contains(place) || place == sweep.window.next;
        let log = self.logs.get(&sweep.log);
        let is_held = log.is_some_and(|log| {
            let mut readers = log.readers.iter().filter_map(|key| self.readers.get(key));
            readers.any(|reader| {
                let place = place_of(reader.next).0;
                reader.is_sated() && is_here(place) && place < log.scan.newest.first
            })
        });
        let (sweep, now) = (&mut self.sweeps[at], self.now.mono);
        if !is_held {
            sweep.go_on(now);
            return false;
        }
        let since = *sweep.held_since.get_or_insert(now);
        now < since.plus(sweep.patience)
    }

    /// The place of the next reader that waits for a sweep, if nobody rides on it and that one is far ahead.
    fn next_stop(&self, at: usize) -> Option<Offset> {
        let sweep = &self.sweeps[at];
        let window = &sweep.window;
        let ahead = self.behind(sweep.log).map(|(_, place)| place);
        let next = ahead.filter(|place| *place >= window.next).min()?;
        let between = (next.0 - window.next.0).saturating_mul(window.bytes_each());
        (between > FOR_NOBODY_BYTES).then_some(next)
    }

    /// When a sweep goes on without those for whom it waits.
    pub(crate) fn sweeps_deadline(&self) -> Option<Mono> {
        let until = |sweep: &Sweep| Some(sweep.held_since?.plus(sweep.patience));
        let ends = self.sweeps.iter().filter_map(until);
        ends.filter(|end| *end > self.now.mono).min()
    }

    /// Fetches the next window.
    fn fill_sweep(&mut self, at: usize) {
        let sweep = &mut self.sweeps[at];
        let Some(log) = self.logs.get(&sweep.log) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let mut taken = Vec::new();
        sweep.is_readable = self.brokers.take(sweep.consumer, WINDOW_BYTES, &mut taken);
        // Before the log's first offset nobody knows any more what is a copy.
        let mut window = Window::new(sweep.window.next.max(log.first()));
        for taken in taken {
            match taken {
                Taken::Record(record) if record.offset >= log.scan.next() => {
                    window.known_to(log.scan.next());
                    sweep.is_spent = true;
                    break;
                }
                Taken::Record(record) if record.offset >= window.next => {
                    self.counts.read_bytes += record.bytes();
                    window.push(log.entry_again(&record));
                }
                // Input: a record that was there already.
                Taken::Record(_) => {}
                Taken::End { next } => window.known_to(next.min(log.scan.next())),
            }
        }
        sweep.window = window;
        sweep.go_on(self.now.mono);
        sweep.patience = PATIENCE_MAX.min(sweep.patience + PATIENCE_OF_WINDOW);
    }

    /// Starts sweeps for readers that no sweep will meet, as far as there are consumers for them.
    fn begin_sweeps(&mut self) {
        let logs = self
            .work
            .behind
            .iter()
            .filter_map(|key| self.readers.get(key));
        let mut logs: Vec<LogId> = logs.map(|reader| reader.log).collect();
        logs.sort_unstable();
        logs.dedup();
        for log in logs {
            if self.is_looked_for(log) {
                continue;
            }
            let own = self.sweeps.iter().position(|sweep| sweep.log == log);
            let is_met = |place: Offset| {
                let mut own = own.into_iter().map(|at| &self.sweeps[at]);
                own.any(|own| {
                    let is_ahead = place >= own.window.next && !own.is_spent;
                    own.window.contains(place) || is_ahead
                })
            };
            let places = self.behind(log).map(|(_, place)| place);
            let Some(place) = places.filter(|place| !is_met(*place)).min() else {
                // Input: a log whose readers will all be met.
                continue;
            };
            match own {
                // It goes on for others, who are ahead; this one is next.
                Some(at) if self.is_wanted(at) || self.is_held(at) => {}
                Some(at) => self.move_sweep(at, place),
                None => {
                    if let Some(slot) = self.free_slot() {
                        self.begin_sweep(log, slot, place);
                    }
                }
            }
        }
    }

    /// Whether it is being asked, or will be soon, where a log begins: a sweep would be out of range again at once.
    fn is_looked_for(&self, log: LogId) -> bool {
        let of = self.logs.get(&log);
        of.is_some_and(|of| of.asking.is_out_of_range()) || self.work.retries.contains_key(&log)
    }

    /// Ends the sweeps of logs whose readers have all come to the newest entries.
    fn end_idle_sweeps(&mut self) {
        let mut at = 0;
        while let Some(sweep) = self.sweeps.get(at) {
            let log = self.logs.get(&sweep.log);
            let is_needed = log.is_some_and(|log| {
                let mut readers = log.readers.iter().filter_map(|key| self.readers.get(key));
                readers.any(|reader| place_of(reader.next).0 < log.scan.newest.first)
            });
            if is_needed {
                at += 1;
            } else {
                self.drop_sweep(at);
            }
        }
    }

    /// A slot that nobody uses, or that of a sweep which nobody waits for.
    fn free_slot(&mut self) -> Option<Slot> {
        let slots = 1..=self.config.catch_up_readers.max(1);
        let mut free = slots.map(Slot);
        if let Some(slot) = free.find(|slot| self.sweeps.iter().all(|s| s.slot != *slot)) {
            return Some(slot);
        }
        let idle = (0..self.sweeps.len()).find(|at| !self.is_wanted(*at))?;
        Some(self.drop_sweep(idle))
    }

    fn begin_sweep(&mut self, log: LogId, slot: Slot, from: Offset) {
        let begun = self.sweep_from(log, slot, from);
        self.sweeps.push(begun);
    }

    /// A new sweep, with a consumer if the log is there: it ends by itself if not.
    fn sweep_from(&mut self, id: LogId, slot: Slot, from: Offset) -> Sweep {
        let consumer = ConsumerId(self.id());
        let log = self.logs.get(&id);
        let from = log.map_or(from, |log| from.max(log.first()));
        if let Some(log) = log {
            self.brokers.consume(consumer, slot, &log.partition, from);
        }
        Sweep {
            log: id,
            consumer,
            slot,
            window: Window::new(from),
            is_readable: false,
            is_spent: false,
            held_since: None,
            patience: PATIENCE_MAX,
        }
    }

    /// Has a sweep go on from another place of its log.
    fn move_sweep(&mut self, at: usize, place: Offset) {
        let Sweep {
            log,
            slot,
            consumer,
            ..
        } = self.sweeps[at];
        self.brokers.stop(consumer);
        self.sweeps[at].go_on(self.now.mono);
        let patience = self.sweeps[at].patience;
        self.sweeps[at] = Sweep {
            patience,
            ..self.sweep_from(log, slot, place)
        };
    }

    fn drop_sweep(&mut self, at: usize) -> Slot {
        let sweep = self.sweeps.remove(at);
        self.brokers.stop(sweep.consumer);
        sweep.slot
    }

    /// Ends the sweep of a consumer. Its log.
    pub(crate) fn end_sweep(&mut self, consumer: ConsumerId) -> Option<LogId> {
        let at = self
            .sweeps
            .iter()
            .position(|sweep| sweep.consumer == consumer)?;
        let log = self.sweeps[at].log;
        self.drop_sweep(at);
        Some(log)
    }

    pub(crate) fn end_sweeps_of(&mut self, log: LogId) {
        while let Some(at) = self.sweeps.iter().position(|sweep| sweep.log == log) {
            self.drop_sweep(at);
        }
    }

    /// Takes note whether a reader is behind, and would take what comes.
    pub(crate) fn place_reader(&mut self, key: ReaderKey) {
        let is_behind = |reader: &Reader| {
            let log = self.logs.get(&reader.log);
            let place = place_of(reader.next).0;
            log.is_some_and(|log| place < log.scan.newest.first && place >= log.first())
        };
        let reader = self.readers.get(&key);
        if reader.is_some_and(|reader| reader.is_hungry() && is_behind(reader)) {
            self.work.behind.insert(key);
        } else {
            self.work.behind.remove(&key);
        }
    }
}

impl Log {
    /// A record that was read before, with its marks.
    fn entry_again(&self, record: &Record) -> Entry {
        if self.topics.is_some() && record.offset == Offset(0) {
            return Entry::void(record);
        }
        let Some(found) = read(record, self.id) else {
            // Input: bytes that are no batch of the log.
            return Entry::lost(record);
        };
        Entry::of(record, &found, self.scan.marks.of(record.offset))
    }
}
