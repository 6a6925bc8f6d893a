//! A cluster of Kafka's brokers, each with a part of the machine of its own, and a controller beside them.
//!
//! On one machine brokers would share resources that the paper's two machines did not; so each
//! one's processor time is held by a control group, or it lives in a network namespace whose line
//! has a rate. The controller is not held: it only tells brokers which of them lead.
//!
//! A process of this program keeps them, `airmail-lab brokers`, and ends them when its own standard
//! input ends. So no broker outlives the experiment.

mod broker;
mod keeper;
mod network;

use super::jars::Jars;
use crate::hold::Throttled;
use airmail_bench::family::Stop;
use airmail_bench::family::member::Member;
use airmail_bench::family::place::Place;
use airmail_bench::process::Usage;
use airmail_experiments::results::Findings;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub(crate) use keeper::keep_brokers;

/// Time after which a silent broker counts as dead, in milliseconds: where one is killed, and where
/// none is, since there a machine that stands still for a while is not to take leaders from
/// brokers.
pub(super) const SESSION_MS: u32 = 3_000;
pub(super) const LONG_SESSION_MS: u32 = 60_000;

/// Resources that each broker has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Resource {
    /// Nothing: all share all.
    Shared,
    /// A part of a core, or several cores.
    Cores(f64),
    /// Bytes a second to it, and as many from it.
    BytesPerSecond(u64),
}

/// Task of the keeper.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    jars: Jars,
    /// Where the directory for data is to be; absent: where there is a disk.
    directory: Option<PathBuf>,
    /// Ids are from 1.
    brokers: u32,
    resource: Resource,
    /// Time after which a silent broker counts as dead, in milliseconds.
    session_ms: u32,
}

/// The keeper's report when all brokers answer.
#[derive(Debug, Serialize, Deserialize)]
struct Started {
    bootstrap: String,
    means: Vec<String>,
}

/// Resources that a broker has used so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct BrokerUsage {
    pub(super) process: Usage,
    /// Number of times that it was stopped for having had its share; `None` where its processor
    /// time is not held.
    pub(super) throttled: Option<Throttled>,
}

/// The cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    member: Member,
    /// The brokers, as clients are told of them.
    pub(super) bootstrap: String,
    /// Limits on brokers, and those that could not be set, for the report.
    means: Vec<String>,
}

impl Cluster {
    /// Starts the brokers, with no topics.
    ///
    /// # Errors
    /// They cannot be started, or what they are to have cannot be given to them.
    pub(super) fn start(
        jars: &Jars,
        directory: Option<PathBuf>,
        brokers: u32,
        (resource, session_ms): (Resource, u32),
        stop: &Stop,
    ) -> anyhow::Result<Cluster> {
        let task = Task {
            jars: jars.clone(),
            directory,
            brokers,
            resource,
            session_ms,
        };
        let mut member = Member::start_at(&Place::Here, crate::cli::BROKERS, &task, stop)?;
        let ready = member.hear("ready").context("Kafka's brokers")?;
        let started: Started = serde_json::from_str(&ready)?;
        // What was used is asked for afterwards too.
        member.outlast_stop();
        Ok(Cluster {
            member,
            bootstrap: started.bootstrap,
            means: started.means,
        })
    }

    /// Has the report say how brokers are held, once for all its parts.
    pub(super) fn tell_means(&self, findings: &mut Findings) {
        for means in &self.means {
            if !findings.about.contains(means) {
                findings.about.push(means.clone());
            }
        }
    }

    /// Resources that each broker has used, by id from 1.
    ///
    /// # Errors
    /// The keeper has ended.
    pub(super) fn usage(&mut self) -> anyhow::Result<Vec<BrokerUsage>> {
        Ok(serde_json::from_str(&self.ask("usage")?)?)
    }

    /// Kills a broker, as a power cut would.
    ///
    /// # Errors
    /// The keeper has ended.
    pub(super) fn kill(&mut self, broker: u32) -> anyhow::Result<()> {
        self.ask(&format!("kill {broker}")).map(drop)
    }

    /// Starts it again, with its data; returns when it answers.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn start_again(&mut self, broker: u32) -> anyhow::Result<()> {
        self.ask(&format!("start {broker}")).map(drop)
    }

    /// Gives a broker a part, from 0 to 1, of its first resources.
    ///
    /// # Errors
    /// The system does not let that be done.
    pub(super) fn give(&mut self, broker: u32, part: f64) -> anyhow::Result<()> {
        self.ask(&format!("give {broker} {part}")).map(drop)
    }

    fn ask(&mut self, order: &str) -> anyhow::Result<String> {
        self.member.tell(order)?;
        let done = self.member.hear("done");
        done.with_context(|| format!("brokers: {order}"))
    }
}
