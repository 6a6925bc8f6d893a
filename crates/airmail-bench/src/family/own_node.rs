//! A node in a process of its own, on free ports, with durable data in a directory that goes with it;
//! here or on another machine.
//!
//! The process is `airmail bench node`: it gets a [`Task`], serves like `airmail serve`, prints its
//! addresses, and ends when its standard input does. So a node never outlives the run.

use super::Stop;
use super::error::{FamilyError, system};
use super::member::Member;
use super::place::{Place, Program};
use crate::process::Usage;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Default directory for data. `/tmp` is often in memory, where a sync does nothing.
const DISK: &str = "/var/tmp";

/// Setting that lets a node listen where other machines reach it.
const ALLOW_ANYONE: (&str, &str) = ("AIRMAIL_LISTEN_ALLOW_ANYONE", "true");

/// Task of the process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    /// Where its directory is to be; absent: where there is a disk.
    pub directory: Option<PathBuf>,
    /// Where it listens, on free ports.
    pub address: String,
    /// Further options of `airmail serve`.
    pub options: Vec<String>,
    /// Further settings.
    pub environment: BTreeMap<String, String>,
}

/// The process's report when it is ready, behind that word.
#[derive(Debug, Serialize, Deserialize)]
pub struct Started {
    /// Where it answers gRPC.
    pub port: u16,
    /// Where it answers HTTP.
    pub http_port: u16,
    /// Where other nodes connect, if it is asked to let them.
    pub cluster_port: Option<u16>,
    /// Its process.
    pub pid: u32,
    /// Where its data is.
    pub data: PathBuf,
}

/// The node. Its process is told to end before its data is looked for.
#[derive(Debug)]
pub struct OwnNode {
    member: Mutex<Member>,
    address: String,
    http: String,
    pid: u32,
    data: PathBuf,
    /// Its data, where it is on this machine: a node that was killed has left it.
    left: Option<Left>,
    /// Where other nodes connect, as `HOST:PORT`.
    cluster: Option<String>,
}

/// A directory that is gone with this, if it is not yet.
#[derive(Debug)]
struct Left(PathBuf);

impl Drop for Left {
    fn drop(&mut self) {
        // A node that ends as it should has removed it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A directory that is removed with what comes back: in `place`, or where there is a disk.
///
/// # Errors
/// It cannot be made.
pub fn directory(place: Option<&Path>) -> Result<tempfile::TempDir, FamilyError> {
    let place = match place {
        Some(place) => place.to_owned(),
        None if Path::new(DISK).is_dir() => PathBuf::from(DISK),
        None => std::env::temp_dir(),
    };
    let mut name = tempfile::Builder::new();
    let made = name.prefix("airmail-bench-").tempdir_in(&place);
    made.map_err(system(format!(
        "cannot make a directory in {}",
        place.display()
    )))
}

/// Options of a node that is started for a run.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OwnNodeArgs {
    /// Where the data of a node that is started for the run is meanwhile [default: /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A further option of a node that is started for the run, as --node=--log=memory:
    #[arg(long = "node", value_name = "OPTION", allow_hyphen_values = true)]
    pub node_options: Vec<String>,
}

impl OwnNode {
    /// Starts `program` as a node on this machine with its data in a new directory, with one more option
    /// perhaps, and these environment variables.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        program: Program,
        args: &OwnNodeArgs,
        option: Option<String>,
        environment: &[(&str, String)],
    ) -> Result<OwnNode, FamilyError> {
        let here = (&Place::Here, program);
        OwnNode::start_at(here, args, option, environment, &Stop::default())
    }

    /// Starts a node like [`OwnNode::start`], at a place. The wait for it ends when `stop` is set.
    ///
    /// # Errors
    /// The place cannot be reached, or the node cannot be started.
    pub fn start_at(
        (place, program): (&Place, Program),
        args: &OwnNodeArgs,
        option: Option<String>,
        environment: &[(&str, String)],
        stop: &Stop,
    ) -> Result<OwnNode, FamilyError> {
        let owned = environment.iter().cloned();
        // Its load comes from other machines.
        let anyone = (!place.is_here()).then_some(ALLOW_ANYONE);
        let task = Task {
            directory: args.data.clone(),
            address: place.address().to_owned(),
            options: option
                .into_iter()
                .chain(args.node_options.clone())
                .collect(),
            environment: owned
                .map(|(name, value)| (name.to_owned(), value))
                .chain(anyone.map(|(name, value)| (name.to_owned(), value.to_owned())))
                .collect(),
        };
        let mut member = Member::start_at(place, program, &task, stop)?;
        let started: Started = serde_json::from_str(&member.hear("ready")?)?;
        // What it has used is asked for afterwards too.
        member.outlast_stop();
        let at = |port: u16| format!("{}:{port}", place.address());
        Ok(OwnNode {
            member: Mutex::new(member),
            address: at(started.port),
            http: at(started.http_port),
            pid: started.pid,
            left: place.is_here().then(|| Left(started.data.clone())),
            data: started.data,
            cluster: started.cluster_port.map(at),
        })
    }

    /// URL of the node, as `airmail://HOST:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("airmail://{}", self.address)
    }

    /// Where its health and metrics are, as `HOST:PORT`.
    #[must_use]
    pub fn http(&self) -> &str {
        &self.http
    }

    /// Where other nodes connect, as `HOST:PORT`, if it lets them.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// Its process, on its own machine.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where its data is, on its own machine.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Its use of its machine.
    ///
    /// # Errors
    /// It has ended.
    pub fn usage(&self) -> Result<Usage, FamilyError> {
        if self.left.is_some() {
            return Ok(Usage::of(self.pid));
        }
        let mut member = self.member.lock();
        member.tell("usage")?;
        Ok(serde_json::from_str(&member.hear("usage")?)?)
    }
}
