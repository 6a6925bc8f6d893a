//! Bodies of the batch that is being made, with free space before them for its head.
//!
//! A head (header and tables) can be written only when its batch is complete, and stands first. So
//! space is left for it, the size of the previous head and a little more: in steady state the batch
//! is finished where its bodies lie, and none is moved. If the space is too small, or the buffer
//! much larger than the batch, or the batch so small that moving it costs nothing, the batch is
//! copied out, and the buffer stays for the next.
//!
//! Invariant: a batch never holds more than twice the memory that it fills.

use bytes::{Buf, Bytes};

/// Largest buffer that is kept, or allocated in advance, for the next batch: one large message must
/// not hold its memory for ever.
const KEPT_BYTES: usize = 128 << 10;
/// Payloads below this size are copied out of the buffer.
const SMALL_BYTES: usize = 4 << 10;
/// The part of a batch's size by which the next may be larger and find room all the same.
const SPARE_PART: usize = 8;

/// Bodies, one after the other.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    /// The room, then the bodies.
    buffer: Vec<u8>,
    room: usize,
    /// Sizes of the head and the bodies of the previous batch, in bytes.
    before: (usize, usize),
}

impl Bodies {
    /// Total size of the bodies, in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.buffer.len() - self.room
    }

    /// Leaves room for a head, before the first body, of `body_bytes`, is written.
    pub(super) fn begin(&mut self, body_bytes: usize) {
        let (head, bodies) = self.before;
        self.room = head + head / SPARE_PART;
        if self.buffer.capacity() == 0 {
            let bodies = bodies + bodies / SPARE_PART;
            let bytes = (self.room + bodies).min(KEPT_BYTES);
            self.buffer.reserve_exact(bytes.max(self.room + body_bytes));
        }
        self.buffer.resize(self.room, 0);
    }

    /// Where the next body is written.
    #[inline]
    pub(super) fn writer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Returns the bytes written since the length was `start`.
    #[inline]
    pub(super) fn since(&self, start: usize) -> &[u8] {
        &self.buffer[self.room + start..]
    }

    /// Finishes the batch: a head of `head` bytes, written by `write` over zeros, or over another
    /// head; and the bodies. There are none after that.
    pub(super) fn finish(&mut self, head: usize, write: impl FnOnce(&mut [u8])) -> Bytes {
        let all = head + self.len();
        self.before = (head, self.len());
        let room = std::mem::take(&mut self.room);
        if head <= room && all >= SMALL_BYTES && all >= self.buffer.capacity() / 2 {
            let mut batch = std::mem::take(&mut self.buffer);
            write(&mut batch[room - head..room]);
            let mut batch = Bytes::from(batch);
            batch.advance(room - head);
            return batch;
        }
        let mut batch = Vec::with_capacity(all);
        batch.resize(head, 0);
        write(&mut batch);
        batch.extend_from_slice(&self.buffer[room..]);
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        batch.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of bodies of these lengths, its head as long as all bodies together.
    fn make(bodies: &mut Bodies, lengths: &[usize]) -> Bytes {
        for (n, length) in lengths.iter().enumerate() {
            if n == 0 {
                bodies.begin(*length);
            }
            let start = bodies.len();
            let end = bodies.room + start + length;
            bodies.writer().resize(end, n as u8);
            assert_eq!(bodies.since(start).len(), *length);
        }
        let head = bodies.len();
        bodies.finish(head, |out| out.fill(b'h'))
    }

    fn expected(lengths: &[usize]) -> Vec<u8> {
        let mut all = vec![b'h'; lengths.iter().sum()];
        for (n, length) in lengths.iter().enumerate() {
            all.resize(all.len() + length, n as u8);
        }
        all
    }

    #[test]
    fn head_and_bodies_are_the_same_whatever_was_before() {
        let mut bodies = Bodies::default();
        let sizes = [
            1, 10, 3000, 3100, 20_000, 22_000, 24_000, 100, 300_000, 5, 50_000,
        ];
        for (n, size) in sizes.into_iter().enumerate() {
            for count in [1, 2, n + 1] {
                let lengths = vec![size; count];
                let batch = make(&mut bodies, &lengths);
                assert_eq!(batch, expected(&lengths), "{size} x {count}");
                assert_eq!(bodies.len(), 0);
            }
        }
    }

    #[test]
    fn no_body_is_moved_once_sizes_are_steady() {
        let mut bodies = Bodies::default();
        let mut at = Vec::new();
        for size in [5000, 5000, 5300, 5200] {
            bodies.begin(size);
            let start = bodies.len();
            let begin = bodies.room + start;
            bodies.writer().resize(begin + size, 1);
            let body = bodies.since(0).as_ptr();
            let batch = bodies.finish(200, |_| {});
            at.push(batch[200..].as_ptr() == body);
        }
        assert_eq!(at, [false, true, true, true]);
    }

    #[test]
    fn a_large_batch_leaves_no_large_buffer_behind() {
        let mut bodies = Bodies::default();
        for lengths in [&[2_000_000][..], &[10], &[2_000_000, 10], &[20]] {
            make(&mut bodies, lengths);
            assert!(bodies.buffer.capacity() <= KEPT_BYTES);
        }
        bodies.begin(1);
        assert!(bodies.buffer.capacity() <= KEPT_BYTES);
    }
}
