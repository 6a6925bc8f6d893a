//! One case of the experiment: a combination of the varied factors.

use airmail_experiments::flow::Distribution;
use airmail_flow::LimiterKind;
use std::fmt;
use std::str::FromStr;

/// Where messages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Storage {
    /// Memory: as the paper's *in-memory log storage*.
    Memory,
    /// A disk: stands where the paper has Kafka, if there is none.
    Disk,
    /// Kafka, and a node of one process.
    Kafka,
    /// Kafka, and a node whose roles are a process each.
    KafkaApart,
    /// Memory that takes so many microseconds for each batch, one after another: a known capacity.
    Served(u32),
    /// A disk on which neighbours write and sync all the time.
    SharedDisk,
    /// A disk on which they do so for a while.
    SharedDiskAWhile,
    /// The storage of a node that was there before.
    Target,
}

/// There is no storage of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a storage: memory, disk, kafka, kafka-apart")]
pub(crate) struct UnknownStorage(String);

impl Storage {
    /// Its name in options, tables and file names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Storage::Memory => "memory",
            Storage::Disk => "disk",
            Storage::Kafka => "kafka",
            Storage::KafkaApart => "kafka-apart",
            Storage::Served(_) => "served",
            Storage::SharedDisk | Storage::SharedDiskAWhile => "shared-disk",
            Storage::Target => "target",
        }
    }

    /// Whether its logs are on Kafka.
    pub(super) fn is_on_kafka(self) -> bool {
        matches!(self, Storage::Kafka | Storage::KafkaApart)
    }

    /// The option of a node that has it, if that is always the same.
    pub(super) fn option(self) -> Option<String> {
        match self {
            Storage::Memory => Some("--log=memory:".to_owned()),
            Storage::Served(service_us) => Some(format!("--log=memory:?service_us={service_us}")),
            Storage::Disk
            | Storage::Kafka
            | Storage::KafkaApart
            | Storage::SharedDisk
            | Storage::SharedDiskAWhile
            | Storage::Target => None,
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Storage {
    type Err = UnknownStorage;

    fn from_str(name: &str) -> Result<Storage, UnknownStorage> {
        match name {
            "memory" => Ok(Storage::Memory),
            "disk" => Ok(Storage::Disk),
            "kafka" => Ok(Storage::Kafka),
            "kafka-apart" => Ok(Storage::KafkaApart),
            _ => Err(UnknownStorage(name.to_owned())),
        }
    }
}

/// Where the limiter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Place {
    /// A limiter in each publisher, as in section 5.5 of the paper
    #[value(name = "publishers")]
    Publisher,
    /// A limiter in the node, for all publishers together
    Pilot,
}

impl Place {
    /// Its name in rows and file names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Publisher => "publisher",
            Place::Pilot => "pilot",
        }
    }
}

/// All that is varied but the limiter: limiters are compared within a setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) storage: Storage,
    pub(crate) place: Place,
    /// Publishers, the first two with a subscriber beside them.
    pub(crate) publishers: u32,
    pub(crate) topics: u32,
    pub(crate) distribution: Distribution,
}

impl Setup {
    /// The setup whose sweep is this one's too: knees are found with messages spread evenly.
    pub(crate) fn swept(self) -> Setup {
        Setup {
            distribution: Distribution::Uniform,
            ..self
        }
    }

    /// Limiters at work.
    pub(crate) fn limiters(&self) -> u32 {
        match self.place {
            Place::Publisher => self.publishers,
            Place::Pilot => 1,
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup {
            storage,
            place,
            publishers,
            topics,
            distribution,
        } = self;
        let (topics, place) = (topics_text(*topics), place.name());
        let publishers = publishers_text(*publishers);
        write!(
            f,
            "{storage}, {topics}, {distribution}, {publishers}, in the {place}"
        )
    }
}

/// A combination of the varied factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) setup: Setup,
    pub(crate) limiter: LimiterKind,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.setup, self.limiter)
    }
}

/// `1 publisher`, `8 publishers`.
pub(super) fn publishers_text(publishers: u32) -> String {
    match publishers {
        1 => "1 publisher".to_owned(),
        publishers => format!("{publishers} publishers"),
    }
}

/// `1 topic`, `16 topics`.
pub(super) fn topics_text(topics: u32) -> String {
    match topics {
        1 => "1 topic".to_owned(),
        topics => format!("{topics} topics"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_is_known_by_its_name_and_the_targets_by_none() {
        let kafka = [Storage::Kafka, Storage::KafkaApart];
        for storage in [Storage::Memory, Storage::Disk].into_iter().chain(kafka) {
            assert_eq!(storage.name().parse(), Ok(storage));
        }
        assert!("target".parse::<Storage>().is_err());
    }
}
