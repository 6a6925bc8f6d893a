//! The encoder: messages in, one batch out. The only writer of the format, in SDK and node alike.
//!
//! Bodies are encoded as messages come; tables and header are written when the batch is finished,
//! because only then it is known who publishes it where, into room that was left for them
//! ([`super::bodies`]). So in steady state the finished batch itself is the only allocation, and a
//! body is copied once.

use super::bodies::Bodies;
use super::body::{body_bytes, write_body};
use super::checksum::crc32c;
use super::layout::{
    AT_HEADER_CRC, AT_VERSION, BATCH_BYTES_MAX, FLAG_CONTROL, HEADER_BYTES, MAGIC,
    RECORD_ATTRIBUTES, RECORD_BODY_CRC, RECORD_BODY_END, RECORD_BYTES, RECORD_FLAGS, RECORD_INDEX,
    RECORD_TIME_DELTA, RECORD_TOPIC, RECORDS_MAX, TOPIC_BYTES, VERSION,
};
use super::marks::Marks;
use super::message::check_bytes;
use super::view::{Batch, ProducerStamp};
use super::{Checked, Message};
use crate::error::{Error, ErrorCode};
use crate::id::{LogId, MapEpoch, NamespaceId, TopicHash};
use crate::limits::Limits;
use crate::topic::TopicName;
use bytes::BufMut;
use hashbrown::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The log, map, producer and options that a batch is encoded for.
#[derive(Clone, Copy, Debug)]
pub struct BatchTarget {
    /// The log that carries every topic of the batch.
    pub log: LogId,
    /// The map by which the log was chosen.
    pub epoch: MapEpoch,
    /// Stamp of the publishing producer; `None` does without de-duplication.
    pub producer: Option<ProducerStamp>,
    /// The producer's clock, in microseconds since 1970. The batch carries this or the earliest
    /// time of its messages, whichever is earlier.
    pub producer_time: i64,
}

/// Reason for which a message was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The batch is full: finish it and push again.
    Full,
    /// The message can be in no batch.
    Refused(Error),
}

/// Encodes messages into one batch after another.
///
/// ```
/// use airmail_model::batch::{BatchEncoder, BatchTarget, PushError};
/// use airmail_model::{Batch, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName};
/// let limits = Limits::DEFAULT;
/// let mut encoder = BatchEncoder::new(NamespaceId(1));
/// for n in 0..3_u8 {
///     let topic = TopicName::new("orders", &limits)?;
///     match encoder.push(&Message::new(topic, vec![n]), 1_000_000, &limits) {
///         Ok(()) => {}
///         Err(PushError::Full) => unreachable!("three small messages fit"),
///         Err(PushError::Refused(error)) => return Err(error),
///     }
/// }
/// let log = LogId { namespace: NamespaceId(1), ..LogId::default() };
/// let target = BatchTarget { log, epoch: MapEpoch(1), producer: None, producer_time: 1_000_000 };
/// let batch = encoder.finish(&target);
/// assert_eq!(batch.records(), 3);
/// assert_eq!(batch.topics().len(), 1);
///
/// // What arrives elsewhere is checked once, and then read without further ado.
/// let checked = Batch::check(batch.bytes().clone(), &limits)?;
/// assert_eq!(checked.iter().map(|record| record.payload[0]).collect::<Vec<_>>(), [0, 1, 2]);
/// # Ok::<(), airmail_model::Error>(())
/// ```
#[derive(Debug)]
pub struct BatchEncoder {
    namespace: NamespaceId,
    control: bool,
    extensions: Vec<u8>,
    topics: Vec<(TopicHash, u32)>,
    places: HashMap<u128, u16, BuildHasherDefault<Unhashed>>,
    /// The topic of the message before: neighbouring messages are often of one topic.
    last: Option<(TopicHash, u16)>,
    names: Vec<u8>,
    heads: Vec<Head>,
    /// The flags of all records together.
    record_flags: u16,
    bodies: Bodies,
}

/// The part of a record table's entry that is known before the batch is finished.
#[derive(Clone, Copy, Debug)]
struct Head {
    body_end: u32,
    body_crc: u32,
    time: i64,
    topic: u16,
    flags: u16,
    attributes_bytes: u16,
}

/// A message that has passed the checks and is ready to be added.
struct Piece<'a> {
    topic: &'a str,
    body_bytes: usize,
    body: PieceBody<'a>,
}

enum PieceBody<'a> {
    Whole(&'a Message),
    Payload(&'a [u8]),
}

impl<'a> Piece<'a> {
    fn of(message: &'a Message) -> Piece<'a> {
        Piece {
            topic: message.topic.as_str(),
            body_bytes: body_bytes(message),
            body: PieceBody::Whole(message),
        }
    }
}

/// Takes a topic's hash as it is: it is one already.
#[derive(Clone, Copy, Debug, Default)]
struct Unhashed(u64);

impl Hasher for Unhashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

impl BatchEncoder {
    /// An empty encoder for topics of one namespace.
    #[must_use]
    pub fn new(namespace: NamespaceId) -> BatchEncoder {
        BatchEncoder {
            namespace,
            control: false,
            extensions: Vec::new(),
            topics: Vec::new(),
            places: HashMap::default(),
            last: None,
            names: Vec::new(),
            heads: Vec::new(),
            record_flags: 0,
            bodies: Bodies::default(),
        }
    }

    /// Adds a message made at `time` (microseconds since 1970, by the producer's clock).
    ///
    /// # Errors
    /// [`PushError::Full`] if it does not fit beside the messages there; [`PushError::Refused`] if
    /// no batch can take it ([`Message::check`]). Either way nothing has changed.
    pub fn push(&mut self, message: &Message, time: i64, limits: &Limits) -> Result<(), PushError> {
        message.check(limits).map_err(PushError::Refused)?;
        let hash = message.topic.hash(self.namespace);
        self.add(&Piece::of(message), hash, time, limits)
    }

    /// Adds a message like [`BatchEncoder::push`], for a caller that knows the topic's hash
    /// already.
    ///
    /// # Errors
    /// The same as [`BatchEncoder::push`].
    pub fn push_hashed(
        &mut self,
        message: &Message,
        hash: TopicHash,
        time: i64,
        limits: &Limits,
    ) -> Result<(), PushError> {
        debug_assert_eq!(hash, message.topic.hash(self.namespace), "the topic's");
        message.check(limits).map_err(PushError::Refused)?;
        self.add(&Piece::of(message), hash, time, limits)
    }

    /// Adds a message like [`BatchEncoder::push_hashed`] that has a payload and nothing else,
    /// without a [`Message`] having to be made for it.
    ///
    /// # Errors
    /// The same as [`BatchEncoder::push`].
    pub fn push_payload(
        &mut self,
        topic: &TopicName,
        payload: &[u8],
        hash: TopicHash,
        time: i64,
        limits: &Limits,
    ) -> Result<(), PushError> {
        debug_assert_eq!(hash, topic.hash(self.namespace), "the topic's");
        check_bytes(topic, payload.len(), limits).map_err(PushError::Refused)?;
        let piece = Piece {
            topic: topic.as_str(),
            body_bytes: payload.len(),
            body: PieceBody::Payload(payload),
        };
        self.add(&piece, hash, time, limits)
    }

    /// Adds a message like [`BatchEncoder::push`], but accepts the reserved fields too, which every
    /// node refuses today: for golden vectors, and for messages that the system itself makes.
    ///
    /// # Errors
    /// The same as [`BatchEncoder::push`], without `UNIMPLEMENTED`.
    pub fn push_reserved(
        &mut self,
        message: &Message,
        time: i64,
        limits: &Limits,
    ) -> Result<(), PushError> {
        message.check_size(limits).map_err(PushError::Refused)?;
        let hash = message.topic.hash(self.namespace);
        self.add(&Piece::of(message), hash, time, limits)
    }

    /// Attaches an extension, such as [`super::EXTENSION_TRACE_CONTEXT`], to the batch that is
    /// being made.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is longer than 255 bytes or all together exceed 65,535.
    pub fn extension(&mut self, kind: u8, value: &[u8]) -> Result<(), Error> {
        let all = self.extensions.len() + 2 + value.len();
        let Some(length) = u8::try_from(value.len())
            .ok()
            .filter(|_| all <= u16::MAX.into())
        else {
            return Err(Error::new(ErrorCode::InvalidArgument)
                .field("extension")
                .value(format_args!("{} bytes, {all} with all others", value.len()))
                .limit("255 bytes, 65535 with all others"));
        };
        self.extensions.extend_from_slice(&[kind, length]);
        self.extensions.extend_from_slice(value);
        Ok(())
    }

    /// Number of messages added so far.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most RECORDS_MAX")]
    pub fn records(&self) -> u16 {
        self.heads.len() as u16
    }

    /// Whether it holds no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The size of the batch if it were finished now, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bodies_offset() + self.bodies.len()
    }

    /// Makes the present batch a control batch: one of the system's own. The next is not.
    pub fn control(&mut self) {
        self.control = true;
    }

    /// Writes header and tables; the encoder is empty again and keeps its buffers.
    ///
    /// # Panics
    /// If it is empty: there is no batch without records.
    pub fn finish(&mut self, target: &BatchTarget) -> Checked<Batch> {
        assert!(!self.is_empty(), "a batch has at least one record");
        debug_assert_eq!(
            target.log.namespace, self.namespace,
            "hashes are by namespace"
        );
        let time = self
            .heads
            .iter()
            .map(|head| head.time)
            .fold(target.producer_time, i64::min);
        let mut bodies = std::mem::take(&mut self.bodies);
        let length = self.bodies_offset() + bodies.len();
        let bytes = bodies.finish(self.bodies_offset(), |head| {
            let mut out = &mut head[..];
            self.write_header(target, time, length, &mut out);
            self.write_tables(time, &mut out);
            debug_assert!(out.is_empty(), "all of the room is used");
            let crc = crc32c(&head[AT_VERSION..]);
            head[AT_HEADER_CRC..AT_VERSION].copy_from_slice(&crc.to_le_bytes());
        });
        self.bodies = bodies;
        let marks = Marks::of_records(self.record_flags);
        self.clear();
        Checked(Batch { bytes, marks })
    }

    fn bodies_offset(&self) -> usize {
        HEADER_BYTES
            + self.extensions.len()
            + self.topics.len() * TOPIC_BYTES
            + self.names.len()
            + self.heads.len() * RECORD_BYTES
    }

    /// Adds a message that was found good, if it fits.
    fn add(
        &mut self,
        piece: &Piece<'_>,
        hash: TopicHash,
        time: i64,
        limits: &Limits,
    ) -> Result<(), PushError> {
        if self.heads.len() >= limits.batch_records.min(RECORDS_MAX).into() {
            return Err(PushError::Full);
        }
        let place = match self.last {
            Some((last, place)) if last == hash => Some(place),
            _ => self.places.get(&hash.0).copied(),
        };
        if !self.is_empty() {
            let topic = place.map_or(TOPIC_BYTES + piece.topic.len(), |_| 0);
            let more = RECORD_BYTES + topic + piece.body_bytes;
            if self.len() + more > limits.batch_bytes.min(BATCH_BYTES_MAX) as usize {
                return Err(PushError::Full);
            }
        }
        if self.is_empty() {
            self.bodies.begin(piece.body_bytes);
        }
        let topic = place.unwrap_or_else(|| self.add_topic(hash, piece.topic));
        self.last = Some((hash, topic));
        let start = self.bodies.len();
        let (flags, attributes_bytes) = match piece.body {
            PieceBody::Whole(message) => {
                let written = write_body(message, self.bodies.writer());
                self.record_flags |= written.0;
                written
            }
            PieceBody::Payload(payload) => {
                self.bodies.writer().extend_from_slice(payload);
                (0, 0)
            }
        };
        self.heads.push(Head {
            body_end: narrow(self.bodies.len()),
            body_crc: crc32c(self.bodies.since(start)),
            time,
            topic,
            flags,
            attributes_bytes,
        });
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "no more topics than records"
    )]
    fn add_topic(&mut self, hash: TopicHash, name: &str) -> u16 {
        let place = self.topics.len() as u16;
        self.names.extend_from_slice(name.as_bytes());
        self.topics.push((hash, narrow(self.names.len())));
        self.places.insert(hash.0, place);
        place
    }

    fn write_header(&self, target: &BatchTarget, time: i64, length: usize, out: &mut &mut [u8]) {
        let flags = if self.control { FLAG_CONTROL } else { 0 };
        let flags = Marks::of_records(self.record_flags).in_flags(flags);
        let producer = target.producer.filter(|producer| producer.id.0 != 0);
        let (id, epoch, sequence) = producer.map_or((0, 0, 0), |producer| {
            (producer.id.0, producer.epoch.0, producer.sequence.0)
        });
        out.put_slice(&MAGIC);
        out.put_slice(&[0; 4]); // the checksum, when all else is known
        out.put_slice(&[VERSION, 0]);
        out.put_slice(&flags.to_le_bytes());
        out.put_slice(&narrow(length).to_le_bytes());
        out.put_slice(&narrow(self.bodies_offset()).to_le_bytes());
        out.put_slice(&narrow16(self.heads.len()).to_le_bytes());
        out.put_slice(&narrow16(self.topics.len()).to_le_bytes());
        out.put_slice(&target.log.index.0.to_le_bytes());
        out.put_slice(&[target.log.lane as u8, 0]);
        out.put_slice(&target.epoch.0.to_le_bytes());
        out.put_slice(&self.namespace.0.to_le_bytes());
        out.put_slice(&epoch.to_le_bytes());
        out.put_slice(&id.to_le_bytes());
        out.put_slice(&sequence.to_le_bytes());
        out.put_slice(&time.to_le_bytes());
        out.put_slice(&narrow16(self.extensions.len()).to_le_bytes());
        out.put_slice(&self.extensions);
    }

    fn write_tables(&self, time: i64, out: &mut &mut [u8]) {
        for (hash, name_end) in &self.topics {
            out.put_slice(&hash.0.to_le_bytes());
            out.put_slice(&name_end.to_le_bytes());
        }
        out.put_slice(&self.names);
        for (index, head) in (0_u16..).zip(&self.heads) {
            let delta = u32::try_from(head.time.saturating_sub(time)).unwrap_or(u32::MAX);
            // As one piece: seven small ones would each ask whether there is room.
            let mut entry = [0; RECORD_BYTES];
            let mut put = |at: usize, value: &[u8]| {
                entry[at..at + value.len()].copy_from_slice(value);
            };
            put(RECORD_BODY_END, &head.body_end.to_le_bytes());
            put(RECORD_BODY_CRC, &head.body_crc.to_le_bytes());
            put(RECORD_TIME_DELTA, &delta.to_le_bytes());
            put(RECORD_TOPIC, &head.topic.to_le_bytes());
            put(RECORD_INDEX, &index.to_le_bytes());
            put(RECORD_FLAGS, &head.flags.to_le_bytes());
            put(RECORD_ATTRIBUTES, &head.attributes_bytes.to_le_bytes());
            out.put_slice(&entry);
        }
    }

    fn clear(&mut self) {
        self.control = false;
        self.extensions.clear();
        self.topics.clear();
        self.places.clear();
        self.last = None;
        self.names.clear();
        self.heads.clear();
        self.record_flags = 0;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "messages are bounded by u32 limits"
)]
fn narrow(value: usize) -> u32 {
    value as u32
}

#[expect(clippy::cast_possible_truncation, reason = "bounded by the format")]
fn narrow16(value: usize) -> u16 {
    value as u16
}
