//! Inputs and effects of the gateway.

use crate::catalog::{Catalog, CommandRefusal};
use crate::input::{ClientInput, Command, CommandId, Outcome, SessionId};
use crate::link::{FromTower, ToTower};
use airmail_model::Error;
use airmail_model::frame::Reply;
use std::collections::VecDeque;
use std::sync::Arc;

/// Everything that can happen to a gateway.
#[derive(Debug)]
pub(crate) enum GatewayInput {
    /// A client, or its connection, has done something.
    Client(ClientInput),
    /// The tower tells something.
    FromTower(FromTower),
    /// The namespaces as they are now, and whether all of their logs are open or have failed to.
    Namespaces {
        catalog: Arc<Catalog>,
        is_ready: bool,
    },
    /// The catalog has answered a command.
    Answered {
        id: CommandId,
        result: Result<Outcome, CommandRefusal>,
    },
    /// Time has passed.
    Timer,
}

/// Everything that a gateway can want done.
#[derive(Debug, Default)]
pub(crate) struct GatewayEffects {
    /// To be sent to clients, in order for each session.
    pub(crate) replies: Vec<(SessionId, Reply)>,
    /// Answers to unary calls.
    pub(crate) outcomes: Vec<(CommandId, Result<Outcome, Error>)>,
    /// Streams of which it is to be told what they take.
    pub(crate) watch: Vec<SessionId>,
    /// For the tower, in order.
    pub(crate) to_tower: VecDeque<ToTower>,
    /// Commands of clients who may, for the catalog.
    pub(crate) commands: VecDeque<(CommandId, Command)>,
}

impl GatewayEffects {
    pub(super) fn tell(&mut self, message: ToTower) {
        self.to_tower.push_back(message);
    }

    pub(super) fn reply(&mut self, session: SessionId, reply: Reply) {
        self.replies.push((session, reply));
    }
}
