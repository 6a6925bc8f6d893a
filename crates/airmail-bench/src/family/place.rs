//! Place of a run's process: this machine, or one that `ssh` reaches; and the program that it runs.

use super::error::{FamilyError, system};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Address at which others reach a process of this machine.
const LOOPBACK: &str = "127.0.0.1";

/// A program that takes part in a run, as it is found on each machine: this one, or another of ours in
/// the directory that this one is in.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The other one's name; absent: this one.
    name: Option<&'static str>,
    words: &'static [&'static str],
}

impl Program {
    /// This program, with these words behind it. They are plain: no shell changes them.
    #[must_use]
    pub const fn own(words: &'static [&'static str]) -> Program {
        Program { name: None, words }
    }

    /// The program of this name that is beside this one, or else on `PATH`; with these plain words behind.
    #[must_use]
    pub const fn beside(name: &'static str, words: &'static [&'static str]) -> Program {
        Program {
            name: Some(name),
            words,
        }
    }

    /// Where it is, if this program is at `own`.
    fn path(&self, own: PathBuf) -> PathBuf {
        match self.name {
            Some(name) => own.with_file_name(name),
            None => own,
        }
    }

    /// Where it is on this machine.
    fn here(&self) -> std::io::Result<OsString> {
        let path = self.path(std::env::current_exe()?);
        Ok(match self.name {
            Some(name) if !path.exists() => name.into(),
            _ => path.into(),
        })
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// This one.
    #[default]
    Here,
    /// Another one.
    There(Remote),
}

/// A machine that is reached by `ssh`, or by what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Login on the machine, as `user@host`.
    pub target: String,
    /// Address at which the other machines of the run reach it.
    pub address: String,
    /// The program, and what stands before the target. At least the program.
    pub ssh: Vec<String>,
    /// This program, as it is found there.
    pub program: String,
}

impl Place {
    /// The program there, with its standard input and output here.
    ///
    /// # Errors
    /// This program's own place is not known, or `--ssh` or `--remote-program` is no command.
    pub fn command(&self, program: Program) -> Result<Command, FamilyError> {
        let remote = match self {
            Place::Here => {
                let mut command = Command::new(program.here().map_err(system("this program"))?);
                command.args(program.words);
                return Ok(command);
            }
            Place::There(remote) => remote,
        };
        let refuse = |option, why: &str| FamilyError::Option {
            option,
            why: why.to_owned(),
        };
        let ssh = remote.ssh.split_first();
        let (ssh, options) = ssh.ok_or_else(|| refuse("--ssh", "no command"))?;
        // A shell there takes it apart again.
        let path = program.path(Path::new(&remote.program).to_owned());
        let strange = || refuse("--remote-program", "not a path that a shell can be told");
        let path = path.to_str().ok_or_else(strange)?;
        let path = shlex::try_quote(path).map_err(|_| strange())?;
        let mut command = Command::new(ssh);
        command.args(options).arg(&remote.target);
        command.arg(format!("{path} {}", program.words.join(" ")));
        Ok(command)
    }

    /// Address at which the other machines of the run reach it, without a port.
    #[must_use]
    pub fn address(&self) -> &str {
        match self {
            Place::Here => LOOPBACK,
            Place::There(remote) => &remote.address,
        }
    }

    /// Whether it is this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
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
            program: "/opt/a b/lab".into(),
        });
        for (program, last) in [
            (Program::own(&["part"]), "'/opt/a b/lab' part"),
            (
                Program::beside("airmail", &["bench", "node"]),
                "'/opt/a b/airmail' bench node",
            ),
        ] {
            let command = place.command(program).unwrap();
            let words: Vec<_> = command.get_args().map(|word| word.to_str()).collect();
            assert_eq!(command.get_program(), "ssh");
            assert_eq!(
                words,
                ["-p", "2222", "me@far", last].map(Some),
                "{command:?}"
            );
        }
    }

    #[test]
    fn a_program_that_is_not_beside_this_one_is_looked_for_on_the_path() {
        let command = Place::Here.command(Program::beside("no-such-neighbour", &[]));
        assert_eq!(command.unwrap().get_program(), "no-such-neighbour");
    }
}
