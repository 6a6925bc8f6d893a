//! Attempts at a call: when it is made again after an error, and when it is given up.
//!
//! A call whose error is waited for, by the table of errors, is made again until patience ends, and
//! never sooner than the error says. There are two limits, because a caller does not want to wait
//! long for a node that is not there, but longer for one that answers "later", for instance while
//! it starts.
//!
//! Invariants: an error that is not waited for is returned at once and unchanged. No attempt begins
//! after the end of patience, or so late that it would outlast it if it took as long as the one
//! before: otherwise an error that a node gave in time would be lost to an attempt that is cut off.
//! The error of a call that was given up says for how long it was tried.

use super::backoff::Backoff;
use airmail_model::{Error, ErrorCode, Mono};
use std::time::Duration;

/// Time limits of the attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Limit while no node answers.
    pub node: Duration,
    /// Limit of all attempts and waits together.
    pub all: Duration,
}

impl Patience {
    /// Patience that never ends.
    pub const ENDLESS: Patience = Patience {
        node: Duration::MAX,
        all: Duration::MAX,
    };
}

/// Attempts at one call, or at one call after the other.
#[derive(Clone, Debug)]
pub struct Attempts {
    patience: Patience,
    backoff: Backoff,
    /// Time of the first failure, or of the begin that the caller gave; `None` after a success.
    since: Option<Mono>,
    /// Time since which no node has answered.
    silent: Option<Mono>,
    /// Time at which the current attempt began, if it is known.
    began: Option<Mono>,
}

impl Attempts {
    /// Makes attempts whose patience begins with the first failure.
    #[must_use]
    pub fn new(patience: Patience, backoff: Backoff) -> Attempts {
        Attempts {
            patience,
            backoff,
            since: None,
            silent: None,
            began: None,
        }
    }

    /// Lets patience begin now.
    #[must_use]
    pub fn from(mut self, now: Mono) -> Attempts {
        (self.since, self.silent) = (Some(now), Some(now));
        self
    }

    /// Takes note that an attempt begins.
    pub fn begin(&mut self, now: Mono) {
        self.began = Some(now);
    }

    /// Sets another patience from now on.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Takes note of a success, or progress: the next failure counts as the first.
    pub fn succeeded(&mut self) {
        self.backoff.reset();
        (self.since, self.silent) = (None, None);
    }

    /// Takes note that an attempt has failed; gives the time of the next one.
    ///
    /// # Errors
    /// The same error, if it is not waited for, or if patience ends before the next attempt could
    /// begin.
    pub fn failed(&mut self, now: Mono, error: Error) -> Result<Mono, Error> {
        if !error.code().waited_for() {
            return Err(error);
        }
        let since = *self.since.get_or_insert(now);
        let took = self.began.take().map_or(Duration::ZERO, |at| now.since(at));
        let all = since.plus(self.patience.all);
        let mut until = all;
        if error.code() == ErrorCode::Disconnected {
            let silent = *self.silent.get_or_insert(now);
            until = until.min(silent.plus(self.patience.node));
        } else {
            self.silent = None;
        }
        let retry = now.plus(self.backoff.delay_for(&error));
        if retry >= until || retry.plus(took) >= all {
            return Err(error.waited(now.since(since)));
        }
        Ok(retry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::BackoffConfig;
    use super::*;

    const PATIENCE: Patience = Patience {
        node: Duration::from_secs(5),
        all: Duration::from_secs(30),
    };

    fn attempts() -> Attempts {
        Attempts::new(PATIENCE, Backoff::new(BackoffConfig::default(), 1))
    }

    fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }

    /// Fails again and again with an error; gives how often, when it was given up, and the last
    /// error.
    fn until_given_up(code: ErrorCode) -> (u32, Mono, Error) {
        let mut attempts = attempts().from(at(0));
        let (mut now, mut failures) = (at(0), 0);
        loop {
            failures += 1;
            match attempts.failed(now, Error::new(code)) {
                Ok(retry) => now = retry,
                Err(error) => return (failures, now, error),
            }
        }
    }

    #[test]
    fn what_the_table_says_is_waited_for_and_nothing_else() {
        for &code in ErrorCode::ALL {
            let (failures, end, error) = until_given_up(code);
            assert_eq!(error.code(), code);
            assert_eq!(failures > 1, code.waited_for(), "{code:?}");
            let patience = match code {
                ErrorCode::Disconnected => PATIENCE.node,
                _ => PATIENCE.all,
            };
            assert!(end < at(0).plus(patience), "{code:?}");
            assert_eq!(error.to_string().contains("waited"), code.waited_for());
        }
    }

    #[test]
    fn the_delay_of_the_error_is_never_undercut() {
        let mut attempts = attempts().from(at(0));
        let error = Error::new(ErrorCode::Overloaded).retry_after(Duration::from_secs(2));
        let retry = attempts.failed(at(100), error).unwrap();
        assert!(retry >= at(2_100), "{retry:?}");
    }

    #[test]
    fn a_node_that_says_later_is_waited_for_longer_than_one_that_is_not_there() {
        let mut attempts = attempts().from(at(0));
        let starting = || Error::new(ErrorCode::Overloaded);
        let gone = || Error::new(ErrorCode::Disconnected);
        assert!(attempts.failed(at(20_000), starting()).is_ok());
        // It was there a moment ago.
        assert!(attempts.failed(at(20_100), gone()).is_ok());
        assert!(attempts.failed(at(25_100), gone()).is_err());
    }

    #[test]
    fn no_attempt_is_begun_that_would_be_cut_off() {
        let mut attempts = attempts().from(at(0));
        let away = || Error::new(ErrorCode::MailboxesAway);
        let (mut now, mut answers) = (at(0), 0);
        let end = loop {
            attempts.begin(now);
            now = now.plus(Duration::from_secs(7));
            answers += 1;
            match attempts.failed(now, away()) {
                Ok(retry) => now = retry,
                Err(_) => break now,
            }
        };
        assert!(answers >= 2 && end < at(30_000), "{answers} until {end:?}");
        assert!(end.plus(Duration::from_secs(7)) >= at(30_000), "{end:?}");
    }

    #[test]
    fn patience_begins_anew_when_something_was_done() {
        let mut attempts = attempts();
        let gone = || Error::new(ErrorCode::Disconnected);
        assert!(attempts.failed(at(0), gone()).is_ok());
        attempts.succeeded();
        assert!(attempts.failed(at(60_000), gone()).is_ok());
        attempts.set_patience(Patience::ENDLESS);
        assert!(attempts.failed(at(600_000_000), gone()).is_ok());
    }
}
