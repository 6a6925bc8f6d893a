//! The URL of a storage whose logs are on Apache Kafka:
//! `kafka://HOST:PORT[,HOST:PORT…][?replicas=3&min_insync=2&prefix=airmail&skew=5s&flush=1]`.
//!
//! A parameter with a dot in its name is a property of librdkafka, such as `security.protocol=SASL_SSL`. What it is set to
//! may be a secret, so no property's value is ever shown.

use super::url_parts::{self, UrlParts};
use airmail_model::quantity::Span;
use airmail_model::{Durability, Synced};
use std::fmt;
use std::time::Duration;

/// Defaults.
const REPLICAS: u8 = 3;
const MIN_INSYNC: u8 = 2;
const PREFIX: &str = "airmail";
const SKEW: Duration = Duration::from_secs(5);
/// Most brokers that are named, letters of a prefix, and skew.
const BROKERS_MAX: usize = 64;
const PREFIX_CHARS_MAX: usize = 64;
const SKEW_MAX: Duration = Duration::from_secs(60);

const EXPECTED: &str =
    "kafka://HOST:PORT[,HOST:PORT…][?replicas=3&min_insync=2&prefix=airmail&skew=5s&flush=1]";

/// Where the brokers are, and how topics are made there. Every node of a cluster has the same but for the brokers that it
/// asks first.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaUrl {
    /// Addresses of brokers, `HOST:PORT` each, 1 to 64: those of the whole Kafka cluster are learned from any of them.
    pub brokers: Vec<String>,
    /// Replicas of each new topic, 1 to 255. Default: 3.
    pub replicas: u8,
    /// Replicas that have a message before it is acknowledged, 1 to `replicas`. Default: 2.
    pub min_insync: u8,
    /// Beginning of the names of all topics: 1 to 64 of `a-z A-Z 0-9 _ -`. Default: `airmail`.
    pub prefix: String,
    /// Most by which the brokers' clocks differ. To 60 s. Default: 5 s.
    pub skew: Duration,
    /// Whether brokers write each message to their disks before they acknowledge it. Default: no.
    pub is_flushed: bool,
    /// Properties of librdkafka, such as for TLS and SASL.
    pub properties: Vec<(String, String)>,
}

impl KafkaUrl {
    /// Reads what stands behind `kafka:`.
    ///
    /// # Errors
    /// What it should have been.
    pub(super) fn parse(rest: &str) -> Result<KafkaUrl, String> {
        let parts = UrlParts::read(rest, EXPECTED, (BROKERS_MAX, "brokers"))?;
        let mut url = KafkaUrl {
            brokers: parts.addresses,
            replicas: REPLICAS,
            min_insync: MIN_INSYNC,
            prefix: PREFIX.to_owned(),
            skew: SKEW,
            is_flushed: false,
            properties: Vec::new(),
        };
        for (name, value) in parts.parameters {
            url.take(name, value)?;
        }
        if url.min_insync > url.replicas {
            return Err(format!(
                "min_insync=1 to {}, as replicas says",
                url.replicas
            ));
        }
        Ok(url)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let count = || {
            let count = value.parse::<u8>().ok().filter(|count| *count > 0);
            count.ok_or_else(|| format!("{name}=1 to 255"))
        };
        match name {
            "replicas" => self.replicas = count()?,
            "min_insync" => self.min_insync = count()?,
            "prefix" => {
                let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                if !(1..=PREFIX_CHARS_MAX).contains(&value.len()) || !value.chars().all(is_sound) {
                    return Err(format!("prefix=1 to {PREFIX_CHARS_MAX} of a-z A-Z 0-9 _ -"));
                }
                value.clone_into(&mut self.prefix);
            }
            "skew" => {
                let skew = value
                    .parse::<Span>()
                    .map_err(|error| format!("skew={error}"))?;
                if skew.0 > SKEW_MAX {
                    return Err(format!("skew=0s to {}", Span(SKEW_MAX)));
                }
                self.skew = skew.0;
            }
            "flush" => {
                self.is_flushed = match value {
                    "0" => false,
                    "1" => true,
                    _ => return Err("flush=0 or 1".to_owned()),
                }
            }
            name if name.contains('.') => self.properties.push((name.to_owned(), value.to_owned())),
            _ => return Err(EXPECTED.to_owned()),
        }
        Ok(())
    }

    /// The durability of everything that is acknowledged there.
    pub(super) fn durability(&self) -> Durability {
        Durability {
            synced: if self.is_flushed {
                Synced::Fsync
            } else {
                Synced::Os
            },
            copies: self.min_insync,
        }
    }
}

impl fmt::Display for KafkaUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parameters = Vec::new();
        if self.replicas != REPLICAS {
            parameters.push(format!("replicas={}", self.replicas));
        }
        if self.min_insync != MIN_INSYNC {
            parameters.push(format!("min_insync={}", self.min_insync));
        }
        if self.prefix != PREFIX {
            parameters.push(format!("prefix={}", self.prefix));
        }
        if self.skew != SKEW {
            parameters.push(format!("skew={}", Span(self.skew)));
        }
        if self.is_flushed {
            parameters.push("flush=1".to_owned());
        }
        let names = self.properties.iter().map(|(name, _)| format!("{name}=…"));
        parameters.extend(names);
        url_parts::write(f, "kafka", &self.brokers, parameters)
    }
}

impl fmt::Debug for KafkaUrl {
    /// Shows it as it is displayed: without the properties' values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_brokers_and_how_topics_are_made() {
        let text = "//a:9092, b:9092?replicas=5&min_insync=3&prefix=mail-1&skew=1s&flush=1";
        let url = KafkaUrl::parse(text).unwrap();
        assert_eq!(url.brokers, ["a:9092", "b:9092"]);
        assert_eq!(
            url.to_string(),
            "kafka://a:9092,b:9092?replicas=5&min_insync=3&prefix=mail-1&skew=1s&flush=1"
        );
        assert_eq!(url.durability().to_string(), "fsync:3");
        let url = KafkaUrl::parse("//a:9092").unwrap();
        assert_eq!((url.replicas, url.min_insync, url.skew), (3, 2, SKEW));
        assert_eq!(url.to_string(), "kafka://a:9092");
        assert_eq!(url.durability().to_string(), "os:2");
    }

    #[test]
    fn properties_of_the_client_are_taken_and_their_values_never_shown() {
        let url = KafkaUrl::parse("//a:9092?sasl.username=me&sasl.password=secret").unwrap();
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            url.properties,
            [
                named("sasl.username", "me"),
                named("sasl.password", "secret")
            ]
        );
        for shown in [url.to_string(), format!("{url:?}")] {
            assert_eq!(shown, "kafka://a:9092?sasl.username=…&sasl.password=…");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_what_it_should_have_been() {
        for (text, expected) in [
            ("a:9092", EXPECTED),
            ("//", EXPECTED),
            ("//a", EXPECTED),
            ("//a:99999", EXPECTED),
            ("//a:9092,", EXPECTED),
            ("//a:9092?size=1MiB", EXPECTED),
            ("//a:9092?replicas", EXPECTED),
            ("//a:9092?replicas=0", "replicas=1 to 255"),
            ("//a:9092?replicas=1", "min_insync=1 to 1, as replicas says"),
            (
                "//a:9092?min_insync=4",
                "min_insync=1 to 3, as replicas says",
            ),
            ("//a:9092?prefix=", "prefix=1 to 64 of a-z A-Z 0-9 _ -"),
            ("//a:9092?prefix=a.b", "prefix=1 to 64 of a-z A-Z 0-9 _ -"),
            ("//a:9092?skew=2m", "skew=0s to 1m"),
            ("//a:9092?flush=yes", "flush=0 or 1"),
        ] {
            assert_eq!(KafkaUrl::parse(text).unwrap_err(), expected, "{text}");
        }
        let many = format!("//{}", vec!["a:1"; 65].join(","));
        assert_eq!(KafkaUrl::parse(&many).unwrap_err(), "at most 64 brokers");
        let skew = KafkaUrl::parse("//a:9092?skew=much").unwrap_err();
        assert!(skew.starts_with("skew="), "{skew}");
    }
}
