//! Many distinct topics: memory, processor time, and the history of one among them.

use crate::store::{Store, batch};
use airmail_log::conformance::log;
use airmail_log::{Direction, Scope, ScopeFilter};
use airmail_model::{Limits, TopicName};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Messages in one batch.
const BATCH: u64 = 540;
/// A topic that has a hundred messages among all of them.
const RARE: &str = "rare";

pub(crate) fn run(dir: &Path, millions: u64) {
    let topics = millions * 1_000_000;
    let mut store = Store::open(dir);
    let named = |n: u64| (0..BATCH).map(move |m| format!("device/{:010}", n * BATCH + m));
    for n in 0..1000 {
        store.append(&batch(named(n)), 16);
    }
    store.settle(0);
    let (before, threads) = (rss_kib(), cpu_ms());
    let (begun, mut peak) = (Instant::now(), before);
    let (batches, mut encoding) = (topics / BATCH, 0.0);
    for n in 0..batches {
        let since = Instant::now();
        let made = if n % (batches / 100) == 0 {
            batch(named(n + 1000).take(100).chain([RARE.to_owned()]))
        } else {
            batch(named(n + 1000))
        };
        encoding += since.elapsed().as_secs_f64();
        store.append(&made, 16);
        if n % 64 == 0 {
            peak = peak.max(rss_kib());
        }
    }
    store.settle(0);
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{topics} topics in {seconds:.1} s; resident {before} KiB before, {peak} at most, {} after",
        rss_kib()
    );
    let each = |ms: u64| ms as f64 * 1e6 / topics as f64;
    for (name, ms) in cpu_ms() {
        let before = threads.iter().find(|(other, _)| *other == name);
        let ms = ms - before.map_or(0, |(_, ms)| *ms);
        println!("{name}: {:.0} ns of CPU a message", each(ms));
    }
    println!("of that encoding: {:.0} ns", encoding * 1e9 / topics as f64);
    let topic = TopicName::new(RARE, &Limits::default())
        .unwrap()
        .hash(log(0).namespace);
    let scope = Scope {
        filter: ScopeFilter::Topic(topic),
        until: None,
        direction: Direction::Forward,
    };
    let (begun, had, bytes) = (Instant::now(), bytes_read(), directory_bytes(dir));
    let found = store.read(scope);
    let read = bytes_read() - had;
    println!(
        "history of one topic: {found} batches in {:.1} ms, {read} of {bytes} bytes read: {:.3} %",
        begun.elapsed().as_secs_f64() * 1e3,
        read as f64 * 100.0 / bytes as f64,
    );
    store.stop(true);
}

/// Reads the number on a line of one of the system's files, by the line's name.
pub(crate) fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn rss_kib() -> u64 {
    number(&fs::read_to_string("/proc/self/status").unwrap(), "VmRSS:")
}

fn bytes_read() -> u64 {
    number(&fs::read_to_string("/proc/self/io").unwrap(), "rchar:")
}

/// Processor time of each thread, by its name.
pub(crate) fn cpu_ms() -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for entry in fs::read_dir("/proc/self/task").unwrap() {
        let stat = fs::read_to_string(entry.unwrap().path().join("stat")).unwrap();
        let (name, rest) = stat.split_once('(').unwrap().1.rsplit_once(')').unwrap();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        match all.iter_mut().find(|(other, _)| other == name) {
            Some((_, ms)) => *ms += ticks * 10,
            None => all.push((name.to_owned(), ticks * 10)),
        }
    }
    all
}

fn directory_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir.join("shard-0000")).unwrap();
    let segments = files.map(Result::unwrap);
    let segments = segments.filter(|file| file.file_name().to_string_lossy().starts_with("seg-"));
    segments.map(|file| file.metadata().unwrap().len()).sum()
}
