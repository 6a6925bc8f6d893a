//! Encodes publishes as gRPC messages whose batches are not copied.
//!
//! tonic's codec would copy every batch into a buffer of its own. Here a message is a list of
//! pieces: a few bytes of head, then the batch's own memory, which HTTP/2 takes without a copy. On
//! the wire it is plain gRPC. Small batches are copied behind their head: one frame costs less than
//! two.

use airmail_model::frame::{Request, RequestId};
use airmail_proto::framing::put_prefix;
use bytes::{Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use std::collections::VecDeque;

/// Number of bytes of batches in one message, at most; a single batch may be larger.
const MESSAGE_BYTES: usize = 1 << 20;
/// Size up to which a batch is copied behind its head.
const COPIED_BYTES: usize = 4 << 10;

/// Field numbers: `PublishRequest.batches`, `PublishBatches.batches`, and those of `PublishBatch`.
const BATCHES_KIND: u32 = 2;
const BATCHES_FIELD: u32 = 1;
const REQUEST_FIELD: u32 = 1;
const BATCH_FIELD: u32 = 2;
const BEGINS_EPOCH_FIELD: u32 = 5;

/// Appends all publishes among `requests` to `out`, as messages of at most `frame_bytes`. A batch
/// that is larger has a message of its own, for the node to accept or refuse.
pub(super) fn encode(requests: Vec<Request>, frame_bytes: usize, out: &mut VecDeque<Bytes>) {
    // Less what a message has around its batches' heads.
    let limit = frame_bytes.saturating_sub(16).min(MESSAGE_BYTES);
    let mut waiting: Vec<Framed> = Vec::new();
    let mut bytes = 0;
    for request in requests {
        let Request::Publish {
            request,
            batch,
            begins_epoch,
        } = request
        else {
            continue;
        };
        let framed = Framed {
            request,
            batch: batch.bytes().clone(),
            begins_epoch,
        };
        let more = field_len(BATCHES_FIELD, framed.len());
        if bytes + more > limit {
            put_message(&mut waiting, bytes, out);
            bytes = 0;
        }
        bytes += more;
        waiting.push(framed);
    }
    put_message(&mut waiting, bytes, out);
}

/// Appends one message with these batches, which take `bytes` with their heads.
fn put_message(batches: &mut Vec<Framed>, bytes: usize, out: &mut VecDeque<Bytes>) {
    if batches.is_empty() {
        return;
    }
    let mut head = BytesMut::with_capacity(64 + bytes.min(COPIED_BYTES));
    put_prefix(field_len(BATCHES_KIND, bytes), &mut head);
    put_field_head(BATCHES_KIND, bytes, &mut head);
    for framed in batches.drain(..) {
        put_field_head(BATCHES_FIELD, framed.len(), &mut head);
        encode_key(REQUEST_FIELD, WireType::Varint, &mut head);
        encode_varint(framed.request.0, &mut head);
        if framed.begins_epoch {
            encode_key(BEGINS_EPOCH_FIELD, WireType::Varint, &mut head);
            encode_varint(1, &mut head);
        }
        let batch = framed.batch;
        put_field_head(BATCH_FIELD, batch.len(), &mut head);
        if batch.len() <= COPIED_BYTES {
            head.extend_from_slice(&batch);
        } else {
            out.push_back(head.split().freeze());
            out.push_back(batch);
        }
    }
    if !head.is_empty() {
        out.push_back(head.freeze());
    }
}

/// A publish on its way into a message.
struct Framed {
    request: RequestId,
    batch: Bytes,
    begins_epoch: bool,
}

impl Framed {
    /// Computes the length of a `PublishBatch`.
    fn len(&self) -> usize {
        let begins_epoch = if self.begins_epoch {
            key_len(BEGINS_EPOCH_FIELD) + 1
        } else {
            0
        };
        let request = key_len(REQUEST_FIELD) + encoded_len_varint(self.request.0);
        request + begins_epoch + field_len(BATCH_FIELD, self.batch.len())
    }
}

fn field_len(field: u32, bytes: usize) -> usize {
    key_len(field) + encoded_len_varint(bytes as u64) + bytes
}

fn put_field_head(field: u32, bytes: usize, out: &mut BytesMut) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(bytes as u64, out);
}

#[cfg(test)]
mod tests;
