//! Provisions: a storage's own words on what it has made for a namespace.
//!
//! A storage that has to make something before a namespace can be there (topics of another system, say) answers with
//! these bytes. They stand in the command that makes the namespace, and are handed to the storage whenever a log is
//! opened, so that every node finds the same things. Nobody but the storage knows what they mean. They are kept
//! inline and are copied, so that they can stand in a log's settings.

use std::fmt;

/// The most bytes of provisions.
pub const PROVISIONS_BYTES_MAX: usize = 64;

/// At most [`PROVISIONS_BYTES_MAX`] bytes; none where a storage makes nothing beforehand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Provisions {
    /// The bytes, with zeros behind them.
    bytes: [u8; PROVISIONS_BYTES_MAX],
    length: u16,
}

impl Provisions {
    /// No provisions.
    pub const NONE: Provisions = Provisions {
        bytes: [0; PROVISIONS_BYTES_MAX],
        length: 0,
    };

    /// Provisions of these bytes; `None` if they are too many.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Provisions> {
        let mut provisions = Provisions::NONE;
        provisions
            .bytes
            .get_mut(..bytes.len())?
            .copy_from_slice(bytes);
        provisions.length = u16::try_from(bytes.len()).ok()?;
        Some(provisions)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.length == 0
    }
}

impl Default for Provisions {
    fn default() -> Provisions {
        Provisions::NONE
    }
}

impl fmt::Debug for Provisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provisions({})", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were_given() {
        for bytes in [&[][..], &[0], &[7, 0, 9], &[1; PROVISIONS_BYTES_MAX]] {
            let provisions = Provisions::new(bytes).unwrap();
            assert_eq!(provisions.as_bytes(), bytes);
            assert_eq!(provisions.is_none(), bytes.is_empty());
        }
        assert_eq!(Provisions::new(&[1; PROVISIONS_BYTES_MAX + 1]), None);
        assert_ne!(Provisions::new(&[0]), Some(Provisions::NONE));
    }
}
