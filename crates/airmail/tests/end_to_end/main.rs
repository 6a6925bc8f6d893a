//! The real binary, end to end: each test starts `airmail serve` on free ports with a data directory
//! of its own, and talks to it by the command line or by clients that are not ours.
//!
//! - `lines`: the lines of a log file, published, subscribed to and read back.
//! - `kill`: the same, with the node killed in the middle and everything else left running.
//! - `directory`: one process for each data directory; a clean stop; `check`.
//! - `giving_back`: deleted messages, and those that retention removes, go from the disk.
//! - `clock`: a wall clock that jumps removes nothing.
//! - `disk_full`: publishes are refused, reads go on, and it heals.
//! - `doors`: open files are kept for the storage, however many clients come.
//! - `loopback`: a node is reached by this machine alone, unless anyone may come.
//! - `modes`: a node's files are open to its own user alone.
//! - `slow`: a late subscriber, one that never reads, and a live one.
//! - `sync_order`: a trace of system calls shows no ack before its fdatasync.
//! - `generic_clients`: grpcurl, and Python without an SDK.
//! - `usage`: exit codes, settings, and the form of errors on the command line.
//! - `words`: features that are not there are refused by name, and nothing else is done instead.
//! - `starting`: nodes that are not there yet, or never answer.
//! - `ended`: commands that are ended by signals.
//! - `expiry`: messages that expire, on one node and where the clocks of several differ.
//! - `flow`: a node's bounds and messages in flight, as shown.
//! - `kafka_loss`: Kafka loses what it has confirmed, and an operator decides.
//! - `kafka_topology`: `airmail kafka topology`, of clusters in files.
//! - `kafka_upkeep`: topics on Kafka that are not as log 0 says.
//! - `collect`: `airmail collect`, with real brokers.
//! - `measure`: `airmail bench e2e`.
//! - `mailbox`, `mailbox_postgres`: messages for one reader each, on either database.
//! - `restore`: a directory that is copied, and one that is set back to an older copy.
//! - `shards`: a node whose clients and logs are spread over several threads.
//! - `members`: nodes that find each other, clients that find their way, draining.
//! - `peers`: the same with a fixed list of nodes, and no gossip.
//! - `pilots`: gateways that append to Kafka by themselves.
//! - `tree`: nodes that have their logs from a parent, which has them from another.
//! - `hanging`: a wait that does not end is reported.
//! - `proof`: kills, flipped bits, restored copies, full and failing disks, as often as one asks.
//! - `book`: the commands in the README and in `docs/`.
//! - `pages`: pages that are made from the code are fresh.
//!
//! They share `log_file`, `small_disk`, `brokers` (of Kafka); with tests of other crates,
//! `airmail_testkit`.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics where something is wrong"
)]

mod audience;
mod book;
#[cfg(feature = "kafka")]
#[cfg(feature = "test-switches")]
mod clock;
mod cluster;
#[cfg(feature = "kafka")]
mod collect;
mod directory;
mod disk_full;
mod doors;
mod ended;
mod expiry;
mod filters;
mod flow;
mod generic_clients;
mod giving_back;
mod hanging;
mod headers_only;
#[cfg(feature = "kafka")]
mod kafka_loss;
mod kafka_topology;
mod kafka_upkeep;
mod kill;
mod lanes;
mod lines;
mod log_file;
mod loopback;
mod mailbox;
mod mailbox_postgres;
mod measure;
mod members;
mod modes;
mod moving;
mod pages;
mod peers;
#[cfg(feature = "kafka")]
mod pilots;
mod proof;
mod restore;
mod selections;
mod sets;
mod shards;
mod slow;
mod small_disk;
mod starting;
mod storages;
mod subscriber;
mod sync_order;
mod tree;
mod usage;
mod words;
