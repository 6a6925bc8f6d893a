//! A node that keeps G3 to the letter: exactly the next number is stored.

use airmail_model::frame::{Ack, Refused, Reply, Request};
use airmail_model::{
    AppendTime, Batch, Durability, Error, ErrorCode, Extent, LogId, LogMap, ProducerEpoch, Sequence,
};
use std::collections::{BTreeMap, VecDeque};

#[derive(Default)]
struct Log {
    epoch: ProducerEpoch,
    next: u64,
    known: bool,
    batches: Vec<(u64, u64, Extent)>,
}

/// Stores, and refuses what its script says.
pub(super) struct Node {
    map: LogMap,
    logs: BTreeMap<LogId, Log>,
    /// (log, topic, payload), as stored.
    pub(super) stored: Vec<(LogId, String, String)>,
    /// Refusals to come, for publishes in order; `None` lets one through.
    pub(super) script: VecDeque<Option<Error>>,
    sequence: u64,
}

impl Node {
    pub(super) fn new(map: LogMap) -> Node {
        Node {
            map,
            logs: BTreeMap::new(),
            stored: Vec::new(),
            script: VecDeque::new(),
            sequence: 1,
        }
    }

    pub(super) fn set_map(&mut self, map: LogMap) {
        self.map = map;
    }

    /// Forgets every producer, as after their time.
    pub(super) fn forget(&mut self) {
        self.logs.clear();
    }

    pub(super) fn payloads(&self) -> Vec<&str> {
        self.stored
            .iter()
            .map(|(_, _, payload)| payload.as_str())
            .collect()
    }

    pub(super) fn answer(&mut self, request: &Request) -> Reply {
        let Request::Publish { request, batch, .. } = request else {
            panic!("not a publish");
        };
        let result = match self.script.pop_front().flatten() {
            Some(error) => Err(Refused { error, map: None }),
            None => self.store(batch),
        };
        Reply::Acked {
            request: *request,
            result,
        }
    }

    fn store(&mut self, batch: &Batch) -> Result<Ack, Refused> {
        if batch.map_epoch() != self.map.epoch {
            return Err(Refused {
                error: Error::new(ErrorCode::MapStale),
                map: Some(self.map.clone()),
            });
        }
        let refuse = |code| {
            Err(Refused {
                error: Error::new(code),
                map: None,
            })
        };
        let stamp = batch.producer().unwrap();
        let log = self.logs.entry(batch.log()).or_default();
        let (first, count) = (stamp.sequence.0, u64::from(batch.records()));
        if !log.known && first > 0 {
            return refuse(ErrorCode::UnknownProducer);
        }
        if stamp.epoch < log.epoch {
            return refuse(ErrorCode::ProducerFenced);
        }
        if stamp.epoch > log.epoch {
            *log = Log {
                epoch: stamp.epoch,
                ..Log::default()
            };
        }
        if let Some((_, _, extent)) = log.batches.iter().find(|b| (b.0, b.1) == (first, count)) {
            return Ok(ack(*extent, true));
        }
        if first != log.next {
            return refuse(ErrorCode::OutOfOrder);
        }
        log.known = true;
        log.next += count;
        let extent = Extent::starting_at(Sequence(self.sequence), batch.numbers());
        self.sequence = extent.next().0;
        log.batches.push((first, count, extent));
        for record in batch.iter() {
            let payload = String::from_utf8(record.payload.to_vec()).unwrap();
            self.stored
                .push((batch.log(), record.topic_name.to_owned(), payload));
        }
        Ok(ack(extent, false))
    }
}

fn ack(extent: Extent, duplicate: bool) -> Ack {
    Ack {
        extent,
        appended: AppendTime(1),
        held: Durability::FSYNC,
        duplicate,
        exact: true,
    }
}
