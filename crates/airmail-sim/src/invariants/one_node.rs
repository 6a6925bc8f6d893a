//! G1: no two nodes acknowledge on one directory.

use super::{Checked, Violation};

/// Checks a node at the moment at which it acknowledges something.
///
/// # Errors
/// Another node has begun on its files.
pub fn check(other_began: bool) -> Checked {
    if !other_began {
        return Ok(());
    }
    Err(Violation::new(
        "G1 one node acknowledges on a directory",
        "another node has begun on the files, and this one still acknowledges",
    ))
}
