//! The batch: messages as they are sent, stored and delivered. Encoded once, never changed.
//!
//! A publisher's [`BatchEncoder`] writes it; the node that takes it in checks it once with
//! [`Batch::check`] (or [`Batch::check_stored`]) and from then on holds a [`Checked<Batch>`], which
//! is one reference to its bytes; a subscriber that wants or may have only a part is given a
//! [`Slice`], which shares the bodies. `docs/batch-format.md` has every byte of it.

mod attributes;
mod bodies;
mod body;
mod check;
mod checksum;
mod encoder;
mod layout;
mod marks;
mod message;
mod record;
mod records;
mod routing;
mod slice;
mod stamp;
mod view;

pub use attributes::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTES_BYTES_MAX, AttributeRef, AttributeValue, Attributes,
};
pub use encoder::{BatchEncoder, BatchTarget, PushError};
pub use layout::{EXTENSION_TRACE_CONTEXT, MESSAGE_BYTES_MAX, RECORDS_MAX};
pub use message::Message;
pub use record::{Audience, Record};
pub use records::Records;
pub use routing::batches_by_log;
pub use slice::Slice;
pub use view::{Batch, ProducerStamp, TopicEntry};

use std::ops::Deref;

/// A value that has passed its check. Cores never see unchecked bytes, and only this crate can
/// make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked<T>(T);

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
