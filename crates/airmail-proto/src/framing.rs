//! gRPC's framing, for the two streams that carry batches.
//!
//! tonic's codec copies every message into a buffer of its own, once on the way in and once on the
//! way out. What publishes and delivers does without: a message is read out of the HTTP/2 frames in
//! which it came, and a batch that lies whole in one of them is a part of that frame's memory,
//! whatever stands before it. On the wire it is plain gRPC.
//!
//! Invariant: what is held for a message that has not come whole is its own bytes, and no more
//! pieces than one for each `SMALL_BYTES`: a sender of tiny frames costs no more than another.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use std::collections::VecDeque;
use tonic::Status;

/// Bytes before each message: whether it is compressed, and its length.
pub const PREFIX_BYTES: usize = 5;
/// Frames with less data than this are gathered in one buffer.
const SMALL_BYTES: usize = 4 << 10;
/// Room for pieces that is kept between messages.
const KEPT_PIECES: usize = 8;

/// A message with its prefix.
#[must_use]
pub fn framed(message: &impl Message) -> Bytes {
    let bytes = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX_BYTES + bytes);
    put_prefix(bytes, &mut out);
    message.encode_raw(&mut out);
    out.freeze()
}

/// The prefix of a message of so many bytes.
pub fn put_prefix(bytes: usize, out: &mut impl BufMut) {
    out.put_u8(0);
    out.put_u32(u32::try_from(bytes).unwrap_or(u32::MAX));
}

/// Takes messages out of the frames in which they come.
#[derive(Debug)]
pub struct Deframer {
    pieces: VecDeque<Bytes>,
    /// Small pieces that came after these.
    small: BytesMut,
    /// Size of all pieces, in bytes.
    bytes: usize,
    message_bytes_max: usize,
}

impl Deframer {
    /// A deframer for messages of at most `message_bytes_max`.
    #[must_use]
    pub fn new(message_bytes_max: usize) -> Deframer {
        Deframer {
            pieces: VecDeque::new(),
            small: BytesMut::new(),
            bytes: 0,
            message_bytes_max,
        }
    }

    /// Whether nothing of another message is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The next frame's data.
    pub fn push(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        let alone = self.is_empty();
        self.bytes += data.len();
        if data.len() < SMALL_BYTES && !alone {
            self.small.extend_from_slice(&data);
            if self.small.len() >= SMALL_BYTES {
                self.end_small();
            }
        } else {
            self.end_small();
            self.pieces.push_back(data);
        }
    }

    fn end_small(&mut self) {
        if !self.small.is_empty() {
            let small = std::mem::take(&mut self.small);
            self.pieces.push_back(small.freeze());
        }
    }

    /// The next message, if all of it is here.
    ///
    /// # Errors
    /// `INTERNAL` for what is no gRPC, is compressed or is no message of the API; `OUT_OF_RANGE`
    /// for a message that is too large, as soon as that is known.
    pub fn message<M: Message + Default>(&mut self) -> Result<Option<M>, Status> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        if self.bytes - PREFIX_BYTES < length {
            return Ok(None);
        }
        self.end_small();
        self.bytes -= PREFIX_BYTES + length;
        if let Some(whole) = self.whole(PREFIX_BYTES + length) {
            return decoded(M::decode(whole));
        }
        let mut pieces = Pieces {
            pieces: &mut self.pieces,
            left: PREFIX_BYTES + length,
        };
        pieces.advance(PREFIX_BYTES);
        let message = M::decode(&mut pieces);
        // Nothing is left of a message that could be decoded.
        pieces.advance(pieces.left);
        if self.pieces.is_empty() && self.pieces.capacity() > KEPT_PIECES {
            self.pieces = VecDeque::new();
        }
        decoded(message)
    }

    /// Takes off the next message, if its `bytes` with the prefix lie in one piece, as most do.
    fn whole(&mut self, bytes: usize) -> Option<Bytes> {
        let first = self.pieces.front_mut()?;
        let mut whole = if first.len() > bytes {
            first.split_to(bytes)
        } else if first.len() == bytes {
            self.pieces.pop_front()?
        } else {
            return None;
        };
        whole.advance(PREFIX_BYTES);
        Some(whole)
    }

    /// The first bytes, which are there.
    fn prefix(&self) -> [u8; PREFIX_BYTES] {
        if let Some(prefix) = self.pieces.front().and_then(|first| first.first_chunk()) {
            return *prefix;
        }
        let mut prefix = [0; PREFIX_BYTES];
        let all = self.pieces.iter().map(|piece| &piece[..]);
        let all = all.chain([&self.small[..]]).flatten();
        prefix
            .iter_mut()
            .zip(all)
            .for_each(|(to, from)| *to = *from);
        prefix
    }

    /// The length of the next message, if its prefix is here.
    fn length(&self) -> Result<Option<usize>, Status> {
        if self.bytes < PREFIX_BYTES {
            return Ok(None);
        }
        let [flag, length @ ..] = self.prefix();
        if flag != 0 {
            return Err(Status::internal(format!(
                "protocol error: compression flag {flag}, though no grpc-encoding was agreed on"
            )));
        }
        let length = u32::from_be_bytes(length) as usize;
        let limit = self.message_bytes_max;
        if length > limit {
            // In the words of tonic, whose other calls say the same.
            return Err(Status::out_of_range(format!(
                "Error, decoded message length too large: found {length} bytes, \
                 the limit is: {limit} bytes"
            )));
        }
        Ok(Some(length))
    }
}

/// The decoded message, or the status of one that could not be decoded.
fn decoded<M>(message: Result<M, prost::DecodeError>) -> Result<Option<M>, Status> {
    let message = message.map_err(|error| Status::internal(error.to_string()))?;
    Ok(Some(message))
}

/// One message's bytes, piece by piece.
struct Pieces<'a> {
    pieces: &'a mut VecDeque<Bytes>,
    left: usize,
}

impl Buf for Pieces<'_> {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        let piece = self.pieces.front().map_or(&[][..], |piece| &piece[..]);
        &piece[..piece.len().min(self.left)]
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.left, "{count} of {} bytes", self.left);
        self.left -= count;
        while let Some(piece) = self.pieces.front_mut() {
            if count < piece.len() {
                piece.advance(count);
                return;
            }
            count -= piece.len();
            self.pieces.pop_front();
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        assert!(count <= self.left, "{count} of {} bytes", self.left);
        match self.pieces.front_mut() {
            // A part of the frame, shared.
            Some(piece) if count <= piece.len() => {
                let taken = piece.slice(..count);
                self.advance(count);
                taken
            }
            _ => {
                let mut gathered = BytesMut::with_capacity(count);
                gathered.put(self.take(count));
                gathered.freeze()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1;

    fn message(payload: &[u8]) -> v1::PublishOneRequest {
        v1::PublishOneRequest {
            message: Some(v1::Message {
                payload: payload.to_vec().into(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn payload(deframer: &mut Deframer) -> Option<Bytes> {
        let found: Option<v1::PublishOneRequest> = deframer.message().unwrap();
        Some(found?.message.unwrap_or_default().payload)
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let large = vec![7; 3 * SMALL_BYTES];
        let sent = [&b"one"[..], &large, b"", &large, b"five"];
        let all: Vec<u8> = sent.iter().flat_map(|p| framed(&message(p))).collect();
        for cut in [1, 2, 3, 7, 100, 4095, 4096, 4097, 5000, 20_000, all.len()] {
            let mut deframer = Deframer::new(1 << 20);
            let mut found = Vec::new();
            for data in all.chunks(cut) {
                deframer.push(Bytes::copy_from_slice(data));
                found.extend(std::iter::from_fn(|| payload(&mut deframer)));
            }
            assert_eq!(found, sent, "{cut}");
            assert!(deframer.is_empty(), "{cut}");
        }
    }

    #[test]
    fn what_lies_whole_in_one_frame_is_not_copied() {
        let whole = framed(&message(&vec![7; 2 * SMALL_BYTES]));
        let cut = whole.len() - 2 * SMALL_BYTES;
        let (head, body) = (whole.slice(..cut), whole.slice(cut..));
        let mut deframer = Deframer::new(1 << 20);
        for _ in 0..2 {
            deframer.push(head.clone());
            deframer.push(body.clone());
            let found = payload(&mut deframer).unwrap();
            assert!(body.as_ptr_range().contains(&found.as_ptr()));
        }
    }

    #[test]
    fn tiny_frames_are_gathered() {
        let whole = framed(&message(&vec![7; 16 * SMALL_BYTES]));
        let mut deframer = Deframer::new(1 << 20);
        for byte in whole.iter().take(whole.len() - 1) {
            deframer.push(Bytes::copy_from_slice(&[*byte]));
            assert!(payload(&mut deframer).is_none());
        }
        assert!(deframer.pieces.len() <= 1 + 16);
    }

    #[test]
    fn what_is_damaged_or_too_large_is_told_before_it_is_here() {
        let mut damaged = Deframer::new(1000);
        damaged.push(Bytes::from_static(&[1, 0, 0, 0, 9]));
        assert!(damaged.message::<v1::PublishOneRequest>().is_err());
        let mut large = Deframer::new(1000);
        large.push(Bytes::from_static(&[0, 0, 0, 3, 233]));
        let status = large.message::<v1::PublishOneRequest>().unwrap_err();
        assert!(crate::error::is_oversize(&status), "{status}");
    }
}
