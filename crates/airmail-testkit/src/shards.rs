//! The directories of a node's shards.

use std::fs;
use std::path::{Path, PathBuf};

/// All in a data directory, in order.
pub fn directories(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data).into_iter().flatten().flatten();
    let shards = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("shard-"));
    let mut shards: Vec<PathBuf> = shards.map(|entry| entry.path()).collect();
    shards.sort();
    shards
}

/// The one that has stored the most; the first of equals, or where the first would be.
pub fn fullest(data: &Path) -> PathBuf {
    let shards = directories(data).into_iter().rev();
    let fullest = shards.max_by_key(|shard| segment_bytes(shard));
    fullest.unwrap_or_else(|| data.join("shard-0000"))
}

fn segment_bytes(shard: &Path) -> u64 {
    let entries = fs::read_dir(shard).into_iter().flatten().flatten();
    let segments = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("seg-"));
    // A file may go while one looks.
    segments
        .map(|entry| entry.metadata().map_or(0, |found| found.len()))
        .sum()
}
