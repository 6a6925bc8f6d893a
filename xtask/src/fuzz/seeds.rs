//! Each fuzz target's first inputs, made from the golden vectors and from `fuzz/seeds`.
//!
//! A decoder behind a checksum is given a body without its head too, as its target puts the
//! checksum right itself.

use crate::workspace;
use anyhow::Context as _;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Bytes before a checkpoint's body: magic, version, length, checksum.
const CHECKPOINT_HEAD: usize = 20;
/// Bytes before the body of the durable ends: length, checksum.
const ENDS_HEAD: usize = 8;
/// Bytes of a segment's header, and of the envelope before each batch or command.
const SEGMENT_HEAD: usize = 64;
const ENVELOPE: usize = 40;
/// Bytes of a command's checksum.
const CRC: usize = 4;
/// The bytes of a segment that begin an envelope are the same for all of it.
const MAGIC: usize = 4;

/// Writes `<directory>/<target>/seeds` anew for each target.
pub(crate) fn write(targets: &[String], directory: &Path) -> anyhow::Result<()> {
    let mut seeds = Vec::new();
    batches(&mut seeds)?;
    positions(&mut seeds)?;
    filters(&mut seeds)?;
    files(&mut seeds)?;
    by_hand(&mut seeds)?;
    for target in targets {
        let place = directory.join(target).join("seeds");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place)?;
        let own = seeds.iter().filter(|seed| seed.target == target.as_str());
        for (n, seed) in own.enumerate() {
            fs::write(place.join(format!("{n:04}")), &seed.bytes)?;
        }
    }
    Ok(())
}

/// An input that a target begins with.
struct Seed {
    target: String,
    bytes: Vec<u8>,
}

fn add(seeds: &mut Vec<Seed>, target: &str, bytes: &[u8]) {
    seeds.push(Seed {
        target: target.to_owned(),
        bytes: bytes.to_vec(),
    });
}

fn vector(name: &str) -> anyhow::Result<Value> {
    let path = workspace::root().join("vectors").join(name);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

fn cases<'a>(document: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    document
        .get(list)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn batches(seeds: &mut Vec<Seed>) -> anyhow::Result<()> {
    let document = vector("batch.json")?;
    for case in cases(&document, "cases") {
        let text = case.get("hex").and_then(Value::as_str).unwrap_or_default();
        let bytes = unhex(text).context("batch.json has hex that is none")?;
        for target in ["batch_check", "batch_check_stored", "slice"] {
            add(seeds, target, &bytes);
        }
    }
    Ok(())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

fn positions(seeds: &mut Vec<Seed>) -> anyhow::Result<()> {
    let document = vector("position.json")?;
    let lists = document.as_object().context("position.json is no object")?;
    for case in lists.keys().flat_map(|list| cases(&document, list)) {
        let text = case.get("text").and_then(Value::as_str);
        add(seeds, "position", text.unwrap_or_default().as_bytes());
        add(
            seeds,
            "settings",
            format!("\0{}", text.unwrap_or_default()).as_bytes(),
        );
    }
    Ok(())
}

fn filters(seeds: &mut Vec<Seed>) -> anyhow::Result<()> {
    let document = vector("filter.json")?;
    let lists = ["filters", "invalid", "too_complex"];
    for case in lists.iter().flat_map(|list| cases(&document, list)) {
        let text = case.get("filter").and_then(Value::as_str);
        add(seeds, "filter", text.unwrap_or_default().as_bytes());
    }
    Ok(())
}

/// The data directory of each version.
fn files(seeds: &mut Vec<Seed>) -> anyhow::Result<()> {
    let data = workspace::root().join("vectors/data");
    for version in fs::read_dir(data)? {
        let version = version?.path();
        if !version.is_dir() {
            continue;
        }
        add(seeds, "identity", &fs::read(version.join("identity"))?);
        for file in fs::read_dir(version.join("shard-0000"))? {
            let file = file?;
            let bytes = fs::read(file.path())?;
            let name = file.file_name().to_string_lossy().into_owned();
            match name.split('-').next().unwrap_or_default() {
                "checkpoint" => with_body(seeds, "journal_checkpoint", &bytes, CHECKPOINT_HEAD),
                "ends" => with_body(seeds, "journal_ends", &bytes, ENDS_HEAD),
                "idx" => add(seeds, "journal_index", &bytes),
                "seg" => segment(seeds, &bytes),
                _ => {}
            }
        }
    }
    Ok(())
}

fn with_body(seeds: &mut Vec<Seed>, target: &str, bytes: &[u8], head: usize) {
    add(seeds, target, bytes);
    add(seeds, target, bytes.get(head..).unwrap_or_default());
}

/// A segment's header, its envelopes, and what is behind them if that can be a command.
fn segment(seeds: &mut Vec<Seed>, bytes: &[u8]) {
    let Some((head, records)) = bytes.split_at_checked(SEGMENT_HEAD) else {
        return;
    };
    add(seeds, "journal_envelope", head);
    let magic = records.get(..MAGIC).unwrap_or_default();
    for at in (0..records.len()).step_by(8) {
        let Some(envelope) = records.get(at..at + ENVELOPE) else {
            return;
        };
        if !envelope.starts_with(magic) {
            continue;
        }
        add(seeds, "journal_envelope", envelope);
        let length = [envelope[8], envelope[9], envelope[10], envelope[11]];
        let end = at + ENVELOPE + u32::from_le_bytes(length) as usize;
        if let Some(body) = records.get(at + ENVELOPE..end) {
            with_body(seeds, "journal_meta", body, CRC);
        }
    }
}

/// `fuzz/seeds/<target>.seeds`: each line is an input.
fn by_hand(seeds: &mut Vec<Seed>) -> anyhow::Result<()> {
    for file in workspace::files(&[".seeds"])? {
        let target = Path::new(&file.path).file_stem().unwrap_or_default();
        for line in file.text.lines() {
            add(seeds, &target.to_string_lossy(), line.as_bytes());
        }
    }
    Ok(())
}
