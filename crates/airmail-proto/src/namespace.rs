//! Namespaces, retention, durability.

use crate::v1;
use airmail_model::{
    Durability, EarlierLogs, Error, ErrorCode, LogIndex, MapEpoch, Namespace, NamespaceId,
    NamespaceSpec, Retention, StorageName, Synced,
};

/// The promise of each copy, as a message; the number of copies is a field beside it.
#[must_use]
pub fn synced_to_proto(synced: Synced) -> v1::Durability {
    match synced {
        Synced::Memory => v1::Durability::Memory,
        Synced::Os => v1::Durability::Os,
        Synced::Fsync => v1::Durability::Fsync,
    }
}

/// A durability from its two fields in a message; no copies count as 1. `None`: unspecified.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number that is no durability, for more than 255 copies, and for copies of which
/// is not said how they are held.
pub fn durability_from_proto(number: i32, copies: u32) -> Result<Option<Durability>, Error> {
    let invalid = |field: &str, value: i64, limit: &str| {
        Err(Error::new(ErrorCode::InvalidArgument)
            .field(field)
            .value(value)
            .limit(limit))
    };
    let Ok(held) = v1::Durability::try_from(number) else {
        return invalid("durability", number.into(), "0 to 3");
    };
    let synced = match held {
        v1::Durability::Unspecified if copies > 1 => {
            return invalid("copies", copies.into(), "with a durability");
        }
        v1::Durability::Unspecified => return Ok(None),
        v1::Durability::Memory => Synced::Memory,
        v1::Durability::Os => Synced::Os,
        v1::Durability::Fsync => Synced::Fsync,
    };
    match u8::try_from(copies.max(1)) {
        Ok(copies) => Ok(Some(Durability { synced, copies })),
        Err(_) => invalid("copies", copies.into(), "1 to 255"),
    }
}

/// A retention as a message.
#[must_use]
pub fn retention_to_proto(retention: &Retention) -> v1::Retention {
    v1::Retention {
        time_ms: retention.time_ms,
        bytes: retention.bytes,
    }
}

/// A retention from a message.
#[must_use]
pub fn retention_from_proto(retention: &v1::Retention) -> Retention {
    Retention {
        time_ms: retention.time_ms,
        bytes: retention.bytes,
    }
}

/// A change of a namespace, as a request asks for it. `None`: not in the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecChange {
    /// Logs in the normal lane.
    pub logs: Option<u16>,
    /// Time and size for which records are kept.
    pub retention: Option<Retention>,
    /// Promise of an ack.
    pub durability: Option<Durability>,
    /// The storage that has its logs.
    pub storage: Option<StorageName>,
}

/// Reads the change of a namespace that a request asks for.
///
/// # Errors
/// `INVALID_ARGUMENT` for a durability that is none and for what cannot be a storage's name;
/// `NAMESPACE_INVALID` for too many logs.
pub fn spec_from_proto(spec: Option<&v1::NamespaceSpec>) -> Result<SpecChange, Error> {
    let Some(spec) = spec else {
        return Ok(SpecChange::default());
    };
    let logs = u16::try_from(spec.logs).map_err(|_| {
        Error::new(ErrorCode::NamespaceInvalid)
            .field("logs")
            .value(spec.logs)
            .limit(format!("1 to {}", airmail_model::namespace::LOGS_MAX))
    })?;
    Ok(SpecChange {
        logs: (logs > 0).then_some(logs),
        retention: spec.retention.as_ref().map(retention_from_proto),
        durability: durability_from_proto(spec.durability, spec.copies)?,
        storage: Some(StorageName::or_first(&spec.storage, "namespace.storage")?)
            .filter(|storage| !storage.is_first()),
    })
}

/// A change as a message.
#[must_use]
pub fn spec_to_proto(change: &SpecChange) -> v1::NamespaceSpec {
    v1::NamespaceSpec {
        logs: change.logs.unwrap_or(0).into(),
        retention: change.retention.as_ref().map(retention_to_proto),
        durability: change
            .durability
            .map_or(v1::Durability::Unspecified, |d| synced_to_proto(d.synced))
            .into(),
        copies: change.durability.map_or(0, |d| d.copies.into()),
        storage: change.storage.unwrap_or_default().to_string(),
    }
}

/// A namespace as a message.
#[must_use]
pub fn namespace_to_proto(namespace: &Namespace) -> v1::Namespace {
    let spec = &namespace.spec;
    v1::Namespace {
        name: namespace.name.clone(),
        id: namespace.id.0,
        spec: Some(v1::NamespaceSpec {
            logs: spec.logs.into(),
            retention: Some(retention_to_proto(&spec.retention)),
            durability: synced_to_proto(spec.durability.synced).into(),
            copies: spec.durability.copies.into(),
            storage: spec.storage.to_string(),
        }),
        version: namespace.version,
        epoch: namespace.epoch.0,
        first_log: namespace.first_log.0.into(),
        earlier: namespace.earlier.iter().map(earlier_to_proto).collect(),
    }
}

fn earlier_to_proto(earlier: &EarlierLogs) -> v1::EarlierLogs {
    v1::EarlierLogs {
        epoch: earlier.epoch.0,
        storage: earlier.storage.to_string(),
        first_log: earlier.first_log.0.into(),
        logs: earlier.logs.into(),
    }
}

fn earlier_from_proto(earlier: &v1::EarlierLogs) -> Result<EarlierLogs, Error> {
    Ok(EarlierLogs {
        epoch: MapEpoch(earlier.epoch),
        storage: StorageName::or_first(&earlier.storage, "namespace.earlier.storage")?,
        first_log: log_index(earlier.first_log)?,
        logs: log_index(earlier.logs)?.0,
    })
}

/// An index of a log, or a number of logs, of which there are as many.
fn log_index(number: u32) -> Result<LogIndex, Error> {
    u16::try_from(number).map(LogIndex).map_err(|_| {
        Error::new(ErrorCode::InvalidArgument)
            .field("namespace.first_log")
            .value(number)
            .limit(u16::MAX)
    })
}

/// A namespace from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` or `NAMESPACE_INVALID` for what a node never sends.
pub fn namespace_from_proto(namespace: v1::Namespace) -> Result<Namespace, Error> {
    let change = spec_from_proto(namespace.spec.as_ref())?;
    let unset = NamespaceSpec::default();
    Ok(Namespace {
        id: NamespaceId(namespace.id),
        name: namespace.name,
        spec: NamespaceSpec {
            logs: change.logs.unwrap_or(unset.logs),
            retention: change.retention.unwrap_or_default(),
            durability: change.durability.unwrap_or(unset.durability),
            storage: change.storage.unwrap_or_default(),
        },
        version: namespace.version,
        epoch: MapEpoch(namespace.epoch),
        first_log: log_index(namespace.first_log)?,
        earlier: namespace
            .earlier
            .iter()
            .map(earlier_from_proto)
            .collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_survives() {
        let namespace = Namespace {
            id: NamespaceId(7),
            name: "logs".into(),
            spec: NamespaceSpec {
                logs: 4,
                retention: Retention {
                    time_ms: Some(1),
                    bytes: None,
                },
                durability: Durability {
                    synced: Synced::Os,
                    copies: 3,
                },
                storage: StorageName::new("fast").unwrap(),
            },
            version: 3,
            epoch: MapEpoch(2),
            first_log: LogIndex(4),
            earlier: vec![EarlierLogs {
                epoch: MapEpoch(1),
                storage: StorageName::FIRST,
                first_log: LogIndex(0),
                logs: 4,
            }],
        };
        let back = namespace_from_proto(namespace_to_proto(&namespace));
        assert_eq!(back.unwrap(), namespace);
    }

    #[test]
    fn copies_go_with_a_durability_and_without_them_there_is_one() {
        let os = v1::Durability::Os as i32;
        let durability = |copies| Durability {
            synced: Synced::Os,
            copies,
        };
        assert_eq!(durability_from_proto(os, 0), Ok(Some(Durability::OS)));
        assert_eq!(durability_from_proto(os, 1), Ok(Some(Durability::OS)));
        assert_eq!(durability_from_proto(os, 255), Ok(Some(durability(255))));
        assert_eq!(durability_from_proto(0, 0), Ok(None));
        // An older client sends back what it was told.
        assert_eq!(durability_from_proto(0, 1), Ok(None));
        for (number, copies) in [(os, 256), (0, 2)] {
            let error = durability_from_proto(number, copies).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            assert_eq!(error.field_name(), "copies");
        }
    }

    #[test]
    fn a_storage_is_named_or_not_asked_for() {
        let of = |storage: &str| {
            let storage = storage.to_owned();
            let spec = v1::NamespaceSpec {
                storage,
                ..Default::default()
            };
            spec_from_proto(Some(&spec)).map(|change| change.storage)
        };
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("fast"), Ok(StorageName::new("fast")));
        let error = of("Fast").unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert_eq!(error.field_name(), "namespace.storage");
    }

    #[test]
    fn too_many_logs_and_an_unknown_durability_are_refused() {
        let spec = v1::NamespaceSpec {
            logs: 70_000,
            ..Default::default()
        };
        assert_eq!(
            spec_from_proto(Some(&spec)).unwrap_err().field_name(),
            "logs"
        );
        assert_eq!(
            durability_from_proto(9, 1).unwrap_err().field_name(),
            "durability"
        );
    }
}
