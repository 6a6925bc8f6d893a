//! Where a process of a run is: on this machine, or on one that `ssh` reaches.

use std::fmt;
use std::process::Command;

use anyhow::Context as _;

/// What others reach a process of this machine at.
const LOOPBACK: &str = "127.0.0.1";

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// This one.
    #[default]
    Here,
    /// Another one.
    There(Remote),
}

/// A machine that is reached by `ssh`, or by what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    /// As `user@host`.
    pub(super) target: String,
    /// What the other machines of the run reach it at.
    pub(super) address: String,
    /// The program, and what stands before the target. At least the program.
    pub(super) ssh: Vec<String>,
    /// `airmail`, as it is found there.
    pub(super) program: String,
}

impl Place {
    /// `airmail bench WORD` there, with its standard input and output here.
    pub(super) fn bench(&self, word: &str) -> anyhow::Result<Command> {
        let remote = match self {
            Place::Here => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["bench", word]);
                return Ok(command);
            }
            Place::There(remote) => remote,
        };
        let (ssh, options) = remote.ssh.split_first().context("--ssh: no command")?;
        // A shell there takes it apart again.
        let program = shlex::try_quote(&remote.program).context("--remote-program")?;
        let mut command = Command::new(ssh);
        command.args(options).arg(&remote.target);
        command.arg(format!("{program} bench {word}"));
        Ok(command)
    }

    /// What the other machines of the run reach it at, without a port.
    pub(super) fn address(&self) -> &str {
        match self {
            Place::Here => LOOPBACK,
            Place::There(remote) => &remote.address,
        }
    }

    /// Whether it is this machine.
    pub(super) fn is_here(&self) -> bool {
        *self == Place::Here
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Here => f.write_str("this machine"),
            Place::There(remote) => f.write_str(&remote.target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_machines_shell_is_given_the_program_as_one_word() {
        let place = Place::There(Remote {
            target: "me@far".into(),
            address: "far".into(),
            ssh: vec!["ssh".into(), "-p".into(), "2222".into()],
            program: "/opt/a b/airmail".into(),
        });
        let command = place.bench("part").unwrap();
        let words: Vec<_> = command.get_args().map(|word| word.to_str()).collect();
        let last = "'/opt/a b/airmail' bench part";
        assert_eq!(command.get_program(), "ssh");
        assert_eq!(
            words,
            ["-p", "2222", "me@far", last].map(Some),
            "{command:?}"
        );
    }
}
