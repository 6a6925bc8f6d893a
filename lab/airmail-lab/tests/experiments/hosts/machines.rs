//! Machines that are this one: a command in ssh's place.

use airmail_testkit::waiting;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The program, as it is found on every machine.
pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_airmail-lab");
/// One for the node, two for its load.
pub(super) const THREE: &str = "node me@one 127.0.0.1\nload me@two\nload me@three # beside it\n";

/// Pause between two looks at something that must come to be.
const BETWEEN: Duration = Duration::from_millis(10);

/// A directory with a command that takes ssh's place, writes down whom it was to reach, and starts the
/// command here as a shell there would.
pub(super) struct Machines {
    directory: tempfile::TempDir,
}

impl Machines {
    pub(super) fn new() -> Machines {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ssh");
        let log = directory.path().join("reached");
        let log = log.display();
        fs::write(
            &path,
            format!("#!/bin/sh\necho \"$1 $2\" >> '{log}'\nexec sh -c \"$2\"\n"),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(directory.path().join("data")).unwrap();
        Machines { directory }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// An experiment over these machines, on which the program is found as `program`.
    pub(super) fn experiment(&self, program: &str, hosts: &str, name: &str) -> Command {
        fs::write(self.path("hosts"), hosts).unwrap();
        let mut command = crate::lab();
        command.args([name]);
        command.arg("--hosts").arg(self.path("hosts"));
        command.arg("--ssh").arg(self.path("ssh"));
        command.args(["--remote-program", program]);
        command.arg("--out").arg(self.path("out"));
        command.arg("--data").arg(self.path("data"));
        command
    }

    /// Machines that the command in ssh's place was to reach, with the commands that it was to
    /// start there.
    pub(super) fn reached(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("reached")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Number of times that a word was started on a machine.
    pub(super) fn started(&self, target: &str, word: &str) -> usize {
        let word = format!(" {word}");
        let reached = self.reached();
        let there = |line: &&String| line.starts_with(target) && line.ends_with(&word);
        reached.iter().filter(there).count()
    }

    /// Waits until no node has data any more: each puts its own away when it ends.
    #[track_caller]
    pub(super) fn wait_until_nothing_is_left(&self) {
        waiting::until("the end of every node", BETWEEN, || {
            let left = fs::read_dir(self.path("data")).unwrap().next();
            left.map_or(Ok(()), |left| Err(format!("{left:?}")))
        });
    }
}
