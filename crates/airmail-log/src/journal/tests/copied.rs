//! Copies of log 0: an answered batch is in two files, and a refused one in none.

use super::super::calls::Waiting;
use super::*;
use crate::files::FileOp;
use std::io;

/// A bench whose files take one operation after the other.
fn system(files: MemoryFiles, seed: u64) -> Bench {
    let mut bench = Bench::unopened(files, seed);
    bench.ask_to_open(1, LogId::SYSTEM, LogSpec::default());
    bench.poll();
    assert!(matches!(bench.out.pop(), Some(Completion::Opened { .. })));
    bench
}

fn command(n: u64) -> Checked<Batch> {
    batch_to(LogId::SYSTEM, n, &format!("command {n}"))
}

/// Does all that there is to be done, one operation at a time: `fails` says which of them do, `after`
/// sees the bench behind each.
fn step(
    bench: &mut Bench,
    mut fails: impl FnMut(&FileOp) -> bool,
    mut after: impl FnMut(&mut Bench),
) {
    loop {
        let storage = &mut bench.storage;
        storage.journal.advance(bench.now);
        let ops = storage.journal.effects.take();
        if ops.is_empty() {
            return;
        }
        for (token, op) in ops {
            let mut done = Vec::new();
            if fails(&op) {
                done.push(FileDone::new(token, Err(io::Error::other("failed"))));
            } else {
                bench.storage.files_mut().submit(token, op);
                bench.storage.files_mut().poll(&mut done);
            }
            for done in done {
                bench.storage.journal.complete(done);
            }
            bench
                .out
                .append(bench.storage.journal.effects.completions());
            after(bench);
        }
    }
}

/// The batches of log 0 when a journal opens here; nothing may be missing.
fn found(files: MemoryFiles) -> Vec<Bytes> {
    let mut bench = system(files, 9);
    bench.read_all(9, LogId::SYSTEM);
    for _ in 0..20 {
        bench.poll();
    }
    let mut found = Vec::new();
    for completion in bench.out.drain(..) {
        match completion {
            Completion::Batch { stored, .. } => found.push(stored.batch.bytes().clone()),
            Completion::Gap { .. } => panic!("{completion:?}"),
            _ => {}
        }
    }
    found
}

/// The file to which batches of log 0 are written.
fn open_file(bench: &Bench) -> String {
    let journal = &bench.storage.journal;
    let class = journal.segments.class(super::super::format::SYSTEM_CLASS);
    let active = journal.segments.get(class.active.unwrap());
    active.unwrap().name.to_string()
}

#[test]
fn at_no_moment_does_a_damaged_file_lose_what_was_answered_of_log_0() {
    let mut bench = system(MemoryFiles::new(), 1);
    let (mut answered, mut moments) = (0, 0);
    for n in 0..5 {
        bench.send(n, command(n));
        while let Some(Waiting::Call(call)) = bench.storage.journal.calls.next() {
            bench.storage.journal.take(call);
        }
        step(
            &mut bench,
            |_| false,
            |bench| {
                answered += answers(bench).len();
                moments += 1;
                let files = bench.storage.files().clone();
                for (name, _) in files.clone().list().unwrap() {
                    let contents = files.contents(&name).unwrap();
                    let half = &contents[..contents.len() / 2];
                    for changed in [half, &vec![0; contents.len()]] {
                        let mut files = files.clone();
                        files.put(&name, changed);
                        let found = found(files);
                        let (least, most) = (answered, n as usize + 1);
                        let what = format!("{name} at moment {moments}: {} found", found.len());
                        assert!((least..=most).contains(&found.len()), "{what}");
                        for (n, found) in found.iter().enumerate() {
                            assert_eq!(found, command(n as u64).bytes(), "{what}");
                        }
                    }
                }
            },
        );
        assert_eq!(answered, n as usize + 1);
    }
}

#[test]
fn what_was_refused_of_log_0_does_not_come_back_by_its_copy() {
    let mut bench = system(MemoryFiles::new(), 1);
    let append = |bench: &mut Bench, n, fails: bool| {
        let one = command(n);
        bench.send(n, one.clone());
        let file = fails.then(|| open_file(bench));
        let is_it = |op: &FileOp| matches!(op, FileOp::Write { name, .. } if Some(&**name) == file.as_deref());
        step(bench, is_it, |_| {});
        answers(bench).remove(0).1
    };
    assert_eq!(append(&mut bench, 0, false), None);
    let refused = append(&mut bench, 1, true);
    assert!(matches!(refused, Some(Refusal::Io(_))), "{refused:?}");
    let first = command(0).bytes().clone();
    assert_eq!(
        found(bench.storage.files().clone()),
        std::slice::from_ref(&first)
    );
    // Its number is another's, whose copy is that which counts.
    let other = batch_to(LogId::SYSTEM, 1, "another");
    bench.send(2, other.clone());
    step(
        &mut bench,
        |_| false,
        |bench| {
            if !answers(bench).is_empty() {
                let mut files = bench.storage.files().clone();
                let name = open_file(bench);
                files.put(&name, &[]);
                assert_eq!(found(files), [first.clone(), other.bytes().clone()]);
            }
        },
    );
}

#[test]
fn a_copy_whose_batch_a_kill_took_is_stored() {
    let mut bench = system(MemoryFiles::new(), 1);
    bench.send(1, command(0));
    let mut copied = None;
    step(
        &mut bench,
        |_| false,
        |bench| {
            let copies = |bench: &Bench| {
                let slot = bench.storage.journal.logs.slot_of(LogId::SYSTEM).unwrap();
                let log = bench.storage.journal.logs.get(slot).unwrap();
                (log.copies.at(Sequence(1)).is_some(), log.numbers.durable)
            };
            if copied.is_none() && copies(bench) == (true, Sequence(1)) {
                copied = Some(bench.storage.files().clone());
            }
        },
    );
    let files = copied.expect("the copy is durable before the batch");
    assert_eq!(found(files.clone()), [command(0).bytes().clone()]);
    let mut bench = system(files, 2);
    bench.send(1, command(1));
    bench.poll();
    let told = bench.out.pop();
    assert!(
        matches!(told, Some(Completion::Appended { extent, .. }) if extent.first == Sequence(2)),
        "{told:?}"
    );
}
