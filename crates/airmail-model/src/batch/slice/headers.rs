//! A slice without payloads, for a subscriber that asked for none.
//!
//! What is left of the bodies is copied: it is small, its checksums are made anew, so it is read anyway,
//! and by reference it would hold the payloads' memory. No checksum is made anew over what is not as it
//! was written: such a body stays whole, with the checksum that tells.

use super::{Content, Slice, narrow, put};
use crate::batch::body::Body;
use crate::batch::checksum::crc32c;
use crate::batch::layout::{
    Layout, RECORD_ATTRIBUTES, RECORD_BODY_CRC, RECORD_BODY_END, RECORD_BYTES, RECORD_FLAGS,
    u16_at, u32_at,
};
use crate::batch::view::Batch;
use bytes::Bytes;

impl Batch {
    /// The records at the given places of the record table, which must ascend, as
    /// [`Batch::slice_of`] gives them, but without their payloads: attributes, time to live, audience and all
    /// else are there. `None` if there are no places. [`Batch::check_headers`] reads it.
    ///
    /// # Panics
    /// If a place is not less than [`Batch::records`].
    #[must_use]
    pub fn headers_of(&self, kept: &[u16]) -> Option<Slice> {
        self.slice_by(kept, self.finder(kept), Content::Headers)
    }

    /// Sets ends and checksums in the record table of a slice of the kept records as they are without payloads;
    /// gives what is left of the bodies.
    pub(super) fn write_headers(&self, layout: &Layout, kept: &[u16], table: &mut [u8]) -> Bytes {
        let bytes = self.bytes();
        let mut left = Vec::new();
        for (&place, entry) in kept.iter().zip(table.chunks_exact_mut(RECORD_BYTES)) {
            let (start, end) = layout.body(bytes, place.into());
            let body = &bytes[layout.bodies + start..layout.bodies + end];
            if let Some(header) = sound_header(entry, body) {
                left.extend_from_slice(header);
                put(entry, RECORD_BODY_CRC, &crc32c(header).to_le_bytes());
            } else {
                left.extend_from_slice(body);
            }
            put(entry, RECORD_BODY_END, &narrow(left.len()).to_le_bytes());
        }
        left.into()
    }
}

/// The part of a body before its payload; `None` if the body is damaged.
fn sound_header<'a>(entry: &[u8], body: &'a [u8]) -> Option<&'a [u8]> {
    if crc32c(body) != u32_at(entry, RECORD_BODY_CRC) {
        return None;
    }
    let flags = u16_at(entry, RECORD_FLAGS);
    let read = Body::read(body, flags, u16_at(entry, RECORD_ATTRIBUTES)).ok()?;
    Some(&body[..body.len() - read.payload.len()])
}
