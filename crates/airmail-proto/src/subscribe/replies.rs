//! A node's messages on a subscribe stream, translated both ways.

use super::matches::{matches_from_proto, matches_to_proto, tail_of};
use crate::error::{error_from_proto, error_to_proto};
use crate::fields::Fields;
use crate::hello::{alive_from_proto, nodes_from_proto, welcome_from_proto};
use crate::message::{lane_to_proto, log_from_proto, log_to_proto, position_of};
use crate::v1;
use airmail_model::frame::{
    Channel, Delivered, Delivery, Expired, GapReason, Generation, News, Places, Reply, State,
    SubscriptionId, Welcome,
};
use airmail_model::position::LogPosition;
use airmail_model::verdict::ClockReading;
use airmail_model::{
    AppendTime, Batch, Checked, Error, ErrorCode, Incarnation, LogId, MapEpoch, Mono, NamespaceId,
    Sequence, bug,
};
use bytes::Bytes;
use std::sync::Arc;

/// The number of `SubscribeResponse.delivery`.
const DELIVERY_FIELD: u8 = 2;
/// The number of `Delivery.batch`.
const BATCH_FIELD: u8 = 7;

/// A delivery as a message, in the stored format.
#[must_use]
pub fn delivery_to_proto(delivery: &Delivery) -> v1::Delivery {
    v1::Delivery {
        detached: channel_to_proto(delivery.channel),
        log: Some(log_to_proto(delivery.log)),
        previous: delivery.previous.0,
        last: delivery.last.0,
        base: delivery.base.0,
        appended_at_us: delivery.appended.0,
        cost: delivery.cost(),
        clock: delivery.clock.map(|clock| v1::ClockReading {
            clock_us: clock.clock.0,
            node_ns: clock.at.0,
        }),
        body: Some(v1::delivery::Body::Batch(delivery.body.to_bytes())),
        matches: delivery.matches.as_deref().map(matches_to_proto),
    }
}

/// A delivery in the stored format as an encoded [`v1::SubscribeResponse`], up to where the bytes of
/// its batch begin: whoever sends it puts [`Delivered::len`] bytes behind it, without a copy, and then
/// [`DeliveryHead::tail`].
#[derive(Clone, Debug)]
pub struct DeliveryHead {
    head: Fields<176>,
    batch_bytes: usize,
    /// Fields that come behind the batch.
    tail: Bytes,
}

impl DeliveryHead {
    /// The head of a delivery.
    #[must_use]
    pub fn new(delivery: &Delivery) -> DeliveryHead {
        let batch_bytes = delivery.body.len();
        let mut fields = Fields::<160>::new();
        if let Channel::Detached(subscription, generation) = delivery.channel {
            let mut detached = Fields::<24>::new();
            detached.number(1, subscription.0.into());
            detached.number(2, generation.0.into());
            fields.message(1, detached.bytes());
        }
        let mut within = Fields::<24>::new();
        let log = delivery.log;
        within.number(1, log.namespace.0.into());
        within.number(2, i32::from(lane_to_proto(log.lane)) as u64);
        within.number(3, log.index.0.into());
        fields.message(2, within.bytes());
        fields.number(3, delivery.previous.0);
        fields.number(4, delivery.last.0);
        fields.number(5, delivery.base.0);
        fields.number(6, delivery.appended.0 as u64);
        fields.number(9, delivery.cost().into());
        if let Some(reading) = delivery.clock {
            let mut clock = Fields::<24>::new();
            clock.number(1, reading.clock.0 as u64);
            clock.number(2, reading.at.0);
            fields.message(10, clock.bytes());
        }
        fields.begin(BATCH_FIELD, batch_bytes);
        let mut head = Fields::new();
        let tail = delivery.matches.as_deref().map_or_else(Bytes::new, tail_of);
        let length = fields.bytes().len() + batch_bytes + tail.len();
        head.begin(DELIVERY_FIELD, length);
        head.extend(fields.bytes());
        DeliveryHead {
            head,
            batch_bytes,
            tail,
        }
    }

    /// Length of the whole message, with the batch.
    #[must_use]
    pub fn message_len(&self) -> usize {
        self.head.bytes().len() + self.batch_bytes + self.tail.len()
    }

    /// The head.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.head.bytes()
    }

    /// Fields that come behind the batch, if there are any.
    #[must_use]
    pub fn tail(&self) -> &Bytes {
        &self.tail
    }
}

/// A gap as a message.
#[must_use]
pub fn gap_to_proto(
    channel: Channel,
    log: LogId,
    (previous, last): (Sequence, Sequence),
    why: GapReason,
) -> v1::Gap {
    let reason = match why {
        GapReason::Unused => v1::GapReason::Unused,
        GapReason::Retention => v1::GapReason::Retention,
        GapReason::Loss => v1::GapReason::Loss,
    };
    v1::Gap {
        detached: channel_to_proto(channel),
        log: Some(log_to_proto(log)),
        previous: previous.0,
        last: last.0,
        reason: reason.into(),
    }
}

/// Word of messages that have expired, as a message.
#[must_use]
pub fn expired_to_proto(expired: &Expired) -> v1::Expired {
    v1::Expired {
        subscription: expired.subscription.0,
        generation: expired.generation.0,
        log: Some(log_to_proto(expired.log)),
        numbers: expired.numbers.iter().map(|number| number.0).collect(),
        cost: expired.cost(),
    }
}

/// Word of messages that have expired, from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` for a log that cannot be, and for none.
pub fn expired_from_proto(expired: &v1::Expired) -> Result<Expired, Error> {
    if expired.numbers.is_empty() || !expired.numbers.is_sorted() {
        return Err(Error::new(ErrorCode::InvalidArgument)
            .field("expired.numbers")
            .value(format_args!("{:?}", expired.numbers))
            .limit("at least one, ascending"));
    }
    Ok(Expired {
        subscription: SubscriptionId(expired.subscription),
        generation: Generation(expired.generation),
        log: log_from_proto(expired.log.as_ref())?,
        numbers: expired.numbers.iter().copied().map(Sequence).collect(),
    })
}

/// A place in a log, in one of its lives, as a message; `epoch` is that of the namespace's map.
#[must_use]
pub fn place_to_proto(place: LogPosition, epoch: MapEpoch) -> v1::At {
    let position = position_of(place.log, place.incarnation, epoch, place.next);
    v1::At {
        log: Some(log_to_proto(place.log)),
        incarnation: place.incarnation.0,
        next: place.next.0,
        epoch: epoch.0,
        position: position.to_string(),
        resumed: false,
        lost_before: None,
        node_ns: 0,
        has_high: false,
    }
}

/// The first of a state's places as a message, and the others.
fn places_to_proto(places: &[LogPosition], epoch: MapEpoch) -> (v1::At, Vec<v1::At>) {
    let mut all = places.iter().map(|place| place_to_proto(*place, epoch));
    let first = all.next();
    if first.is_none() {
        bug!("a state names no log");
    }
    (first.unwrap_or_default(), all.collect())
}

/// A place in a log from a message: the log, its life, and the epoch of the namespace's map.
///
/// # Errors
/// `INVALID_ARGUMENT` for a log that cannot be.
pub fn place_from_proto(at: &v1::At) -> Result<(LogId, Incarnation, MapEpoch), Error> {
    let log = log_from_proto(at.log.as_ref())?;
    Ok((log, Incarnation(at.incarnation), MapEpoch(at.epoch)))
}

/// A subscription's state as a message. `epoch` is that of the namespace's map.
#[must_use]
pub fn status_to_proto(
    subscription: SubscriptionId,
    generation: Generation,
    state: &State,
    epoch: MapEpoch,
) -> v1::Status {
    use v1::status::State as Wire;
    let mut further = Vec::new();
    let mut first = |places: &[LogPosition]| {
        let (first, others) = places_to_proto(places, epoch);
        further = others;
        first
    };
    let state = match state {
        State::Live { places } => Wire::Live(first(places)),
        State::Detached {
            resumed,
            lost_before,
            ..
        } => Wire::Detached(v1::At {
            resumed: *resumed,
            lost_before: lost_before.map(|lost| lost.0),
            ..first(&state.places())
        }),
        State::Complete { places } => Wire::Complete(first(places)),
        State::Changed { places } => Wire::Changed(v1::Changed {
            places: places
                .iter()
                .map(|place| place_to_proto(*place, epoch))
                .collect(),
        }),
        State::Unchanged(error) => Wire::Unchanged(error_to_proto(error)),
        State::Removed => Wire::Removed(true),
        State::Failed(error) => Wire::Failed(error_to_proto(error)),
    };
    v1::Status {
        subscription: subscription.0,
        generation: generation.0,
        state: Some(state),
        further,
    }
}

/// Anything that a node says on a subscribe stream in the stored format, as a message. `epoch_of`
/// knows the namespaces' maps. Acks have no place on this stream: `None`.
pub fn reply_to_proto(
    reply: &Reply,
    epoch_of: impl FnOnce(NamespaceId) -> MapEpoch,
) -> Option<v1::SubscribeResponse> {
    use v1::subscribe_response::Kind;
    let kind = match reply {
        Reply::Acked { .. } => return None,
        Reply::Delivery(delivery) => Kind::Delivery(delivery_to_proto(delivery)),
        Reply::Gap {
            channel,
            log,
            previous,
            last,
            why,
        } => Kind::Gap(gap_to_proto(*channel, *log, (*previous, *last), *why)),
        Reply::Mark {
            log,
            previous,
            next,
        } => Kind::Mark(v1::Mark {
            log: Some(log_to_proto(*log)),
            previous: previous.0,
            next: next.0,
        }),
        Reply::Expired(expired) => Kind::Expired(expired_to_proto(expired)),
        Reply::Clock { asked, node } => Kind::Clock(v1::StreamClock {
            asked_ns: asked.0,
            node_ns: node.0,
        }),
        Reply::Status {
            subscription,
            generation,
            state,
        } => {
            let places = state.places();
            let epoch = match places.first() {
                Some(place) => epoch_of(place.log.namespace),
                None => MapEpoch(0),
            };
            Kind::Status(status_to_proto(*subscription, *generation, state, epoch))
        }
    };
    Some(v1::SubscribeResponse { kind: Some(kind) })
}

/// A node's message on a subscribe stream, as the SDK takes it.
#[derive(Clone, Debug)]
pub enum FromNode {
    /// The answer to Hello.
    Welcome(Welcome),
    /// News that no request asked for.
    News(News),
    /// Anything else.
    Reply(Reply),
}

/// Reads a node's message on a subscribe stream, whose deliveries have no payloads if it asked for
/// `headers_only`. Batches are checked to the last byte.
///
/// # Errors
/// `INVALID_ARGUMENT` for what a node never sends, or what the check of a batch says; `UNIMPLEMENTED` from a node that
/// sends payloads all the same.
pub fn reply_from_proto(
    response: v1::SubscribeResponse,
    headers_only: bool,
) -> Result<FromNode, Error> {
    use v1::subscribe_response::Kind;
    let kind = response.kind.ok_or_else(|| absent("kind"))?;
    Ok(FromNode::Reply(match kind {
        Kind::Hello(hello) => return Ok(FromNode::Welcome(welcome_from_proto(&hello)?)),
        Kind::Alive(alive) => return Ok(FromNode::News(alive_from_proto(&alive))),
        Kind::Nodes(nodes) => {
            return Ok(FromNode::News(News::Nodes(nodes_from_proto(&nodes))));
        }
        Kind::Delivery(delivery) => Reply::Delivery(delivery_from_proto(delivery, headers_only)?),
        Kind::Gap(gap) => gap_from_proto(&gap)?,
        Kind::Expired(expired) => Reply::Expired(expired_from_proto(&expired)?),
        Kind::Clock(clock) => Reply::Clock {
            asked: Mono(clock.asked_ns),
            node: Mono(clock.node_ns),
        },
        Kind::Mark(mark) => Reply::Mark {
            log: log_from_proto(mark.log.as_ref())?,
            previous: Sequence(mark.previous),
            next: Sequence(mark.next),
        },
        Kind::Status(status) => Reply::Status {
            subscription: SubscriptionId(status.subscription),
            generation: Generation(status.generation),
            state: state_from_proto(status.state, &status.further)?,
        },
    }))
}

/// A delivery in the stored format, from a message.
///
/// # Errors
/// As [`reply_from_proto`]; `INVALID_ARGUMENT` for a delivery of plain messages.
pub fn delivery_from_proto(delivery: v1::Delivery, headers_only: bool) -> Result<Delivery, Error> {
    let Some(v1::delivery::Body::Batch(bytes)) = delivery.body else {
        return Err(absent("delivery.batch"));
    };
    let batch = if headers_only {
        check_headers(bytes)?
    } else {
        check_delivered(bytes)?
    };
    let matches = delivery.matches;
    let matches = matches.map(|matches| matches_from_proto(matches, batch.records()));
    Ok(Delivery {
        channel: channel_from_proto(delivery.detached.as_ref()),
        log: log_from_proto(delivery.log.as_ref())?,
        previous: Sequence(delivery.previous),
        last: Sequence(delivery.last),
        base: Sequence(delivery.base),
        appended: AppendTime(delivery.appended_at_us),
        clock: delivery.clock.map(|clock| ClockReading {
            clock: AppendTime(clock.clock_us),
            at: Mono(clock.node_ns),
        }),
        body: Delivered::Whole(batch),
        matches: matches.transpose()?.map(Arc::new),
    })
}

/// Checks a delivered batch, which may be a slice; every checksum must hold.
fn check_delivered(bytes: Bytes) -> Result<Checked<Batch>, Error> {
    let (batch, damaged) = Batch::check_stored(bytes)?;
    match damaged.first() {
        None => Ok(batch),
        Some(record) => Err(Error::new(ErrorCode::BatchMalformed)
            .field(format!("batch.record[{record}].body_crc"))
            .value("does not match")),
    }
}

/// Checks a delivered batch of a stream without payloads. A node that has not heard of those sends them.
fn check_headers(bytes: Bytes) -> Result<Checked<Batch>, Error> {
    Batch::check_headers(bytes).map_err(|error| match error.field_name() {
        "batch.flags" => Error::unimplemented("headers_only").value("a delivery with payloads"),
        _ => error,
    })
}

/// A gap from a message. A reason that this version does not know counts as loss.
///
/// # Errors
/// `INVALID_ARGUMENT` for a log that cannot be.
pub fn gap_from_proto(gap: &v1::Gap) -> Result<Reply, Error> {
    let why = match v1::GapReason::try_from(gap.reason) {
        Ok(v1::GapReason::Unused) => GapReason::Unused,
        Ok(v1::GapReason::Retention) => GapReason::Retention,
        Ok(v1::GapReason::Loss | v1::GapReason::Unspecified) | Err(_) => GapReason::Loss,
    };
    Ok(Reply::Gap {
        channel: channel_from_proto(gap.detached.as_ref()),
        log: log_from_proto(gap.log.as_ref())?,
        previous: Sequence(gap.previous),
        last: Sequence(gap.last),
        why,
    })
}

fn state_from_proto(state: Option<v1::status::State>, further: &[v1::At]) -> Result<State, Error> {
    use v1::status::State as Wire;
    let places = |first: &v1::At| -> Result<Places, Error> {
        let all = [first].into_iter().chain(further);
        all.map(position_from_proto).collect()
    };
    Ok(match state.ok_or_else(|| absent("status.state"))? {
        Wire::Live(at) => State::Live {
            places: places(&at)?,
        },
        Wire::Detached(at) => State::Detached {
            log: log_from_proto(at.log.as_ref())?,
            incarnation: Incarnation(at.incarnation),
            next: Sequence(at.next),
            resumed: at.resumed,
            lost_before: at.lost_before.map(Sequence),
            beside: beside_from_proto(log_from_proto(at.log.as_ref())?, further)?,
        },
        Wire::Complete(at) => State::Complete {
            places: places(&at)?,
        },
        Wire::Changed(changed) => State::Changed {
            places: changed
                .places
                .iter()
                .map(position_from_proto)
                .collect::<Result<_, _>>()?,
        },
        Wire::Unchanged(error) => State::Unchanged(error_from_proto(&error)),
        Wire::Removed(_) => State::Removed,
        Wire::Failed(error) => State::Failed(error_from_proto(&error)),
    })
}

/// The place in the other lane that a status of one lane tells of, too.
fn beside_from_proto(log: LogId, further: &[v1::At]) -> Result<Option<LogPosition>, Error> {
    let lane = log.lane.other();
    let twin = LogId { lane, ..log };
    let places = further.iter().map(position_from_proto);
    match places.collect::<Result<Vec<_>, _>>()?[..] {
        [] => Ok(None),
        [beside] if beside.log == twin => Ok(Some(beside)),
        _ => Err(Error::new(ErrorCode::InvalidArgument)
            .field("status.further")
            .limit(twin)),
    }
}

fn position_from_proto(at: &v1::At) -> Result<LogPosition, Error> {
    Ok(LogPosition {
        log: log_from_proto(at.log.as_ref())?,
        incarnation: Incarnation(at.incarnation),
        next: Sequence(at.next),
    })
}

fn channel_to_proto(channel: Channel) -> Option<v1::Detached> {
    match channel {
        Channel::Live => None,
        Channel::Detached(subscription, generation) => Some(v1::Detached {
            subscription: subscription.0,
            generation: generation.0,
        }),
    }
}

fn channel_from_proto(detached: Option<&v1::Detached>) -> Channel {
    match detached {
        None => Channel::Live,
        Some(detached) => Channel::Detached(
            SubscriptionId(detached.subscription),
            Generation(detached.generation),
        ),
    }
}

fn absent(field: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument)
        .field(field)
        .value("absent")
}
