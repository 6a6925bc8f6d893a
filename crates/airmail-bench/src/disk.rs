//! The disk's own pace: one write and fdatasync after the other, at a rate, into a file that was
//! written before. A durable ack takes at least this long.

use crate::clock::now_us;
use crate::latency::{Latencies, Percentiles};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// Bytes of each write.
const BLOCK_BYTES: usize = 4096;
/// Size of the file, which is written round and round.
const FILE_BYTES: u64 = 64 << 20;

/// Measurements of a disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DiskReport {
    /// Writes, each with its sync.
    pub writes: u64,
    /// Half of them took at most this, in microseconds.
    pub p50_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
    /// All figures.
    pub latency_us: Percentiles,
    /// Syncs a second.
    pub syncs_per_s: f64,
}

/// Writes and syncs for so long, a write each time that `rate` a second makes one due, or at once if
/// the last one took longer: as a log does that gathers what comes meanwhile. The file is made at
/// `path`, filled before, and removed.
///
/// # Errors
/// The error of the disk.
pub fn measure(path: &Path, duration_ms: u64, rate: u64) -> io::Result<DiskReport> {
    fill(path)?;
    let measured = write_and_sync(path, duration_ms, rate);
    std::fs::remove_file(path)?;
    measured
}

fn fill(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()
}

fn write_and_sync(path: &Path, duration_ms: u64, rate: u64) -> io::Result<DiskReport> {
    let file = File::options().write(true).open(path)?;
    let block = vec![1; BLOCK_BYTES];
    let mut latencies = Latencies::new();
    let interval_us = 1_000_000 / rate.max(1);
    let start_us = now_us();
    let end_us = start_us + duration_ms * 1000;
    let (mut at, mut due_us) = (0, start_us);
    loop {
        let began_us = now_us();
        if began_us >= end_us {
            break;
        }
        if began_us < due_us {
            std::thread::sleep(Duration::from_micros(due_us - began_us));
            continue;
        }
        file.write_all_at(&block, at)?;
        file.sync_data()?;
        let ended_us = now_us();
        latencies.record(ended_us - began_us);
        at = (at + BLOCK_BYTES as u64) % FILE_BYTES;
        due_us = ended_us.max(due_us + interval_us);
    }
    let latency_us = latencies.percentiles();
    let seconds = now_us().saturating_sub(start_us).max(1) as f64 / 1e6;
    Ok(DiskReport {
        writes: latencies.count(),
        p50_us: latency_us.p50,
        p99_us: latency_us.p99,
        latency_us,
        syncs_per_s: (latencies.count() as f64 / seconds).round(),
    })
}
