//! Messages that prove themselves: a payload is a function of its number and length, so that a
//! delivery or the simulated disk shows whether it is whole.

use crate::entropy::Entropy;
use bytes::Bytes;

/// A message of the run. Never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

const MARK: [u8; 8] = *b"\x93sim\xe7msg";
const HEAD_BYTES: usize = 20;

/// The payload of a message: `HEAD_BYTES` and `filler` bytes.
#[must_use]
pub fn payload(id: MessageId, filler: u32) -> Bytes {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + filler as usize);
    bytes.extend_from_slice(&MARK);
    bytes.extend_from_slice(&id.0.to_le_bytes());
    bytes.extend_from_slice(&filler.to_le_bytes());
    let mut chance = Entropy::new(id.0 ^ 0x5a5a);
    while bytes.len() < HEAD_BYTES + filler as usize {
        let left = HEAD_BYTES + filler as usize - bytes.len();
        bytes.extend_from_slice(&chance.next().to_le_bytes()[..left.min(8)]);
    }
    bytes.into()
}

/// The message whose payload `bytes` is, or begins with; `None` unless every byte of it is right.
#[must_use]
pub fn identify(bytes: &[u8]) -> Option<(MessageId, usize)> {
    let head = bytes.get(..HEAD_BYTES)?;
    if head[..8] != MARK {
        return None;
    }
    let id = MessageId(u64::from_le_bytes(head[8..16].try_into().ok()?));
    let filler = u32::from_le_bytes(head[16..20].try_into().ok()?);
    let length = HEAD_BYTES + filler as usize;
    let found = bytes.get(..length)?;
    (found == payload(id, filler)).then_some((id, length))
}

/// Every whole message in `bytes`, with the place of its payload.
pub fn scan(bytes: &[u8], mut found: impl FnMut(MessageId, std::ops::Range<usize>)) {
    let mut at = 0;
    while let Some(step) = bytes[at..].iter().position(|byte| *byte == MARK[0]) {
        at += step;
        if let Some((id, length)) = identify(&bytes[at..]) {
            found(id, at..at + length);
            at += length;
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_found_among_other_bytes_only_while_it_is_whole() {
        let mut bytes = vec![0x93; 7];
        bytes.extend_from_slice(&payload(MessageId(5), 33));
        bytes.extend_from_slice(&payload(MessageId(6), 0));
        let all = |bytes: &[u8]| {
            let mut ids = Vec::new();
            scan(bytes, |id, _| ids.push(id.0));
            ids
        };
        assert_eq!(all(&bytes), [5, 6]);
        bytes[40] ^= 1;
        assert_eq!(all(&bytes), [6]);
        bytes.pop();
        assert!(all(&bytes).is_empty());
    }
}
