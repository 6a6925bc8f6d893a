//! Measures the disk storage alone, without node, SDK or network, in a directory of its own:
//!
//! ```text
//! cargo run --release -p airmail-log --example storage -- open DIR MIB
//! cargo run --release -p airmail-log --example storage -- topics DIR MILLIONS
//! cargo run --release -p airmail-log --example storage -- commit DIR RATE SECONDS [fsync|os|memory]
//! ```
//!
//! `open`: how long opening takes, after a clean stop and after an unclean one, with the system's
//! cache emptied if that is allowed. `topics`: what publishing to so many distinct topics costs in
//! memory and processor time, and what reading the history of one among them reads. `commit`:
//! latency from when a message is due to when it is as durable as its log says, beside write and
//! fdatasync of a file written before.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool that measures"
)]

mod commit;
mod store;
mod topics;

use airmail_model::Durability;
use std::path::Path;
use std::time::Instant;
use store::{Store, batch};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> u64 { args.get(at).and_then(|n| n.parse().ok()).unwrap_or(0) };
    match args.first().map(String::as_str) {
        Some("open") => open(Path::new(&args[1]), number(2)),
        Some("topics") => topics::run(Path::new(&args[1]), number(2)),
        Some("commit") => {
            let durability = match args.get(4).map(String::as_str) {
                Some("memory") => Durability::Memory,
                Some("os") => Durability::Os,
                _ => Durability::Fsync,
            };
            commit::run(Path::new(&args[1]), number(2), number(3), durability);
        }
        _ => println!(
            "open DIR MIB | topics DIR MILLIONS | commit DIR RATE SECONDS [fsync|os|memory]"
        ),
    }
}

fn open(dir: &Path, mib: u64) {
    let mut store = Store::open(dir);
    let batch = batch((0..540).map(|n| format!("topic/{n}")));
    let bytes = batch.bytes().len() as u64;
    for n in 0..(mib << 20) / bytes {
        store.append(&batch, 16);
        if n % 8192 == 0 {
            println!("{} MiB", (n * bytes) >> 20);
        }
    }
    store.settle(0);
    for clean in [true, false, true, false, false] {
        if !clean {
            // So that an unclean stop has something behind the last checkpoint.
            for _ in 0..100 {
                store.append(&batch, 16);
            }
            store.settle(0);
        }
        store.stop(clean);
        // Only root may empty the system's cache.
        let cold = std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
        let begun = Instant::now();
        let opened = Store::open(dir);
        println!(
            "opened {mib} MiB, {}, after a {} stop in {:.1} ms (files read in {:.1} ms)",
            if cold { "cold" } else { "cached" },
            if clean { "clean" } else { "unclean" },
            begun.elapsed().as_secs_f64() * 1e3,
            opened.open_ms,
        );
        store = opened;
    }
}
