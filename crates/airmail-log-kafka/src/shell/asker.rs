//! An asker: asks one broker the questions that are for it, one at a time, each of the leader itself.
//!
//! librdkafka keeps watermarks of what it has fetched. They are no answer: a response on its way may have been made
//! before an append that is acknowledged already. So each question is a request, made after it was asked.

use super::clock::now;
use super::error::failure;
use super::routes::{Query, Routes, closing};
use crate::brokers::{Answer, Failure, Question};
use crate::place::Offset;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaResult;
use rdkafka::topic_partition_list::TopicPartitionList;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// librdkafka counts in milliseconds, and takes 0 for no time at all.
const TIME_MIN: Duration = Duration::from_millis(1);

/// Asks until no more questions can come.
pub(super) fn ask_all(routes: &Routes, queries: &Receiver<Query>) {
    for query in queries {
        let answer = if routes.news.is_closing() {
            Answer::Failed(closing())
        } else {
            ask(routes, &query)
        };
        routes.news.answer(query.token, answer);
    }
}

/// Asks one question.
fn ask(routes: &Routes, query: &Query) -> Answer {
    let left = query.until.saturating_duration_since(now());
    if left < TIME_MIN || routes.is_blocked(&query.partition) {
        return Answer::Failed(Failure::TimedOut);
    }
    let answer = match query.question {
        Question::Watermarks => watermarks(routes, query, left),
        Question::OffsetAt { at_ms } => offset_at(routes, query, at_ms, left),
        Question::EpochEnd { .. } => {
            return Answer::Failed(Failure::Other(
                "Kafka's client has no request for the end of an epoch".to_owned(),
            ));
        }
    };
    match answer {
        Ok(answer) => {
            routes.news.note_answer();
            answer
        }
        Err(error) => {
            let why = failure(&error);
            // Whoever it was may lead no more.
            routes.forget(&query.partition.topic);
            if why == Failure::TimedOut {
                routes.block(&query.partition);
            }
            Answer::Failed(why)
        }
    }
}

fn watermarks(routes: &Routes, query: &Query, left: Duration) -> KafkaResult<Answer> {
    let (topic, number) = names(query);
    let (low, high) = routes.client.fetch_watermarks(topic, number, left)?;
    // A broker gives none below 0.
    let offset = |raw| Offset(u64::try_from(raw).unwrap_or(0));
    Ok(Answer::Watermarks {
        low: offset(low),
        high: offset(high),
    })
}

fn offset_at(routes: &Routes, query: &Query, at_ms: i64, left: Duration) -> KafkaResult<Answer> {
    let (topic, number) = names(query);
    let mut times = TopicPartitionList::with_capacity(1);
    times.add_partition_offset(topic, number, rdkafka::Offset::Offset(at_ms.max(0)))?;
    let found = routes.client.offsets_for_times(times, left)?;
    let mut offset = None;
    for element in found.elements() {
        element.error()?;
        if let rdkafka::Offset::Offset(at) = element.offset() {
            offset = u64::try_from(at).ok().map(Offset);
        }
    }
    Ok(Answer::Offset(offset))
}

fn names(query: &Query) -> (&str, i32) {
    let partition = &query.partition;
    (partition.topic.as_str(), partition.number.0.into())
}
