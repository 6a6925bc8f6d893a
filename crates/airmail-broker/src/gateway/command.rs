//! Unary calls: who may, and whose they are. Namespaces are the catalog's; listings are made here, of what
//! the tower tells of each log.

use super::{Gateway, GatewayEffects};
use crate::access::{Action, Principal};
use crate::catalog::CommandRefusal;
use crate::input::{Command, CommandId, Outcome};
use airmail_log::TopicPage;
use airmail_model::{Error, NamespaceId};

impl Gateway {
    /// A unary call.
    pub(super) fn command(
        &mut self,
        id: CommandId,
        principal: &Principal,
        command: Command,
        out: &mut GatewayEffects,
    ) {
        let action = match &command {
            Command::ListTopics { namespace, .. } => Action::ListTopics(*namespace),
            _ => Action::Administer,
        };
        if let Err(error) = self.access.authorizer.authorize(principal, action) {
            return self.answer_command(id, Err(error), out);
        }
        match command {
            Command::ListTopics { namespace, page } => {
                if let Err(error) = self.list(id, namespace, page, out) {
                    self.answer_command(id, Err(error), out);
                }
            }
            command => out.commands.push_back((id, command)),
        }
    }

    fn list(
        &mut self,
        id: CommandId,
        namespace: NamespaceId,
        page: TopicPage,
        out: &mut GatewayEffects,
    ) -> Result<(), Error> {
        if !self.namespaces.is_ready {
            return Err(self.busy("node"));
        }
        self.list_topics(id, namespace, page, out)
    }

    pub(super) fn answer_command(
        &mut self,
        id: CommandId,
        result: Result<Outcome, Error>,
        out: &mut GatewayEffects,
    ) {
        if let Err(error) = &result {
            self.stats.refuse(error.code());
        }
        out.outcomes.push((id, result));
    }

    /// The catalog has answered a client's command.
    pub(super) fn command_answered(
        &mut self,
        id: CommandId,
        result: Result<Outcome, CommandRefusal>,
        out: &mut GatewayEffects,
    ) {
        let result = result.map_err(|refusal| match refusal {
            CommandRefusal::NotReady => self.busy("node"),
            CommandRefusal::QueueFull { commands_max } => {
                let limit = format!("{commands_max} commands that wait");
                self.busy("commands").limit(limit)
            }
            CommandRefusal::Failed(error) => error,
        });
        self.answer_command(id, result, out);
    }
}
