//! G2: the ranges of a reader follow each other without holes and overlaps.

use super::{Checked, Violation};
use airmail_model::Sequence;

/// Where a reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// The first number not yet accounted for.
    pub next: Sequence,
    begun: bool,
}

impl Tiling {
    /// A reader that begins at `next`.
    #[must_use]
    pub const fn new(next: Sequence) -> Tiling {
        Tiling { next, begun: false }
    }

    /// The reader was given `[first, last]`.
    ///
    /// # Errors
    /// It does not begin where the last one ended. Only the first may begin earlier, because a batch
    /// that holds the place asked for is given whole.
    pub fn take(&mut self, first: Sequence, last: Sequence, who: &str) -> Checked {
        let joins = if self.begun {
            first == self.next
        } else {
            first <= self.next
        };
        if !joins || last < first || last < self.next {
            return Err(Violation::new(
                "G2 ranges tile",
                format!(
                    "{who} stands at {} and is given {first} to {last}",
                    self.next
                ),
            ));
        }
        self.begun = true;
        self.next = last.plus(1);
        Ok(())
    }
}
