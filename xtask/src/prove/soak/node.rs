//! The node that a soak runs: a release build in a process of its own, and its use of resources.

use crate::process::{self, cargo};
use anyhow::{Context as _, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The kernel counts a process's time in hundredths of a second.
const TICKS_PER_S: f64 = 100.0;

/// A node that runs; killed, and its data removed, when dropped.
#[derive(Debug)]
pub(super) struct Node {
    child: Child,
    binary: PathBuf,
    data: PathBuf,
    address: String,
}

/// Resources that a node uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Memory that is resident now.
    pub(super) resident_kib: u64,
    /// Time of all its threads.
    pub(super) cpu_s: f64,
    /// Size of its files now.
    pub(super) disk_bytes: u64,
}

impl Usage {
    /// The same, with the time since `before` only.
    pub(super) fn since(self, before: &Usage) -> Usage {
        Usage {
            cpu_s: self.cpu_s - before.cpu_s,
            ..self
        }
    }
}

impl Node {
    /// Builds the binary and starts it on a free port, with `data` as its directory.
    pub(super) fn start(data: &Path) -> anyhow::Result<Node> {
        process::run(&mut cargo(&[
            "build",
            "--release",
            "--locked",
            "-p",
            "airmail",
        ]))?;
        let metadata = process::output(&mut cargo(&[
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
        ]))?;
        let metadata: Value = serde_json::from_str(&metadata)?;
        let target = metadata["target_directory"].as_str();
        let binary = Path::new(target.context("metadata without a target directory")?);
        let binary = binary.join("release/airmail");
        ensure!(!data.exists(), "{} is there already", data.display());
        let mut serve = Command::new(&binary);
        serve.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
            "--data",
        ]);
        let mut child = serve.arg(data).stdout(Stdio::piped()).spawn()?;
        let said = child.stdout.take().context("a node without output")?;
        let mut node = Node {
            child,
            binary,
            data: data.to_owned(),
            address: String::new(),
        };
        for line in BufReader::new(said).lines() {
            if let Some(("gRPC", address)) = line?.trim().split_once(' ') {
                node.address = address.trim().to_owned();
                return Ok(node);
            }
        }
        anyhow::bail!("the node ended before it said its address")
    }

    /// Where it is.
    pub(super) fn url(&self) -> String {
        format!("airmail://{}", self.address)
    }

    /// `airmail`, pointed at this node.
    pub(super) fn airmail(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).env("AIRMAIL_URL", self.url());
        command
    }

    /// The resources that it uses now.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        let process = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(process.join("status")).context("the node has ended")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let times = fs::read_to_string(process.join("stat"))?;
        // After the name, which may hold anything: state, and from the 12th field on the times.
        let fields = times.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks = fields.split(' ').skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Usage {
            resident_kib: resident.context("a status without VmRSS")?,
            cpu_s: ticks as f64 / TICKS_PER_S,
            disk_bytes: bytes_below(&self.data)?,
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended, or left nothing: then that is done.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// Total size of the files below a directory. A file that goes meanwhile counts nothing.
fn bytes_below(directory: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(about) = entry.metadata() else {
            continue;
        };
        bytes += if about.is_dir() {
            bytes_below(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(bytes)
}
