//! The tower: the logs' side of a shard, as a state machine of its own.
//!
//! It has the storage to itself: opens and deletes logs, appends to them, and reads them, live for the gateway
//! that is attached to a log's tail, and for members, who are behind. It knows topics, numbers and members,
//! and no client's position ([`crate::link`]): whatever it loses, a gateway can ask for again.
//!
//! - [`orders`]: what the catalog wants of log 0 and of the logs of namespaces. [`log_requests`]: what the
//!   gateway asks of a log. [`storage_calls`]: which call of the storage was made for what.
//! - [`ends`]: where logs end is asked of the storage, for all who ask at once. [`unasked`]: what the storage
//!   tells by itself. [`sealing`]: logs of earlier maps are sealed, and their end is told.
//! - [`tail_reader`]: one reader of each log to whose tail the gateway is attached.
//! - [`catchup`]: few readers for many members. How much they may read is a matter of [`allowance`].
//!
//! Invariants, which `check.rs` asserts after each step where bugs panic, under the names that stand first
//! here:
//!
//! - `one_place`: a member either waits for a reader, in the queue by ticket and by place, or is a member of
//!   exactly one reader, which is of its log, and of its topic or of all.
//! - `ahead`: whoever joins a reader wants nothing that it has given before (asserted in
//!   [`catchup::schedule`]).
//! - `readers`: there are at most as many catch-up readers as the settings say and one for each log, and none
//!   without members; nobody who may begin waits for one while another could be started, unless reading is used
//!   up.
//! - `silent`: a log has at most one silent reader, and while it has it, none of its members begins.
//! - `retried`: logs of which nobody begins because a reader failed are looked at again before long.
//! - `ends`: a reader knows the ends of its members, in numbers and in time, and no others; one that has got
//!   to a member's end has no such member any more.
//! - `owners`: a reader of the storage that was not given up belongs to exactly one tail or catch-up reader,
//!   or is the only one of log 0.
//! - `calls`: no call and no reader that is under way is numbered above the last number given.
//! - `allowance`: no more is saved up for late reading than may be.
//! - `asked`: after a step, whoever asks for a log's end waits for a call under way, or for the one after it.
//! - `end`: nothing is given beyond a log's end (`tail.next ≤ end`).
//! - `closed`: what is being deleted has neither tail nor members.
//! - `kept`: an open log that its storage could not keep as its namespace says is tried again before long.

mod allowance;
mod catchup;
mod check;
mod ends;
mod log;
mod log_requests;
mod messages;
mod orders;
mod sealing;
mod storage_calls;
mod tail_reader;
#[cfg(test)]
mod tests;
mod timer;
mod unasked;

use crate::catalog::CatalogInput;
use crate::config::ShardConfig;
use crate::keys::TowerLogKey;
use crate::link::{Answer, FromTower, ToTower};
use airmail_log::{
    Bounds, Call, Capabilities, Completion, GapWhy, ReaderId, Refusal, StorageTraits, Stored, Tag,
};
use airmail_model::frame::Ack;
use airmail_model::{AppendTime, Extent, Incarnation, LogId, Now};
use allowance::Allowance;
use catchup::member::Members;
use catchup::queue::HeldFor;
use catchup::reader::Readers;
pub use catchup::sweep::SweepSettings;
use catchup::sweep::Sweeps;
use ends::Ends;
use log::{Openness, TowerLogs};
pub(crate) use messages::{TowerEffects, TowerInput};
use std::time::Duration;
use storage_calls::{Calls, Owner, Purpose};
use timer::Timers;

/// Logs, their readers, and those who are behind. See the module's documentation.
#[derive(Debug)]
pub(crate) struct Tower {
    config: ShardConfig,
    capabilities: Capabilities,
    logs: TowerLogs,
    members: Members,
    readers: Readers,
    sweeps: Sweeps,
    allowance: Allowance,
    calls: Calls,
    ends: Ends,
    timers: Timers,
    /// The clocks, as of this step.
    now: Now,
    stats: TowerStats,
}

/// Counters of a tower.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TowerStats {
    /// Number of catch-up readers started.
    pub(crate) readers_started: u64,
    /// Bytes of the batches that all readers have given.
    pub(crate) given_bytes: u64,
    /// Times that a reader began to sweep a log.
    pub(crate) sweeps: u64,
    /// Bytes that catch-up readers have read.
    pub(crate) read_bytes: u64,
    /// Gauge: catch-up readers.
    pub(crate) readers: u64,
}

impl Tower {
    /// A tower without logs.
    pub(crate) fn new(config: ShardConfig, capabilities: Capabilities) -> Tower {
        Tower {
            config,
            capabilities,
            logs: TowerLogs::default(),
            members: Members::default(),
            readers: Readers::default(),
            sweeps: Sweeps::default(),
            allowance: Allowance::default(),
            calls: Calls::default(),
            ends: Ends::default(),
            timers: Timers::default(),
            now: Now::default(),
            stats: TowerStats::default(),
        }
    }

    /// Takes what has happened, and adds what it wants done. [`Tower::finish_step`] is to be called when no
    /// more is to be taken at once.
    pub(crate) fn apply(&mut self, now: Now, input: TowerInput, out: &mut TowerEffects) {
        self.now = now;
        match input {
            TowerInput::FromGateway(message) => self.told(message, out),
            TowerInput::Storage(completion) => self.completion(completion, out),
            TowerInput::Order(order) => self.order(order, out),
            TowerInput::OpenSystem(spec) => self.open_system(spec, out),
            TowerInput::ReadSystem { from, credit_bytes } => {
                self.read_system(from, credit_bytes, out);
            }
            TowerInput::CreditSystem { r, bytes } => out.call(Call::Credit { r, bytes }),
            TowerInput::Provision { log, logs, spec } => self.provision(log, logs, spec, out),
            TowerInput::Withdraw { log, logs, origin } => self.withdraw(log, logs, origin, out),
            TowerInput::Keep(kept) => self.keep(kept, out),
            TowerInput::AppendSystem { of, batch } => self.append_system(of, batch, out),
            TowerInput::AskSystemEnd => self.ask_system_end(out),
            TowerInput::RetrySystem => self.retry_later(),
            TowerInput::Timer => self.timer(out),
        }
    }

    /// Ends a step, or several that were taken at once.
    pub(crate) fn finish_step(&mut self, now: Now, out: &mut TowerEffects) {
        self.now = now;
        self.ask_ends(out);
        self.schedule(out);
    }

    fn told(&mut self, message: ToTower, out: &mut TowerEffects) {
        match message {
            ToTower::Attach {
                log,
                generation,
                from,
                interest,
            } => self.attach(log, generation, from, interest, out),
            ToTower::Want {
                log,
                generation,
                edit,
                topics,
            } => self.want(log, generation, edit, topics, out),
            ToTower::Detach { log, generation } => self.detach(log, generation, out),
            ToTower::Follow(follow) => self.follow(&follow, out),
            ToTower::Leave { member } => self.leave(member, out),
            ToTower::Ask {
                member,
                log,
                question,
            } => self.ask(member, log, question, out),
            ToTower::Append {
                log,
                number,
                batch,
                sole,
            } => self.append((log, number), batch, sole, out),
            ToTower::Renew { log } => self.renew(log, out),
            ToTower::Topics {
                listing,
                part,
                log,
                page,
            } => self.list_topics(listing, part, log, page, out),
            ToTower::Clock { log, asked } => self.ask_clock(log, asked, out),
            ToTower::Moved { bytes } => self.allowance.live(bytes),
        }
    }

    /// Takes what the storage tells. What is of a call or a reader that was given up changes nothing.
    fn completion(&mut self, completion: Completion, out: &mut TowerEffects) {
        match completion {
            Completion::Batch { r, stored } => self.batch(r, stored, out),
            Completion::Gap { r, extent, why } => self.gap(r, extent, why, out),
            Completion::Tail { .. }
            | Completion::Sealed { .. }
            | Completion::Effective { .. }
            | Completion::WantsLost { .. } => self.reader_mark(&completion, out),
            Completion::Ended { r, .. } => self.reader_ended(r, out),
            Completion::Opened { t, bounds } => match self.calls.answered(t) {
                Some(Purpose::OpenSystem) => {
                    out.to_catalog.push_back(CatalogInput::Opened(bounds));
                }
                Some(Purpose::Open(ordered, log)) => {
                    self.open_answered(ordered, log, Ok(&bounds), out);
                }
                Some(Purpose::Renew(log)) => self.renewed(log, Ok(bounds), out),
                _ => {}
            },
            Completion::Bounds { t, bounds } => self.bounds(t, bounds, out),
            Completion::Found { t, at } => {
                if let Some(Purpose::Answer(log, member)) = self.calls.answered(t) {
                    self.found(log, member, at, out);
                }
            }
            Completion::Clock { t, at } => self.clock(t, at, out),
            Completion::Appended {
                t,
                extent,
                at,
                held,
                duplicate,
                exact,
            } => match self.calls.answered(t) {
                Some(Purpose::Append(log, number)) => {
                    let ack = Ack {
                        extent,
                        appended: at,
                        held,
                        duplicate,
                        exact,
                    };
                    self.appended(log, number, Ok(ack), out);
                }
                Some(Purpose::AppendSystem(of)) => self.system_appended(of, Ok(extent), out),
                _ => {}
            },
            Completion::Refused { t, why } => self.refused(t, why, out),
            Completion::Topics { t, page } => {
                if let Some(Purpose::Topics(listing, part)) = self.calls.answered(t) {
                    let result = Ok(page);
                    out.tell(FromTower::Topics {
                        listing,
                        part,
                        result,
                    });
                }
            }
            Completion::Done { t } => self.done(t, out),
            Completion::Gained { log, bounds } => self.gained(log, &bounds, out),
            Completion::Lost { log } => self.lost(log),
            Completion::Suspended { log, loss } => self.suspended(log, loss, out),
            Completion::Provisioned { t, provisions } => {
                if let Some(Purpose::Provision) = self.calls.answered(t) {
                    let provisioned = CatalogInput::Provisioned(Ok(*provisions));
                    out.to_catalog.push_back(provisioned);
                }
            }
        }
    }

    /// The storage has told what a log's clock shows.
    fn clock(&mut self, t: Tag, at: AppendTime, out: &mut TowerEffects) {
        if let Some(Purpose::Clock(log, asked)) = self.calls.answered(t) {
            self.clock_answered((log, asked), Some(at), out);
        }
    }

    /// The storage has done what a call wanted.
    fn done(&mut self, t: Tag, out: &mut TowerEffects) {
        match self.calls.answered(t) {
            Some(Purpose::Delete(namespace, log)) => {
                self.log_deleted(namespace, log, Ok(()), out);
            }
            Some(Purpose::Seal(log)) => self.seal_answered(log, Ok(()), out),
            _ => {}
        }
    }

    /// A mark of a reader: where it stands, or what it gives from there.
    fn reader_mark(&mut self, completion: &Completion, out: &mut TowerEffects) {
        let owner = completion.reader().and_then(|r| self.calls.owner(r));
        match (owner, completion) {
            (Some(Owner::System), Completion::Tail { .. }) => {
                out.to_catalog.push_back(CatalogInput::Tail);
            }
            (Some(Owner::CatchUp(reader)), Completion::Tail { next, .. }) => {
                self.reader_tail(reader, *next, out);
            }
            (Some(Owner::CatchUp(reader)), Completion::Sealed { last, .. }) => {
                self.note_sealed(self.readers[reader].log, last.plus(1), out);
                self.reader_tail(reader, last.plus(1), out);
            }
            (Some(Owner::Tail(log)), Completion::Sealed { last, .. }) => {
                self.note_sealed(log, last.plus(1), out);
            }
            (Some(Owner::Tail(log)), Completion::Effective { edit, at, .. }) => {
                self.tail_effective(log, *edit, *at, out);
            }
            (Some(Owner::Tail(log)), Completion::WantsLost { .. }) => {
                self.tail_wants_lost(log, out);
            }
            // Input: a mark of a reader that was given up, or one that its owner does not need.
            _ => {}
        }
    }

    /// A reader gives a batch.
    fn batch(&mut self, r: ReaderId, stored: Stored, out: &mut TowerEffects) {
        match self.calls.owner(r) {
            Some(Owner::System) => {
                self.stats.given_bytes += stored.batch.bytes().len() as u64;
                out.to_catalog.push_back(CatalogInput::Batch { r, stored });
            }
            Some(Owner::Tail(log)) => self.tail_batch(log, stored, out),
            Some(Owner::CatchUp(reader)) => self.reader_batch(reader, &stored, out),
            None => {}
        }
    }

    /// A reader tells numbers that it will not give.
    fn gap(&mut self, r: ReaderId, extent: Extent, why: GapWhy, out: &mut TowerEffects) {
        match self.calls.owner(r) {
            Some(Owner::System) => out.to_catalog.push_back(CatalogInput::Gap { extent, why }),
            Some(Owner::Tail(log)) => self.tail_gap(log, extent, why, out),
            Some(Owner::CatchUp(reader)) => self.reader_gap(reader, extent, why, out),
            None => {}
        }
    }

    /// The storage has said what a log holds.
    fn bounds(&mut self, t: Tag, bounds: Bounds, out: &mut TowerEffects) {
        match self.calls.answered(t) {
            Some(Purpose::End(log)) => self.end_found(log, Ok(bounds), out),
            Some(Purpose::SystemEnd) => out.system_end = Some(Some(bounds.next)),
            Some(Purpose::SealedEnd(log)) => self.sealed_end(log, Ok(&bounds), out),
            Some(Purpose::Left(log)) => self.left(log, &bounds, out),
            Some(Purpose::Answer(log, member)) => {
                self.known_end(log, &bounds, out);
                self.answer(log, member, Answer::Bounds(bounds), out);
            }
            _ => {}
        }
    }

    /// The storage has refused a call.
    fn refused(&mut self, t: Tag, why: Refusal, out: &mut TowerEffects) {
        let Some(purpose) = self.calls.answered(t) else {
            // Input: a storage that answers what was not asked, or twice.
            return;
        };
        match purpose {
            Purpose::OpenSystem => out.to_catalog.push_back(CatalogInput::OpenRefused(why)),
            Purpose::Provision => out
                .to_catalog
                .push_back(CatalogInput::Provisioned(Err(why))),
            Purpose::Withdraw | Purpose::Left(_) | Purpose::Keep => {}
            Purpose::Seal(log) => self.seal_answered(log, Err(&why), out),
            Purpose::SealedEnd(log) => self.sealed_end(log, Err(&why), out),
            Purpose::AppendSystem(of) => self.system_appended(of, Err(why), out),
            Purpose::Open(ordered, log) => self.open_answered(ordered, log, Err(&why), out),
            Purpose::Delete(namespace, log) => self.log_deleted(namespace, log, Err(&why), out),
            Purpose::Append(log, number) => self.appended(log, number, Err(why), out),
            Purpose::Answer(log, member) => self.answer(log, member, Answer::Refused(why), out),
            Purpose::Clock(log, asked) => self.clock_answered((log, asked), None, out),
            Purpose::End(log) => self.end_found(log, Err(why), out),
            Purpose::SystemEnd => out.system_end = Some(None),
            Purpose::Renew(log) => self.renewed(log, Err(why), out),
            Purpose::Topics(listing, part) => {
                let result = Err(why);
                out.tell(FromTower::Topics {
                    listing,
                    part,
                    result,
                });
            }
        }
    }

    /// A reader has ended, which the tower did not ask for: the storage has failed it.
    fn reader_ended(&mut self, r: ReaderId, out: &mut TowerEffects) {
        let Some(owner) = self.calls.owner(r) else {
            // Input: a reader that was given up meanwhile.
            return;
        };
        self.calls.give_up(r);
        match owner {
            Owner::System => out.to_catalog.push_back(CatalogInput::ReaderEnded),
            Owner::Tail(log) => {
                if let Some(tail) = &mut self.logs[log].tail {
                    tail.reader = None;
                }
            }
            Owner::CatchUp(reader) => {
                let log = self.readers[reader].log;
                self.disband(reader);
                self.members.hold(log, HeldFor::Failure);
            }
        }
        self.retry_later();
    }

    /// The shard's thread has worked for `time`, on whatever.
    pub(crate) fn worked(&mut self, time: Duration) {
        self.allowance.worked(time);
    }

    /// Bytes of the batches that all readers have given so far.
    pub(crate) fn given_bytes(&self) -> u64 {
        self.stats.given_bytes
    }

    /// Whether somebody waits to be read for, or is.
    pub(crate) fn has_members(&self) -> bool {
        self.members.queued() > 0 || self.readers.len() > 0
    }

    /// Whether a topic's records are found in a log without reading it all.
    pub(crate) fn has_topic_index(&self, log: TowerLogKey) -> bool {
        self.traits(log).is_some_and(|storage| storage.topic_index)
    }

    /// Whether a new life of a log may go on from further back than the one before: where many write to it, so that
    /// nobody can seal it.
    fn goes_back(&self, log: TowerLogKey) -> bool {
        let is_of_first = self.logs[log].spec.storage.is_first();
        let has_many = !is_of_first || self.capabilities.many_writers;
        has_many && self.traits(log).is_some_and(|storage| !storage.seal)
    }

    /// Traits of a log's storage, if the node has it.
    fn traits(&self, log: TowerLogKey) -> Option<StorageTraits> {
        let name = self.logs[log].spec.storage;
        if name.is_first() {
            return Some(StorageTraits::of(&self.capabilities));
        }
        self.config.storages.get(&name).copied()
    }

    /// The life of a log, if it is open.
    pub(crate) fn incarnation(&self, log: LogId) -> Option<Incarnation> {
        let log = self.logs.get(self.logs.find(log)?)?;
        (log.openness == Openness::Open).then_some(log.incarnation)
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> TowerStats {
        TowerStats {
            readers: self.readers.len() as u64,
            ..self.stats
        }
    }
}
