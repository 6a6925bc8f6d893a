//! Properties that the user must not set: the collector's promises rest on them.

use super::error::CollectError;
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

/// They belong to no flag and to no property.
const OURS: [&str; 12] = [
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "message.send.max.retries",
    "retries",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "partition.assignment.strategy",
    "group.id",
    "group.protocol",
];

/// Adds the user's properties.
///
/// # Errors
/// One of them is ours.
pub(super) fn add(
    config: &mut ClientConfig,
    properties: &[(String, String)],
    which: &'static str,
) -> Result<(), CollectError> {
    for (name, value) in properties {
        if OURS.contains(&&**name) {
            let reserved = "what the collector promises rests on it".to_owned();
            let (name, value) = (name.clone(), value.clone());
            let code = RDKafkaConfRes::RD_KAFKA_CONF_INVALID;
            let error = KafkaError::ClientConfig(code, reserved, name, value);
            return Err(CollectError::Client { which, error });
        }
        config.set(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_cannot_be_set_away() {
        let mut config = ClientConfig::new();
        let set = |name: &str| [(name.to_owned(), "x".to_owned())];
        add(&mut config, &set("client.rack"), "main").unwrap();
        assert_eq!(config.get("client.rack"), Some("x"));
        let refused = add(&mut config, &set("acks"), "main").unwrap_err();
        assert!(refused.to_string().contains("acks"), "{refused}");
        assert!(refused.is_final());
    }
}
