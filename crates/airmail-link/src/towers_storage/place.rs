//! The place of a log: at which of its towers it is used, and at which it could be.

use crate::tower_ranks::TowerName;
use airmail_log::Call;
use airmail_model::{Incarnation, Mono};
use std::collections::BTreeSet;
use std::time::Duration;

/// Calls that wait while a log moves from one tower to another that is no worse.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) to: TowerName,
    pub(super) calls: Vec<Call>,
    pub(super) bytes: u64,
}

/// Place of a log. See the module's documentation.
#[derive(Debug)]
pub(super) struct LogPlace {
    /// The tower that everything is asked of.
    pub(super) active: TowerName,
    /// Towers at which it was opened, or is to be.
    pub(super) attached: BTreeSet<TowerName>,
    /// Towers at which it can be used.
    pub(super) usable: BTreeSet<TowerName>,
    /// Its owner has opened it.
    pub(super) is_known: bool,
    /// Its owner was told that it is lost.
    pub(super) is_lost: bool,
    /// The life of it that its owner knows.
    pub(super) incarnation: Option<Incarnation>,
    /// Number of its readers.
    pub(super) readers: usize,
    /// Number of the owner's calls that have no answer, but for appends.
    pub(super) calls: usize,
    /// The tower that it has left last, and when.
    pub(super) left: Option<(TowerName, Mono)>,
    pub(super) moving: Option<Move>,
}

impl LogPlace {
    /// A log that is used at a tower, and is not open yet.
    pub(super) fn new(active: TowerName) -> LogPlace {
        LogPlace {
            attached: BTreeSet::from([active.clone()]),
            active,
            usable: BTreeSet::new(),
            is_known: false,
            is_lost: false,
            incarnation: None,
            readers: 0,
            calls: 0,
            left: None,
            moving: None,
        }
    }

    /// Whether it may go to a tower by choice: not back to the one that it has just left.
    pub(super) fn may_go_to(&self, tower: &TowerName, now: Mono, rest: Duration) -> bool {
        let left = self.left.as_ref();
        left.is_none_or(|(left, at)| left != tower || at.plus(rest) <= now)
    }

    /// Towers that could take it over.
    pub(super) fn standbys(&self) -> impl Iterator<Item = &TowerName> {
        self.usable.iter().filter(|tower| **tower != self.active)
    }
}
