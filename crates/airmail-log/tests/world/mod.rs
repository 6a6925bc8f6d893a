//! A model of two logs, and the calls that are made on them and on a storage.

mod log;

use airmail_log::conformance::{Driver, End, Maker, Seen, Subject, log, spec};
use airmail_log::{Call, Completion, LogSpec, ReaderId, Refusal, Scope, ScopeFilter};
use airmail_model::{Batch, Checked, Durability, Retention, Sequence, Synced, TopicName};
use log::{LogModel, Producer, shortened};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// Topics of every log.
pub(crate) const TOPICS: [&str; 4] = ["a", "b", "cc", "ddd"];

/// One call, or a few. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Appends, waited for.
    Append {
        log: u16,
        producer: u8,
        topics: Vec<u8>,
        bytes: u16,
    },
    /// Appends that nobody waits for, until the next action.
    Burst {
        log: u16,
        producer: u8,
        count: u8,
        bytes: u16,
    },
    /// Sends something that was stored once more.
    Retry { log: u16, producer: u8, which: u8 },
    /// Sends something after a hole.
    Skip { log: u16, producer: u8, ahead: u8 },
    /// A new life of a producer, and then something of the former one.
    Renew { log: u16, producer: u8 },
    /// Starts a reader.
    Read {
        log: u16,
        from: u16,
        topic: Option<u8>,
        until: Option<u16>,
        credit: u16,
    },
    /// Lets a reader go on.
    Credit { reader: u8, bytes: u16 },
    /// Ends a reader.
    Stop { reader: u8 },
    /// Gives up a part of a log.
    Trim { log: u16, before: u16 },
    /// Lets time pass; log 0 forgets what is older than 1,000 s.
    Sleep { seconds: u16 },
    /// Log 1 is kept for another while, longer than it lives.
    Respec { shift: u8 },
    /// Reads everything.
    Compare,
    /// Ends the storage and opens it again, perhaps with a burst under way.
    Reopen { crash: bool, burst: u8 },
}

/// Sequences of up to `most` actions.
pub(crate) fn actions(most: usize) -> impl Strategy<Value = Vec<Action>> {
    let log = 0..2u16;
    let producer = 0..4u8;
    let bytes = prop_oneof![4 => 0..200u16, 1 => 0..6000u16];
    let topics = proptest::collection::vec(0..4u8, 1..6);
    let action = prop_oneof![
        10 => (log.clone(), producer.clone(), topics, bytes.clone())
            .prop_map(|(log, producer, topics, bytes)| Action::Append { log, producer, topics, bytes }),
        6 => (log.clone(), producer.clone(), 1..30u8, bytes)
            .prop_map(|(log, producer, count, bytes)| Action::Burst { log, producer, count, bytes }),
        3 => (log.clone(), producer.clone(), any::<u8>())
            .prop_map(|(log, producer, which)| Action::Retry { log, producer, which }),
        1 => (log.clone(), producer.clone(), any::<u8>())
            .prop_map(|(log, producer, ahead)| Action::Skip { log, producer, ahead }),
        1 => (log.clone(), producer).prop_map(|(log, producer)| Action::Renew { log, producer }),
        4 => (
            log.clone(),
            any::<u16>(),
            proptest::option::of(0..5u8),
            proptest::option::weighted(0.2, any::<u16>()),
            any::<u16>(),
        )
            .prop_map(|(log, from, topic, until, credit)| {
                Action::Read { log, from, topic, until, credit }
            }),
        4 => (any::<u8>(), any::<u16>()).prop_map(|(reader, bytes)| Action::Credit { reader, bytes }),
        1 => any::<u8>().prop_map(|reader| Action::Stop { reader }),
        2 => (log, any::<u16>()).prop_map(|(log, before)| Action::Trim { log, before }),
        1 => (0..600u16).prop_map(|seconds| Action::Sleep { seconds }),
        1 => (0..4u8).prop_map(|shift| Action::Respec { shift }),
        1 => Just(Action::Compare),
        2 => (any::<bool>(), 0..20u8).prop_map(|(crash, burst)| Action::Reopen { crash, burst }),
    ];
    proptest::collection::vec(action, 1..most)
}

/// The model of all, and the readers that are being followed.
pub(crate) struct World {
    logs: Vec<LogModel>,
    readers: Vec<Followed>,
    count: u64,
}

struct Followed {
    r: ReaderId,
    log: usize,
    topic: Option<String>,
    until: Option<u64>,
}

/// Log 0 is as durable as there is and kept 1,000 s; log 1 as weak as there is, kept for ever.
fn spec_of(log: usize, strongest: Durability) -> LogSpec {
    let durability = if log == 0 {
        strongest
    } else {
        Durability::single(Synced::Os.min(strongest.synced))
    };
    let time_ms = (log == 0).then_some(1_000_000);
    LogSpec {
        retention: Retention {
            time_ms,
            bytes: None,
        },
        ..spec(durability)
    }
}

impl World {
    /// Opens the logs.
    pub(crate) fn new<S: Subject>(d: &mut Driver<'_, S>) -> World {
        let strongest = d.capabilities().strongest;
        for index in 0..2 {
            d.open_with(log(index as u16), &spec_of(index, strongest));
        }
        World {
            logs: vec![LogModel::default(), LogModel::default()],
            readers: Vec::new(),
            count: 0,
        }
    }

    /// Does it, and compares.
    pub(crate) fn play<S: Subject>(&mut self, d: &mut Driver<'_, S>, action: Action) {
        match action {
            Action::Append {
                log,
                producer,
                topics,
                bytes,
            } => {
                let topics = topics.iter().map(|&topic| TOPICS[topic as usize]);
                let batch = self.batch(log, producer, topics.collect(), bytes);
                let answer = d.offer(&batch);
                self.stored(log, &batch, &answer);
            }
            Action::Burst {
                log,
                producer,
                count,
                bytes,
            } => {
                let sent = self.burst(d, log, producer, count, bytes);
                for (batch, tag) in sent {
                    let answer = d.answer(tag);
                    self.stored(log, &batch, &answer);
                }
            }
            Action::Retry {
                log,
                producer,
                which,
            } => self.retry(d, log, producer, which),
            Action::Skip {
                log,
                producer,
                ahead,
            } => self.skip(d, log, producer, ahead),
            Action::Renew { log, producer } => self.renew(d, log, producer),
            Action::Read {
                log,
                from,
                topic,
                until,
                credit,
            } => {
                self.read(d, log, from, topic, until, credit.into());
            }
            Action::Credit { reader, bytes } => {
                if let Some(followed) = pick(&self.readers, reader) {
                    d.credit(followed.r, bytes.into());
                }
            }
            Action::Stop { reader } => {
                if let Some(followed) = pick(&self.readers, reader) {
                    d.stop(followed.r);
                }
            }
            Action::Trim { log, before } => self.trim(d, log, before),
            Action::Sleep { seconds } => {
                // The interval of retention is passed in any case.
                d.sleep(Duration::from_secs(u64::from(seconds) + 10));
                let oldest = d.now().wall.0 - 1_010_000_000;
                let bounds = d.bounds(log(0));
                self.logs[0].retained(bounds.first.0, oldest);
            }
            Action::Respec { shift } => {
                let mut spec = spec_of(1, d.capabilities().strongest);
                spec.retention.time_ms = (shift > 0).then_some(1 << (40 + shift));
                d.open_with(log(1), &spec);
            }
            Action::Compare => self.compare(d),
            Action::Reopen { crash, burst } => self.reopen(d, crash, burst),
        }
        self.follow(d);
    }

    /// Every reader gets everything it is owed.
    pub(crate) fn finish<S: Subject>(&mut self, d: &mut Driver<'_, S>) {
        for followed in &self.readers {
            d.credit(followed.r, u32::MAX);
        }
        self.follow(d);
        for followed in &self.readers {
            let end = self.logs[followed.log].next;
            let end = followed.until.map_or(end, |until| until.min(end));
            assert!(
                d.next_of(followed.r).0 >= end,
                "{:?} did not come to {end}",
                followed.r
            );
        }
        self.compare(d);
        self.reopen(d, true, 0);
        self.compare(d);
    }

    fn batch(&mut self, index: u16, producer: u8, topics: Vec<&str>, bytes: u16) -> Checked<Batch> {
        let maker = self.logs[index as usize].maker(log(index), producer);
        self.of(maker, topics, bytes)
    }

    fn of(&mut self, maker: Maker, topics: Vec<&str>, bytes: u16) -> Checked<Batch> {
        self.count += 1;
        let payloads: Vec<String> = (0..topics.len())
            .map(|n| format!("{} {n} {}", self.count, "x".repeat(bytes.into())))
            .collect();
        let payloads = payloads.iter().map(String::as_str);
        maker.batch(&topics.into_iter().zip(payloads).collect::<Vec<_>>())
    }

    fn burst<S: Subject>(
        &mut self,
        d: &mut Driver<'_, S>,
        index: u16,
        producer: u8,
        count: u8,
        bytes: u16,
    ) -> Vec<(Checked<Batch>, airmail_log::Tag)> {
        let mut maker = self.logs[index as usize].maker(log(index), producer);
        let mut sent = Vec::new();
        for n in 0..usize::from(count) {
            let batch = self.of(maker, vec![TOPICS[n % 4], "burst"], bytes);
            if let Some(stamp) = &mut maker.producer {
                stamp.sequence.0 += 2;
            }
            sent.push((batch.clone(), d.send(&batch)));
        }
        sent
    }

    fn stored(&mut self, log: u16, batch: &Checked<Batch>, answer: &Completion) {
        match answer {
            Completion::Appended {
                extent,
                at,
                duplicate: false,
                ..
            } => {
                self.logs[log as usize].store(batch, *extent, at.0);
            }
            other => panic!("an append was answered with {other:?}"),
        }
    }

    fn retry<S: Subject>(&mut self, d: &mut Driver<'_, S>, index: u16, producer: u8, which: u8) {
        let Some(producer) = self.logs[index as usize].producers.get(&producer) else {
            return;
        };
        // As many as the journal remembers.
        let recent = &producer.sent[producer.sent.len().saturating_sub(16)..];
        if let Some((batch, extent)) = pick(recent, which) {
            assert_eq!(d.duplicate(batch), *extent);
        }
    }

    fn skip<S: Subject>(&mut self, d: &mut Driver<'_, S>, index: u16, producer: u8, ahead: u8) {
        let mut maker = self.logs[index as usize].maker(log(index), producer);
        let Some(stamp) = &mut maker.producer else {
            return;
        };
        let expected = stamp.sequence;
        stamp.sequence.0 += u64::from(ahead) + 1;
        let found = stamp.sequence;
        let batch = self.of(maker, vec!["a"], 0);
        match d.refused(&batch) {
            Refusal::UnknownProducer => assert_eq!(expected.0, 0),
            Refusal::OutOfOrder {
                expected: told,
                found: came,
            } => {
                assert_eq!((told, came), (expected, found));
            }
            other => panic!("a hole was answered with {other:?}"),
        }
    }

    fn renew<S: Subject>(&mut self, d: &mut Driver<'_, S>, index: u16, producer: u8) {
        let model = &mut self.logs[index as usize];
        let former = model.maker(log(index), producer);
        let Some(known) = model.producers.get_mut(&producer) else {
            return;
        };
        let epoch = known.epoch + 1;
        *known = Producer {
            epoch,
            ..Producer::default()
        };
        let batch = self.batch(index, producer, vec!["a"], 0);
        let answer = d.offer(&batch);
        self.stored(index, &batch, &answer);
        let batch = self.of(former, vec!["a"], 0);
        assert_eq!(d.refused(&batch), Refusal::Fenced);
    }

    fn read<S: Subject>(
        &mut self,
        d: &mut Driver<'_, S>,
        index: u16,
        from: u16,
        topic: Option<u8>,
        until: Option<u16>,
        credit: u32,
    ) {
        let next = self.logs[index as usize].next;
        let from = 1 + u64::from(from) % (next + 3);
        let until = until.map(|until| 1 + u64::from(until) % (next + 3));
        let names = ["a", "b", "cc", "ddd", "never"];
        let topic = topic.map(|topic| names[topic as usize].to_owned());
        let filter = match &topic {
            Some(name) => ScopeFilter::Topic(TopicName::hash_of(log(index).namespace, name)),
            None => ScopeFilter::All,
        };
        let scope = Scope {
            filter,
            until: until.map(Sequence),
            ..Scope::default()
        };
        let r = d.read(log(index), from, scope, credit);
        self.readers.push(Followed {
            r,
            log: index.into(),
            topic,
            until,
        });
    }

    fn trim<S: Subject>(&mut self, d: &mut Driver<'_, S>, index: u16, before: u16) {
        let model = &mut self.logs[index as usize];
        let before = u64::from(before) % (model.next + 2);
        let answer = d.ask(|t| Call::Trim {
            t,
            log: log(index),
            before: Sequence(before),
        });
        assert!(matches!(answer, Completion::Done { .. }), "{answer:?}");
        model.trimmed(d.bounds(log(index)).first.0, before);
    }

    fn reopen<S: Subject>(&mut self, d: &mut Driver<'_, S>, crash: bool, burst: u8) {
        self.follow(d);
        let mut bursts = Vec::new();
        if crash {
            for (index, producer) in [(0, 0), (1, 1)] {
                bursts.push(self.burst(d, index, producer, burst, 100));
            }
        }
        self.readers.clear();
        d.reopen(if crash { End::Crash } else { End::Clean });
        let strongest = d.capabilities().strongest;
        if !d.outlives() {
            *self = World {
                count: self.count,
                ..World::new(d)
            };
            return;
        }
        for index in 0..2 {
            let spec = spec_of(index, strongest);
            let bounds = d.open_with(log(index as u16), &spec);
            let model = &mut self.logs[index];
            if index == 0 {
                model.retained(bounds.first.0, d.now().wall.0 - 990_000_000);
            }
            assert_eq!(bounds.first.0, model.first);
            let exact = !crash || spec.durability == Durability::FSYNC;
            let reader = d.read_all(log(index as u16), model.next);
            let tiles = d.tiles(reader);
            let sent = bursts.get(index).map_or(&[][..], |sent| &sent[..]);
            model.recovered(&tiles, sent, exact);
            assert_eq!(model.next, bounds.next.0);
            d.stop(reader);
        }
    }

    fn compare<S: Subject>(&mut self, d: &mut Driver<'_, S>) {
        for index in 0..2 {
            let model = &self.logs[index];
            let bounds = d.bounds(log(index as u16));
            assert_eq!((bounds.first.0, bounds.next.0), (model.first, model.next));
            let reader = d.read_all(log(index as u16), 1);
            let mut records = Vec::new();
            for tile in d.tiles(reader) {
                model.verify(&tile, None);
                records.extend(tile.records().into_iter().map(shortened));
            }
            assert_eq!(records, model.records());
            assert_eq!(d.next_of(reader).0, model.next);
            d.stop(reader);
        }
    }

    fn follow<S: Subject>(&mut self, d: &mut Driver<'_, S>) {
        let mut ended = BTreeMap::new();
        for (place, followed) in self.readers.iter().enumerate() {
            for seen in d.seen(followed.r) {
                if let Seen::Ended(why) = &seen {
                    assert_eq!(*why, None);
                    ended.insert(place, ());
                }
                self.logs[followed.log].verify(&seen, followed.topic.as_deref());
            }
        }
        for place in ended.into_keys().rev() {
            self.readers.remove(place);
        }
    }
}

fn pick<T>(among: &[T], which: u8) -> Option<&T> {
    let count = among.len();
    (count > 0).then(|| &among[usize::from(which) % count])
}
