//! Namespaces: made when the node first has time for it, one of them deleted later, and topics
//! listed.

use super::{Plan, Space, World};
use crate::batching::topic_name;
use crate::invariants::{Checked, Violation};
use airmail_broker::{Command, CommandId, Input, Outcome, Principal};
use airmail_log::TopicPage;
use airmail_model::{Durability, Error, ErrorCode, Lane, Retention};

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
                        durability: plan.durability,
                        shrinks: plan.retention != Retention::default(),
                        doomed: false,
                        leaving: false,
                    };
                    self.plans.remove(0);
                    self.tell_map(space);
                }
                None => self.command(create(plan)),
            }
            return;
        }
        let doomed = self.spaces.iter_mut().find(|space| space.doomed);
        let Some(space) = doomed.filter(|space| catalog.by_name(&space.name).is_some()) else {
            return;
        };
        space.leaving = true;
        let name = space.name.clone();
        self.command(Command::DeleteNamespace {
            name,
            based_on: None,
        });
    }

    fn tell_map(&mut self, space: Space) {
        // Made in an earlier process, perhaps, and not seen before it ended.
        if space.durability < Durability::Fsync && self.boots > 1 {
            self.ledger.bereft.extend(space.map.logs(Lane::Normal));
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
            let input = Input::Command {
                id,
                principal,
                command,
            };
            node.input(self.now, input);
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
            Ok(Outcome::Topics { topics, .. }) => {
                self.listed = Some(topics.into_iter().map(|topic| topic.name).collect());
            }
            Ok(_) => {}
            // A command that was under way when the process ended may have been done all the same.
            Err(error) => {
                let again = [ErrorCode::NamespaceExists, ErrorCode::NamespaceNotFound];
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

    /// Asks for a namespace's topics.
    pub(super) fn list(&mut self, at: usize) {
        self.listed = None;
        let page = TopicPage {
            prefix: String::new(),
            after: String::new(),
            limit: 100,
        };
        let namespace = self.spaces[at].id;
        self.command(Command::ListTopics { namespace, page });
    }

    /// Every topic with a message that must be there has been listed, in order.
    pub(super) fn check_listed(&self, at: usize) -> Checked {
        let space = &self.spaces[at];
        let listed = self.listed.clone().unwrap_or_default();
        let missing = (0..super::TOPICS).map(topic_name).find(|name| {
            let hash = name.hash(space.id);
            let held = self.ledger.iter().any(|(id, entry)| {
                entry.log.namespace == space.id
                    && entry.topic == hash
                    && entry.acked.is_some()
                    && !self.ledger.may_be_missing(id)
            });
            held && !space.shrinks && !listed.iter().any(|topic| topic == name.as_str())
        });
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
        durability: Some(plan.durability),
    }
}
