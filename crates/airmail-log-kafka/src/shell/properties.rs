//! Properties of librdkafka's clients: ours, on which promises rest, and those that users may set.
//!
//! What a user may set is a list, not everything but a list: librdkafka has some two hundred properties, and which of
//! them undo a promise is not for a reader of its manual to find out after the fact.

use super::error::OpenError;
use super::settings::{FETCH_AHEAD_BYTES_MIN, KafkaSettings};
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

/// Beginnings of the names that users may set: connections, TLS, SASL.
const OPEN: [&str; 15] = [
    "broker.address.",
    "client.dns.lookup",
    "client.software.",
    "connections.max.idle.ms",
    "debug",
    "enable.sasl.oauthbearer.",
    "enable.ssl.",
    "reconnect.backoff.",
    "sasl.",
    "security.",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
    "ssl.",
];

/// Largest record, in bytes: contents of 2 MiB, a key and headers. A topic may take less.
const RECORD_BYTES_MAX: u64 = (2 << 20) + (64 << 10);
/// The most that a broker gives of one partition at once, unless a record is larger.
const FETCH_BYTES_MAX: u64 = 1 << 20;
/// librdkafka's own limits.
const KIB_MAX: u64 = 2_097_151;
const RECORDS_MAX: usize = 10_000_000;

/// Properties of every client.
///
/// # Errors
/// A property that the user has set is not among those that may be.
pub(super) fn client(settings: &KafkaSettings) -> Result<ClientConfig, OpenError> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &settings.bootstrap_servers);
    config.set("client.id", &settings.client_id);
    config.set("allow.auto.create.topics", "false");
    config.set("reconnect.backoff.max.ms", "1000");
    config.set("socket.nagle.disable", "true");
    config.set("log.connection.close", "false");
    config.set_log_level(RDKafkaLogLevel::Warning);
    for (name, value) in &settings.properties {
        let open = OPEN.iter().any(|open| name.starts_with(open));
        if !open {
            let property = name.clone();
            return Err(OpenError::Reserved { property });
        }
        config.set(name, value);
    }
    // Whatever this build of librdkafka cannot do is refused here, by name.
    config.create_native_config()?;
    Ok(config)
}

/// Properties of the producer. Idempotent with all replicas' acks: a record that is sent again after a lost answer is
/// stored once, and never behind a later one. No record is given up for its age, which would let those behind it be stored
/// without it; where one is given up all the same, the producer fails, rather than go on with a gap.
pub(super) fn producer(base: &ClientConfig, settings: &KafkaSettings) -> ClientConfig {
    let mut config = base.clone();
    // The owner's bounds are the settings; these are never met.
    let kib = (settings.queue_bytes.saturating_mul(2) / 1024).clamp(4 << 10, KIB_MAX);
    let records = settings.records_max.saturating_mul(2).clamp(1, RECORDS_MAX);
    config.set("enable.idempotence", "true").set("acks", "all");
    config.set("max.in.flight.requests.per.connection", "5");
    config.set("linger.ms", "0");
    config.set("enable.gapless.guarantee", "true");
    config.set("message.timeout.ms", "0");
    config.set("message.max.bytes", RECORD_BYTES_MAX.to_string());
    config.set("queue.buffering.max.kbytes", kib.to_string());
    config.set("queue.buffering.max.messages", records.to_string());
    config
}

/// Properties of a slot's consumer, which is assigned partitions and is no member of the group that librdkafka wants
/// named.
pub(super) fn consumer(base: &ClientConfig, settings: &KafkaSettings, group: &str) -> ClientConfig {
    let mut config = base.clone();
    let ahead = settings.fetch_ahead_bytes.max(FETCH_AHEAD_BYTES_MIN);
    config.set("group.id", group);
    config.set("enable.auto.commit", "false");
    config.set("enable.auto.offset.store", "false");
    config.set("isolation.level", "read_uncommitted");
    config.set("auto.offset.reset", "error");
    config.set("check.crcs", "true");
    config.set("enable.partition.eof", "true");
    config.set("fetch.wait.max.ms", "100");
    // A second each by default, for which a partition whose queue was full is left alone, or one that had an error.
    config.set("fetch.queue.backoff.ms", "5");
    config.set("fetch.error.backoff.ms", "100");
    config.set(
        "fetch.message.max.bytes",
        ahead.min(FETCH_BYTES_MAX).to_string(),
    );
    let kib = (ahead / 1024).clamp(1, KIB_MAX);
    config.set("queued.max.messages.kbytes", kib.to_string());
    // A broker that accepts and says nothing.
    config.set("socket.timeout.ms", "10000");
    // Time for which a topic that is not there may be too new to be known.
    config.set("topic.metadata.propagation.max.ms", "5000");
    config
}

/// Properties of the client that asks questions.
pub(super) fn asker(base: &ClientConfig) -> ClientConfig {
    let mut config = base.clone();
    config.set("isolation.level", "read_uncommitted");
    config.set("socket.timeout.ms", "10000");
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<ClientConfig, OpenError> {
        let mut settings = KafkaSettings::new("127.0.0.1:1");
        settings.properties = vec![(name.to_owned(), value.to_owned())];
        client(&settings)
    }

    #[test]
    fn what_promises_rest_on_cannot_be_set_and_is_named() {
        for name in [
            "acks",
            "enable.idempotence",
            "group.id",
            "isolation.level",
            "linger.ms",
            "socket.timeout.ms",
            "bootstrap.servers",
            "no.such.property",
        ] {
            let refused = with(name, "1").unwrap_err();
            assert!(matches!(&refused, OpenError::Reserved { property } if property == name));
            assert!(refused.to_string().contains(name), "{refused}");
        }
    }

    #[test]
    fn what_this_build_cannot_do_is_refused_by_name() {
        let refused = with("ssl.no.such", "1").unwrap_err();
        assert!(
            matches!(&refused, OpenError::Unsupported { property, .. } if property == "ssl.no.such")
        );
        let refused = with("security.protocol", "carrier pigeon").unwrap_err();
        assert!(refused.to_string().contains("security.protocol"));
        // Built without OpenSSL: told when the property is set, not when a broker is not reached.
        let refused = with("ssl.ca.location", "/nonexistent").unwrap_err();
        assert!(refused.to_string().contains("ssl.ca.location"), "{refused}");
    }

    #[test]
    fn connections_may_be_set_and_every_client_takes_our_properties() {
        let base = with("broker.address.family", "v4").unwrap();
        assert_eq!(base.get("broker.address.family"), Some("v4"));
        let mut settings = KafkaSettings::new("127.0.0.1:1");
        settings.queue_bytes = u64::MAX;
        settings.records_max = usize::MAX;
        settings.fetch_ahead_bytes = 1;
        let producer = producer(&base, &settings);
        producer.create_native_config().unwrap();
        let consumer = consumer(&base, &settings, "any");
        consumer.create_native_config().unwrap();
        assert_eq!(consumer.get("queued.max.messages.kbytes"), Some("256"));
        asker(&base).create_native_config().unwrap();
    }
}
