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
}
