//! A small data directory, the messages published into it, and the place of each record in its
//! files.

use super::subjects::{Kept, OnKept, tiny};
use airmail_log::conformance::{Driver, End, Maker, Seen, Subject, Watch, log};
use airmail_log::files::Files;
use airmail_log::journal::{CheckReport, JournalConfig, JournalStorage, Problem, check};
use airmail_log::memory::MemoryFiles;
use airmail_log::{Call, GapWhy, Scope, ScopeFilter};
use airmail_model::{Batch, Checked, Extent, Now, Sequence, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(crate) use airmail_log::conformance::End as Stop;

const LOGS: u16 = 3;
/// A topic that some batches have and some have not.
const TOPIC: &str = "c";
/// Size of the envelope before each batch in a segment.
const ENVELOPE: usize = 40;

type Record = (u16, u64);

/// Numbers that look random and never change.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// The files, and what is in them.
pub(crate) struct Directory {
    files: MemoryFiles,
    config: JournalConfig,
    published: BTreeMap<Record, (String, Vec<u8>)>,
    next: BTreeMap<u16, u64>,
    places: Vec<Place>,
}

/// Where a batch is.
struct Place {
    file: String,
    bytes: Range<usize>,
    index: u16,
    extent: Extent,
    /// Where each record's payload is in the file.
    payloads: Vec<(u64, Range<usize>)>,
}

/// Opens what is there, instead of something new.
struct Found {
    kept: OnKept,
    /// Damage that the journal found when it was opened.
    damage: Vec<Problem>,
}

impl Subject for Found {
    type Storage = JournalStorage<Watch<Kept>>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        let mut storage = self.kept.open(now);
        self.damage = storage.take_damage();
        storage
    }

    fn reopen(&mut self, storage: Self::Storage, end: End, now: Now) -> Self::Storage {
        self.kept.reopen(storage, end, now)
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        self.kept.busy()
    }

    fn wait(&mut self) {}
}

impl Directory {
    /// Writes one, and stops.
    pub(crate) fn written(stop: Stop) -> Directory {
        Directory::with_commands(stop, 0)
    }

    /// Writes a journal, with `commands` commands between each two batches.
    pub(crate) fn with_commands(stop: Stop, commands: usize) -> Directory {
        let config = tiny(JournalConfig::default());
        let mut subject = OnKept::new(config.clone());
        let mut d = Driver::new(&mut subject);
        let mut published = BTreeMap::new();
        let mut batches = Vec::new();
        for index in 0..LOGS {
            d.open(log(index));
        }
        for n in 0..150u64 {
            let index = (n % u64::from(LOGS)) as u16;
            let payloads: Vec<String> = (0..n % 4 + 1)
                .map(|m| format!("<{n}.{m} {}>", "x".repeat((n * 37 % 500) as usize)))
                .collect();
            let records: Vec<_> = payloads
                .iter()
                .enumerate()
                .map(|(m, payload)| (["a", "b", "c"][m % 3], payload.as_str()))
                .collect();
            let maker = Maker::of(log(index), 5, 1).at(sent(&published, index));
            let batch = maker.batch(&records);
            let extent = d.store(&batch);
            for (m, (topic, payload)) in records.iter().enumerate() {
                let record = (topic.to_string(), payload.as_bytes().to_vec());
                published.insert((index, extent.first.0 + m as u64), record);
            }
            batches.push((index, extent, batch));
            for _ in 0..commands {
                d.open(log(LOGS));
                d.ask(|t| Call::Delete {
                    t,
                    log: log(LOGS),
                    as_of: Sequence(0),
                    origin: Box::default(),
                });
            }
        }
        // Leaves the journal's own files as a stop leaves them, and nothing open.
        d.reopen(stop);
        drop(d);
        let files = subject.files.0.lock().clone();
        let mut directory = Directory {
            files,
            config,
            published,
            next: BTreeMap::new(),
            places: Vec::new(),
        };
        assert!(checked(&directory.files).is_sound());
        for (index, extent, batch) in &batches {
            directory.next.insert(*index, extent.next().0);
            directory.locate(*index, *extent, batch);
        }
        directory
    }

    /// Finds a batch in the files. Its payloads are unique, so it is there once, or twice where it
    /// was written once more.
    fn locate(&mut self, index: u16, extent: Extent, batch: &Checked<Batch>) {
        for (name, _) in self.files() {
            if !name.starts_with("seg-") {
                continue;
            }
            let contents = self.files.contents(&name).unwrap();
            let Some(at) = find(&contents, batch.bytes()) else {
                continue;
            };
            let payloads = batch.iter().map(|record| {
                let within = find(batch.bytes(), record.payload).unwrap();
                let number = extent.first.0 + u64::from(record.index);
                (number, at + within..at + within + record.payload.len())
            });
            self.places.push(Place {
                file: name,
                bytes: at..at + batch.bytes().len(),
                index,
                extent,
                payloads: payloads.collect(),
            });
        }
    }

    /// The files worth hitting: of the indexes, which are all alike, one for each segment.
    pub(crate) fn targets(&self) -> Vec<(String, usize)> {
        let mut files = self.files();
        files.retain(|(name, _)| !name.starts_with("idx-") || name.ends_with("1"));
        files
    }

    /// Every file's name and length.
    fn files(&self) -> Vec<(String, usize)> {
        let list = self.files.clone().list().unwrap();
        list.into_iter()
            .map(|(name, length)| (name.to_string(), length as usize))
            .collect()
    }

    /// One bit is not what was written.
    pub(crate) fn flipped(&self, name: &str, byte: usize, bit: usize) -> usize {
        self.flipped_all(&[(name.to_owned(), byte, bit)])
    }

    /// Bits of several files, by name and byte, are not what was written.
    pub(crate) fn flipped_all(&self, flips: &[(String, usize, usize)]) -> usize {
        let mut files = self.files.clone();
        let mut may = BTreeSet::new();
        for (name, byte, bit) in flips {
            let mut contents = files.contents(name).unwrap().to_vec();
            contents[*byte] ^= 1 << bit;
            files.put(name, &contents);
            may.extend(self.hit(name, *byte));
        }
        let (first, count) = (&flips[0], flips.len());
        let what = format!("{count} bits are flipped, the first {first:?}");
        self.verify(files, &what, &may)
    }

    /// Records that a change of this byte may destroy.
    fn hit(&self, name: &str, byte: usize) -> Vec<Record> {
        let hit = |place: &&Place| {
            place.file == name && (place.bytes.start - ENVELOPE..place.bytes.end).contains(&byte)
        };
        let Some(place) = self.places.iter().find(hit) else {
            return Vec::new();
        };
        let mut payloads = place.payloads.iter();
        match payloads.find(|(_, bytes)| bytes.contains(&byte)) {
            Some((number, _)) => vec![(place.index, *number)],
            None => place.records().collect(),
        }
    }

    /// Damage for each segment and log: flips in every page of the segment's indexes, and in the
    /// envelopes of every `step`th batch of the log in it.
    pub(crate) fn index_and_data(&self, step: usize) -> Vec<Vec<(String, usize, usize)>> {
        let mut all = Vec::new();
        for (segment, _) in self.files() {
            let Some(number) = segment.strip_prefix("seg-") else {
                continue;
            };
            let mut pages = Vec::new();
            for (name, length) in self.files() {
                if name.starts_with(&format!("idx-{number}-")) {
                    pages.extend((100..length).step_by(4096).map(|at| (name.clone(), at, 3)));
                }
            }
            for index in 0..LOGS {
                let places = self.places.iter();
                let hit = places.filter(|place| place.file == segment && place.index == index);
                let envelopes = hit
                    .step_by(step)
                    .map(|place| (segment.clone(), place.bytes.start - ENVELOPE + 20, 3));
                all.push(envelopes.chain(pages.clone()).collect());
            }
        }
        all.retain(|flips: &Vec<_>| !flips.is_empty());
        all
    }

    /// The file ends here.
    pub(crate) fn cut(&self, name: &str, at: usize) -> usize {
        let mut files = self.files.clone();
        let contents = files.contents(name).unwrap();
        files.put(name, &contents[..at]);
        let what = format!("{name} is cut at {at}");
        self.verify(files, &what, &self.behind(name, at))
    }

    /// The files whose names begin so are not there.
    pub(crate) fn removed(&self, prefix: &str) -> usize {
        let mut files = MemoryFiles::new();
        let mut may = BTreeSet::new();
        for (name, _) in self.files() {
            if name.starts_with(prefix) {
                may.extend(self.behind(&name, 0));
            } else {
                files.put(&name, &self.files.contents(&name).unwrap());
            }
        }
        let what = format!("{prefix} is not there");
        self.verify(files, &what, &may)
    }

    /// The first segment of commands is not needed any more, and gone.
    pub(crate) fn has_no_first_commands(&self) -> bool {
        let first = "seg-0000000000000001";
        self.files().iter().all(|(name, _)| name != first)
    }

    fn behind(&self, name: &str, at: usize) -> BTreeSet<Record> {
        let behind = |place: &&Place| place.file == name && place.bytes.end > at;
        self.places
            .iter()
            .filter(behind)
            .flat_map(Place::records)
            .collect()
    }

    /// Opens the files, and holds what they serve against what was published. `may`: what may be
    /// missing; all else must be there. Gives how many records are missing.
    fn verify(&self, files: MemoryFiles, what: &str, may: &BTreeSet<Record>) -> usize {
        let report = checked(&files);
        for part in &report.logs {
            let told = report.is_sound() && !part.lost.is_empty();
            assert!(!told, "{what}: sound, and lost {:?}", part.lost);
            assert_eq!(part.skipped, [], "{what}: of {}", part.log);
        }
        let mut subject = Found {
            kept: OnKept::new(self.config.clone()),
            damage: Vec::new(),
        };
        *subject.kept.files.0.lock() = files;
        let mut d = Driver::new(&mut subject);
        let mut served = BTreeSet::new();
        for index in 0..LOGS {
            let bounds = d.open(log(index));
            assert!(
                bounds.next.0 >= self.next[&index],
                "{what}: log {index} is at {bounds:?}"
            );
            let lost = self.read(&mut d, index, what, &mut served);
            let told = report
                .logs
                .iter()
                .find(|part| part.log == log(index))
                .unwrap();
            assert_eq!(lost, numbers(&told.lost), "{what}: check of log {index}");
            self.read_topic(&mut d, index, what, &served);
        }
        for record in self.published.keys() {
            let there = served.contains(record);
            assert!(
                there || may.contains(record),
                "{what}: {record:?} is not served"
            );
        }
        let missing = self.published.len() - served.len();
        assert!(
            missing == 0 || !report.is_sound(),
            "{what}: check has found nothing"
        );
        for index in 0..LOGS {
            let batch = Maker::new(log(index)).batch(&[("after", "damage")]);
            let extent = d.store(&batch);
            assert!(extent.first.0 >= self.next[&index], "{what}: {extent:?}");
        }
        drop(d);
        let bolder = report.is_sound() && !subject.damage.is_empty();
        assert!(
            !bolder,
            "{what}: check is sound, a node finds {:?}",
            subject.damage
        );
        missing
    }

    /// Reads a log; adds what it serves, and gives the numbers that it tells are lost.
    fn read(
        &self,
        d: &mut Driver<'_, Found>,
        index: u16,
        what: &str,
        served: &mut BTreeSet<Record>,
    ) -> BTreeSet<u64> {
        let reader = d.read_all(log(index), 1);
        let mut lost = Vec::new();
        for tile in d.tiles(reader) {
            for (number, topic, payload) in tile.records() {
                let published = self.published.get(&(index, number));
                let same = published == Some(&(topic, payload));
                assert!(same, "{what}: log {index} has something else at {number}");
                served.insert((index, number));
            }
            if let Seen::Gap(extent, why) = tile {
                assert_eq!(why, GapWhy::Loss, "{what}: {extent:?} of log {index}");
                lost.push(extent);
            }
        }
        assert_eq!(d.next_of(reader), d.bounds(log(index)).next, "{what}");
        numbers(&lost)
    }

    /// A reader of one topic gets what a reader of all gets; what it does not is lost, not unused.
    fn read_topic(
        &self,
        d: &mut Driver<'_, Found>,
        index: u16,
        what: &str,
        served: &BTreeSet<Record>,
    ) {
        let topic = TopicName::hash_of(log(index).namespace, TOPIC);
        let filter = ScopeFilter::Topic(topic);
        let reader = d.read(
            log(index),
            1,
            Scope {
                filter,
                ..Scope::default()
            },
            u32::MAX,
        );
        let mut got = BTreeSet::new();
        let mut unused = Vec::new();
        for tile in d.tiles(reader) {
            got.extend(
                tile.records()
                    .into_iter()
                    .map(|(number, ..)| (index, number)),
            );
            if let Seen::Gap(extent, GapWhy::Unused) = tile {
                unused.push(extent);
            }
        }
        let unused = numbers(&unused);
        for (record, (name, _)) in self.published.range((index, 0)..(index + 1, 0)) {
            if name == TOPIC {
                assert!(
                    !unused.contains(&record.1),
                    "{what}: {record:?} is not unused"
                );
                let both = served.contains(record) == got.contains(record);
                assert!(both, "{what}: {record:?} is served to one reader only");
            }
        }
    }
}

/// Report of `check`, which changes nothing.
fn checked(files: &MemoryFiles) -> CheckReport {
    let mut read = files.clone();
    let report = check(&mut read).unwrap();
    let mut untouched = files.clone();
    let list = untouched.list().unwrap();
    assert_eq!(read.list().unwrap(), list);
    for (name, _) in list {
        assert_eq!(read.contents(&name), files.contents(&name), "{name}");
    }
    report
}

/// Every number in some extents.
fn numbers(extents: &[Extent]) -> BTreeSet<u64> {
    extents
        .iter()
        .flat_map(|extent| extent.first.0..=extent.last.0)
        .collect()
}

impl Place {
    fn records(&self) -> impl Iterator<Item = Record> {
        let index = self.index;
        (self.extent.first.0..=self.extent.last.0).map(move |number| (index, number))
    }
}

/// Number of records of a log.
fn sent(published: &BTreeMap<Record, (String, Vec<u8>)>, index: u16) -> u64 {
    published.range((index, 0)..(index + 1, 0)).count() as u64
}

fn find(contents: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let places = contents
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == first);
    places
        .map(|(at, _)| at)
        .find(|&at| contents[at..].starts_with(part))
}
