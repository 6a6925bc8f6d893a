//! One load on one node: start it, offer, watch its memory, take the results.

use super::generator::{Load, Plan};
use super::kept::Wrong;
use super::offering::{Offering, Outcome};
use super::reckoning::Sums;
use crate::flow_control::FlowControl;
use crate::hold::{DiskLimit, HeldNode, Limits};
use crate::hosts::Hosts;
use crate::measured_node::{MeasuredNode, TargetArgs};
use airmail_bench::family::own_node::OwnNodeArgs;
use airmail_bench::run::Share;
use anyhow::ensure;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Interval at which the node's memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Storage of a node that is started, which holds its capacity down.
#[derive(Clone, Copy, Debug)]
pub(super) enum Storage {
    /// In memory; each batch takes so many microseconds, one after another.
    Served { service_us: u32 },
    /// On the disk, which takes so many bytes a second.
    Disk { write_bytes_per_s: u64 },
}

/// Settings that stay the same from case to case.
#[derive(Clone, Debug)]
pub(super) struct Bench<'a> {
    /// Where it runs.
    pub(super) hosts: &'a Hosts,
    /// The system to measure where no node is started.
    pub(super) target: &'a TargetArgs,
    /// Options of the nodes that are started.
    pub(super) node: &'a OwnNodeArgs,
    /// Storage of the nodes that are started.
    pub(super) storage: Storage,
    /// Streams of the load.
    pub(super) streams: u32,
    /// Messages in a batch.
    pub(super) batch: u32,
    /// Payload of a message, in bytes.
    pub(super) size: usize,
    /// Duration of each load, in microseconds.
    pub(super) duration_us: u64,
    /// Time at its beginning that does not count, in microseconds.
    pub(super) warmup_us: u64,
    /// Longest wait for answers after a load.
    pub(super) patience: Duration,
}

/// Findings of a case.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Rates and times.
    pub(super) sums: Sums,
    /// Faults in the stored messages.
    pub(super) wrong: Wrong,
    /// The most memory that the node held; 0: not known.
    pub(super) rss_bytes: u64,
}

impl Found {
    /// Whether everything that was acknowledged is there, and every refusal was one.
    pub(super) fn is_sound(&self) -> bool {
        let Sums {
            strange, errors, ..
        } = &self.sums;
        self.wrong == Wrong::default() && strange.is_empty() && errors.is_empty()
    }
}

impl Bench<'_> {
    /// Offers a load to a new node, or to the target.
    ///
    /// # Errors
    /// The node or a process of the load fails, or the run is stopped.
    pub(super) fn run(&self, plan: Plan, flow: FlowControl) -> anyhow::Result<Found> {
        let node = self.start_node(flow)?;
        let node = &node.measured;
        let offering = Offering {
            load: Load {
                url: node.url(),
                run: self.hosts.next_run(),
                streams: self.streams,
                share: Share::ALL,
                batch: self.batch,
                size: self.size,
                plan,
                duration_us: self.duration_us,
                patience: self.patience,
            },
            warmup_us: self.warmup_us,
        };
        let (outcome, rss_bytes) = watch(node, || offering.lead(self.hosts));
        let Outcome { sums, wrong } = outcome?;
        Ok(Found {
            sums,
            wrong,
            rss_bytes,
        })
    }

    fn start_node(&self, flow: FlowControl) -> anyhow::Result<HeldNode> {
        let log = match self.storage {
            Storage::Served { service_us } => {
                Some(format!("--log=memory:?service_us={service_us}"))
            }
            Storage::Disk { .. } => None,
        };
        let (target, environment) = (self.target, flow.environment());
        let measured = target.node(self.hosts, self.node, log, &environment)?;
        let node = HeldNode::new(measured, self.hosts, |own| match self.storage {
            Storage::Served { .. } => None,
            Storage::Disk { write_bytes_per_s } => Some(Limits {
                disk: Some(DiskLimit {
                    directory: own.data().to_owned(),
                    write_bytes_per_s,
                }),
                ..Limits::default()
            }),
        })?;
        ensure!(node.is_held(), "{}", node.means().join("; "));
        Ok(node)
    }
}

/// Does something, and looks meanwhile how much memory the node holds at most.
fn watch<T>(node: &MeasuredNode, work: impl FnOnce() -> T) -> (T, u64) {
    let held = || node.usage().map_or(0, |usage| usage.rss_bytes);
    let (at_work, working) = mpsc::sync_channel::<()>(1);
    let (done, most) = thread::scope(|scope| {
        let looking = scope.spawn(move || {
            let mut most = 0;
            while working.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                most = most.max(held());
            }
            most.max(held())
        });
        let done = work();
        drop(at_work);
        (done, looking.join())
    });
    (done, most.unwrap_or_default())
}
