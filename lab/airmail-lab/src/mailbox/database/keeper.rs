//! The process that keeps a PostgreSQL server: `airmail-lab database`.
//!
//! The server has a fresh data directory, the loopback, a free port, and its own defaults for
//! everything that speed and durability depend on; only connections may be more. It refuses to run as
//! root, and then runs as nobody.

use crate::server_process::ServerProcess;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::family::own_node::directory;
use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Connections for four nodes with 24 each, and for all else.
const CONNECTIONS: &str = "max_connections=300";
/// User as whom a server runs that root starts.
const NOBODY: u32 = 65_534;

/// Task of the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// Where its directory is to be; absent: where there is a disk.
    pub(super) directory: Option<PathBuf>,
}

/// The keeper's report when it is ready.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Started {
    pub(super) url: String,
    pub(super) pid: u32,
}

/// A server that is stopped with this.
struct Kept(ServerProcess);

impl Drop for Kept {
    fn drop(&mut self) {
        // Its fast shutdown, which leaves no shared memory behind.
        if kill_process(Pid::from_child(self.0.child()), Signal::INT).is_ok() {
            self.0.wait_until_it_ends();
        }
    }
}

/// Keeps a server until the leader is gone, and leaves nothing behind.
///
/// # Errors
/// PostgreSQL's programs are not there, or the server does not answer.
pub(crate) fn keep() -> anyhow::Result<ExitCode> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Tell)?;
    let programs = programs()?;
    // Dropped after the server, so that nobody writes any more.
    let place = directory(task.directory.as_deref())?;
    let root = std::fs::metadata("/proc/self").is_ok_and(|of_us| of_us.uid() == 0);
    if root {
        std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY))?;
    }
    let data = place.path().join("data");
    let mut initdb = unprivileged(root, &programs.join("initdb"), place.path());
    let made = initdb
        .args(["-U", "airmail", "-A", "trust", "--no-instructions", "-D"])
        .arg(&data)
        .output()
        .context("cannot start initdb")?;
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    ensure!(made.status.success(), "initdb: {}", said.trim());
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut postgres = unprivileged(root, &programs.join("postgres"), place.path());
    postgres.arg("-D").arg(&data).arg("-k").arg(place.path());
    let port_text = port.to_string();
    postgres.args(["-p", &port_text, "-c", "listen_addresses=127.0.0.1"]);
    postgres.args(["-c", CONNECTIONS]);
    let mut server = Kept(ServerProcess::start(&mut postgres, place.path())?);
    let answers = || {
        let mut ask = Command::new(programs.join("pg_isready"));
        ask.args(["-q", "-h", "127.0.0.1", "-p", &port_text]);
        Ok(ask.stdin(Stdio::null()).status()?.success())
    };
    server.0.wait_until(answers).context("postgres")?;
    let started = Started {
        url: format!("postgres://airmail@127.0.0.1:{port}/postgres"),
        pid: server.0.child().id(),
    };
    say(&format!("ready {}", serde_json::to_string(&started)?))?;
    while leader.line().is_ok() {}
    drop(server);
    Ok(ExitCode::SUCCESS)
}

/// A program of PostgreSQL's, as a user that it accepts.
fn unprivileged(root: bool, program: &Path, place: &Path) -> Command {
    let mut command = if root {
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={NOBODY}"));
        command.arg(format!("--regid={NOBODY}"));
        command.args(["--clear-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(place).stdin(Stdio::null());
    command
}

/// Where PostgreSQL's programs are: in the path, or where Debian puts the newest.
///
/// # Errors
/// They are in neither.
pub(crate) fn programs() -> anyhow::Result<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where programs are is the system's setting, and no other is read"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path)
        .filter_map(|directory| directory.join("initdb").canonicalize().ok())
        .find_map(|program| Some(program.parent()?.to_path_buf()));
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let packaged = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|path| path.join("initdb").exists())
        .max();
    in_path.or(packaged).context(
        "no PostgreSQL server here: install it with the system's package manager (Debian: \
         postgresql), or give one with --database",
    )
}
