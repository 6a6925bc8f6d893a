//! Messages of a link, as a wire carries them.

use crate::malformed::Malformed;
use bytes::Bytes;

/// A message that a wire carries: as protobuf, and the batch that is its last field apart, so that it is sent
/// as it lies in memory.
pub trait OnWire: Sized {
    /// The protocol's message for it.
    type Message: prost::Message + Default;

    /// The message without its batch, and that; empty where there is none.
    fn to_wire(self) -> (Self::Message, Bytes);

    /// The message of what was received, batch and all.
    ///
    /// # Errors
    /// [`Malformed`]: a field is missing or cannot be, a variant is not known, or the batch fails its check.
    fn from_wire(message: Self::Message) -> Result<Self, Malformed>;

    /// Bytes of its batch; 0 where there is none.
    fn batch_bytes(&self) -> usize;
}
