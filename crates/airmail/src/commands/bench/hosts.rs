//! The machines of an experiment: where its node is, and where its load comes from.
//!
//! Without `--hosts` all of it is here. With it, a file has a line for each machine,
//! `ROLE TARGET [ADDRESS]`; `ssh` starts `airmail` there, and everything that is started ends when its
//! connection does. Machines share neither clock nor memory: clocks are brought together when a
//! process starts, and publishers that have no subscriber beside them are held back by their acks
//! alone, for how far a subscriber elsewhere is they cannot see.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use airmail_bench::part::Part;
use airmail_bench::run::Job;
use anyhow::Context as _;

use super::experiment::Stop;
use super::family;
use super::own_node::{OwnNode, OwnNodeArgs};
use super::place::{Place, Remote};
use crate::cli::UsageError;

/// Options that say where an experiment runs.
#[derive(clap::Args, Clone, Debug)]
pub struct HostsArgs {
    /// Machines to run on, a line each: ROLE TARGET [ADDRESS]. ROLE is node (one of them) or load,
    /// TARGET is for ssh, ADDRESS what the other machines reach it at [default: TARGET's host]
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// What starts a command on another machine: TARGET and the command are put behind it
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "ssh -T -o BatchMode=yes -o ServerAliveInterval=5"
    )]
    pub ssh: String,
    /// This program, as it is found on the other machines
    #[arg(long, value_name = "PATH", default_value = "airmail")]
    pub remote_program: String,
}

/// A line of the file that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {field}: {wrong}")]
struct WrongLine {
    line: usize,
    field: &'static str,
    wrong: String,
}

/// The machines.
#[derive(Debug)]
pub(super) struct Hosts {
    node: Place,
    /// At least one.
    loads: Vec<Place>,
    stop: Stop,
    clock_error_us: AtomicU64,
}

impl HostsArgs {
    /// For an experiment whose load is not a process of its own, which cannot be elsewhere.
    ///
    /// # Errors
    /// Other machines are asked for.
    pub(super) fn refuse(&self, experiment: &str) -> Result<(), UsageError> {
        match &self.hosts {
            None => Ok(()),
            Some(_) => Err(UsageError(format!(
                "--hosts: {experiment} runs on this machine alone; rivals and size run on others"
            ))),
        }
    }

    /// The machines that are asked for. What is run on them ends when `stop` is set.
    ///
    /// # Errors
    /// The file cannot be read or understood ([`UsageError`]).
    pub(super) fn read(&self, stop: &Stop) -> anyhow::Result<Hosts> {
        let Some(path) = &self.hosts else {
            return Ok(Hosts::new(Place::Here, Vec::new(), stop));
        };
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
        let (node, loads) = parse(&text, remote).map_err(|error| wrong(error.to_string()))?;
        Ok(Hosts::new(node, loads, stop))
    }
}

impl Hosts {
    /// A node there, and load from these machines; from this one where there are none.
    pub(super) fn new(node: Place, mut loads: Vec<Place>, stop: &Stop) -> Hosts {
        if loads.is_empty() {
            loads.push(Place::Here);
        }
        Hosts {
            node,
            loads,
            stop: stop.clone(),
            clock_error_us: AtomicU64::new(0),
        }
    }

    /// Where the node is.
    pub(super) fn node(&self) -> &Place {
        &self.node
    }

    /// Where the load comes from; at least one.
    pub(super) fn loads(&self) -> &[Place] {
        &self.loads
    }

    /// Whether what is under way is to end.
    pub(super) fn stop(&self) -> &Stop {
        &self.stop
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
        let started = OwnNode::start_at(&self.node, args, option, environment, &self.stop);
        started.with_context(|| format!("cannot start a node on {}", self.node))
    }

    /// Runs a job from the machines that load comes from, in as many processes as its settings say,
    /// and at least one on each, and adds up what they found.
    ///
    /// # Errors
    /// A process fails, or what is under way is stopped
    /// ([`Stopped`](super::member::Stopped)).
    pub(super) fn run(&self, job: &Job) -> anyhow::Result<Part> {
        let (part, clock_error_us) = family::lead_at(&self.loads, job, &self.stop)?;
        self.clock_error_us
            .fetch_max(clock_error_us, Ordering::Relaxed);
        Ok(part)
    }

    /// What a report says of them.
    pub(super) fn paragraph(&self) -> String {
        let elsewhere = self.loads().iter().any(|place| !place.is_here());
        if self.node.is_here() && !elsewhere {
            return "Node and clients share this one machine.".to_owned();
        }
        let loads: Vec<String> = self.loads.iter().map(Place::to_string).collect();
        let error_us = self.clock_error_us.load(Ordering::Relaxed);
        format!(
            "The node is on {}; the load comes from {}. Clocks of different machines agree to \
             {error_us} µs, and times from publish to delivery are no more exact than that where \
             publisher and subscriber are on different ones.",
            self.node,
            loads.join(", ")
        )
    }
}

/// Node and loads.
fn parse(
    text: &str,
    remote: impl Fn(&str, &str) -> Place,
) -> Result<(Place, Vec<Place>), WrongLine> {
    let (mut node, mut loads) = (None, Vec::new());
    for (content, line) in text.lines().zip(1..) {
        let wrong = |field, wrong: String| WrongLine { line, field, wrong };
        let content = content.split('#').next().unwrap_or_default();
        let mut fields = content.split_whitespace();
        let Some(role) = fields.next() else {
            continue;
        };
        let target = fields.next();
        let target = target.ok_or_else(|| wrong("TARGET", "is missing".to_owned()))?;
        if target.starts_with('-') {
            return Err(wrong("TARGET", format!("{target} looks like an option")));
        }
        let host = target.rsplit_once('@').map_or(target, |(_, host)| host);
        let place = remote(target, fields.next().unwrap_or(host));
        if let Some(field) = fields.next() {
            return Err(wrong("ADDRESS", format!("{field} stands behind it")));
        }
        match role {
            "node" if node.is_some() => {
                return Err(wrong("ROLE", "there is a node already".to_owned()));
            }
            "node" => node = Some(place),
            "load" => loads.push(place),
            _ => return Err(wrong("ROLE", format!("{role} is none of node, load"))),
        }
    }
    let node = node.ok_or_else(|| WrongLine {
        line: text.lines().count(),
        field: "ROLE",
        wrong: "there is no node".to_owned(),
    })?;
    Ok((node, loads))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Place, Vec<Place>), String> {
        let remote = |target: &str, address: &str| {
            Place::There(Remote {
                target: target.into(),
                address: address.into(),
                ssh: vec!["ssh".into()],
                program: "airmail".into(),
            })
        };
        parse(text, remote).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_names_the_node_and_who_loads_it() {
        let text = "# ours\n\nnode me@one 10.0.0.1\nload two # the large one\nload you@three\n";
        let (node, loads) = read(text).unwrap();
        assert_eq!(
            (node.to_string().as_str(), node.address()),
            ("me@one", "10.0.0.1")
        );
        let addresses: Vec<&str> = loads.iter().map(Place::address).collect();
        assert_eq!(addresses, ["two", "three"]);
    }

    #[test]
    fn errors_name_line_and_field() {
        for (text, words) in [
            ("node one\nserver two", "line 2: ROLE: server"),
            ("load", "line 1: TARGET: is missing"),
            ("load -oProxyCommand=x", "line 1: TARGET: -oProxyCommand=x"),
            ("node a b c", "line 1: ADDRESS: c"),
            ("node a\nnode b", "line 2: ROLE: there is a node already"),
            ("load a\n", "line 1: ROLE: there is no node"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(words), "{text:?}: {said}");
        }
    }
}
