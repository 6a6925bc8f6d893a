//! Redis Streams, through the `redis` crate: a stream for each topic, a pipeline of `XADD` for each
//! chunk, and `XREAD BLOCK` by each subscriber, from where it is.
//!
//! What a reply promises is a setting of the server (`appendonly`, `appendfsync`), not of a client.
//! Redis holds its streams in memory whole, so each is trimmed to what a run may need again: far more
//! than subscribers may be behind.

use super::{Failure, Outcome, System};
use crate::chunk::Chunk;
use crate::run::Account;
use crate::settings::Settings;
use futures::FutureExt;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, Value, cmd};
use std::future::{Future, ready};
use std::pin::Pin;
use std::task::Poll;

/// Messages that a stream keeps, about.
const KEPT: u32 = 1 << 18;
/// Messages of a publisher that wait for replies: several chunks.
const WINDOW: u32 = 4096;
/// The same where each message is a request of its own: the client's queue takes as many at once, so
/// that they go out in the order in which they were handed over.
const WINDOW_UNBATCHED: u32 = 32;
/// Messages that one `XREAD` gives of each stream at most.
const READ: u32 = 1024;
/// The only field of an entry.
const FIELD: &str = "d";

/// A server.
#[derive(Clone, Debug)]
pub struct Redis {
    client: Client,
    unbatched: bool,
}

impl Redis {
    /// The server at `redis://HOST:PORT`.
    ///
    /// # Errors
    /// The URL is malformed.
    pub fn new(url: &str, settings: &Settings) -> Result<Redis, Failure> {
        Ok(Redis {
            client: Client::open(url)?,
            unbatched: settings.unbatched,
        })
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Failure {
        Failure::new(error)
    }
}

impl System for Redis {
    type Client = MultiplexedConnection;
    type Publisher = RedisPublisher;
    type Subscription = RedisSubscription;

    fn in_flight(&self) -> Option<u32> {
        Some(if self.unbatched {
            WINDOW_UNBATCHED
        } else {
            WINDOW
        })
    }

    async fn prepare(&self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn clear(&self, prefix: &str) -> Result<(), Failure> {
        let mut connection = self.connect().await?;
        let mut ask = cmd("KEYS");
        ask.arg(format!("{prefix}/*"));
        let keys: Vec<String> = ask.query_async(&mut connection).await?;
        if !keys.is_empty() {
            let () = cmd("UNLINK").arg(keys).query_async(&mut connection).await?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<MultiplexedConnection, Failure> {
        // A read waits for as long as nothing comes.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = &self.client;
        Ok(client
            .get_multiplexed_async_connection_with_config(&config)
            .await?)
    }

    fn publisher(
        &self,
        client: &MultiplexedConnection,
        topics: &[String],
    ) -> Result<RedisPublisher, Failure> {
        Ok(RedisPublisher {
            connection: client.clone(),
            keys: topics.to_vec(),
        })
    }

    async fn subscribe(
        &self,
        client: &MultiplexedConnection,
        topics: &[String],
        from_earliest: bool,
    ) -> Result<RedisSubscription, Failure> {
        let mut connection = client.clone();
        let mut seen = Vec::with_capacity(topics.len());
        for key in topics {
            let last = if from_earliest {
                None
            } else {
                last_id(&mut connection, key).await?
            };
            seen.push((key.clone(), last.unwrap_or_else(|| b"0-0".to_vec())));
        }
        Ok(RedisSubscription { connection, seen })
    }

    async fn close(&self, _client: MultiplexedConnection) -> Result<(), Failure> {
        // It ends with its last holder.
        Ok(())
    }
}

/// The last entry of a stream; none of one that is empty.
async fn last_id(
    connection: &mut MultiplexedConnection,
    key: &str,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut ask = cmd("XREVRANGE");
    ask.arg(key).arg("+").arg("-").arg("COUNT").arg(1);
    let Value::Array(entries) = ask.query_async(connection).await? else {
        return Err(Failure::new("XREVRANGE: no list"));
    };
    Ok(entries.first().and_then(entry).map(|(id, _)| id.to_vec()))
}

/// Publishes to some topics.
#[derive(Debug)]
pub struct RedisPublisher {
    connection: MultiplexedConnection,
    keys: Vec<String>,
}

impl super::Publisher for RedisPublisher {
    type Acks = Pin<Box<dyn Future<Output = Outcome> + Send>>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Self::Acks, Failure> {
        let mut pipeline = Pipeline::with_capacity(chunk.count() as usize);
        for (topic, payload) in chunk.messages() {
            pipeline
                .add_command(add(&self.keys[topic], payload))
                .ignore();
        }
        let mut connection = self.connection.clone();
        let count = chunk.count();
        let replies = async move {
            match pipeline.query_async(&mut connection).await {
                Ok(()) => Outcome::all(count),
                Err(error) => Outcome {
                    failed: count,
                    error: Some(Failure::new(error)),
                    ..Outcome::default()
                },
            }
        };
        // The client is handed the commands when it is first asked, which must be now, in order; it
        // takes them at once while there are no more than the window's.
        let mut replies = Box::pin(tokio::task::coop::unconstrained(replies));
        let first = std::future::poll_fn(|context| Poll::Ready(replies.poll_unpin(context)));
        Ok(match first.await {
            Poll::Ready(outcome) => Box::pin(ready(outcome)),
            Poll::Pending => replies,
        })
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

fn add(key: &str, payload: &[u8]) -> Cmd {
    let mut add = Cmd::with_capacity(7, key.len() + payload.len() + 32);
    add.arg("XADD").arg(key).arg("MAXLEN").arg("~").arg(KEPT);
    add.arg("*").arg(FIELD).arg(payload);
    add
}

/// Receives some topics.
#[derive(Debug)]
pub struct RedisSubscription {
    connection: MultiplexedConnection,
    /// Each stream with its last entry that was given.
    seen: Vec<(String, Vec<u8>)>,
}

impl super::Subscription for RedisSubscription {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        let mut read = cmd("XREAD");
        read.arg("COUNT")
            .arg(READ)
            .arg("BLOCK")
            .arg(0)
            .arg("STREAMS");
        for (key, _) in &self.seen {
            read.arg(key);
        }
        for (_, id) in &self.seen {
            read.arg(id);
        }
        let Value::Array(streams) = read.query_async(&mut self.connection).await? else {
            return Ok(true);
        };
        account.begin();
        for stream in &streams {
            let Value::Array(stream) = stream else {
                continue;
            };
            let [Value::BulkString(key), Value::Array(entries)] = stream.as_slice() else {
                continue;
            };
            let place = self
                .seen
                .iter()
                .position(|(known, _)| known.as_bytes() == key.as_slice());
            for entry in entries.iter().filter_map(entry) {
                match place {
                    Some(place) => account.take_of(place, entry.1),
                    None => account.take_strange(),
                }
            }
            if let (Some(place), Some((id, _))) = (place, entries.last().and_then(entry)) {
                self.seen[place].1 = id.to_vec();
            }
        }
        account.end();
        Ok(true)
    }
}

/// An entry's id and payload.
fn entry(entry: &Value) -> Option<(&[u8], &[u8])> {
    let Value::Array(entry) = entry else {
        return None;
    };
    let [Value::BulkString(id), Value::Array(fields)] = entry.as_slice() else {
        return None;
    };
    let [_, Value::BulkString(payload)] = fields.as_slice() else {
        return None;
    };
    Some((id, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_id_and_its_payload() {
        let text = |text: &str| Value::BulkString(text.into());
        let fields = Value::Array(vec![text(FIELD), text("payload")]);
        let read = Value::Array(vec![text("1-0"), fields]);
        assert_eq!(entry(&read), Some((&b"1-0"[..], &b"payload"[..])));
        assert_eq!(entry(&Value::Nil), None);
    }
}
