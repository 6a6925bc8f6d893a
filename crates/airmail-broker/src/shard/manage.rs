//! Namespace commands: checked, written to log 0 one at a time, answered when log 0 says so.
//!
//! A command is done when the shard's own reader of log 0 has met it, not when it was appended:
//! the state is the fold, here as after a restart.

use super::Shard;
use crate::access::{Action, Principal};
use crate::calls::Purpose;
use crate::catalog::Catalog;
use crate::command::{Change, Fold, SYSTEM_EPOCH};
use crate::input::{Command, CommandId, Effects, Outcome};
use crate::refusal;
use airmail_log::{Call, ReaderId, Refusal};
use airmail_model::bug;
use airmail_model::{Error, ErrorCode, Extent, LogId, NamespaceId, Now, Sequence};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How far the start has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Log 0 is being opened.
    #[default]
    Opening,
    /// Log 0 is being read for the first time.
    Replaying,
    /// The namespaces are known, their logs are being opened.
    Settling,
    /// All is open.
    Ready,
}

/// The namespaces, and the commands about them.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    pub(super) phase: Phase,
    pub(super) fold: Fold,
    pub(super) failure: Option<Error>,
    /// Numbers of log 0 are missing: what they said is not known, and there may be no namespace.
    pub(super) torn: bool,
    /// The reader of log 0.
    pub(super) reader: Option<ReaderId>,
    /// The first number of log 0 that has not been read.
    pub(super) next: Sequence,
    /// Namespaces some of whose logs are being opened or deleted.
    pub(super) settling: BTreeMap<NamespaceId, Settling>,
    snapshot: Arc<Catalog>,
    queue: VecDeque<(CommandId, Command)>,
    current: Option<Current>,
}

/// Logs of a namespace that the storage has not answered for.
#[derive(Debug, Default)]
pub(super) struct Settling {
    pub(super) left: usize,
    pub(super) error: Option<Error>,
}

/// The command under way.
#[derive(Debug)]
struct Current {
    /// `None`: the shard's own, at the first start.
    id: Option<CommandId>,
    change: Change,
    /// Where it was appended.
    at: Option<Sequence>,
    /// What has been met in log 0 meanwhile, and whether it was not void.
    met: Vec<(Sequence, bool)>,
}

impl Namespaces {
    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.snapshot
    }

    /// Makes what has been folded visible.
    pub(super) fn publish(&mut self) {
        self.snapshot = Arc::new(self.fold.catalog.clone());
    }

    /// Takes note of a command met in log 0.
    pub(super) fn met(&mut self, at: Sequence, applied: bool) {
        if let Some(current) = &mut self.current {
            current.met.push((at, applied));
        }
    }

    /// Whether a namespace was ever made, or it cannot be known.
    pub(super) fn has_begun(&self) -> bool {
        self.fold.last_id.0 != 0 || self.torn
    }

    pub(super) fn is_busy(&self) -> bool {
        self.current.is_some()
    }
}

impl Shard {
    /// A unary call.
    pub(super) fn command(
        &mut self,
        now: Now,
        id: CommandId,
        principal: &Principal,
        command: Command,
        out: &mut Effects,
    ) {
        let action = match &command {
            Command::ListTopics { namespace, .. } => Action::ListTopics(*namespace),
            _ => Action::Administer,
        };
        if let Err(error) = self.take_command(id, principal, action, command, out) {
            self.answer_command(id, Err(error), out);
        }
        self.next_command(now, out);
    }

    fn take_command(
        &mut self,
        id: CommandId,
        principal: &Principal,
        action: Action,
        command: Command,
        out: &mut Effects,
    ) -> Result<(), Error> {
        self.authorizer.authorize(principal, action)?;
        if !self.ready() {
            return Err(self.busy("node"));
        }
        if let Command::ListTopics { namespace, page } = command {
            return self.list_topics(id, namespace, page, out);
        }
        if let Some(error) = &self.namespaces.failure {
            return Err(error.clone());
        }
        if self.namespaces.queue.len() >= self.config.commands {
            let limit = format!("{} commands that wait", self.config.commands);
            return Err(self.busy("commands").limit(limit));
        }
        self.namespaces.queue.push_back((id, command));
        Ok(())
    }

    pub(super) fn answer_command(
        &mut self,
        id: CommandId,
        result: Result<Outcome, Error>,
        out: &mut Effects,
    ) {
        if let Err(error) = &result {
            self.stats.refuse(error.code());
        }
        out.outcomes.push((id, result));
    }

    /// Begins the next command, if none is under way.
    pub(super) fn next_command(&mut self, now: Now, out: &mut Effects) {
        while self.namespaces.current.is_none() {
            let Some((id, command)) = self.namespaces.queue.pop_front() else {
                return;
            };
            let begun = self
                .to_change(command)
                .and_then(|change| self.begin(now, Some(id), change, out));
            if let Err(error) = begun {
                self.answer_command(id, Err(error), out);
            }
        }
    }

    /// Makes the namespace `default`, at the first start.
    pub(super) fn create_default(&mut self, now: Now, out: &mut Effects) {
        let first = self.config.default_namespace;
        let command = Command::CreateNamespace {
            name: "default".into(),
            logs: first.logs,
            retention: first.retention,
            durability: first.durability,
        };
        let begun = self
            .to_change(command)
            .and_then(|change| self.begin(now, None, change, out));
        self.namespaces.failure = begun.err();
    }

    fn begin(
        &mut self,
        now: Now,
        id: Option<CommandId>,
        change: Change,
        out: &mut Effects,
    ) -> Result<(), Error> {
        let batch = change.to_batch(now.wall)?;
        out.storage.push(Call::Append {
            t: self.calls.tag(Purpose::Change),
            log: LogId::SYSTEM,
            map: SYSTEM_EPOCH,
            batch,
        });
        self.namespaces.current = Some(Current {
            id,
            change,
            at: None,
            met: Vec::new(),
        });
        Ok(())
    }

    /// A command is in log 0.
    pub(super) fn change_appended(&mut self, now: Now, extent: Extent, out: &mut Effects) {
        match &mut self.namespaces.current {
            Some(current) => current.at = Some(extent.first),
            None => bug!("a command of nobody is in log 0 at {}", extent.first),
        }
        self.conclude(now, out);
    }

    /// A command did not get into log 0, or may not have.
    pub(super) fn change_refused(&mut self, now: Now, why: &Refusal, out: &mut Effects) {
        let error = refusal::error(why, LogId::SYSTEM, None);
        self.finish(now, Err(error), out);
    }

    /// Answers the command under way, if log 0 has said what became of it and the logs it is about
    /// are opened or deleted.
    pub(super) fn conclude(&mut self, now: Now, out: &mut Effects) {
        let Some(current) = &self.namespaces.current else {
            return;
        };
        let id = current.change.id();
        let mut met = current.met.iter();
        let Some((_, applied)) = met.find(|(at, _)| Some(*at) == current.at) else {
            return;
        };
        if !applied {
            let error = Error::new(ErrorCode::NamespaceChanged).field("namespace");
            return self.finish(now, Err(error), out);
        }
        match self.namespaces.settling.get(&id) {
            Some(settling) if settling.left > 0 => return,
            _ => {}
        }
        let settled = self.namespaces.settling.remove(&id);
        let error = settled.and_then(|settling| settling.error);
        let result = match (error, self.catalog().get(id)) {
            (Some(error), _) => Err(error),
            (None, Some(entry)) => Ok(Outcome::Namespace(entry.namespace.clone())),
            (None, None) => Ok(Outcome::Deleted),
        };
        self.finish(now, result, out);
    }

    fn finish(&mut self, now: Now, result: Result<Outcome, Error>, out: &mut Effects) {
        let current = self.namespaces.current.take();
        match current.map(|current| current.id) {
            Some(Some(id)) => self.answer_command(id, result, out),
            Some(None) => self.namespaces.failure = result.err(),
            None => bug!("a command of nobody has come to {result:?}"),
        }
        self.next_command(now, out);
    }
}
