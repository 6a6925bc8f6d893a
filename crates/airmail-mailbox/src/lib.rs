//! Mailboxes: accounts put messages in queues, for one receiver or for whoever reads first, and
//! readers take them out, oldest first. What Paštas did, and what a user of today expects besides.
//!
//! - [`Mailboxes`]: the requests, as users make them, on any store.
//! - [`MailboxStore`]: what a store promises. [`mod@conformance`] holds each to it.
//! - [`postgres`]: production; any number of nodes on one database.
//! - [`sqlite`]: embedded; one process.
//!
//! # Why the PostgreSQL store is made as it is
//!
//! The paper kept messages in one table and deleted what was read. That has four weaknesses, and
//! each has shaped the schema (`postgres/schema/*.sql`).
//!
//! 1. **A message could be handed to two readers**: under READ COMMITTED both found it before
//!    either deleted it. Here a reader locks the row that it takes and passes over those that others
//!    have locked (`FOR UPDATE SKIP LOCKED`), in the statement that deletes it. Nobody waits for
//!    anybody.
//! 2. **Deletes leave dead rows**, in the table and in its indexes, and reads must step over them
//!    until a vacuum has passed; under a snapshot that somebody holds open no vacuum helps. So:
//!    - A message is in two tables. `message` has what was sent: rows are inserted, and never
//!      changed or deleted. `ready` has a narrow row for each that can be handed out, `later` one
//!      for each that is leased or delayed: only these are inserted and deleted.
//!    - The three tables are each in three *slots*. New messages go to the active one. When it has
//!      grown to its bound (`slot_bytes`) another becomes active, and when all of a slot has been
//!      read it is truncated: files of size zero, at once, whoever holds which snapshot. Few
//!      messages that nobody reads do not keep a slot: they are moved to the active one.
//!      `airmail.empty` does both under a lock that it waits 50 ms for at most, and not at all while
//!      a transaction that has touched the slot goes on.
//!    - Between two truncations, a node remembers where each line begins and starts reading there
//!      ([`postgres`], `heads`). This is a proof, not a guess, and hence needs to know which senders
//!      are still under way: they hold an advisory lock on the *epoch* in which they began
//!      (`airmail.send_many`, `airmail.settle`).
//!    - What changes often and must not leave dead rows (which slot is active, the epoch, whether
//!      readers wait) is in sequences: they are changed in place.
//! 3. **One statement and one commit for each request.** Here all requests of a kind that wait make
//!    one statement, and the functions take arrays. The fixed cost of a statement and its commit is
//!    many times that of a message in it.
//! 4. **Polling.** Readers that wait are rung by `NOTIFY`, in the transaction that makes something
//!    readable, for psql and nodes alike. `NOTIFY` makes commits queue for a lock that all share, so
//!    it is used only while some node has said that its readers wait.
//!
//! No plan depends on statistics: they would be those of a table that is empty in one moment and
//! full in the next. Sessions have plans made once, for the indexes that are there.
//!
//! What it costs: a transaction that has received (not only sent) and is held open keeps all three
//! slots from being truncated, as `pg_dump` does; reads stay quick, but the tables grow until it
//! ends. A database is best not dumped with its messages; and what was removed is handed out at
//! most once: who must not lose a message to a cut connection takes leases.
//!
//! # SQLite
//!
//! One thread writes, in transactions of all that waits; room is reused; readers are rung in the
//! process. The same suite, the same order.

#![forbid(unsafe_code)]

pub mod bell;
pub mod conformance;
pub mod mailboxes;
pub mod postgres;
pub mod sqlite;
pub mod store;

pub use airmail_model::mailbox::{id, message};
pub use mailboxes::Mailboxes;
pub use store::MailboxStore;
