//! Settings of a run.

use crate::stamp::Stamp;
use airmail_model::quantity::{ByteSize, Span};
use serde::{Deserialize, Serialize};

/// Workloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Publishing only, to the ack.
    Pub,
    /// Receiving others' messages, or stored ones.
    Sub,
    /// Measures from publish to delivery, as fast as there is room.
    #[default]
    E2e,
    /// Measures from publish to delivery, at a rate.
    Latency,
    /// Measures from one publisher to many subscribers.
    Fanout,
}

/// The settings of a run; a report repeats them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The part of a message's way that is measured. Default `e2e`.
    pub workload: Workload,
    /// Messages to publish, by all publishers together. At least 1. Absent: as many as
    /// [`Settings::duration_ms`] has room for. Default 100,000.
    pub messages: Option<u64>,
    /// Time for which to publish, in milliseconds, warm-up included. Absent: until all are
    /// published.
    pub duration_ms: Option<u64>,
    /// Time at the beginning that is left out of rates and times, in milliseconds; its messages
    /// count all the same. Default 0.
    pub warmup_ms: u64,
    /// Payload of each message, in bytes, at least [`Stamp::SHORT_BYTES`]. Default 100.
    pub size: usize,
    /// Publishing clients, each with a connection of its own. At least 1. Default 1.
    pub publishers: u32,
    /// Subscribing clients, each with a connection of its own and a subscription to every topic. At
    /// least 1. Default 1.
    pub subscribers: u32,
    /// Topics, which each publisher uses in turn. At least 1. Default 1.
    pub topics: u32,
    /// Each subscriber has topics of its own, every [`Settings::subscribers`]th from its number, in place of
    /// all. Topics are then a multiple of subscribers, and messages one of topics times publishers. Default
    /// false.
    pub own_topics: bool,
    /// Messages per second, by all publishers together, whether or not the node keeps up. Absent: as
    /// fast as there is room.
    pub rate: Option<u64>,
    /// Messages of each publisher that may wait for their acks, at least 1. Absent: what the
    /// system's client takes.
    pub in_flight: Option<u32>,
    /// Each message is handed over, and its ack awaited, by itself, in a batch of its own. Default
    /// false.
    pub unbatched: bool,
    /// Publishes everything to lane high, where the system has it. Default false.
    #[serde(default)]
    pub high: bool,
    /// Whether subscribers begin with stored messages. Default false.
    pub from_earliest: bool,
    /// Processes that publishers and subscribers are spread over. At least 1. Default 1.
    pub processes: u32,
    /// Namespace of the topics. Default `default`.
    pub namespace: String,
    /// Durability that an ack promises: `fsync`, `os` or `memory`. Absent: the namespace's own.
    pub durability: Option<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workload: Workload::E2e,
            messages: Some(100_000),
            duration_ms: None,
            warmup_ms: 0,
            size: 100,
            publishers: 1,
            subscribers: 1,
            topics: 1,
            own_topics: false,
            rate: None,
            in_flight: None,
            unbatched: false,
            high: false,
            from_earliest: false,
            processes: 1,
            namespace: "default".to_owned(),
            durability: None,
        }
    }
}

/// A setting that makes no sense, with what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {value} is too small; at least {least}")]
pub struct SettingTooSmall {
    /// The setting, by its name on the command line.
    pub setting: &'static str,
    /// The value given.
    pub value: u64,
    /// The least value allowed.
    pub least: u64,
}

impl Settings {
    /// Whether a run can do this.
    ///
    /// # Errors
    /// The first setting that is too small.
    pub fn check(&self) -> Result<(), SettingTooSmall> {
        let topics_min = u64::from(self.subscribers) / self.readers().max(1);
        let checks = [
            ("messages", self.messages.unwrap_or(1), 1),
            (
                "duration",
                self.duration_ms.unwrap_or(u64::MAX),
                self.warmup_ms + 1,
            ),
            ("size", self.size as u64, Stamp::SHORT_BYTES as u64),
            ("publishers", self.publishers.into(), 1),
            ("subscribers", self.subscribers.into(), 1),
            ("topics", self.topics.into(), topics_min),
            ("rate", self.rate.unwrap_or(1), 1),
            ("in-flight", self.in_flight.unwrap_or(1).into(), 1),
            ("processes", self.processes.into(), 1),
        ];
        match checks.into_iter().find(|(_, value, least)| value < least) {
            Some((setting, value, least)) => Err(SettingTooSmall {
                setting,
                value,
                least,
            }),
            None => Ok(()),
        }
    }

    /// Whether the run publishes.
    #[must_use]
    pub fn publishes(&self) -> bool {
        self.workload != Workload::Sub
    }

    /// Whether the run subscribes.
    #[must_use]
    pub fn subscribes(&self) -> bool {
        self.workload != Workload::Pub
    }

    /// Number of deliveries to all subscribers together, if that is known.
    #[must_use]
    pub fn deliveries(&self) -> Option<u64> {
        Some(self.messages? * self.readers())
    }

    /// Number of subscribers that get each message.
    #[must_use]
    pub fn readers(&self) -> u64 {
        if self.own_topics {
            1
        } else {
            self.subscribers.into()
        }
    }

    /// Topics of a subscriber: the place of the first in the run's list, and the step to the next.
    #[must_use]
    pub fn topics_of(&self, subscriber: u32) -> (usize, usize) {
        if self.own_topics {
            (subscriber as usize, self.subscribers as usize)
        } else {
            (0, 1)
        }
    }

    /// Number of messages that `publisher` publishes: an even part of all; `u64::MAX` if the run
    /// has no number of messages.
    #[must_use]
    pub fn messages_of(&self, publisher: u32) -> u64 {
        let Some(messages) = self.messages else {
            return u64::MAX;
        };
        let publishers = u64::from(self.publishers);
        messages / publishers + u64::from(u64::from(publisher) < messages % publishers)
    }
}

/// A time such as `10s`, in milliseconds, as options have it.
///
/// # Errors
/// Description of a valid time, for error messages.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let Span(time) = text.parse()?;
    u64::try_from(time.as_millis()).map_err(|error| error.to_string())
}

/// A size such as `5GiB`, in bytes, as options have it.
///
/// # Errors
/// Description of a valid size, for error messages.
pub fn bytes(text: &str) -> Result<u64, String> {
    text.parse().map(|ByteSize(bytes)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_messages_are_shared_out() {
        let settings = Settings {
            messages: Some(103),
            publishers: 4,
            ..Settings::default()
        };
        let by_publisher: u64 = (0..4)
            .map(|publisher| settings.messages_of(publisher))
            .sum();
        assert_eq!(by_publisher, 103);
    }

    #[test]
    fn a_payload_without_room_for_a_stamp_is_refused() {
        let settings = Settings {
            size: 8,
            ..Settings::default()
        };
        let refused = settings.check().unwrap_err();
        assert_eq!(refused.to_string(), "size: 8 is too small; at least 16");
    }

    #[test]
    fn a_run_that_is_all_warm_up_is_refused() {
        let settings = Settings {
            duration_ms: Some(1000),
            warmup_ms: 1000,
            ..Settings::default()
        };
        assert_eq!(settings.check().unwrap_err().setting, "duration");
    }
}
