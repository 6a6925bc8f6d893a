//! Hello, limits and maps.
//!
//! A map travels as runs of slots with one owner: a namespace of one log is one run.

use crate::v1;
use airmail_model::frame::{Hello, NODES_TOLD_MAX, NamedMap, News, Nodes, ServingNode, Welcome};
use airmail_model::{Error, ErrorCode, Limits, LogIndex, LogMap, MapEpoch, NamespaceId, map};
use std::time::Duration;

/// The lowest protocol version that this build speaks.
pub const PROTOCOL_MIN: u32 = 1;
/// The highest protocol version that this build speaks.
pub const PROTOCOL_MAX: u32 = 5;

/// The version to be spoken, out of what both sides can.
///
/// # Errors
/// `PROTOCOL_UNSUPPORTED` naming both ranges; `UNIMPLEMENTED` for a feature or a token.
pub fn check_client_hello(hello: &v1::ClientHello) -> Result<u32, Error> {
    let low = hello.protocol_min.max(1);
    let high = hello.protocol_max.max(1);
    let spoken = high.min(PROTOCOL_MAX);
    if low > high || spoken < low || spoken < PROTOCOL_MIN {
        return Err(Error::new(ErrorCode::ProtocolUnsupported)
            .field("protocol_min, protocol_max")
            .value(format!("{low} to {high}"))
            .limit(format!("{PROTOCOL_MIN} to {PROTOCOL_MAX}")));
    }
    let unknown = |feature: &&String| *feature != Hello::FEATURE_ROLES;
    if let Some(feature) = hello.features.iter().find(unknown) {
        return Err(Error::unimplemented("features").value(feature));
    }
    if !hello.token.is_empty() {
        let length = format!("{} bytes", hello.token.len());
        return Err(Error::unimplemented("token").value(length).limit("empty"));
    }
    Ok(spoken)
}

/// A node's answer to Hello, as a message.
#[must_use]
pub fn welcome_to_proto(welcome: &Welcome) -> v1::ServerHello {
    let named = welcome.namespaces.iter();
    v1::ServerHello {
        protocol: welcome.protocol,
        features: Vec::new(),
        node: welcome.node.clone(),
        limits: Some(limits_to_proto(&welcome.limits)),
        namespaces: named
            .map(|named| map_to_proto(&named.name, &named.map))
            .collect(),
        nodes: (welcome.nodes != Nodes::default()).then(|| nodes_to_proto(&welcome.nodes)),
        alive_ms: welcome
            .alive
            .map_or(0, |within| alive_to_proto(within).within_ms),
    }
}

/// A node's answer to Hello, from a message.
///
/// # Errors
/// `PROTOCOL_UNSUPPORTED` if the node chose a version that this build does not speak;
/// `INVALID_ARGUMENT` for a map or limits that cannot be.
pub fn welcome_from_proto(hello: &v1::ServerHello) -> Result<Welcome, Error> {
    if !(PROTOCOL_MIN..=PROTOCOL_MAX).contains(&hello.protocol) {
        return Err(Error::new(ErrorCode::ProtocolUnsupported)
            .field("protocol")
            .value(hello.protocol)
            .limit(format!("{PROTOCOL_MIN} to {PROTOCOL_MAX}")));
    }
    let limits = hello.limits.as_ref();
    let namespaces: Result<Vec<NamedMap>, Error> =
        hello.namespaces.iter().map(map_from_proto).collect();
    Ok(Welcome {
        protocol: hello.protocol,
        node: hello.node.clone(),
        limits: limits
            .map(limits_from_proto)
            .transpose()?
            .unwrap_or_default(),
        namespaces: namespaces?,
        nodes: hello
            .nodes
            .as_ref()
            .map_or_else(Nodes::default, nodes_from_proto),
        alive: (hello.alive_ms > 0).then(|| Duration::from_millis(hello.alive_ms.into())),
    })
}

/// A node's sign of life as a message.
#[must_use]
pub fn alive_to_proto(within: Duration) -> v1::Alive {
    let within_ms = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
    v1::Alive { within_ms }
}

/// A node's sign of life, from a message.
#[must_use]
pub fn alive_from_proto(alive: &v1::Alive) -> News {
    News::Alive(Duration::from_millis(alive.within_ms.into()))
}

/// Nodes that clients may use, as a message.
#[must_use]
pub fn nodes_to_proto(nodes: &Nodes) -> v1::Nodes {
    let node = |node: &ServingNode| v1::ServingNode {
        name: node.name.clone(),
        address: node.address.clone(),
        zone: node.zone.clone(),
        host: node.host.clone(),
        connections: node.connections,
        pilot: node.pilot,
        copilot: node.copilot,
    };
    v1::Nodes {
        nodes: nodes.nodes.iter().map(node).collect(),
        leave: nodes.leave,
    }
}

/// Nodes that clients may use, from a message: [`NODES_TOLD_MAX`] of them at most.
#[must_use]
pub fn nodes_from_proto(nodes: &v1::Nodes) -> Nodes {
    let node = |node: &v1::ServingNode| ServingNode {
        name: node.name.clone(),
        address: node.address.clone(),
        zone: node.zone.clone(),
        host: node.host.clone(),
        connections: node.connections,
        pilot: node.pilot,
        copilot: node.copilot,
    };
    Nodes {
        nodes: nodes.nodes.iter().take(NODES_TOLD_MAX).map(node).collect(),
        leave: nodes.leave,
    }
}

/// Limits as a message.
#[must_use]
pub fn limits_to_proto(limits: &Limits) -> v1::Limits {
    v1::Limits {
        message_bytes: limits.message_bytes,
        topic_bytes: limits.topic_bytes,
        attributes: limits.attributes,
        batch_bytes: limits.batch_bytes,
        batch_records: limits.batch_records.into(),
        frame_bytes: limits.frame_bytes,
        credit_bytes: limits.credit_bytes,
        unacked_bytes: limits.unacked_bytes,
        subscriptions: limits.subscriptions,
        batches_in_flight: limits.batches_in_flight,
    }
}

/// Limits from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number of messages that no batch can have.
pub fn limits_from_proto(limits: &v1::Limits) -> Result<Limits, Error> {
    let batch_records = u16::try_from(limits.batch_records).map_err(|_| {
        Error::new(ErrorCode::InvalidArgument)
            .field("limits.batch_records")
            .value(limits.batch_records)
            .limit(Limits::DEFAULT.batch_records)
    })?;
    Ok(Limits {
        message_bytes: limits.message_bytes,
        topic_bytes: limits.topic_bytes,
        attributes: limits.attributes,
        batch_bytes: limits.batch_bytes,
        batch_records,
        frame_bytes: limits.frame_bytes,
        credit_bytes: limits.credit_bytes,
        unacked_bytes: limits.unacked_bytes,
        subscriptions: limits.subscriptions,
        batches_in_flight: match limits.batches_in_flight {
            0 => Limits::BATCHES_IN_FLIGHT_UNTOLD,
            told => told,
        },
    })
}

/// A map as a message.
#[must_use]
pub fn map_to_proto(name: &str, map: &LogMap) -> v1::NamespaceMap {
    let mut runs: Vec<v1::SlotRun> = Vec::new();
    for owner in map.slots() {
        let log = u32::from(owner.0);
        match runs.last_mut().filter(|run| run.log == log) {
            Some(run) => run.slots += 1,
            None => runs.push(v1::SlotRun { slots: 1, log }),
        }
    }
    v1::NamespaceMap {
        name: name.to_owned(),
        namespace_id: map.namespace.0,
        epoch: map.epoch.0,
        runs,
    }
}

/// A map from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` if its runs do not cover the slots exactly once, or name an impossible log.
pub fn map_from_proto(named: &v1::NamespaceMap) -> Result<NamedMap, Error> {
    let invalid = |field: &str, value: u64, limit: String| {
        Error::new(ErrorCode::InvalidArgument)
            .field(format!("map.runs.{field}"))
            .value(value)
            .limit(limit)
    };
    let total: u64 = named.runs.iter().map(|run| u64::from(run.slots)).sum();
    if total != map::SLOTS as u64 {
        return Err(invalid("slots", total, format!("{} in all", map::SLOTS)));
    }
    let mut slots = Vec::with_capacity(map::SLOTS);
    for run in &named.runs {
        let owner = u16::try_from(run.log)
            .map_err(|_| invalid("log", run.log.into(), format!("at most {}", u16::MAX)))?;
        slots.extend(std::iter::repeat_n(LogIndex(owner), run.slots as usize));
    }
    let map = LogMap::from_slots(
        NamespaceId(named.namespace_id),
        MapEpoch(named.epoch),
        slots,
    );
    let map = map.ok_or_else(|| invalid("slots", total, map::SLOTS.to_string()))?;
    Ok(NamedMap {
        name: named.name.clone(),
        map,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: usize) -> Nodes {
        let node = |number| ServingNode {
            name: format!("n{number}"),
            address: format!("10.0.0.{number}:7400"),
            zone: "west".into(),
            host: format!("host-{number}"),
            connections: 7,
            pilot: true,
            copilot: number % 2 == 0,
        };
        Nodes {
            nodes: (0..count).map(node).collect(),
            leave: true,
        }
    }

    #[test]
    fn no_more_nodes_are_taken_than_a_client_is_told() {
        let told = nodes_from_proto(&nodes_to_proto(&nodes(100)));
        assert_eq!(told, nodes(NODES_TOLD_MAX));
    }

    fn welcome(logs: u16) -> Welcome {
        let map = LogMap::even(NamespaceId(3), MapEpoch(4), LogIndex(2), logs);
        Welcome {
            protocol: 2,
            node: "n1".into(),
            limits: Limits::DEFAULT,
            namespaces: vec![NamedMap {
                name: "default".into(),
                map,
            }],
            nodes: nodes(2),
            alive: Some(Duration::from_millis(300)),
        }
    }

    #[test]
    fn hello_survives_with_any_number_of_logs() {
        for logs in [1, 2, 3, 7, 1_000, 4_096] {
            let welcome = welcome(logs);
            let wire = welcome_to_proto(&welcome);
            assert_eq!(wire.namespaces[0].runs.len(), usize::from(logs));
            assert_eq!(welcome_from_proto(&wire).unwrap(), welcome);
        }
    }

    #[test]
    fn a_node_that_does_not_tell_knows_fewer_batches_again() {
        let mut wire = welcome_to_proto(&welcome(1));
        if let Some(limits) = &mut wire.limits {
            limits.batches_in_flight = 0;
        }
        let limits = welcome_from_proto(&wire).unwrap().limits;
        assert_eq!(limits.batches_in_flight, Limits::BATCHES_IN_FLIGHT_UNTOLD);
    }

    #[test]
    fn a_map_that_does_not_cover_the_slots_is_refused() {
        let mut wire = welcome_to_proto(&welcome(2));
        wire.namespaces[0].runs[0].slots -= 1;
        let error = welcome_from_proto(&wire).unwrap_err();
        assert_eq!(error.found(), "4095");
        wire.namespaces[0].runs[0].slots = u32::MAX;
        assert!(welcome_from_proto(&wire).is_err());
    }

    #[test]
    fn a_protocol_that_is_not_spoken_names_both_ranges() {
        let hello = v1::ClientHello {
            protocol_min: PROTOCOL_MAX + 1,
            protocol_max: 9,
            ..Default::default()
        };
        let error = check_client_hello(&hello).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ProtocolUnsupported);
        assert_eq!((error.found(), error.expected()), ("6 to 9", "1 to 5"));
    }

    #[test]
    fn zero_counts_as_version_one_and_newer_clients_step_down() {
        assert_eq!(check_client_hello(&v1::ClientHello::default()).unwrap(), 1);
        let newer = v1::ClientHello {
            protocol_min: 1,
            protocol_max: 9,
            ..Default::default()
        };
        assert_eq!(check_client_hello(&newer).unwrap(), PROTOCOL_MAX);
    }

    #[test]
    fn a_token_and_a_feature_are_refused_by_name() {
        let token = v1::ClientHello {
            token: "secret".into(),
            ..Default::default()
        };
        let error = check_client_hello(&token).unwrap_err();
        assert_eq!(error.field_name(), "token");
        assert!(!error.to_string().contains("secret"));
        let feature = v1::ClientHello {
            features: vec!["teleport".into()],
            ..Default::default()
        };
        let error = check_client_hello(&feature).unwrap_err();
        assert_eq!(
            (error.field_name(), error.found()),
            ("features", "teleport")
        );
    }
}
