//! Writes of commands that a power cut tears: what is lost was answered to nobody, and is no damage.

use super::*;

/// Unit in which a disk writes.
const SECTOR_BYTES: usize = 512;
/// Logs that are opened by the commands of one write.
const LOGS: u16 = 12;
const COMMANDS: &str = "seg-0000000000000001";

fn log(n: u16) -> LogId {
    LogId {
        namespace: NamespaceId(5),
        index: LogIndex(n),
        ..LOG
    }
}

/// Files before and after one write of the commands that open twelve logs.
fn written() -> (MemoryFiles, MemoryFiles) {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    bench.append(0, 3);
    let before = bench.storage.files().clone();
    for n in 0..LOGS {
        bench.ask_to_open(n.into(), log(n), LogSpec::default());
    }
    bench.poll();
    let opened = |one: &&Completion| matches!(one, Completion::Opened { .. });
    assert_eq!(bench.out.iter().filter(opened).count(), usize::from(LOGS));
    (before, bench.storage.into_files())
}

/// The files before the write, with what a tear has left of it: sectors of it by the bits of `kept`.
fn torn(before: &MemoryFiles, after: &MemoryFiles, kept: u64) -> (MemoryFiles, usize) {
    let old = before.contents(COMMANDS).unwrap();
    let new = after.contents(COMMANDS).unwrap();
    let begin = old.iter().zip(&new).position(|(a, b)| a != b).unwrap();
    let end = new.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut bytes = old.to_vec();
    // Records begin at multiples of 8.
    let starts = (begin - begin % 8..end).step_by(SECTOR_BYTES);
    let sectors = starts.len();
    let kept = starts.enumerate().filter(|(n, _)| kept & 1 << n != 0);
    for (_, from) in kept {
        let to = end.min(from + SECTOR_BYTES);
        bytes[from..to].copy_from_slice(&new[from..to]);
    }
    let mut files = before.clone();
    files.put(COMMANDS, &bytes);
    (files, sectors)
}

/// Opened logs among the twelve.
fn opened(files: &MemoryFiles) -> Vec<u16> {
    let report = check(&mut files.clone()).unwrap();
    let logs = report.logs.iter().map(|found| found.log);
    let ours = logs.filter(|found| found.namespace == NamespaceId(5));
    ours.map(|found| found.index.0).collect()
}

#[test]
fn what_a_tear_has_left_of_commands_is_sound() {
    let (before, after) = written();
    let sectors = torn(&before, &after, 0).1;
    assert!(sectors > 4, "{sectors}");
    for kept in 0..1 << sectors {
        let (files, _) = torn(&before, &after, kept);
        let report = check(&mut files.clone()).unwrap();
        assert_eq!(report.problems, [], "sectors {kept:b}");
        let logs = opened(&files);
        assert!(
            logs.iter().copied().eq(0..logs.len() as u16),
            "sectors {kept:b}: {logs:?}"
        );
        let mut bench = Bench::open(files, 2);
        assert_eq!(bench.storage.take_damage(), [], "sectors {kept:b}");
        assert_eq!(bench.count(), 3);
        let files = bench.storage.into_files();
        assert_eq!(opened(&files), logs);
        let report = check(&mut files.clone()).unwrap();
        assert_eq!(report.problems, [], "sectors {kept:b}, later");
    }
}

/// Files after two kills: one before the write of commands was synced, one when the next process had
/// given them again.
#[test]
fn a_power_cut_takes_what_a_kill_has_left_in_the_cache_and_that_is_sound() {
    let (before, after) = written();
    let bench = Bench::open(after.clone(), 2);
    let logs = opened(bench.storage.files());
    assert_eq!(logs.len(), usize::from(LOGS));
    let sectors = torn(&before, &after, 0).1;
    for kept in 0..1 << sectors {
        let mut files = bench.storage.files().clone();
        let (torn, _) = torn(&before, &after, kept);
        files.put(COMMANDS, &torn.contents(COMMANDS).unwrap());
        assert_eq!(opened(&files), logs, "sectors {kept:b}");
        let report = check(&mut files.clone()).unwrap();
        assert_eq!(report.problems, [], "sectors {kept:b}");
        let mut bench = Bench::open(files, 3);
        assert_eq!(bench.storage.take_damage(), [], "sectors {kept:b}");
        assert_eq!(bench.count(), 3);
    }
}

/// Each attempt to write commands fails, and they are counted once.
#[test]
fn commands_that_a_failing_disk_did_not_take_are_not_missed() {
    let mut bench = Bench::open(MemoryFiles::new(), 1);
    for n in 0..LOGS {
        bench.ask_to_open(u64::from(n), log(n), LogSpec::default());
        let journal = &mut bench.storage.journal;
        let count = journal.commands.count();
        journal.advance(bench.now);
        for (token, _) in journal.effects.take() {
            let failed = std::io::Error::other("failed");
            journal.complete(FileDone::new(token, Err(failed)));
        }
        assert_eq!(journal.commands.count(), count);
        bench.now.mono = Mono(bench.now.mono.0 + 10_000_000_000);
        for _ in 0..10 {
            bench.poll();
        }
    }
    let files = bench.storage.into_files();
    let report = check(&mut files.clone()).unwrap();
    assert_eq!(report.problems, []);
}
