//! Bugs that the simulator plants, to prove that it finds them. No other build has them.

/// A bug to plant. Each is a mistake that is easily made, breaks an invariant of a core's state,
/// and is to be found at the step that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// An acknowledged batch keeps its part of a producer's memory bound.
    MemoryKept,
    /// A subscription that ends while it is live stays on its log's range.
    EndedStaysLive,
    /// A delivery that has no recipient gives its credit back twice.
    CreditTwice,
    /// Messages that have expired since the node judged them are handed over.
    NotJudgedAgain,
    /// A change of a filter that a lost connection has overtaken is told to be in force, and is not asked for again.
    OvertakenForgotten,
}
