//! End of a client command by a signal from outside: SIGINT (Ctrl-C), SIGTERM or SIGHUP.
//!
//! The results so far are printed or stored first, and the exit code is the one a shell gives for a
//! process that the signal killed: 128 and the signal's number. A hang-up that the command was
//! started to ignore, for example by `nohup`, is ignored.

use std::future::{Future, pending};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Longest time for printing collected results once a command is to end. The reader of its output
/// may have stopped reading.
const PRINTING: Duration = Duration::from_secs(5);

/// Signals that end a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// SIGINT: Ctrl-C.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// SIGHUP: its terminal is gone.
    HungUp,
}

impl Ending {
    /// The signal's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Ending::Interrupted => "SIGINT",
            Ending::Terminated => "SIGTERM",
            Ending::HungUp => "SIGHUP",
        }
    }

    fn number(self) -> u8 {
        128 + match self {
            Ending::HungUp => 1,
            Ending::Interrupted => 2,
            Ending::Terminated => 15,
        }
    }

    /// Exit code of the command.
    pub(super) fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

/// The signals, from when this is made.
#[derive(Debug)]
pub(super) struct Endings {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where it is ignored.
    hang_up: Option<Signal>,
}

impl Endings {
    pub(super) fn new() -> std::io::Result<Endings> {
        let hang_up = SignalKind::hangup();
        Ok(Endings {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if is_ignored(hang_up) {
                None
            } else {
                Some(signal(hang_up)?)
            },
        })
    }

    /// The next one.
    ///
    /// # Cancel safety
    /// None is lost when the future is dropped before it is done.
    pub(super) async fn next(&mut self) -> Ending {
        let hung_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Ending::Interrupted,
            _ = self.terminate.recv() => Ending::Terminated,
            _ = hung_up => Ending::HungUp,
        }
    }
}

/// Whether this process was started to ignore a signal; the system says so in one of its files.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}

/// Lets a command print until it is done, or ended, which is seen whenever `printing` gives way: what it
/// has collected is then to be printed. If that is not done within some seconds, or there is a second
/// signal, the process ends at once.
pub(super) async fn until_ended(
    printing: impl Future<Output = anyhow::Result<()>>,
) -> (anyhow::Result<()>, Option<Ended>) {
    let mut endings = match Endings::new() {
        Ok(endings) => endings,
        Err(error) => return (Err(error.into()), None),
    };
    let (tell, mut told) = watch::channel(None);
    let mut tasks = JoinSet::new();
    // Not by this task, which may be held up by whoever does not read what it writes.
    tasks.spawn(async move {
        let first = endings.next().await;
        tell.send_replace(Some(first));
        tokio::select! {
            _ = endings.next() => {}
            () = tokio::time::sleep(PRINTING) => {}
        }
        std::process::exit(first.number().into());
    });
    let ending = told.wait_for(Option::is_some);
    tokio::select! {
        biased;
        ending = ending => {
            let by = ending.ok().and_then(|ending| *ending).unwrap_or(Ending::Terminated);
            (Ok(()), Some(Ended { by, _tasks: tasks }))
        }
        done = printing => (done, None),
    }
}

/// A command was ended; while this is held, it is seen to that it does end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) by: Ending,
    _tasks: JoinSet<()>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_one_that_a_shell_would_have_said() {
        let numbers = [Ending::HungUp, Ending::Interrupted, Ending::Terminated].map(Ending::number);
        assert_eq!(numbers, [129, 130, 143]);
    }
}
