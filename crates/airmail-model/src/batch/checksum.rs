//! CRC-32C, fast for short inputs.
//!
//! Each record's body has a checksum, and most bodies are a few hundred bytes. The `crc32c` crate
//! is made for long inputs: it goes byte by byte up to the next aligned word and after the last
//! one, which for 100 bytes takes longer than all words between. Here short inputs are read in
//! words from their first byte on; a processor that computes the checksum reads them wherever they
//! lie.

/// Length from which the three strands of the `crc32c` crate pay.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 640;

/// The checksum of `bytes`.
#[inline]
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < LONG_BYTES
        && let Some(able) = <archmage::X64V2Token as archmage::SimdToken>::summon()
    {
        return short(able, bytes);
    }
    crc32c::crc32c(bytes)
}

/// Computes it by the processor's own instruction, which the token says that it has.
#[cfg(target_arch = "x86_64")]
#[archmage::arcane]
fn short(_able: archmage::X64V2Token, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks();
    let mut wide = u64::from(u32::MAX);
    for word in words {
        wide = _mm_crc32_u64(wide, u64::from_le_bytes(*word));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the upper half is 0")]
    let mut crc = wide as u32;
    let (half, rest) = match rest.split_first_chunk() {
        Some((half, rest)) => (Some(half), rest),
        None => (None, rest),
    };
    if let Some(half) = half {
        crc = _mm_crc32_u32(crc, u32::from_le_bytes(*half));
    }
    for byte in rest {
        crc = _mm_crc32_u8(crc, *byte);
    }
    !crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_same_for_every_length_wherever_it_begins() {
        let bytes: Vec<u8> = (0..2048_u32).map(|n| (n * 7 + n / 256) as u8).collect();
        for begin in 0..9 {
            for length in 0..1024 {
                let part = &bytes[begin..begin + length];
                assert_eq!(
                    super::crc32c(part),
                    crc32c::crc32c(part),
                    "{length} bytes from {begin}"
                );
            }
        }
    }
}
