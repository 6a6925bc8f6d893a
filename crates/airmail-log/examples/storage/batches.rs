//! Cost of a batch, whatever its size: append, commit, and its way to a reader at the tail.

use crate::store::Store;
use crate::topics::cpu_ms;
use airmail_log::conformance::{Maker, log};
use airmail_log::{Call, Direction, LogStorage, ReaderId, Scope, ScopeFilter};
use airmail_model::{Batch, Checked, Durability, Sequence};
use std::path::Path;
use std::time::Instant;

/// Appends that are under way at once.
const WINDOW: usize = 64;
const READER: ReaderId = ReaderId(1);

/// `count` batches of `records` messages of `bytes`, each of its own topic of a hundred.
pub(crate) fn run(dir: &Path, bytes: u64, records: u64, count: u64, durability: Durability) {
    let batches = made(bytes as usize, records, count);
    let stored: usize = batches.iter().map(|batch| batch.bytes().len()).sum();
    let mut store = Store::open_with(dir, durability);
    let scope = Scope {
        filter: ScopeFilter::All,
        until: None,
        direction: Direction::Forward,
    };
    let first = Sequence(1);
    store.storage().submit(Call::Read {
        r: READER,
        log: log(0),
        from: first,
        scope: Box::new(scope),
        credit: u32::MAX / 2,
    });
    store.poll(false);
    let (threads, begun) = (cpu_ms(), Instant::now());
    for batch in &batches {
        store.append(batch, WINDOW);
    }
    store.settle(0);
    while store.given < count {
        store.poll(false);
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{count} batches of {} bytes in {seconds:.2} s: {:.0}/s, {:.0} MB/s",
        stored as u64 / count,
        count as f64 / seconds,
        stored as f64 / seconds / 1e6
    );
    tell(&threads, count, stored);
    store.storage().submit(Call::Stop { r: READER });
    // Only root may empty the system's cache.
    let cold = std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
    let (threads, begun) = (cpu_ms(), Instant::now());
    let found = store.read(scope) as u64;
    println!(
        "read again, {}: {found} batches, {:.0} MB/s",
        if cold { "cold" } else { "cached" },
        stored as f64 / begun.elapsed().as_secs_f64() / 1e6
    );
    tell(&threads, count, stored);
    store.stop(true);
}

/// The processor time of each thread since `before`.
fn tell(before: &[(String, u64)], count: u64, stored: usize) {
    for (name, ms) in cpu_ms() {
        let before = before.iter().find(|(other, _)| *other == name);
        let ms = ms - before.map_or(0, |(_, ms)| *ms);
        println!(
            "{name}: {:.2} us of CPU a batch, {:.2} s/GB",
            ms as f64 * 1e3 / count as f64,
            ms as f64 * 1e6 / stored as f64
        );
    }
}

fn made(bytes: usize, records: u64, count: u64) -> Vec<Checked<Batch>> {
    let payload = "x".repeat(bytes);
    let mut maker = Maker::of(log(0), 7, 1);
    let mut batches = Vec::new();
    for n in 0..count {
        let topics: Vec<String> = (0..records)
            .map(|m| format!("topic/{}", (n + m) % 100))
            .collect();
        let records: Vec<_> = topics
            .iter()
            .map(|topic| (topic.as_str(), payload.as_str()))
            .collect();
        maker = maker.at(n * records.len() as u64);
        batches.push(maker.batch(&records));
    }
    batches
}
