//! Mailboxes under load: clients in closed loop, each with one request under way, with the
//! probabilities of the paper; and a file that has every call.
//!
//! - [`mix`]: the requests, and their probabilities.
//! - [`call`]: one call, as it is recorded.
//! - [`client`]: the clients that make them.
//! - [`record`]: the file, SQLite: written while a run is under way, read for the report.

pub mod call;
pub mod client;
pub mod mix;
pub mod record;

pub use call::{Call, Kind, Outcome};
pub use mix::Mix;
