//! The gateway: the clients' side of a shard, as a state machine of its own.
//!
//! It owns sessions, subscriptions, budgets, every subscription's position, and the order in which publishes
//! are answered. Where logs end and what is in them it asks of the tower ([`crate::link`]); which namespaces
//! there are it is told by the catalog. It knows neither the storage, but for what that can do, nor who reads it.
//!
//! - A publish ([`publish`]) is admitted ([`admission`]), waits at the [`publish_gate`] if too much is in
//!   flight, is checked, and goes to the tower. A log's publishes are answered ([`acks`]) in order
//!   ([`publish_order`]). Where retries are recognised only when they are read, a stream of a producer has no holes
//!   ([`streams`]), and what has no producer gets a stamp ([`own_stamps`]).
//! - A subscription has a part for each log concerned, one a lane ([`parts`]). A part is located ([`subscribe`]). Then it
//!   is live, at its log's lane of a tail ([`tail_lane`], [`tail_subscriptions`]), or behind ([`behind`]): the tower
//!   reads for it as for a member ([`catchup_delivery`]), or it waits for credit, or at the tail for its number to
//!   come ([`behind_transitions`]).
//! - What the tower gives of a log goes to all who are live there ([`live`]), to each its part ([`fanout`]), within each session's credit
//!   and what the [`delivery_gate`] lets through; whoever waits there for a time is looked at first ([`timed`]).
//! - A subscription is for a topic, or for those topics of a log that a selector selects ([`scope`], [`selectors`],
//!   [`selected`]).
//! - Those with filters are served in turns of bounded work ([`matching_turns`], [`turns`], [`matching`]).
//! - Left out is what is for other roles than the client has, what its subscription's filter ([`filters`]) does not match,
//!   and what has expired ([`judging`], [`left_out`]), by the clock of its log ([`log_clock`]).
//! - Where a log ends because its namespace was moved, everyone goes on in the next one ([`succession`]), also where the log
//!   is no more ([`retired`]).
//! - Where the tower does not give everything of a log, it is told what is wanted ([`wants`]).
//! - A position from beyond its log's end begins a new life of the log ([`new_incarnation`]). Where a log has lost its end,
//!   and that was accepted, everyone goes on in the life that it has begun ([`crossing`]).
//!
//! Invariants, which `check.rs` asserts after each step where bugs panic, under the names that stand first
//! here:
//!
//! - `one_state`: a subscription has a part, and on no log two; each is either live or behind with a record of its
//!   own. One with a live part is in the list of its topic at its tail. A record belongs to the subscription that
//!   knows it, and after a step waits for exactly one thing.
//! - `tails`: a log belongs to the tail of its index, which knows it as that of its lane.
//! - `filters`: on a stream with filters every subscription has one, and to each topic there is one; on others none has.
//! - `selectors`: the subscriptions of a stream are all selections, of each log one at most, or none is.
//! - `numbers`: a subscription is found by its number on its stream, which has no other numbers.
//! - `located`: only one that is still to be located has an end that was asked for and is not known.
//! - `told`: no client is told more than was looked at for it: `told ≤ at`.
//! - `parked`: those who wait for credit are known to their session by their tickets, and no others.
//! - `following`: a session's count of members is that of its subscriptions that the tower reads for.
//! - `succession`: whoever waits for the log after an ended one is known to that; nobody is at the tail of a log that
//!   has been given to its end.
//! - `waiting`: whoever waits at a tail waits for a number that the tail has not got to (`at > next`), or for
//!   a time, and never has an end; nobody else is in the tail's lists of those who wait.
//! - `clocks`: whoever waits for a log's clock is known to that, which is asked for.
//! - `wanted`: whoever waits for what it wants to be given is known to wait for a topic that was asked for; a
//!   topic is held by those behind that say so, and by no others.
//! - `returned`: whom a log knows to have come with a position of its present life is a subscription there.
//! - `ranges`: a session's range of a log counts its live subscriptions there, and never goes beyond the
//!   tail (`range.next ≤ tail.next`); a session knows each log of which it has a range.
//! - `attached`: the tower gives a log's tail as long as somebody is there, and no longer; what is closed has
//!   nobody.
//! - `turns`: what waits to be held against filters waits for somebody, and is known to have its turn; where nothing waits,
//!   those with filters are served up to where the tail stands.
//! - `order`: the first publish that waits for its turn has no answer yet, and what is in flight is what was
//!   counted.
//! - `gates`: after a step nobody's turn has come who was not let go on, what waits is no more than may, and
//!   what is in flight is what publishes and streams hold.
//! - `admission`: a session that waits for admission is asked for again, and no other; of each no more bytes
//!   wait than may, unless it is one publish alone.
//! - `credit`: no session has more credit than one may hold.

mod acks;
mod admission;
mod behind;
mod behind_transitions;
mod catchup_delivery;
mod change;
mod check;
mod command;
mod crossing;
mod delivery_gate;
mod fanout;
mod filters;
mod high_lane;
mod judging;
mod lane_credit;
mod left_out;
mod listing;
mod live;
mod log;
mod log_clock;
mod matched;
mod matching;
mod matching_turns;
mod may_subscribe;
mod messages;
mod named;
mod new_incarnation;
mod own_stamps;
mod parts;
mod placing;
mod publish;
mod publish_gate;
mod publish_order;
mod reading_turns;
mod retired;
mod scope;
mod selected;
mod selectors;
mod session;
mod streams;
mod subscribe;
mod subscription;
mod subscriptions_by_number;
mod succession;
mod tail_lane;
mod tail_subscriptions;
#[cfg(test)]
mod tests;
mod timed;
mod timer;
mod turns;
mod turns_from_storage;
mod wants;

use crate::access::{Admission, Authorizer};
use crate::catalog::Catalog;
use crate::config::ShardConfig;
use crate::input::{ClientInput, SessionId};
use crate::link::{FromTower, ToTower};
use crate::stats::Stats;
use crate::storage_refusals;
use airmail_flow::Reading;
use airmail_log::{Capabilities, Refusal};
use airmail_model::frame::{Reply, Request, State};
use airmail_model::{Error, ErrorCode, Incarnation, Lane, LogId, NamespaceId, Now};
use behind::BehindTable;
use delivery_gate::DeliveryGate;
use listing::Listings;
use live::LiveWork;
use log::{GatewayLogs, LogState};
pub(crate) use messages::{GatewayEffects, GatewayInput};
use publish_gate::PublishGate;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use session::Sessions;
use std::sync::Arc;
use std::time::Duration;
use subscription::Subscriptions;
use timer::Timers;

/// Live bytes that are told to the tower at a time. What may be read for those behind is a small part of them.
const MOVED_BYTES: usize = 16 << 10;

/// Sessions, subscriptions and publishes. See the module's documentation.
pub(crate) struct Gateway {
    config: ShardConfig,
    access: Access,
    namespaces: Namespaces,
    sessions: Sessions,
    subs: Subscriptions,
    logs: GatewayLogs,
    behind: BehindTable,
    listings: Listings,
    timers: Timers,
    random: SmallRng,
    /// The clocks, as of this step.
    now: Now,
    publish_gate: Option<PublishGate>,
    delivery_gate: Option<DeliveryGate>,
    live: LiveWork,
    stats: Stats,
}

/// Deciders of what clients may do, and when.
struct Access {
    authorizer: Box<dyn Authorizer>,
    admission: Box<dyn Admission>,
}

/// The namespaces as the catalog has last told.
#[derive(Default)]
struct Namespaces {
    catalog: Arc<Catalog>,
    is_ready: bool,
}

impl Gateway {
    /// A gateway without clients.
    pub(crate) fn new(
        config: ShardConfig,
        capabilities: &Capabilities,
        authorizer: Box<dyn Authorizer>,
        admission: Box<dyn Admission>,
    ) -> Gateway {
        Gateway {
            random: SmallRng::seed_from_u64(config.seed),
            publish_gate: (config.publish_gate)
                .map(|settings| PublishGate::new(settings, config.publish_waiting_bytes)),
            delivery_gate: config.delivery_gate.map(DeliveryGate::new),
            logs: GatewayLogs::new(capabilities, config.seed),
            subs: Subscriptions::new(config.filters_few),
            config,
            access: Access {
                authorizer,
                admission,
            },
            namespaces: Namespaces::default(),
            sessions: Sessions::default(),
            behind: BehindTable::default(),
            listings: Listings::default(),
            timers: Timers::default(),
            now: Now::default(),
            live: LiveWork::default(),
            stats: Stats::default(),
        }
    }

    /// Takes what has happened, and adds what it wants done. [`Gateway::finish_step`] is to be called when
    /// no more is to be taken at once.
    pub(crate) fn apply(&mut self, now: Now, input: GatewayInput, out: &mut GatewayEffects) {
        self.now = now;
        match input {
            GatewayInput::Client(input) => self.client(input, out),
            GatewayInput::FromTower(message) => self.told(message, out),
            GatewayInput::Namespaces { catalog, is_ready } => {
                self.namespaces_told(Namespaces { catalog, is_ready }, out);
            }
            GatewayInput::Answered { id, result } => self.command_answered(id, result, out),
            GatewayInput::Timer => self.timer(out),
        }
    }

    /// Ends a step, or several that were taken at once.
    pub(crate) fn finish_step(&mut self, now: Now, out: &mut GatewayEffects) {
        self.now = now;
        self.take_turns(out);
        self.let_in(out);
        self.watch(out);
        self.send_wants(out);
        if self.live.moved_bytes >= MOVED_BYTES {
            let bytes = std::mem::take(&mut self.live.moved_bytes);
            out.tell(ToTower::Moved { bytes });
        }
    }

    /// Whether somebody's turn has come at the publish gate who has not been let go on.
    pub(crate) fn lets_in(&self) -> bool {
        let gate = self.publish_gate.as_ref();
        gate.is_some_and(|gate| !gate.is_settled())
    }

    /// A client, or its connection, has done something.
    fn client(&mut self, input: ClientInput, out: &mut GatewayEffects) {
        match input {
            ClientInput::Opened {
                session,
                principal,
                credit,
            } => {
                self.sessions.open(session, principal, credit);
            }
            ClientInput::Request { session, request } => self.request(session, request, out),
            ClientInput::Sent { session, bytes } => self.sent(session, bytes, out),
            ClientInput::Closed { session } => self.close(session, out),
            ClientInput::Command {
                id,
                principal,
                command,
            } => self.command(id, &principal, command, out),
        }
    }

    fn request(&mut self, session: SessionId, request: Request, out: &mut GatewayEffects) {
        let Some(key) = self.sessions.find(session) else {
            // Input: a request that was under way when its stream ended.
            return;
        };
        match request {
            Request::Publish {
                request,
                batch,
                begins_epoch,
            } => self.publish(key, request, (batch, begins_epoch), out),
            Request::Add(wanted) => {
                let (subscription, generation) = (wanted.subscription, wanted.generation);
                if let Err(error) = self.add(key, wanted, out) {
                    self.stats.refuse(error.code());
                    let state = State::Failed(error);
                    let reply = Reply::Status {
                        subscription,
                        generation,
                        state,
                    };
                    out.reply(session, reply);
                }
            }
            Request::Remove { subscription } => self.remove(key, subscription, out),
            Request::Change(change) => self.change(session, change, out),
            Request::Credit { bytes } => {
                if Lane::ALL
                    .iter()
                    .any(|lane| !self.sessions[key].has_credit(*lane))
                {
                    self.mark_later();
                }
                #[cfg(feature = "sabotage")]
                let bytes = match self.config.bug {
                    Some(crate::sabotage::Bug::CreditLost) => bytes / 2,
                    _ => bytes,
                };
                self.sessions[key].grant(bytes);
                self.unpark(key, out);
            }
            Request::Roles(roles) => self.sessions[key].principal.roles = roles,
            Request::Clock { asked } => {
                let node = self.now.mono;
                out.reply(session, Reply::Clock { asked, node });
            }
        }
    }

    fn told(&mut self, message: FromTower, out: &mut GatewayEffects) {
        match message {
            FromTower::Opened { log, incarnation } => self.log_opened(log, incarnation, out),
            FromTower::Sealed { log, end } => self.log_sealed(log, end, out),
            FromTower::Elsewhere { log, holder } => self.logs.set_elsewhere(log, holder),
            FromTower::Closed { log } => self.log_closed(log, out),
            FromTower::Gone { log } => self.log_gone(log, out),
            FromTower::Live {
                log,
                generation,
                previous,
                stored,
            } => self.live_batch(log, generation, previous, &stored, out),
            FromTower::LiveGap {
                log,
                generation,
                extent,
                why,
            } => self.live_gap(log, generation, extent, why, out),
            FromTower::Effective {
                log,
                generation,
                edit,
                at,
            } => self.want_effective(log, generation, edit, at, out),
            FromTower::WantsLost { log, generation } => self.wants_lost(log, generation, out),
            FromTower::Part { member, part } => self.part(member, part, out),
            FromTower::PartGap {
                member,
                extent,
                why,
            } => self.part_gap(member, extent, why, out),
            FromTower::Progress { member, next } => self.progress(member, next, out),
            FromTower::Reached { member, next, end } => self.reached(member, next, end, out),
            FromTower::Ended { member, next } => self.ended(member, next, out),
            FromTower::Answer {
                member,
                end,
                answer,
            } => self.answered(member, end, answer, out),
            FromTower::Appended {
                log,
                number,
                result,
            } => self.appended(log, number, result, out),
            FromTower::Clock { log, asked, clock } => self.clock_told(log, asked, clock, out),
            FromTower::Renewed { log, result } => self.renewed(log, result, out),
            FromTower::Topics {
                listing,
                part,
                result,
            } => self.topics_told(listing, part, result, out),
        }
    }

    /// A log can be used, or is kept otherwise from now on.
    fn log_opened(&mut self, log: LogId, incarnation: Incarnation, out: &mut GatewayEffects) {
        self.logs.take_elsewhere(log);
        match self.logs.find(log) {
            Some(key) if self.logs[key].incarnation == incarnation => {}
            Some(key) if self.goes_back(log) => self.life_changed(key, incarnation, out),
            Some(key) => self.logs[key].incarnation = incarnation,
            None => {
                self.logs.insert(log, incarnation);
                if log.lane == Lane::High {
                    self.begin_high(log, out);
                }
            }
        }
        if !self.logs.with_waiting.is_empty() {
            self.wake_successors(out);
        }
    }

    /// A log's namespace is deleted, or nothing is left in the log: nobody is on it any more.
    fn log_closed(&mut self, log: LogId, out: &mut GatewayEffects) {
        self.logs.take_elsewhere(log);
        let Some(key) = self.logs.find(log) else {
            // Input: a log that could never be opened.
            return;
        };
        self.logs[key].state = LogState::Closed;
        if !self.leave_retired(key, out) {
            self.fail_subscribers(key, out);
        }
    }

    /// A log is deleted: what was asked of it is not answered any more.
    fn log_gone(&mut self, log: LogId, out: &mut GatewayEffects) {
        let Some(key) = self.logs.find(log) else {
            // Input: a log that could never be opened.
            return;
        };
        self.abandon(key, out);
    }

    /// Refusal of what needs a log that cannot be used now.
    fn not_open(&mut self, log: LogId) -> Error {
        match self.logs.elsewhere(log) {
            Some(holder) => storage_refusals::error(&Refusal::Elsewhere(holder), log, None),
            None => self.busy("log").value(log),
        }
    }

    /// The namespaces, as the catalog has last told.
    fn catalog(&self) -> &Arc<Catalog> {
        &self.namespaces.catalog
    }

    /// Counters of this side, with this side's gauges.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.stats.clone();
        stats.sessions = self.sessions.len() as u64;
        let behind = self.behind.subscriptions;
        stats.detached_subscriptions = behind as u64;
        stats.live_subscriptions = (self.subs.len() - behind) as u64;
        stats
    }

    /// Number of logs that have begun a new life.
    pub(crate) fn renewed_logs(&self) -> u64 {
        self.stats.renewed
    }

    /// Number of members that the tower should have for this side.
    pub(crate) fn members(&self) -> u64 {
        let members = self.sessions.iter();
        let members: u64 = members.map(|(_, session)| session.following()).sum();
        members + self.turns_reading()
    }

    /// Reading of the publish gate, if there is one.
    pub(crate) fn publishes(&self) -> Option<Reading> {
        self.publish_gate.as_ref().map(PublishGate::reading)
    }

    /// Reading of the delivery gate, if there is one.
    pub(crate) fn deliveries(&self) -> Option<Reading> {
        self.delivery_gate.as_ref().map(DeliveryGate::reading)
    }

    /// Error for a client that has to come again: with a little spread, so that not all come at
    /// once.
    fn busy(&mut self, field: &str) -> Error {
        let least = u64::try_from(self.config.retry_delay.as_millis()).unwrap_or(u64::MAX / 4) / 2;
        let delay = least + self.random.random_range(0..=least);
        Error::new(ErrorCode::Overloaded)
            .field(field)
            .retry_after(Duration::from_millis(delay))
    }
}

/// Error for a subscription whose namespace is no more.
fn deleted(id: NamespaceId) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("namespace")
        .value(id)
        .limit("not deleted")
}
