//! Topics of Airmail: a subscription for each that is ours.
//!
//! A message's number is the number of its topic's messages that the group collected before it:
//! sequence numbers skip, and begin anew where a namespace's logs change. It rests on a
//! subscription's guarantee (G2: the same messages in the same order), so a message that comes
//! again gets the same number.

use super::error::CollectError;
use super::settings::{Begin, Settings};
use crate::source::Source;
use airmail_client::{
    AttributeValue, Client, Error, Item, Position, Received, Start, SubscriptionRequest,
};
use parking_lot::Mutex;
use rdkafka::message::{Header, OwnedHeaders};
use std::collections::BTreeMap;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

/// Messages of a topic that wait for the collector's thread.
const AHEAD: usize = 1024;

/// Deliveries of a subscription.
enum Fed {
    Message(Box<Received>),
    Failed(Error),
}

struct Stream {
    task: AbortHandle,
    fed: Receiver<Fed>,
    next: u64,
}

/// Every subscription.
pub(super) struct Feed {
    runtime: Runtime,
    client: Client,
    streams: Mutex<BTreeMap<Source, Stream>>,
}

impl Feed {
    /// Connects to a node.
    pub(super) fn connect(url: &str, namespace: &str) -> Result<Feed, CollectError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let builder = Client::builder().url(url).namespace(namespace);
        let builder = builder.name(concat!("airmail-collect/", env!("CARGO_PKG_VERSION")));
        let client = runtime.block_on(builder.connect())?;
        Ok(Feed {
            runtime,
            client,
            streams: Mutex::new(BTreeMap::new()),
        })
    }

    /// Subscribes to a topic, from where it was committed.
    pub(super) fn start(
        &self,
        settings: &Settings,
        source: Source,
        committed: Option<u64>,
        metadata: &str,
    ) -> Result<(), CollectError> {
        let topic = &settings.routes[source.topic].from;
        let start = match committed {
            Some(_) => Start::Position(position(metadata, topic, &settings.group)?),
            None if settings.begin == Begin::Latest => Start::Latest,
            None => Start::Earliest,
        };
        let (feed, fed) = channel(AHEAD);
        let request = self.client.subscribe(topic).from(start);
        let task = self.runtime.spawn(follow(request, feed)).abort_handle();
        let stream = Stream {
            task,
            fed,
            next: committed.unwrap_or(0),
        };
        let old = self.streams.lock().insert(source, stream);
        if let Some(old) = old {
            old.task.abort();
        }
        Ok(())
    }

    /// Ends a subscription.
    pub(super) fn stop(&self, source: Source) {
        if let Some(stream) = self.streams.lock().remove(&source) {
            stream.task.abort();
        }
    }

    /// The next message of a source that `wanted` allows, if one is there, with its number.
    ///
    /// # Errors
    /// Error that ended a subscription.
    pub(super) fn next(
        &self,
        wanted: impl Fn(Source) -> bool,
    ) -> Result<Option<(Source, u64, Box<Received>)>, CollectError> {
        let mut streams = self.streams.lock();
        for (source, stream) in streams.iter_mut().filter(|(source, _)| wanted(**source)) {
            match stream.fed.try_recv() {
                Ok(Fed::Message(message)) => {
                    let number = stream.next;
                    stream.next += 1;
                    return Ok(Some((*source, number, message)));
                }
                Ok(Fed::Failed(error)) => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

async fn follow(request: SubscriptionRequest, feed: Sender<Fed>) {
    let failed = match request.open().await {
        Err(error) => error,
        Ok(mut subscription) => loop {
            match subscription.next().await {
                Ok(Some(Item::Message(message))) => {
                    if feed.send(Fed::Message(Box::new(message))).await.is_err() {
                        return;
                    }
                }
                Ok(Some(Item::Gap(gap))) => {
                    tracing::warn!(?gap, "messages were gone before they were collected");
                }
                // Nobody asks to be told of what has expired.
                Ok(Some(Item::Expired(_))) => {}
                Ok(None) => return,
                Err(error) => break error,
            }
        },
    };
    // Nobody hears it only where nobody wants to.
    let _ = feed.send(Fed::Failed(failed)).await;
}

/// The position in a commit's metadata, which says of which topic it is.
fn position(metadata: &str, topic: &str, group: &str) -> Result<Position, CollectError> {
    let other = |found: &str| CollectError::OtherTopic {
        group: group.to_owned(),
        topic: topic.to_owned(),
        found: found.to_owned(),
    };
    let (position, found) = metadata.split_once(' ').ok_or_else(|| other(metadata))?;
    if found != topic {
        return Err(other(found));
    }
    position.parse().map_err(|_| other(metadata))
}

/// A message's attributes as headers of a record, by name, their values as text.
pub(super) fn headers(message: &Received) -> OwnedHeaders {
    let room = message.attributes.len() + 2;
    let mut headers = OwnedHeaders::new_with_capacity(room);
    for (name, value) in &message.attributes {
        let text = match value {
            AttributeValue::String(text) => text.clone(),
            AttributeValue::Integer(number) => number.to_string(),
            AttributeValue::Float(number) => number.to_string(),
            AttributeValue::Bool(is) => is.to_string(),
        };
        headers = headers.insert(Header {
            key: name,
            value: Some(&text),
        });
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_another_topic_is_told() {
        let found = position("x orders", "news", "g").unwrap_err().to_string();
        assert!(
            found.contains("orders") && found.contains("news"),
            "{found}"
        );
        assert!(position("", "news", "g").is_err());
        assert!(position("garbage news", "news", "g").is_err());
    }
}
