//! Publishes that the producer has handed out, and that the stream has not taken yet.
//!
//! A window of lane normal is megabytes, which a slow transport takes long for. So they wait here, by lane, and
//! the stream takes a few at a time: what lane high has goes first, also before what was handed out earlier.
//! While both wait, lane normal has a quarter of the bytes.
//!
//! Invariant: the publishes of a lane leave in the order in which they came.

use airmail_model::frame::Request;
use airmail_model::{Lane, LaneTurns};
use std::collections::VecDeque;

/// Number of bytes that a stream takes at a time while it carries lane normal alone.
const TURN_BYTES: usize = 1 << 20;
/// Number of bytes that it takes at a time from its first publish of lane high on, which then has no more before it.
const SHORT_TURN_BYTES: usize = 128 << 10;

/// Publishes of a stream, by lane.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    lanes: [VecDeque<Request>; Lane::ALL.len()],
    turns: LaneTurns,
    /// True from the first publish of lane high on.
    has_high: bool,
}

impl Outgoing {
    /// Adds what the producer has handed out.
    pub(super) fn extend(&mut self, requests: Vec<Request>) {
        for request in requests {
            if let Request::Publish { batch, .. } = &request {
                let lane = batch.log().lane;
                self.has_high |= lane == Lane::High;
                self.lanes[lane as usize].push_back(request);
            }
        }
    }

    /// Drops everything: the stream has ended.
    pub(super) fn clear(&mut self) {
        self.lanes.iter_mut().for_each(VecDeque::clear);
        self.turns = LaneTurns::default();
    }

    /// Takes what goes next.
    pub(super) fn take_turn(&mut self) -> Vec<Request> {
        let most = if self.has_high {
            SHORT_TURN_BYTES
        } else {
            TURN_BYTES
        };
        let mut turn = Vec::new();
        let mut bytes = 0;
        while bytes < most {
            let waiting = self.lanes.each_ref().map(|lane| !lane.is_empty());
            let Some(lane) = self.turns.next(waiting) else {
                break;
            };
            let Some(request) = self.lanes[lane as usize].pop_front() else {
                break;
            };
            let size = bytes_of(&request);
            let other_waits = waiting[lane.other() as usize];
            self.turns.took(lane, size as u64, other_waits);
            bytes += size;
            turn.push(request);
        }
        turn
    }
}

fn bytes_of(request: &Request) -> usize {
    match request {
        Request::Publish { batch, .. } => batch.bytes().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::batch::BatchTarget;
    use airmail_model::frame::RequestId;
    use airmail_model::{BatchEncoder, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName};

    fn publish(request: u64, lane: Lane) -> Request {
        let limits = Limits::DEFAULT;
        let topic = TopicName::new("t", &limits).unwrap();
        let mut encoder = BatchEncoder::new(NamespaceId(0));
        let message = Message::new(topic, vec![0; 10_000]).lane(lane);
        encoder.push(&message, 0, &limits).unwrap();
        let log = LogId {
            lane,
            ..LogId::default()
        };
        Request::Publish {
            request: RequestId(request),
            batch: encoder.finish(&BatchTarget {
                log,
                epoch: MapEpoch(1),
                producer: None,
                producer_time: 0,
            }),
            begins_epoch: false,
        }
    }

    /// Gives the lane and number of each publish of a turn.
    fn told(turn: &[Request]) -> Vec<(Lane, u64)> {
        let told = |request: &Request| match request {
            Request::Publish { request, batch, .. } => (batch.log().lane, request.0),
            other => panic!("{other:?}"),
        };
        turn.iter().map(told).collect()
    }

    #[test]
    fn lane_high_goes_before_what_was_handed_out_earlier() {
        let mut outgoing = Outgoing::default();
        outgoing.extend((0..400).map(|n| publish(n, Lane::Normal)).collect());
        let first = outgoing.take_turn().len();
        assert!((100..200).contains(&first), "a part of it: {first}");
        outgoing.extend(vec![publish(400, Lane::High)]);
        let turn = told(&outgoing.take_turn());
        assert_eq!(turn[0], (Lane::High, 400));
        assert_eq!(turn[1], (Lane::Normal, first as u64));
        assert!(turn.len() < 20, "turns are short from now on");
    }

    #[test]
    fn lane_normal_has_a_quarter_while_both_wait_and_each_keeps_its_order() {
        let mut outgoing = Outgoing::default();
        outgoing.extend((0..100).map(|n| publish(n, Lane::Normal)).collect());
        outgoing.extend((0..100).map(|n| publish(n, Lane::High)).collect());
        let mut sent = Vec::new();
        while sent.len() < 200 {
            sent.extend(told(&outgoing.take_turn()));
        }
        let of_lane = |lane| sent.iter().filter(move |(of, _)| *of == lane);
        let normal = sent[..100].iter().filter(|(of, _)| *of == Lane::Normal);
        assert_eq!(normal.count(), 25);
        for lane in Lane::ALL {
            assert!(of_lane(lane).map(|(_, number)| number).is_sorted());
            assert_eq!(of_lane(lane).count(), 100);
        }
    }

    #[test]
    fn nothing_of_a_stream_that_has_ended_is_sent() {
        let mut outgoing = Outgoing::default();
        outgoing.extend(Lane::ALL.map(|lane| publish(0, lane)).into());
        outgoing.clear();
        assert!(outgoing.take_turn().is_empty());
    }
}
