//! The processes of a run: each has a share of the publishers and of the subscribers beside them, on the
//! machines that load comes from.
//!
//! A process gets its load as JSON on standard input, meets the others like the processes of any
//! run, and ends with its results as JSON. Told to halt, it publishes no more, waits a while for
//! the messages under way, and reports that.

use crate::hosts::Hosts;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_experiments::flow::{self, Flown, Halt, Load};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time for a run to end that was told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a load from the machines that load comes from, in a process on each as far as there are
/// publishers, and adds up their results.
///
/// # Errors
/// A process fails, or takes too long to end when it is stopped.
pub(super) fn fly(hosts: &Hosts, load: &Load) -> anyhow::Result<Flown> {
    let processes = (hosts.loads().len() as u32).min(load.publishers);
    let task = |share| Load {
        share,
        ..load.clone()
    };
    let mut members = hosts.spread(processes, crate::cli::FLIGHT, hosts.stop(), task)?;
    for member in &mut members {
        member.give_grace(GRACE);
    }
    hosts.meet(&mut members)?;
    let mut flown = Flown::default();
    for member in members {
        flown.add(member.end()?);
    }
    Ok(flown)
}

/// Runs the process of publishers.
///
/// # Errors
/// The node cannot be reached, or the leader is gone.
pub(crate) fn take_flight() -> anyhow::Result<ExitCode> {
    let (mut leader, load): (Leader, Load) = Leader::open(AtEnd::Exit)?;
    let halted = leader.halted();
    let halt: Halt = Arc::new(move || halted.load(Ordering::Relaxed));
    let runtime = airmail_bench::family::runtime(false)?;
    let flown = runtime.block_on(flow::run(load, halt, &mut leader))?;
    say(&serde_json::to_string(&flown)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}
