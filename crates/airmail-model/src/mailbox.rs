//! The vocabulary of mailboxes: accounts and queues, what is sent, asked for and handed out.
//!
//! Stores, the API's translation and the SDK share it; every bound that a request must keep is
//! checked here.

pub mod directory;
pub mod id;
pub mod message;

pub use directory::{Account, Queue, QueueSettings, Which};
pub use id::{AccountId, LeaseId, MessageId, Name, QueueId};
pub use message::{
    Audience, Counts, Line, Message, Outgoing, Receipt, Receive, Settle, Take, check_batch,
};
