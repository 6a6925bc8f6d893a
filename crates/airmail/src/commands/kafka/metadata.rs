//! Metadata of a Kafka cluster: the bytes of one Metadata request and of its answer.
//!
//! Version 5 of Metadata, which brokers from 1.0 to 4.x speak: the first that has in-sync and
//! offline replicas, and without compact or tagged fields. So a hundred lines are enough, in place of
//! a client for all of Kafka. Every length is checked before it is used: the answer comes from outside.

use airmail_topology::{DescribedPartition, Description, NodeId, ToldPartition, Topics};
use std::collections::BTreeSet;

const METADATA: i16 = 3;
const VERSION: i16 = 5;
/// There is one request for each connection.
const CORRELATION: i32 = 1;
const CLIENT: &str = "airmail";

/// Reason for which an answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum MetadataError {
    /// It ends too early, or a length in it is wrong.
    #[error("the answer ends within {field}, at byte {at} of {length}")]
    Short {
        field: &'static str,
        at: usize,
        length: usize,
    },
    /// A value that no broker gives.
    #[error("the answer has {value} as {field}")]
    Value { field: &'static str, value: i64 },
    /// Kafka cannot tell of a topic.
    #[error("topic {topic}: Kafka's error {code}")]
    Topic { topic: String, code: i16 },
}

/// Asks for all topics, and to create none; with its length before it.
pub(super) fn request() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(METADATA.to_be_bytes());
    body.extend(VERSION.to_be_bytes());
    body.extend(CORRELATION.to_be_bytes());
    body.extend((CLIENT.len() as i16).to_be_bytes());
    body.extend(CLIENT.as_bytes());
    // No list of topics: all. And none is to be created.
    body.extend((-1_i32).to_be_bytes());
    body.push(0);
    let mut request = (body.len() as i32).to_be_bytes().to_vec();
    request.extend(body);
    request
}

/// Reads an answer, without the length before it. Kafka's own topics are left out: nobody but Kafka
/// places or loads them.
///
/// # Errors
/// It is not what a broker sends, or Kafka reports an error for a topic.
pub(super) fn read(answer: &[u8]) -> Result<Description, MetadataError> {
    let mut bytes = Bytes { answer, at: 0 };
    let correlation = bytes.i32("correlation_id")?;
    if correlation != CORRELATION {
        return Err(wrong("correlation_id", correlation));
    }
    bytes.i32("throttle_time_ms")?;
    let mut living = BTreeSet::new();
    for _ in 0..bytes.count("brokers")? {
        living.insert(bytes.node("node_id")?);
        bytes.text("host")?;
        bytes.i32("port")?;
        bytes.text("rack")?;
    }
    bytes.text("cluster_id")?;
    bytes.i32("controller_id")?;
    let mut nodes = living.clone();
    let mut topics = Vec::new();
    for _ in 0..bytes.count("topics")? {
        let code = bytes.i16("error_code")?;
        let topic = bytes.text("name")?;
        let is_internal = bytes.take("is_internal", 1)? != [0];
        let partitions = bytes.partitions()?;
        if is_internal {
            continue;
        }
        if code != 0 {
            return Err(MetadataError::Topic { topic, code });
        }
        nodes.extend(partitions.iter().flat_map(|kept| kept.replicas.clone()));
        let partitions = partitions.into_iter().map(DescribedPartition::Told);
        topics.push((topic, partitions.collect()));
    }
    Ok(Description {
        offline: nodes.difference(&living).copied().collect(),
        nodes: nodes.into_iter().collect(),
        topics: Topics(topics),
        ..Description::default()
    })
}

fn wrong(field: &'static str, value: impl Into<i64>) -> MetadataError {
    let value = value.into();
    MetadataError::Value { field, value }
}

struct Bytes<'a> {
    answer: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    /// Reads partitions by number, whatever order they come in.
    fn partitions(&mut self) -> Result<Vec<ToldPartition>, MetadataError> {
        let mut partitions = Vec::new();
        for _ in 0..self.count("partitions")? {
            // Its leader is not there: the replicas tell that as well.
            self.i16("error_code")?;
            let number = self.i32("partition_index")?;
            let leader = self.i32("leader_id")?;
            let replicas = self.nodes("replica_nodes")?;
            let in_sync = self.nodes("isr_nodes")?;
            self.nodes("offline_replicas")?;
            let leader = u32::try_from(leader).ok().map(NodeId);
            partitions.push((
                number,
                ToldPartition {
                    replicas,
                    leader,
                    in_sync: Some(in_sync),
                },
            ));
        }
        partitions.sort_by_key(|(number, _)| *number);
        for (expected, (number, _)) in (0..).zip(&partitions) {
            if *number != expected {
                return Err(wrong("partition_index", *number));
            }
        }
        Ok(partitions
            .into_iter()
            .map(|(_, partition)| partition)
            .collect())
    }

    fn nodes(&mut self, field: &'static str) -> Result<Vec<NodeId>, MetadataError> {
        let count = self.count(field)?;
        (0..count).map(|_| self.node(field)).collect()
    }

    fn node(&mut self, field: &'static str) -> Result<NodeId, MetadataError> {
        let id = self.i32(field)?;
        u32::try_from(id).map(NodeId).map_err(|_| wrong(field, id))
    }

    /// The length of a list; none is as good as an empty one. What is not there is not counted on: each
    /// element is asked for before the next.
    fn count(&mut self, field: &'static str) -> Result<i32, MetadataError> {
        match self.i32(field)? {
            -1 => Ok(0),
            count if count >= 0 => Ok(count),
            count => Err(wrong(field, count)),
        }
    }

    fn text(&mut self, field: &'static str) -> Result<String, MetadataError> {
        let length = match self.i16(field)? {
            -1 => 0,
            length => usize::try_from(length).map_err(|_| wrong(field, length))?,
        };
        let text = self.take(field, length)?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn i16(&mut self, field: &'static str) -> Result<i16, MetadataError> {
        let mut number = [0; 2];
        number.copy_from_slice(self.take(field, 2)?);
        Ok(i16::from_be_bytes(number))
    }

    fn i32(&mut self, field: &'static str) -> Result<i32, MetadataError> {
        let mut number = [0; 4];
        number.copy_from_slice(self.take(field, 4)?);
        Ok(i32::from_be_bytes(number))
    }

    fn take(&mut self, field: &'static str, count: usize) -> Result<&[u8], MetadataError> {
        let (at, length) = (self.at, self.answer.len());
        let taken = self.answer.get(at..at + count);
        self.at += count;
        taken.ok_or(MetadataError::Short { field, at, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_topology::Cluster;

    /// Two brokers of three; topic A with two partitions in the other order, and a topic of Kafka's own.
    fn answer() -> Vec<u8> {
        let mut bytes = Vec::new();
        let number = |bytes: &mut Vec<u8>, number: i32| bytes.extend(number.to_be_bytes());
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as i16).to_be_bytes());
            bytes.extend(text.as_bytes());
        };
        for value in [CORRELATION, 0, 2] {
            number(&mut bytes, value);
        }
        for id in [1, 2] {
            number(&mut bytes, id);
            text(&mut bytes, "localhost");
            number(&mut bytes, 9092);
            bytes.extend((-1_i16).to_be_bytes());
        }
        text(&mut bytes, "cluster");
        number(&mut bytes, 1);
        number(&mut bytes, 2);
        for (name, is_internal) in [("A", 0), ("__consumer_offsets", 1)] {
            bytes.extend([0, 0]);
            text(&mut bytes, name);
            bytes.push(is_internal);
            number(&mut bytes, 2);
            for (partition, leader, replicas, in_sync) in
                [(1, 2, [3, 2], vec![2]), (0, 1, [1, 2], vec![2, 1])]
            {
                bytes.extend([0, 0]);
                number(&mut bytes, partition);
                number(&mut bytes, leader);
                for list in [&replicas[..], &in_sync, &[]] {
                    number(&mut bytes, list.len() as i32);
                    for node in list {
                        number(&mut bytes, *node);
                    }
                }
            }
        }
        bytes
    }

    #[test]
    fn what_a_broker_says_is_a_cluster() {
        let read = Cluster::new(read(&answer()).unwrap()).unwrap();
        let text = r#"{"nodes":[1,2,3],"offline":[3],"topics":{"A":[
            {"replicas":[1,2],"in_sync":[2,1]},{"replicas":[3,2],"leader":2,"in_sync":[2]}]}}"#;
        let expected = Cluster::new(serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(read, expected);
    }

    #[test]
    fn an_answer_that_is_cut_anywhere_is_refused() {
        let whole = answer();
        for length in 0..whole.len() {
            let cut = read(&whole[..length]);
            assert!(
                matches!(cut, Err(MetadataError::Short { .. })),
                "{length}: {cut:?}"
            );
        }
    }

    #[test]
    fn a_request_tells_its_length() {
        let request = request();
        assert_eq!(request[..4], (request.len() as i32 - 4).to_be_bytes());
        assert_eq!(request[4..8], [0, 3, 0, 5]);
    }
}
