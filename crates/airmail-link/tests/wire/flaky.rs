//! A storage that refuses appends now and then, and stores nothing of them.

use super::line::below;
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Refusal, Tag, Trouble};
use airmail_model::{Mono, Now};
use std::time::Duration;

/// One in so many appends is refused, with all that come before the next poll.
const REFUSALS: u64 = 20;

pub(crate) struct Flaky<S> {
    storage: S,
    random: u64,
    /// Refused since the last poll; nothing behind the first of them is passed on, for answers keep their order.
    refused: Vec<Tag>,
}

impl<S> Flaky<S> {
    pub(crate) fn new(storage: S, seed: u64) -> Flaky<S> {
        Flaky {
            storage,
            random: seed,
            refused: Vec::new(),
        }
    }

    pub(crate) fn into_storage(self) -> S {
        self.storage
    }
}

impl<S: LogStorage> LogStorage for Flaky<S> {
    fn capabilities(&self) -> Capabilities {
        self.storage.capabilities()
    }

    fn submit(&mut self, call: Call) {
        match call {
            Call::Append { t, .. }
                if !self.refused.is_empty() || below(&mut self.random, REFUSALS) == 0 =>
            {
                self.refused.push(t);
            }
            call => self.storage.submit(call),
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let deadline = self.storage.poll(now, out);
        let why = Refusal::Busy {
            retry_after: Duration::from_secs(1),
        };
        let refused = |t| Completion::Refused {
            t,
            why: why.clone(),
        };
        out.extend(self.refused.drain(..).map(refused));
        deadline
    }

    fn opened(&mut self) {
        self.storage.opened();
    }

    fn close(&mut self, now: Now) {
        self.storage.close(now);
    }

    fn is_closed(&self) -> bool {
        self.storage.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.storage.trouble()
    }

    fn damage(&self) -> u64 {
        self.storage.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.storage.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
