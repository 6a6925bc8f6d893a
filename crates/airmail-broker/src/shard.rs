//! The shard: everything a node does, as one state machine that joins three.
//!
//! The clients' side is the gateway (`gateway.rs`), the logs' side is the tower (`tower.rs`), and which
//! namespaces there are is known by the [`catalog`](crate::catalog). The shard hands each what is for it, and
//! passes on what they tell one another (`link.rs`) until all are silent, within the same step. It decides
//! nothing itself, but that a request which names a namespace that is not known waits until log 0 is folded to its
//! present end (`looking.rs`).

mod looking;
#[cfg(test)]
mod tests;

use crate::access::{Admission, Authorizer};
use crate::catalog::{
    Catalog, CatalogConfig, CatalogCore, CatalogEffect, CatalogEffects, CatalogInput, Progress,
};
use crate::config::ShardConfig;
use crate::gateway::{Gateway, GatewayEffects, GatewayInput};
use crate::input::{Effects, Input};
use crate::stats::Stats;
use crate::storage_requirements::{self, UnfitStorage};
use crate::tower::{Tower, TowerEffects, TowerInput};
use airmail_flow::Reading;
use airmail_log::{Capabilities, StorageTraits};
use airmail_model::bug;
use airmail_model::{Error, Incarnation, LogId, Now};
use looking::Looking;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Sessions, subscriptions and members for each step between two looks at the invariants.
const SIZE_EACH_STEP: usize = 128;

/// Gateway, tower and catalog. See the module's documentation.
pub struct Shard {
    catalog: CatalogCore,
    gateway: Gateway,
    tower: Tower,
    from_gateway: GatewayEffects,
    from_tower: TowerEffects,
    looking: Looking,
    #[cfg(feature = "sabotage")]
    bug: Option<crate::sabotage::Bug>,
    /// Steps to come before the invariants are looked at again.
    unchecked_steps: usize,
}

/// Readings of the two gates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// The publish gate's: published messages that the storage has not answered.
    pub publishes: Option<Reading>,
    /// The delivery gate's: bytes of deliveries that connections have not taken.
    pub deliveries: Option<Reading>,
}

impl Flow {
    /// Those that are on: what each is called, what it counts, how it stands.
    pub fn gates(&self) -> impl Iterator<Item = (&'static str, &'static str, &Reading)> {
        let both = [
            ("publish", "messages", &self.publishes),
            ("delivery", "bytes", &self.deliveries),
        ];
        both.into_iter()
            .filter_map(|(name, unit, reading)| Some((name, unit, reading.as_ref()?)))
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("ready", &self.ready())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// A shard that has not begun: [`Shard::start`] is to be called once.
    ///
    /// # Errors
    /// [`UnfitStorage`]: the storage has a capability that a shard cannot honour.
    pub fn new(
        config: ShardConfig,
        capabilities: Capabilities,
        authorizer: Box<dyn Authorizer>,
        admission: Box<dyn Admission>,
    ) -> Result<Shard, UnfitStorage> {
        storage_requirements::check(&capabilities)?;
        #[cfg(feature = "sabotage")]
        let bug = config.bug;
        Ok(Shard {
            catalog: CatalogCore::new(CatalogConfig {
                first: StorageTraits::of(&capabilities),
                storages: config.storages.clone(),
                provisions: capabilities.provisions,
                default_namespace: config.default_namespace,
                read_window_bytes: config.tail_window_bytes,
                commands_max: config.commands,
                #[cfg(feature = "sabotage")]
                bug: config.bug,
            }),
            gateway: Gateway::new(config.clone(), &capabilities, authorizer, admission),
            tower: Tower::new(config, capabilities),
            from_gateway: GatewayEffects::default(),
            from_tower: TowerEffects::default(),
            looking: Looking::default(),
            #[cfg(feature = "sabotage")]
            bug,
            unchecked_steps: 0,
        })
    }

    /// Begins to open the logs.
    pub fn start(&mut self, now: Now, out: &mut Effects) {
        self.step_catalog(now, CatalogInput::Start);
        self.pass_messages(now);
        self.give_effects(out);
        out.deadline = self.tower.deadline();
    }

    /// Takes what has happened, and adds what it wants done. Total: every input is legal at every
    /// time; one that refers to what is not there any more changes nothing.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Effects) {
        self.apply(now, input);
        self.finish_step(now, out);
    }

    /// Applies one input. [`Shard::finish_step`] is to be called once after a group of inputs, and gives what
    /// comes of them.
    pub(crate) fn apply(&mut self, now: Now, input: Input) {
        match input {
            Input::Client(input) => {
                if let Some(input) = self.hold_unknown(now, input) {
                    self.step_gateway(now, GatewayInput::Client(input));
                }
            }
            Input::Storage(completion) => {
                self.step_tower(now, TowerInput::Storage(completion));
            }
            Input::Timer => {
                self.step_tower(now, TowerInput::Timer);
                self.step_gateway(now, GatewayInput::Timer);
                self.stop_looking(now);
            }
        }
        self.pass_messages(now);
    }

    /// Ends a step, or several.
    pub(crate) fn finish_step(&mut self, now: Now, out: &mut Effects) {
        self.gateway.finish_step(now, &mut self.from_gateway);
        self.pass_messages(now);
        // The tower refuses at once what is for a log that it has lost, and so makes room for others.
        while self.gateway.lets_in() {
            self.gateway.finish_step(now, &mut self.from_gateway);
            self.pass_messages(now);
        }
        self.tower.finish_step(now, &mut self.from_tower);
        self.pass_messages(now);
        self.give_effects(out);
        let (gateway, tower) = (self.gateway.deadline(), self.tower.deadline());
        let deadlines = [gateway, tower, self.looking.deadline()];
        out.deadline = deadlines.into_iter().flatten().min();
        if bug::is_checking() {
            self.check();
        }
    }

    /// Gives the caller what both sides want done outside.
    fn give_effects(&mut self, out: &mut Effects) {
        give(&mut self.from_gateway.replies, &mut out.replies);
        give(&mut self.from_gateway.outcomes, &mut out.outcomes);
        give(&mut self.from_gateway.watch, &mut out.watch);
        give(&mut self.from_tower.storage, &mut out.storage);
    }

    /// Passes on what the three tell one another, until all are silent.
    fn pass_messages(&mut self, now: Now) {
        loop {
            if let Some(message) = self.from_gateway.to_tower.pop_front() {
                self.step_tower(now, TowerInput::FromGateway(message));
            } else if let Some(message) = self.from_tower.to_gateway.pop_front() {
                self.step_gateway(now, GatewayInput::FromTower(message));
            } else if let Some(input) = self.from_tower.to_catalog.pop_front() {
                self.step_catalog(now, input);
            } else if let Some((id, command)) = self.from_gateway.commands.pop_front() {
                self.step_catalog(now, CatalogInput::Command { id, command });
            } else if let Some(end) = self.from_tower.system_end.take() {
                self.system_end(now, end);
                self.go_on_looking(now);
            } else {
                return;
            }
        }
    }

    fn step_gateway(&mut self, now: Now, input: GatewayInput) {
        self.gateway.apply(now, input, &mut self.from_gateway);
    }

    fn step_tower(&mut self, now: Now, input: TowerInput) {
        self.tower.apply(now, input, &mut self.from_tower);
    }

    /// Hands the catalog what has happened, and each of what it wants done to the side that does it.
    fn step_catalog(&mut self, now: Now, input: CatalogInput) {
        let mut effects = CatalogEffects::default();
        self.catalog.step(now, input, &mut effects);
        self.tell_namespaces(now, true);
        for effect in effects.in_order {
            let input = match effect {
                CatalogEffect::Open(spec) => TowerInput::OpenSystem(spec),
                CatalogEffect::Read { from, credit_bytes } => {
                    TowerInput::ReadSystem { from, credit_bytes }
                }
                CatalogEffect::Credit { r, bytes } => TowerInput::CreditSystem { r, bytes },
                CatalogEffect::Provision { log, logs, spec } => {
                    TowerInput::Provision { log, logs, spec }
                }
                CatalogEffect::Withdraw { log, logs, origin } => {
                    TowerInput::Withdraw { log, logs, origin }
                }
                CatalogEffect::Keep(kept) => TowerInput::Keep(kept),
                CatalogEffect::Append { of, batch } => TowerInput::AppendSystem { of, batch },
                CatalogEffect::Order(order) => TowerInput::Order(order),
                CatalogEffect::RetryLater => TowerInput::RetrySystem,
                CatalogEffect::Answer { id, result } => {
                    // Who is answered may rely on what was told before.
                    self.pass_to_gateway(now);
                    self.step_gateway(now, GatewayInput::Answered { id, result });
                    continue;
                }
                // The gateway has been told.
                CatalogEffect::Changed => continue,
            };
            self.step_tower(now, input);
        }
        self.go_on_looking(now);
    }

    /// Tells the gateway which namespaces there are, if that is sure.
    fn tell_namespaces(&mut self, now: Now, is_sure: bool) {
        let namespaces = GatewayInput::Namespaces {
            catalog: Arc::clone(self.catalog.snapshot()),
            is_ready: is_sure && self.catalog.is_ready(),
        };
        self.step_gateway(now, namespaces);
    }

    /// Passes on what the tower has told the gateway so far.
    fn pass_to_gateway(&mut self, now: Now) {
        while let Some(message) = self.from_tower.to_gateway.pop_front() {
            self.step_gateway(now, GatewayInput::FromTower(message));
        }
    }

    /// Asserts the invariants of both sides, and that after a step they agree about who is a member; the
    /// catalog asserts its own. Where there is much to look at, that
    /// is done after as many steps as make a look cost about what the steps do.
    fn check(&mut self) {
        if let Some(left) = self.unchecked_steps.checked_sub(1) {
            self.unchecked_steps = left;
            return;
        }
        self.gateway.check();
        self.tower.check();
        let members = self.tower.member_count();
        let wanted = self.gateway.members();
        assert_eq!(
            members as u64, wanted,
            "members: the tower's, the gateway's"
        );
        let size = self.gateway.size() + members;
        self.unchecked_steps = size / SIZE_EACH_STEP;
    }

    /// The shard's thread has worked for `time` since this was last said, on whatever; what else
    /// has passed was free, and is given to late subscribers. If never said, all time is free.
    pub fn worked(&mut self, time: Duration) {
        self.tower.worked(time);
    }

    /// Bytes of the batches that the storage's readers have given so far.
    pub(crate) fn given_bytes(&self) -> u64 {
        self.tower.given_bytes()
    }

    /// Whether somebody waits to be read for, or is: then it matters what [`Shard::worked`] says.
    #[must_use]
    pub fn has_subscriptions_behind(&self) -> bool {
        self.tower.has_members()
    }

    /// Distance that the shard has come in log 0. After a namespace command that one shard has done, another knows
    /// the namespace when it has folded as far, and can use its logs when it has settled as far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.catalog.progress()
    }

    /// Whether the namespaces are known and their logs open.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.catalog.is_ready()
    }

    /// Reason for which the shard is not ready, or takes no namespace commands, if it is more than
    /// a matter of time.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.catalog.failure()
    }

    /// The namespaces as they stand.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.catalog.snapshot()
    }

    /// Counters of both sides.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (mut stats, tower) = (self.gateway.stats(), self.tower.stats());
        stats.catch_up_readers_started = tower.readers_started;
        stats.catch_up_sweeps = tower.sweeps;
        stats.catch_up_bytes = tower.read_bytes;
        stats.catch_up_readers = tower.readers;
        stats
    }

    /// Number of logs that have begun a new life because a position lay beyond their end.
    #[must_use]
    pub fn renewed(&self) -> u64 {
        self.gateway.renewed_logs()
    }

    /// Readings of both gates; `None` for one that is off.
    #[must_use]
    pub fn flow(&self) -> Flow {
        Flow {
            publishes: self.gateway.publishes(),
            deliveries: self.gateway.deliveries(),
        }
    }

    /// The life of a log, if it has been opened here.
    #[must_use]
    pub fn incarnation(&self, log: LogId) -> Option<Incarnation> {
        self.tower.incarnation(log)
    }
}

/// Adds one list to another, by exchanging them where that is enough.
pub(crate) fn give<T>(from: &mut Vec<T>, to: &mut Vec<T>) {
    if to.is_empty() {
        std::mem::swap(from, to);
    } else {
        to.append(from);
    }
}
