//! Missing and damaged files: the findings of `check`, and the reports of readers that meet them.

use super::*;
use crate::journal::format::{Envelope, Kind, SegmentHeader};

/// Copies the files without the segments from this one on that hold batches.
fn without_newest(files: &MemoryFiles, from: u64) -> MemoryFiles {
    let (mut files, mut out) = (files.clone(), MemoryFiles::new());
    for (name, _) in files.list().unwrap() {
        let id = crate::journal::names::number_of(&name, "seg-");
        if id.is_none_or(|id| id < from) {
            out.put(&name, &files.contents(&name).unwrap());
        }
    }
    out
}

#[test]
fn check_tells_what_was_in_the_newest_segments_when_they_are_gone() {
    for clean in [true, false] {
        let mut bench = Bench::open(MemoryFiles::new(), 1);
        bench.append(0, 600);
        let files = if clean {
            bench.close()
        } else {
            bench.storage.into_files()
        };
        let segments = files.clone().list().unwrap();
        let segments = segments.iter().filter(|(name, _)| name.starts_with("seg-"));
        for from in 3..=segments.count() as u64 {
            let cut = without_newest(&files, from);
            let report = check(&mut cut.clone()).unwrap();
            let lost: u64 = report.logs[0].lost.iter().map(|one| one.numbers()).sum();
            let (mut told, mut missing) = (0, 0);
            for problem in &report.problems {
                match problem.reason {
                    Reason::Lost(numbers) => told += numbers,
                    Reason::Missing => missing += 1,
                    _ => {}
                }
            }
            // Those that hold nothing yet are missed by nobody.
            assert!(missing > 0 || lost == 0, "{from}: {:?}", report.problems);
            assert_eq!((told, report.logs[0].records + lost), (lost, 600), "{from}");
            assert_eq!(report.is_sound(), lost == 0, "{:?}", report.problems);
            assert_eq!(report.logs[0].skipped, []);
            let mut bench = Bench::open(cut, 2);
            let found = bench.storage.take_damage();
            assert_eq!(bench.storage.damage(), found.len() as u64);
            assert_eq!(found.is_empty(), lost == 0, "{found:?}");
            assert_eq!(bench.next(), Sequence(601));
        }
    }
}

#[test]
fn what_an_unclean_stop_has_skipped_is_not_damage() {
    let weak = LogSpec {
        durability: Durability::OS,
        ..LogSpec::default()
    };
    let mut files = MemoryFiles::new();
    for seed in 1..4 {
        let mut bench = Bench::open(files, seed);
        bench.ask_to_open(1, LOG, weak);
        for _ in 0..5 {
            bench.poll();
        }
        bench.out.clear();
        bench.send(9, batch(seed - 1, "x"));
        for _ in 0..5 {
            bench.poll();
        }
        files = bench.storage.into_files();
        let report = check(&mut files.clone()).unwrap();
        assert!(report.is_sound(), "{:?}", report.problems);
        assert_eq!(report.logs[0].lost, []);
        assert_eq!(
            report.logs[0].skipped.len(),
            seed as usize,
            "{:?}",
            report.logs
        );
    }
}

/// The checkpoint before the trim knows of them.
#[test]
fn the_indexes_of_what_was_trimmed_are_not_missed_after_a_kill() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 400);
    let mut bench = Bench::open(bench.close(), 2);
    for _ in 0..20 {
        bench.poll();
    }
    bench.out.clear();
    bench.storage.submit(Call::Trim {
        t: Tag(9),
        log: LOG,
        before: Sequence(60),
    });
    for _ in 0..5 {
        bench.poll();
    }
    let report = check(&mut bench.storage.into_files()).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.logs[0].first, Sequence(60));
}

#[test]
fn damage_that_a_reader_meets_is_told_once_with_its_file_and_number() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 100);
    let files = bench.close();
    let file = "seg-0000000000000002";
    let hit = flipped(&files, file, HEADER_BYTES + 270);
    let mut bench = Bench::open(hit, 2);
    assert_eq!(bench.storage.take_damage(), []);
    let read = |bench: &mut Bench| {
        bench.read_all(9, LOG);
        for _ in 0..50 {
            bench.poll();
        }
        bench.storage.submit(Call::Stop { r: ReaderId(9) });
        bench.poll();
        bench.out.clear();
    };
    read(&mut bench);
    let found = bench.storage.take_damage();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&*found[0].file, found[0].log), (file, Some(LOG)));
    assert_eq!(found[0].number, Some(Sequence(2)));
    assert!(found[0].reason.loses());
    read(&mut bench);
    assert_eq!(bench.storage.take_damage(), []);
    assert_eq!(bench.storage.damage(), 1);
}

#[test]
fn damage_to_what_is_only_a_help_is_told_and_loses_nothing() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 100);
    let files = bench.close();
    let newest = |prefix: &str| {
        let names = files.clone().list().unwrap().into_iter();
        let names = names.filter(|(name, _)| name.starts_with(prefix));
        names.last().unwrap().0
    };
    for (name, at, reason) in [
        (newest("checkpoint-"), 50, Reason::Checkpoint),
        ("idx-".into(), 5000, Reason::Index),
        ("seg-0000000000000002".into(), 20, Reason::Header),
    ] {
        let mut bench = Bench::open(flipped(&files, &name, at), 2);
        assert_eq!(bench.count(), 100);
        let found = bench.storage.take_damage();
        assert!(
            found.iter().any(|one| one.reason == reason),
            "{name}: {found:?}"
        );
        assert!(found.iter().all(|one| !one.reason.loses()), "{found:?}");
    }
}

/// A payload may look like a record: a publisher can know half of the salt.
#[test]
fn a_segment_whose_beginning_is_gone_is_read_from_the_first_sound_batch_on() {
    const SEGMENT: &str = "seg-0000000000000002";
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 1);
    let files = bench.storage.files().clone();
    let salt = SegmentHeader::decode(&files.contents(SEGMENT).unwrap());
    let salt = salt.unwrap().salt;
    let body = batch(0, "made up");
    let fake = Envelope {
        kind: Kind::Batch,
        length: body.bytes().len() as u32,
        salt: salt ^ 1 << 16,
        first: 2,
        numbers: 1,
        slot: Slot(1),
        append_time: AppendTime(0),
    };
    let mut payload = Vec::new();
    // Wherever the payload begins, one of them is where a record can be.
    for place in 0..8 {
        while payload.len() % 8 != place {
            payload.push(0);
        }
        payload.extend(fake.encode());
        payload.extend(body.bytes());
    }
    let batch = batch_of(LOG, 1, payload.into());
    bench.send(1, batch);
    bench.poll();
    bench.out.clear();
    bench.append(2, 8);
    let files = bench.storage.into_files();
    let mut bytes = files.contents(SEGMENT).unwrap().to_vec();
    let first = Envelope::decode(&bytes[HEADER_BYTES..]).unwrap();
    let second = HEADER_BYTES + first.stored_bytes() as usize;
    bytes[..second + ENVELOPE_BYTES].fill(0);
    let mut hit = files.clone();
    hit.put(SEGMENT, &bytes);
    let report = check(&mut hit.clone()).unwrap();
    assert_eq!(report.logs[0].records, 8);
    let mut bench = Bench::open(hit, 2);
    assert_eq!(bench.next(), Sequence(11));
    bench.read_all(9, LOG);
    for _ in 0..20 {
        bench.poll();
    }
    let (mut lost, mut batches) = (Vec::new(), 0);
    for completion in bench.out.drain(..) {
        match completion {
            Completion::Gap { extent, .. } => lost.push((extent.first.0, extent.last.0)),
            Completion::Batch { stored, .. } => {
                assert!(stored.extent.first >= Sequence(3));
                batches += 1;
            }
            _ => {}
        }
    }
    assert_eq!((lost, batches), (vec![(1, 2)], 8));
}
