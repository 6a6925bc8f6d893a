//! Parts of a command's bytes, one after the other. `None`: they are not there, or are nothing that a node of this
//! version would have written.

use super::{COPIES, Change, LANES, PROVISIONS, STORAGE};
use airmail_log::LogLoss;
use airmail_model::namespace::LOGS_MAX;
use airmail_model::{
    Durability, Incarnation, Lane, LogId, LogIndex, MapEpoch, Namespace, NamespaceId,
    NamespaceSpec, Provisions, Retention, Role, Sequence, StorageName, Synced,
};

/// Bytes that are left of a command.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// A length of one byte, and as many bytes.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.u8()?);
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// A create in this version.
    pub(super) fn create(&mut self, id: NamespaceId, version: u8) -> Option<Change> {
        let logs = u16::from_le_bytes(self.take()?);
        let (durability, retention) = self.settings(version)?;
        let name = self.text()?;
        let storage = match version {
            PROVISIONS => self.storage()?,
            STORAGE => StorageName::new(self.text()?)?,
            _ => StorageName::FIRST,
        };
        let provisions = match version {
            PROVISIONS => Provisions::new(self.bytes()?)?,
            _ => Provisions::NONE,
        };
        if Namespace::check_name(name).is_err() || !(1..=LOGS_MAX).contains(&logs) {
            return None;
        }
        Some(Change::Create {
            id,
            name: name.to_owned(),
            spec: NamespaceSpec {
                logs,
                retention,
                durability,
                storage,
            },
            provisions,
        })
    }

    /// A name that a role can have.
    pub(super) fn role_name(&mut self) -> Option<String> {
        let name = self.text()?;
        Role::check_name(name).ok()?;
        Some(name.to_owned())
    }

    /// A storage's name, which the first one has not.
    pub(super) fn storage(&mut self) -> Option<StorageName> {
        match self.text()? {
            "" => Some(StorageName::FIRST),
            name => StorageName::new(name),
        }
    }

    pub(super) fn log(&mut self, namespace: NamespaceId) -> Option<LogId> {
        Some(LogId {
            namespace,
            lane: Lane::from_u8(self.u8()?)?,
            index: LogIndex(u16::from_le_bytes(self.take()?)),
        })
    }

    pub(super) fn loss(&mut self) -> Option<LogLoss> {
        let mut number = || self.take().map(u64::from_le_bytes);
        let (life, next_life) = (Incarnation(number()?), Incarnation(number()?));
        let (at, end) = (Sequence(number()?), Sequence(number()?));
        let at = (at != Sequence(0)).then_some(at);
        Some(LogLoss {
            life,
            next_life,
            at,
            end,
        })
    }

    pub(super) fn sequence(&mut self) -> Option<Sequence> {
        self.take().map(u64::from_le_bytes).map(Sequence)
    }

    /// A count of two bytes, and as many numbers at which logs ended.
    fn ends(&mut self) -> Option<Vec<Sequence>> {
        let logs = u16::from_le_bytes(self.take()?);
        self.sequences(logs.into())
    }

    /// A retired in this version.
    pub(super) fn retired(&mut self, id: NamespaceId, version: u8) -> Option<Change> {
        let epoch = self.epoch()?;
        let ends = self.ends()?;
        let high_ends = match version {
            LANES => self.sequences(ends.len())?,
            _ => Vec::new(),
        };
        Some(Change::Retired {
            id,
            epoch,
            ends,
            high_ends,
        })
    }

    /// Numbers, as many as that.
    fn sequences(&mut self, count: usize) -> Option<Vec<Sequence>> {
        (0..count).map(|_| self.sequence()).collect()
    }

    pub(super) fn epoch(&mut self) -> Option<MapEpoch> {
        self.take().map(u32::from_le_bytes).map(MapEpoch)
    }

    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn settings(&mut self, version: u8) -> Option<(Durability, Retention)> {
        let synced = Synced::from_u8(self.u8()?)?;
        let mut limit = || -> Option<Option<u64>> {
            let value = u64::from_le_bytes(self.take()?);
            Some((value != u64::MAX).then_some(value))
        };
        let (time_ms, bytes) = (limit()?, limit()?);
        let copies = if version >= COPIES { self.u8()? } else { 1 };
        if copies == 0 {
            return None;
        }
        let durability = Durability { synced, copies };
        Some((durability, Retention { time_ms, bytes }))
    }
}
