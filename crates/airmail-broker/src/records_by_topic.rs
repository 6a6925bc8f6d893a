//! Where in a batch each topic's records are: found once for a batch, used for every slice of it.

use airmail_model::{Batch, Slice};
use smallvec::SmallVec;

/// Places in a batch's record table, by topic.
#[derive(Debug)]
pub(crate) struct RecordsByTopic {
    /// All places: those of topic 0 ascending, those of topic 1, and so on.
    order: SmallVec<[u16; 64]>,
    /// Where each topic's begin in `order`, and at last the end.
    starts: SmallVec<[u16; 32]>,
}

impl RecordsByTopic {
    /// Goes over the batch's record table twice.
    pub(crate) fn of(batch: &Batch) -> RecordsByTopic {
        let mut starts: SmallVec<[u16; 32]> = SmallVec::from_elem(0, batch.topics().len() + 1);
        for (_, topic) in batch.heads() {
            starts[usize::from(topic) + 1] += 1;
        }
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut next = starts.clone();
        let mut order: SmallVec<[u16; 64]> = SmallVec::from_elem(0, batch.records().into());
        for ((_, topic), place) in batch.heads().zip(0..) {
            let at = &mut next[usize::from(topic)];
            order[usize::from(*at)] = place;
            *at += 1;
        }
        RecordsByTopic { order, starts }
    }

    /// The records of a topic, by its place, in order.
    pub(crate) fn places(&self, topic: u16) -> &[u16] {
        let topic = usize::from(topic);
        &self.order[self.starts[topic].into()..self.starts[topic + 1].into()]
    }

    /// The records of these topics, which ascend, without those whose places in the table are `left_out`, which may be
    /// empty; with their payloads, or without. `None` if there are none.
    pub(crate) fn slice(
        &self,
        batch: &Batch,
        topics: &[u16],
        left_out: &[bool],
        headers_only: bool,
    ) -> Option<Slice> {
        let slice_of = |kept: &[u16]| {
            if headers_only {
                batch.headers_of(kept)
            } else {
                batch.slice_of(kept)
            }
        };
        if let ([topic], true) = (topics, left_out.is_empty()) {
            return slice_of(self.places(*topic));
        }
        let mut kept: SmallVec<[u16; 64]> = SmallVec::new();
        for topic in topics {
            kept.extend_from_slice(self.places(*topic));
        }
        let is_left_out = |place: u16| left_out.get(usize::from(place)).copied();
        kept.retain(|place| is_left_out(*place) != Some(true));
        kept.sort_unstable();
        slice_of(&kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{batch_with, message};

    #[test]
    fn a_slice_by_places_is_the_slice_by_records() {
        let topics = [2, 0, 1, 1, 3, 0, 2, 2, 0];
        let batch = batch_with(topics.map(|n| message(&format!("t{n}"), &format!("m{n}"))));
        let places = RecordsByTopic::of(&batch);
        for topics in [&[0][..], &[3], &[0, 2], &[1, 2, 3], &[0, 1, 2, 3]] {
            let slice = batch.slice(|_, topic| topics.contains(&topic));
            assert_eq!(places.slice(&batch, topics, &[], false), slice);
            let every_other: Vec<bool> = (0..batch.records()).map(|n| n % 2 == 1).collect();
            let slice = batch.slice(|index, topic| index % 2 == 0 && topics.contains(&topic));
            assert_eq!(places.slice(&batch, topics, &every_other, false), slice);
            let kept: Vec<u16> = batch
                .heads()
                .zip(0..)
                .filter_map(|((index, topic), place)| {
                    (index % 2 == 0 && topics.contains(&topic)).then_some(place)
                })
                .collect();
            let headers = batch.headers_of(&kept);
            assert_eq!(places.slice(&batch, topics, &every_other, true), headers);
        }
        assert_eq!(places.slice(&batch, &[], &[], false), None);
    }
}
