//! Every limit that a user can meet, with its default, in one place.

/// Most credit that one stream can hold, in bytes; a grant beyond it does not count. So a client
/// cannot make a node keep more than this, and one delivery, for its stream.
pub const CREDIT_BYTES_MAX: u32 = 64 << 20;

/// Bounds on a client's requests and a node's answers. Shown by `airmail serve --print-config`,
/// told to clients in Hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One message: key, attributes and payload together, in bytes. Default 1 MiB.
    pub message_bytes: u32,
    /// A topic's name, in bytes of UTF-8. Default 1 KiB.
    pub topic_bytes: u32,
    /// Attributes of one message. Default 64.
    pub attributes: u32,
    /// A batch of more than one message, in bytes. Default 64 KiB. One message alone may be larger.
    pub batch_bytes: u32,
    /// Messages in a batch. Default, and at most, 4,096.
    pub batch_records: u16,
    /// One request or one delivery on the wire, in bytes. Default 3 MiB.
    pub frame_bytes: u32,
    /// Credit of a stream whose client has granted nothing yet, in bytes. Default 1 MiB.
    pub credit_bytes: u32,
    /// Publishes of one connection that wait for their ack, in bytes. Default 8 MiB.
    pub unacked_bytes: u32,
    /// Subscriptions on one stream. Default 8,388,608.
    pub subscriptions: u32,
    /// Batches of one producer and log that may be in flight: a node remembers the results of so many, and
    /// so knows each of them when it is sent again. Default 256.
    pub batches_in_flight: u32,
}

impl Limits {
    /// The defaults, shared by the node, the SDK and the command line.
    pub const DEFAULT: Limits = Limits {
        message_bytes: 1 << 20,
        topic_bytes: 1 << 10,
        attributes: 64,
        batch_bytes: 64 << 10,
        batch_records: 4096,
        frame_bytes: 3 << 20,
        credit_bytes: 1 << 20,
        unacked_bytes: 8 << 20,
        subscriptions: 8 << 20,
        batches_in_flight: 256,
    };
    /// Batches of one producer and log that are known again by a node which does not tell how many are.
    pub const BATCHES_IN_FLIGHT_UNTOLD: u32 = 64;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
