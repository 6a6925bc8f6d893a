//! Namespaces: made when the node first has time for it, one of them deleted later, and topics
//! listed.

use super::moves::Moved;
use super::shard::Shard;
use super::{Plan, Space, World};
use crate::batching::topic_name;
use crate::census::Kind;
use crate::invariants::{Checked, Violation};
use airmail_broker::{Catalog, ClientInput, Command, CommandId, Outcome, Principal};
use airmail_log::TopicPage;
use airmail_model::{
    Durability, Error, ErrorCode, Lane, Retention, StorageName, Synced, TopicHash,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rate at which a shard that could be asked for a change is, where there are several, in parts of a million.
const SHARDS_ASKED: u32 = 200_000;

impl World {
    /// Asks each shard for the next change that is wanted, if none is under way there.
    pub(super) fn administer(&mut self) {
        self.hear_of_maps();
        for shard in 0..self.shards.len() {
            // Several may be asked for the same at once, but need not.
            if self.shards.len() == 1 || self.chance.chance(SHARDS_ASKED) {
                self.administer_at(shard);
            }
        }
    }

    fn administer_at(&mut self, shard: usize) {
        let Shard { engine, asked, .. } = &self.shards[shard];
        let Some(engine) = engine.as_ref().filter(|engine| engine.shard().ready()) else {
            return;
        };
        if asked.is_some() || !self.is_awake(shard) {
            return;
        }
        let catalog = engine.shard().catalog().clone();
        if let Some(plan) = self.plans.first() {
            match catalog.by_name(&plan.name) {
                Some(entry) => {
                    // The node waits until every shard knows it, but not for ever.
                    let mut catalogs = self.catalogs().into_iter();
                    let all_know = catalogs.all(|catalog| catalog.by_name(&plan.name).is_some());
                    if self.cluster.waits_for_all() && !all_know {
                        return;
                    }
                    let space = Space {
                        name: plan.name.clone(),
                        id: entry.namespace.id,
                        map: entry.map.clone(),
                        has_high: false,
                        topics: plan.topics,
                        durability: plan.durability,
                        weak: plan.durability < Synced::Fsync,
                        shrinks: plan.retention != Retention::default(),
                        wanted: None,
                        asked_on: None,
                        doomed: false,
                        leaving: false,
                        moved: self.moves.as_ref().map(|_| Moved::new(entry.map.clone())),
                    };
                    self.plans.remove(0);
                    self.evidence.count(Kind::NamespaceCreated);
                    self.tell_map(space);
                }
                None => self.command(shard, create(plan)),
            }
            return;
        }
        if self.make_roles(shard, &catalog) {
            return;
        }
        if self.update(shard, &catalog) || self.order_move(shard, &catalog) {
            return;
        }
        let doomed = self.spaces.iter_mut().find(|space| space.doomed);
        let Some(space) = doomed.filter(|space| catalog.by_name(&space.name).is_some()) else {
            return;
        };
        space.leaving = true;
        self.evidence.count(Kind::NamespaceDeleted);
        let name = space.name.clone();
        let based_on = None;
        self.command(shard, Command::DeleteNamespace { name, based_on });
    }

    /// Asks for the next role that is to be made, if one is; takes note of one that every shard knows.
    fn make_roles(&mut self, shard: usize, catalog: &Catalog) -> bool {
        let Some(name) = self.evidence.ledger.audiences.to_be_made() else {
            return false;
        };
        if catalog.roles().find(&name).is_none() {
            self.command(shard, Command::CreateRole { name });
            return true;
        }
        let mut catalogs = self.catalogs().into_iter();
        let all_know = catalogs.all(|catalog| catalog.roles().find(&name).is_some());
        if all_know || !self.cluster.waits_for_all() {
            self.evidence.ledger.audiences.made();
        }
        false
    }

    /// Asks for the next update that is wanted, if one is; takes note of one that is in force.
    fn update(&mut self, shard: usize, catalog: &Catalog) -> bool {
        let catalogs = self.catalogs();
        for space in &mut self.spaces {
            let Some((retention, durability)) = space.wanted else {
                continue;
            };
            let Some(entry) = catalog.by_name(&space.name).filter(|_| !space.leaving) else {
                space.wanted = None;
                continue;
            };
            let asked = (retention, Durability::single(durability));
            let asked_on = space.asked_on;
            let is_so = |catalog: &Catalog| {
                let namespace = catalog.by_name(&space.name).map(|of| &of.namespace);
                namespace.is_some_and(|namespace| {
                    let spec = &namespace.spec;
                    let is_settled = asked_on.is_none_or(|on| on < namespace.version);
                    (spec.retention, spec.durability) == asked && is_settled
                })
            };
            if is_so(catalog) {
                // In force is what every shard has been told of.
                if !catalogs.iter().all(|catalog| is_so(catalog)) {
                    continue;
                }
                (space.wanted, space.durability) = (None, durability);
                self.evidence.count(Kind::NamespaceUpdated);
                continue;
            }
            space.durability = space.durability.min(durability);
            space.weak |= durability < Synced::Fsync;
            space.shrinks |= retention != Retention::default();
            for log in Lane::ALL.into_iter().flat_map(|lane| space.map.logs(lane)) {
                self.evidence.ledger.respecify(log, space.durability);
            }
            let version = entry.namespace.version;
            space.asked_on = Some(version);
            let stale = self.chance.chance(200_000);
            self.shards[shard].refusable = stale;
            let command = Command::UpdateNamespace {
                name: space.name.clone(),
                logs: None,
                retention: Some(retention),
                durability: Some(Durability::single(durability)),
                storage: None,
                based_on: Some(version - u64::from(stale)),
            };
            self.command(shard, command);
            return true;
        }
        false
    }

    /// The catalogs of all shards.
    pub(in crate::world) fn catalogs(&self) -> Vec<Arc<Catalog>> {
        let engines = self.shards.iter().filter_map(|shard| shard.engine.as_ref());
        engines
            .map(|engine| Arc::clone(engine.shard().catalog()))
            .collect()
    }

    fn tell_map(&mut self, space: Space) {
        // Made in an earlier process, perhaps, and not seen before it ended.
        if space.weak && self.boots > 1 {
            let logs = Lane::ALL.into_iter();
            let logs = logs.flat_map(|lane| space.map.logs(lane));
            self.evidence.ledger.bereft.extend(logs);
        }
        if space.moved.is_some() {
            let logs = space.map.logs(Lane::Normal).len();
            let logs = u16::try_from(logs).unwrap_or(1);
            self.evidence.ledger.lines.add(space.id, logs);
        }
        for publisher in &mut self.publishers {
            publisher.core.set_map(space.map.clone());
        }
        for client in &mut self.clients {
            client.core.set_map(&space.map);
        }
        self.spaces.push(space);
    }

    pub(super) fn command(&mut self, shard: usize, command: Command) {
        self.last_command += 1;
        let id = CommandId(self.last_command);
        if !self.is_answered() {
            self.evidence.count(Kind::CommandsAtOnce);
        }
        self.shards[shard].asked = Some(id);
        self.shards[shard].refusable = match command {
            // An update may come first.
            Command::MoveNamespace { .. } => true,
            // It is based on what is old, or another shard's command may have come first.
            Command::UpdateNamespace { .. } => {
                self.shards[shard].refusable || self.shards.len() > 1
            }
            _ => false,
        };
        let principal = Principal::default();
        let input = ClientInput::Command {
            id,
            principal,
            command,
        };
        self.input(shard, input);
    }

    /// A command has been answered.
    pub(super) fn outcome(
        &mut self,
        shard: usize,
        id: CommandId,
        outcome: Result<Outcome, Error>,
    ) -> Checked {
        let of = &mut self.shards[shard];
        if of.asked.take() != Some(id) {
            let detail = format!("{id:?} has a second answer: {outcome:?}");
            return Err(Violation::new("contract", detail));
        }
        let refusable = of.refusable;
        if let Some(moves) = &mut self.moves {
            moves.answered(id);
        }
        match outcome {
            Ok(Outcome::Topics { topics, more }) => {
                self.evidence.count(Kind::TopicsListed);
                let names = topics.into_iter().map(|topic| topic.name);
                self.listed.extend(names);
                self.listed_all = !more;
            }
            Ok(_) => {}
            // A command that was under way when the process ended may have been done all the same.
            Err(error) => {
                let again = [
                    ErrorCode::NamespaceExists,
                    ErrorCode::NamespaceNotFound,
                    ErrorCode::RoleExists,
                ];
                if error.code() == ErrorCode::NamespaceChanged && refusable {
                    self.evidence.count(Kind::NamespaceRefused);
                    return Ok(());
                }
                let is_suspended = error.code() == ErrorCode::LogSuspended;
                let may_pass = error.code().retriable()
                    || is_suspended && self.evidence.ledger.has_harm()
                    || error.code() == ErrorCode::OutcomeUnknown
                    || again.contains(&error.code());
                if !may_pass {
                    return Err(Violation::new("G8 good input is taken", error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Asks for the next page of a namespace's topics.
    pub(super) fn list(&mut self, at: usize) {
        let page = TopicPage {
            prefix: String::new(),
            after: self.listed.last().cloned().unwrap_or_default(),
            limit: 100,
        };
        let namespace = self.spaces[at].id;
        let shard = self.cluster.any_shard(&mut self.chance);
        self.command(shard, Command::ListTopics { namespace, page });
    }

    /// Every topic with a message that must be there has been listed, in order.
    pub(super) fn check_listed(&self, at: usize) -> Checked {
        let space = &self.spaces[at];
        let listed: BTreeSet<&str> = self.listed.iter().map(String::as_str).collect();
        let held = self.evidence.ledger.iter().filter(|(id, entry)| {
            entry.log.namespace == space.id
                && entry.acked.is_some()
                && !self.evidence.ledger.may_be_missing(*id)
        });
        let held: BTreeSet<TopicHash> = held.map(|(_, entry)| entry.topic).collect();
        let missing = (0..space.topics).map(topic_name).find(|name| {
            held.contains(&name.hash(space.id)) && !space.shrinks && !listed.contains(name.as_str())
        });
        let listed = &self.listed;
        if missing.is_some() || !listed.is_sorted_by(|one, next| one < next) {
            let detail = format!("{}: lists {listed:?}, without {missing:?}", space.name);
            return Err(Violation::new("contract", detail));
        }
        Ok(())
    }
}

fn create(plan: &Plan) -> Command {
    Command::CreateNamespace {
        name: plan.name.clone(),
        logs: plan.logs,
        retention: plan.retention,
        durability: Some(Durability::single(plan.durability)),
        storage: StorageName::FIRST,
    }
}
