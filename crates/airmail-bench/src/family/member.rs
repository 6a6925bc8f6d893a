//! Another process, of this program or a neighbour, that does a part of the work, here or on
//! another machine; seen from the process that started it.
//!
//! The two talk by lines: orders on standard input, answers on standard output. The other process
//! is in a process group of its own, so that Ctrl-C at the terminal reaches only the leader; and it
//! ends when its standard input does, so that it never outlives its leader, whether that is killed
//! or its connection is lost.

use super::Stop;
use super::error::{FamilyError, system};
use super::leader::{FAILED, HALT};
use super::place::{Place, Program};
use crate::clock::now_us;
use rustix::process::Signal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Interval at which a wait for an answer looks whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time for a process to end when its input has, with gigabytes to put away perhaps, and
/// the interval at which that is looked at.
const END_PATIENCE: Duration = Duration::from_secs(60);
const END_LOOK: Duration = Duration::from_millis(5);
/// Longest time between the arrivals of one Ctrl-C at two processes.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(30);
/// Lines that may wait to be heard.
const LINES: usize = 256;
/// Number of times that the other machine's clock is asked for; the answer that came fastest
/// counts.
const CLOCK_QUESTIONS: u32 = 15;

/// The process.
#[derive(Debug)]
pub struct Member {
    process: Child,
    /// Absent when it has been told to end.
    input: Option<ChildStdin>,
    said: Receiver<String>,
    stop: Stop,
    /// Longest time to answer a halt; zero: it is not told to halt, and not waited for.
    grace: Duration,
    clock_error_us: u64,
}

impl Member {
    /// Starts a program here, and gives it its task as JSON.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: Program, task: &impl Serialize) -> Result<Member, FamilyError> {
        Member::start_at(&Place::Here, program, task, &Stop::default())
    }

    /// Starts a program at a place, brings its clock and this one together, and gives it
    /// its task as JSON. A wait for it ends with [`FamilyError::Stopped`] when `stop` is set.
    ///
    /// # Errors
    /// It cannot be started, or does not answer.
    pub fn start_at(
        place: &Place,
        program: Program,
        task: &impl Serialize,
        stop: &Stop,
    ) -> Result<Member, FamilyError> {
        let mut member = Member::of(place.command(program)?, stop)?;
        if !place.is_here() {
            member
                .agree_on_time()
                .map_err(|error| FamilyError::Failed(format!("{place}: {error}")))?;
        }
        member.tell(&serde_json::to_string(task)?)?;
        Ok(member)
    }

    /// Starts a program that is told things and answers as this one does. Its standard error is where the
    /// command has it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn of(mut command: Command, stop: &Stop) -> Result<Member, FamilyError> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let program = command.get_program().display();
                system(format!("cannot start {program}"))(error)
            })?;
        let input = process.stdin.take();
        let said = listen(
            process
                .stdout
                .take()
                .ok_or_else(|| failed("a part has no output"))?,
        )?;
        Ok(Member {
            process,
            input,
            said,
            stop: stop.clone(),
            grace: Duration::ZERO,
            clock_error_us: 0,
        })
    }

    /// Largest difference between its clock and this process's, in microseconds.
    #[must_use]
    pub fn clock_error_us(&self) -> u64 {
        self.clock_error_us
    }

    /// Has it told to halt when the run is told to stop, and waited for `grace` each time.
    pub fn give_grace(&mut self, grace: Duration) {
        self.grace = grace;
    }

    /// Has it waited for, from now on, also when the run is told to stop: its findings are wanted.
    pub fn outlast_stop(&mut self) {
        self.stop = Stop::default();
    }

    /// Tells it a line.
    ///
    /// # Errors
    /// It has failed, or has ended.
    pub fn tell(&mut self, line: &str) -> Result<(), FamilyError> {
        let input = self
            .input
            .as_mut()
            .ok_or_else(|| failed("it was told to end"))?;
        if let Err(error) = writeln!(input, "{line}") {
            // Where it said why it ended, that is the better story.
            self.line()?;
            return Err(system("a part of the run")(error));
        }
        Ok(())
    }

    /// Text behind the word that is due.
    ///
    /// # Errors
    /// It said something else, has failed, or has ended.
    pub fn hear(&mut self, word: &str) -> Result<String, FamilyError> {
        let line = self.line()?;
        let rest = line.strip_prefix(word);
        match rest {
            Some(rest) => Ok(rest.trim().to_owned()),
            None => Err(FamilyError::OutOfTurn {
                said: line,
                due: word.to_owned(),
            }),
        }
    }

    /// Its last line, which is JSON.
    ///
    /// # Errors
    /// It said something else, has failed, or has ended.
    pub fn end<T: DeserializeOwned>(mut self) -> Result<T, FamilyError> {
        Ok(serde_json::from_str(&self.line()?)?)
    }

    fn line(&mut self) -> Result<String, FamilyError> {
        let mut left = self.grace;
        let line = loop {
            match self.said.recv_timeout(LOOK) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if self.stop.is_set() => {
                    if left.is_zero() {
                        return Err(FamilyError::Stopped);
                    }
                    if left == self.grace {
                        self.halt();
                    }
                    left = left.saturating_sub(LOOK);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.was_interrupted() => {
                    return Err(FamilyError::Stopped);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed("a part of the run has failed"));
                }
            }
        };
        match line.strip_prefix(FAILED) {
            Some(reason) => Err(FamilyError::Failed(serde_json::from_str(reason)?)),
            None => Ok(line),
        }
    }

    /// Whether Ctrl-C has ended it, before it was in a process group of its own. Then this process has been
    /// signalled too, and is not told of a failure before it knows.
    fn was_interrupted(&mut self) -> bool {
        let status = self.ended_within(INTERRUPT_PATIENCE);
        let by_signal = status.and_then(|status| status.signal());
        by_signal == Some(Signal::INT.as_raw()) && self.stop.comes_within(INTERRUPT_PATIENCE)
    }

    /// Exit status of the process, if it ends within `patience`.
    fn ended_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let mut waited = Duration::ZERO;
        loop {
            match self.process.try_wait() {
                Ok(None) if waited < patience => {}
                Ok(status) => return status,
                Err(_) => return None,
            }
            std::thread::sleep(END_LOOK);
            waited += END_LOOK;
        }
    }

    fn halt(&mut self) {
        if let Some(input) = &mut self.input {
            // Whether it still hears, its silence tells.
            let _ = writeln!(input, "{HALT}");
        }
    }

    /// Shifts its clock to this one's, as exactly as the way there and back lets it be told.
    fn agree_on_time(&mut self) -> Result<(), FamilyError> {
        let mut best: Option<(u64, i64)> = None;
        for _ in 0..CLOCK_QUESTIONS {
            let asked_us = now_us();
            self.tell("clock")?;
            let there_us: u64 = self.hear("clock")?.parse()?;
            let trip_us = now_us() - asked_us;
            let shift_us = (asked_us + trip_us / 2).cast_signed() - there_us.cast_signed();
            if best.is_none_or(|(least_us, _)| trip_us < least_us) {
                best = Some((trip_us, shift_us));
            }
        }
        let (trip_us, shift_us) = best.unwrap_or_default();
        self.clock_error_us = trip_us.div_ceil(2);
        self.tell(&format!("shift {shift_us}"))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It puts its own things away when its input ends; one that does not is killed.
        self.input = None;
        if self.ended_within(END_PATIENCE).is_some() {
            return;
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn failed(said: &str) -> FamilyError {
    FamilyError::Failed(said.to_owned())
}

/// Passes on the lines of an output as long as anyone wants them.
fn listen(output: impl Read + Send + 'static) -> Result<Receiver<String>, FamilyError> {
    let (say, said) = mpsc::sync_channel(LINES);
    let read = move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if say.send(line).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new()
        .name("listen".into())
        .spawn(read)
        .map_err(system("a thread"))?;
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ended_by_ctrl_c_before_it_leads_its_group_has_been_stopped_and_has_not_failed() {
        let stop = Stop::default();
        // Whoever runs the tests in the background has them ignore it.
        let mut shell = Command::new("env");
        shell.args(["--default-signal=INT", "sh", "-c", "kill -INT $$"]);
        let mut member = Member::of(shell, &stop).unwrap();
        let late = stop.clone();
        // The one that leads hears of it a little later.
        let setting = std::thread::Builder::new().name("ctrl-c".into());
        let set = move || {
            std::thread::sleep(Duration::from_millis(300));
            late.set();
        };
        let setting = setting.spawn(set).unwrap();
        let error = member.hear("ready").unwrap_err();
        assert!(matches!(error, FamilyError::Stopped), "{error}");
        assert!(stop.is_set());
        setting.join().unwrap();
    }

    #[test]
    fn who_ends_by_itself_has_failed() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exit 1"]);
        let mut member = Member::of(shell, &Stop::default()).unwrap();
        let error = member.hear("ready").unwrap_err();
        assert!(error.to_string().contains("has failed"), "{error:#}");
    }
}
