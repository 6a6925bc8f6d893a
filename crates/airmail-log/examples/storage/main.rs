//! Measures the disk storage alone, without node, SDK or network, in a directory of its own:
//!
//! ```text
//! cargo run --release -p airmail-log --example storage -- open DIR MIB
//! cargo run --release -p airmail-log --example storage -- topics DIR MILLIONS
//! cargo run --release -p airmail-log --example storage -- commit DIR RATE SECONDS [fsync|os|memory]
//! cargo run --release -p airmail-log --example storage -- batches DIR BYTES RECORDS BATCHES [fsync|os|memory]
//! ```
//!
//! `open`: how long opening takes, after a clean stop, after one that lets everything fall, and after
//! a kill in the midst of appends, with the system's cache emptied if that is allowed. `topics`: what publishing to so many distinct topics costs in
//! memory and processor time, and what reading the history of one among them reads. `commit`:
//! latency from when a message is due to when it is as durable as its log says, beside write and
//! fdatasync of a file written before. `batches`: what one batch of so many messages costs, up to a
//! reader at the tail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool that measures"
)]

mod batches;
mod commit;
mod open;
mod store;
mod topics;

use airmail_model::Durability;
use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> u64 { args.get(at).and_then(|n| n.parse().ok()).unwrap_or(0) };
    let durability = |at: usize| match args.get(at).map(String::as_str) {
        Some("memory") => Durability::MEMORY,
        Some("os") => Durability::OS,
        _ => Durability::FSYNC,
    };
    match args.first().map(String::as_str) {
        Some("open") => open::run(Path::new(&args[1]), number(2)),
        Some("appends") => open::append(Path::new(&args[1])),
        Some("topics") => topics::run(Path::new(&args[1]), number(2)),
        Some("commit") => commit::run(Path::new(&args[1]), number(2), number(3), durability(4)),
        Some("batches") => {
            let (bytes, records, count) = (number(2), number(3), number(4));
            batches::run(Path::new(&args[1]), bytes, records, count, durability(5));
        }
        _ => println!(
            "open DIR MIB | topics DIR MILLIONS | commit DIR RATE SECONDS [fsync|os|memory] | \
             batches DIR BYTES RECORDS BATCHES [fsync|os|memory]"
        ),
    }
}
