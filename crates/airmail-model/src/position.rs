//! Positions: a subscription's place, as opaque text.
//!
//! `pos1-` and then base64url of: namespace id u32, map epoch u32, entries u16, then for each log
//! lane u8, index u16, incarnation u64, next u64; at the end crc32c u32 of all before. Little endian.

use crate::error::{Error, ErrorCode};
use crate::id::{Incarnation, Lane, LogId, LogIndex, MapEpoch, NamespaceId, Sequence};
use crate::map::SLOTS;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;

/// The version; a position of another kind would have another.
const PREFIX: &str = "pos1-";
/// Namespace, epoch, entries.
const HEAD_BYTES: usize = 10;
/// Lane, index, incarnation, next.
const LOG_BYTES: usize = 19;
/// The checksum at the end.
const CRC_BYTES: usize = 4;
/// Logs of one position: no map names more.
const LOGS_MAX: usize = SLOTS;
/// The longest text that can be one: refused before it is decoded.
const TEXT_BYTES_MAX: usize = (HEAD_BYTES + LOGS_MAX * LOG_BYTES + CRC_BYTES).div_ceil(3) * 4;

/// Where one log of a position goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The log.
    pub log: LogId,
    /// The life of the log that `next` counts in.
    pub incarnation: Incarnation,
    /// The first number not yet accounted for.
    pub next: Sequence,
}

/// Where a subscription stands. Valid on any node that has the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The namespace of every log in it.
    pub namespace: NamespaceId,
    /// The map that named the logs.
    pub epoch: MapEpoch,
    /// Each log concerned, once.
    pub logs: Vec<LogPosition>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.logs.len() * LOG_BYTES + CRC_BYTES);
        bytes.extend_from_slice(&self.namespace.0.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        // No map has more logs than slots.
        let entries = u16::try_from(self.logs.len()).map_err(|_| fmt::Error)?;
        bytes.extend_from_slice(&entries.to_le_bytes());
        for LogPosition {
            log,
            incarnation,
            next,
        } in &self.logs
        {
            bytes.push(log.lane as u8);
            bytes.extend_from_slice(&log.index.0.to_le_bytes());
            bytes.extend_from_slice(&incarnation.0.to_le_bytes());
            bytes.extend_from_slice(&next.0.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        f.write_str(PREFIX)?;
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Position {
    type Err = Error;

    /// Parses the output of `Display`.
    ///
    /// # Errors
    /// `POSITION_INVALID` with the fault.
    fn from_str(text: &str) -> Result<Position, Error> {
        read(text).map_err(|limit| {
            Error::new(ErrorCode::PositionInvalid)
                .field("position")
                .value(text.escape_debug())
                .limit(limit)
        })
    }
}

/// Reads a position, or says what one would have.
fn read(text: &str) -> Result<Position, &'static str> {
    const WHOLE: &str = "as many logs as it says";
    let encoded = text
        .strip_prefix(PREFIX)
        .ok_or("text that begins with pos1-")?;
    if encoded.len() > TEXT_BYTES_MAX {
        return Err("at most 4096 logs");
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(encoded)
        .map_err(|_| "base64url without padding")?;
    let (body, crc) = bytes.split_last_chunk().ok_or("its checksum")?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return Err("a text copied whole: its checksum is wrong");
    }
    let mut body = body;
    let namespace = NamespaceId(u32::from_le_bytes(take(&mut body).ok_or(WHOLE)?));
    let epoch = MapEpoch(u32::from_le_bytes(take(&mut body).ok_or(WHOLE)?));
    let entries = u16::from_le_bytes(take(&mut body).ok_or(WHOLE)?);
    if usize::from(entries) > LOGS_MAX {
        return Err("at most 4096 logs");
    }
    if body.len() != usize::from(entries) * LOG_BYTES {
        return Err(WHOLE);
    }
    let mut logs: Vec<LogPosition> = Vec::with_capacity(entries.into());
    while !body.is_empty() {
        let [lane] = take(&mut body).ok_or(WHOLE)?;
        let lane = Lane::from_u8(lane).ok_or("lane 0 or 1")?;
        let index = LogIndex(u16::from_le_bytes(take(&mut body).ok_or(WHOLE)?));
        logs.push(LogPosition {
            log: LogId {
                namespace,
                lane,
                index,
            },
            incarnation: Incarnation(u64::from_le_bytes(take(&mut body).ok_or(WHOLE)?)),
            next: Sequence(u64::from_le_bytes(take(&mut body).ok_or(WHOLE)?)),
        });
    }
    let mut named: Vec<LogId> = logs.iter().map(|log| log.log).collect();
    named.sort_unstable();
    if named.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("each log once");
    }
    Ok(Position {
        namespace,
        epoch,
        logs,
    })
}

/// Takes `N` bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}
