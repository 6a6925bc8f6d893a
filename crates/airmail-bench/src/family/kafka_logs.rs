//! Logs on Kafka of nodes that are started for a run.
//!
//! Each node has topics of its own there, whose names begin with a prefix that no other node has had. So a node finds
//! nothing that another has left; and the process that has them removes them at its end, as it does with its
//! directory.

use crate::clock::now_us;
use std::process;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Beginning of the prefixes of topics that end with their node.
pub const PASSING_PREFIX: &str = "airmail-bench-";

const SCHEME: &str = "kafka://";
const PARAMETER: &str = "prefix=";
const REPLICAS: &str = "replicas=";

/// Nodes of this process that have had a prefix.
static NODES: AtomicU32 = AtomicU32::new(0);

/// The URL of a storage on Kafka, but for its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaLogs(String);

/// A URL that is not of logs on Kafka, or has a prefix already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not kafka://HOST:PORT[,HOST:PORT…][?replicas=3&min_insync=2…] without a prefix")]
pub struct NotKafkaLogs(String);

impl FromStr for KafkaLogs {
    type Err = NotKafkaLogs;

    fn from_str(url: &str) -> Result<KafkaLogs, NotKafkaLogs> {
        let parameters = url.split_once('?').map_or("", |(_, rest)| rest);
        let mut parameters = parameters.split('&');
        let has_prefix = parameters.any(|one| one.starts_with(PARAMETER));
        match url.strip_prefix(SCHEME) {
            Some(brokers) if !brokers.is_empty() && !has_prefix => Ok(KafkaLogs(url.to_owned())),
            _ => Err(NotKafkaLogs(url.to_owned())),
        }
    }
}

impl KafkaLogs {
    /// Option of a node that has its logs there: another prefix at each call.
    #[must_use]
    pub fn next_option(&self) -> String {
        let url = &self.0;
        let (joint, process) = (if url.contains('?') { '&' } else { '?' }, process::id());
        let (now, node) = (now_us(), NODES.fetch_add(1, Ordering::Relaxed));
        format!("--log={url}{joint}{PARAMETER}{PASSING_PREFIX}{process:x}-{now:x}-{node}")
    }

    /// URL of the same brokers as [`Target`](crate::Target) reads it: with as many replicas, and a producer that waits so
    /// long for a batch to fill.
    #[must_use]
    pub fn bare_url(&self, linger_ms: u32) -> String {
        let (brokers, parameters) = self.0.split_once('?').unwrap_or((&self.0, ""));
        let mut parameters = parameters.split('&');
        let replicas = parameters.find(|one| one.starts_with(REPLICAS));
        let replicas = replicas.map_or(String::new(), |replicas| format!("{replicas}&"));
        format!("{brokers}?{replicas}linger_ms={linger_ms}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_another_prefix_behind_what_was_asked_for() {
        for url in ["kafka://a:1,b:2", "kafka://a:1?replicas=1&min_insync=1"] {
            let logs: KafkaLogs = url.parse().unwrap();
            let (one, other) = (logs.next_option(), logs.next_option());
            assert_ne!(one, other);
            let rest = one
                .strip_prefix("--log=")
                .and_then(|of| of.strip_prefix(url));
            let rest = rest.unwrap();
            assert!(rest[1..].starts_with("prefix=airmail-bench-"), "{rest}");
            assert_eq!(rest.starts_with('?'), !url.contains('?'));
        }
    }

    #[test]
    fn what_has_a_prefix_or_is_of_another_kind_is_refused() {
        for url in [
            "memory:",
            "kafka://",
            "kafka:",
            "kafka://a:1?replicas=1&prefix=mine",
        ] {
            assert!(url.parse::<KafkaLogs>().is_err(), "{url}");
        }
    }

    #[test]
    fn the_brokers_alone_have_the_same_replicas() {
        let bare = |url: &str| url.parse::<KafkaLogs>().map(|logs| logs.bare_url(5));
        let same = |url: &str| Ok(url.to_owned());
        assert_eq!(bare("kafka://a:1,b:2"), same("kafka://a:1,b:2?linger_ms=5"));
        assert_eq!(
            bare("kafka://a:1?replicas=3&min_insync=2"),
            same("kafka://a:1?replicas=3&linger_ms=5")
        );
    }
}
