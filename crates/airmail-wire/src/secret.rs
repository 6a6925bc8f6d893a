//! The secret of a cluster: nodes show that they have it by keyed hashes, and never send it.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// Fewest bytes of a secret.
pub const SECRET_BYTES_MIN: usize = 32;
/// Bytes of a hash.
pub const SECRET_HASH_BYTES: usize = 32;

/// The secret of a cluster.
#[derive(Clone)]
pub struct Secret(Bytes);

impl Secret {
    /// The secret of these bytes; `None` if they are fewer than [`SECRET_BYTES_MIN`].
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Option<Secret> {
        let bytes = bytes.into();
        (bytes.len() >= SECRET_BYTES_MIN).then_some(Secret(bytes))
    }

    /// The keyed hash (HMAC-SHA256) of several parts, each with its length. The first is a word that no other use
    /// of the secret has.
    #[must_use]
    pub fn hash<const N: usize>(&self, parts: [&[u8]; N]) -> Option<SecretHash> {
        // Input: none. A key of any length is one.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        Some(SecretHash(mac))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A hash keyed by a secret.
#[derive(Debug)]
pub struct SecretHash(Hmac<Sha256>);

impl SecretHash {
    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; SECRET_HASH_BYTES] {
        self.0.finalize().into_bytes().into()
    }

    /// Whether it is what somebody has said, compared in a time that tells nothing.
    #[must_use]
    pub fn is(self, said: &[u8]) -> bool {
        self.0.verify_slice(said).is_ok()
    }
}
