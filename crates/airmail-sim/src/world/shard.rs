//! One shard of the node: its engine while the process runs, and what it is asked.

use super::World;
use super::cluster::Storage;
use airmail_broker::{CommandId, Engine};
use airmail_model::{Mono, Now, Wall};

/// One shard. All of them are of one process: they start and end together.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) engine: Option<Engine<Storage>>,
    pub(super) wake: Option<Mono>,
    /// It does nothing before.
    pub(super) stalled_until: Mono,
    /// It has a turn in this step.
    pub(super) is_awake: bool,
    /// The command under way.
    pub(super) asked: Option<CommandId>,
    /// The command under way may be refused: it is based on an old version.
    pub(super) refusable: bool,
}

impl Shard {
    pub(super) fn is_ready(&self) -> bool {
        self.engine
            .as_ref()
            .is_some_and(|engine| engine.shard().ready())
    }
}

impl World {
    /// Whether the process runs that has the disks: that of all shards, or of the storage behind the towers. Logs that
    /// many write to are there from the beginning.
    pub(super) fn is_running(&self) -> bool {
        if let Some(writers) = &self.cluster.writers {
            return writers.has_begun();
        }
        match &self.cluster.roles {
            Some(roles) => roles.has_store(),
            None => self.shards.iter().all(|shard| shard.engine.is_some()),
        }
    }

    /// Whether every shard takes streams.
    pub(super) fn is_ready(&self) -> bool {
        self.shards.iter().all(Shard::is_ready)
    }

    /// Whether no command is under way.
    pub(super) fn is_answered(&self) -> bool {
        self.shards.iter().all(|shard| shard.asked.is_none())
    }

    /// Whether a shard takes part now.
    pub(super) fn is_awake(&self, shard: usize) -> bool {
        self.shards[shard].stalled_until <= self.weather.now.mono
    }

    /// Times of both clocks as a shard sees them.
    pub(super) fn shown(&self, shard: usize) -> Now {
        let now = self.weather.now;
        let wall = Wall(now.wall.0.saturating_add(self.cluster.clock(shard)));
        Now { wall, ..now }
    }
}
