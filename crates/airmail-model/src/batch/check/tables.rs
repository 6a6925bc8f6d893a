//! The tables and the bodies of a batch whose header is sound.

use super::{Walk, hex, malformed};
use crate::batch::attributes::Attributes;
use crate::batch::body::{Body, reserved};
use crate::batch::checksum::crc32c;
use crate::batch::layout::{
    AT_FLAGS, AT_NAMESPACE, FLAG_SLICED, HAS_ANY, RECORD_ATTRIBUTES, RECORD_BODY_CRC, RECORD_FLAGS,
    RECORD_INDEX, RECORD_TOPIC, RECORDS_MAX, u16_at, u32_at, u128_at,
};
use crate::batch::marks::Marks;
use crate::error::{Error, ErrorCode};
use crate::id::{NamespaceId, TopicHash};
use crate::limits::Limits;
use crate::topic::TopicName;

/// Limits that leave only the bounds of the format itself.
const UNLIMITED: Limits = Limits {
    topic_bytes: u32::MAX,
    ..Limits::DEFAULT
};

impl Walk<'_> {
    /// Names, hashes, each topic once.
    pub(super) fn topics(&self) -> Result<(), Error> {
        let Walk { bytes, layout, .. } = *self;
        let names = &bytes[layout.names..layout.record_table];
        let namespace = NamespaceId(u32_at(bytes, AT_NAMESPACE));
        for n in 0..layout.topics {
            let field = |part: &str| format!("batch.topic[{n}].{part}");
            let (start, end) = layout.name(bytes, n);
            let Some(name) = names.get(start..end) else {
                let limit = format!("{start} to {}", names.len());
                return Err(malformed(field("name_end"), end, limit));
            };
            // Stored batches were held to the limits of the day they were taken.
            let limits = self.limits.unwrap_or(&UNLIMITED);
            TopicName::check_bytes(name, limits).map_err(|error| error.field(field("name")))?;
            let told = TopicHash(u128_at(bytes, layout.topic(n)));
            let hash = TopicName::hash_of_bytes(namespace, name);
            if hash != told {
                let (value, limit) = (format!("{:032x}", told.0), format!("{:032x}", hash.0));
                return Err(malformed(field("hash"), value, limit));
            }
        }
        let (_, end) = layout.name(bytes, layout.topics - 1);
        if end != names.len() {
            return Err(malformed(
                "batch.bodies_offset",
                end,
                format!("{} of names", names.len()),
            ));
        }
        self.each_topic_once()
    }

    fn each_topic_once(&self) -> Result<(), Error> {
        let hash = |n: usize| u128_at(self.bytes, self.layout.topic(n));
        let count = self.layout.topics;
        let twice = if count <= 16 {
            (1..count).find(|&n| (0..n).any(|other| hash(other) == hash(n)))
        } else {
            self.twice_of_many()
        };
        match twice {
            Some(n) => Err(malformed(format!("batch.topic[{n}].hash"), "twice", "once")),
            None => Ok(()),
        }
    }

    /// A topic that is there twice, if any. Sorts the hashes' upper parts, which are small numbers
    /// and nearly always differ, with the place in the bits below.
    fn twice_of_many(&self) -> Option<usize> {
        const PLACE: u64 = RECORDS_MAX as u64 - 1;
        let hash = |place: u64| u128_at(self.bytes, self.layout.topic((place & PLACE) as usize));
        let upper = |place: u64| (hash(place) >> 64) as u64 & !PLACE | place;
        let mut sorted: Vec<u64> = (0..self.layout.topics as u64).map(upper).collect();
        sorted.sort_unstable();
        sorted
            .chunk_by(|a, b| a & !PLACE == b & !PLACE)
            .filter(|alike| alike.len() > 1)
            .find_map(|alike| {
                let mut whole: Vec<_> = alike.iter().map(|&key| (hash(key), key & PLACE)).collect();
                whole.sort_unstable();
                let twice = whole.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
                Some(twice[1].1 as usize)
            })
    }

    /// Checks the record table, and each body; `bad` handles a bad body. Gives the marks that the records
    /// make, those with bad bodies too: the table that says so has the header's checksum.
    pub(super) fn records(
        &self,
        mut bad: impl FnMut(u16, Error) -> Result<(), Error>,
    ) -> Result<Marks, Error> {
        let Walk { bytes, layout, .. } = *self;
        let sliced = u16_at(bytes, AT_FLAGS) & FLAG_SLICED != 0;
        let bodies = &bytes[layout.bodies..];
        let mut used = [0_u64; RECORDS_MAX as usize / 64];
        let mut least = 0;
        let mut all_flags = 0;
        for n in 0..layout.records {
            let field = |part: &str| format!("batch.record[{n}].{part}");
            let at = layout.record(n);
            let topic = usize::from(u16_at(bytes, at + RECORD_TOPIC));
            if topic >= layout.topics {
                let limit = format!("less than {}", layout.topics);
                return Err(malformed(field("topic"), topic, limit));
            }
            used[topic / 64] |= 1 << (topic % 64);
            let index = u16_at(bytes, at + RECORD_INDEX);
            if index < least || index >= RECORDS_MAX || (!sliced && index != least) {
                let limit = if sliced {
                    "ascending, less than 4096"
                } else {
                    "its place"
                };
                return Err(malformed(field("index"), index, limit));
            }
            least = index + 1;
            let flags = u16_at(bytes, at + RECORD_FLAGS);
            // Nearly all have none: one test is all that they cost here.
            if flags != 0 {
                if flags & !HAS_ANY != 0 {
                    let limit = "only known flags";
                    return Err(malformed(field("flags"), format!("{flags:#06x}"), limit));
                }
                all_flags |= flags;
            }
            let (start, end) = layout.body(bytes, n);
            let Some(body) = bodies.get(start..end) else {
                let limit = format!("{start} to {}", bodies.len());
                return Err(malformed(field("body_end"), end, limit));
            };
            if let Err(error) = self.body(n, at, body) {
                bad(u16::try_from(n).unwrap_or(u16::MAX), error)?;
            }
        }
        let (_, end) = layout.body(bytes, layout.records - 1);
        if end != bodies.len() {
            let field = format!("batch.record[{}].body_end", layout.records - 1);
            return Err(malformed(field, end, bodies.len()));
        }
        match (0..layout.topics).find(|n| used[n / 64] & (1 << (n % 64)) == 0) {
            Some(n) => Err(malformed(
                format!("batch.topic[{n}]"),
                "no record",
                "a record",
            )),
            None => Ok(Marks::of_records(all_flags)),
        }
    }

    /// Checks that no record has a payload. Their bodies were found good.
    pub(super) fn no_payloads(&self) -> Result<(), Error> {
        let Walk { bytes, layout, .. } = *self;
        for n in 0..layout.records {
            let (at, (start, end)) = (layout.record(n), layout.body(bytes, n));
            let body = Body::read_or_empty(
                &bytes[layout.bodies + start..layout.bodies + end],
                u16_at(bytes, at + RECORD_FLAGS),
                u16_at(bytes, at + RECORD_ATTRIBUTES),
            );
            if !body.payload.is_empty() {
                let field = format!("batch.record[{n}].payload");
                let value = format!("{} bytes", body.payload.len());
                return Err(malformed(field, value, "0 bytes"));
            }
        }
        Ok(())
    }

    /// One record's body: checksum, parts, and for clients limits and reserved parts.
    fn body(&self, n: usize, at: usize, body: &[u8]) -> Result<(), Error> {
        let field = |part: &str| format!("batch.record[{n}].{part}");
        let told = u32_at(self.bytes, at + RECORD_BODY_CRC);
        let crc = crc32c(body);
        if crc != told {
            return Err(malformed(field("body_crc"), hex(told), hex(crc)));
        }
        let flags = u16_at(self.bytes, at + RECORD_FLAGS);
        let attributes_bytes = u16_at(self.bytes, at + RECORD_ATTRIBUTES);
        let read = Body::read(body, flags, attributes_bytes).map_err(|part| {
            malformed(
                field(part),
                format!("{} bytes of body", body.len()),
                "a whole field",
            )
        })?;
        let invalid = |value: String, limit: String| {
            Error::new(ErrorCode::AttributesInvalid)
                .field(field("attributes"))
                .value(value)
                .limit(limit)
        };
        let attributes = Attributes::check(read.attributes)
            .map_err(|why| invalid(why.into(), "sorted by name, well formed".into()))?;
        let Some(limits) = self.limits else {
            return Ok(());
        };
        if attributes > limits.attributes as usize {
            let limit = format!("at most {}", limits.attributes);
            return Err(invalid(attributes.to_string(), limit));
        }
        let size = read.key.map_or(0, <[u8]>::len) + read.attributes.len() + read.payload.len();
        if size > limits.message_bytes as usize {
            return Err(Error::new(ErrorCode::MessageTooLarge)
                .field(format!("batch.record[{n}]"))
                .value(format_args!("{size} bytes"))
                .limit(format_args!("{} bytes", limits.message_bytes)));
        }
        reserved(flags)
    }
}
