//! Rows and parameters: conversions between the contract's types and those of the statements.

use crate::id::{AccountId, LeaseId, MessageId, QueueId};
use crate::message::Message;
use crate::receiver::recipients;
use airmail_model::Wall;
use bytes::Bytes;
use std::time::SystemTime;
use tokio_postgres::Row;

/// Reads a message, from the columns that all functions that give messages have.
pub(super) fn message(row: &Row) -> Message {
    Message {
        id: MessageId(row.get("id")),
        queue: QueueId(row.get("queue")),
        origin: QueueId(row.get("origin")),
        sender: AccountId(row.get("sender")),
        recipients: recipients(row.get("receiver")),
        content: Bytes::copy_from_slice(row.get("content")),
        created_at: wall(row.get("created_at")),
        priority: u8::try_from(row.get::<_, i16>("priority")).unwrap_or(0),
        key: row.get("key"),
        expires_at: row.get::<_, Option<SystemTime>>("expires_at").map(wall),
        deliveries: u32::try_from(row.get::<_, i32>("deliveries")).unwrap_or(0),
        lease: row.get::<_, Option<i64>>("lease").map(LeaseId),
    }
}

/// Converts a time of the database's clock.
pub(super) fn wall(time: SystemTime) -> Wall {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Wall(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Converts a duration in milliseconds to a `bigint`.
pub(super) fn millis(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Converts a number of messages to an `int`.
pub(super) fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
