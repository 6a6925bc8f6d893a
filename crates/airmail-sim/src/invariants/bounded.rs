//! G5: a session is never sent more than its credit and one delivery, with word of what has expired beside it.

use super::{Checked, Violation};

/// A session's credit, counted from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    left: i64,
    /// Bytes that go with the next delivery.
    beside: i64,
}

impl Budget {
    /// A budget with the credit that the session was opened with.
    #[must_use]
    pub fn new(bytes: u32) -> Budget {
        Budget {
            left: bytes.into(),
            beside: 0,
        }
    }

    /// More was granted.
    pub fn grant(&mut self, bytes: u32) {
        self.left += i64::from(bytes);
    }

    /// Word of what has expired was sent, which goes with a delivery.
    pub fn go_beside(&mut self, bytes: u64) {
        self.beside += i64::try_from(bytes).unwrap_or(i64::MAX);
    }

    /// A delivery was sent.
    ///
    /// # Errors
    /// There was nothing left.
    pub fn spend(&mut self, bytes: u64, who: &str) -> Checked {
        if self.left <= 0 {
            return Err(Violation::new(
                "G5 credit bounds what is sent",
                format!("{who} was sent {bytes} bytes with {} left", self.left),
            ));
        }
        self.left -= i64::try_from(bytes).unwrap_or(i64::MAX);
        self.left -= std::mem::take(&mut self.beside);
        Ok(())
    }
}
