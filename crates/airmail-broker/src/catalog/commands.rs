//! Commands: checked, written to log 0 one at a time (`line`), answered when log 0 says so.
//!
//! Others write to log 0 too, so a command of one's own may turn out void because another was there first. Then
//! it has succeeded if the namespaces are as it asked; else it is checked and written again, on top of what is
//! there now, before anybody is told. A namespace for which the storage makes something beforehand is provisioned before
//! each attempt (`provisioning.rs`).

use super::change::Change;
use super::messages::{CatalogEffect, CatalogEffects, CommandRefusal, SystemAppend};
use super::namespaces::Catalog;
use super::provisioning::Provisioned;
use super::{CatalogCore, Phase};
use crate::input::{Command, CommandId, Outcome};
use crate::storage_refusals;
use airmail_log::Refusal;
use airmail_model::bug;
use airmail_model::{Error, ErrorCode, Extent, LogId, NamespaceId, Now, Sequence, StorageName};

/// Times that a command is written, at most, before its client is told that others were always first.
const ATTEMPTS_MAX: u32 = 8;

/// The command under way.
#[derive(Debug)]
pub(super) struct Current {
    /// The client's; `None`: the catalog's own, at the first start.
    pub(super) id: Option<CommandId>,
    /// The command as it was given.
    command: Command,
    pub(super) change: Change,
    /// The namespace that it is about: the change's, or the one that somebody else has made as it asked.
    pub(super) namespace: NamespaceId,
    /// Logs that the storage was asked to provision for, if it was.
    pub(super) provisioned: Option<Provisioned>,
    /// Somebody else has made the namespaces as it asked.
    is_as_asked: bool,
    /// Times that it was written.
    attempts: u32,
    /// Where it was appended.
    pub(super) at: Option<Sequence>,
    /// Commands met in log 0 meanwhile, in order.
    pub(super) met: Vec<Met>,
}

/// A command that the reader of log 0 came upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) extent: Extent,
    pub(super) became: Became,
}

/// Result of a command in log 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    /// It was done.
    Applied,
    /// It was void.
    Void,
    /// It is lost.
    Lost,
}

impl Current {
    /// Result of the command; `None` while that is not known.
    pub(super) fn became(&self) -> Option<Became> {
        if self.is_as_asked {
            return Some(Became::Applied);
        }
        let at = self.at?;
        let mut met = self.met.iter();
        let met = met.find(|met| met.extent.contains(at))?;
        Some(met.became)
    }
}

impl CatalogCore {
    /// A client's command: put in line, or refused.
    pub(super) fn command(
        &mut self,
        now: Now,
        id: CommandId,
        command: Command,
        out: &mut CatalogEffects,
    ) {
        match self.admit() {
            Ok(()) => self.queue.push_back((id, command)),
            Err(refusal) => out.answer(id, Err(refusal)),
        }
        self.next_command(now, out);
    }

    /// Whether a command may be put in line.
    fn admit(&self) -> Result<(), CommandRefusal> {
        if self.phase != Phase::Ready {
            return Err(CommandRefusal::NotReady);
        }
        self.may_change().map_err(CommandRefusal::Failed)?;
        let commands_max = self.config.commands_max;
        if self.queue.len() >= commands_max {
            return Err(CommandRefusal::QueueFull { commands_max });
        }
        Ok(())
    }

    /// Whether namespaces can be changed; else why not.
    pub(super) fn may_change(&self) -> Result<(), Error> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Begins the next command, if none is under way.
    fn next_command(&mut self, now: Now, out: &mut CatalogEffects) {
        while self.current.is_none() {
            let Some((id, command)) = self.queue.pop_front() else {
                // Input: none waits.
                return;
            };
            if let Err(error) = self.begin(now, Some(id), command, 1, out) {
                out.answer(id, Err(CommandRefusal::Failed(error)));
            }
        }
    }

    /// Makes the namespace `default`, at the first start.
    pub(super) fn create_default(&mut self, now: Now, out: &mut CatalogEffects) {
        let first = self.config.default_namespace;
        let command = Command::CreateNamespace {
            name: "default".into(),
            logs: first.logs,
            retention: first.retention,
            durability: first.durability,
            storage: StorageName::FIRST,
        };
        self.failure = self.begin(now, None, command, 1, out).err();
    }

    /// Checks a command against the namespaces as they stand, and writes it.
    fn begin(
        &mut self,
        now: Now,
        id: Option<CommandId>,
        command: Command,
        attempts: u32,
        out: &mut CatalogEffects,
    ) -> Result<(), Error> {
        self.may_change()?;
        let change = self.to_change(command.clone())?;
        let provisioned = self.provision(&change, out);
        if provisioned.is_none() {
            self.write(now, &change, out)?;
        }
        self.current = Some(Current {
            id,
            command,
            namespace: change.id(),
            change,
            provisioned,
            is_as_asked: false,
            attempts,
            at: None,
            met: Vec::new(),
        });
        Ok(())
    }

    /// Writes a change to log 0.
    pub(super) fn write(
        &self,
        now: Now,
        change: &Change,
        out: &mut CatalogEffects,
    ) -> Result<(), Error> {
        let batch = change.to_batch(now.wall, self.fold.version)?;
        let of = SystemAppend::Command;
        out.push(CatalogEffect::Append { of, batch });
        Ok(())
    }

    /// Notes that an append is in log 0.
    pub(super) fn appended(
        &mut self,
        now: Now,
        of: SystemAppend,
        extent: Extent,
        out: &mut CatalogEffects,
    ) {
        if of == SystemAppend::Note {
            return;
        }
        match &mut self.current {
            // A raise may stand before it.
            Some(current) => current.at = Some(extent.last),
            None => bug!("a command of nobody is in log 0 at {}", extent.first),
        }
        self.conclude(now, out);
    }

    /// Notes that an append did not get into log 0, or may not have. What a note that did not is about is done
    /// once more, later: at the next start, like the deletion that it belongs to, or when a log is found empty again.
    pub(super) fn append_refused(
        &mut self,
        now: Now,
        of: SystemAppend,
        why: &Refusal,
        out: &mut CatalogEffects,
    ) {
        if of == SystemAppend::Command {
            let is_sure = *why != Refusal::OutcomeUnknown;
            #[cfg(feature = "sabotage")]
            let is_sure =
                is_sure || self.config.bug == Some(crate::sabotage::Bug::UnknownWithdrawn);
            if is_sure {
                self.withdraw(out);
            }
            let error = storage_refusals::error(why, LogId::SYSTEM, None);
            self.finish(now, Err(error), out);
        }
    }

    /// Takes note of what was met in log 0.
    pub(super) fn met(&mut self, extent: Extent, became: Became) {
        if let Some(current) = &mut self.current {
            current.met.push(Met { extent, became });
        }
    }

    /// Answers the command under way, if log 0 has said what became of it and the logs it is about
    /// are opened or deleted.
    pub(super) fn conclude(&mut self, now: Now, out: &mut CatalogEffects) {
        let Some(current) = &self.current else {
            // Input: log 0 is read, or a log is opened anew, while no command is under way.
            return;
        };
        let id = current.namespace;
        let is_deletion = matches!(current.change, Change::Delete { .. });
        let is_decision = matches!(
            current.change,
            Change::Truncate { .. } | Change::Recreate { .. }
        );
        let Some(became) = current.became() else {
            // Input: the storage has not answered the append, or its reader has not come that far.
            return;
        };
        match became {
            Became::Applied => {}
            Became::Void => {
                // Whoever has what is missing here may find that it counts.
                if !self.log.is_torn {
                    self.withdraw(out);
                }
                return self.void(now, out);
            }
            Became::Lost => {
                let error = storage_refusals::error(&Refusal::OutcomeUnknown, LogId::SYSTEM, None);
                return self.finish(now, Err(error), out);
            }
        }
        match self.settling.get(&id) {
            Some(settling) if settling.left > 0 => return,
            _ => {}
        }
        let settled = self.settling.remove(&id);
        // Logs in a storage that this node has not are deleted when a node begins that has it.
        let is_left = |error: &Error| {
            // What is decided about a loss is decided; the tower goes on trying.
            let is_tried_on = is_decision && error.code().waited_for();
            is_deletion && error.code() == ErrorCode::Elsewhere || is_tried_on
        };
        let error = settled.and_then(|settling| settling.error);
        let error = error.filter(|error| !is_left(error));
        let role = match &current.change {
            Change::CreateRole { name, .. } => self.snapshot.roles().role(name),
            _ => None,
        };
        let result = match (error, role, self.snapshot.get(id)) {
            (Some(error), ..) => Err(error),
            (None, Some(role), _) => Ok(Outcome::Role(role)),
            (None, None, Some(entry)) => Ok(Outcome::Namespace(entry.namespace.clone())),
            (None, None, None) => Ok(Outcome::Deleted),
        };
        self.finish(now, result, out);
    }

    /// Another was there before the command under way: it has succeeded if the namespaces are as it asked, else it
    /// is written again.
    pub(super) fn void(&mut self, now: Now, out: &mut CatalogEffects) {
        let Some(mut current) = self.current.take() else {
            bug!("a command of nobody was void");
            return;
        };
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::VoidEndsCommands) {
            let error = Error::new(ErrorCode::NamespaceChanged).field("namespace");
            self.failure = Some(error.clone());
            self.current = Some(current);
            return self.finish(now, Err(error), out);
        }
        if let Some(namespace) = as_asked(&current.change, &self.snapshot) {
            (current.namespace, current.is_as_asked) = (namespace, true);
            self.current = Some(current);
            return self.conclude(now, out);
        }
        if current.id.is_none() && self.has_begun() {
            // Another has made the first namespace, whatever it is: that is all that was wanted.
            return self.ended(now, out);
        }
        let begun = if current.attempts < ATTEMPTS_MAX {
            let (command, attempts) = (current.command.clone(), current.attempts + 1);
            self.begin(now, current.id, command, attempts, out)
        } else {
            Err(Error::new(ErrorCode::NamespaceChanged).field("namespace"))
        };
        if let Err(error) = begun {
            self.current = Some(current);
            self.finish(now, Err(error), out);
        }
    }

    pub(super) fn finish(
        &mut self,
        now: Now,
        result: Result<Outcome, Error>,
        out: &mut CatalogEffects,
    ) {
        match self.current.take().map(|current| current.id) {
            Some(Some(id)) => out.answer(id, result.map_err(CommandRefusal::Failed)),
            // What is torn stays so, whatever has become of the first namespace.
            Some(None) if self.log.is_torn => {}
            Some(None) => self.first_ended(result.err(), out),
            None => bug!("a command of nobody has come to {result:?}"),
        }
        self.ended(now, out);
    }

    /// The command that makes the first namespace is answered. As long as there is none it is written again: nothing
    /// can be done before. Whether an earlier attempt is in log 0 does not matter, for the first one counts.
    fn first_ended(&mut self, error: Option<Error>, out: &mut CatalogEffects) {
        let may_pass = |code: ErrorCode| code.waited_for() || code == ErrorCode::OutcomeUnknown;
        let is_over = self.has_begun();
        self.failure = error.filter(|error| !is_over || !may_pass(error.code()));
        let failed = self.failure.as_ref();
        if failed.is_some_and(|error| may_pass(error.code())) {
            out.push(CatalogEffect::RetryLater);
        }
    }

    /// Makes the first namespace, where an attempt at that has failed.
    pub(super) fn begin_again(&mut self, now: Now, out: &mut CatalogEffects) {
        if self.phase == Phase::Settling && !self.has_begun() && self.current.is_none() {
            self.failure = None;
            self.create_default(now, out);
        }
    }

    /// No command is under way any more.
    fn ended(&mut self, now: Now, out: &mut CatalogEffects) {
        self.forget_settled();
        self.next_command(now, out);
        // The start may have waited for nothing but its own first command.
        self.check_ready();
    }
}

/// The namespace that a change is about, if it is as the change asks though the change was void.
fn as_asked(change: &Change, catalog: &Catalog) -> Option<NamespaceId> {
    match change {
        Change::Create { name, spec, .. } => {
            let there = catalog.by_name(name)?;
            (there.namespace.spec == *spec).then_some(there.namespace.id)
        }
        Change::Update {
            id,
            retention,
            durability,
            ..
        } => {
            let spec = &catalog.get(*id)?.namespace.spec;
            (spec.retention == *retention && spec.durability == *durability).then_some(*id)
        }
        Change::Delete { id, .. } => catalog.get(*id).is_none().then_some(*id),
        Change::Move { id, storage, .. } => {
            let spec = &catalog.get(*id)?.namespace.spec;
            (spec.storage == *storage).then_some(*id)
        }
        Change::Truncate { log, cuts, .. } => {
            let entry = catalog.get(log.namespace)?;
            let there = entry.losses.get(log).map_or(0, |of| of.cuts.len());
            let asked = usize::try_from(*cuts).ok()?;
            (there >= asked).then_some(log.namespace)
        }
        Change::CreateRole { name, .. } => catalog.roles().find(name).map(|_| change.id()),
        Change::DeleteRole { id } => (!catalog.roles().has(*id)).then(|| change.id()),
        Change::Purged { .. }
        | Change::Raise { .. }
        | Change::AddHigh { .. }
        | Change::Retired { .. }
        | Change::Suspend { .. }
        | Change::Recreate { .. } => None,
    }
}
