//! Healing: no more faults, and every subscriber must end with everything.

use super::client::Client;
use super::cluster::Roles;
use super::{Plan, Space, World};
use crate::census::Kind;
use crate::invariants::{Checked, Violation};
use airmail_model::{Lane, LogId, Mono};
use std::collections::BTreeSet;
use std::time::Duration;

/// Turns in all, however well it goes.
const TURNS_MAX: u32 = 500_000;
/// Turns in which nobody is told anything and nothing is read.
const QUIET_TURNS_MAX: u32 = 2_000;
/// And for how long that lasts at least before it counts as the end: a client that was refused often
/// waits by itself for up to the cap of its backoff (5 s, and what the refusal asks for), while a node
/// with short timers turns a thousand times in a second.
const QUIET_TIME: Duration = Duration::from_secs(10);
/// Longest time until everything is acknowledged or refused, where there are several shards. Reading everything
/// takes as long as the credit of the slowest reader makes it.
const HEALING_TIME: Duration = Duration::from_secs(10);
/// Name of the part of healing in which everything is acknowledged or refused.
const SETTLED: &str = "settled";
/// Name of the part in which everybody finds its place in a tree.
const PLACED: &str = "in its place";

impl World {
    /// Ends the faults, starts the process once more, and waits until all is acknowledged, told and
    /// dealt with; then a newcomer reads everything from the beginning.
    pub(super) fn heal(&mut self) -> Checked {
        self.evidence.note(format_args!("healing"));
        let ending = self.weather.clear_up(&mut self.chance);
        if let Some(moves) = &mut self.moves {
            moves.clear_up();
        }
        self.clear_up_cluster();
        if self.goes_on() {
            self.evidence.note(format_args!("the process goes on"));
            self.evidence.count(Kind::HealedRunning);
        } else {
            self.end(ending);
            self.boot()?;
        }
        self.until(SETTLED, |world| {
            world.plans.is_empty()
                && world.spaces.iter().all(Space::is_settled)
                && world
                    .publishers
                    .iter()
                    .all(|one| one.is_idle(&world.evidence.ledger))
        })?;
        self.until_placed(None)?;
        let mut newcomer = Client::new(
            1_000,
            self.plant,
            (
                &self.evidence.ledger.audiences,
                &self.evidence.ledger.filters,
            ),
            &mut self.chance,
        );
        let settled = |world: &mut World| world.is_answered();
        self.until("answered", settled)?;
        self.read_everything(&mut newcomer, |_| true);
        self.clients.push(newcomer);
        let read = |world: &mut World| {
            let clients = &mut world.clients;
            clients.iter_mut().for_each(Client::catch_up);
            clients
                .iter()
                .all(|client| client.has_everything(&world.evidence.ledger, |_| true))
        };
        self.until("read", read)?;
        if self.isolate()? {
            self.until("read by all", read)?;
        }
        for client in &self.clients {
            client.check_all(&self.evidence.ledger)?;
        }
        // What was refused before may have been asked for again: one command at a time.
        self.until("answered", settled)?;
        self.until_provisions_are_gone()?;
        for at in 0..self.spaces.len() {
            let map = &self.spaces[at].map;
            let mut logs = Lane::ALL.into_iter().flat_map(|lane| map.logs(lane));
            let is_harmed = logs.any(|log| self.evidence.ledger.harm_of(log).is_some());
            if !self.spaces[at].leaving && !is_harmed {
                self.listed.clear();
                self.listed_all = false;
                while !self.listed_all {
                    self.list(at);
                    self.until("listed", settled)?;
                }
                self.check_listed(at)?;
            }
        }
        Ok(())
    }

    /// Waits until every node of a tree but one has a place.
    pub(super) fn until_placed(&mut self, but: Option<usize>) -> Checked {
        self.until(PLACED, |world| {
            let tree = world.cluster.roles.as_ref().and_then(Roles::tree);
            tree.is_none_or(|tree| tree.all_have_places(but))
        })
    }

    /// Lets a client subscribe to everything that there is in the wanted logs, from the beginning.
    pub(super) fn read_everything(&self, client: &mut Client, wanted: impl Fn(LogId) -> bool) {
        for (at, space) in self.spaces.iter().enumerate() {
            client.core.set_map(space.present_map());
            if !space.leaving {
                client.read_all(at, space, &self.evidence.ledger, &wanted);
            }
        }
    }

    /// Ends the faults between the shards, and stalls.
    fn clear_up_cluster(&mut self) {
        self.cluster
            .clear_up(self.weather.now.mono, &mut self.evidence);
        for shard in &mut self.shards {
            shard.stalled_until = Mono(0);
        }
        self.cluster.heal_nodes();
    }

    /// Draws whether the process heals without another start: several shards, whose links alone have failed. Nodes that
    /// append to the same logs always do.
    fn goes_on(&mut self) -> bool {
        if self.cluster.writers.is_some() {
            return self.is_running();
        }
        self.shards.len() > 1
            && self.is_running()
            && !self.has_failed()
            && self.restore.publishers_wait.is_none()
            && self.chance.coin()
    }

    /// Grows as long as the node has not stopped: a listing may read for long before it answers.
    fn moved(&self) -> u64 {
        let disks = self.weather.machine.disks();
        self.heard + disks.map(|disk| disk.reads()).sum::<u64>()
    }

    pub(super) fn until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut World) -> bool,
    ) -> Checked {
        let (mut quiet, mut moved) = (0, self.moved());
        let mut since = self.weather.now.mono;
        let begun = since;
        for _ in 0..TURNS_MAX {
            self.start_nodes()?;
            self.administer();
            self.connect();
            self.exchange()?;
            if done(self) {
                return Ok(());
            }
            let before = std::mem::replace(&mut moved, self.moved());
            quiet = if before == moved { quiet + 1 } else { 0 };
            if quiet == 0 {
                since = self.weather.now.mono;
            }
            if quiet > QUIET_TURNS_MAX && self.weather.now.mono.since(since) > QUIET_TIME {
                break;
            }
            let is_bounded = self.shards.len() > 1 && (what == SETTLED || what == PLACED);
            if is_bounded && self.weather.now.mono.since(begun) > HEALING_TIME {
                break;
            }
            let soon = Duration::from_millis(20);
            let awake = self.shards.iter().filter(|shard| shard.is_awake);
            let wake = awake.filter_map(|shard| shard.wake);
            let wake = wake.chain(self.cluster.wake_of_nodes()).min();
            let wait = wake.map_or(soon, |wake| wake.since(self.weather.now.mono));
            self.weather
                .later(wait.clamp(Duration::from_micros(100), soon));
        }
        let plans: Vec<&str> = self
            .plans
            .iter()
            .map(|Plan { name, .. }| name.as_str())
            .collect();
        let behind = self
            .clients
            .iter()
            .flat_map(|client| client.behind(&self.evidence.ledger));
        let standing: Vec<_> = behind.take(10).collect();
        let busy: Vec<_> = self
            .publishers
            .iter()
            .filter(|one| !one.is_idle(&self.evidence.ledger))
            .collect();
        let logs: BTreeSet<LogId> = busy
            .iter()
            .flat_map(|one| one.waits_for(&self.evidence.ledger))
            .collect();
        let detail = format!(
            "without faults not everything is {what}; namespaces {plans:?}, waits for {logs:?}, publishers {busy:?}, \
             subscriptions {standing:?}"
        );
        Err(Violation::new("liveness", detail))
    }
}
