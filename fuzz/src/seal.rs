//! Repair of a batch's checksums, so that a fuzzer gets past them.

/// Set in a byte that readers ignore, it leaves the hashes of topics as they are.
const KEEP_HASHES: u8 = 0x80;

/// The bytes with length, hashes and checksums as they would have to be, if there are any places
/// for them.
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
    if bytes[11] & KEEP_HASHES == 0 {
        hash_topics(&mut bytes);
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

/// Gives each name that is where it can be the hash that it would need.
fn hash_topics(bytes: &mut [u8]) {
    let u16_at =
        |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (topics, table) = (u16_at(bytes, 22), 66 + u16_at(bytes, 64));
    let seed = u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]);
    let names = table + topics * 20;
    let mut start = 0;
    for entry in (table..names).step_by(20) {
        let Some(end) = bytes.get(entry + 16..entry + 20) else {
            return;
        };
        let end = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
        if let Some(name) = bytes.get(names..).and_then(|names| names.get(start..end)) {
            let hash = xxhash_rust::xxh3::xxh3_128_with_seed(name, seed.into());
            bytes[entry..entry + 16].copy_from_slice(&hash.to_le_bytes());
        }
        start = end;
    }
}
