//! Positions: where a subscription stands, as opaque text.
//!
//! `pos1-` and then base64url of: namespace id u32, map epoch u32, entries u16, then for each log
//! lane u8, index u16, incarnation u64, next u64; at the end crc32c u32 of all before. Little endian.

use crate::error::Error;
use crate::id::{Incarnation, LogId, MapEpoch, NamespaceId, Sequence};
use std::fmt;
use std::str::FromStr;

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
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

impl FromStr for Position {
    type Err = Error;

    /// Reads what `Display` wrote.
    ///
    /// # Errors
    /// `POSITION_INVALID` with what is wrong.
    fn from_str(_text: &str) -> Result<Position, Error> {
        todo!()
    }
}
