//! A link under random calls, delays and cuts, held against the log as it is in the storage at its far end.
//!
//! The storage refuses appends now and then, so that a first attempt may be stored and a second one refused. Its
//! line loses what is under way at a cut, or lets it come late, and loses ranges of readers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod log_contents;
mod wire;

use airmail_link::LinkLimits;
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::memory::{self, MemoryStorage};
use airmail_log::{
    Call, Completion, GapWhy, LogStorage, ReaderId, Refusal, Scope, ScopeFilter, Stored, Tag,
};
use airmail_model::{LogId, Mono, Now, Sequence, Wall};
use log_contents::{contents, records};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::Linked;
use wire::flaky::Flaky;
use wire::line::Weather;

/// Logs that are used.
const LOGS: u16 = 2;
/// Producers of each log.
const PRODUCERS: usize = 2;
/// Calls of each kind that a run makes, about.
const STEPS: usize = 400;
/// Polls after which a run that has not come to its end never will.
const POLLS_MAX: usize = 30_000;

/// A batch on its way: its payloads.
type Payloads = Vec<String>;

/// A producer of one log. It never tries a batch again: after a refusal it begins a new epoch, once all that it
/// has sent is answered.
#[derive(Debug)]
struct Producer {
    id: u64,
    log: LogId,
    epoch: u32,
    sequence: u64,
    in_flight: usize,
    is_halted: bool,
    /// A batch of this epoch was surely not stored, so none behind it may be.
    has_hole: bool,
}

/// A reader, and what it has been given.
#[derive(Debug)]
struct Reader {
    log: LogId,
    from: Sequence,
    next: Sequence,
    until: Option<Sequence>,
    records: BTreeMap<Sequence, String>,
    is_stopped: bool,
    has_ended: bool,
}

/// Somebody who uses a link, and knows what was said.
struct Run {
    link: Linked<Flaky<MemoryStorage>>,
    now: Now,
    random: u64,
    last: u64,
    producers: Vec<Producer>,
    readers: BTreeMap<ReaderId, Reader>,
    /// Appends that are not answered, by log, in order.
    order: BTreeMap<LogId, VecDeque<Tag>>,
    appends: BTreeMap<Tag, (Option<usize>, LogId, Payloads)>,
    /// Questions for bounds, and the end that was acknowledged before.
    questions: BTreeMap<Tag, (LogId, Sequence)>,
    opens: BTreeSet<Tag>,
    acknowledged: BTreeMap<LogId, BTreeMap<Sequence, String>>,
    unknown: BTreeSet<String>,
    refused: BTreeSet<String>,
}

impl Run {
    fn new(seed: u64, limits: LinkLimits, weather: Weather, has_towers: bool) -> Run {
        let now = Now {
            mono: Mono(1_000_000_000),
            wall: Wall(1_790_000_000_000_000),
        };
        let storage = Flaky::new(memory::open(1, now).unwrap(), seed);
        let producers = (0..LOGS).flat_map(|index| {
            (0..PRODUCERS).map(move |place| Producer {
                id: u64::from(index) * 100 + place as u64 + 1,
                log: log(index),
                epoch: 1,
                sequence: 0,
                in_flight: 0,
                is_halted: false,
                has_hole: false,
            })
        });
        Run {
            link: if has_towers {
                Linked::by_towers(storage, limits, weather, false)
            } else {
                Linked::by_line(storage, limits, weather, false)
            },
            now,
            random: seed,
            last: 0,
            producers: producers.collect(),
            readers: BTreeMap::new(),
            order: BTreeMap::new(),
            appends: BTreeMap::new(),
            questions: BTreeMap::new(),
            opens: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            unknown: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// A number below `bound`, at random.
    fn below(&mut self, bound: u64) -> u64 {
        wire::line::below(&mut self.random, bound)
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn any_log(&mut self) -> LogId {
        log(self.below(LOGS.into()) as u16)
    }

    fn end(&self, log: LogId) -> Sequence {
        let acknowledged = self.acknowledged.get(&log);
        let last = acknowledged.and_then(|records| records.last_key_value());
        last.map_or(Sequence::FIRST, |(last, _)| last.plus(1))
    }

    fn open_all(&mut self) {
        for index in 0..LOGS {
            let t = Tag(self.number());
            let spec = Box::new(spec(self.link.capabilities().strongest));
            self.opens.insert(t);
            self.link.submit(Call::Open {
                t,
                log: log(index),
                spec,
            });
        }
        while !self.opens.is_empty() {
            self.poll();
        }
    }

    fn step(&mut self) {
        match self.below(10) {
            0..=3 => self.publish(),
            4 => self.publish_plain(),
            5 => self.read(),
            6 => self.credit(),
            7 => self.stop(),
            8 => self.ask(),
            _ => {}
        }
        for _ in 0..self.below(3) {
            self.poll();
        }
    }

    fn payloads(&mut self, of: &str) -> Payloads {
        let records = self.below(3) + 1;
        let number = self.number();
        (0..records).map(|n| format!("{of}/{number}/{n}")).collect()
    }

    fn publish(&mut self) {
        let place = self.below(self.producers.len() as u64) as usize;
        let producer = &self.producers[place];
        if producer.is_halted {
            return;
        }
        let maker = Maker::of(producer.log, producer.id, producer.epoch).at(producer.sequence);
        let payloads = self.payloads(&format!("p{place}"));
        let producer = &mut self.producers[place];
        producer.sequence += payloads.len() as u64;
        producer.in_flight += 1;
        self.append(Some(place), &maker, payloads);
    }

    fn publish_plain(&mut self) {
        let maker = Maker::new(self.any_log());
        let payloads = self.payloads("plain");
        self.append(None, &maker, payloads);
    }

    fn append(&mut self, producer: Option<usize>, maker: &Maker, payloads: Payloads) {
        let records: Vec<_> = payloads.iter().map(|text| ("a", text.as_str())).collect();
        let batch = maker.batch(&records);
        let (t, log, map) = (Tag(self.number()), maker.log, batch.map_epoch());
        self.order.entry(log).or_default().push_back(t);
        self.appends.insert(t, (producer, log, payloads));
        self.link.submit(Call::Append {
            t,
            log,
            map,
            batch,
            sole: false,
        });
    }

    fn read(&mut self) {
        let log = self.any_log();
        let from = Sequence(self.below(self.end(log).0 + 3) + 1);
        let until = (self.below(3) == 0).then(|| from.plus(self.below(20)));
        let r = ReaderId(self.number());
        let filter = ScopeFilter::All;
        self.link.submit(Call::Read {
            r,
            log,
            from,
            scope: Box::new(Scope {
                filter,
                until,
                ..Scope::default()
            }),
            credit: self.random as u32 % 2_000,
        });
        let reader = Reader {
            log,
            from,
            next: from,
            until,
            records: BTreeMap::new(),
            is_stopped: false,
            has_ended: false,
        };
        self.readers.insert(r, reader);
    }

    fn any_reader(&mut self) -> Option<ReaderId> {
        let place = self.below(self.readers.len().max(1) as u64) as usize;
        self.readers.keys().nth(place).copied()
    }

    fn credit(&mut self) {
        if let Some(r) = self.any_reader() {
            let bytes = self.below(2_000) as u32;
            self.link.submit(Call::Credit { r, bytes });
        }
    }

    fn stop(&mut self) {
        if self.below(4) == 0
            && let Some(r) = self.any_reader()
        {
            self.readers.get_mut(&r).unwrap().is_stopped = true;
            self.link.submit(Call::Stop { r });
        }
    }

    fn ask(&mut self) {
        let log = self.any_log();
        let t = Tag(self.number());
        self.questions.insert(t, (log, self.end(log)));
        self.link.submit(Call::Bounds { t, log });
    }

    /// Polls once; whether there is nothing more to come by itself.
    fn poll(&mut self) -> bool {
        let (out, is_quiet) = self.link.turn(&mut self.now);
        for completion in out {
            self.told(completion);
        }
        is_quiet
    }

    fn told(&mut self, completion: Completion) {
        match completion {
            Completion::Opened { t, .. } => assert!(self.opens.remove(&t), "{t:?} is opened"),
            Completion::Bounds { t, bounds } => {
                let (log, end) = self.questions.remove(&t).expect("asked");
                assert!(bounds.next >= end, "{log} ends before what is stored there");
            }
            Completion::Appended { t, extent, .. } => {
                let (producer, log, payloads) = self.answered(t);
                assert_eq!(extent.numbers(), payloads.len() as u64);
                if let Some(place) = producer {
                    let has_hole = self.producers[place].has_hole;
                    assert!(!has_hole, "{payloads:?} is stored behind what was not");
                }
                let numbers = (extent.first.0..).map(Sequence);
                let records = self.acknowledged.entry(log).or_default();
                records.extend(numbers.zip(payloads));
            }
            Completion::Refused { t, why } => {
                let (producer, _, payloads) = self.answered(t);
                let is_unknown = why == Refusal::OutcomeUnknown;
                if is_unknown {
                    self.unknown.extend(payloads);
                } else {
                    self.refused.extend(payloads);
                }
                if let Some(place) = producer {
                    let producer = &mut self.producers[place];
                    producer.is_halted = producer.in_flight > 0;
                    producer.has_hole |= !is_unknown;
                    if producer.in_flight == 0 {
                        renew(producer);
                    }
                }
            }
            Completion::Gained { .. } | Completion::Lost { .. } => {}
            delivered => self.delivered(&delivered),
        }
    }

    /// An append is answered, in its turn.
    fn answered(&mut self, t: Tag) -> (Option<usize>, LogId, Payloads) {
        let append = self.appends.remove(&t).expect("appended, and not answered");
        let first = self.order.get_mut(&append.1).and_then(VecDeque::pop_front);
        assert_eq!(first, Some(t), "answered in the order of the calls");
        if let Some(place) = append.0 {
            let producer = &mut self.producers[place];
            producer.in_flight -= 1;
            if producer.is_halted && producer.in_flight == 0 {
                renew(producer);
            }
        }
        append
    }

    fn delivered(&mut self, completion: &Completion) {
        let r = completion.reader().expect("a reader's");
        let reader = self.readers.get_mut(&r).expect("started");
        assert!(
            !reader.has_ended,
            "{r:?} has ended, and gets {completion:?}"
        );
        match completion {
            Completion::Batch { stored, .. } => reader.take(r, stored),
            Completion::Gap { extent, why, .. } => {
                assert_eq!(*why, GapWhy::Unused, "{r:?}");
                assert_eq!(extent.first, reader.next, "{r:?} at {}", reader.next);
                reader.next = extent.next();
            }
            Completion::Tail { next, .. } => assert_eq!(*next, reader.next, "{r:?}"),
            Completion::Ended { why, .. } => {
                assert_eq!(*why, None, "{r:?}");
                let is_complete = reader.until.is_some_and(|until| reader.next >= until);
                assert!(reader.is_stopped || is_complete, "{r:?} ends too early");
                reader.has_ended = true;
            }
            other => panic!("{r:?} gets {other:?}"),
        }
    }

    /// Lets everything come to its end, without further cuts.
    fn finish(&mut self) {
        self.link.calm();
        let readers: Vec<_> = self.readers.keys().copied().collect();
        for r in readers {
            let bytes = u32::MAX;
            self.link.submit(Call::Credit { r, bytes });
        }
        let mut quiet = 0;
        for _ in 0..POLLS_MAX {
            quiet = if self.poll() { quiet + 1 } else { 0 };
            if quiet > 10 {
                let waits = (self.appends.len(), self.questions.len());
                assert_eq!(waits, (0, 0), "appends and questions without an answer");
                return;
            }
        }
        panic!("the link does not come to rest");
    }

    /// Holds what was said against what the storage has.
    fn check(self) {
        let Run {
            link,
            acknowledged,
            unknown,
            refused,
            readers,
            now,
            ..
        } = self;
        let mut storage = link.into_storage().into_storage();
        for index in 0..LOGS {
            let log = log(index);
            let stored = contents(&mut storage, log, now);
            let mut seen = BTreeSet::new();
            let said = acknowledged.get(&log).cloned().unwrap_or_default();
            for (number, payload) in &stored {
                assert!(seen.insert(payload), "{payload} is stored twice");
                assert!(
                    !refused.contains(payload),
                    "{payload} was refused, and is stored"
                );
                let is_known = said.get(number) == Some(payload) || unknown.contains(payload);
                assert!(is_known, "{payload} was not acknowledged as {number}");
            }
            for (number, payload) in &said {
                assert_eq!(
                    stored.get(number),
                    Some(payload),
                    "acknowledged as {number}"
                );
            }
            let last = stored
                .last_key_value()
                .map_or(Sequence(0), |(last, _)| *last);
            for (r, reader) in readers.iter().filter(|(_, reader)| reader.log == log) {
                let given = stored.range(reader.from..reader.next.max(reader.from));
                let given: BTreeMap<_, _> = given.map(|(n, of)| (*n, of.clone())).collect();
                assert_eq!(reader.records, given, "{r:?}");
                let is_at_end = reader.has_ended || reader.next > last;
                assert!(is_at_end, "{r:?} stands at {}, of {last}", reader.next);
            }
        }
    }
}

/// Begins a new epoch of a producer.
fn renew(producer: &mut Producer) {
    producer.epoch += 1;
    producer.sequence = 0;
    producer.is_halted = false;
    producer.has_hole = false;
}

impl Reader {
    fn take(&mut self, r: ReaderId, stored: &Stored) {
        let extent = stored.extent;
        let is_first = self.next == self.from;
        let fits = extent.first == self.next || is_first && extent.contains(self.next);
        assert!(fits, "{r:?} at {} gets {extent:?}", self.next);
        let records = records(stored.base, &stored.batch);
        let (from, next) = (self.from, extent.next());
        self.records
            .extend(records.filter(|(number, _)| *number >= from));
        self.next = next;
    }
}

/// Runs a seed; the number of logs that have moved from one tower to another.
fn run(seed: u64, limits: LinkLimits, weather: Weather, has_towers: bool) -> u64 {
    let mut run = Run::new(seed, limits, weather, has_towers);
    run.open_all();
    for _ in 0..STEPS {
        run.step();
    }
    run.finish();
    let moved = run.link.moved();
    run.check();
    moved
}

/// Bounds so small that appends are refused, readers cut off, and every queue is full.
fn narrow() -> LinkLimits {
    LinkLimits {
        append_bytes: 1_500,
        window_bytes: 300,
        reader_bytes: 100,
        marks: 4,
        ring_slots: 4,
        turn_messages: 3,
        ..LinkLimits::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_a_link_says_is_what_the_storage_has(
        seed in any::<u64>(),
        is_narrow in any::<bool>(),
        delay in 0..8u64,
        cuts in 5..60u64,
        is_late in any::<bool>(),
        holes in prop_oneof![Just(0), 5..30u64],
        room in 4..64usize,
    ) {
        let limits = if is_narrow { narrow() } else { LinkLimits::default() };
        let weather = Weather {
            seed,
            delay,
            cuts,
            cuts_max: u64::MAX,
            is_late,
            holes,
            room,
        };
        run(seed, limits, weather, false);
        run(seed, limits, weather, true);
    }
}

#[test]
fn logs_move_between_towers_all_the_time() {
    let moved = (0..20).map(|seed| {
        let weather = Weather {
            seed,
            delay: 5,
            cuts: 30,
            cuts_max: u64::MAX,
            is_late: true,
            holes: 20,
            room: 16,
        };
        run(seed, narrow(), weather, true)
    });
    let moved: u64 = moved.sum();
    assert!(moved > 200, "{moved}");
}
