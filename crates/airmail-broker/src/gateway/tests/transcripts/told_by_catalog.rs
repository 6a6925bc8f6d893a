//! Lines of what the catalog tells: which namespaces there are, after moves and losses.

use super::super::super::GatewayInput;
use crate::catalog::{Catalog, CommandRefusal, EarlierMap, EarlierState, Entry, LogCut};
use crate::input::CommandId;
use crate::transcript::{LOG, NAMESPACE, number, read_extent};
use airmail_log::LogLoss;
use airmail_model::{
    Durability, Incarnation, LogIndex, MapEpoch, Namespace, NamespaceSpec, Provisions, Retention,
    Sequence, StorageName,
};
use airmail_testkit::transcript::parts;
use std::sync::Arc;

/// The namespace, before it is moved.
fn namespace() -> Namespace {
    Namespace {
        id: NAMESPACE,
        name: "default".to_owned(),
        spec: NamespaceSpec {
            logs: 1,
            retention: Retention::default(),
            durability: Durability::FSYNC,
            storage: StorageName::FIRST,
        },
        version: 1,
        epoch: MapEpoch(1),
        first_log: LogIndex(0),
        earlier: Vec::new(),
    }
}

/// State of a map of which nothing is left, as of a command, or which is lost.
fn retired(end: &str, as_of: u64, is_lost: bool) -> Option<EarlierState> {
    Some(EarlierState::Retired {
        ends: [number(end)?].into(),
        as_of: Sequence(as_of),
        is_purged: false,
        is_lost,
    })
}

/// The namespace after a move: its log is the next one, and the one before is kept, or is retired.
fn read_moved(line: &str) -> Option<Entry> {
    let state = if line == "namespace 1 is moved" {
        EarlierState::Kept
    } else if let Some([end]) = parts("namespace 1 is made anew, and was lost up to {}", line) {
        retired(end, 2, true)?
    } else {
        let [end] = parts(
            "of namespace 1, nothing is left before the move, which was at {}",
            line,
        )?;
        retired(end, 3, false)?
    };
    let before = Entry::new(namespace(), Provisions::NONE, Sequence(1));
    let earlier = EarlierMap {
        state,
        ..before.to_earlier()
    };
    Some(after_moves(1).with_earlier(vec![earlier]))
}

/// The namespace after so many moves, without the maps before.
fn after_moves(moves: u16) -> Entry {
    let moved = Namespace {
        version: u64::from(1 + moves),
        epoch: MapEpoch(1 + u32::from(moves)),
        first_log: LogIndex(moves),
        ..namespace()
    };
    Entry::new(moved, Provisions::NONE, Sequence(1 + u64::from(moves)))
}

/// The namespace after two moves: its log is the third one, the first is kept, and so is the second, or is retired.
fn read_moved_twice(line: &str) -> Option<Entry> {
    let state = if line == "namespace 1 is moved again" {
        EarlierState::Kept
    } else {
        let [end] = parts(
            "of namespace 1, nothing is left between the moves, of which the second was at {}",
            line,
        )?;
        retired(end, 4, false)?
    };
    let second = EarlierMap {
        state,
        ..after_moves(1).to_earlier()
    };
    Some(after_moves(2).with_earlier(vec![after_moves(0).to_earlier(), second]))
}

/// The namespace with a log that has stopped, or has gone on in life 8 where it was cut.
fn read_losses(line: &str) -> Option<Entry> {
    let mut entry = Entry::new(namespace(), Provisions::NONE, Sequence(1));
    let losses = entry.losses.entry(LOG).or_default();
    let loss = |lost: &str| {
        let lost = read_extent(lost)?;
        Some(LogLoss {
            life: Incarnation(7),
            next_life: Incarnation(8),
            at: Some(lost.first),
            end: lost.next(),
        })
    };
    if let Some([lost]) = parts("the log has stopped, and has lost {}", line) {
        losses.suspended = Some(loss(lost)?);
        return Some(entry);
    }
    let [lost] = parts("the loss of {} is accepted", line)?;
    let LogLoss {
        life,
        next_life,
        end,
        ..
    } = loss(lost)?;
    let at = read_extent(lost)?.first;
    losses.cuts.push(LogCut {
        life,
        next_life,
        at,
        end,
    });
    Some(entry)
}

/// Reads what the catalog tells.
pub(super) fn read_catalog(line: &str) -> Option<GatewayInput> {
    if let Some([id]) = parts("too many wait for client {}", line) {
        return Some(GatewayInput::Answered {
            id: CommandId(id.parse().ok()?),
            result: Err(CommandRefusal::QueueFull { commands_max: 2 }),
        });
    }
    let mut catalog = Catalog::default();
    if let Some(entry) = read_moved(line).or_else(|| read_moved_twice(line)) {
        catalog.put(entry);
    } else if let Some(entry) = read_losses(line) {
        catalog.put(entry);
    } else if line == "there is namespace 1" {
        catalog.put(Entry::new(namespace(), Provisions::NONE, Sequence(1)));
    } else if !["there is no namespace", "nothing is known yet"].contains(&line) {
        return None;
    }
    Some(GatewayInput::Namespaces {
        catalog: Arc::new(catalog),
        is_ready: line != "nothing is known yet",
    })
}
