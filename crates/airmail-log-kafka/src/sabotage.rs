//! Bugs that the simulator plants, to see that it finds them. In no build but its own.

/// A bug to plant. Each is a mistake that is easily made on Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A statement about any life of a log is taken for one about this one, and is not compared with what is stored.
    StatementTrusted,
    /// Producers are forgotten by the node's clock, and not by the log.
    ForgottenByTimer,
}
