//! Reasons for which bytes are no message of the protocol.

use airmail_model::Error;
use std::fmt::Display;

/// A frame or message that cannot be taken. The connection that it came over is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// It is longer than any frame.
    #[error("a frame of {bytes} bytes, where at most {max} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// Most bytes of a frame.
        max: usize,
    },
    /// It is no protobuf of the message that it has to be.
    #[error("{0}")]
    Protobuf(#[from] prost::DecodeError),
    /// A field is not there that has to be; or a variant is not known, as one of a later version is not.
    #[error("{field} is missing or not known")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field has a value that it cannot have.
    #[error("{field} cannot be {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// A batch fails its check.
    #[error("batch: {0}")]
    Batch(#[from] Error),
    /// Records of a batch fail their checksums.
    #[error("{records} records of a batch are damaged")]
    Damaged {
        /// Number of them.
        records: usize,
    },
}

impl Malformed {
    pub(crate) fn value(field: &'static str, value: impl Display) -> Malformed {
        Malformed::Value {
            field,
            value: value.to_string(),
        }
    }
}
