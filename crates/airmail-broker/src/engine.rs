//! A shard and its storage, coupled: what the async shell and the simulator run.
//!
//! A turn passes the shard's wishes to the storage and the storage's completions to the shard,
//! until neither has more or the turn has done enough; then the caller sends what has gathered.

use crate::access::{Admission, Authorizer};
use crate::config::ShardConfig;
use crate::input::{CommandId, Effects, Input, Outcome, SessionId};
use crate::shard::{Shard, give};
use crate::storage_requirements::UnfitStorage;
use airmail_log::{Completion, LogStorage};
use airmail_model::frame::Reply;
use airmail_model::{Error, Mono, Now};
use std::time::Duration;

/// Rounds between shard and storage in one turn, before the caller gets to send and receive.
const ROUNDS: usize = 8;
/// Bytes read from the storage in one turn, as `ROUNDS`.
const TURN_BYTES: u64 = 1 << 20;

/// Output of a turn, to be sent. The caller empties it.
#[derive(Debug, Default)]
pub struct TurnOutput {
    /// To clients, in order for each session.
    pub replies: Vec<(SessionId, Reply)>,
    /// Streams of which [`ClientInput::Sent`](crate::ClientInput::Sent) is awaited.
    pub watch: Vec<SessionId>,
    /// Answers to commands, each once.
    pub outcomes: Vec<(CommandId, Result<Outcome, Error>)>,
}

/// A [`Shard`] with the [`LogStorage`] that it owns.
#[derive(Debug)]
pub struct Engine<S> {
    shard: Shard,
    storage: S,
    effects: Effects,
    completions: Vec<Completion>,
    /// Something was taken since the last turn.
    taken: bool,
}

impl<S: LogStorage> Engine<S> {
    /// An engine that begins to open its logs; [`Shard::ready`] says when it has.
    ///
    /// # Errors
    /// [`UnfitStorage`]: the storage has a capability that a shard cannot honour.
    pub fn new(
        config: ShardConfig,
        storage: S,
        authorizer: Box<dyn Authorizer>,
        admission: Box<dyn Admission>,
        now: Now,
    ) -> Result<Engine<S>, UnfitStorage> {
        let mut effects = Effects::default();
        let capabilities = storage.capabilities();
        let mut shard = Shard::new(config, capabilities, authorizer, admission)?;
        shard.start(now, &mut effects);
        let mut engine = Engine {
            shard,
            storage,
            effects,
            completions: Vec::new(),
            taken: false,
        };
        engine.pass_calls();
        Ok(engine)
    }

    /// Takes something that has happened. What comes of it is done and given by the next turn.
    pub fn input(&mut self, now: Now, input: impl Into<Input>) {
        self.shard.apply(now, input.into());
        self.taken = true;
    }

    /// The thread that runs this engine has worked for `time` since this was last said, on whatever.
    /// See [`Shard::worked`].
    pub fn worked(&mut self, time: Duration) {
        self.shard.worked(time);
    }

    /// Does what is ready and moves what is to be sent to `out`. Returns when to take the next turn
    /// if nothing else happens before: at once if there is more to do, never if `None`.
    pub fn turn(&mut self, now: Now, out: &mut TurnOutput) -> Option<Mono> {
        if self.effects.deadline.is_some_and(|at| at <= now.mono) {
            self.input(now, Input::Timer);
        }
        if std::mem::take(&mut self.taken) {
            self.shard.finish_step(now, &mut self.effects);
            self.pass_calls();
        }
        let mut again = None;
        let given = self.shard.given_bytes();
        for round in 1..=ROUNDS {
            let deadline = self.storage.poll(now, &mut self.completions);
            let quiet = self.completions.is_empty();
            for completion in self.completions.drain(..) {
                self.shard.apply(now, Input::Storage(completion));
            }
            if !quiet {
                self.shard.finish_step(now, &mut self.effects);
            }
            let asked = self.pass_calls();
            again = deadline;
            let more = deadline.is_some_and(|at| at <= now.mono);
            if !asked && (quiet || !more) {
                break;
            }
            if round == ROUNDS || self.shard.given_bytes() - given >= TURN_BYTES {
                again = Some(now.mono);
                break;
            }
        }
        give(&mut self.effects.replies, &mut out.replies);
        give(&mut self.effects.watch, &mut out.watch);
        give(&mut self.effects.outcomes, &mut out.outcomes);
        match (again, self.effects.deadline) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The shard, to look at.
    #[must_use]
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The storage, to look at.
    #[must_use]
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// The storage, to be told that the engine stops.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Ends the engine and gives its storage back.
    #[must_use]
    pub fn into_storage(self) -> S {
        self.storage
    }

    /// Hands the shard's calls to the storage; whether there were any.
    fn pass_calls(&mut self) -> bool {
        let any = !self.effects.storage.is_empty();
        for call in self.effects.storage.drain(..) {
            self.storage.submit(call);
        }
        any
    }
}
