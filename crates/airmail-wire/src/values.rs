//! Values that messages have in common: logs, durabilities, bounds, refusals.

use crate::link_v1;
use crate::malformed::Malformed;
use airmail_log::{Bounds, LogSpec, Refusal, Soundness};
use airmail_model::{
    AppendTime, Durability, Extent, GroupId, Holder, Incarnation, Lane, LogId, LogIndex, MapEpoch,
    NamespaceId, NodeId, ProducerSequence, Provisions, Retention, Sequence, StorageName, Synced,
    Term,
};
use bytes::Bytes;
use std::time::Duration;

/// A field that has to be there.
pub(crate) fn need<T>(value: Option<T>, field: &'static str) -> Result<T, Malformed> {
    value.ok_or(Malformed::Missing { field })
}

/// A number in the width that it has here.
pub(crate) fn narrow<T: TryFrom<u32>>(value: u32, field: &'static str) -> Result<T, Malformed> {
    T::try_from(value).map_err(|_| Malformed::value(field, value))
}

pub(crate) fn log_to_wire(log: LogId) -> link_v1::LogId {
    link_v1::LogId {
        namespace: log.namespace.0,
        lane: u32::from(log.lane as u8),
        index: log.index.0.into(),
    }
}

pub(crate) fn log_from_wire(log: link_v1::LogId) -> Result<LogId, Malformed> {
    let lane = narrow(log.lane, "log.lane")?;
    Ok(LogId {
        namespace: NamespaceId(log.namespace),
        lane: Lane::from_u8(lane).ok_or(Malformed::value("log.lane", lane))?,
        index: LogIndex(narrow(log.index, "log.index")?),
    })
}

/// The log of a message, which has to name one.
pub(crate) fn log_of(log: Option<link_v1::LogId>) -> Result<LogId, Malformed> {
    log_from_wire(need(log, "log")?)
}

pub(crate) fn extent_to_wire(extent: Extent) -> link_v1::Extent {
    link_v1::Extent {
        first: extent.first.0,
        last: extent.last.0,
    }
}

pub(crate) fn extent_from_wire(extent: Option<link_v1::Extent>) -> Result<Extent, Malformed> {
    let link_v1::Extent { first, last } = need(extent, "extent")?;
    if first > last {
        return Err(Malformed::value("extent.last", last));
    }
    Ok(Extent {
        first: Sequence(first),
        last: Sequence(last),
    })
}

pub(crate) fn durability_to_wire(durability: Durability) -> link_v1::Durability {
    let synced = match durability.synced {
        Synced::Memory => link_v1::durability::Synced::Memory,
        Synced::Os => link_v1::durability::Synced::Os,
        Synced::Fsync => link_v1::durability::Synced::Fsync,
    };
    link_v1::Durability {
        synced: synced.into(),
        copies: durability.copies.into(),
    }
}

pub(crate) fn durability_from_wire(
    durability: Option<link_v1::Durability>,
) -> Result<Durability, Malformed> {
    let link_v1::Durability { synced, copies } = need(durability, "durability")?;
    let synced = match link_v1::durability::Synced::try_from(synced) {
        Ok(link_v1::durability::Synced::Memory) => Synced::Memory,
        Ok(link_v1::durability::Synced::Os) => Synced::Os,
        Ok(link_v1::durability::Synced::Fsync) => Synced::Fsync,
        Err(_) => return Err(Malformed::value("durability.synced", synced)),
    };
    let copies = narrow(copies, "durability.copies")?;
    if copies == 0 {
        return Err(Malformed::value("durability.copies", copies));
    }
    Ok(Durability { synced, copies })
}

pub(crate) fn spec_to_wire(spec: &LogSpec) -> link_v1::LogSpec {
    link_v1::LogSpec {
        durability: Some(durability_to_wire(spec.durability)),
        retention_time_ms: spec.retention.time_ms,
        retention_bytes: spec.retention.bytes,
        epoch: spec.epoch.0,
        as_of: spec.as_of.0,
        storage: spec.storage.as_str().to_owned(),
        provisions: provisions_to_wire(&spec.provisions),
        cuts: spec.soundness.cuts,
        cut_at: spec.soundness.cut_at.0,
        is_suspended: spec.soundness.is_suspended,
    }
}

pub(crate) fn spec_from_wire(spec: Option<link_v1::LogSpec>) -> Result<LogSpec, Malformed> {
    let spec = need(spec, "spec")?;
    Ok(LogSpec {
        durability: durability_from_wire(spec.durability)?,
        retention: Retention {
            time_ms: spec.retention_time_ms,
            bytes: spec.retention_bytes,
        },
        epoch: MapEpoch(spec.epoch),
        as_of: Sequence(spec.as_of),
        storage: storage_from_wire(&spec.storage)?,
        provisions: provisions_from_wire(&spec.provisions)?,
        soundness: Soundness {
            cuts: spec.cuts,
            cut_at: Sequence(spec.cut_at),
            is_suspended: spec.is_suspended,
        },
    })
}

pub(crate) fn provisions_to_wire(provisions: &Provisions) -> Bytes {
    Bytes::copy_from_slice(provisions.as_bytes())
}

pub(crate) fn provisions_from_wire(bytes: &[u8]) -> Result<Provisions, Malformed> {
    Provisions::new(bytes).ok_or_else(|| Malformed::value("provisions", bytes.len()))
}

pub(crate) fn storage_from_wire(name: &str) -> Result<StorageName, Malformed> {
    if name.is_empty() {
        return Ok(StorageName::FIRST);
    }
    StorageName::new(name).ok_or_else(|| Malformed::value("storage", name.escape_debug()))
}

pub(crate) fn bounds_to_wire(bounds: &Bounds) -> link_v1::Bounds {
    link_v1::Bounds {
        first: bounds.first.0,
        next: bounds.next.0,
        reach: bounds.reach.0,
        incarnation: bounds.incarnation.0,
        first_time: bounds.first_time.map(|at| at.0),
        bytes: bounds.bytes,
        sealed: bounds.sealed.map(|next| next.0),
    }
}

pub(crate) fn bounds_from_wire(bounds: Option<link_v1::Bounds>) -> Result<Bounds, Malformed> {
    let bounds = need(bounds, "bounds")?;
    Ok(Bounds {
        first: Sequence(bounds.first),
        next: Sequence(bounds.next),
        reach: Sequence(bounds.reach),
        incarnation: Incarnation(bounds.incarnation),
        first_time: bounds.first_time.map(AppendTime),
        bytes: bounds.bytes,
        sealed: bounds.sealed.map(MapEpoch),
    })
}

/// A duration in whole microseconds; one of more than 500,000 years is that.
fn micros(duration: Duration) -> link_v1::refusal::RetryAfter {
    link_v1::refusal::RetryAfter {
        us: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
    }
}

pub(crate) fn refusal_to_wire(why: Refusal) -> link_v1::Refusal {
    use link_v1::refusal::{Nothing, Why};
    let why = match why {
        Refusal::Full { retry_after } => Why::Full(micros(retry_after)),
        Refusal::Busy { retry_after } => Why::Busy(micros(retry_after)),
        Refusal::Away { retry_after } => Why::Away(micros(retry_after)),
        Refusal::StaleMap { current } => Why::StaleMap(current.0),
        Refusal::Sealed { next } => Why::Sealed(next.0),
        Refusal::OutOfOrder { expected, found } => Why::OutOfOrder(link_v1::refusal::OutOfOrder {
            expected: expected.0,
            found: found.0,
        }),
        Refusal::UnknownProducer => Why::UnknownProducer(Nothing {}),
        Refusal::Fenced => Why::Fenced(Nothing {}),
        Refusal::NoLog => Why::NoLog(Nothing {}),
        Refusal::Elsewhere(holder) => Why::Elsewhere(link_v1::refusal::Holder {
            node: holder.node.map(|node| node.0),
            group: holder.group.map(|group| group.0),
            term: holder.term.0,
        }),
        Refusal::Unsupported(what) => Why::Unsupported(what.into_owned()),
        Refusal::OutcomeUnknown => Why::OutcomeUnknown(Nothing {}),
        Refusal::Io(error) => Why::Io(error),
        Refusal::Suspended(why) => Why::Suspended(why),
    };
    link_v1::Refusal { why: Some(why) }
}

pub(crate) fn refusal_from_wire(refusal: link_v1::Refusal) -> Result<Refusal, Malformed> {
    use link_v1::refusal::Why;
    let after = |after: link_v1::refusal::RetryAfter| Duration::from_micros(after.us);
    Ok(match need(refusal.why, "refusal.why")? {
        Why::Full(full) => Refusal::Full {
            retry_after: after(full),
        },
        Why::Busy(busy) => Refusal::Busy {
            retry_after: after(busy),
        },
        Why::Away(away) => Refusal::Away {
            retry_after: after(away),
        },
        Why::StaleMap(current) => Refusal::StaleMap {
            current: MapEpoch(current),
        },
        Why::Sealed(next) => Refusal::Sealed {
            next: MapEpoch(next),
        },
        Why::OutOfOrder(order) => Refusal::OutOfOrder {
            expected: ProducerSequence(order.expected),
            found: ProducerSequence(order.found),
        },
        Why::UnknownProducer(_) => Refusal::UnknownProducer,
        Why::Fenced(_) => Refusal::Fenced,
        Why::NoLog(_) => Refusal::NoLog,
        Why::Elsewhere(holder) => Refusal::Elsewhere(Holder {
            node: holder.node.map(NodeId),
            group: holder.group.map(GroupId),
            term: Term(holder.term),
        }),
        Why::Unsupported(what) => Refusal::Unsupported(what.into()),
        Why::OutcomeUnknown(_) => Refusal::OutcomeUnknown,
        Why::Io(error) => Refusal::Io(error),
        Why::Suspended(why) => Refusal::Suspended(why),
    })
}
