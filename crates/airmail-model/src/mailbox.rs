//! The vocabulary of mailboxes: accounts, queues, messages, and the requests about them.
//!
//! Stores, the API's translation and the SDK share it; every bound that a request must keep is
//! checked here.

pub mod directory;
pub mod id;
pub mod message;

pub use directory::{Account, Queue, QueueSettings, Selection};
pub use id::{AccountId, LeaseId, MessageId, Name, QueueId};
pub use message::{
    Counts, Inbox, Message, Outgoing, Receipt, Receive, Recipients, Settle, Take, check_batch,
};
