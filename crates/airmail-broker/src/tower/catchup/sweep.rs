//! Sweeps: where many are behind in one log, a reader goes from the rearmost of them to the tail, and the others
//! join it as it passes.
//!
//! With turns alone, several readers would go over the same stretch, each for some of them. So where as many wait
//! as [`SweepSettings::members`], the log is swept, and nobody else of it begins, with these exceptions:
//!
//! - Who is near the tail has a short way, and is not made to wait for those who have a long one.
//! - Who came behind a sweep waits for the next one, which begins some time after the one before, if there is a
//!   reader for it; where they are few, each gets a reader then. A sweep is not called back for them again and again,
//!   so everybody comes to the tail.
//!
//! Where many subscribe at once, they come over some time, and whoever is passed before he has come needs another
//! sweep. So a sweep begins when nobody has come for a moment, and is called back twice at most: where it has read
//! an eighth of its way, or before that when the next one would begin. That is less than a sweep more.
//!
//! Readers that a sweep will pass give way to it when they have had their turn. Wormhole has a leading reader that
//! others join, too (related work of RocketSpeed, section 2.2).
//!
//! Invariants: a log is held for its sweeps while it has one or gathers for it; a sweep reads everything.

use super::queue::HeldFor;
use crate::keys::{MemberKey, ReaderKey, TowerLogKey};
use crate::tower::{Tower, TowerEffects};
use airmail_model::{Mono, Sequence};
use std::collections::BTreeMap;
use std::time::Duration;

/// Part of its way after which a sweep looks back: one in so many.
const LOOK_BACK_AFTER: u64 = 8;
/// Number of times that it begins again for those who are behind it then.
const CALLED_BACK_MAX: u8 = 2;

/// Bounds of sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSettings {
    /// Number of members of a log that have to wait for a sweep to begin. Default 16.
    pub members: usize,
    /// Numbers before the tail at which a member does not wait for a sweep. Default 2^14.
    pub near: u64,
    /// Time between the beginnings of two sweeps of a log, and the longest time for which the first waits for more
    /// to come. Default 2 s.
    pub apart: Duration,
    /// Time for which nobody has to have come for the first to begin. Default 50 ms.
    pub calm: Duration,
}

impl Default for SweepSettings {
    fn default() -> SweepSettings {
        SweepSettings {
            members: 16,
            near: 1 << 14,
            apart: Duration::from_secs(2),
            calm: Duration::from_millis(50),
        }
    }
}

/// Somebody to begin to read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A member, and whoever is near.
    Member(MemberKey),
    /// All who wait in a log.
    Sweep(TowerLogKey),
}

/// One reader that sweeps.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// Where it began.
    from: Sequence,
    /// Number of times that it has begun again.
    called_back: u8,
    /// Whether it has looked back since it began.
    has_looked: bool,
}

/// The sweeps of a log. Without one, those who wait gather for the first.
#[derive(Debug)]
struct LogSweeps {
    readers: BTreeMap<ReaderKey, Sweep>,
    /// When the next may begin.
    next_at: Mono,
    /// When it may begin whoever comes.
    latest_at: Mono,
}

/// The sweeps of all logs.
#[derive(Debug, Default)]
pub(crate) struct Sweeps(BTreeMap<TowerLogKey, LogSweeps>);

impl Sweeps {
    /// The logs that are swept or gather for it, in order.
    pub(crate) fn logs(&self) -> impl Iterator<Item = TowerLogKey> + '_ {
        self.0.keys().copied()
    }

    /// Every reader that sweeps, with its log.
    pub(crate) fn readers(&self) -> impl Iterator<Item = (TowerLogKey, ReaderKey)> + '_ {
        let by_log = self.0.iter();
        by_log.flat_map(|(log, sweeps)| sweeps.readers.keys().map(|reader| (*log, *reader)))
    }

    fn has(&self, log: TowerLogKey, reader: ReaderKey) -> bool {
        let of_log = self.0.get(&log);
        of_log.is_some_and(|sweeps| sweeps.readers.contains_key(&reader))
    }

    /// A sweep of a log that has not come far, and may be called back.
    fn early(&self, log: TowerLogKey) -> Option<(ReaderKey, u8)> {
        let mut readers = self.0.get(&log)?.readers.iter();
        let early =
            readers.find(|(_, sweep)| !sweep.has_looked && sweep.called_back < CALLED_BACK_MAX);
        early.map(|(key, sweep)| (*key, sweep.called_back))
    }

    fn get_mut(&mut self, log: TowerLogKey, reader: ReaderKey) -> Option<&mut Sweep> {
        self.0.get_mut(&log)?.readers.get_mut(&reader)
    }

    /// A sweep is to begin at `next_at`, later if more come, but not after `latest_at`.
    fn expect(&mut self, log: TowerLogKey, next_at: Mono, latest_at: Mono) -> &mut LogSweeps {
        self.0.entry(log).or_insert(LogSweeps {
            readers: BTreeMap::new(),
            next_at,
            latest_at,
        })
    }

    fn begin(&mut self, log: TowerLogKey, reader: ReaderKey, sweep: Sweep, next_at: Mono) {
        let of_log = self.expect(log, next_at, next_at);
        (of_log.next_at, of_log.latest_at) = (next_at, next_at);
        of_log.readers.insert(reader, sweep);
    }

    /// Somebody has come who waits: the first sweep is put off until `next_at`.
    fn put_off(&mut self, log: TowerLogKey, next_at: Mono) {
        if let Some(of_log) = self
            .0
            .get_mut(&log)
            .filter(|of_log| of_log.readers.is_empty())
        {
            of_log.next_at = next_at.min(of_log.latest_at);
        }
    }

    /// A reader has ended; whether it was the last sweep of its log.
    fn end(&mut self, log: TowerLogKey, reader: ReaderKey) -> bool {
        let Some(of_log) = self.0.get_mut(&log) else {
            // Input: a reader of a log that is not swept.
            return false;
        };
        let was_sweep = of_log.readers.remove(&reader).is_some();
        let is_last = was_sweep && of_log.readers.is_empty();
        if is_last {
            self.0.remove(&log);
        }
        is_last
    }
}

impl Tower {
    /// Has those who wait gather for a sweep where they are many, and wait no longer where they are not.
    pub(super) fn gather(&mut self) {
        let SweepSettings {
            members: many,
            apart,
            calm,
            ..
        } = self.config.catch_up_sweeps;
        let now = self.now.mono;
        while let Some(oldest) = self.members.oldest() {
            let log = self.members[oldest].log;
            if self.members.queued_of(log) < many {
                break;
            }
            self.sweeps
                .expect(log, now.plus(calm.min(apart)), now.plus(apart));
            self.members.hold(log, HeldFor::Sweep);
        }
        let gathering = self
            .sweeps
            .0
            .iter()
            .filter(|(_, of_log)| of_log.readers.is_empty());
        let few = gathering.filter(|(log, _)| self.members.queued_of(**log) < many);
        for log in few.map(|(log, _)| *log).collect::<Vec<_>>() {
            self.sweeps.0.remove(&log);
            self.members.release(log, HeldFor::Sweep);
        }
    }

    /// Somebody waits in a log who has just come.
    pub(super) fn has_come(&mut self, log: TowerLogKey) {
        let next_at = self.now.mono.plus(self.config.catch_up_sweeps.calm);
        self.sweeps.put_off(log, next_at);
    }

    /// When the next sweep is due, if somebody waits for it.
    pub(super) fn next_sweep(&self) -> Option<Mono> {
        let waited = self.sweeps.0.iter();
        let waited = waited.filter(|(log, _)| self.members.queued_of(**log) > 0);
        let times = waited.map(|(_, of_log)| of_log.next_at);
        // One that is due already waits for a reader, and not for a time.
        times.filter(|at| *at > self.now.mono).min()
    }

    /// The next one to begin to read for, once there is a reader for it.
    pub(super) fn next_to_begin(&self) -> Option<Beginning> {
        for log in self.sweeps.logs() {
            if self.members.is_held_but_for_sweeps(log) {
                continue;
            }
            if let Some(key) = self.rearmost_near_tail(log) {
                return Some(Beginning::Member(key));
            }
            if self.is_next_sweep_due(log) {
                let is_many = self.members.queued_of(log) >= self.config.catch_up_sweeps.members;
                let rearmost = self.members.rearmost(log);
                return match rearmost.filter(|_| !is_many) {
                    Some(alone) => Some(Beginning::Member(alone)),
                    None => Some(Beginning::Sweep(log)),
                };
            }
        }
        self.members.oldest().map(Beginning::Member)
    }

    /// Number of readers that others are to make place for, at most: one for each member, and for each log where
    /// somebody is near the tail or the first sweep is due.
    pub(super) fn waiting_for_turn(&self) -> usize {
        let due = self.sweeps.0.iter().filter(|(log, of_log)| {
            let is_first = of_log.readers.is_empty();
            !self.members.is_held_but_for_sweeps(**log)
                && (self.rearmost_near_tail(**log).is_some()
                    || is_first && self.is_next_sweep_due(**log))
        });
        self.members.ready() + due.count()
    }

    /// Begins the next sweep of a log, which is due. One that has not come far is called back for it.
    pub(super) fn begin_next_sweep(&mut self, log: TowerLogKey, out: &mut TowerEffects) {
        match self.sweeps.early(log) {
            Some((key, called_back)) => self.call_back(key, called_back, out),
            None => self.begin_sweep(log, 0, out),
        }
    }

    /// Has a sweep begin again at the rearmost of those who wait.
    fn call_back(&mut self, key: ReaderKey, called_back: u8, out: &mut TowerEffects) {
        let log = self.readers[key].log;
        self.stop_reading(key, out);
        self.disband(key);
        self.begin_sweep(log, called_back + 1, out);
    }

    /// Begins a sweep of a log in which somebody waits; by a reader that is there, if none who waits is behind it.
    fn begin_sweep(&mut self, log: TowerLogKey, called_back: u8, out: &mut TowerEffects) {
        let Some(rearmost) = self.members.rearmost(log) else {
            // Input: a sweep that was called back, whose members have all left.
            return;
        };
        let from = self.members[rearmost].at;
        let behind = self.readers.active_readers().filter(|(key, reader)| {
            reader.log == log && reader.position <= from && !self.sweeps.has(log, *key)
        });
        let behind = behind.min_by_key(|(key, reader)| (reader.position, *key));
        let reader = match behind.map(|(key, reader)| (key, reader.topic)) {
            Some((key, None)) => key,
            Some((key, Some(_))) => {
                self.exchange(key, None, out);
                key
            }
            None => self.start_reader(rearmost, None, out),
        };
        let sweep = Sweep {
            from: self.readers[reader].position,
            called_back,
            has_looked: false,
        };
        let next_at = self.now.mono.plus(self.config.catch_up_sweeps.apart);
        self.sweeps.begin(log, reader, sweep, next_at);
        self.stats.sweeps += 1;
        self.members.hold(log, HeldFor::Sweep);
        self.pick_up(reader);
    }

    /// A reader has ended: its log is swept no longer, if it was the last.
    pub(super) fn end_sweep(&mut self, log: TowerLogKey, reader: ReaderKey) {
        if self.sweeps.end(log, reader) {
            self.members.release(log, HeldFor::Sweep);
        }
    }

    /// Whether a reader sweeps its log.
    pub(super) fn sweeps(&self, key: ReaderKey) -> bool {
        self.sweeps.has(self.readers[key].log, key)
    }

    /// Whether a sweep comes behind a reader, which then need not go on.
    pub(super) fn will_be_passed(&self, key: ReaderKey) -> bool {
        let reader = &self.readers[key];
        let mut of_log = self.sweeps.readers().filter(|(log, _)| *log == reader.log);
        !self.sweeps(key)
            && !self.is_near_tail(reader.log, reader.position)
            && of_log.any(|(_, sweep)| self.readers[sweep].position <= reader.position)
    }

    /// Has a sweep begin again, where it has read an eighth of its way and many wait behind it.
    pub(super) fn look_back(&mut self, key: ReaderKey, out: &mut TowerEffects) {
        let (log, position) = (self.readers[key].log, self.readers[key].position);
        let here = self.logs[log].here();
        let Some(sweep) = self.sweeps.get_mut(log, key) else {
            // Input: a reader that does not sweep.
            return;
        };
        let since = |at: Sequence| at.0.saturating_sub(sweep.from.0);
        let (way, done) = (since(here), since(position));
        if sweep.has_looked || done < way / LOOK_BACK_AFTER {
            return;
        }
        sweep.has_looked = true;
        let called_back = sweep.called_back;
        let many = self.config.catch_up_sweeps.members;
        let behind = self.members.near(log, Sequence(0), position.before(), many);
        if called_back < CALLED_BACK_MAX && behind.count() >= many {
            self.call_back(key, called_back, out);
        }
    }

    /// Number up to which a reader takes in who waits: not who is near the tail, if it has still a long way.
    pub(super) fn reach(&self, key: ReaderKey) -> Sequence {
        let (log, position) = (self.readers[key].log, self.readers[key].position);
        let to = position.plus(self.config.catch_up_span);
        if !self.sweeps(key) || self.is_near_tail(log, position) {
            return to;
        }
        to.min(self.near_tail_from(log).before())
    }

    fn near_tail_from(&self, log: TowerLogKey) -> Sequence {
        let here = self.logs[log].here();
        Sequence(here.0.saturating_sub(self.config.catch_up_sweeps.near))
    }

    fn is_near_tail(&self, log: TowerLogKey, at: Sequence) -> bool {
        at >= self.near_tail_from(log)
    }

    fn rearmost_near_tail(&self, log: TowerLogKey) -> Option<MemberKey> {
        let from = self.near_tail_from(log);
        self.members.near(log, from, Sequence::MAX, 1).next()
    }

    fn is_next_sweep_due(&self, log: TowerLogKey) -> bool {
        let (Some(of_log), Some(rearmost)) = (self.sweeps.0.get(&log), self.members.rearmost(log))
        else {
            // Input: a log in which nobody waits.
            return false;
        };
        let mut readers = of_log.readers.keys();
        let at = self.members[rearmost].at;
        of_log.next_at <= self.now.mono && readers.all(|key| self.readers[*key].position > at)
    }
}
