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
    /// A disk: stands where the paper has Kafka.
    Disk,
    /// The storage of a node that was there before.
    Target,
}

/// There is no storage of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a storage: memory, disk")]
pub(crate) struct UnknownStorage(String);

impl Storage {
    /// Its name in options, tables and file names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Storage::Memory => "memory",
            Storage::Disk => "disk",
            Storage::Target => "target",
        }
    }

    /// The option of a node that has it.
    pub(super) fn option(self) -> Option<String> {
        (self == Storage::Memory).then(|| "--log=memory:".to_owned())
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
            _ => Err(UnknownStorage(name.to_owned())),
        }
    }
}

/// Where the limiter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A limiter in each publisher, as in section 5.5 of the paper.
    Publisher,
    /// A limiter in the node, for all publishers together.
    Pilot,
}

impl Place {
    pub(super) fn name(self) -> &'static str {
        match self {
            Place::Publisher => "publisher",
            Place::Pilot => "pilot",
        }
    }
}

/// A combination of the varied factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) storage: Storage,
    pub(super) place: Place,
    pub(super) topics: u32,
    pub(super) distribution: Distribution,
    pub(super) limiter: LimiterKind,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case {
            storage,
            place,
            topics,
            distribution,
            limiter,
        } = self;
        let place = place.name();
        write!(
            f,
            "{storage}, {topics} topics, {distribution}, {limiter} in the {place}"
        )
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
        for storage in [Storage::Memory, Storage::Disk] {
            assert_eq!(storage.name().parse(), Ok(storage));
        }
        assert!("target".parse::<Storage>().is_err());
    }
}
