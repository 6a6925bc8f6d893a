//! Mailboxes: accounts send messages to queues, each to one account or to all, and readers take them
//! out, oldest first. What the Paštas report describes (docs/papers.md) is here, and in addition leases,
//! priorities, ordering keys, delays, expiry and dead letters.
//!
//! - [`Mailboxes`]: the requests, as users make them, on any store.
//! - [`MailboxStore`]: the contract of a store. [`mod@conformance`] holds each store to it.
//! - [`StoreError`], [`StoreFailure`]: the errors of stores, and their translation to those of users.
//! - [`postgres`]: the store for production; any number of nodes on one database.
//! - [`sqlite`]: the embedded store, for one process.
//!
//! # Why the PostgreSQL store is made as it is
//!
//! The system of the report kept messages in one table and deleted what was read. That has four
//! weaknesses, and each has shaped the schema (`postgres/schema/*.sql`).
//!
//! 1. **A message could be handed to two readers**: under READ COMMITTED both found it before
//!    either deleted it. Here a reader locks the row that it takes and skips rows that others have
//!    locked (`FOR UPDATE SKIP LOCKED`), in the statement that deletes it. Nobody waits for anybody.
//! 2. **Deletes leave dead rows**, in the table and in its indexes, and reads must step over them
//!    until a vacuum has passed; while somebody holds an old snapshot open no vacuum helps. So:
//!    - A message is in two tables. `message` has what was sent: rows are inserted, and never
//!      changed or deleted. `ready` has a narrow row for each message that can be handed out, `later`
//!      one for each that is leased or delayed: only these rows are inserted and deleted.
//!    - The three tables are each in three *slots*. New messages go to the active one. When it has
//!      grown to its bound (`slot_bytes`) another becomes active, and when all of a slot has been
//!      read it is truncated: files of size zero, at once, whatever snapshots are open. A few messages
//!      that nobody reads do not keep a slot: they are moved to the active one. `airmail.empty` does
//!      both, under a lock for which it waits at most 50 ms, and not while a transaction that has
//!      touched the slot goes on.
//!      A truncation is seen by older snapshots too, what was moved is not: so each
//!      statement that reads slots takes its snapshot behind its locks (`schema/snapshots.sql`).
//!    - Between two truncations, a node remembers below which place each inbox is empty, its *low-water
//!      mark*, and starts reading there ([`postgres`], `low_water`). Such a mark is proven, not guessed,
//!      and the proof needs to know which senders are still under way: they hold an advisory lock on
//!      the *epoch* in which they began (`airmail.send_many`, `airmail.settle`).
//!    - What changes often and must not leave dead rows (the active slot, the epoch, whether readers
//!      wait) is in sequences: they are changed in place.
//! 3. **One statement and one commit for each request.** Here all requests of a kind that wait make
//!    one statement, and the functions take arrays. The fixed cost of a statement and its commit is
//!    many times that of a message in it.
//! 4. **Polling.** Readers that wait are woken by `NOTIFY`, in the transaction that makes something
//!    readable, for psql and nodes alike. `NOTIFY` makes commits queue for a lock that all share, so
//!    it is used only while some node has said that its readers wait.
//!
//! No plan depends on statistics: they would be those of a table that is empty in one moment and
//! full in the next. Sessions plan each statement once, for the indexes that there are.
//!
//! The costs: a transaction that has received (not only sent) and is held open keeps all three slots
//! from being truncated, and so does `pg_dump`; reads stay quick, but the tables grow until it ends. A
//! database is best dumped without its messages. And a message that was removed is handed out at most
//! once: a reader that must not lose one to a broken connection takes leases.
//!
//! # SQLite
//!
//! One thread writes, with one transaction for all requests that wait; the room of deleted rows is
//! reused; readers are woken within the process. The same suite holds, and the same order.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod mailboxes;
pub mod notifier;
pub mod postgres;
mod receiver;
pub mod sqlite;
pub mod store;
pub mod store_error;

pub use airmail_model::mailbox::{id, message};
pub use mailboxes::Mailboxes;
pub use store::MailboxStore;
pub use store_error::{StoreError, StoreFailure, StoreStartError};
