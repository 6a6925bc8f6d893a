//! The SDK's core, without I/O: what a publisher and a subscriber decide, as state machines.
//!
//! Both take what happened (`reply`, `connected`, `disconnected`, the time) and give what is to be
//! sent. Time is an argument and randomness is a seed, so a run can be had again exactly.

pub mod attempts;
pub mod backoff;
mod checking;
pub mod producer;
pub mod subscriber;

pub use attempts::{Attempts, Patience};
pub use backoff::{Backoff, BackoffConfig};
pub use producer::{
    Offer, Place, Producer, ProducerConfig, ProducerOutput, PublishError, Settled, Taken, Ticket,
};
pub use subscriber::{
    Arrived, Event, GapSeen, Subscriber, SubscriberConfig, SubscriberOutput, SubscriptionKey,
    Wanted,
};
