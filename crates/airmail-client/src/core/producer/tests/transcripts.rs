//! Transcripts: inputs of a producer, and the effects of each, as text that can be read without the
//! code. They are in `tests/transcripts/producer`; with `AIRMAIL_REWRITE=1` they are written anew.
//!
//! After each input the producer is polled. The effects are messages that are settled, requests that
//! are sent, and the time at which the producer wants to be polled again, where that has changed.
//! Time begins at 0 ms, delays have no jitter, and a map with two logs has the topic `low` on log 0
//! and the topic `high` on log 1.

use super::*;
use crate::core::backoff::BackoffConfig;
use airmail_model::frame::Ack;
use airmail_model::{AppendTime, Batch, Checked, Durability, Extent, Sequence};
use airmail_testkit::transcript::{Transcript, parts};
use airmail_testkit::transcripts;

transcripts! {
    "producer",
    play,
    a_batch_that_is_stored_is_as_written: "stored",
    gathering_while_two_batches_are_in_flight_is_as_written: "gathering",
    a_retry_after_a_lost_connection_is_as_written: "lost_connection",
    an_overload_is_as_written: "overload",
    a_full_disk_is_as_written: "full_disk",
    a_final_refusal_is_as_written: "final_refusal",
    a_stale_map_is_as_written: "stale_map",
    a_stale_map_after_a_lost_attempt_is_as_written: "stale_map_after_lost_attempt",
    a_sealed_log_is_as_written: "sealed_log",
    a_sealed_log_that_knows_no_producer_is_as_written: "sealed_log_unknown",
    a_new_map_is_as_written: "new_map",
    an_unknown_producer_is_as_written: "unknown_producer",
    a_timeout_in_flight_is_as_written: "timeout_in_flight",
    a_timeout_without_a_connection_is_as_written: "timeout_without_connection",
    a_fenced_producer_is_as_written: "fenced",
    giving_up_in_flight_is_as_written: "giving_up",
    the_memory_bound_is_as_written: "memory_bound",
}

#[test]
fn the_architecture_shows_a_transcript_as_it_is() {
    Transcript::of(env!("CARGO_PKG_NAME"), "producer", "lost_connection").hold_architecture();
}

/// Gives a producer that takes inputs, and is polled after each.
fn play() -> impl FnMut(&str) -> Option<Vec<String>> {
    let mut player = Player::new();
    move |line| {
        player.apply(line)?;
        Some(player.poll())
    }
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

    /// Applies an input; `None` if the line is none.
    fn apply(&mut self, line: &str) -> Option<()> {
        if let Some([rest]) = parts("node: {}", line) {
            return self.apply_reply(rest);
        }
        if let Some([name, value]) = parts("set {} {}", line) {
            return self.set(name, value);
        }
        if let Some([ms]) = parts("{} ms pass", line) {
            self.now_ms += ms.parse::<u64>().ok()?;
        } else if let Some([names, topic]) = parts("publish {} on {}", line) {
            for name in names.split(' ') {
                self.publish(name, topic);
            }
        } else if let Some([code]) = parts("the client gives up: {}", line) {
            let error = Error::new(ErrorCode::from_name(code)?);
            self.producer.abandon(&error, &mut self.out);
        } else {
            match line {
                "connected" => self.producer.connected(),
                "disconnected" => self.producer.disconnected(),
                _ => return None,
            }
        }
        Some(())
    }

    /// Applies what a node says.
    fn apply_reply(&mut self, line: &str) -> Option<()> {
        if let Some([request, stored]) = parts("publish #{} is stored as {}", line) {
            self.answer(request, Ok(read_ack(stored)?))
        } else if let Some([request, refusal]) = parts("publish #{} is refused: {}", line) {
            self.answer(request, Err(read_refusal(refusal)?))
        } else {
            self.producer.set_map(read_map(line)?);
            Some(())
        }
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
        self.effects
            .push(format!("to the user: {name} is not accepted: {why}"));
    }

    fn answer(&mut self, request: &str, result: Result<Ack, Refused>) -> Option<()> {
        let request = RequestId(request.parse().ok()?);
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
            if let Request::Publish { request, batch, .. } = request {
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
                format!("to the user: {names} stored in log {log} as {numbers}{duplicate}")
            }
            Err(error) => format!("to the user: {names} failed: {}", show_error(error)),
        }
    }

    fn show_sent(&self, request: RequestId, batch: &Checked<Batch>) -> String {
        let stamp = batch.producer().expect("a producer's batch");
        let first = stamp.sequence.0;
        let last = first + u64::from(batch.records()) - 1;
        let numbers = show_range(first, last);
        let payloads = batch.iter().map(|record| {
            let name = std::str::from_utf8(record.payload);
            name.expect("a message's name").to_owned()
        });
        let names = payloads.collect::<Vec<_>>().join(" ");
        let same = |sent: &Checked<Batch>| sent.bytes() == batch.bytes();
        let again = if self.sent.iter().any(same) {
            ", again"
        } else {
            ""
        };
        format!(
            "to the node: publish #{} on log {}{again}: {names} (sequence {numbers}, epoch {}, map {})",
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

/// Reads `map EPOCH has N logs`, and perhaps `from FIRST on`.
fn read_map(line: &str) -> Option<LogMap> {
    if let Some([epoch, logs, first]) = parts("map {} has {} logs from {} on", line) {
        let (epoch, first) = (MapEpoch(epoch.parse().ok()?), LogIndex(first.parse().ok()?));
        return Some(LogMap::even(NAMESPACE, epoch, first, logs.parse().ok()?));
    }
    let [epoch, logs] = parts("map {} has {} logs", line)?;
    Some(map(epoch.parse().ok()?, logs.parse().ok()?))
}

/// Reads `FIRST`, or `FIRST to LAST`, and perhaps `, a duplicate`.
fn read_ack(words: &str) -> Option<Ack> {
    let (numbers, duplicate) = match words.strip_suffix(", a duplicate") {
        Some(numbers) => (numbers, true),
        None => (words, false),
    };
    let [first, last] = parts("{} to {}", numbers).unwrap_or([numbers, numbers]);
    Some(Ack {
        extent: Extent {
            first: Sequence(first.parse().ok()?),
            last: Sequence(last.parse().ok()?),
        },
        appended: AppendTime(1),
        held: Durability::FSYNC,
        duplicate,
        exact: true,
    })
}

/// Reads an error's code, and perhaps `, retry after N ms` or a map.
fn read_refusal(words: &str) -> Option<Refused> {
    let (code, how) = words.split_once(", ").unwrap_or((words, ""));
    let error = Error::new(ErrorCode::from_name(code)?);
    let (error, map) = if how.is_empty() {
        (error, None)
    } else if let Some([ms]) = parts("retry after {} ms", how) {
        let delay = Duration::from_millis(ms.parse().ok()?);
        (error.retry_after(delay), None)
    } else {
        (error, Some(read_map(how)?))
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
