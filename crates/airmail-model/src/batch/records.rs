//! Iteration over a batch's records.
//!
//! The field that is looked at first, a record's place in the tables, is read where it lies; the
//! rest of a record is put together only on demand. Everything here is small enough to be inlined
//! into the loop that uses it, so fields that the loop does not look at cost nothing.

use super::layout::{AT_PRODUCER_TIME, Layout, RECORD_INDEX, RECORD_TOPIC, i64_at, u16_at};
use super::record::Record;
use super::view::{Batch, TopicEntry};
use crate::id::TopicHash;

/// Iterates the records of a batch, in order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    batch: &'a Batch,
    layout: Layout,
    next: usize,
    /// Where the next one's body begins.
    body: usize,
    producer_time: i64,
    /// The topic looked up last, with its place: neighbours are often of one topic.
    topic: TopicEntry<'a>,
    topic_place: Option<u16>,
}

impl<'a> Records<'a> {
    /// Begins at place `first` of the record table.
    pub(super) fn new(batch: &'a Batch, first: u16) -> Records<'a> {
        let layout = batch.layout();
        let next = usize::from(first).min(layout.records);
        Records {
            batch,
            layout,
            next,
            body: if next < layout.records {
                layout.body(&batch.bytes, next).0
            } else {
                0
            },
            producer_time: i64_at(&batch.bytes, AT_PRODUCER_TIME),
            topic: TopicEntry {
                hash: TopicHash(0),
                name: "",
            },
            topic_place: None,
        }
    }

    /// The next record for which `keep(index, topic)` holds, where `topic` is a place in the
    /// batch's topic table.
    #[inline]
    pub fn next_where(&mut self, keep: impl Fn(usize, u16, u16) -> bool) -> Option<Record<'a>> {
        let bytes = &self.batch.bytes[..];
        while self.next < self.layout.records {
            let place = self.next;
            let at = self.layout.record(place);
            let begin = self.body;
            let end = self.layout.body_end(bytes, place);
            self.next += 1;
            self.body = end;
            let (index, topic) = (
                u16_at(bytes, at + RECORD_INDEX),
                u16_at(bytes, at + RECORD_TOPIC),
            );
            if keep(place, index, topic) {
                if self.topic_place != Some(topic) {
                    self.look_up(topic);
                }
                let body = (begin, end);
                let time = self.producer_time;
                let batch = self.batch;
                return Some(batch.record_of(&self.layout, at, body, time, topic, self.topic));
            }
        }
        None
    }

    fn look_up(&mut self, topic: u16) {
        self.topic = self.batch.topic_at(&self.layout, topic.into());
        self.topic_place = Some(topic);
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        self.next_where(|_, _, _| true)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.layout.records - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Records<'_> {}
