//! Progress of a command: one line of standard error that is written over, where that is a
//! terminal.
//!
//! It is text and a carriage return: nothing draws on the terminal, and nothing of it goes to a
//! file or a pipe.

use airmail_model::Mono;
use airmail_model::clock::{Clock as _, SystemClock};
use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::Duration;

/// Shortest time between two writes of the line.
const PAUSE: Duration = Duration::from_millis(100);

/// Goes back to the beginning of the line, and clears it.
const AGAIN: &str = "\r\u{1b}[K";

/// The line. It is gone when this is dropped.
#[derive(Debug)]
pub struct StatusLine {
    /// A clock that began with it; absent: nobody would see it.
    clock: Option<SystemClock>,
    /// When it was written.
    written: Option<Mono>,
}

impl StatusLine {
    /// Begins a line if standard error is a terminal.
    #[must_use]
    pub fn begin() -> StatusLine {
        StatusLine {
            clock: stderr().is_terminal().then(SystemClock::new),
            written: None,
        }
    }

    /// Writes what is given for the time since the beginning, unless it was written just now.
    pub fn show(&mut self, text: impl FnOnce(Duration) -> String) {
        let Some(clock) = self.clock else {
            return;
        };
        let now = clock.mono();
        if self
            .written
            .is_none_or(|written| now >= written.plus(PAUSE))
        {
            self.written = Some(now);
            // A terminal that is gone has nobody who would miss it.
            let _ = write!(stderr(), "{AGAIN}{}", text(now.since(Mono(0))));
        }
    }

    /// Clears it.
    pub fn end(&mut self) {
        self.clock = None;
        if self.written.take().is_some() {
            let _ = write!(stderr(), "{AGAIN}");
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.end();
    }
}

/// Things done, and how many that is a second.
#[must_use]
pub fn rate(done: u64, since: Duration) -> String {
    format!(
        "{done}, {:.0}/s",
        done as f64 / since.as_secs_f64().max(0.001)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_is_not_written_to() {
        let mut line = StatusLine {
            clock: None,
            written: None,
        };
        line.show(|_| unreachable!("nobody sees it"));
    }

    #[test]
    fn the_rate_is_over_all_of_the_time() {
        assert_eq!(rate(300, Duration::from_secs(2)), "300, 150/s");
        assert_eq!(rate(0, Duration::ZERO), "0, 0/s");
    }
}
