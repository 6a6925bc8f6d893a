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

/// Appends all publishes among `requests` to `out`, as messages of at most `frame_bytes`. A batch
/// that is larger has a message of its own, for the node to accept or refuse.
pub(super) fn encode(requests: Vec<Request>, frame_bytes: usize, out: &mut VecDeque<Bytes>) {
    // Less what a message has around its batches' heads.
    let limit = frame_bytes.saturating_sub(16).min(MESSAGE_BYTES);
    let mut waiting: Vec<(RequestId, Bytes)> = Vec::new();
    let mut bytes = 0;
    for request in requests {
        let Request::Publish { request, batch } = request else {
            continue;
        };
        let batch = batch.bytes().clone();
        let more = field_len(BATCHES_FIELD, batch_len(request, &batch));
        if bytes + more > limit {
            put_message(&mut waiting, bytes, out);
            bytes = 0;
        }
        bytes += more;
        waiting.push((request, batch));
    }
    put_message(&mut waiting, bytes, out);
}

/// Appends one message with these batches, which take `bytes` with their heads.
fn put_message(batches: &mut Vec<(RequestId, Bytes)>, bytes: usize, out: &mut VecDeque<Bytes>) {
    if batches.is_empty() {
        return;
    }
    let mut head = BytesMut::with_capacity(64 + bytes.min(COPIED_BYTES));
    put_prefix(field_len(BATCHES_KIND, bytes), &mut head);
    put_field_head(BATCHES_KIND, bytes, &mut head);
    for (request, batch) in batches.drain(..) {
        put_field_head(BATCHES_FIELD, batch_len(request, &batch), &mut head);
        encode_key(REQUEST_FIELD, WireType::Varint, &mut head);
        encode_varint(request.0, &mut head);
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

/// Computes the length of a `PublishBatch`.
fn batch_len(request: RequestId, batch: &Bytes) -> usize {
    key_len(REQUEST_FIELD) + encoded_len_varint(request.0) + field_len(BATCH_FIELD, batch.len())
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
