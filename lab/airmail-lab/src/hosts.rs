//! The machines of an experiment: where its node is, and where its load comes from.
//!
//! Without `--hosts` all of it is here. With it, a file has a line for each machine, `ROLE TARGET
//! [ADDRESS]`; `ssh` starts `airmail` there, and everything that is started ends when its
//! connection does. Machines share neither clock nor memory: clocks are brought together when a
//! process starts, and publishers without a subscriber beside them are held back by their acks
//! alone, because they cannot see the progress of a subscriber elsewhere.

mod lines;

use crate::cli::{NODE, PART, UsageError};
use airmail_bench::clock::now_us;
use airmail_bench::family;
use airmail_bench::family::Stop;
use airmail_bench::family::member::Member;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use airmail_bench::family::place::{Place, Program, Remote};
use airmail_bench::part::Part;
use airmail_bench::run::{Job, Share};
use anyhow::Context as _;
use lines::Machines;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Options that say where an experiment runs.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct HostsArgs {
    /// Machines to run on, a line each: ROLE TARGET [ADDRESS]. ROLE is node (one of them) or load, and for
    /// copilots also copilot, TARGET is for ssh, ADDRESS what the other machines reach it at [default:
    /// TARGET's host]. There is no node among them where a running one is measured
    #[allow(
        rustdoc::broken_intra_doc_links,
        reason = "a help text: brackets mean an option"
    )]
    #[arg(long, value_name = "FILE")]
    pub(crate) hosts: Option<PathBuf>,
    /// Command that starts another one on a machine: TARGET and that command are put behind it
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "ssh -T -o BatchMode=yes -o ServerAliveInterval=5"
    )]
    pub(crate) ssh: String,
    /// This program, as it is found on the other machines, with airmail beside it
    #[arg(long, value_name = "PATH", default_value = "airmail-lab")]
    pub(crate) remote_program: String,
}

/// The machines.
#[derive(Debug)]
pub(super) struct Hosts {
    node: Place,
    /// Machines of copilots; without any they are where the node is.
    copilots: Vec<Place>,
    /// A node that is measured instead of one that is started, as `airmail://HOST:PORT`.
    target: Option<String>,
    /// Machines that load comes from, at least one.
    loads: Vec<Place>,
    stop: Stop,
    clock_error_us: AtomicU64,
    /// Number of the latest run.
    run: AtomicU32,
}

impl HostsArgs {
    /// The machines that are asked for, with one for the node unless there is a `target`. What is run
    /// on them ends when `stop` is set.
    ///
    /// # Errors
    /// The file cannot be read or understood, or it has a node beside the target ([`UsageError`]).
    pub(super) fn read(&self, target: Option<&str>, stop: &Stop) -> anyhow::Result<Hosts> {
        let hosts = self.read_with_copilots(target, stop)?;
        match hosts.copilots.first() {
            None => Ok(hosts),
            Some(copilot) => {
                let wrong =
                    format!("--hosts: ROLE: {copilot} is a copilot, and there is none here");
                Err(UsageError(wrong).into())
            }
        }
    }

    /// The machines like [`HostsArgs::read`], for an experiment with copilots apart from the node.
    ///
    /// # Errors
    /// As [`HostsArgs::read`].
    pub(super) fn read_with_copilots(
        &self,
        target: Option<&str>,
        stop: &Stop,
    ) -> anyhow::Result<Hosts> {
        let mut machines = match &self.hosts {
            Some(path) => self.machines(path, target)?,
            None => Machines::default(),
        };
        if machines.loads.is_empty() {
            machines.loads.push(Place::Here);
        }
        Ok(Hosts {
            node: machines.node.unwrap_or_default(),
            copilots: machines.copilots,
            target: target.map(str::to_owned),
            loads: machines.loads,
            stop: stop.clone(),
            clock_error_us: AtomicU64::new(0),
            run: AtomicU32::new(std::process::id().rotate_left(16) ^ now_us() as u32),
        })
    }

    /// The machines of the file, with a node if one is to be started.
    fn machines(&self, path: &Path, target: Option<&str>) -> Result<Machines, UsageError> {
        let wrong = |wrong: String| UsageError(format!("--hosts {}: {wrong}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let ssh = shlex::split(&self.ssh).filter(|words| !words.is_empty());
        let ssh = ssh.ok_or_else(|| UsageError(format!("--ssh {:?}: no command", self.ssh)))?;
        let remote = |target: &str, address: &str| {
            Place::There(Remote {
                target: target.to_owned(),
                address: address.to_owned(),
                ssh: ssh.clone(),
                program: self.remote_program.clone(),
            })
        };
        let machines = lines::parse(&text, remote).map_err(|error| wrong(error.to_string()))?;
        match (&machines.node, target) {
            (Some(_), None) | (None, Some(_)) => Ok(machines),
            (None, None) => Err(wrong("ROLE: there is no node".to_owned())),
            (Some(node), Some(url)) => {
                let both = format!("ROLE: the node is {node}, and --target says {url}");
                Err(wrong(both))
            }
        }
    }
}

impl Hosts {
    /// Where the node is.
    pub(super) fn node(&self) -> &Place {
        &self.node
    }

    /// Where a copilot is, by its number.
    pub(super) fn copilot(&self, number: u32) -> &Place {
        let mut places = self.copilots.iter().cycle();
        places.nth(number as usize).unwrap_or(&self.node)
    }

    /// Where the load comes from; at least one.
    pub(super) fn loads(&self) -> &[Place] {
        &self.loads
    }

    /// Whether the run under way is to end.
    pub(super) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// A number that distinguishes a run's messages from others', also from those that an earlier
    /// command left on a node that was there before.
    pub(super) fn next_run(&self) -> u32 {
        self.run.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Starts a node on its machine; as [`OwnNode::start`].
    ///
    /// # Errors
    /// The machine cannot be reached, or the node cannot be started.
    pub(super) fn start_node(
        &self,
        args: &OwnNodeArgs,
        option: Option<String>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<OwnNode> {
        self.start_node_at(&self.node, args, option, environment)
    }

    /// Starts a node on one of the machines; as [`OwnNode::start`].
    ///
    /// # Errors
    /// The machine cannot be reached, or the node cannot be started.
    pub(super) fn start_node_at(
        &self,
        place: &Place,
        args: &OwnNodeArgs,
        option: Option<String>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<OwnNode> {
        let started = OwnNode::start_at((place, NODE), args, option, environment, &self.stop);
        started.with_context(|| format!("cannot start a node on {place}"))
    }

    /// Runs a job from the machines that load comes from, in as many processes as its settings say,
    /// and at least one on each, and adds up their findings.
    ///
    /// # Errors
    /// A process fails, or the run is stopped
    /// ([`FamilyError::Stopped`](airmail_bench::family::FamilyError::Stopped)).
    pub(super) fn run(&self, job: &Job) -> anyhow::Result<Part> {
        let (part, clock_error_us) = family::lead_at(PART, &self.loads, job, &self.stop)?;
        self.clock_error_us
            .fetch_max(clock_error_us, Ordering::Relaxed);
        Ok(part)
    }

    /// Runs a job from the machines that load comes from like [`Hosts::run`], a process for each of `jobs`,
    /// which are the same but for where each process finds the node; what each of them found.
    ///
    /// # Errors
    /// As [`Hosts::run`].
    pub(super) fn run_each(&self, jobs: Vec<Job>) -> anyhow::Result<Vec<Part>> {
        let (parts, clock_error_us) = family::lead_each(PART, &self.loads, jobs, &self.stop)?;
        self.clock_error_us
            .fetch_max(clock_error_us, Ordering::Relaxed);
        Ok(parts)
    }

    /// Starts a helper on the machines that load comes from in turn, so many processes in
    /// all, each with its task. A wait for them ends when `stop` is set.
    ///
    /// # Errors
    /// A machine cannot be reached.
    pub(super) fn spread<T: Serialize>(
        &self,
        processes: u32,
        program: Program,
        stop: &Stop,
        task: impl Fn(Share) -> T,
    ) -> anyhow::Result<Vec<Member>> {
        let mut members = Vec::new();
        for (part, place) in (0..processes).zip(self.loads.iter().cycle()) {
            let task = task(Share {
                part,
                parts: processes,
            });
            let started = Member::start_at(place, program, &task, stop);
            let member = started.with_context(|| place.to_string())?;
            self.clock_error_us
                .fetch_max(member.clock_error_us(), Ordering::Relaxed);
            members.push(member);
        }
        Ok(members)
    }

    /// When processes that are ready now can all begin, by this machine's clock, in microseconds.
    pub(super) fn begin_us(&self) -> u64 {
        family::begin_us(&self.loads)
    }

    /// Leads the meeting of processes that were [spread](Hosts::spread): tells them when to begin, and
    /// how much there was in all.
    ///
    /// # Errors
    /// A process fails, or is stopped.
    pub(super) fn meet(&self, members: &mut [Member]) -> anyhow::Result<()> {
        Ok(family::meet(&self.loads, members)?)
    }

    /// Paragraph about the machines of copilots for a report.
    pub(super) fn copilots_paragraph(&self) -> String {
        if self.copilots.is_empty() {
            return "Copilots are on the machine of the tower.".to_owned();
        }
        let places: Vec<String> = self.copilots.iter().map(Place::to_string).collect();
        format!("Copilots are on {}, in turn.", places.join(", "))
    }

    /// Paragraph about the machines for a report.
    pub(super) fn paragraph(&self) -> String {
        let elsewhere = self.loads().iter().any(|place| !place.is_here());
        let node = match &self.target {
            None if self.node.is_here() && !elsewhere => {
                return "Node and clients share this one machine.".to_owned();
            }
            None => format!("The node is on {}", self.node),
            Some(url) => format!("The node is {url}, which was there before, as it is"),
        };
        let loads: Vec<String> = self.loads.iter().map(Place::to_string).collect();
        let loads = loads.join(", ");
        if !elsewhere {
            return format!("{node}; the load comes from {loads}.");
        }
        let error_us = self.clock_error_us.load(Ordering::Relaxed);
        format!(
            "{node}; the load comes from {loads}. Clocks of different machines agree to {error_us} µs, \
             and times from publish to delivery are no more exact than that where publisher and \
             subscriber are on different ones."
        )
    }
}
