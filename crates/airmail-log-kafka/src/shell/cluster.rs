//! The number of a cluster, for those who open its logs.

use super::consumer::Events;
use super::error::OpenError;
use super::properties;
use super::settings::KafkaSettings;
use airmail_model::random;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use std::time::Duration;

/// Asks brokers for the id of their cluster, and makes a number of it and of a prefix of topics: two clusters have the same
/// number only if they are one, and share a prefix. Blocks, for as long as `patience` at most; `None` if no broker
/// has answered by then.
///
/// # Errors
/// A property is not for users, or not in this build; a client cannot be had.
pub fn cluster_number(
    settings: &KafkaSettings,
    prefix: &str,
    patience: Duration,
) -> Result<Option<u64>, OpenError> {
    let base = properties::client(settings)?;
    let client: BaseConsumer<Events> = properties::asker(&base).create_with_context(Events)?;
    let id = client.client().fetch_cluster_id(patience);
    Ok(id.map(|id| number(&id, prefix)))
}

fn number(id: &str, prefix: &str) -> u64 {
    let bytes = id.bytes().chain([0]).chain(prefix.bytes());
    bytes.fold(0, |mixed, byte| random::nth(mixed ^ u64::from(byte), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_of_a_cluster_and_a_prefix() {
        let numbers = [("a", "b"), ("a", "c"), ("b", "b"), ("ab", ""), ("", "ab")];
        let numbers = numbers.map(|(id, prefix)| number(id, prefix));
        for (n, one) in numbers.iter().enumerate() {
            assert!(!numbers[..n].contains(one));
        }
        assert_eq!(number("a", "b"), number("a", "b"));
    }
}
