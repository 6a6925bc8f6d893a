//! Rounds of messages to many clients, as in the paper on a publisher/subscriber service: each round is
//! 20 messages to one topic that all clients subscribe to, and takes a client until it has the last of them.
//!
//! The nodes are one or several that have the same topics. Clients and publishers are spread evenly over
//! them, in processes of their own; publishers take turns, a round each, so that the order of messages is
//! known. What is measured is in an [`Outcome`].
//!
//! - [`crowd`], [`publisher`]: the processes of clients, and of one who publishes.
//! - [`round_book`]: a client's account.
//! - [`running`]: the course of it.

mod crowd;
mod outcome;
mod publisher;
mod round_book;
mod running;

pub(crate) use crowd::{Round, be_a_crowd};
pub(crate) use outcome::{NodeUse, Outcome};
pub(crate) use publisher::publish_rounds;
pub(crate) use round_book::MESSAGES;
pub(crate) use running::{OTHER_CONNECTIONS, OTHER_FILES, Plan, Server, run};
