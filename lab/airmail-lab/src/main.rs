//! `airmail-lab`: the papers' experiments, and ours. For developers of Airmail; users have `airmail
//! bench`.
//!
//! Each experiment is one command that runs many cases, repeats them, and leaves tables, pictures
//! and a page. The node that it measures is the program `airmail` beside this one; other servers
//! and the clients are processes that end when this one does.
//!
//! - [`cli`]: the command line.
//! - [`virtual_time`]: limiters and dispatch policies, simulated; no node takes part.
//! - [`flow`], [`clients`], [`modes`], [`copilots`], [`size`], [`overload`], [`pilot`], [`rivals`], [`partitioners`], [`mailbox`]:
//!   experiments with real nodes, and [`scenario`], several of them after one another.
//! - [`hosts`]: the machines that they run on.

#![forbid(unsafe_code)]

mod cli;
mod clients;
mod copilots;
mod experiment;
mod flow;
mod flow_control;
mod hold;
mod hosts;
mod mailbox;
mod measured_node;
mod modes;
mod narration;
mod overload;
mod partitioners;
mod pilot;
mod rivals;
mod rounds;
mod scenario;
mod server_process;
mod size;
mod virtual_time;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
