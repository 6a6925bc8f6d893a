//! A shard's storage whose logs are those of several towers, which come and go.

use crate::cluster::tower_desk::{TowerDesk, WireTower};
use airmail_link::{FromHost, ToHost, TowerLimits, TowerName, TowersStorage};
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble};
use airmail_model::{Mono, Now};
use airmail_wire::WirePort;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks for towers that are used no more.
const LOOK: Duration = Duration::from_secs(1);

/// [`TowersStorage`], with the towers that its desk tells of.
pub(super) struct OfTowers {
    towers: TowersStorage<WirePort<ToHost, FromHost>>,
    desk: Arc<TowerDesk>,
    look_at: Mono,
}

impl fmt::Debug for OfTowers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.towers.fmt(f)
    }
}

impl OfTowers {
    /// A storage with one tower.
    pub(super) fn new(
        (capabilities, limits): (Capabilities, TowerLimits),
        (name, tower): (TowerName, WireTower),
        desk: Arc<TowerDesk>,
    ) -> OfTowers {
        OfTowers {
            towers: TowersStorage::new(capabilities, limits, name, tower),
            desk,
            look_at: Mono(0),
        }
    }
}

impl LogStorage for OfTowers {
    fn capabilities(&self) -> Capabilities {
        self.towers.capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.towers.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let news = self.desk.take();
        for (name, tower) in news.added {
            self.towers.add_tower(name, tower);
        }
        if let Some(live) = news.live {
            self.towers.set_live(&live);
        }
        let deadline = self.towers.poll(now, out);
        if now.mono >= self.look_at {
            self.look_at = now.mono.plus(LOOK);
            self.desk.leave(&self.towers.take_unused());
        }
        deadline
    }

    fn opened(&mut self) {
        self.towers.opened();
    }

    fn close(&mut self, now: Now) {
        self.towers.close(now);
    }

    fn is_closed(&self) -> bool {
        self.towers.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.towers.trouble()
    }

    fn damage(&self) -> u64 {
        self.towers.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.towers.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.towers.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.towers.accept_clock(now);
    }
}
