//! Segments of commands: the time at which they go, and that nothing is lost with them.

use super::*;
use crate::files::{FileOp, FileToken};
use crate::journal::format::META_CLASS;
use crate::journal::settling::sealing;

/// Carries out the waiting operations of checkpoints, and removals; the rest goes on waiting.
fn checkpoint_alone(bench: &mut Bench, waiting: &mut Vec<(FileToken, FileOp)>) {
    let journal = &mut bench.storage.journal;
    waiting.extend(journal.effects.take());
    let of_checkpoint = |token: &FileToken| {
        let purpose = journal.effects.purpose(*token);
        matches!(purpose, Some(Purpose::Checkpoint | Purpose::Left(_)))
    };
    let now: Vec<_> = waiting
        .extract_if(.., |(token, _)| of_checkpoint(token))
        .collect();
    for (token, op) in now {
        bench.storage.files_mut().submit(token, op);
    }
    let mut ended = Vec::new();
    bench.storage.files_mut().poll(&mut ended);
    for done in ended {
        bench.storage.journal.complete(done);
    }
    bench.storage.journal.advance(bench.now);
}

/// A segment of commands failed while a checkpoint was written, and the one before had all of it, too: it
/// went with that checkpoint, which says that it is written to.
#[test]
fn commands_that_went_while_a_checkpoint_was_written_are_no_loss() {
    for end_told in [true, false] {
        let mut bench = Bench::open(MemoryFiles::new(), 1);
        bench.append(0, 3);
        bench.storage.journal.checkpointer.want();
        bench.poll();
        bench.storage.journal.checkpointer.want();
        bench.storage.journal.advance(bench.now);
        let last = bench.storage.journal.checkpointer.newest_count();
        assert_eq!(last, Some(bench.storage.journal.commands.count()));
        assert!(bench.storage.journal.checkpointer.is_writing());
        let mut waiting = bench.storage.journal.effects.take();

        let of_commands = bench
            .storage
            .journal
            .segments
            .class(META_CLASS)
            .active
            .unwrap();
        let error = std::io::Error::other("failed");
        bench
            .storage
            .journal
            .failing()
            .abandon(of_commands, Vec::new(), Vec::new(), &error);
        if end_told {
            for _ in 0..5 {
                bench.poll();
            }
            let journal = &bench.storage.journal;
            assert_eq!(sealing(&journal.commands, &journal.commits).count(), 0);
        }
        for _ in 0..5 {
            checkpoint_alone(&mut bench, &mut waiting);
        }
        assert!(!bench.storage.journal.checkpointer.is_writing());

        let mut files = bench.storage.into_files();
        let name = format!("seg-{of_commands}");
        let there = files.list().unwrap().iter().any(|(of, _)| **of == *name);
        assert_eq!(there, !end_told);
        assert_eq!(check(&mut files.clone()).unwrap().problems, []);
        let mut bench = Bench::open(files, 2);
        assert_eq!(bench.storage.take_damage(), []);
        assert_eq!(bench.count(), 3);
    }
}
