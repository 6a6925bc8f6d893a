//! What a run is asked to do.

use serde::Serialize;

use crate::stamp::Stamp;

/// The settings of a run; a report repeats them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Messages to publish, by all publishers together. At least 1. Default 100,000.
    pub messages: u64,
    /// Payload of each message, in bytes, at least [`Stamp::BYTES`]. Default 100.
    pub size: usize,
    /// Publishing clients, each with a connection of its own. At least 1. Default 1.
    pub publishers: u32,
    /// Subscribing clients, each with a connection of its own and a subscription to every topic. At
    /// least 1. Default 1.
    pub subscribers: u32,
    /// Topics, which each publisher uses in turn. At least 1. Default 1.
    pub topics: u32,
    /// Messages per second, by all publishers together, whether or not the node keeps up. Absent: as
    /// fast as there is room.
    pub rate: Option<u64>,
    /// Namespace of the topics. Default `default`.
    pub namespace: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            messages: 100_000,
            size: 100,
            publishers: 1,
            subscribers: 1,
            topics: 1,
            rate: None,
            namespace: "default".to_owned(),
        }
    }
}

/// A setting that makes no sense, with what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {value} is too small; at least {least}")]
pub struct SettingTooSmall {
    /// Which one, by its name here.
    pub setting: &'static str,
    /// What it is.
    pub value: u64,
    /// What it must be at least.
    pub least: u64,
}

impl Settings {
    /// Whether a run can do this.
    ///
    /// # Errors
    /// The first setting that is too small.
    pub fn check(&self) -> Result<(), SettingTooSmall> {
        let checks = [
            ("messages", self.messages, 1),
            ("size", self.size as u64, Stamp::BYTES as u64),
            ("publishers", self.publishers.into(), 1),
            ("subscribers", self.subscribers.into(), 1),
            ("topics", self.topics.into(), 1),
            ("rate", self.rate.unwrap_or(1), 1),
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

    /// How often a message is to be delivered, at all subscribers together.
    #[must_use]
    pub fn deliveries(&self) -> u64 {
        self.messages * u64::from(self.subscribers)
    }

    /// How many of the messages `publisher` publishes: as even as can be.
    #[must_use]
    pub fn messages_of(&self, publisher: u32) -> u64 {
        let publishers = u64::from(self.publishers);
        self.messages / publishers + u64::from(u64::from(publisher) < self.messages % publishers)
    }

    /// The topic of a publisher's message, by number.
    #[must_use]
    pub fn topic_of(&self, number: u64) -> u32 {
        (number % u64::from(self.topics)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_messages_are_shared_out() {
        let settings = Settings {
            messages: 103,
            publishers: 4,
            topics: 7,
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
        assert_eq!(refused.to_string(), "size: 8 is too small; at least 24");
    }
}
