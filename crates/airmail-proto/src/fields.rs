//! The fields of a small message, written in one go on the stack.
//!
//! What is said for each batch is a few numbers. The generated code measures them, measures them
//! again for the message around them, and writes them byte by byte into a buffer that may grow;
//! with one message in a batch that is a good part of what the batch costs.

use prost::encoding::WireType;

/// See the module's documentation. `ROOM` is in bytes, and more than the message can take: a key
/// takes one, a number at most ten.
#[derive(Clone, Debug)]
pub(crate) struct Fields<const ROOM: usize> {
    bytes: [u8; ROOM],
    length: usize,
}

impl<const ROOM: usize> Fields<ROOM> {
    pub(crate) fn new() -> Fields<ROOM> {
        Fields {
            bytes: [0; ROOM],
            length: 0,
        }
    }

    /// The fields written so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// A number, unless it is 0, which is not written.
    pub(crate) fn number(&mut self, field: u8, value: u64) {
        if value != 0 {
            self.key(field, WireType::Varint);
            self.varint(value);
        }
    }

    /// A message within.
    pub(crate) fn message(&mut self, field: u8, fields: &[u8]) {
        self.begin(field, fields.len());
        self.extend(fields);
    }

    /// The beginning of a message or of bytes, `length` of which follow.
    pub(crate) fn begin(&mut self, field: u8, length: usize) {
        self.key(field, WireType::LengthDelimited);
        self.varint(length as u64);
    }

    /// Fields that have been written elsewhere.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.bytes[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// Fields of this API have numbers below 16: one byte.
    fn key(&mut self, field: u8, wire: WireType) {
        self.byte(field << 3 | wire as u8);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    fn byte(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1;
    use prost::Message;

    #[test]
    fn fields_are_written_as_the_generated_code_writes_them() {
        for (number, small) in [(0, 0), (1, 127), (128, 128), (u64::MAX, u32::MAX)] {
            let mark = v1::Mark {
                log: Some(v1::Log {
                    namespace_id: small,
                    lane: 1,
                    index: small,
                }),
                previous: number,
                next: number / 3,
            };
            let mut log = Fields::<24>::new();
            log.number(1, small.into());
            log.number(2, 1);
            log.number(3, small.into());
            let mut fields = Fields::<64>::new();
            fields.message(1, log.bytes());
            fields.number(2, number);
            fields.number(3, number / 3);
            assert_eq!(fields.bytes(), mark.encode_to_vec());
        }
    }
}
