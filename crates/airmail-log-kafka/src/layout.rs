//! The topics of a cluster: their names, their settings, and what is checked of them.
//!
//! Each map of a namespace has a topic of its own in each lane, with a partition for each log: retention is a setting
//! of a topic, so topics of namespaces cannot be shared. Its name has a *nonce*, a random number: whoever makes a map
//! makes new topics, and a topic that is deleted is never made again under its name. At offset 0 of each partition
//! is a *birth record* with the nonce, so that a topic that somebody else has made again by hand is found out, rather
//! than new data be taken for old.
//!
//! Two topics belong to the whole cluster: `<prefix>.meta` is log 0, and `<prefix>.state` has rows and statements about logs.
//! Where log 0 is in another storage, `<prefix>.of.<cluster>` stands in place of the former: it has no records, and its
//! name says whose the prefix is.

use crate::brokers::{Described, Settings, Topic};
use crate::config::KafkaConfig;
use airmail_model::{Incarnation, Lane, LogId, LogIndex, MapEpoch, Provisions, Retention, random};
use bytes::Bytes;

/// The form of the bytes of [`MapTopics`].
const VERSION: u8 = 1;
/// Bytes of [`MapTopics`].
const BYTES: usize = 19;
/// Beginning of a birth record.
const BIRTH: &[u8] = b"airmail birth 1\n";
/// The largest record, in bytes.
pub(crate) const RECORD_BYTES_MAX: u32 = 2 << 20;

/// The topics of a namespace's map, one for each lane. A storage provisions them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapTopics {
    /// The map that they were made for.
    pub(crate) epoch: MapEpoch,
    /// Index of the log in partition 0.
    pub(crate) first: LogIndex,
    /// Number of logs, and of partitions.
    pub(crate) logs: u16,
    /// Replicas of each partition.
    pub(crate) replicas: u8,
    /// Replicas that have to be in sync.
    pub(crate) min_insync: u8,
    /// Random: part of their names, and in their birth records.
    pub(crate) nonce: u64,
}

impl MapTopics {
    pub(crate) fn encode(&self) -> Provisions {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend(self.epoch.0.to_be_bytes());
        bytes.extend(self.first.0.to_be_bytes());
        bytes.extend(self.logs.to_be_bytes());
        bytes.extend([self.replicas, self.min_insync]);
        bytes.extend(self.nonce.to_be_bytes());
        Provisions::new(&bytes).unwrap_or_default()
    }

    /// Reads provisions; `None` for what is none of this storage.
    pub(crate) fn decode(provisions: &Provisions) -> Option<MapTopics> {
        let bytes: &[u8; BYTES] = provisions.as_bytes().try_into().ok()?;
        let [
            version,
            e0,
            e1,
            e2,
            e3,
            f0,
            f1,
            l0,
            l1,
            replicas,
            min_insync,
            nonce @ ..,
        ] = *bytes;
        (version == VERSION).then_some(MapTopics {
            epoch: MapEpoch(u32::from_be_bytes([e0, e1, e2, e3])),
            first: LogIndex(u16::from_be_bytes([f0, f1])),
            logs: u16::from_be_bytes([l0, l1]),
            replicas,
            min_insync,
            nonce: u64::from_be_bytes(nonce),
        })
    }

    /// The number of a log's partition; `None` if the log is not of this map.
    pub(crate) fn partition(&self, log: LogId) -> Option<u16> {
        let number = log.index.0.checked_sub(self.first.0)?;
        (number < self.logs).then_some(number)
    }

    /// The topic of a log's lane.
    pub(crate) fn topic(&self, config: &KafkaConfig, log: LogId) -> Topic {
        Topic::new(&format!(
            "{}.{}.{}.{}.{:016x}",
            config.prefix, log.namespace, log.lane, self.epoch, self.nonce
        ))
    }

    /// The topics of both lanes, of a log's map.
    pub(crate) fn names(&self, config: &KafkaConfig, log: LogId) -> [Topic; 2] {
        Lane::ALL.map(|lane| self.topic(config, LogId { lane, ..log }))
    }

    /// The record at offset 0 of each partition.
    pub(crate) fn birth(&self) -> Bytes {
        let mut bytes = BIRTH.to_vec();
        bytes.extend(self.nonce.to_be_bytes());
        bytes.into()
    }
}

/// Topic of log 0.
pub(crate) fn meta_topic(config: &KafkaConfig) -> Topic {
    Topic::new(&format!("{}.meta", config.prefix))
}

/// Beginning of the name of the topic that says whose the prefix is, where log 0 is in another storage.
pub(crate) fn owner_prefix(config: &KafkaConfig) -> String {
    format!("{}.of.", config.prefix)
}

/// Topic that says that the prefix is this cluster's. It has no records.
pub(crate) fn owner_topic(config: &KafkaConfig) -> Topic {
    Topic::new(&format!("{}{:016x}", owner_prefix(config), config.cluster))
}

/// Topic of the rows about logs.
pub(crate) fn state_topic(config: &KafkaConfig) -> Topic {
    Topic::new(&format!("{}.state", config.prefix))
}

/// The life of a log: another one where the cluster, the log, its topic or the count of its renewals or cuts is another.
pub(crate) fn incarnation(
    cluster: u64,
    log: LogId,
    nonce: u64,
    (renewals, cuts): (u32, u32),
) -> Incarnation {
    let lane = u64::from(log.lane as u8);
    let id = u64::from(log.namespace.0) << 32 | lane << 16 | u64::from(log.index.0);
    let parts = [Some(id), Some(nonce), Some(renewals.into())];
    // A log that was never cut is in the life that it had before there were cuts.
    let cuts = (cuts > 0).then_some(u64::from(cuts));
    let mixed = parts
        .iter()
        .chain([&cuts])
        .flatten()
        .fold(random::mixed(cluster), |mixed, part| {
            random::nth(mixed ^ random::mixed(*part), 0)
        });
    Incarnation(mixed)
}

/// A setting as Kafka writes it: -1 is without bound.
fn bound(value: Option<u64>) -> String {
    value.map_or_else(
        || "-1".to_owned(),
        |value| value.min(i64::MAX as u64).to_string(),
    )
}

/// The settings that keep what a retention says.
pub(crate) fn retention_settings(retention: &Retention) -> Settings {
    let settings = [
        ("retention.ms", bound(retention.time_ms)),
        ("retention.bytes", bound(retention.bytes)),
    ];
    settings
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// The settings that every topic of logs is made with.
pub(crate) fn log_settings(config: &KafkaConfig, retention: &Retention) -> Settings {
    let mut settings = retention_settings(retention);
    settings.extend(common_settings(config));
    settings.insert("cleanup.policy".to_owned(), "delete".to_owned());
    settings
}

/// The settings of the topic of rows.
pub(crate) fn state_settings(config: &KafkaConfig) -> Settings {
    let mut settings = common_settings(config);
    // Statements are written over and over: only segments that are closed are compacted.
    for (name, value) in [
        ("cleanup.policy", "compact"),
        ("segment.bytes", "33554432"),
        ("min.cleanable.dirty.ratio", "0.2"),
    ] {
        settings.insert(name.to_owned(), value.to_owned());
    }
    settings
}

fn common_settings(config: &KafkaConfig) -> Settings {
    let mut settings = vec![
        ("message.timestamp.type", "LogAppendTime".to_owned()),
        ("min.insync.replicas", config.min_insync.to_string()),
        ("unclean.leader.election.enable", "false".to_owned()),
        ("max.message.bytes", RECORD_BYTES_MAX.to_string()),
        ("compression.type", "producer".to_owned()),
    ];
    if config.is_flushed {
        settings.push(("flush.messages", "1".to_owned()));
    }
    let named = settings.into_iter();
    named
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Checks a topic of logs against what the storage's promises need.
///
/// # Errors
/// What is otherwise, by its name in Kafka, as it is and as it has to be.
pub(crate) fn check(
    config: &KafkaConfig,
    topic: &Topic,
    found: &Described,
    partitions: u16,
) -> Result<(), String> {
    let complain = |what: &str, found: &str, wanted: &str| {
        Err(format!(
            "topic {topic}: {what} is {found}, and has to be {wanted}"
        ))
    };
    if found.partitions < partitions {
        let (found, wanted) = (found.partitions.to_string(), partitions.to_string());
        return complain("the number of partitions", &found, &wanted);
    }
    if found.replicas < config.min_insync {
        let (found, wanted) = (found.replicas.to_string(), config.min_insync.to_string());
        return complain(
            "the number of replicas",
            &found,
            &format!("at least {wanted}"),
        );
    }
    let setting = |name: &str| found.settings.get(name).map_or("", String::as_str);
    for (name, wanted) in [
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "LogAppendTime"),
        ("unclean.leader.election.enable", "false"),
    ] {
        if setting(name) != wanted {
            return complain(name, setting(name), wanted);
        }
    }
    let least = |name: &str, least: u64| {
        let value: u64 = setting(name).parse().unwrap_or(0);
        if value >= least {
            return Ok(());
        }
        complain(name, setting(name), &format!("at least {least}"))
    };
    least("min.insync.replicas", config.min_insync.into())?;
    least("max.message.bytes", RECORD_BYTES_MAX.into())?;
    if config.is_flushed && setting("flush.messages") != "1" {
        return complain("flush.messages", setting("flush.messages"), "1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::NamespaceId;

    fn topics() -> MapTopics {
        MapTopics {
            epoch: MapEpoch(3),
            first: LogIndex(4),
            logs: 2,
            replicas: 3,
            min_insync: 2,
            nonce: 0xabc,
        }
    }

    fn sound() -> Described {
        let config = KafkaConfig::default();
        Described {
            partitions: 2,
            replicas: 3,
            settings: log_settings(&config, &Retention::default()),
        }
    }

    #[test]
    fn topics_of_a_map_are_found_by_its_provisions() {
        assert_eq!(MapTopics::decode(&topics().encode()), Some(topics()));
        assert_eq!(MapTopics::decode(&Provisions::NONE), None);
        assert_eq!(
            MapTopics::decode(&Provisions::new(&[2; BYTES]).unwrap()),
            None
        );
        let log = LogId {
            namespace: NamespaceId(7),
            index: LogIndex(5),
            ..LogId::default()
        };
        assert_eq!(topics().partition(log), Some(1));
        let name = topics().topic(&KafkaConfig::default(), log);
        assert_eq!(name.as_str(), "airmail.7.normal.3.0000000000000abc");
        for index in [0, 3, 6] {
            let other = LogId {
                index: LogIndex(index),
                ..log
            };
            assert_eq!(topics().partition(other), None);
        }
    }

    #[test]
    fn a_topic_that_is_set_otherwise_is_refused_by_the_settings_name() {
        let (config, topic) = (KafkaConfig::default(), Topic::new("x"));
        assert_eq!(check(&config, &topic, &sound(), 2), Ok(()));
        for (name, value) in [
            ("cleanup.policy", "compact"),
            ("cleanup.policy", "compact,delete"),
            ("message.timestamp.type", "CreateTime"),
            ("min.insync.replicas", "1"),
            ("unclean.leader.election.enable", "true"),
            ("max.message.bytes", "1048588"),
        ] {
            let mut found = sound();
            found.settings.insert(name.to_owned(), value.to_owned());
            let error = check(&config, &topic, &found, 2).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        let few = Described {
            replicas: 1,
            ..sound()
        };
        let error = check(&config, &topic, &few, 2).unwrap_err();
        assert!(error.contains("replicas is 1"), "{error}");
        assert!(check(&config, &topic, &sound(), 3).is_err());
    }

    #[test]
    fn every_life_of_a_log_is_another_one() {
        let log = LogId::default();
        let lives = [
            incarnation(1, log, 5, (0, 0)),
            incarnation(1, log, 5, (1, 0)),
            incarnation(1, log, 5, (0, 1)),
            incarnation(1, log, 5, (1, 1)),
            incarnation(1, log, 5, (0, 2)),
            incarnation(1, log, 6, (0, 0)),
            incarnation(2, log, 5, (0, 0)),
            incarnation(
                1,
                LogId {
                    index: LogIndex(1),
                    ..log
                },
                5,
                (0, 0),
            ),
        ];
        for (n, life) in lives.iter().enumerate() {
            assert!(!lives[..n].contains(life));
        }
    }
}
