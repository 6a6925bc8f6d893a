//! Namespace commands as they stand in log 0.
//!
//! What each does to the namespaces is the fold's (`fold.rs`). Encoding, little endian, in the payload of
//! one record of a control batch (whose checksums protect it): version u8 (1 to 8), kind u8, the number of a namespace
//! (from 11 on: of a role) u32, then
//! - 1 create: logs u16, settings, name (length u8, bytes), from version 3 on the storage's name (length u8,
//!   bytes), and in version 4 its provisions (length u8, bytes)
//! - 2 update: based on u64, settings
//! - 3 delete: based on u64
//! - 4 purged: nothing more; in version 5 the epoch of a map that was retired, u32
//! - 5 raise: version u8; of namespace 0
//! - 6 move, in version 5: based on u64, the storage's name, provisions (length u8, bytes each)
//! - 7 retired, in version 5: the epoch of an earlier map u32, logs u16, where each of them ended u64; in version 8 then
//!   where those of the high lane ended, as many u64
//! - 8 suspend, in version 6: a log (lane u8, index u16), its life u64, the life that follows if the loss is accepted u64,
//!   where it was cut u64 (0: all is lost), where it ended u64
//! - 9 truncate, in version 6: a log, the count of its cuts with this one u32, where it was cut u64
//! - 10 recreate, in version 6: based on u64, provisions (length u8, bytes)
//! - 11 create a role, in version 7: name (length u8, bytes)
//! - 12 delete a role, in version 7: nothing more
//! - 13 add lane high, in version 8: nothing more
//!
//! with settings = synced u8, retention time ms u64, retention bytes u64 (`u64::MAX`: without), and from version
//! 2 on copies u8, at least 2 in version 2. A version 3 is only of a create in a storage that has a
//! name, a version 4 only of one for which the storage has provisioned, a version 5 only of what moves have brought, a
//! version 6 only of what losses have, a version 7 only of roles, a version 8 only of what lane high has.
//!
//! A command is written in the lowest version that can say it, so that nodes which know no later one read it.
//! One that needs a later version than log 0 was raised to goes behind a raise, in the same batch: without it
//! the command would be void for some nodes and not for others. A raise is written only where every live
//! member reads the version; a node is its only member so far. A node that meets a raise to a version which
//! it does not know stops folding as if it knew: log 0 is torn for it (`system_log.rs`).

mod reader;

use airmail_log::{LogLoss, Needs};
use airmail_model::batch::BatchTarget;
use airmail_model::{
    Batch, BatchEncoder, Checked, Durability, Error, Limits, LogId, MapEpoch, Message, NamespaceId,
    NamespaceSpec, Provisions, Retention, RoleId, Sequence, StorageName, TopicName, Wall, bug,
};
use reader::Reader;

/// Version of commands whose settings have one copy.
const ONE_COPY: u8 = 1;
/// Version of commands whose settings say how many copies there are.
const COPIES: u8 = 2;
/// Version of a create that says in which storage the logs are.
const STORAGE: u8 = 3;
/// Version of a create that has the storage's provisions.
const PROVISIONS: u8 = 4;
/// Version of moves, and of what becomes of earlier logs.
const MOVES: u8 = 5;
/// Version of losses, and of what is decided about them.
const LOSSES: u8 = 6;
/// Version of roles.
const ROLES: u8 = 7;
/// Version of lane high, and of what becomes of its logs.
const LANES: u8 = 8;
const CREATE: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const PURGED: u8 = 4;
const RAISE: u8 = 5;
const MOVE: u8 = 6;
const RETIRED: u8 = 7;
const SUSPEND: u8 = 8;
const TRUNCATE: u8 = 9;
const RECREATE: u8 = 10;
const CREATE_ROLE: u8 = 11;
const DELETE_ROLE: u8 = 12;
const ADD_HIGH: u8 = 13;
/// Version of commands in a log 0 that was never raised.
pub(super) const FIRST_VERSION: u8 = ONE_COPY;
/// The latest version that this program reads.
pub(super) const LAST_VERSION: u8 = LANES;
/// The topic of commands, in namespace 0.
const TOPIC: &str = "namespaces";
/// The map of log 0, for ever.
pub(super) const SYSTEM_EPOCH: MapEpoch = MapEpoch(1);

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// There is to be a namespace of this number and name. Void unless both are free.
    Create {
        id: NamespaceId,
        name: String,
        spec: NamespaceSpec,
        /// Provisions of its storage for it.
        provisions: Provisions,
    },
    /// It is to be kept otherwise.
    Update {
        id: NamespaceId,
        based_on: u64,
        retention: Retention,
        durability: Durability,
    },
    /// It is to be no more.
    Delete { id: NamespaceId, based_on: u64 },
    /// Nothing of it is left in the storage; or of the logs of its earlier map of this epoch.
    Purged {
        id: NamespaceId,
        epoch: Option<MapEpoch>,
    },
    /// Commands up to this version count from here on.
    Raise { version: u8 },
    /// It is to have logs of lane high, too. Void if it has.
    AddHigh { id: NamespaceId },
    /// Its logs are to be in another storage from here on.
    Move {
        id: NamespaceId,
        based_on: u64,
        storage: StorageName,
        /// Provisions that this storage has made for it beforehand.
        provisions: Provisions,
    },
    /// Retention has left nothing in the logs of an earlier map: they are to be no more.
    Retired {
        id: NamespaceId,
        epoch: MapEpoch,
        /// Where each of them ended, in order of index.
        ends: Vec<Sequence>,
        /// Where each of lane high ended, likewise, if that map had such.
        high_ends: Vec<Sequence>,
    },
    /// A log's storage has lost something of it: it stops.
    Suspend { log: LogId, loss: LogLoss },
    /// The loss of a log's end is accepted: it goes on where it was cut, in a new life.
    Truncate {
        log: LogId,
        /// Number of its cuts, with this one.
        cuts: u32,
        at: Sequence,
    },
    /// All logs of its map are lost: it is to have new ones where it is.
    Recreate {
        id: NamespaceId,
        based_on: u64,
        /// Provisions that its storage has made for it beforehand.
        provisions: Provisions,
    },
    /// There is to be a role of this number and name. Void unless both are free.
    CreateRole { id: RoleId, name: String },
    /// A role is to be no more. What is addressed to it stays so.
    DeleteRole { id: RoleId },
}

impl Change {
    /// The namespace that it is about; log 0's own for what is about none.
    pub(super) fn id(&self) -> NamespaceId {
        match self {
            Change::Create { id, .. }
            | Change::Update { id, .. }
            | Change::Delete { id, .. }
            | Change::Purged { id, .. }
            | Change::Move { id, .. }
            | Change::Retired { id, .. }
            | Change::AddHigh { id }
            | Change::Recreate { id, .. } => *id,
            Change::Suspend { log, .. } | Change::Truncate { log, .. } => log.namespace,
            Change::Raise { .. } | Change::CreateRole { .. } | Change::DeleteRole { .. } => {
                LogId::SYSTEM.namespace
            }
        }
    }

    /// The number that it is about, as it is written.
    fn number(&self) -> u32 {
        match self {
            Change::CreateRole { id, .. } | Change::DeleteRole { id } => id.0,
            other => other.id().0,
        }
    }

    /// The lowest version of the encoding that can say it.
    pub(super) fn version(&self) -> u8 {
        match self {
            Change::AddHigh { .. } => LANES,
            Change::Retired { high_ends, .. } if !high_ends.is_empty() => LANES,
            Change::CreateRole { .. } | Change::DeleteRole { .. } => ROLES,
            Change::Suspend { .. } | Change::Truncate { .. } | Change::Recreate { .. } => LOSSES,
            Change::Move { .. }
            | Change::Retired { .. }
            | Change::Purged { epoch: Some(_), .. } => MOVES,
            Change::Create { provisions, .. } if !provisions.is_none() => PROVISIONS,
            Change::Create { spec, .. } if !spec.storage.is_first() => STORAGE,
            Change::Create {
                spec: NamespaceSpec { durability, .. },
                ..
            }
            | Change::Update { durability, .. }
                if durability.copies > 1 =>
            {
                COPIES
            }
            _ => ONE_COPY,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Change::Create { .. } => CREATE,
            Change::Update { .. } => UPDATE,
            Change::Delete { .. } => DELETE,
            Change::Purged { .. } => PURGED,
            Change::Raise { .. } => RAISE,
            Change::Move { .. } => MOVE,
            Change::Retired { .. } => RETIRED,
            Change::Suspend { .. } => SUSPEND,
            Change::Truncate { .. } => TRUNCATE,
            Change::Recreate { .. } => RECREATE,
            Change::CreateRole { .. } => CREATE_ROLE,
            Change::DeleteRole { .. } => DELETE_ROLE,
            Change::AddHigh { .. } => ADD_HIGH,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let version = self.version();
        let mut out = vec![version, self.kind()];
        out.extend(self.number().to_le_bytes());
        match self {
            Change::Create {
                name,
                spec,
                provisions,
                ..
            } => {
                out.extend(spec.logs.to_le_bytes());
                settings(&mut out, version, spec.durability, spec.retention);
                counted(&mut out, name.as_bytes());
                if version >= STORAGE {
                    counted(&mut out, spec.storage.as_str().as_bytes());
                }
                if version >= PROVISIONS {
                    counted(&mut out, provisions.as_bytes());
                }
            }
            Change::Update {
                based_on,
                retention,
                durability,
                ..
            } => {
                out.extend(based_on.to_le_bytes());
                settings(&mut out, version, *durability, *retention);
            }
            Change::Delete { based_on, .. } => out.extend(based_on.to_le_bytes()),
            Change::CreateRole { name, .. } => counted(&mut out, name.as_bytes()),
            Change::DeleteRole { .. } | Change::AddHigh { .. } => {}
            Change::Purged { epoch, .. } => {
                out.extend(epoch.iter().flat_map(|epoch| epoch.0.to_le_bytes()));
            }
            Change::Raise { version } => out.push(*version),
            Change::Move {
                based_on,
                storage,
                provisions,
                ..
            } => {
                out.extend(based_on.to_le_bytes());
                counted(&mut out, storage.as_str().as_bytes());
                counted(&mut out, provisions.as_bytes());
            }
            Change::Retired {
                epoch,
                ends,
                high_ends,
                ..
            } => {
                out.extend(epoch.0.to_le_bytes());
                out.extend(u16::try_from(ends.len()).unwrap_or(u16::MAX).to_le_bytes());
                let all = ends.iter().chain(high_ends);
                out.extend(all.flat_map(|end| end.0.to_le_bytes()));
            }
            Change::Suspend { .. } | Change::Truncate { .. } | Change::Recreate { .. } => {
                self.encode_loss(&mut out);
            }
        }
        out
    }

    /// The same of what is said of losses.
    fn encode_loss(&self, out: &mut Vec<u8>) {
        match self {
            Change::Suspend { log, loss } => {
                log_in(out, *log);
                let at = loss.at.unwrap_or_default();
                for number in [loss.life.0, loss.next_life.0, at.0, loss.end.0] {
                    out.extend(number.to_le_bytes());
                }
            }
            Change::Truncate { log, cuts, at } => {
                log_in(out, *log);
                out.extend(cuts.to_le_bytes());
                out.extend(at.0.to_le_bytes());
            }
            Change::Recreate {
                based_on,
                provisions,
                ..
            } => {
                out.extend(based_on.to_le_bytes());
                counted(out, provisions.as_bytes());
            }
            other => bug!("{other:?} is about no loss"),
        }
    }

    /// Reads what `encode` wrote; `None` for anything else, such as a later version's command or a
    /// namespace that no node of this version would have made.
    pub(super) fn decode(bytes: &[u8]) -> Option<Change> {
        let mut from = Reader::new(bytes);
        let version = from.u8()?;
        if !(FIRST_VERSION..=LAST_VERSION).contains(&version) {
            return None;
        }
        let kind = from.u8()?;
        let id = NamespaceId(u32::from_le_bytes(from.take()?));
        let change = match kind {
            CREATE => from.create(id, version)?,
            UPDATE => {
                let based_on = u64::from_le_bytes(from.take()?);
                let (durability, retention) = from.settings(version)?;
                Change::Update {
                    id,
                    based_on,
                    retention,
                    durability,
                }
            }
            DELETE => Change::Delete {
                id,
                based_on: u64::from_le_bytes(from.take()?),
            },
            PURGED => Change::Purged {
                id,
                epoch: match version {
                    MOVES => Some(from.epoch()?),
                    _ => None,
                },
            },
            MOVE => Change::Move {
                id,
                based_on: u64::from_le_bytes(from.take()?),
                storage: from.storage()?,
                provisions: Provisions::new(from.bytes()?)?,
            },
            RETIRED => from.retired(id, version)?,
            SUSPEND => Change::Suspend {
                log: from.log(id)?,
                loss: from.loss()?,
            },
            TRUNCATE => Change::Truncate {
                log: from.log(id)?,
                cuts: u32::from_le_bytes(from.take()?),
                at: from.sequence()?,
            },
            RECREATE => Change::Recreate {
                id,
                based_on: u64::from_le_bytes(from.take()?),
                provisions: Provisions::new(from.bytes()?)?,
            },
            CREATE_ROLE => Change::CreateRole {
                id: RoleId(id.0),
                name: from.role_name()?,
            },
            DELETE_ROLE => Change::DeleteRole { id: RoleId(id.0) },
            ADD_HIGH => Change::AddHigh { id },
            RAISE if id == LogId::SYSTEM.namespace => Change::Raise {
                version: from.u8()?,
            },
            _ => return None,
        };
        // What says it in a later version than it needs is no command: nodes that know no later one would not
        // read it.
        (from.is_at_end() && change.version() == version).then_some(change)
    }

    /// The control batch that carries it; behind a raise, if log 0 was raised to `raised` only.
    ///
    /// # Errors
    /// None that is known: a command is far below every limit.
    pub(super) fn to_batch(&self, wall: Wall, raised: u8) -> Result<Checked<Batch>, Error> {
        let version = self.version();
        let raise = (version > raised).then_some(Change::Raise { version });
        let mut encoder = BatchEncoder::new(LogId::SYSTEM.namespace);
        for change in raise.iter().chain([self]) {
            let topic = TopicName::new(TOPIC, &Limits::DEFAULT)?;
            let message = Message::new(topic, change.encode());
            let pushed = encoder.push(&message, wall.0, &Limits::DEFAULT);
            if let Err(airmail_model::batch::PushError::Refused(error)) = pushed {
                return Err(error);
            }
        }
        encoder.control();
        Ok(encoder.finish(&BatchTarget {
            log: LogId::SYSTEM,
            epoch: SYSTEM_EPOCH,
            producer: None,
            producer_time: wall.0,
        }))
    }
}

fn settings(out: &mut Vec<u8>, version: u8, durability: Durability, retention: Retention) {
    out.push(durability.synced as u8);
    for limit in [retention.time_ms, retention.bytes] {
        out.extend(limit.unwrap_or(u64::MAX).to_le_bytes());
    }
    if version >= COPIES {
        out.push(durability.copies);
    }
}

/// A log of the namespace that stands before.
fn log_in(out: &mut Vec<u8>, log: LogId) {
    out.push(log.lane as u8);
    out.extend(log.index.0.to_le_bytes());
}

/// Knowledge that a program needs which reads log 0 with the commands in a batch, or what may be written after them.
#[must_use]
pub fn needed_by(batch: &Batch) -> Needs {
    let needs = |change: Change| {
        let raised = match change {
            Change::Raise { version } => version,
            _ => 0,
        };
        match change.version().max(raised) {
            ..ROLES => Needs::Nothing,
            ROLES => Needs::Roles,
            _ => Needs::Lanes,
        }
    };
    let changes = batch
        .iter()
        .filter_map(|record| Change::decode(record.payload));
    changes.map(needs).max().unwrap_or_default()
}

/// A length of one byte, and as many bytes.
fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
    out.extend(bytes.iter().take(usize::from(u8::MAX)));
}

#[cfg(test)]
mod tests;
