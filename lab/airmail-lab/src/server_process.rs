//! The process of a server that is measured beside others, or that a measured system needs.
//!
//! Nothing of it outlives this: it is killed at the end. Its output goes to a file, and an error
//! quotes the lines of it that look like a reason.

use anyhow::{Context as _, bail};
use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Number of attempts until a server answers, and the wait between: five minutes, for a busy
/// machine.
const ATTEMPTS: u32 = 15_000;
const BETWEEN: Duration = Duration::from_millis(20);
/// Lines of what a program wrote that are told if it fails.
const LINES: usize = 5;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts it in `directory`, where its file is `server.log`.
    ///
    /// # Errors
    /// Its program is not there.
    pub(super) fn start(command: &mut Command, directory: &Path) -> anyhow::Result<ServerProcess> {
        let log = directory.join("server.log");
        let file = File::create(&log)?;
        let child = command
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C at a terminal is for who leads.
            .process_group(0)
            .spawn();
        let program = command.get_program().display();
        let child = child.with_context(|| format!("cannot start {program}"))?;
        Ok(ServerProcess { child, log })
    }

    pub(super) fn child(&self) -> &Child {
        &self.child
    }

    /// Waits until it listens.
    ///
    /// # Errors
    /// As [`wait_until`](ServerProcess::wait_until).
    pub(super) fn wait_until_it_listens(&mut self, address: &str, port: u16) -> anyhow::Result<()> {
        let listens = || Ok(TcpStream::connect((address, port)).is_ok());
        let waited = self.wait_until(listens);
        waited.with_context(|| format!("at {address}:{port}"))
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// It ends, or does not answer for five minutes; the error has what it said.
    pub(super) fn wait_until(
        &mut self,
        mut answers: impl FnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        for _ in 0..ATTEMPTS {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}: {}", last_lines(&self.log));
            }
            if answers()? {
                return Ok(());
            }
            thread::sleep(BETWEEN);
        }
        bail!("it does not answer: {}", last_lines(&self.log))
    }

    /// Waits until it has ended by itself, for five minutes at most.
    pub(super) fn wait_until_it_ends(&mut self) {
        for _ in 0..ATTEMPTS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(BETWEEN);
        }
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        // It may have ended by itself; its data is thrown away in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reason for which a program failed, as far as it gave one; its last lines where none looks like a
/// reason.
pub(super) fn last_lines(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let is_reason = |line: &&str| {
        ["Caused by", "rror", "xception", "FATAL"]
            .iter()
            .any(|word| line.contains(word))
    };
    let mut lines: Vec<&str> = log.lines().map(str::trim).filter(is_reason).collect();
    if lines.is_empty() {
        lines = log.lines().map(str::trim).collect();
    }
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, directory: &Path) -> ServerProcess {
        let mut command = Command::new("sh");
        ServerProcess::start(command.args(["-c", script]), directory).unwrap()
    }

    #[test]
    fn one_that_ends_is_told_with_its_reason() {
        let directory = tempfile::tempdir().unwrap();
        let mut server = shell("echo fine; echo some error >&2; exit 3", directory.path());
        let error = server.wait_until(|| Ok(false)).unwrap_err().to_string();
        assert!(error.contains("3: some error"), "{error}");
    }

    #[test]
    fn one_that_answers_is_killed_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let mut server = shell("exec sleep 600", directory.path());
        server.wait_until(|| Ok(true)).unwrap();
        let pid = server.child().id();
        drop(server);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
