//! Puts a batch's checksums right, so that a fuzzer gets past them.

/// The bytes with length and checksums as they would have to be, if there are any places for them.
pub fn seal(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let u32_at = |bytes: &[u8], at: usize| {
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    let length = u32::try_from(bytes.len()).ok()?;
    bytes.get_mut(..66)?[..4].copy_from_slice(b"AMBT");
    bytes[8] = 1;
    bytes[12..16].copy_from_slice(&length.to_le_bytes());
    let bodies = u32_at(&bytes, 16)?;
    let records = u32_at(&bytes, 20)? & 0xffff;
    if bodies > bytes.len() {
        return None;
    }
    let mut start = 0;
    for record in (0..records).map(|n| bodies.checked_sub((records - n) * 20)) {
        let end = u32_at(&bytes, record?)?;
        // Only bodies that are where they can be; the check must refuse the others.
        if let Some(body) = bytes
            .get(bodies..)
            .and_then(|bodies| bodies.get(start..end))
        {
            let crc = crc32c::crc32c(body);
            bytes[record? + 4..record? + 8].copy_from_slice(&crc.to_le_bytes());
        }
        start = end;
    }
    let crc = crc32c::crc32c(bytes.get(8..bodies)?);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    Some(bytes)
}
