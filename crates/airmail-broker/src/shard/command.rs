//! Unary calls: who may, and whose they are. Namespaces are the catalog's, listings the logs'.

use super::Shard;
use crate::access::{Action, Principal};
use crate::catalog::CatalogInput;
use crate::input::{Command, CommandId, Effects, Outcome};
use airmail_log::TopicPage;
use airmail_model::{Error, NamespaceId, Now};

impl Shard {
    /// A unary call.
    pub(super) fn command(
        &mut self,
        now: Now,
        id: CommandId,
        principal: &Principal,
        command: Command,
        out: &mut Effects,
    ) {
        let action = match &command {
            Command::ListTopics { namespace, .. } => Action::ListTopics(*namespace),
            _ => Action::Administer,
        };
        if let Err(error) = self.authorizer.authorize(principal, action) {
            return self.answer_command(id, Err(error), out);
        }
        match command {
            Command::ListTopics { namespace, page } => {
                if let Err(error) = self.list(id, namespace, page, out) {
                    self.answer_command(id, Err(error), out);
                }
            }
            command => self.step_catalog(now, CatalogInput::Command { id, command }, out),
        }
    }

    fn list(
        &mut self,
        id: CommandId,
        namespace: NamespaceId,
        page: TopicPage,
        out: &mut Effects,
    ) -> Result<(), Error> {
        if !self.ready() {
            return Err(self.busy("node"));
        }
        self.list_topics(id, namespace, page, out)
    }

    pub(super) fn answer_command(
        &mut self,
        id: CommandId,
        result: Result<Outcome, Error>,
        out: &mut Effects,
    ) {
        if let Err(error) = &result {
            self.stats.refuse(error.code());
        }
        out.outcomes.push((id, result));
    }
}
