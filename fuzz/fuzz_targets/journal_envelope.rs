//! The journal's fixed-size heads: of a segment, and of each record in it.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_log::journal::format::{ENVELOPE_BYTES, Envelope, HEADER_BYTES, SegmentHeader};

/// The first `N` bytes, with the checksum that they would need.
fn sealed<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    let mut head: [u8; N] = *data.first_chunk()?;
    let crc = crc32c::crc32c(&head[8..]);
    head[4..8].copy_from_slice(&crc.to_le_bytes());
    Some(head)
}

fuzz_target!(|data: &[u8]| {
    assert!(Envelope::decode(data).is_none_or(|envelope| envelope.encode()[..] == data[..40]));
    if let Some(head) = sealed::<ENVELOPE_BYTES>(data)
        && let Some(envelope) = Envelope::decode(&head)
    {
        assert_eq!(envelope.encode(), head);
    }
    let _ = SegmentHeader::decode(data);
    if let Some(head) = sealed::<HEADER_BYTES>(data)
        && let Ok(header) = SegmentHeader::decode(&head)
    {
        assert!(SegmentHeader::decode(&header.encode()).is_ok_and(|again| again == header));
    }
});
