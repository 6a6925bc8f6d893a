//! The Rust SDK for Airmail.
//!
//! Two layers. [`core`] decides: what to batch, when to send again, which delivery is a duplicate,
//! where to go on. It has no I/O, no clock and no async runtime, so the simulator drives the very
//! code that users run. The other, behind the feature `grpc` (on by default), is the client that
//! talks to a node: begin at [`Client`].
//!
//! ```no_run
//! # #[cfg(feature = "grpc")]
//! # async fn example() -> Result<(), airmail_model::Error> {
//! use airmail_client::{Client, Item};
//!
//! let client = Client::connect("airmail://127.0.0.1:7400").await?;
//! let mut news = client.subscribe("news").open().await?;
//! let published = client.publish("news", "hello").attribute("lang", "en").await?;
//! if let Some(Item::Message(message)) = news.next().await? {
//!     assert_eq!(message.sequence, published.sequence);
//! }
//! client.close().await
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod core;
#[cfg(feature = "sabotage")]
pub mod sabotage;

#[cfg(feature = "grpc")]
mod address;
#[cfg(feature = "grpc")]
mod admin;
#[cfg(feature = "grpc")]
mod api;
#[cfg(feature = "grpc")]
mod builder;
#[cfg(feature = "grpc")]
mod calls;
#[cfg(feature = "grpc")]
mod client;
#[cfg(feature = "grpc")]
mod context;
#[cfg(feature = "grpc")]
mod hello;
#[cfg(feature = "grpc")]
mod history;
#[cfg(feature = "grpc")]
pub mod mailbox;
#[cfg(feature = "grpc")]
mod moving;
#[cfg(feature = "grpc")]
mod named_topic;
#[cfg(feature = "grpc")]
mod node_clock;
#[cfg(feature = "grpc")]
mod node_cluster;
#[cfg(feature = "grpc")]
mod node_flow;
#[cfg(feature = "grpc")]
mod nodes;
#[cfg(feature = "grpc")]
mod publisher;
#[cfg(feature = "grpc")]
mod received;
#[cfg(feature = "grpc")]
mod response_stream;
#[cfg(feature = "grpc")]
#[cfg(test)]
mod sample_batch;
#[cfg(feature = "grpc")]
mod subscription;
#[cfg(feature = "grpc")]
mod topics;

#[cfg(feature = "grpc")]
pub use address::{Address, DEFAULT_PORT, DEFAULT_URL, parse_url};
#[cfg(feature = "grpc")]
pub use admin::Admin;
#[cfg(feature = "grpc")]
pub use airmail_model::clock::{Clock, SystemClock};
#[cfg(feature = "grpc")]
pub use builder::ClientBuilder;
#[cfg(feature = "grpc")]
pub use client::Client;
#[cfg(feature = "grpc")]
pub use history::{History, HistoryRequest};
#[cfg(feature = "grpc")]
pub use mailbox::Mailbox;
#[cfg(feature = "grpc")]
pub use node_clock::{ClockJump, NodeClock};
#[cfg(feature = "grpc")]
pub use node_cluster::{ClusterMember, MemberStanding, MemberTree, NodeCluster};
#[cfg(feature = "grpc")]
pub use node_flow::{FlowDecision, FlowGate};
#[cfg(feature = "grpc")]
pub use publisher::{AckFuture, Publish, Published, Publisher, Summary, SummaryFuture};
#[cfg(feature = "grpc")]
pub use received::{Expired, Gap, Item, Items, MessageBatch, Received};
#[cfg(feature = "grpc")]
pub use subscription::many_topics::{ManyItem, ManyItems, ManyRequest, ManySubscription};
#[cfg(feature = "grpc")]
pub use subscription::set::{
    MemberKey, SetBatch, SetItem, SetItems, SetMember, SetRequest, SubscriptionSet,
};
#[cfg(feature = "grpc")]
pub use subscription::{Standing, Subscription, SubscriptionRequest};
#[cfg(feature = "grpc")]
pub use topics::{Topic, Topics};

#[doc(no_inline)]
pub use airmail_model::batch::AttributeValue;
#[doc(no_inline)]
pub use airmail_model::frame::{GapReason, Start, Until};
#[doc(no_inline)]
pub use airmail_model::{Error, ErrorCode, Lane, Message, Position};
