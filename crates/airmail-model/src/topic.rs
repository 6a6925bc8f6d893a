//! Topic names: checked once, hashed once.

use crate::error::{Error, ErrorCode};
use crate::id::{NamespaceId, TopicHash};
use crate::limits::Limits;
use std::fmt;
use std::sync::Arc;

/// A topic's name: 1 byte to `Limits::topic_bytes` of UTF-8 without control characters.
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// Checks and takes a name.
    ///
    /// # Errors
    /// `TOPIC_INVALID` with the name (shortened) and its fault.
    pub fn new(name: &str, limits: &Limits) -> Result<TopicName, Error> {
        Self::check(name, limits)?;
        Ok(TopicName(name.into()))
    }

    /// Takes a name that was checked with the batch that it is in.
    pub(crate) fn of_checked(name: &str) -> TopicName {
        TopicName(name.into())
    }

    /// Whether `name` may name a topic.
    ///
    /// # Errors
    /// `TOPIC_INVALID`, as [`TopicName::new`].
    pub fn check(name: &str, limits: &Limits) -> Result<(), Error> {
        Self::check_bytes(name.as_bytes(), limits)
    }

    /// Whether these bytes are a name that may name a topic. Goes by bytes where bytes can tell,
    /// because most names are ASCII, and a batch may have a name for each record.
    ///
    /// # Errors
    /// `TOPIC_INVALID`, as [`TopicName::new`]; it names UTF-8 as the limit where they are none.
    pub(crate) fn check_bytes(name: &[u8], limits: &Limits) -> Result<(), Error> {
        let bad = |value: String, limit: String| {
            Err(Error::new(ErrorCode::TopicInvalid)
                .field("topic")
                .value(value)
                .limit(limit))
        };
        if name.is_empty() {
            return bad("(empty)".into(), "at least 1 byte".into());
        }
        if name.len() > limits.topic_bytes as usize {
            let limit = format!("at most {} bytes", limits.topic_bytes);
            return bad(format!("{} bytes", name.len()), limit);
        }
        if name.iter().all(|byte| matches!(byte, 0x20..=0x7e)) {
            return Ok(());
        }
        let Ok(letters) = std::str::from_utf8(name) else {
            return bad(name.escape_ascii().to_string(), "UTF-8".into());
        };
        match letters.chars().find(|c| c.is_control()) {
            Some(c) => bad(format!("{c:?} in it"), "no control characters".into()),
            None => Ok(()),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the same name: at once, where it is a clone.
    #[must_use]
    pub fn is(&self, other: &TopicName) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self == other
    }

    /// Its hash within a namespace.
    #[must_use]
    pub fn hash(&self, namespace: NamespaceId) -> TopicHash {
        Self::hash_of(namespace, &self.0)
    }

    /// The hash of a name that needs no check, such as one in a checked batch.
    #[must_use]
    pub fn hash_of(namespace: NamespaceId, name: &str) -> TopicHash {
        Self::hash_of_bytes(namespace, name.as_bytes())
    }

    /// The hash of a name that was checked as bytes.
    pub(crate) fn hash_of_bytes(namespace: NamespaceId, name: &[u8]) -> TopicHash {
        let seed = namespace.0.into();
        TopicHash(xxhash_rust::xxh3::xxh3_128_with_seed(name, seed))
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
