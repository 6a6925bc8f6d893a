//! Invariants of the catalog, asserted after each step, whatever the storage answers.
//!
//! A step is compared with the state before it; the rest is read off the state. Each line names its
//! invariant, as the documentation of the module above does. A look costs about as much as a
//! change, which copies the index of all namespaces.

use super::fold::DyingLogs;
use super::messages::{CatalogEffect, CatalogEffects, CatalogInput, Order, SystemAppend};
use super::namespaces::{Catalog, EarlierMap, EarlierState, Entry};
use super::provisioning::Provisioned;
use super::{CatalogCore, Phase};
use crate::input::CommandId;
use airmail_log::LogSpec;
use airmail_model::bug;
use airmail_model::{Extent, Lane, LogId, MapEpoch, NamespaceId, RoleId, Sequence};
use std::sync::Arc;

/// State when a step began.
#[derive(Debug)]
pub(super) struct Before {
    phase: Phase,
    next: Sequence,
    settled: Sequence,
    /// The numbers that the step accounts for, if it is one of the reader's.
    given: Option<Extent>,
    /// Log 0 is read, or is being opened and the step is not the answer to that.
    is_in_use: bool,
    is_torn: bool,
    last_id: NamespaceId,
    last_role: RoleId,
    snapshot: Arc<Catalog>,
    /// Commands of clients that were not answered, with the one that the step takes.
    unanswered: Vec<CommandId>,
    /// Effects of earlier steps.
    effects: usize,
}

impl CatalogCore {
    /// Notes what there is, if the step that begins is to be looked at.
    pub(super) fn before(&self, input: &CatalogInput, out: &CatalogEffects) -> Option<Before> {
        if !bug::is_checking() {
            return None;
        }
        let mut unanswered = self.unanswered();
        if let CatalogInput::Command { id, .. } = input {
            unanswered.push(*id);
        }
        Some(Before {
            phase: self.phase,
            next: self.log.next,
            settled: self.settled,
            given: match input {
                CatalogInput::Batch { stored, .. } => Some(stored.extent),
                CatalogInput::Gap { extent, .. } => Some(*extent),
                _ => None,
            },
            is_in_use: self.log.is_read
                || self.log.is_opening && !matches!(input, CatalogInput::Opened(_)),
            is_torn: self.log.is_torn,
            last_id: self.fold.last_id,
            last_role: self.fold.catalog.roles().last(),
            snapshot: Arc::clone(&self.snapshot),
            unanswered,
            effects: out.in_order.len(),
        })
    }

    /// Asserts what a step may have done.
    pub(super) fn after(&self, before: Option<Before>, out: &CatalogEffects) {
        if let Some(before) = before {
            let effects = out.in_order.get(before.effects..).unwrap_or_default();
            self.check_step(&before, effects);
            self.check();
        }
    }

    fn check_step(&self, before: &Before, effects: &[CatalogEffect]) {
        let (was, is) = (before.phase, self.phase);
        assert!(was <= is, "phase: from {was:?} back to {is:?}");
        let (was, is) = (before.next, self.log.next);
        assert!(was <= is, "served: the prefix shrinks from {was} to {is}");
        let settled = (before.settled, self.settled);
        assert!(
            settled.0 <= settled.1 && settled.1 <= is,
            "progress: {settled:?} is settled, and {is} is folded"
        );
        if let Some(given) = before.given {
            let folded = (was, is);
            assert_eq!(
                folded,
                (given.first, given.next()),
                "served: the prefix, where {given:?} was given"
            );
        }
        let torn = (before.is_torn, self.log.is_torn);
        assert!(torn != (true, false), "torn: log 0 is whole again");
        let (was, is) = (before.last_id, self.fold.last_id);
        assert!(was <= is, "numbers: the last was {was}, and is {is}");
        let (was, is) = (before.last_role, self.fold.catalog.roles().last());
        assert!(was <= is, "numbers: the last role was {was}, and is {is}");
        if before.phase > Phase::Replaying {
            for role in self.snapshot.roles().iter().map(|role| role.id) {
                assert!(
                    role > was || before.snapshot.roles().has(role),
                    "numbers: role {role} is given again, after {was}"
                );
            }
            for id in self.snapshot.iter().map(|entry| entry.namespace.id) {
                assert!(
                    id > before.last_id || before.snapshot.get(id).is_some(),
                    "numbers: {id} is given again, after {}",
                    before.last_id
                );
            }
        }
        self.check_start(before, effects);
        self.check_use(before, effects);
        self.check_answers(before, effects);
        self.check_appends(before, effects);
        for effect in effects {
            if let CatalogEffect::Order(order) = effect {
                self.check_order(*order);
            }
        }
    }

    /// Asserts that the start goes on with all orders given, and is done with all of them answered.
    fn check_start(&self, before: &Before, effects: &[CatalogEffect]) {
        if before.phase <= Phase::Replaying && self.phase > Phase::Replaying {
            let opened = self.snapshot.iter().map(|entry| opened(entry));
            let retired = self.snapshot.iter().flat_map(|entry| retired(entry));
            let dying = self.fold.dying.values().map(|dying| dying.logs.len());
            let wanted = opened.sum::<usize>() + retired.count() + dying.sum::<usize>();
            let is_order = |effect: &&CatalogEffect| matches!(effect, CatalogEffect::Order(_));
            let given = effects.iter().filter(is_order).count();
            assert_eq!(given, wanted, "orders: given at the start");
        }
        let begins = before.phase < Phase::Ready && self.phase == Phase::Ready;
        let settling = &self.settling;
        assert!(!begins || settling.is_empty(), "ready: with {settling:?}");
    }

    /// Asserts that log 0 is opened or read by a step only if nothing of that was under way.
    fn check_use(&self, before: &Before, effects: &[CatalogEffect]) {
        let is_use = |effect: &&CatalogEffect| {
            matches!(effect, CatalogEffect::Open(_) | CatalogEffect::Read { .. })
        };
        let begun = effects.iter().filter(is_use).count();
        assert!(
            begun == 0 || begun == 1 && !before.is_in_use,
            "under_way: {begun} more, by {:?} after {before:?}",
            self.log
        );
    }

    /// Asserts that what a step answered is what is not unanswered any more.
    fn check_answers(&self, before: &Before, effects: &[CatalogEffect]) {
        let mut was = before.unanswered.clone();
        let mut is = self.unanswered();
        is.extend(effects.iter().filter_map(|effect| match effect {
            CatalogEffect::Answer { id, .. } => Some(*id),
            _ => None,
        }));
        was.sort_unstable();
        is.sort_unstable();
        assert_eq!(was, is, "answers: commands before a step, and after");
    }

    fn check_appends(&self, before: &Before, effects: &[CatalogEffect]) {
        let is_command = |effect: &&CatalogEffect| {
            let of = SystemAppend::Command;
            matches!(effect, CatalogEffect::Append { of: is, .. } if *is == of)
        };
        let begun = effects.iter().filter(is_command).count();
        let current = self.current.as_ref();
        assert!(begun == 0 || !before.is_torn, "torn: {current:?} begins");
        assert!(
            begun == 0 || begun == 1 && current.is_some_and(|current| current.at.is_none()),
            "line: {begun} commands are appended in one step, for {current:?}"
        );
    }

    fn check_order(&self, order: Order) {
        match order {
            Order::Open { log, spec, seal } => {
                let entry = self.snapshot.get(log.namespace);
                let wanted = entry.and_then(|entry| wanted(entry, log));
                assert_eq!(
                    wanted,
                    Some((spec, seal)),
                    "orders: {log} is to be opened, for {entry:?}"
                );
            }
            Order::Delete {
                namespace,
                first,
                logs,
                has_high,
                as_of,
                origin,
            } => {
                let given = DyingLogs {
                    first,
                    logs,
                    has_high,
                    origin,
                };
                let dying = self.fold.dying.get(&namespace);
                let is_dying =
                    dying.is_some_and(|dying| dying.as_of == as_of && dying.logs.contains(&given));
                let entry = self.fold.catalog.get(namespace);
                let is_retired =
                    entry.is_some_and(|entry| retired(entry).any(|of| of == (given, as_of)));
                assert!(
                    is_dying || is_retired,
                    "orders: {given:?} of {namespace} is to be deleted, of {dying:?} and {entry:?}"
                );
            }
        }
    }

    /// Asserts the invariants of the state.
    ///
    /// # Panics
    /// If one does not hold; the message begins with its name.
    pub(super) fn check(&self) {
        self.check_served();
        self.check_commands();
        let torn = (self.log.is_torn, &self.failure);
        assert!(!matches!(torn, (true, None)), "torn: and nothing is said");
        let last_id = self.fold.last_id;
        for (id, settling) in &self.settling {
            assert!(
                self.phase > Phase::Replaying && *id <= last_id,
                "settling: {settling:?} of {id}, of {last_id}, while {:?}",
                self.phase
            );
        }
    }

    fn check_served(&self) {
        if self.phase > Phase::Replaying {
            let same = *self.snapshot == self.fold.catalog;
            assert!(same, "served: {:?}, not {:?}", self.snapshot, self.fold);
        } else {
            let snapshot = &self.snapshot;
            assert!(snapshot.is_empty(), "served: {snapshot:?} too early");
        }
        let (log, phase) = (&self.log, self.phase);
        assert!(
            !log.is_opening || phase == Phase::Opening && !log.is_read,
            "under_way: {log:?} while {phase:?}"
        );
        let opened = self.phase > Phase::Opening;
        assert!(opened || !self.log.is_read, "served: read before opened");
        let last_id = self.fold.last_id;
        let ids = self.fold.catalog.iter().map(|entry| entry.namespace.id);
        for id in ids.chain(self.fold.dying.keys().copied()) {
            assert!(id <= last_id, "numbers: {id} is above the last, {last_id}");
        }
        for id in self.fold.dying.keys() {
            let entry = self.fold.catalog.get(*id);
            assert!(entry.is_none(), "numbers: {entry:?} is deleted and there");
        }
        let (names, count) = (self.snapshot.iter().len(), self.snapshot.len());
        assert_eq!(names, count, "names: and namespaces");
        for log in self.emptied.logs() {
            let entry = self.snapshot.get(log.namespace);
            let earlier = entry.and_then(|entry| entry.earlier_of(log));
            let is_kept = earlier.is_some_and(EarlierMap::is_kept);
            assert!(is_kept, "emptied: {log}, of {entry:?}");
        }
        for entry in self.snapshot.iter() {
            let logs = entry.maps().flat_map(|map| map.logs(Lane::Normal));
            assert!(
                logs.is_sorted_by(|one, other| one.index < other.index),
                "indexes: of {entry:?}"
            );
            let mut lossy = entry.losses.keys();
            let is_own = |log: &LogId| {
                entry
                    .maps_in(log.lane)
                    .any(|map| map.logs(log.lane).any(|of| of == *log))
            };
            assert!(lossy.all(is_own), "losses: of {entry:?}");
            let namespace = &entry.namespace;
            let found = self.snapshot.by_name(&namespace.name);
            assert!(
                found.is_some_and(|found| found.namespace.id == namespace.id)
                    && entry.map.namespace == namespace.id
                    && entry.map.epoch == namespace.epoch,
                "names: {entry:?}, found as {found:?}"
            );
        }
    }

    fn check_commands(&self) {
        let (waiting, most) = (self.queue.len(), self.config.commands_max);
        assert!(waiting <= most, "line: {waiting} commands wait, of {most}");
        assert!(
            waiting == 0 || self.current.is_some(),
            "line: {waiting} commands wait for none"
        );
        let phase = self.phase;
        let clients = self.unanswered().len();
        assert!(
            clients == 0 || phase == Phase::Ready,
            "ready: {clients} commands of clients while {phase:?}"
        );
        assert!(
            phase < Phase::Ready || self.has_begun(),
            "ready: without a namespace that was ever made"
        );
        if let Some(current) = &self.current {
            assert!(
                phase > Phase::Replaying,
                "ready: {current:?} while {phase:?}"
            );
            let provisioned = current.provisioned.as_ref();
            let is_early =
                provisioned.is_some_and(Provisioned::is_under_way) && current.at.is_some();
            assert!(!is_early, "line: {current:?} is written too early");
            let (next, met) = (self.log.next, &current.met);
            let mut ends = met.iter().map(|met| met.extent.next());
            assert!(
                met.is_sorted_by(|one, other| one.extent.last < other.extent.first)
                    && ends.all(|end| end <= next),
                "met: {current:?}, up to {next}"
            );
            let was_read = current.at.is_some_and(|at| at < next);
            assert!(
                !was_read || current.became().is_some(),
                "met: {current:?} was read before {next}, and is not noted"
            );
        }
    }

    /// The commands of clients that have been taken and not answered.
    fn unanswered(&self) -> Vec<CommandId> {
        let current = self.current.iter().filter_map(|current| current.id);
        current
            .chain(self.queue.iter().map(|(id, _)| *id))
            .collect()
    }
}

/// Number of logs of a namespace that are to be open.
fn opened(entry: &Entry) -> usize {
    let earlier = entry.earlier.iter().filter(|earlier| earlier.is_kept());
    let earlier = earlier.flat_map(EarlierMap::all_logs);
    entry.all_logs().chain(earlier).count()
}

/// Logs of a namespace that are retired and may still be there, with the commands that said so.
fn retired(entry: &Entry) -> impl Iterator<Item = (DyingLogs, Sequence)> + '_ {
    entry
        .earlier
        .iter()
        .filter_map(|earlier| match earlier.state {
            EarlierState::Retired {
                as_of,
                is_purged: false,
                ..
            } => Some((DyingLogs::of(earlier), as_of)),
            _ => None,
        })
}

/// Settings with which a log of a namespace is to be opened, and the map for which it is to be sealed.
fn wanted(entry: &Entry, log: LogId) -> Option<(LogSpec, Option<MapEpoch>)> {
    if entry.all_logs().any(|of| of == log) {
        return Some((entry.spec_of(log), None));
    }
    let earlier = entry.earlier_of(log).filter(|earlier| earlier.is_kept())?;
    let maps: Vec<MapEpoch> = entry.maps().map(|map| map.epoch).collect();
    let mut later = maps.iter().filter(|epoch| **epoch > earlier.map.epoch);
    Some((entry.earlier_spec(earlier), later.next().copied()))
}
