//! Transcripts: inputs of a producer, and the effects of each, as text that can be read without the
//! code. They are in `tests/transcripts/producer`; with `AIRMAIL_REWRITE=1` they are written anew.
//!
//! A line that begins with `>` is an input, after which the producer is polled. The indented lines
//! below it are the effects: messages that are settled, requests that are sent, and the time at
//! which the producer wants to be polled again, where that has changed. All other lines are
//! remarks. Time begins at 0 ms, delays have no jitter, and a map with two logs has the topic `low`
//! on log 0 and the topic `high` on log 1.

use super::*;
use crate::core::backoff::BackoffConfig;
use crate::core::transcript;
use airmail_model::frame::Ack;
use airmail_model::{AppendTime, Batch, Checked, Durability, Extent, Sequence};

#[test]
fn a_batch_that_is_stored_is_as_written() {
    hold("stored");
}

#[test]
fn gathering_while_two_batches_are_in_flight_is_as_written() {
    hold("gathering");
}

#[test]
fn a_retry_after_a_lost_connection_is_as_written() {
    hold("lost_connection");
}

#[test]
fn an_overload_is_as_written() {
    hold("overload");
}

#[test]
fn a_full_disk_is_as_written() {
    hold("full_disk");
}

#[test]
fn a_final_refusal_is_as_written() {
    hold("final_refusal");
}

#[test]
fn a_stale_map_is_as_written() {
    hold("stale_map");
}

#[test]
fn a_stale_map_after_a_lost_attempt_is_as_written() {
    hold("stale_map_after_lost_attempt");
}

#[test]
fn a_new_map_is_as_written() {
    hold("new_map");
}

#[test]
fn an_unknown_producer_is_as_written() {
    hold("unknown_producer");
}

#[test]
fn a_timeout_in_flight_is_as_written() {
    hold("timeout_in_flight");
}

#[test]
fn a_timeout_without_a_connection_is_as_written() {
    hold("timeout_without_connection");
}

#[test]
fn a_fenced_producer_is_as_written() {
    hold("fenced");
}

#[test]
fn giving_up_in_flight_is_as_written() {
    hold("giving_up");
}

#[test]
fn the_memory_bound_is_as_written() {
    hold("memory_bound");
}

/// Holds a transcript to what a producer does.
#[track_caller]
fn hold(name: &str) {
    let mut player = Player::new();
    transcript::hold("producer", name, |input| {
        let words: Vec<&str> = input.split([' ', ',']).filter(|w| !w.is_empty()).collect();
        player.apply(&words)?;
        Some(player.poll())
    });
}

/// Plays the inputs of a transcript to a producer.
struct Player {
    producer: Producer,
    now_ms: u64,
    out: ProducerOutput,
    /// Messages by ticket.
    messages: Vec<String>,
    /// Batches that were sent before.
    sent: Vec<Checked<Batch>>,
    /// Effects of the input, other than those in `out`.
    effects: Vec<String>,
    wake: Option<Mono>,
}

impl Player {
    fn new() -> Player {
        let config = ProducerConfig {
            backoff: BackoffConfig {
                base: Duration::ZERO,
                cap: Duration::ZERO,
            },
            ..ProducerConfig::default()
        };
        let mut producer = Producer::new(config, ProducerId(7), ProducerEpoch(0));
        producer.set_map(map(1, 1));
        Player {
            producer,
            now_ms: 0,
            out: ProducerOutput::default(),
            messages: Vec::new(),
            sent: Vec::new(),
            effects: Vec::new(),
            wake: None,
        }
    }

    fn now(&self) -> Now {
        Now {
            mono: Mono(self.now_ms * 1_000_000),
            wall: Wall(1_700_000_000_000_000 + self.now_ms as i64 * 1_000),
        }
    }

    /// Applies an input; `None` if the words are none.
    fn apply(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["set", name, value] => self.set(name, value)?,
            ["connect"] => self.producer.connected(),
            ["cut"] => self.producer.disconnected(),
            [ms, "ms", "pass"] => self.now_ms += ms.parse::<u64>().ok()?,
            ["map", epoch, "has", logs, "logs"] => self.producer.set_map(read_map(epoch, logs)?),
            ["publish", names @ .., "on", topic] => {
                for name in names {
                    self.publish(name, topic);
                }
            }
            ["store", request, "as", numbers @ ..] => {
                self.answer(request, Ok(read_ack(numbers)?))?;
            }
            ["refuse", request, "with", code, how @ ..] => {
                self.answer(request, Err(read_refusal(code, how)?))?;
            }
            ["give", "up", "with", code] => {
                let error = Error::new(ErrorCode::from_name(code)?);
                self.producer.abandon(&error, &mut self.out);
            }
            _ => return None,
        }
        Some(())
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let config = &mut self.producer.config;
        match name {
            "batch_messages" => config.batch_messages = value.parse().ok()?,
            "in_flight" => config.in_flight = value.parse().ok()?,
            "memory_bytes" => config.memory_bytes = value.parse().ok()?,
            "delivery_timeout_ms" => {
                config.delivery_timeout = Duration::from_millis(value.parse().ok()?);
            }
            _ => return None,
        }
        config.bound_batches();
        Some(())
    }

    fn publish(&mut self, name: &str, topic: &str) {
        let message = Message::new(topic_on(topic), name.to_owned());
        let ticket = Ticket(self.messages.len() as u64);
        let published = self
            .producer
            .publish(self.now(), NAMESPACE, &message, ticket);
        let why = match published {
            Ok(()) => return self.messages.push(name.to_owned()),
            Err(PublishError::Full) => "the memory bound is reached".to_owned(),
            Err(PublishError::Unresolved) => "there is no map of its namespace".to_owned(),
            Err(PublishError::Refused(error)) => show_error(&error),
        };
        self.effects.push(format!("not accepted: {name}, {why}"));
    }

    fn answer(&mut self, request: &str, result: Result<Ack, Refused>) -> Option<()> {
        let request = RequestId(request.strip_prefix('#')?.parse().ok()?);
        let reply = Reply::Acked { request, result };
        self.producer.reply(self.now(), reply, &mut self.out);
        Some(())
    }

    /// Polls the producer; gives all effects since the last poll.
    fn poll(&mut self) -> Vec<String> {
        let wake = self.producer.poll(self.now(), &mut self.out);
        let mut effects = std::mem::take(&mut self.effects);
        let out = std::mem::take(&mut self.out);
        effects.extend(out.settled.iter().map(|settled| self.show_settled(settled)));
        for request in out.requests {
            if let Request::Publish { request, batch } = request {
                effects.push(self.show_sent(request, &batch));
                self.sent.push(batch);
            }
        }
        if wake != self.wake {
            effects.push(wake.map_or_else(
                || "nothing to wait for".to_owned(),
                |wake| format!("come back at {} ms", wake.0.div_ceil(1_000_000)),
            ));
            self.wake = wake;
        }
        effects
    }

    fn show_settled(&self, settled: &Settled) -> String {
        let names = settled.tickets.iter().map(|ticket| {
            let name = self.messages.get(ticket.0 as usize);
            name.expect("a message that was accepted").as_str()
        });
        let names = names.collect::<Vec<_>>().join(" ");
        match &settled.result {
            Ok(ack) => {
                let log = settled.log.index;
                let numbers = show_range(ack.extent.first.0, ack.extent.last.0);
                let duplicate = if ack.duplicate { ", a duplicate" } else { "" };
                format!("stored in log {log}: {names}, as {numbers}{duplicate}")
            }
            Err(error) => format!("failed: {names}, {}", show_error(error)),
        }
    }

    fn show_sent(&self, request: RequestId, batch: &Checked<Batch>) -> String {
        let stamp = batch.producer().expect("a producer's batch");
        let first = stamp.sequence.0;
        let last = first + u64::from(batch.records()) - 1;
        let noun = if first == last { "number" } else { "numbers" };
        let numbers = show_range(first, last);
        let payloads = batch.iter().map(|record| {
            let name = std::str::from_utf8(record.payload);
            name.expect("a message's name").to_owned()
        });
        let names = payloads.collect::<Vec<_>>().join(" ");
        let same = |sent: &Checked<Batch>| sent.bytes() == batch.bytes();
        let again = if self.sent.iter().any(same) {
            " again"
        } else {
            ""
        };
        format!(
            "send #{} to log {}{again}: {names} ({noun} {numbers}, epoch {}, map {})",
            request.0,
            batch.log().index,
            stamp.epoch.0,
            batch.map_epoch().0
        )
    }
}

/// Makes a topic that a map with two logs has on log 0, if it is `low`, or on log 1, if it is
/// `high`.
fn topic_on(half: &str) -> TopicName {
    let log = LogIndex((half == "high").into());
    let halves = map(1, 2);
    let names = (0..).map(|n: u32| format!("{half}{n}"));
    let mut topics = names.map(|name| TopicName::new(&name, &Limits::DEFAULT).unwrap());
    topics
        .find(|topic| halves.log(topic.hash(NAMESPACE), Lane::Normal).index == log)
        .unwrap()
}

fn read_map(epoch: &str, logs: &str) -> Option<LogMap> {
    Some(map(epoch.parse().ok()?, logs.parse().ok()?))
}

/// Reads `FIRST`, or `FIRST to LAST`, and perhaps `a duplicate`.
fn read_ack(words: &[&str]) -> Option<Ack> {
    let (first, rest) = words.split_first()?;
    let first: u64 = first.parse().ok()?;
    let (last, rest) = match rest {
        ["to", last, rest @ ..] => (last.parse().ok()?, rest),
        rest => (first, rest),
    };
    let duplicate = match rest {
        [] => false,
        ["a", "duplicate"] => true,
        _ => return None,
    };
    Some(Ack {
        extent: Extent {
            first: Sequence(first),
            last: Sequence(last),
        },
        appended: AppendTime(1),
        held: Durability::Fsync,
        copies: 1,
        duplicate,
        exact: true,
    })
}

/// Reads an error's code, and perhaps `retry after N ms` or `map EPOCH has N logs`.
fn read_refusal(code: &str, how: &[&str]) -> Option<Refused> {
    let error = Error::new(ErrorCode::from_name(code)?);
    let (error, map) = match how {
        [] => (error, None),
        ["retry", "after", ms, "ms"] => {
            let delay = Duration::from_millis(ms.parse().ok()?);
            (error.retry_after(delay), None)
        }
        ["map", epoch, "has", logs, "logs"] => (error, Some(read_map(epoch, logs)?)),
        _ => return None,
    };
    Some(Refused { error, map })
}

fn show_range(first: u64, last: u64) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first} to {last}")
    }
}

/// Shows an error's code, with the setting or the earlier error that it stems from.
fn show_error(error: &Error) -> String {
    let name = error.code().name();
    let earlier = error.found().split(':').next().unwrap_or_default();
    match (error.field_name(), earlier) {
        ("", _) => name.to_owned(),
        (field, "") => format!("{name} ({field})"),
        (_, earlier) => format!("{name}, after {earlier}"),
    }
}
