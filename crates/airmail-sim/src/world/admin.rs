//! Namespaces: made when the node first has time for it, one of them deleted later, and topics
//! listed.

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

impl World {
    /// Asks for the next change that is wanted, if none is under way.
    pub(super) fn administer(&mut self) {
        if !self.is_ready() || self.asked.is_some() {
            return;
        }
        let Some(node) = &self.node else { return };
        let catalog = node.shard().catalog().clone();
        if let Some(plan) = self.plans.first() {
            match catalog.by_name(&plan.name) {
                Some(entry) => {
                    let space = Space {
                        name: plan.name.clone(),
                        id: entry.namespace.id,
                        map: entry.map.clone(),
                        topics: plan.topics,
                        durability: plan.durability,
                        weak: plan.durability < Synced::Fsync,
                        shrinks: plan.retention != Retention::default(),
                        wanted: None,
                        doomed: false,
                        leaving: false,
                    };
                    self.plans.remove(0);
                    self.evidence.count(Kind::NamespaceCreated);
                    self.tell_map(space);
                }
                None => self.command(create(plan)),
            }
            return;
        }
        if self.update(&catalog) {
            return;
        }
        let doomed = self.spaces.iter_mut().find(|space| space.doomed);
        let Some(space) = doomed.filter(|space| catalog.by_name(&space.name).is_some()) else {
            return;
        };
        space.leaving = true;
        self.evidence.count(Kind::NamespaceDeleted);
        let name = space.name.clone();
        self.command(Command::DeleteNamespace {
            name,
            based_on: None,
        });
    }

    /// Asks for the next update that is wanted, if one is; takes note of one that is in force.
    fn update(&mut self, catalog: &Catalog) -> bool {
        for space in &mut self.spaces {
            let Some((retention, durability)) = space.wanted else {
                continue;
            };
            let Some(entry) = catalog.by_name(&space.name).filter(|_| !space.leaving) else {
                space.wanted = None;
                continue;
            };
            let spec = &entry.namespace.spec;
            if (spec.retention, spec.durability) == (retention, Durability::single(durability)) {
                (space.wanted, space.durability) = (None, durability);
                self.evidence.count(Kind::NamespaceUpdated);
                continue;
            }
            space.durability = space.durability.min(durability);
            space.weak |= durability < Synced::Fsync;
            space.shrinks |= retention != Retention::default();
            for log in space.map.logs(Lane::Normal) {
                self.evidence.ledger.respecify(log, space.durability);
            }
            let version = entry.namespace.version;
            let stale = self.chance.chance(200_000);
            self.refusable = stale;
            let command = Command::UpdateNamespace {
                name: space.name.clone(),
                logs: None,
                retention: Some(retention),
                durability: Some(Durability::single(durability)),
                storage: None,
                based_on: Some(version - u64::from(stale)),
            };
            self.command(command);
            return true;
        }
        false
    }

    fn tell_map(&mut self, space: Space) {
        // Made in an earlier process, perhaps, and not seen before it ended.
        if space.weak && self.boots > 1 {
            self.evidence
                .ledger
                .bereft
                .extend(space.map.logs(Lane::Normal));
        }
        for publisher in &mut self.publishers {
            publisher.core.set_map(space.map.clone());
        }
        for client in &mut self.clients {
            client.core.set_map(&space.map);
        }
        self.spaces.push(space);
    }

    fn command(&mut self, command: Command) {
        self.last_command += 1;
        let id = CommandId(self.last_command);
        self.asked = Some(id);
        let principal = Principal::default();
        if let Some(node) = &mut self.node {
            let input = ClientInput::Command {
                id,
                principal,
                command,
            };
            node.input(self.weather.now, input);
        }
    }

    /// A command has been answered.
    pub(super) fn outcome(&mut self, id: CommandId, outcome: Result<Outcome, Error>) -> Checked {
        if self.asked != Some(id) {
            let detail = format!("{id:?} has a second answer: {outcome:?}");
            return Err(Violation::new("contract", detail));
        }
        self.asked = None;
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
                let again = [ErrorCode::NamespaceExists, ErrorCode::NamespaceNotFound];
                if error.code() == ErrorCode::NamespaceChanged && self.refusable {
                    self.evidence.count(Kind::NamespaceRefused);
                    return Ok(());
                }
                let may_pass = error.code().retriable()
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
        self.command(Command::ListTopics { namespace, page });
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
