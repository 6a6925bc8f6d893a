//! Nothing is stored while the files may be another's, and nothing is answered as stored.

use super::*;
use crate::contract::Trouble;
use crate::journal::ends::Ends;

/// Has one message appended, of this number in its producer's sequence, which is its tag too.
fn append(bench: &mut Bench, n: u64) {
    bench.send(n, batch(n, "x"));
}

#[test]
fn while_the_files_may_be_anothers_nothing_is_written_and_nothing_answered_as_stored() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    // One is under way, one has not begun.
    append(&mut bench, 3);
    bench.storage.journal.advance(bench.now);
    assert_eq!(bench.storage.journal.commits.len(), 1);
    append(&mut bench, 4);
    bench.storage.withhold("moved");
    let moved = Trouble {
        full: false,
        error: "moved".to_owned(),
    };
    assert_eq!(bench.storage.trouble(), Some(moved));
    let before = bench.storage.files().clone();
    for _ in 0..50 {
        bench.poll();
    }
    // Also those that were stored before, and what else waits for a file.
    append(&mut bench, 0);
    append(&mut bench, 5);
    bench.ask_to_open(60, OTHER, LogSpec::default());
    bench.poll();
    // What waits for a command is refused as often as a failing disk is tried.
    bench.now.mono = bench.now.mono.plus(tiny().probe_interval);
    for _ in 0..50 {
        bench.poll();
    }
    let told = answers(&mut bench);
    assert_eq!(told.len(), 5, "{told:?}");
    for (tag, why) in told {
        let retriable = matches!(
            why,
            Some(Refusal::Io(_) | Refusal::OutcomeUnknown | Refusal::OutOfOrder { .. })
        );
        assert!(retriable, "{tag:?}: {why:?}");
    }
    let mut after = bench.storage.files().clone();
    for (name, _) in after.list().unwrap() {
        assert_eq!(after.contents(&name), before.contents(&name), "{name}");
    }
    // What there is can be read.
    assert_eq!(bench.count(), 3);
}

#[test]
fn when_the_files_are_this_nodes_again_it_goes_on_where_it_was() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    for round in 0..3 {
        let n = 3 + round * 2;
        bench.send(n, batch(n, "x"));
        bench.storage.journal.advance(bench.now);
        bench.storage.withhold("moved");
        for _ in 0..5 {
            bench.poll();
        }
        assert_eq!(answers(&mut bench).len(), 1);
        bench.storage.release();
        bench.poll();
        bench.append(n, 2);
        assert_eq!(bench.storage.trouble(), None);
    }
    assert_eq!(bench.count(), 9);
    let mut bench = Bench::open(bench.storage.into_files(), 2);
    assert_eq!(bench.count(), 9);
}

#[test]
fn a_stop_while_nothing_is_stored_ends_without_writing() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    bench.storage.withhold("moved");
    bench.storage.close(bench.now);
    bench.poll();
    assert!(bench.storage.is_closed());
    let mut bench = Bench::open(bench.storage.into_files(), 2);
    assert_eq!(bench.count(), 3);
}

/// A batch that readers may have had, because a stored one before it failed: its answer waits.
#[test]
fn an_answer_that_had_to_wait_for_another_is_not_given_while_nothing_is_stored() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    let stored = Completion::Appended {
        t: Tag(9),
        extent: Extent::starting_at(Sequence(1), 1),
        at: AppendTime(0),
        held: Durability::FSYNC,
        duplicate: false,
        exact: true,
    };
    let slot = bench.storage.journal.logs.slot_of(LOG).unwrap();
    let log = bench.storage.journal.logs.get_mut(slot).unwrap();
    log.answers.push_back(Answer::Failed { t: Tag(8) });
    log.answers.push_back(Answer::Ready(stored));
    let faults = &mut bench.storage.journal.faults;
    faults.will_say(Refusal::OutcomeUnknown);
    faults.fail(slot);
    bench.storage.withhold("moved");
    bench.poll();
    let unknown = || Some(Refusal::OutcomeUnknown);
    let told = answers(&mut bench);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], (Tag(9), unknown()));
}

/// Its sync goes well, and the ends are written with it; nobody is told, its number is given again. A
/// power cut takes the ends back to that, with or without a checkpoint that knows better.
#[test]
fn what_was_given_up_while_nothing_was_stored_is_no_loss() {
    for (clean, trimmed) in [(false, false), (true, false), (true, true)] {
        let mut bench = Bench::open(MemoryFiles::new(), 1);
        bench.append(0, 3);
        bench.send(3, batch(3, "x"));
        bench.storage.journal.advance(bench.now);
        for (token, op) in bench.storage.journal.effects.take() {
            bench.storage.files_mut().submit(token, op);
        }
        let ends = bench.storage.files().contents("ends").unwrap();
        let slot = bench.storage.journal.logs.slot_of(LOG).unwrap();
        assert_eq!(Ends::newest(&ends).unwrap().logs[&slot], Sequence(5));
        bench.storage.withhold("moved");
        bench.poll();
        assert_eq!(
            answers(&mut bench),
            [(Tag(3), Some(Refusal::OutcomeUnknown))]
        );
        bench.storage.release();
        for _ in 0..5 {
            bench.poll();
        }
        if trimmed {
            bench.storage.submit(Call::Trim {
                t: Tag(4),
                log: LOG,
                before: Sequence(4),
            });
            for _ in 0..20 {
                bench.poll();
            }
            bench.out.clear();
        }
        let mut files = if clean {
            bench.close()
        } else {
            bench.storage.into_files()
        };
        let names = files.list().unwrap();
        let there = names
            .iter()
            .any(|(name, _)| &**name == "seg-0000000000000002");
        assert_eq!(there, !trimmed, "{names:?}");
        files.put("ends", &ends);
        let report = check(&mut files.clone()).unwrap();
        assert_eq!(report.problems, []);
        assert_eq!(report.logs[0].lost, []);
        let mut bench = Bench::open(files, 2);
        assert_eq!(bench.storage.take_damage(), []);
        assert_eq!(bench.next(), Sequence(4));
        bench.append(3, 2);
    }
}

/// A batch that was on its way when the log was sealed: given up, it could come back until it is said
/// where its segment ends. Who was told of the seal would go on elsewhere, with that batch or without.
#[test]
fn a_seal_is_not_told_while_a_crash_could_bring_more_before_it() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    append(&mut bench, 3);
    bench.storage.submit(Call::Seal {
        t: Tag(50),
        log: LOG,
        next: MapEpoch(2),
    });
    while bench.out.is_empty() {
        turn(&mut bench);
    }
    assert_eq!(bench.out, [Completion::Done { t: Tag(50) }]);
    assert_eq!(bench.storage.journal.commits.len(), 1);
    bench.out.clear();
    bench.storage.withhold("moved");
    bench.poll();
    let told = answers(&mut bench);
    assert_eq!(told, [(Tag(3), Some(Refusal::OutcomeUnknown))]);
    // One that is stored, and the one of which it is not known.
    bench.storage.submit(Call::Read {
        r: ReaderId(8),
        log: LOG,
        from: Sequence(4),
        scope: Box::default(),
        credit: 10,
    });
    append(&mut bench, 2);
    append(&mut bench, 3);
    bench.poll();
    assert!(!bench.out.iter().any(is_seal), "{:?}", bench.out);
    let told = answers(&mut bench);
    let moved = || Some(Refusal::Io("moved".to_owned()));
    assert_eq!(told, [(Tag(2), moved()), (Tag(3), moved())]);
    let mut killed = Bench::open(bench.storage.files().clone(), 2);
    assert_eq!(killed.count(), 4);

    bench.storage.release();
    turn(&mut bench);
    append(&mut bench, 3);
    bench.storage.journal.advance(bench.now);
    bench
        .out
        .append(bench.storage.journal.effects.completions());
    assert_eq!(bench.out, []);
    bench.poll();
    assert!(bench.out.iter().any(is_seal), "{:?}", bench.out);
    let next = MapEpoch(2);
    let told = answers(&mut bench);
    assert_eq!(told, [(Tag(3), Some(Refusal::Sealed { next }))]);
    let mut killed = Bench::open(bench.storage.into_files(), 3);
    assert_eq!(killed.count(), 3);
}

fn is_seal(completion: &Completion) -> bool {
    matches!(completion, Completion::Sealed { last, .. } if *last == Sequence(3))
}

/// Takes up the ended operations, and starts those that follow.
fn turn(bench: &mut Bench) {
    let mut ended = Vec::new();
    bench.storage.files_mut().poll(&mut ended);
    for done in ended {
        bench.storage.journal.complete(done);
    }
    bench.storage.journal.advance(bench.now);
    for (token, op) in bench.storage.journal.effects.take() {
        bench.storage.files_mut().submit(token, op);
    }
    bench
        .out
        .append(bench.storage.journal.effects.completions());
}

/// The number of a batch that was given up is given again, by a log that answers from memory: but not before no crash
/// can bring that batch back.
#[test]
fn a_number_is_told_again_only_when_a_crash_cannot_bring_back_what_had_it() {
    let memory = LogSpec {
        durability: Durability::MEMORY,
        ..LogSpec::default()
    };
    let mut bench = Bench::open_as(memory, MemoryFiles::new(), 1);
    bench.append(0, 3);
    bench.ask_to_open(2, LOG, LogSpec::default());
    for _ in 0..5 {
        bench.now.mono = bench.now.mono.plus(tiny().unsynced_time);
        bench.poll();
    }
    bench.out.clear();
    bench.send(3, batch(3, "given up"));
    bench.storage.journal.advance(bench.now);
    assert_eq!(bench.storage.journal.commits.len(), 1);
    for (token, op) in bench.storage.journal.effects.take() {
        bench.storage.files_mut().submit(token, op);
    }
    bench.storage.withhold("moved");
    bench.poll();
    let told = answers(&mut bench);
    assert_eq!(told, [(Tag(3), Some(Refusal::OutcomeUnknown))]);
    let mut killed = Bench::open(bench.storage.files().clone(), 2);
    assert_eq!(killed.count(), 4, "a crash brings it back");

    bench.storage.release();
    bench.ask_to_open(4, LOG, memory);
    bench.storage.journal.advance(bench.now);
    bench.send(5, batch(3, "instead"));
    let is_told = |told: &Completion| matches!(told, Completion::Appended { t: Tag(5), .. });
    for _ in 0..50 {
        bench.storage.journal.advance(bench.now);
        bench
            .out
            .append(bench.storage.journal.effects.completions());
        if bench.out.iter().any(is_told) {
            break;
        }
        turn(&mut bench);
    }
    assert!(bench.out.iter().any(is_told), "{:?}", bench.out);
    let mut killed = Bench::open(bench.storage.files().clone(), 3);
    killed.read_all(9, LOG);
    for _ in 0..20 {
        killed.poll();
    }
    for told in killed.out {
        if let Completion::Batch { stored, .. } = told {
            assert_ne!(stored.batch.bytes(), batch(3, "given up").bytes());
        }
    }
}
