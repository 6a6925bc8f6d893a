//! The leader as seen by a process that it started to do a part of the work: its lines on standard
//! input, and this process's answers.
//!
//! When the input ends, the leader is gone, and nothing that this process could still do is of use
//! to anybody; so it ends, at once or when it has put its things away.

use super::error::{FamilyError, system};
use crate::clock::{self, now_us};
use crate::system::Failure;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write, stdin};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};

/// The word that tells a process to end its run, and to report its results.
pub const HALT: &str = "halt";
/// Word before an error, which is JSON.
pub const FAILED: &str = "failed ";

/// Lines that may wait to be read.
const LINES: usize = 16;

/// Behaviour of this process when its leader is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// It ends, whatever is under way.
    Exit,
    /// [`Leader::line`] fails.
    Tell,
}

/// The leader.
#[derive(Debug)]
pub struct Leader {
    told: Receiver<String>,
    halted: Arc<AtomicBool>,
}

impl Leader {
    /// Listens; gives the task too, after questions for the time.
    ///
    /// # Errors
    /// The task cannot be read.
    pub fn open<T: DeserializeOwned>(at_end: AtEnd) -> Result<(Leader, T), FamilyError> {
        let (tell, told) = mpsc::sync_channel(LINES);
        let halted = Arc::new(AtomicBool::new(false));
        let halt = Arc::clone(&halted);
        let read = move || {
            for line in BufReader::new(stdin()).lines().map_while(Result::ok) {
                if line == HALT {
                    halt.store(true, Ordering::Relaxed);
                    continue;
                }
                if tell.send(line).is_err() {
                    return;
                }
            }
            if at_end == AtEnd::Exit {
                std::process::exit(1);
            }
        };
        std::thread::Builder::new()
            .name("leader".into())
            .spawn(read)
            .map_err(system("a thread"))?;
        let leader = Leader { told, halted };
        loop {
            let line = leader.line()?;
            if line == "clock" {
                say(&format!("clock {}", now_us()))?;
            } else if let Some(by_us) = line.strip_prefix("shift ") {
                clock::shift(by_us.parse()?);
            } else {
                return Ok((leader, serde_json::from_str(&line)?));
            }
        }
    }

    /// Set when it has said that the run is to end.
    #[must_use]
    pub fn halted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.halted)
    }

    /// The leader's next line.
    ///
    /// # Errors
    /// It is gone.
    pub fn line(&self) -> Result<String, Failure> {
        let line = self.told.recv();
        line.map_err(|_| Failure::new("the run's leader is gone"))
    }

    /// The number behind the word that is due.
    ///
    /// # Errors
    /// It is gone, or says something else.
    pub fn number(&self, word: &str) -> Result<u64, Failure> {
        let line = self.line()?;
        let number = line.strip_prefix(word).map(str::trim);
        let number = number.ok_or_else(|| Failure::new(format!("{line:?} is not {word}")))?;
        number.parse().map_err(Failure::new)
    }
}

/// Prints a line for the process that started this one.
///
/// # Errors
/// Standard output cannot be written.
pub fn say(line: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(Failure::new)
}

/// Tells the leader why this process failed, if it did; a user at a terminal sees it too.
///
/// # Errors
/// The leader cannot be told.
pub fn tell_failure<E: Display>(result: Result<ExitCode, E>) -> Result<ExitCode, FamilyError> {
    let error = match result {
        Ok(code) => return Ok(code),
        Err(error) => error,
    };
    say(&format!(
        "{FAILED}{}",
        serde_json::to_string(&format!("{error:#}"))?
    ))?;
    Ok(ExitCode::FAILURE)
}
