//! Time that opening takes, by the amount of data and the way of stopping.

use crate::store::{Store, batch};
use airmail_model::{Batch, Checked};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Ways in which a storage ends.
#[derive(Clone, Copy)]
enum Stop {
    Clean,
    /// Everything is let fall, and what was submitted is done.
    Dropped,
    /// The process is killed while it appends.
    Killed,
}

/// Fills a storage up to `mib` MiB, and opens it after each kind of stop.
pub(crate) fn run(dir: &Path, mib: u64) {
    let mut store = Store::open(dir);
    let batch = any();
    let bytes = batch.bytes().len() as u64;
    for n in 0..(mib << 20) / bytes {
        store.append(&batch, 16);
        if n % 8192 == 0 {
            println!("{} MiB", (n * bytes) >> 20);
        }
    }
    store.settle(0);
    use Stop::{Clean, Dropped, Killed};
    for stop in [
        Clean, Dropped, Killed, Clean, Killed, Killed, Dropped, Killed,
    ] {
        store = again(dir, mib, store, stop);
    }
    store.stop(true);
}

fn again(dir: &Path, mib: u64, mut store: Store, stop: Stop) -> Store {
    if let Stop::Dropped = stop {
        // So that there is something behind the last checkpoint.
        for _ in 0..100 {
            store.append(&any(), 16);
        }
        store.settle(0);
    }
    store.stop(!matches!(stop, Stop::Dropped));
    if let Stop::Killed = stop {
        killed(dir);
    }
    // Only root may empty the system's cache.
    let cold = std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
    let begun = Instant::now();
    let opened = Store::open(dir);
    println!(
        "opened {mib} MiB, {}, after a {} in {:.1} ms (files read in {:.1} ms)",
        if cold { "cold" } else { "cached" },
        match stop {
            Stop::Clean => "clean stop",
            Stop::Dropped => "stop without an end",
            Stop::Killed => "kill",
        },
        begun.elapsed().as_secs_f64() * 1e3,
        opened.open_ms,
    );
    opened
}

/// A process of its own appends to it, and is killed.
fn killed(dir: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = command.arg("appends").arg(dir).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Appends until it is killed; says when it has begun.
pub(crate) fn append(dir: &Path) {
    let mut store = Store::open(dir);
    let batch = any();
    for n in 0.. {
        store.append(&batch, 16);
        if n == 100 {
            println!("begun");
        }
    }
}

fn any() -> Checked<Batch> {
    batch((0..540).map(|n| format!("topic/{n}")))
}
