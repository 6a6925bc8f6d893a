//! The SDK's core: the decisions of a publisher and of a subscriber, as state machines without I/O.
//!
//! Both take events (`connected`, `disconnected`, `reply`, and the time, by `poll`) and give
//! effects: requests to be sent, and results for the user. The time is an argument and randomness
//! comes from a seed, so a run can be repeated exactly.
//!
//! The shortest way to understand either is its transcripts, inputs with their effects as text, in
//! `tests/transcripts`.

pub mod attempts;
pub mod backoff;
mod check_schedule;
pub mod node_choice;
pub mod producer;
pub mod subscriber;

pub use attempts::{Attempts, Patience};
pub use backoff::{Backoff, BackoffConfig};
pub use node_choice::{NodeChoice, Place, Purpose};
pub use producer::{
    Accepted, Destination, MessageRef, Producer, ProducerConfig, ProducerOutput, PublishError,
    Settled, Ticket,
};
pub use subscriber::{
    Event, ExpiredSeen, GapSeen, ReceivedBatch, Subscriber, SubscriberConfig, SubscriberOutput,
    SubscriptionKey, SubscriptionSpec,
};
