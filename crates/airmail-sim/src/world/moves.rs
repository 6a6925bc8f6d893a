//! Moves: the namespaces of some runs are moved to and fro between two storages of the node, under all that happens else.
//!
//! Each journal of such a run stands beside a further one, on a disk of its own. A move is drawn like a fault and ordered
//! like every other command, again and again until it is in force; the process is killed more often while one is under
//! way. Clients hear of a new map at once, or when their next stream is open, or by a refusal. Earlier maps are retired
//! within a moment of retention having emptied them.
//!
//! Files are not set back in these runs: a log 0 without the last move has other logs for what is acknowledged.

use super::{Space, World};
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::weather::Ending;
use airmail_broker::{Catalog, Command, CommandId, ShardConfig};
use airmail_log::StorageTraits;
use airmail_model::{Lane, LogId, LogMap, StorageName, random};
use std::collections::BTreeMap;
use std::time::Duration;

/// One run of so many has moves.
const RUNS: u64 = 4;
/// Draws which; no other draw is shifted.
const DRAW: u64 = 0x006d_6f76_6573;
/// The runs whose draw is this. It leaves out every seed that `tests/seeds.rs` keeps for something else than moves.
const DRAWN: u64 = 1;
/// Highest rate of moves for each step, in parts of a million.
const MOVES_MAX: u64 = 6_000;
/// Highest rate of ends of the process while a move is under way, in parts of a million.
const ENDS_MAX: u64 = 40_000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Moves {
    chance: Entropy,
    /// A namespace is to be moved. For each step, in parts of a million.
    rate: u32,
    /// The process ends while a move is under way. For each step, in parts of a million.
    ends: u32,
    /// Time for which logs are empty before they are retired.
    retire_after: Duration,
    /// Traits of the further storage.
    pub(super) traits: Option<StorageTraits>,
    /// Moves that were ordered and are not answered, with the map that each leaves.
    ordered: BTreeMap<CommandId, LogMap>,
}

/// Moves of a namespace.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    /// The map that is known to be in force.
    pub(super) map: LogMap,
    /// The storage that it is to be moved to.
    pub(super) wanted: Option<StorageName>,
    /// Number of earlier maps that are known to be retired.
    retired: usize,
}

impl Moves {
    /// Whether the run of a seed has moves.
    pub(super) const fn are_of(seed: u64) -> bool {
        random::nth(seed ^ DRAW, 0) % RUNS == DRAWN
    }

    /// The moves of a seed.
    pub(super) fn of(seed: u64) -> Moves {
        let mut chance = Entropy::new(seed ^ DRAW);
        let mut rate = |high| u32::try_from(chance.between(high / 20, high)).unwrap_or(0);
        let (rate, ends) = (rate(MOVES_MAX), rate(ENDS_MAX));
        Moves {
            rate,
            ends: if chance.coin() { ends } else { 0 },
            retire_after: Duration::from_millis(chance.between(1, 300)),
            traits: None,
            ordered: BTreeMap::new(),
            chance,
        }
    }

    /// The storage beside the first.
    pub(super) fn far() -> StorageName {
        StorageName::new("far").unwrap_or(StorageName::FIRST)
    }

    /// Tells a node of the further storage.
    pub(super) fn set(&self, config: &mut ShardConfig) {
        config.retire_after = self.retire_after;
        let far = self.traits.map(|traits| (Moves::far(), traits));
        config.storages.extend(far);
    }

    /// Chance of the journals on the further disks.
    pub(super) const fn fork(&mut self) -> Entropy {
        self.chance.fork()
    }

    /// No more of them, and nothing ends for their sake.
    pub(super) fn clear_up(&mut self) {
        (self.rate, self.ends) = (0, 0);
    }

    /// A command is answered, and with it a move, if it was one.
    pub(super) fn answered(&mut self, id: CommandId) {
        self.ordered.remove(&id);
    }
}

impl Moved {
    pub(super) fn new(map: LogMap) -> Moved {
        Moved {
            map,
            wanted: None,
            retired: 0,
        }
    }
}

impl Space {
    /// Number of moves that are known to be in force.
    pub(super) fn moves(&self) -> u16 {
        let now = self.present_map().epoch.0;
        let moves = now.saturating_sub(self.map.epoch.0);
        u16::try_from(moves).unwrap_or(u16::MAX)
    }

    /// Whether no move of it is wanted that may still come.
    pub(super) fn is_settled(&self) -> bool {
        let wanted = self.moved.as_ref().and_then(|of| of.wanted);
        wanted.is_none() || self.leaving
    }

    /// The map in force, as far as is known.
    pub(super) fn present_map(&self) -> &LogMap {
        self.moved.as_ref().map_or(&self.map, |of| &of.map)
    }
}

impl World {
    /// Draws a namespace that is to be moved, and the end of the process while one is.
    pub(super) fn draw_moves(&mut self) {
        let Some(moves) = &mut self.moves else {
            return;
        };
        if moves.chance.chance(moves.rate) && !self.spaces.is_empty() {
            let at = moves.chance.index(self.spaces.len());
            let there = self.catalogs();
            let space = &mut self.spaces[at];
            let entry = there.iter().find_map(|of| of.by_name(&space.name));
            if let (Some(moved), Some(entry)) = (&mut space.moved, entry) {
                let is_first = entry.namespace.spec.storage.is_first();
                let to = if is_first {
                    Moves::far()
                } else {
                    StorageName::FIRST
                };
                moved.wanted.get_or_insert(to);
            }
        }
        let Some(moves) = &mut self.moves else {
            return;
        };
        if !moves.ordered.is_empty() && moves.chance.chance(moves.ends) {
            let keeps_power = self.weather.keeps_power();
            let is_cut = moves.chance.coin() && !keeps_power;
            self.end(if is_cut {
                Ending::PowerCut
            } else {
                Ending::Killed
            });
        }
    }

    /// Asks for the next move that is wanted, if one is.
    pub(super) fn order_move(&mut self, shard: usize, catalog: &Catalog) -> bool {
        for at in 0..self.spaces.len() {
            let space = &mut self.spaces[at];
            let (name, is_leaving) = (space.name.clone(), space.leaving);
            let Some((moved, to)) = space.moved.as_mut().and_then(|of| {
                let to = of.wanted?;
                Some((of, to))
            }) else {
                continue;
            };
            let entry = catalog.by_name(&name).filter(|_| !is_leaving);
            let Some(entry) = entry else {
                moved.wanted = None;
                continue;
            };
            if entry.namespace.spec.storage == to {
                // In force here; the others hear of it.
                moved.wanted = None;
                continue;
            }
            let version = entry.namespace.version;
            let left = entry.map.clone();
            let based_on = self.chance.coin().then_some(version);
            self.command(
                shard,
                Command::MoveNamespace {
                    name,
                    storage: to,
                    based_on,
                },
            );
            if let Some(moves) = &mut self.moves {
                moves.ordered.insert(CommandId(self.last_command), left);
            }
            return true;
        }
        false
    }

    /// Takes note of maps that are in force somewhere: some clients hear of them at once.
    pub(super) fn hear_of_maps(&mut self) {
        if self.moves.is_none() {
            return;
        }
        let catalogs = self.catalogs();
        for at in 0..self.spaces.len() {
            let id = self.spaces[at].id;
            for entry in catalogs.iter().filter_map(|catalog| catalog.get(id)) {
                let gone = entry.earlier.iter().filter(|earlier| !earlier.is_kept());
                let gone = gone.count();
                let Some(moved) = &mut self.spaces[at].moved else {
                    continue;
                };
                if gone > moved.retired {
                    moved.retired = gone;
                    self.evidence.count(Kind::MapRetired);
                }
                if entry.map.epoch > moved.map.epoch {
                    moved.map = entry.map.clone();
                    self.map_changed(at);
                }
            }
        }
    }

    /// A namespace has another map.
    fn map_changed(&mut self, at: usize) {
        let ledger = &self.evidence.ledger;
        let mut waits = self.publishers.iter().flat_map(|one| one.waits_for(ledger));
        let is_loaded = waits.any(|line| line.namespace == self.spaces[at].id);
        self.evidence.count(Kind::NamespaceMoved);
        self.evidence
            .add(Kind::MovedUnderLoad, u64::from(is_loaded));
        let map = self.spaces[at].present_map().clone();
        self.evidence.note(format_args!("moved: {map:?}"));
        let Some(moves) = &mut self.moves else {
            return;
        };
        for publisher in &mut self.publishers {
            if moves.chance.coin() {
                publisher.core.set_map(map.clone());
            }
        }
        for client in &mut self.clients {
            if moves.chance.coin() {
                client.core.set_map(&map);
            }
        }
    }

    /// The process ends: moves that were under way are cut, before or after the old logs were sealed.
    pub(super) fn cut_moves(&mut self) {
        let Some(moves) = &mut self.moves else {
            return;
        };
        for left in std::mem::take(&mut moves.ordered).into_values() {
            let is_sealed = self.cluster.are_sealed(left.logs(Lane::Normal));
            self.evidence.count(if is_sealed {
                Kind::MoveCutSealed
            } else {
                Kind::MoveCutUnsealed
            });
        }
    }

    /// Whether a shard has one of a line's logs.
    pub(super) fn has_log_of(&self, line: LogId, shard: usize) -> bool {
        is_needed((&self.spaces, &self.evidence.ledger.lines), line, |log| {
            self.cluster.is_home(log, shard)
        })
    }
}

/// Whether one of a line's logs is such a one.
pub(super) fn is_needed(
    (spaces, lines): (&[Space], &crate::lines::Lines),
    line: LogId,
    is_there: impl Fn(LogId) -> bool,
) -> bool {
    let of = spaces.iter().find(|space| space.id == line.namespace);
    let moves = of.map_or(0, Space::moves);
    lines.logs(line, moves).any(is_there)
}
