//! Little-endian reading and writing of the journal's small structures, with a checksum in front.

use super::format::u32_at;
use super::id::{BlockId, BlockIndex, FileOffset, SegmentId, Slot};
use super::tombstones::Tombstone;
use crate::contract::{LogSpec, Soundness};
use airmail_model::{
    AppendTime, Durability, Incarnation, Lane, LogId, LogIndex, MapEpoch, NamespaceId, Provisions,
    Retention, Sequence, StorageName, Synced,
};
use bytes::Bytes;

/// Gathers bytes behind the place of a checksum.
#[derive(Debug)]
pub(super) struct Writer(Vec<u8>);

impl Default for Writer {
    fn default() -> Writer {
        Writer(vec![0; 4])
    }
}

impl Writer {
    pub(super) fn u8(&mut self, value: u8) -> &mut Writer {
        self.0.push(value);
        self
    }

    pub(super) fn u16(&mut self, value: u16) -> &mut Writer {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Writer {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Writer {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn i64(&mut self, value: i64) -> &mut Writer {
        self.u64(value.cast_unsigned())
    }

    pub(super) fn slot(&mut self, slot: Slot) -> &mut Writer {
        self.u32(slot.0)
    }

    pub(super) fn segment(&mut self, segment: SegmentId) -> &mut Writer {
        self.u64(segment.0)
    }

    pub(super) fn block(&mut self, block: BlockId) -> &mut Writer {
        self.segment(block.segment).u32(block.block.0)
    }

    pub(super) fn offset(&mut self, offset: FileOffset) -> &mut Writer {
        self.u64(offset.0)
    }

    pub(super) fn sequence(&mut self, number: Sequence) -> &mut Writer {
        self.u64(number.0)
    }

    pub(super) fn time(&mut self, time: AppendTime) -> &mut Writer {
        self.i64(time.0)
    }

    pub(super) fn epoch(&mut self, epoch: MapEpoch) -> &mut Writer {
        self.u32(epoch.0)
    }

    pub(super) fn incarnation(&mut self, incarnation: Incarnation) -> &mut Writer {
        self.u64(incarnation.0)
    }

    pub(super) fn count(&mut self, count: usize) -> &mut Writer {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX))
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn log(&mut self, log: LogId) -> &mut Writer {
        self.u32(log.namespace.0)
            .u8(log.lane as u8)
            .u16(log.index.0)
    }

    fn spec(&mut self, spec: &LogSpec) -> &mut Writer {
        // A journal has one copy, and no log in it asks for more.
        self.u8(spec.durability.synced as u8).epoch(spec.epoch);
        let retention = spec.retention;
        for bound in [retention.time_ms, retention.bytes] {
            self.u8(u8::from(bound.is_some())).u64(bound.unwrap_or(0));
        }
        self
    }

    /// A spec with its place in log 0.
    pub(super) fn spec_as_of(&mut self, spec: &LogSpec) -> &mut Writer {
        self.spec(spec).sequence(spec.as_of)
    }

    pub(super) fn tombstone(&mut self, tombstone: Tombstone) -> &mut Writer {
        self.log(tombstone.log).sequence(tombstone.as_of)
    }

    /// Number of bytes gathered, with the place of the checksum.
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    /// All of it, with the checksum in its place.
    pub(super) fn with_crc(self) -> Vec<u8> {
        self.with_crc_of(&[])
    }

    /// The same, with a checksum that covers what stands before it as well.
    pub(super) fn with_crc_of(mut self, before: &[u8]) -> Vec<u8> {
        let crc = crc32c::crc32c_append(crc32c::crc32c(before), &self.0[4..]);
        self.0[..4].copy_from_slice(&crc.to_le_bytes());
        self.0
    }
}

/// Takes bytes apart; every method is `None` at the end.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads the output of a [`Writer`]; `None` if the checksum does not hold.
    pub(super) fn checked(bytes: &'a [u8]) -> Option<Reader<'a>> {
        Reader::checked_with(&[], bytes)
    }

    /// The same, where the checksum covers what stands before it as well.
    pub(super) fn checked_with(before: &[u8], bytes: &'a [u8]) -> Option<Reader<'a>> {
        let rest = bytes.get(4..)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(before), rest);
        (u32_at(bytes, 0) == crc).then_some(Reader(rest))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    /// A count of bytes, and these.
    pub(super) fn bytes(&mut self) -> Option<Bytes> {
        let length = self.count(1)?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Bytes::copy_from_slice(taken))
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|b| b[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.u64().map(u64::cast_signed)
    }

    pub(super) fn slot(&mut self) -> Option<Slot> {
        self.u32().map(Slot)
    }

    pub(super) fn segment(&mut self) -> Option<SegmentId> {
        self.u64().map(SegmentId)
    }

    pub(super) fn block(&mut self) -> Option<BlockId> {
        Some(BlockId {
            segment: self.segment()?,
            block: BlockIndex(self.u32()?),
        })
    }

    pub(super) fn offset(&mut self) -> Option<FileOffset> {
        self.u64().map(FileOffset)
    }

    pub(super) fn sequence(&mut self) -> Option<Sequence> {
        self.u64().map(Sequence)
    }

    pub(super) fn time(&mut self) -> Option<AppendTime> {
        self.i64().map(AppendTime)
    }

    pub(super) fn epoch(&mut self) -> Option<MapEpoch> {
        self.u32().map(MapEpoch)
    }

    pub(super) fn incarnation(&mut self) -> Option<Incarnation> {
        self.u64().map(Incarnation)
    }

    /// Reads a count of things of at least `bytes` each; `None` if the input is too short for them.
    pub(super) fn count(&mut self, bytes: usize) -> Option<usize> {
        let count = usize::try_from(self.u32()?).ok()?;
        (count.checked_mul(bytes)? <= self.0.len()).then_some(count)
    }

    pub(super) fn log(&mut self) -> Option<LogId> {
        Some(LogId {
            namespace: NamespaceId(self.u32()?),
            lane: Lane::from_u8(self.u8()?)?,
            index: LogIndex(self.u16()?),
        })
    }

    /// A spec as versions before wrote it: of no place in log 0.
    pub(super) fn spec(&mut self) -> Option<LogSpec> {
        let durability = Durability::single(Synced::from_u8(self.u8()?)?);
        let epoch = self.epoch()?;
        let mut bounds = [None; 2];
        for bound in &mut bounds {
            let given = self.u8()? != 0;
            let value = self.u64()?;
            *bound = given.then_some(value);
        }
        let retention = Retention {
            time_ms: bounds[0],
            bytes: bounds[1],
        };
        Some(LogSpec {
            durability,
            retention,
            epoch,
            as_of: Sequence(0),
            storage: StorageName::FIRST,
            provisions: Provisions::NONE,
            soundness: Soundness::default(),
        })
    }

    pub(super) fn spec_as_of(&mut self) -> Option<LogSpec> {
        let spec = self.spec()?;
        let as_of = self.sequence()?;
        Some(LogSpec { as_of, ..spec })
    }

    pub(super) fn tombstone(&mut self) -> Option<Tombstone> {
        Some(Tombstone {
            log: self.log()?,
            as_of: self.sequence()?,
        })
    }
}
