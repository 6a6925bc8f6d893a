//! Messages of a subscribe stream: subscriptions and credit up, deliveries and what belongs to
//! them down.

mod matches;
mod replies;
mod wanted;

pub use replies::{
    DeliveryHead, FromNode, delivery_from_proto, delivery_to_proto, expired_from_proto,
    expired_to_proto, gap_from_proto, gap_to_proto, place_from_proto, place_to_proto,
    reply_from_proto, reply_to_proto, status_to_proto,
};
pub use wanted::{Named, named_from_proto, selection_to_proto};

use crate::v1;
use airmail_model::filter::Filter;
use airmail_model::frame::{Change, Generation, Lanes, Start, Subscribe, SubscriptionId, Until};
use airmail_model::namespace::{namespace_not_found, namespace_or_default};
use airmail_model::{
    AppendTime, Error, ErrorCode, Lane, Limits, MapEpoch, NamespaceId, Position, Sequence,
};
use std::sync::Arc;

/// A subscription as asked for, from a message; `id_of` knows the namespaces.
///
/// # Errors
/// Those of [`named_from_proto`], `NAMESPACE_NOT_FOUND`, `POSITION_INVALID`, those of a filter, and `UNIMPLEMENTED` for a
/// name.
pub fn subscribe_from_proto(
    add: &v1::Add,
    limits: &Limits,
    id_of: impl FnOnce(&str) -> Option<NamespaceId>,
) -> Result<Subscribe, Error> {
    if !add.name.is_empty() {
        return Err(Error::unimplemented("name").value(&add.name).limit("empty"));
    }
    let wanted = named_from_proto(&add.topic, add.selector.as_ref(), add.log, limits)?;
    let name = namespace_or_default(&add.namespace);
    let namespace = id_of(name).ok_or_else(|| namespace_not_found(name))?;
    Ok(Subscribe {
        subscription: SubscriptionId(add.subscription),
        generation: Generation(add.generation),
        namespace,
        wanted: wanted.within(namespace),
        start: start_from_proto(add.start.as_ref())?.unwrap_or_default(),
        until: None,
        tell_expired: add.tell_expired,
        filter: filter_from_proto(&add.filter)?,
        headers_only: add.headers_only,
        matches: add.matches,
        lanes: lanes_from_proto(add.start.as_ref())?,
    })
}

/// Another filter for a subscription, from a message.
///
/// # Errors
/// Those of a filter; `FILTER_INVALID` for the empty one, too.
pub fn change_from_proto(change: &v1::Change) -> Result<Change, Error> {
    Ok(Change {
        subscription: SubscriptionId(change.subscription),
        generation: Generation(change.generation),
        filter: Arc::new(Filter::parse(&change.filter)?),
    })
}

/// Another filter for a subscription, as a message.
#[must_use]
pub fn change_to_proto(change: &Change) -> v1::Change {
    v1::Change {
        subscription: change.subscription.0,
        generation: change.generation.0,
        filter: change.filter.to_string(),
    }
}

/// A filter from its text; `None` for the empty one.
///
/// # Errors
/// `FILTER_INVALID`, `FILTER_TOO_COMPLEX`.
pub fn filter_from_proto(text: &str) -> Result<Option<Arc<Filter>>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Filter::parse(text)?)))
}

/// A filter as text; the empty one for none.
#[must_use]
pub fn filter_to_proto(filter: Option<&Filter>) -> String {
    filter.map_or_else(String::new, Filter::to_string)
}

/// A start from a message; `None` where there is none.
///
/// # Errors
/// `POSITION_INVALID` for a position that cannot be read.
pub fn start_from_proto(start: Option<&v1::Start>) -> Result<Option<Start>, Error> {
    let Some(at) = start.and_then(|start| start.at.as_ref()) else {
        return Ok(None);
    };
    Ok(Some(match at {
        v1::start::At::Latest(_) => Start::Latest,
        v1::start::At::Earliest(_) => Start::Earliest,
        v1::start::At::Sequence(sequence) => Start::Sequence(Sequence(*sequence)),
        v1::start::At::TimeUs(time) => Start::Time(AppendTime(*time)),
        v1::start::At::Position(text) => Start::Position(text.parse::<Position>()?),
    }))
}

/// A position in lane high beside a start or an end, where it says nothing.
///
/// # Errors
/// `INVALID_ARGUMENT` with the field, if there is one.
pub fn no_place_in_high(start: Option<&v1::Start>, field: &'static str) -> Result<(), Error> {
    match start {
        Some(start) if !start.high.is_empty() => Err(Error::new(ErrorCode::InvalidArgument)
            .field(field)
            .value(&start.high)
            .limit("only in Add, beside a sequence")),
        _ => Ok(()),
    }
}

/// Where a subscription that begins at a number goes on in lane high, from a message.
///
/// # Errors
/// Those of a position; `INVALID_ARGUMENT` for one that is not of one log of lane high, or beside anything but a number.
fn lanes_from_proto(start: Option<&v1::Start>) -> Result<Lanes, Error> {
    let text = start.map_or("", |start| &start.high);
    if text.is_empty() {
        return Ok(Lanes::Each);
    }
    if !matches!(
        start.and_then(|start| start.at.as_ref()),
        Some(v1::start::At::Sequence(_))
    ) {
        no_place_in_high(start, "start.high")?;
    }
    let position = text.parse::<Position>()?;
    match position.logs[..] {
        [place] if place.log.lane == Lane::High => Ok(Lanes::HighFrom(place)),
        _ => Err(Error::new(ErrorCode::InvalidArgument)
            .field("start.high")
            .value(text)
            .limit("a position in one log of lane high")),
    }
}

/// Where a look into history ends, from a message. Absent: the end as it is now.
///
/// # Errors
/// `INVALID_ARGUMENT` for a start that is no end.
pub fn until_from_proto(until: Option<&v1::Start>) -> Result<Until, Error> {
    let Some(at) = until.and_then(|until| until.at.as_ref()) else {
        return Ok(Until::Now);
    };
    let found = match at {
        v1::start::At::Sequence(sequence) => return Ok(Until::Sequence(Sequence(*sequence))),
        v1::start::At::TimeUs(time) => return Ok(Until::Time(AppendTime(*time))),
        v1::start::At::Latest(_) => "latest",
        v1::start::At::Earliest(_) => "earliest",
        v1::start::At::Position(_) => "position",
    };
    Err(Error::new(ErrorCode::InvalidArgument)
        .field("until")
        .value(found)
        .limit("sequence or time_us"))
}

/// A subscription as asked for, as a message. Names are the caller's: a [`Subscribe`] has none. That of a selection's topic is
/// empty.
#[must_use]
pub fn subscribe_to_proto(
    subscribe: &Subscribe,
    namespace: &str,
    topic: &str,
    batches: bool,
) -> v1::Add {
    let (selector, log) = selection_to_proto(&subscribe.wanted);
    v1::Add {
        subscription: subscribe.subscription.0,
        generation: subscribe.generation.0,
        namespace: namespace.to_owned(),
        topic: topic.to_owned(),
        start: Some(v1::Start {
            high: high_to_proto(subscribe),
            ..start_to_proto(&subscribe.start)
        }),
        batches,
        name: String::new(),
        filter: filter_to_proto(subscribe.filter.as_deref()),
        tell_expired: subscribe.tell_expired,
        headers_only: subscribe.headers_only,
        selector,
        log,
        matches: subscribe.matches,
    }
}

/// A start as a message.
#[must_use]
pub fn start_to_proto(start: &Start) -> v1::Start {
    v1::Start {
        at: Some(match start {
            Start::Latest => v1::start::At::Latest(true),
            Start::Earliest => v1::start::At::Earliest(true),
            Start::Sequence(sequence) => v1::start::At::Sequence(sequence.0),
            Start::Time(time) => v1::start::At::TimeUs(time.0),
            Start::Position(position) => v1::start::At::Position(position.to_string()),
        }),
        high: String::new(),
    }
}

/// Where a subscription goes on in lane high that begins at a number, as text.
fn high_to_proto(subscribe: &Subscribe) -> String {
    let Lanes::HighFrom(place) = subscribe.lanes else {
        return String::new();
    };
    let position = Position {
        namespace: subscribe.namespace,
        epoch: MapEpoch(1),
        logs: vec![place],
    };
    position.to_string()
}

/// The end of a look into history as a message; `None` for the end as it is now.
#[must_use]
pub fn until_to_proto(until: Until) -> Option<v1::Start> {
    let at = match until {
        Until::Now => return None,
        Until::Sequence(sequence) => v1::start::At::Sequence(sequence.0),
        Until::Time(time) => v1::start::At::TimeUs(time.0),
    };
    let high = String::new();
    Some(v1::Start { at: Some(at), high })
}

#[cfg(test)]
mod tests;
