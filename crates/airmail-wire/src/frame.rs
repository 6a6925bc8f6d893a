//! Frames: how messages follow one another on a connection.
//!
//! A frame is four bytes of length, big-endian, and a message. [`FrameWriter`] gathers frames until the
//! connection takes them: heads and small batches in one buffer, larger batches as they lie in memory.
//! [`FrameReader`] takes frames out of the bytes that come, however they are cut.
//!
//! Invariants: a frame that is longer than allowed is refused by its length, before anything of it is kept;
//! what is kept of frames that are not whole is their own bytes.

use crate::malformed::Malformed;
use crate::message::OnWire;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes before each message.
const LENGTH_BYTES: usize = 4;
/// Most bytes of a frame, once the other side is known: the largest batch, with room for what stands before it.
pub const FRAME_BYTES_MAX: usize = (1 << 31) + (64 << 10);
/// Field of the batch in every message that has one.
const BATCH_FIELD: u32 = 15;
/// Bytes of a field's key, for fields below 16.
const KEY_BYTES: usize = 1;
/// Batches below this size are copied behind their heads: that is less work than a piece of their own.
const COPIED_BYTES_MAX: usize = 4 << 10;
/// Room that is made for what comes next, at least, and at most: a length alone takes no memory.
const READ_BYTES: usize = 64 << 10;
const READ_BYTES_MAX: usize = 1 << 20;

/// Gathers frames to be sent. As a [`Buf`] it is what remains of them.
#[derive(Debug, Default)]
pub struct FrameWriter {
    pieces: VecDeque<Bytes>,
    /// Bytes of all pieces.
    bytes: usize,
    /// Bytes that follow the pieces.
    last: BytesMut,
}

impl FrameWriter {
    /// Adds a message of a link.
    pub fn put<M: OnWire>(&mut self, message: M) {
        let (head, batch) = message.to_wire();
        let batch_bytes = match batch.len() {
            0 => 0,
            bytes => KEY_BYTES + encoded_len_varint(bytes as u64) + bytes,
        };
        self.begin(&head, batch_bytes);
        if batch_bytes == 0 {
            return;
        }
        encode_key(BATCH_FIELD, WireType::LengthDelimited, &mut self.last);
        encode_varint(batch.len() as u64, &mut self.last);
        if batch.len() < COPIED_BYTES_MAX {
            self.last.extend_from_slice(&batch);
        } else {
            let before = self.last.split().freeze();
            self.bytes += before.len() + batch.len();
            self.pieces.extend([before, batch]);
        }
    }

    /// Adds a message that has no batch, as those of the handshake.
    pub fn put_plain(&mut self, message: &impl Message) {
        self.begin(message, 0);
    }

    /// Adds a sign of life: a frame without a message, which a reader of a link passes over.
    pub fn put_alive(&mut self) {
        self.last.put_u32(0);
    }

    /// The length of a frame, and its message up to the batch.
    fn begin(&mut self, head: &impl Message, batch_bytes: usize) {
        let bytes = head.encoded_len() + batch_bytes;
        self.last
            .reserve(LENGTH_BYTES + bytes.min(COPIED_BYTES_MAX));
        self.last.put_u32(u32::try_from(bytes).unwrap_or(u32::MAX));
        head.encode_raw(&mut self.last);
    }
}

impl Buf for FrameWriter {
    fn remaining(&self) -> usize {
        self.bytes + self.last.len()
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&self.last, |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let last = (!self.last.is_empty()).then_some(&self.last[..]);
        let all = self.pieces.iter().map(|piece| &piece[..]).chain(last);
        let mut filled = 0;
        for (slice, piece) in slices.iter_mut().zip(all) {
            *slice = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let taken = count.min(piece.len());
            self.bytes -= taken;
            count -= taken;
            if taken < piece.len() {
                piece.advance(taken);
                return;
            }
            self.pieces.pop_front();
        }
        self.last.advance(count);
    }
}

/// Takes frames out of what has come. See the module's documentation.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    frame_bytes_max: usize,
}

impl FrameReader {
    /// A reader of frames of at most `frame_bytes_max`.
    #[must_use]
    pub fn new(frame_bytes_max: usize) -> FrameReader {
        FrameReader {
            buffer: BytesMut::new(),
            frame_bytes_max,
        }
    }

    /// Allows frames of up to `frame_bytes_max` from now on.
    pub fn allow(&mut self, frame_bytes_max: usize) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// The buffer into which what comes is to be read, behind what is there, with room for more.
    pub fn room(&mut self) -> &mut BytesMut {
        let missing = match self.length() {
            Some(length) if length <= self.frame_bytes_max => {
                (LENGTH_BYTES + length).saturating_sub(self.buffer.len())
            }
            _ => 0,
        };
        self.buffer
            .reserve(missing.clamp(READ_BYTES, READ_BYTES_MAX));
        &mut self.buffer
    }

    /// Whether nothing of another frame is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next message of a link, if all of it is here. Signs of life are passed over.
    ///
    /// # Errors
    /// [`Malformed`]: the frame is too long, or is no such message.
    pub fn message<M: OnWire>(&mut self) -> Result<Option<M>, Malformed> {
        while let Some(frame) = self.frame()? {
            if !frame.is_empty() {
                return Ok(Some(M::from_wire(M::Message::decode(frame)?)?));
            }
        }
        Ok(None)
    }

    fn length(&self) -> Option<usize> {
        let length = self.buffer.first_chunk::<LENGTH_BYTES>()?;
        Some(u32::from_be_bytes(*length) as usize)
    }

    /// The next frame without its length, if all of it is here.
    ///
    /// # Errors
    /// [`Malformed`]: the frame is too long.
    pub fn frame(&mut self) -> Result<Option<Bytes>, Malformed> {
        let Some(bytes) = self.length() else {
            return Ok(None);
        };
        if bytes > self.frame_bytes_max {
            let max = self.frame_bytes_max;
            return Err(Malformed::TooLong { bytes, max });
        }
        if self.buffer.len() < LENGTH_BYTES + bytes {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_BYTES);
        Ok(Some(self.buffer.split_to(bytes).freeze()))
    }
}
