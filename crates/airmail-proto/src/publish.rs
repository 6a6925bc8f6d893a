//! Messages of a publish stream: batches up, acks and maps down.

use crate::error::{error_from_proto, error_to_proto};
use crate::fields::Fields;
use crate::hello::{map_from_proto, map_to_proto};
use crate::namespace::{durability_from_proto, synced_to_proto};
use crate::v1;
use airmail_model::frame::{Ack, NamedMap, Refused, RequestId};
use airmail_model::{AppendTime, Batch, Checked, Durability, Error, Extent, Sequence};
use bytes::BufMut;
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

/// The number of `PublishResponse.acks`.
const ACKS_FIELD: u32 = 2;
/// The number of `Acks.acks`.
const ACK_FIELD: u8 = 1;

/// A batch to be stored, as a message.
#[must_use]
pub fn batch_to_proto(request: RequestId, batch: &Checked<Batch>) -> v1::PublishBatch {
    v1::PublishBatch {
        request: request.0,
        body: Some(v1::publish_batch::Body::Batch(batch.bytes().clone())),
        namespace: String::new(),
        begins_epoch: false,
    }
}

/// An ack as a message. A stale map's answer carries the present map, under the name that
/// `name_of` gives it.
pub fn ack_to_proto(
    request: RequestId,
    result: &Result<Ack, Refused>,
    name_of: impl FnOnce(airmail_model::NamespaceId) -> String,
) -> v1::Ack {
    match result {
        Ok(ack) => v1::Ack {
            request: request.0,
            first: ack.extent.first.0,
            last: ack.extent.last.0,
            appended_at_us: ack.appended.0,
            held: synced_to_proto(ack.held.synced).into(),
            copies: ack.held.copies.into(),
            duplicate: ack.duplicate,
            exact: ack.exact,
            error: None,
            map: None,
        },
        Err(refused) => v1::Ack {
            request: request.0,
            error: Some(error_to_proto(&refused.error)),
            map: refused
                .map
                .as_ref()
                .map(|map| map_to_proto(&name_of(map.namespace), map)),
            ..Default::default()
        },
    }
}

/// Acks that go out as one [`v1::PublishResponse`], encoded as they come.
#[derive(Clone, Debug, Default)]
pub struct AckList {
    acks: Vec<u8>,
    count: usize,
}

impl AckList {
    /// Adds an ack: what [`ack_to_proto`] makes of the same.
    pub fn push(
        &mut self,
        request: RequestId,
        result: &Result<Ack, Refused>,
        name_of: impl FnOnce(airmail_model::NamespaceId) -> String,
    ) {
        self.count += 1;
        let Ok(ack) = result else {
            let ack = ack_to_proto(request, result, name_of);
            encode_key(ACK_FIELD.into(), WireType::LengthDelimited, &mut self.acks);
            encode_varint(ack.encoded_len() as u64, &mut self.acks);
            return ack.encode_raw(&mut self.acks);
        };
        let mut fields = Fields::<96>::new();
        fields.number(1, request.0);
        fields.number(4, ack.extent.first.0);
        fields.number(5, ack.extent.last.0);
        fields.number(6, ack.appended.0 as u64);
        fields.number(7, i32::from(synced_to_proto(ack.held.synced)) as u64);
        fields.number(8, ack.held.copies.into());
        fields.number(9, ack.duplicate.into());
        fields.number(10, ack.exact.into());
        let mut one = Fields::<112>::new();
        one.message(ACK_FIELD, fields.bytes());
        self.acks.extend_from_slice(one.bytes());
    }

    /// Number of acks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list has no ack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Length of the message.
    #[must_use]
    pub fn message_len(&self) -> usize {
        let acks = self.acks.len();
        key_len(ACKS_FIELD) + encoded_len_varint(acks as u64) + acks
    }

    /// Writes the message.
    pub fn encode(&self, out: &mut impl BufMut) {
        encode_key(ACKS_FIELD, WireType::LengthDelimited, out);
        encode_varint(self.acks.len() as u64, out);
        out.put_slice(&self.acks);
    }
}

/// An ack from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` for a map or a durability that a node never sends.
pub fn ack_from_proto(ack: &v1::Ack) -> Result<(RequestId, Result<Ack, Refused>), Error> {
    let request = RequestId(ack.request);
    if let Some(error) = &ack.error {
        let map = ack.map.as_ref().map(map_from_proto).transpose()?;
        let refused = Refused {
            error: error_from_proto(error),
            map: map.map(|named| named.map),
        };
        return Ok((request, Err(refused)));
    }
    let held = held_from_proto(ack)?;
    let extent = Extent {
        first: Sequence(ack.first),
        last: Sequence(ack.last.max(ack.first)),
    };
    let ack = Ack {
        extent,
        appended: AppendTime(ack.appended_at_us),
        held,
        duplicate: ack.duplicate,
        exact: ack.exact,
    };
    Ok((request, Ok(ack)))
}

/// The durability that an ack tells. More copies than one can say count as the most that it can.
fn held_from_proto(ack: &v1::Ack) -> Result<Durability, Error> {
    let copies = ack.copies.min(u8::MAX.into());
    Ok(durability_from_proto(ack.held, copies)?.unwrap_or(Durability::MEMORY))
}

/// Maps asked for, as a message: those found, and an error for each that was not.
#[must_use]
pub fn maps_to_proto(found: &[NamedMap], missing: &[Error]) -> v1::Maps {
    v1::Maps {
        namespaces: found
            .iter()
            .map(|named| map_to_proto(&named.name, &named.map))
            .collect(),
        errors: missing.iter().map(error_to_proto).collect(),
    }
}

/// Maps asked for, from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` for a map that cannot be.
pub fn maps_from_proto(maps: &v1::Maps) -> Result<(Vec<NamedMap>, Vec<Error>), Error> {
    let found: Result<Vec<NamedMap>, Error> = maps.namespaces.iter().map(map_from_proto).collect();
    Ok((found?, maps.errors.iter().map(error_from_proto).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{ErrorCode, LogIndex, LogMap, MapEpoch, NamespaceId, Synced};

    #[test]
    fn more_copies_than_a_durability_can_say_are_the_most_that_it_can() {
        for (copies, told) in [(0, 1), (1, 1), (255, 255), (256, 255), (u32::MAX, 255)] {
            let ack = v1::Ack {
                held: v1::Durability::Os.into(),
                copies,
                ..v1::Ack::default()
            };
            let (_, result) = ack_from_proto(&ack).unwrap();
            let held = result.ok().map(|ack| ack.held);
            let synced = Synced::Os;
            let copies = told;
            assert_eq!(held, Some(Durability { synced, copies }));
        }
    }

    #[test]
    fn an_ack_survives() {
        let ack = Ack {
            extent: Extent::starting_at(Sequence(17), 4),
            appended: AppendTime(99),
            held: Durability::OS,
            duplicate: true,
            exact: true,
        };
        let wire = ack_to_proto(RequestId(5), &Ok(ack), |_| String::new());
        assert_eq!(ack_from_proto(&wire).unwrap(), (RequestId(5), Ok(ack)));
    }

    #[test]
    fn acks_written_as_they_come_are_what_the_generated_code_writes() {
        let stored = Ack {
            extent: Extent::starting_at(Sequence(u64::MAX - 4), 4),
            appended: AppendTime(-1),
            held: Durability {
                synced: Synced::Fsync,
                copies: 3,
            },
            duplicate: true,
            exact: true,
        };
        let plain = Ack {
            extent: Extent::starting_at(Sequence(1), 1),
            held: Durability::MEMORY,
            duplicate: false,
            exact: false,
            ..stored
        };
        let refused = Refused {
            error: Error::new(ErrorCode::MapStale).field("map_epoch"),
            map: Some(LogMap::even(NamespaceId(1), MapEpoch(2), LogIndex(0), 3)),
        };
        let (mut list, mut acks) = (AckList::default(), Vec::new());
        assert!(list.is_empty());
        for (request, result) in [(0, Ok(stored)), (7, Err(refused)), (u64::MAX, Ok(plain))] {
            list.push(RequestId(request), &result, |_| "default".into());
            let ack = ack_to_proto(RequestId(request), &result, |_| "default".into());
            acks.push(ack);
        }
        assert_eq!(list.len(), acks.len());
        let kind = v1::publish_response::Kind::Acks(v1::Acks { acks });
        let message = v1::PublishResponse { kind: Some(kind) };
        let mut written = Vec::new();
        list.encode(&mut written);
        assert_eq!(written, message.encode_to_vec());
        assert_eq!(written.len(), list.message_len());
    }

    #[test]
    fn a_stale_maps_refusal_survives_with_the_new_map() {
        let refused = Refused {
            error: Error::new(ErrorCode::MapStale)
                .field("map_epoch")
                .value(1)
                .limit(2),
            map: Some(LogMap::even(NamespaceId(1), MapEpoch(2), LogIndex(0), 3)),
        };
        let wire = ack_to_proto(RequestId(6), &Err(refused.clone()), |_| "default".into());
        assert_eq!(wire.map.as_ref().unwrap().name, "default");
        assert_eq!(ack_from_proto(&wire).unwrap(), (RequestId(6), Err(refused)));
    }
}
