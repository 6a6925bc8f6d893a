//! Inputs and effects of the tower.

use crate::catalog::{CatalogInput, Order, SystemAppend};
use crate::link::{FromTower, ToTower};
use airmail_log::{Call, Completion, Kept, LogSpec, Origin, ReaderId};
use airmail_model::{Batch, Checked, LogId, Sequence};
use std::collections::VecDeque;

/// Everything that can happen to a tower.
#[derive(Debug)]
pub(crate) enum TowerInput {
    /// The gateway tells something.
    FromGateway(ToTower),
    /// The storage tells something.
    Storage(Completion),
    /// The catalog wants something of a namespace's logs.
    Order(Order),
    /// The catalog wants log 0 opened.
    OpenSystem(LogSpec),
    /// The catalog wants log 0 read.
    ReadSystem { from: Sequence, credit_bytes: u32 },
    /// The catalog lets the reader of log 0 give more.
    CreditSystem { r: ReaderId, bytes: u32 },
    /// The catalog wants provisions for a namespace of so many logs, from this one on.
    Provision {
        log: LogId,
        logs: u16,
        spec: LogSpec,
    },
    /// The catalog wants provisions removed.
    Withdraw {
        log: LogId,
        logs: u16,
        origin: Origin,
    },
    /// The catalog has a storage keep what log 0 names.
    Keep(Kept),
    /// The catalog appends to log 0.
    AppendSystem {
        of: SystemAppend,
        batch: Checked<Batch>,
    },
    /// The shard wants to know where log 0 ends.
    AskSystemEnd,
    /// The catalog wants to try again later.
    RetrySystem,
    /// Time has passed.
    Timer,
}

/// Everything that a tower can want done.
#[derive(Debug, Default)]
pub(crate) struct TowerEffects {
    /// To be asked of the storage, in order.
    pub(crate) storage: Vec<Call>,
    /// For the gateway, in order.
    pub(crate) to_gateway: VecDeque<FromTower>,
    /// For the catalog, in order.
    pub(crate) to_catalog: VecDeque<CatalogInput>,
    /// The end of log 0, if that was asked and is answered; `None` in it: the storage cannot say.
    pub(crate) system_end: Option<Option<Sequence>>,
}

impl TowerEffects {
    pub(super) fn tell(&mut self, message: FromTower) {
        self.to_gateway.push_back(message);
    }

    pub(super) fn call(&mut self, call: Call) {
        self.storage.push(call);
    }
}
