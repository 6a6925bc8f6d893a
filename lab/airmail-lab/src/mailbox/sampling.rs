//! Samples that are taken once a second while a run is under way: processors, PostgreSQL's own
//! counters, the nodes' counters.

use super::database::{Connection, Processes, Server};
use super::service::Service;
use airmail_bench::clock::now_us;
use airmail_bench::counters::sums;
use airmail_bench::process::Usage;
use airmail_experiments::mailbox::record::Sink;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

const INTERVAL_US: u64 = 1_000_000;
const LOOK: Duration = Duration::from_millis(20);

/// Counters of nodes that are kept, by what they are called in the record.
const COUNTERS: [(&str, &str); 6] = [
    (
        "node_read_s",
        "airmail_mailbox_request_seconds_sum{request=\"Receive\"}",
    ),
    (
        "node_reads",
        "airmail_mailbox_request_seconds_count{request=\"Receive\"}",
    ),
    ("store_requests", "airmail_mailbox_store_requests_total"),
    (
        "store_round_trips",
        "airmail_mailbox_store_round_trips_total",
    ),
    (
        "store_waiting_s",
        "airmail_mailbox_store_waiting_seconds_total",
    ),
    (
        "store_round_trip_s",
        "airmail_mailbox_store_round_trip_seconds_total",
    ),
];

/// Bytes of the user's tables with their indexes; what was written to the log; checkpoints, wherever
/// this version counts them; runs of autovacuum.
const DATABASE: &str = "
    SELECT (SELECT coalesce(sum(pg_table_size(c.oid) + pg_indexes_size(c.oid)), 0)::float8
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' AND n.nspname IN ('airmail', 'public')) AS table_bytes,
           (pg_current_wal_lsn() - '0/0')::float8 AS wal_bytes,
           (SELECT coalesce(sum(autovacuum_count), 0)::float8 FROM pg_stat_user_tables) AS autovacuums";
const CHECKPOINTS_17: &str =
    "SELECT (num_timed + num_requested)::float8 AS checkpoints FROM pg_stat_checkpointer";
const CHECKPOINTS: &str =
    "SELECT (checkpoints_timed + checkpoints_req)::float8 AS checkpoints FROM pg_stat_bgwriter";

/// The processes that are sampled.
struct Watched {
    server: Option<(Option<Processes>, Connection)>,
    nodes: Vec<(u32, String)>,
    checkpoints: &'static str,
}

/// Looks, from now until this is dropped.
#[derive(Debug)]
pub(super) struct Sampling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampling {
    pub(super) fn start(
        database: Option<(&Server, &str)>,
        service: Option<&Service>,
        sink: Sink,
    ) -> anyhow::Result<Sampling> {
        let server = match database {
            Some((server, url)) => Some((server.processes(), Connection::open(url)?)),
            None => None,
        };
        let new = server
            .as_ref()
            .is_some_and(|(_, connection)| connection.row(CHECKPOINTS_17).is_ok());
        let nodes = service.iter().flat_map(|service| &service.nodes);
        let watched = Watched {
            server,
            nodes: nodes
                .map(|node| (node.pid(), node.http().to_owned()))
                .collect(),
            checkpoints: if new { CHECKPOINTS_17 } else { CHECKPOINTS },
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("sampling".into())
            .spawn(move || look_until(&watched, &stopped, &sink))?;
        Ok(Sampling {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it could not see is not in the record.
            let _ = thread.join();
        }
    }
}

fn look_until(watched: &Watched, stopped: &AtomicBool, sink: &Sink) {
    let mut next_us = now_us();
    while !stopped.load(Ordering::Relaxed) {
        if now_us() < next_us {
            sleep(LOOK);
            continue;
        }
        next_us += INTERVAL_US;
        look(watched, sink);
    }
    look(watched, sink);
}

fn look(watched: &Watched, sink: &Sink) {
    let at_us = now_us();
    let note = |name: &str, value: f64| sink.sample(at_us, name, value);
    let seconds = |usage: Usage| usage.cpu_us as f64 / 1e6;
    if let Some((busy, all)) = processors(&fs::read_to_string("/proc/stat").unwrap_or_default()) {
        note("machine_busy_s", busy);
        note("machine_s", all);
    }
    note("clients_cpu_s", seconds(Usage::own()));
    let nodes = watched.nodes.iter().map(|(pid, _)| Usage::of(*pid));
    note("nodes_cpu_s", nodes.map(seconds).sum());
    if let Some((processes, connection)) = &watched.server {
        if let Some(processes) = processes {
            note("database_cpu_s", seconds(processes.usage()));
        }
        for sql in [DATABASE, watched.checkpoints] {
            let Ok(row) = connection.row(sql) else {
                continue;
            };
            for (place, column) in row.columns().iter().enumerate() {
                if let Ok(value) = row.try_get(place) {
                    note(column.name(), value);
                }
            }
        }
    }
    let mut counted: BTreeMap<&str, f64> = BTreeMap::new();
    for (_, address) in &watched.nodes {
        let metrics: Vec<&str> = COUNTERS.iter().map(|(_, metric)| *metric).collect();
        let Ok(values) = sums(address, &metrics) else {
            continue;
        };
        for ((name, _), value) in COUNTERS.iter().zip(values) {
            *counted.entry(name).or_default() += value;
        }
    }
    for (name, value) in counted {
        note(name, value);
    }
}

/// Seconds that processors were busy, and all of their seconds, since the machine began.
fn processors(stat: &str) -> Option<(f64, f64)> {
    const TICKS_PER_S: f64 = 100.0;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .take(8)
        .filter_map(|t| t.parse().ok())
        .collect();
    let all: f64 = ticks.iter().sum();
    // Idle, and waiting for a disk.
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(((all - idle) / TICKS_PER_S, all / TICKS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_waits_for_the_disk_is_not_busy() {
        let stat = "cpu  100 0 50 700 150 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8\n";
        assert_eq!(processors(stat), Some((1.5, 10.0)));
        assert_eq!(processors(""), None);
    }
}
