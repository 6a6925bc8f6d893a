//! The one place where bytes become a batch.
//!
//! A check goes over the bytes once, in an order that never reads a place before its presence is
//! known: sizes, the header's checksum, then the header's fields, topics, records, bodies. The same
//! walk serves all entrances: [`Batch::check`] for bytes from a client, which also enforces the
//! limits and refuses reserved features; [`Batch::check_stored`] for bytes that a node once
//! took, where a damaged body condemns its own record only; and [`Batch::check_headers`] for what a
//! subscriber gets that asked for no payloads.

mod tables;

use super::Checked;
use super::checksum::crc32c;
use super::layout::{
    AT_BODIES_OFFSET, AT_CODEC, AT_EXTENSIONS, AT_FLAGS, AT_HEADER_CRC, AT_LANE, AT_LENGTH,
    AT_MAGIC, AT_PRODUCER_EPOCH, AT_PRODUCER_ID, AT_PRODUCER_SEQUENCE, AT_RESERVED, AT_VERSION,
    FLAG_CONTROL, FLAG_HEADERS, FLAG_SLICED, FLAGS_MUST_KNOW, HEADER_BYTES, Layout, MAGIC,
    RECORDS_MAX, VERSION, array, u16_at, u32_at, u64_at,
};
use super::marks::Marks;
use super::view::Batch;
use crate::error::{Error, ErrorCode};
use crate::id::Lane;
use crate::limits::Limits;
use bytes::Bytes;
use std::fmt::Display;

impl Batch {
    /// Checks a client's batch: structure, every checksum, every hash, the limits, and that its header
    /// says of its records what they say; and refuses features that only the system may use (control,
    /// sliced, without payloads) or that do not work yet.
    ///
    /// # Errors
    /// `BATCH_MALFORMED`, `BATCH_TOO_LARGE`, `MESSAGE_TOO_LARGE`, `TOPIC_INVALID`,
    /// `ATTRIBUTES_INVALID` or `UNIMPLEMENTED`, naming the field, such as
    /// `batch.record[3].body_end`, the value and the limit.
    pub fn check(bytes: Bytes, limits: &Limits) -> Result<Checked<Batch>, Error> {
        let walk = Walk::begin(&bytes, Some(limits))?;
        walk.header()?;
        walk.topics()?;
        let marks = walk.records(refuse)?;
        walk.marks(marks)?;
        Ok(Checked(Batch { bytes, marks }))
    }

    /// Checks what storage holds. The head must be good; records whose bodies are not are told,
    /// by their place in the record table, ascending: they must not be served (slice them off).
    /// Whether some record expires or is restricted, the records say, those with damaged bodies too,
    /// and not the header: others may have written to this storage.
    ///
    /// # Errors
    /// `BATCH_MALFORMED` (or `UNIMPLEMENTED` for a codec) naming the field, the value and the
    /// limit: nothing of this batch can be served.
    pub fn check_stored(bytes: Bytes) -> Result<(Checked<Batch>, Vec<u16>), Error> {
        let walk = Walk::begin(&bytes, None)?;
        walk.header()?;
        walk.topics()?;
        let mut damaged = Vec::new();
        let marks = walk.records(|place, _| {
            damaged.push(place);
            Ok(())
        })?;
        Ok((Checked(Batch { bytes, marks }), damaged))
    }

    /// Checks a delivery to a subscriber that asked for no payloads ([`Batch::headers_of`]): every
    /// checksum must hold, and there must be no payload.
    ///
    /// # Errors
    /// `BATCH_MALFORMED` (or `UNIMPLEMENTED` for a codec) naming the field, the value and the limit:
    /// also for a batch with payloads, whose field is `batch.flags`.
    pub fn check_headers(bytes: Bytes) -> Result<Checked<Batch>, Error> {
        let walk = Walk {
            headers: true,
            ..Walk::begin(&bytes, None)?
        };
        walk.header()?;
        walk.topics()?;
        let marks = walk.records(refuse)?;
        walk.no_payloads()?;
        Ok(Checked(Batch { bytes, marks }))
    }
}

/// Has a bad body refuse its batch.
fn refuse(_place: u16, error: Error) -> Result<(), Error> {
    Err(error)
}

/// `BATCH_MALFORMED` with its facts.
fn malformed(field: impl Into<String>, value: impl Display, limit: impl Display) -> Error {
    Error::new(ErrorCode::BatchMalformed)
        .field(field)
        .value(value)
        .limit(limit)
}

/// The bytes under check.
struct Walk<'a> {
    bytes: &'a [u8],
    layout: Layout,
    /// Only for bytes from a client.
    limits: Option<&'a Limits>,
    /// Whether it must be without payloads; else it must have them.
    headers: bool,
}

impl<'a> Walk<'a> {
    /// Checks that all of the batch is there and that its head is as it was written.
    fn begin(bytes: &'a [u8], limits: Option<&'a Limits>) -> Result<Walk<'a>, Error> {
        if bytes.len() < HEADER_BYTES {
            let limit = format!("at least {HEADER_BYTES} bytes");
            return Err(malformed(
                "batch.length",
                format!("{} bytes", bytes.len()),
                limit,
            ));
        }
        let magic: [u8; 4] = array(bytes, AT_MAGIC);
        if magic != MAGIC {
            return Err(malformed(
                "batch.magic",
                magic.escape_ascii(),
                MAGIC.escape_ascii(),
            ));
        }
        if bytes[AT_VERSION] != VERSION {
            return Err(malformed("batch.version", bytes[AT_VERSION], VERSION));
        }
        let length = u32_at(bytes, AT_LENGTH);
        if length as usize != bytes.len() {
            return Err(malformed(
                "batch.length",
                length,
                format!("{} bytes", bytes.len()),
            ));
        }
        let layout = Layout::read(bytes).filter(|layout| layout.bodies <= bytes.len());
        let Some(layout) = layout else {
            let value = u32_at(bytes, AT_BODIES_OFFSET);
            return Err(malformed(
                "batch.bodies_offset",
                value,
                "after the tables, in the batch",
            ));
        };
        let crc = crc32c(&bytes[AT_VERSION..layout.bodies]);
        let told = u32_at(bytes, AT_HEADER_CRC);
        if crc != told {
            return Err(malformed("batch.header_crc", hex(told), hex(crc)));
        }
        Ok(Walk {
            bytes,
            layout,
            limits,
            headers: false,
        })
    }

    /// Checks the header: everything that concerns the batch as a whole.
    fn header(&self) -> Result<(), Error> {
        let bytes = self.bytes;
        self.flags()?;
        if bytes[AT_CODEC] != 0 {
            return Err(Error::unimplemented("codec")
                .value(bytes[AT_CODEC])
                .limit(0));
        }
        if bytes[AT_RESERVED] != 0 {
            return Err(malformed("batch.reserved", bytes[AT_RESERVED], 0));
        }
        if Lane::from_u8(bytes[AT_LANE]).is_none() {
            return Err(malformed("batch.lane", bytes[AT_LANE], "0 or 1"));
        }
        let records = self.layout.records;
        if records == 0 || records > RECORDS_MAX.into() {
            return Err(malformed("batch.records", records, "1 to 4096"));
        }
        let topics = self.layout.topics;
        if topics == 0 || topics > records {
            return Err(malformed(
                "batch.topics",
                topics,
                format!("1 to {records}, the records"),
            ));
        }
        self.size(records)?;
        self.producer()?;
        self.extensions()
    }

    fn flags(&self) -> Result<(), Error> {
        let flags = u16_at(self.bytes, AT_FLAGS);
        let known = FLAG_CONTROL | FLAG_SLICED | FLAG_HEADERS;
        if flags & FLAGS_MUST_KNOW & !known != 0 {
            return Err(malformed(
                "batch.flags",
                format!("{flags:#06x}"),
                "only known flags",
            ));
        }
        if (flags & FLAG_HEADERS != 0) != self.headers {
            let (headers, payloads) = ("headers only", "batches with their payloads");
            let (value, limit) = if self.headers {
                (payloads, headers)
            } else {
                (headers, payloads)
            };
            return Err(malformed("batch.flags", value, limit));
        }
        if self.limits.is_some() {
            let limit = "whole batches of messages";
            if flags & FLAG_CONTROL != 0 {
                return Err(malformed("batch.flags", "control", limit));
            }
            if flags & FLAG_SLICED != 0 {
                return Err(malformed("batch.flags", "sliced", limit));
            }
        }
        Ok(())
    }

    /// Checks that the header says of the records what they say.
    #[inline]
    fn marks(&self, found: Marks) -> Result<(), Error> {
        let told = Marks::of_header(u16_at(self.bytes, AT_FLAGS));
        if told == found {
            Ok(())
        } else {
            Err(untrue(told, found))
        }
    }

    fn size(&self, records: usize) -> Result<(), Error> {
        let Some(limits) = self.limits else {
            return Ok(());
        };
        let too_large = |value: String, limit: String| {
            Err(Error::new(ErrorCode::BatchTooLarge)
                .field("batch")
                .value(value)
                .limit(limit))
        };
        if records > limits.batch_records.into() {
            return too_large(
                format!("{records} messages"),
                format!("{} messages", limits.batch_records),
            );
        }
        if records > 1 && self.bytes.len() > limits.batch_bytes as usize {
            return too_large(
                format!("{} bytes", self.bytes.len()),
                format!("{} bytes, or one message", limits.batch_bytes),
            );
        }
        Ok(())
    }

    fn producer(&self) -> Result<(), Error> {
        let sequence = u64_at(self.bytes, AT_PRODUCER_SEQUENCE);
        if u64_at(self.bytes, AT_PRODUCER_ID) == 0 {
            let epoch = u32_at(self.bytes, AT_PRODUCER_EPOCH);
            if epoch != 0 {
                return Err(malformed(
                    "batch.producer_epoch",
                    epoch,
                    "0 without a producer",
                ));
            }
            if sequence != 0 {
                return Err(malformed(
                    "batch.producer_sequence",
                    sequence,
                    "0 without a producer",
                ));
            }
        } else if sequence.checked_add(RECORDS_MAX.into()).is_none() {
            let limit = u64::MAX - u64::from(RECORDS_MAX);
            return Err(malformed("batch.producer_sequence", sequence, limit));
        }
        Ok(())
    }

    fn extensions(&self) -> Result<(), Error> {
        let mut rest = &self.bytes[HEADER_BYTES..self.layout.topic_table];
        while !rest.is_empty() {
            rest = rest
                .split_first_chunk()
                .and_then(|(&[_, length], after)| after.get(length.into()..))
                .ok_or_else(|| {
                    let value = u16_at(self.bytes, AT_EXTENSIONS);
                    malformed("batch.extensions", value, "whole extensions")
                })?;
        }
        Ok(())
    }
}

/// The header's word on its records is not what they are.
#[cold]
fn untrue(told: Marks, found: Marks) -> Error {
    malformed("batch.flags", told, format!("{found}, as its records are"))
}

fn hex(crc: u32) -> String {
    format!("{crc:#010x}")
}
