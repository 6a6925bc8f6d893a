//! Batches of messages: bytes off a wire are checked again, whoever sent them.

use crate::link_v1;
use crate::malformed::Malformed;
use crate::values::{extent_from_wire, extent_to_wire, need};
use airmail_log::Stored;
use airmail_model::{AppendTime, Batch, Checked, Sequence};
use bytes::Bytes;

/// Batches below this size are copied out of what they came in: a small one that is kept must not keep all
/// that came with it.
const SHARED_BYTES_MIN: usize = 16 << 10;

pub(crate) fn batch_from_wire(bytes: Bytes) -> Result<Checked<Batch>, Malformed> {
    let bytes = if bytes.len() < SHARED_BYTES_MIN {
        Bytes::copy_from_slice(&bytes)
    } else {
        bytes
    };
    let (batch, damaged) = Batch::check_stored(bytes)?;
    match damaged.len() {
        0 => Ok(batch),
        records => Err(Malformed::Damaged { records }),
    }
}

pub(crate) fn stored_to_wire(stored: Stored) -> (link_v1::Stored, Bytes) {
    let head = link_v1::Stored {
        base: stored.base.0,
        extent: Some(extent_to_wire(stored.extent)),
        appended: stored.appended.0,
    };
    (head, stored.batch.bytes().clone())
}

pub(crate) fn stored_from_wire(
    stored: Option<link_v1::Stored>,
    batch: Bytes,
) -> Result<Stored, Malformed> {
    let stored = need(stored, "stored")?;
    Ok(Stored {
        base: Sequence(stored.base),
        extent: extent_from_wire(stored.extent)?,
        appended: AppendTime(stored.appended),
        batch: batch_from_wire(batch)?,
    })
}
