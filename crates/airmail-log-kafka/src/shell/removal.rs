//! Removal of everything that a storage has on Kafka, for those whose logs are over: nodes that were started for a
//! measurement.

use super::clock::now;
use super::consumer::Events;
use super::error::OpenError;
use super::properties;
use super::settings::KafkaSettings;
use super::wait::wait_for;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use std::time::Duration;

/// Deletes all topics of a prefix, and with them everything that is stored there. Nobody may use them any more. Blocks, for
/// as long as `patience` at most. The number of topics that were deleted.
///
/// # Errors
/// A property is not for users, or not in this build; a client cannot be had; no broker has answered in time, or a
/// topic was not deleted.
pub fn remove_topics(
    settings: &KafkaSettings,
    prefix: &str,
    patience: Duration,
) -> Result<usize, OpenError> {
    let until = now() + patience;
    let base = properties::client(settings)?;
    let asker: BaseConsumer<Events> = properties::asker(&base).create_with_context(Events)?;
    let metadata = asker.client().fetch_metadata(None, patience)?;
    let names = metadata.topics().iter().map(|topic| topic.name());
    let names: Vec<&str> = names.filter(|name| is_of(name, prefix)).collect();
    if names.is_empty() {
        return Ok(0);
    }
    let client: AdminClient<DefaultClientContext> = base.create()?;
    let options = AdminOptions::new().operation_timeout(Some(patience));
    let deleting = client.delete_topics(&names, &options);
    let deleted = wait_for(deleting, until, || false);
    let deleted = deleted.ok_or_else(|| OpenError::Client("no answer in time".to_owned()))??;
    for one in deleted {
        one.map_err(|(_, code)| KafkaError::AdminOp(code))?;
    }
    Ok(names.len())
}

/// Whether a topic is of a prefix, and not of a longer one.
fn is_of(topic: &str, prefix: &str) -> bool {
    let rest = topic.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn a_topic_of_a_longer_prefix_is_of_another_storage() {
        assert!(is_of("bench.meta", "bench"));
        assert!(!is_of("bench-2.meta", "bench"));
        assert!(!is_of("benchmark", "bench"));
    }
}
