//! Parts of experiments: workloads that only they have, and the results of many runs together.
//!
//! - [`results`]: tables, figures and pages of many runs.
//! - [`flow`]: runs whose publishers hold themselves to a limiter.
//! - [`mailbox`]: clients of mailboxes in closed loop, and the record of their calls.
//!
//! Nothing of it is shipped to users: [`airmail_bench`] has the workloads that are.

#![forbid(unsafe_code)]

pub mod flow;
pub mod mailbox;
pub mod results;
