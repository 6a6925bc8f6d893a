//! A model of one log.

use airmail_log::conformance::{Maker, Seen};
use airmail_log::{GapWhy, Tag};
use airmail_model::{Batch, Checked, Extent, LogId, Sequence};
use std::collections::BTreeMap;

/// Number, topic, payload; long ones shortened, so that a failure can be read.
pub(crate) type Record = (u64, String, String);

/// A log as it must be.
#[derive(Debug)]
pub(crate) struct LogModel {
    pub(crate) first: u64,
    pub(crate) next: u64,
    pub(crate) producers: BTreeMap<u8, Producer>,
    batches: Vec<Held>,
    losses: Vec<Extent>,
}

#[derive(Debug)]
struct Held {
    extent: Extent,
    time: i64,
    records: Vec<Record>,
}

/// A producer as the log must know it.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    pub(crate) epoch: u32,
    pub(crate) next: u64,
    pub(crate) sent: Vec<(Checked<Batch>, Extent)>,
}

/// A record as the model has it.
pub(crate) fn shortened((number, topic, payload): (u64, String, Vec<u8>)) -> Record {
    let text = String::from_utf8_lossy(&payload);
    let mark = text.trim_end_matches('x');
    (number, topic, format!("{mark}x{}", text.len() - mark.len()))
}

impl Default for LogModel {
    fn default() -> LogModel {
        LogModel {
            first: 1,
            next: 1,
            producers: BTreeMap::new(),
            batches: Vec::new(),
            losses: Vec::new(),
        }
    }
}

impl LogModel {
    /// Makes the producer's next batch. Producer 0 is none.
    pub(crate) fn maker(&self, log: LogId, producer: u8) -> Maker {
        if producer == 0 {
            return Maker::new(log);
        }
        let known = self.producers.get(&producer);
        let (epoch, next) = known.map_or((0, 0), |known| (known.epoch, known.next));
        Maker::of(log, producer.into(), epoch + 1).at(next)
    }

    /// A batch was stored.
    pub(crate) fn store(&mut self, batch: &Checked<Batch>, extent: Extent, time: i64) {
        assert_eq!(
            extent,
            Extent::starting_at(Sequence(self.next), batch.numbers())
        );
        self.next = extent.next().0;
        let records = batch.iter().map(|record| {
            let number = extent.first.plus(record.index.into()).0;
            shortened((
                number,
                record.topic_name.to_owned(),
                record.payload.to_vec(),
            ))
        });
        let records = records.collect();
        self.batches.push(Held {
            extent,
            time,
            records,
        });
        if let Some(stamp) = batch.producer() {
            let producer = self.producers.entry(stamp.id.0 as u8).or_default();
            producer.next = stamp.sequence.0 + u64::from(batch.numbers());
            producer.sent.push((batch.clone(), extent));
        }
    }

    /// The log was trimmed, and says that `first` is its first number.
    pub(crate) fn trimmed(&mut self, first: u64, before: u64) {
        let before = before.min(self.next);
        let holds = |held: &&Held| held.extent.contains(Sequence(before));
        // What is in a batch together may stay together.
        let edge = self
            .batches
            .iter()
            .find(holds)
            .map_or(before, |held| held.extent.first.0);
        let expected = edge.max(self.first)..=before.max(self.first);
        assert!(
            expected.contains(&first),
            "trimmed to {first}, not into {expected:?}"
        );
        self.first = first;
    }

    /// Retention may have taken what is older than `oldest`, and only that.
    pub(crate) fn retained(&mut self, first: u64, oldest: i64) {
        assert!(first >= self.first, "{} has come back", self.first);
        for held in &self.batches {
            let number = held.extent.first.0;
            if number >= self.first && number < first {
                assert!(
                    held.time <= oldest + 20_000_000,
                    "{number} was taken too early"
                );
                assert!(held.extent.last.0 < first, "{number} was cut");
            }
            if held.extent.first.0 >= first {
                assert!(
                    held.time >= oldest - 20_000_000,
                    "{number} was left too long"
                );
            }
        }
        self.first = first;
    }

    /// Takes up the records found from the model's end on after a stop: some of those sent and
    /// never acknowledged.
    pub(crate) fn recovered(
        &mut self,
        tiles: &[Seen],
        sent: &[(Checked<Batch>, Tag)],
        exact: bool,
    ) {
        let mut sent = sent.iter();
        for tile in tiles {
            match tile {
                Seen::Batch(stored) => {
                    let found = sent.find(|(batch, _)| batch.bytes() == stored.batch.bytes());
                    let Some((batch, _)) = found else {
                        panic!("nobody has sent {:?}", tile.records());
                    };
                    self.store(batch, stored.extent, stored.appended.0);
                }
                Seen::Gap(extent, GapWhy::Loss) if !exact => {
                    assert_eq!(extent.first.0, self.next);
                    self.losses.push(*extent);
                    self.next = extent.next().0;
                }
                other => panic!("after a stop there was {other:?}"),
            }
        }
    }

    /// Every record that is kept.
    pub(crate) fn records(&self) -> Vec<Record> {
        let all = self.batches.iter().flat_map(|held| held.records.clone());
        all.filter(|(number, ..)| *number >= self.first).collect()
    }

    /// Whether a reader may be given this now.
    pub(crate) fn verify(&self, seen: &Seen, topic: Option<&str>) {
        let has = |held: &Held| topic.is_none_or(|t| held.records.iter().any(|r| r.1 == t));
        match seen {
            Seen::Effective(..) | Seen::WantsLost => panic!("nobody has said what is wanted"),
            Seen::Batch(stored) => {
                let held = self
                    .batches
                    .iter()
                    .find(|held| held.extent.first == stored.base);
                let Some(held) = held else {
                    panic!("nothing was stored at {}", stored.base);
                };
                // A part of it, where the reader begins or ends or the log was trimmed.
                let inside = |sequence| stored.extent.contains(sequence);
                let mine = |record: &&Record| inside(Sequence(record.0));
                let expected: Vec<_> = held.records.iter().filter(mine).cloned().collect();
                let records: Vec<_> = seen.records().into_iter().map(shortened).collect();
                assert_eq!(records, expected);
                assert!(stored.extent.last <= held.extent.last);
                assert_eq!(stored.appended.0, held.time);
                assert!(has(held), "{} has no {topic:?}", stored.base);
            }
            Seen::Gap(extent, GapWhy::Retention) => {
                assert!(
                    extent.last.0 < self.first,
                    "{extent:?} is kept from {} on",
                    self.first
                );
            }
            Seen::Gap(extent, GapWhy::Loss) => {
                for number in extent.first.0..=extent.last.0 {
                    assert!(self.lost(number), "{number} is not lost, of {seen:?}");
                }
            }
            Seen::Gap(extent, GapWhy::Unused) => {
                assert!(topic.is_some(), "{extent:?} is in scope");
                for held in &self.batches {
                    let apart = held.extent.last < extent.first || held.extent.first > extent.last;
                    assert!(apart || !has(held), "{:?} holds {topic:?}", held.extent);
                }
                for number in extent.first.0..=extent.last.0 {
                    assert!(!self.lost(number), "{number} is lost, and was not told");
                }
            }
            Seen::Tail(_) | Seen::Ended(_) => {}
            Seen::Sealed(..) => panic!("nobody has sealed it"),
        }
    }

    fn lost(&self, number: u64) -> bool {
        self.losses
            .iter()
            .any(|loss| loss.contains(Sequence(number)))
    }
}
