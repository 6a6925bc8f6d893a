//! Clock for the deadlines of threads that wait for brokers. What is decided about Kafka is decided elsewhere, by times
//! that are arguments.

use std::time::Instant;

/// The present.
#[expect(
    clippy::disallowed_methods,
    reason = "threads that wait for brokers have deadlines of their own"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}
