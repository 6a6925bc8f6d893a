//! Plain messages encoded into batches, one or more for each log that the map names.
//!
//! For whoever takes messages from clients that do not encode batches themselves. The encoder is the
//! SDK's, so a message is stored in one form whoever sent it.

use super::{Batch, BatchEncoder, BatchTarget, Checked, Message, PushError};
use crate::error::{Error, ErrorCode};
use crate::id::LogId;
use crate::limits::Limits;
use crate::map::LogMap;
use std::collections::BTreeMap;

/// Encodes messages into as few batches as the map and the limits allow, in order of log. Messages of one
/// topic and lane keep their order. Each message is taken from the iterator when its turn comes.
///
/// # Errors
/// The first message's refusal, by the iterator or by the encoder: nothing is encoded then.
/// `INVALID_ARGUMENT` if there is no message.
pub fn batches_by_log(
    map: &LogMap,
    messages: impl IntoIterator<Item = Result<Message, Error>>,
    time_us: i64,
    limits: &Limits,
) -> Result<Vec<Checked<Batch>>, Error> {
    let mut encoders: BTreeMap<LogId, BatchEncoder> = BTreeMap::new();
    let mut batches = Vec::new();
    for message in messages {
        let message = message?;
        let log = map.log(message.topic.hash(map.namespace), message.lane);
        let encoder = encoders
            .entry(log)
            .or_insert_with(|| BatchEncoder::new(map.namespace));
        match encoder.push(&message, time_us, limits) {
            Ok(()) => {}
            Err(PushError::Refused(error)) => return Err(error),
            Err(PushError::Full) => {
                batches.push(encoder.finish(&target(map, log, time_us)));
                encoder
                    .push(&message, time_us, limits)
                    .map_err(refusal_by_an_empty_batch)?;
            }
        }
    }
    if encoders.is_empty() {
        return Err(Error::new(ErrorCode::InvalidArgument)
            .field("messages")
            .value("none")
            .limit("at least 1"));
    }
    for (log, mut encoder) in encoders {
        batches.push(encoder.finish(&target(map, log, time_us)));
    }
    Ok(batches)
}

fn target(map: &LogMap, log: LogId, producer_time: i64) -> BatchTarget {
    BatchTarget {
        log,
        epoch: map.epoch,
        producer: None,
        producer_time,
    }
}

fn refusal_by_an_empty_batch(error: PushError) -> Error {
    match error {
        PushError::Refused(error) => error,
        PushError::Full => Error::new(ErrorCode::MessageTooLarge).field("message"),
    }
}
