//! A storage whose appends take a known time each, one after another: a node of known capacity, for
//! experiments and tests. The time may change on a timetable, which begins with the first append.
//!
//! An append waits in one line until it has been served, and is then handed to the storage inside,
//! which must answer at its next poll, as one in memory does. Everything else is handed on as it comes; in particular reads take no
//! time.
//!
//! - Appends reach the storage inside in the order of the calls, and what is refused here for want of
//!   room is told in its turn too, so answers to one log keep that order.
//! - A service begins where the one before ended, however late that was polled: while the line is never
//!   empty, exactly one append is done in each service time.
//! - The line is bounded by bytes, as what waits for a journal is.

use super::precise_timer::PreciseTimer;
use super::service_times::ServiceTimes;
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Refusal, Tag, Trouble};
use airmail_model::{Mono, Now};
use std::collections::VecDeque;
use std::time::Duration;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ThrottledStorage<S> {
    inside: S,
    service: ServiceTimes,
    /// When the first append came, if one has.
    began: Option<Mono>,
    /// Bytes that the line may hold, unless one batch alone has more.
    line_bytes_max: u64,
    line: VecDeque<Waiting>,
    line_bytes: u64,
    /// Number of appends at the line's end that were not there at the last poll.
    fresh: usize,
    /// When the service before the line's head ended.
    free_at: Mono,
    /// Wakes whoever polls when a service ends. `None`: the deadline of the poll will do.
    timer: Option<PreciseTimer>,
    /// Asked to close; what waits is served no more, but stored.
    closing: bool,
    /// The storage inside has been asked, too.
    handed_close: bool,
}

/// An append in the line.
#[derive(Debug)]
struct Waiting {
    since: Mono,
    what: What,
}

#[derive(Debug)]
enum What {
    /// To be served.
    Append { call: Call, bytes: u64 },
    /// Refused; takes no service.
    Refused { t: Tag, why: Refusal },
}

impl<S> ThrottledStorage<S> {
    /// In front of a storage; `line_bytes_max` bounds what waits.
    pub(super) fn new(
        inside: S,
        service: ServiceTimes,
        line_bytes_max: u64,
    ) -> ThrottledStorage<S> {
        ThrottledStorage {
            inside,
            service,
            began: None,
            line_bytes_max,
            line: VecDeque::new(),
            line_bytes: 0,
            fresh: 0,
            free_at: Mono(0),
            timer: None,
            closing: false,
            handed_close: false,
        }
    }

    /// The same, which wakes whoever polls when a service ends: where few appends wait, the next one
    /// comes only after that, and any lateness would be a longer service.
    pub(super) fn on_time(self, timer: PreciseTimer) -> ThrottledStorage<S> {
        let timer = Some(timer);
        ThrottledStorage { timer, ..self }
    }

    fn wait(&mut self, what: What) {
        // A call does not know the time: the poll that follows it does.
        let since = Mono(0);
        self.line.push_back(Waiting { since, what });
        self.fresh += 1;
    }

    /// When the line's head is done. `None` of an empty line.
    fn due(&self) -> Option<Mono> {
        let head = self.line.front()?;
        let begun = self.free_at.max(head.since);
        Some(match head.what {
            What::Append { .. } => begun.plus(self.service_at(begun)),
            What::Refused { .. } => begun,
        })
    }

    /// Time of an append whose service begins then.
    fn service_at(&self, begun: Mono) -> Duration {
        let since_first = self.began.map(|began| begun.since(began));
        self.service.at(since_first.unwrap_or_default())
    }

    /// Time that the line takes, if its services stay as long as the present one.
    fn length(&self) -> Duration {
        let waiting = u32::try_from(self.line.len()).unwrap_or(u32::MAX);
        self.service_at(self.free_at).saturating_mul(waiting)
    }
}

impl<S: LogStorage> ThrottledStorage<S> {
    /// Hands on what has been served by now; when the next one will have been.
    fn serve(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh > 0 {
            self.began.get_or_insert(now.mono);
        }
        for waiting in self.line.iter_mut().rev().take(fresh) {
            waiting.since = now.mono;
        }
        while let Some(due) = self.due() {
            if due > now.mono && !self.closing {
                return Some(due);
            }
            match self.line.pop_front()?.what {
                What::Append { call, bytes } => {
                    self.free_at = due;
                    self.line_bytes -= bytes;
                    self.inside.submit(call);
                }
                What::Refused { t, why } => {
                    // First the answers to those before it.
                    self.inside.poll(now, out);
                    out.push(Completion::Refused { t, why });
                }
            }
        }
        None
    }
}

impl<S: LogStorage> LogStorage for ThrottledStorage<S> {
    fn capabilities(&self) -> Capabilities {
        self.inside.capabilities()
    }

    fn submit(&mut self, call: Call) {
        let Call::Append { t, batch, .. } = &call else {
            return self.inside.submit(call);
        };
        let bytes = batch.bytes().len() as u64;
        if self.line_bytes > 0 && self.line_bytes + bytes > self.line_bytes_max {
            let (t, retry_after) = (*t, self.length());
            let why = Refusal::Busy { retry_after };
            self.wait(What::Refused { t, why });
        } else {
            self.line_bytes += bytes;
            self.wait(What::Append { call, bytes });
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let due = self.serve(now, out);
        if let (Some(timer), Some(due)) = (&mut self.timer, due) {
            timer.wake_at(due, now.mono);
        }
        if self.closing && !self.handed_close {
            // A storage that closes refuses what it has not looked at.
            self.inside.poll(now, out);
            self.inside.close(now);
            self.handed_close = true;
        }
        let inside = self.inside.poll(now, out);
        match (due, inside) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn opened(&mut self) {
        self.inside.opened();
    }

    fn close(&mut self, _now: Now) {
        self.closing = true;
    }

    fn is_closed(&self) -> bool {
        self.handed_close && self.line.is_empty() && self.inside.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.inside.trouble()
    }

    fn damage(&self) -> u64 {
        self.inside.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.inside.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.inside.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.inside.accept_clock(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_log::LogSpec;
    use airmail_log::memory::{self, MemoryStorage};
    use airmail_model::batch::BatchTarget;
    use airmail_model::{
        Batch, BatchEncoder, Checked, Durability, Lane, Limits, LogId, LogIndex, MapEpoch, Message,
        NamespaceId, TopicName, Wall,
    };

    const LOG: LogId = LogId {
        namespace: NamespaceId(1),
        lane: Lane::Normal,
        index: LogIndex(0),
    };
    const SERVICE: Duration = Duration::from_micros(1000);

    fn at(us: u64) -> Now {
        Now {
            mono: Mono(us * 1000),
            wall: Wall(0),
        }
    }

    /// A storage with its log open, in virtual time.
    struct World {
        storage: ThrottledStorage<MemoryStorage>,
        next: u64,
    }

    impl World {
        fn new(line_bytes_max: u64) -> World {
            World::with_times("1000", line_bytes_max)
        }

        fn with_times(times: &str, line_bytes_max: u64) -> World {
            let service = ServiceTimes::parse(times).unwrap();
            let inside = memory::open(1, at(0)).unwrap();
            let mut storage = ThrottledStorage::new(inside, service, line_bytes_max);
            let spec = LogSpec {
                epoch: MapEpoch(1),
                durability: Durability::MEMORY,
                ..LogSpec::default()
            };
            storage.submit(Call::Open {
                t: Tag(0),
                log: LOG,
                spec: Box::new(spec),
            });
            let mut world = World { storage, next: 1 };
            assert!(matches!(world.poll(0)[..], [Completion::Opened { .. }]));
            world
        }

        /// Appends so many batches, with tags from 1 on.
        fn append(&mut self, batches: u64) {
            for t in self.next..self.next + batches {
                let topic = TopicName::new("t", &Limits::DEFAULT).unwrap();
                let batch = batch(topic, t);
                self.storage.submit(Call::Append {
                    t: Tag(t),
                    log: LOG,
                    map: MapEpoch(1),
                    batch,
                    sole: false,
                });
            }
            self.next += batches;
        }

        fn poll(&mut self, us: u64) -> Vec<Completion> {
            let mut out = Vec::new();
            let mut found = 1;
            while found > 0 {
                let before = out.len();
                self.storage.poll(at(us), &mut out);
                found = out.len() - before;
            }
            out
        }

        /// Tags of what was stored, in order; there is to be nothing else.
        fn stored(&mut self, us: u64) -> Vec<u64> {
            let stored = self.poll(us).into_iter().map(|done| match done {
                Completion::Appended { t, .. } => t.0,
                other => panic!("{other:?}"),
            });
            stored.collect()
        }
    }

    fn batch(topic: TopicName, number: u64) -> Checked<Batch> {
        let mut encoder = BatchEncoder::new(LOG.namespace);
        let message = Message::new(topic, number.to_string());
        encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
        encoder.finish(&BatchTarget {
            log: LOG,
            epoch: MapEpoch(1),
            producer: None,
            producer_time: 0,
        })
    }

    #[test]
    fn appends_are_served_one_after_another_in_order() {
        let mut world = World::new(1 << 20);
        world.append(3);
        assert!(world.stored(0).is_empty());
        assert!(world.stored(999).is_empty());
        assert_eq!(world.stored(1000), [1]);
        assert_eq!(world.stored(2000), [2]);
        assert!(world.stored(2999).is_empty());
        assert_eq!(world.stored(3000), [3]);
    }

    #[test]
    fn a_busy_storage_has_its_exact_rate_however_late_it_is_polled() {
        let mut world = World::new(1 << 20);
        let mut done = 0;
        world.append(10);
        for ms in 0..1000 {
            world.append(1);
            // Between 0 and 2,400 microseconds late.
            done += world.stored(ms * 1000 + ms * 7 % 4 * 800).len() as u64;
        }
        done += world.stored(1_000_000).len() as u64;
        assert_eq!(done, 1000);
    }

    #[test]
    fn a_storage_that_was_idle_makes_up_for_nothing() {
        let mut world = World::new(1 << 20);
        world.append(1);
        assert!(world.stored(50_000).is_empty());
        world.append(1);
        assert_eq!(world.stored(51_000), [1]);
        assert!(world.stored(51_999).is_empty());
        assert_eq!(world.stored(52_000), [2]);
    }

    #[test]
    fn a_timetable_begins_with_the_first_append_and_keeps_a_service_that_has_begun() {
        let mut world = World::with_times("1000@0s,4000@10ms,500@20ms", 1 << 20);
        assert!(world.stored(70_000).is_empty());
        world.append(30);
        // Begins at 70 ms: ten of them, then one that takes 4 ms from 80 ms on, and two more.
        assert!(world.stored(70_000).is_empty());
        assert_eq!(world.stored(80_000).len(), 10);
        assert!(world.stored(83_999).is_empty());
        assert_eq!(world.stored(84_000), [11]);
        assert_eq!(world.stored(92_000), [12, 13]);
        assert_eq!(world.stored(94_000), [14, 15, 16, 17]);
    }

    #[test]
    fn it_says_when_the_next_one_is_done() {
        let mut world = World::new(1 << 20);
        world.append(1);
        let mut out = Vec::new();
        let deadline = world.storage.poll(at(70), &mut out);
        assert_eq!(deadline, Some(at(1070).mono));
        assert_eq!(world.stored(1070), [1]);
    }

    #[test]
    fn a_full_line_refuses_in_its_turn_and_says_how_long_it_is() {
        let bytes = batch(TopicName::new("t", &Limits::DEFAULT).unwrap(), 1)
            .bytes()
            .len() as u64;
        let mut world = World::new(2 * bytes);
        world.append(3);
        assert!(world.poll(0).is_empty());
        assert_eq!(world.stored(1000), [1]);
        let done = world.poll(2000);
        let [
            Completion::Appended { t: stored, .. },
            Completion::Refused { t, why },
        ] = &done[..]
        else {
            panic!("{done:?}");
        };
        assert_eq!((t, stored), (&Tag(3), &Tag(2)));
        let retry_after = 2 * SERVICE;
        assert_eq!(why, &Refusal::Busy { retry_after });
        world.append(1);
        assert!(world.stored(2000).is_empty());
        assert_eq!(world.stored(3000), [4]);
    }

    #[test]
    fn a_close_stores_what_waits_and_is_then_done() {
        let mut world = World::new(1 << 20);
        world.append(3);
        assert!(world.stored(0).is_empty());
        world.storage.close(at(0));
        assert!(!world.storage.is_closed());
        assert_eq!(world.stored(1), [1, 2, 3]);
        world.poll(1);
        assert!(world.storage.is_closed());
    }
}
