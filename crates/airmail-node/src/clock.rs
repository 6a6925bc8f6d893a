//! The clock of a node that is told the wrong time on purpose. For tests; in no release.

mod wrong;

pub use wrong::{Offset, WrongClock};
