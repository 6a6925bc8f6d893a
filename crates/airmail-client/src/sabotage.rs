//! Bugs that the simulator plants, to see that it finds them. In no build but its own.

/// A bug to plant. Each is a mistake that is easily made, breaks an invariant of a core's state, and is to
/// be found at the step that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// What an acknowledged batch took of a producer's memory bound is not given back.
    MemoryKept,
    /// A subscription that ends while it is live stays on its log's range.
    EndedStaysLive,
    /// A delivery that nobody is told of gives its credit back twice.
    CreditTwice,
}
