//! Namespaces, retention, durability.

use crate::v1;
use airmail_model::{
    Durability, Error, ErrorCode, MapEpoch, Namespace, NamespaceId, NamespaceSpec, Retention,
};

/// A durability as a message.
#[must_use]
pub fn durability_to_proto(durability: Durability) -> v1::Durability {
    match durability {
        Durability::Memory => v1::Durability::Memory,
        Durability::Os => v1::Durability::Os,
        Durability::Fsync => v1::Durability::Fsync,
    }
}

/// A durability from its number in a message. `None`: unspecified.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number that is no durability.
pub fn durability_from_proto(number: i32) -> Result<Option<Durability>, Error> {
    match v1::Durability::try_from(number) {
        Ok(v1::Durability::Unspecified) => Ok(None),
        Ok(v1::Durability::Memory) => Ok(Some(Durability::Memory)),
        Ok(v1::Durability::Os) => Ok(Some(Durability::Os)),
        Ok(v1::Durability::Fsync) => Ok(Some(Durability::Fsync)),
        Err(_) => Err(Error::new(ErrorCode::InvalidArgument)
            .field("durability")
            .value(number)
            .limit("0 to 3")),
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
}

/// Reads the change of a namespace that a request asks for.
///
/// # Errors
/// `INVALID_ARGUMENT` for a durability that is none; `NAMESPACE_INVALID` for too many logs;
/// `UNIMPLEMENTED` for more than one copy.
pub fn spec_from_proto(spec: Option<&v1::NamespaceSpec>) -> Result<SpecChange, Error> {
    let Some(spec) = spec else {
        return Ok(SpecChange::default());
    };
    if spec.copies > 1 {
        return Err(Error::unimplemented("copies").value(spec.copies).limit(1));
    }
    let logs = u16::try_from(spec.logs).map_err(|_| {
        Error::new(ErrorCode::NamespaceInvalid)
            .field("logs")
            .value(spec.logs)
            .limit(format!("1 to {}", airmail_model::namespace::LOGS_MAX))
    })?;
    Ok(SpecChange {
        logs: (logs > 0).then_some(logs),
        retention: spec.retention.as_ref().map(retention_from_proto),
        durability: durability_from_proto(spec.durability)?,
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
            .map_or(v1::Durability::Unspecified, durability_to_proto)
            .into(),
        copies: 0,
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
            durability: durability_to_proto(spec.durability).into(),
            copies: 1,
        }),
        version: namespace.version,
        epoch: namespace.epoch.0,
    }
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
        },
        version: namespace.version,
        epoch: MapEpoch(namespace.epoch),
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
                durability: Durability::Os,
            },
            version: 3,
            epoch: MapEpoch(2),
        };
        let back = namespace_from_proto(namespace_to_proto(&namespace));
        assert_eq!(back.unwrap(), namespace);
    }

    #[test]
    fn copies_are_refused_by_name() {
        let spec = v1::NamespaceSpec {
            copies: 2,
            ..Default::default()
        };
        let error = spec_from_proto(Some(&spec)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unimplemented);
        assert_eq!(error.field_name(), "copies");
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
            durability_from_proto(9).unwrap_err().field_name(),
            "durability"
        );
    }
}
