//! The shard: everything a node does, as one state machine.
//!
//! The tables are in modules of their own, by side: sessions with their budgets; logs with their
//! rooms, and caravans. What happens is in this module's children, one for each thing that can.
//! One side reaches the other only by keys, so that a border between shards can be put there.
//! Namespaces and log 0 are a state machine within ([`crate::catalog`]), which is handed what
//! concerns it, and whose orders are carried out here.

mod admit;
mod board;
mod command;
mod copilot;
mod late;
mod listing;
mod live;
mod orders;
mod pilot;
mod publish;
mod rollback;
mod subscribe;
mod timer;
mod travel;

use crate::access::{Admission, Authorizer};
use crate::allowance::Allowance;
use crate::calls::{Calls, Owner, Purpose};
use crate::caravan::Caravans;
use crate::catalog::{Catalog, CatalogConfig, CatalogCore, CatalogInput};
use crate::config::ShardConfig;
use crate::fitness::{self, UnfitStorage};
use crate::input::{Effects, Input, SessionId};
use crate::keys::{SessionKey, SubKey};
use crate::late::LateTable;
use crate::log_head::{Logs, Openness};
use crate::session::Sessions;
use crate::stats::Stats;
use crate::subscription::Subscriptions;
use airmail_flow::Reading;
use airmail_log::{Capabilities, Completion};
use airmail_model::frame::{Reply, Request, State};
use airmail_model::{Error, ErrorCode, Incarnation, LogId, Mono, Now, Wall};
use copilot::Copilot;
use listing::Listings;
use pilot::Pilot;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Sessions, logs, rooms, caravans and namespaces. See the module's documentation.
pub struct Shard {
    config: ShardConfig,
    capabilities: Capabilities,
    authorizer: Box<dyn Authorizer>,
    admission: Box<dyn Admission>,
    catalog: CatalogCore,
    sessions: Sessions,
    subs: Subscriptions,
    logs: Logs,
    late: LateTable,
    caravans: Caravans,
    allowance: Allowance,
    calls: Calls,
    listings: Listings,
    timers: Timers,
    random: SmallRng,
    /// The wall clock, as of this step.
    wall: Wall,
    /// The other clock, as of this step.
    mono: Mono,
    pilot: Option<Pilot>,
    copilot: Option<Copilot>,
    stats: Stats,
    /// For the live subscriptions that a batch concerns: kept for its memory.
    matches: Vec<(SessionKey, u16, SubKey)>,
}

/// What bounds what is in flight, as it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// The pilot's: published messages that the storage has not answered.
    pub publishes: Option<Reading>,
    /// The copilot's: bytes of deliveries that connections have not taken.
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

/// When to do something even if nothing happens.
#[derive(Debug, Default)]
struct Timers {
    /// To tell where quiet ranges are.
    marks: Option<Mono>,
    /// To open logs and start readers that failed.
    retry: Option<Mono>,
    /// No caravan is started before: one has failed.
    hold: Option<Mono>,
    /// To let caravans read on: what they may read was used up.
    late: Option<Mono>,
    /// To ask for admission again.
    admission: BTreeSet<(Mono, SessionKey)>,
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("ready", &self.ready())
            .field("stats", &self.stats)
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
        fitness::check(&capabilities)?;
        Ok(Shard {
            random: SmallRng::seed_from_u64(config.seed),
            pilot: config.pilot.map(Pilot::new),
            copilot: config.copilot.map(Copilot::new),
            catalog: CatalogCore::new(CatalogConfig {
                strongest: capabilities.strongest,
                default_namespace: config.default_namespace,
                read_window_bytes: config.room_window_bytes,
                commands_max: config.commands,
            }),
            config,
            capabilities,
            authorizer,
            admission,
            sessions: Sessions::default(),
            subs: Subscriptions::default(),
            logs: Logs::default(),
            late: LateTable::default(),
            caravans: Caravans::default(),
            allowance: Allowance::default(),
            calls: Calls::default(),
            listings: Listings::default(),
            timers: Timers::default(),
            wall: Wall::default(),
            mono: Mono::default(),
            stats: Stats::default(),
            matches: Vec::new(),
        })
    }

    /// Begins to open the logs.
    pub fn start(&mut self, now: Now, out: &mut Effects) {
        self.step_catalog(now, CatalogInput::Start, out);
        out.deadline = self.deadline();
    }

    /// Takes what has happened, and adds what it wants done. Total: every input is legal at every
    /// time; one that refers to what is not there any more changes nothing.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Effects) {
        self.take(now, input, out);
        self.settle_down(now, out);
    }

    /// A step without its end, for one of several things that have happened at once.
    pub(crate) fn take(&mut self, now: Now, input: Input, out: &mut Effects) {
        (self.wall, self.mono) = (now.wall, now.mono);
        match input {
            Input::Opened {
                session,
                principal,
                credit,
            } => {
                self.sessions.open(session, principal, credit);
            }
            Input::Request { session, request } => self.request(now, session, request, out),
            Input::Sent { session, bytes } => self.sent(session, bytes, out),
            Input::Closed { session } => self.close(session, out),
            Input::Command {
                id,
                principal,
                command,
            } => self.command(now, id, &principal, command, out),
            Input::Storage(completion) => self.completion(now, completion, out),
            Input::Timer => self.timer(now, out),
        }
    }

    /// The end of a step, or of several.
    pub(crate) fn settle_down(&mut self, now: Now, out: &mut Effects) {
        self.let_in(out);
        self.board(now, out);
        self.gauge();
        self.watch(out);
        out.deadline = self.deadline();
    }

    fn request(&mut self, now: Now, session: SessionId, request: Request, out: &mut Effects) {
        let Some(key) = self.sessions.find(session) else {
            return;
        };
        match request {
            Request::Publish { request, batch } => self.publish(now, key, request, batch, out),
            Request::Add(wanted) => {
                let (id, generation) = (wanted.subscription, wanted.generation);
                if let Err(error) = self.add(now, key, wanted, out) {
                    self.stats.refuse(error.code());
                    let state = State::Failed(error);
                    out.replies.push((
                        session,
                        Reply::Status {
                            subscription: id,
                            generation,
                            state,
                        },
                    ));
                }
            }
            Request::Remove { subscription } => self.remove(key, subscription, out),
            Request::Credit { bytes } => {
                if !self.sessions[key].has_credit() {
                    self.mark_later(now);
                }
                #[cfg(feature = "sabotage")]
                let bytes = match self.config.bug {
                    Some(crate::sabotage::Bug::CreditLost) => bytes / 2,
                    _ => bytes,
                };
                self.sessions[key].grant(bytes);
                self.unpark(key, out);
            }
        }
    }

    fn completion(&mut self, now: Now, completion: Completion, out: &mut Effects) {
        match completion {
            Completion::Batch { r, stored } => match self.calls.owner(r) {
                Some(Owner::System) => {
                    self.step_catalog(now, CatalogInput::Batch { r, stored }, out);
                }
                Some(Owner::Room(log)) => self.room_batch(now, log, &stored, out),
                Some(Owner::Caravan(caravan)) => self.caravan_batch(now, caravan, &stored, out),
                None => {}
            },
            Completion::Gap { r, extent, why } => match self.calls.owner(r) {
                Some(Owner::System) => {
                    self.step_catalog(now, CatalogInput::Gap { extent, why }, out);
                }
                Some(Owner::Room(log)) => self.room_gap(now, log, extent, why, out),
                Some(Owner::Caravan(caravan)) => self.caravan_gap(now, caravan, extent, why, out),
                None => {}
            },
            Completion::Tail { r, next } => match self.calls.owner(r) {
                Some(Owner::System) => self.step_catalog(now, CatalogInput::Tail, out),
                Some(Owner::Caravan(caravan)) => self.caravan_tail(now, caravan, next, out),
                Some(Owner::Room(_)) | None => {}
            },
            Completion::Sealed { r, last, .. } => {
                if let Some(Owner::Caravan(caravan)) = self.calls.owner(r) {
                    self.caravan_tail(now, caravan, last.plus(1), out);
                }
            }
            Completion::Ended { r, .. } => self.reader_ended(now, r, out),
            Completion::Opened { t, bounds } => match self.calls.answered(t) {
                Some(Purpose::OpenSystem) => {
                    self.step_catalog(now, CatalogInput::Opened(bounds), out);
                }
                Some(Purpose::Open(log)) => self.log_opened(now, log, bounds, out),
                Some(Purpose::Renew(log)) => self.renewed(log, bounds, out),
                _ => {}
            },
            Completion::Bounds { t, bounds } => match self.calls.answered(t) {
                Some(Purpose::First { late, ticket, lost }) => {
                    self.first_found(late, ticket, lost, bounds, out);
                }
                Some(Purpose::End { late, ticket, next }) => {
                    self.end_found(late, ticket, next, bounds, out);
                }
                _ => {}
            },
            Completion::Found { t, at } => self.time_found(t, at, out),
            Completion::Appended { t, .. } => self.appended(now, t, completion, out),
            Completion::Refused { t, why } => self.refused(now, t, &why, out),
            Completion::Topics { t, page } => self.topics_found(t, page, out),
            Completion::Done { t } => {
                if let Some(Purpose::Delete(id, log)) = self.calls.answered(t) {
                    self.log_deleted(now, id, log, out);
                }
            }
        }
    }

    /// The shard's thread has worked for `time` since this was last said, on whatever; what else
    /// has passed was free, and is given to late subscribers. If never said, all time is free.
    pub fn worked(&mut self, time: Duration) {
        self.allowance.worked(time);
    }

    /// Whether somebody waits to be read for, or is: then it matters what [`Shard::worked`] says.
    #[must_use]
    pub fn has_late(&self) -> bool {
        self.late.queued() > 0 || self.caravans.len() > 0
    }

    /// Whether the namespaces are known and their logs open.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.catalog.is_ready()
    }

    /// Why the shard is not ready, or takes no namespace commands, if it is more than a matter of
    /// time.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.catalog.failure()
    }

    /// The namespaces as they stand.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.catalog.snapshot()
    }

    /// What has been counted.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// How pilot and copilot stand; `None` for one that is off.
    #[must_use]
    pub fn flow(&self) -> Flow {
        Flow {
            publishes: self.pilot.as_ref().map(Pilot::reading),
            deliveries: self.copilot.as_ref().map(Copilot::reading),
        }
    }

    /// The life of a log, if it has been opened here.
    #[must_use]
    pub fn incarnation(&self, log: LogId) -> Option<Incarnation> {
        let head = self.logs.get(self.logs.find(log)?)?;
        (head.openness == Openness::Open).then_some(head.incarnation)
    }

    /// What a client is told that has to come again: a little spread, so that not all come at once.
    fn busy(&mut self, field: &str) -> Error {
        let least = u64::try_from(self.config.retry_delay.as_millis()).unwrap_or(u64::MAX / 4) / 2;
        let delay = least + self.random.random_range(0..=least);
        Error::new(ErrorCode::Overloaded)
            .field(field)
            .retry_after(Duration::from_millis(delay))
    }

    fn gauge(&mut self) {
        self.stats.sessions = self.sessions.len() as u64;
        self.stats.detached_subscriptions = self.late.len() as u64;
        self.stats.live_subscriptions = (self.subs.len() - self.late.len()) as u64;
        self.stats.caravans = self.caravans.len() as u64;
    }
}
