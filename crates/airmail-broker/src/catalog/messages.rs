//! Inputs and effects of the catalog: two closed enums, and their parts.
//!
//! Effects stand in one list, because their order matters: a log is opened before an append that relies
//! on it, and credit is given back before the next command is written.

use crate::config::FirstNamespace;
use crate::input::{Command, CommandId, Outcome};
use airmail_log::{
    Bounds, GapWhy, Kept, LogLoss, LogSpec, Origin, ReaderId, Refusal, StorageTraits, Stored,
};
use airmail_model::{
    Batch, Checked, Error, Extent, LogId, LogIndex, MapEpoch, NamespaceId, Provisions, Sequence,
    StorageName,
};
use std::collections::BTreeMap;

/// The settings of a [`CatalogCore`](super::CatalogCore).
#[derive(Clone, Debug)]
pub(crate) struct CatalogConfig {
    /// The first storage.
    pub(crate) first: StorageTraits,
    /// The further storages.
    pub(crate) storages: BTreeMap<StorageName, StorageTraits>,
    /// The storage provisions before a namespace is there.
    pub(crate) provisions: bool,
    /// Settings with which the namespace `default` is made on the first start.
    pub(crate) default_namespace: FirstNamespace,
    /// Bytes that the reader of log 0 may be ahead.
    pub(crate) read_window_bytes: u32,
    /// Commands that may wait for the one under way.
    pub(crate) commands_max: usize,
    /// A planted bug.
    #[cfg(feature = "sabotage")]
    pub(crate) bug: Option<crate::sabotage::Bug>,
}

/// Everything that can happen to a catalog.
#[derive(Debug)]
pub(crate) enum CatalogInput {
    /// The catalog begins.
    Start,
    /// Log 0 is open, and holds this.
    Opened(Bounds),
    /// The storage could not open log 0.
    OpenRefused(Refusal),
    /// The reader of log 0 gives its next batch.
    Batch { r: ReaderId, stored: Stored },
    /// The reader of log 0 will not get these numbers.
    Gap { extent: Extent, why: GapWhy },
    /// The reader of log 0 has given everything.
    Tail,
    /// The reader of log 0 has ended: the storage has failed it.
    ReaderEnded,
    /// An append to log 0 is durable.
    Appended { of: SystemAppend, extent: Extent },
    /// An append did not get into log 0, or may not have.
    AppendRefused { of: SystemAppend, why: Refusal },
    /// The storage has provisioned for the namespace of the command under way, or has not.
    Provisioned(Result<Provisions, Refusal>),
    /// A client, who may, wants namespaces changed.
    Command { id: CommandId, command: Command },
    /// A log that was ordered open or away is, or could not be.
    LogSettled {
        namespace: NamespaceId,
        result: Result<(), Error>,
    },
    /// Retention has left nothing in a log that ends there for ever.
    Emptied { log: LogId, end: Sequence },
    /// Something is published to lane high of a namespace.
    HighWanted(NamespaceId),
    /// The time has come to have storages keep to what log 0 names.
    Upkeep,
    /// The storage has lost something of a log. May be told again.
    Suspended { log: LogId, loss: LogLoss },
    /// The time has come that was asked for by [`CatalogEffect::RetryLater`].
    Retry,
}

/// Purposes of an append to log 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemAppend {
    /// The command under way.
    Command,
    /// A note that nothing is left of a deleted namespace, or of logs that it had earlier; or that something of a log is
    /// lost.
    Note,
}

/// Everything that a catalog can want done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CatalogEffect {
    /// Open log 0. Answered by `Opened` or `OpenRefused`.
    Open(LogSpec),
    /// Read log 0, with so much credit.
    Read { from: Sequence, credit_bytes: u32 },
    /// Give the reader of log 0 more credit.
    Credit { r: ReaderId, bytes: u32 },
    /// Have the storage provision for a namespace that is to be made, or to be moved there, of so many logs from the first
    /// one on. Answered by `Provisioned`.
    Provision {
        log: LogId,
        logs: u16,
        spec: LogSpec,
    },
    /// Have it remove what it made for one that will never be. Not answered: what is left is removed by its upkeep.
    Withdraw {
        log: LogId,
        logs: u16,
        origin: Origin,
    },
    /// Have a storage keep to what log 0 names. Not answered.
    Keep(Kept),
    /// Append to log 0. Answered by `Appended` or `AppendRefused`.
    Append {
        of: SystemAppend,
        batch: Checked<Batch>,
    },
    /// Do something to logs of namespaces.
    Order(Order),
    /// Answer a command.
    Answer {
        id: CommandId,
        result: Result<Outcome, CommandRefusal>,
    },
    /// Take note that [`CatalogCore::snapshot`](super::CatalogCore::snapshot) is another.
    Changed,
    /// Give [`CatalogInput::Retry`] after the usual delay.
    RetryLater,
}

/// Orders to the side that has the logs. Each log concerned is answered for by
/// [`CatalogInput::LogSettled`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Open a log, or keep an open one so from now on. One of an earlier map is sealed, too: `seal` is the map after it.
    Open {
        log: LogId,
        spec: LogSpec,
        seal: Option<MapEpoch>,
    },
    /// End all that logs of a namespace are used for, and delete them: so many from the first one on, where they
    /// came from, as the command `as_of` of log 0 says.
    Delete {
        namespace: NamespaceId,
        first: LogIndex,
        /// Number of them in each lane.
        logs: u16,
        /// There are some of lane high, too.
        has_high: bool,
        as_of: Sequence,
        origin: Origin,
    },
}

/// Reason for which a command was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandRefusal {
    /// The namespaces are not known yet, or not all of their logs are open.
    NotReady,
    /// The queue holds as many commands as may wait.
    QueueFull { commands_max: usize },
    /// The command cannot be done, or was not.
    Failed(Error),
}

/// Effects of a catalog's step, in order.
#[derive(Debug, Default)]
pub(crate) struct CatalogEffects {
    /// To be carried out from the first to the last.
    pub(crate) in_order: Vec<CatalogEffect>,
}

impl CatalogEffects {
    pub(super) fn push(&mut self, effect: CatalogEffect) {
        self.in_order.push(effect);
    }

    pub(super) fn answer(&mut self, id: CommandId, result: Result<Outcome, CommandRefusal>) {
        self.push(CatalogEffect::Answer { id, result });
    }
}
