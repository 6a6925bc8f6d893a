//! The queueing laboratory: limiters and dispatch policies in front of queues, in virtual time.
//!
//! [`limiters`] runs the limiters of `airmail-flow` in front of systems of which everything is
//! known, and compares them with the best fixed bound. [`dispatch`] compares ways to spread jobs
//! over queues, with theory where there is one. [`knee`] says which bound is the best, of a sweep in
//! here or on a real node, [`recovery`] when a limiter is there, and [`prediction`] what a real node does, by a model
//! of which two points were measured. Simulations are of discrete events and seeded: one seed gives one run,
//! on any machine and in no time of its own. The code under test is the code in the node.
//!
//! `airmail-lab` prints and draws these measurements; `docs/flow-control.md` has the conclusions.

#![forbid(unsafe_code)]

pub mod closed_loop;
pub mod course;
pub mod dispatch;
pub mod fit;
pub mod knee;
pub mod limiters;
mod machine;
pub mod node;
pub mod prediction;
pub mod recovery;
pub mod service;
pub mod subject;
pub mod system;
