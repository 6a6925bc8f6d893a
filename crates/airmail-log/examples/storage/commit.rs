//! Latency of a commit at a fixed rate, beside the disk's own.

use crate::store::{Store, batch};
use crate::topics::{cpu_ms, number};
use airmail_model::Durability;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Size of the file that is written for comparison, filled beforehand.
const BARE_BYTES: u64 = 64 << 20;

/// Alternates a second of each.
pub(crate) fn run(dir: &Path, rate: u64, seconds: u64, durability: Durability) {
    let mut store = Store::open_with(dir, durability);
    let bare = written_before(&dir.join("bare"));
    let (mut disk_us, mut journal_us, mut at, mut commits) = (Vec::new(), Vec::new(), 0, 0);
    let (mut sent, threads, switches) = (0, cpu_ms(), writer_switches());
    for _ in 0..seconds {
        commits += second(rate, &mut journal_us, |messages| {
            let batch = batch((0..messages).map(|n| format!("topic/{}", n % 10)));
            store.send(&batch);
            store.settle(0);
            sent += messages;
        });
        second(rate, &mut disk_us, |messages| {
            let bytes = vec![7; 200 + messages as usize * 120];
            bare.write_all_at(&bytes, at).unwrap();
            bare.sync_data().unwrap();
            at = (at + bytes.len() as u64) % (BARE_BYTES / 2);
        });
    }
    let woken = writer_switches() - switches;
    println!("{sent} messages in {commits} appends, the writer woken {woken} times");
    for (name, us) in [("disk", &mut disk_us), ("journal", &mut journal_us)] {
        us.sort_unstable();
        let at = |share: f64| us[(us.len() as f64 * share) as usize];
        println!(
            "{name}: p50 {} p90 {} p99 {} p99.9 {} us",
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999)
        );
    }
    for (name, ms) in cpu_ms() {
        let before = threads.iter().find(|(other, _)| *other == name);
        let ms = ms - before.map_or(0, |(_, ms)| *ms);
        println!(
            "{name}: {:.1} us of CPU an append",
            ms as f64 * 1e3 / commits as f64
        );
    }
    store.stop(true);
}

/// Has what is due stored, again and again; notes each message's time from when it was due.
fn second(rate: u64, us: &mut Vec<u64>, mut store: impl FnMut(u64)) -> u64 {
    let (begun, mut done, mut commits) = (Instant::now(), 0, 0);
    let due = |n: u64| Duration::from_nanos(n * 1_000_000_000 / rate);
    while done < rate {
        let now = begun.elapsed();
        let mut until = done;
        while until < rate && due(until) <= now {
            until += 1;
        }
        if until == done {
            std::thread::sleep(due(done).saturating_sub(now));
            continue;
        }
        store(until - done);
        commits += 1;
        let ended = begun.elapsed();
        us.extend((done..until).map(|n| ended.saturating_sub(due(n)).as_micros() as u64));
        done = until;
    }
    commits
}

/// Number of times that the writer's thread has waited for something.
fn writer_switches() -> u64 {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        if status.starts_with("Name:\tairmail-write") {
            sum += number(&status, "voluntary_ctxt_switches:");
        }
    }
    sum
}

fn written_before(path: &Path) -> File {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true);
    let file = file.open(path).unwrap();
    for at in 0..BARE_BYTES >> 20 {
        file.write_all_at(&[0; 1 << 20], at << 20).unwrap();
    }
    file.sync_all().unwrap();
    file
}
