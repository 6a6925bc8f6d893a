//! Storages by their URL, and how they are opened: their directories are taken once a process, and each shard
//! opens its own part in them (`storage_set`).

mod apart;
mod data_dir_watcher;
mod directory;
#[cfg(all(feature = "kafka", feature = "test-switches"))]
mod held_reading;
mod kafka_url;
pub(crate) mod node_storage;
mod of_towers;
mod on_disk;
#[cfg(feature = "kafka")]
mod on_kafka;
mod precise_timer;
mod service_times;
mod storage_set;
mod throttled;
mod tree_url;
mod url_parts;

use airmail_log::StorageTraits;
use airmail_model::{Durability, Error, ErrorCode};
pub(crate) use data_dir_watcher::Standing;
pub use kafka_url::KafkaUrl;
pub use service_times::{SERVICE_US_MAX, ServiceTimes};
use std::fmt;
use std::path::{Path, PathBuf};
pub(crate) use storage_set::{StorageSet, seed_of_shard};
pub use tree_url::TreeUrl;

/// Descriptions of a storage's URL, for whoever wrote another thing: the first one's, and further ones'.
const FIRST: &str = "disk:PATH, memory:, kafka://HOST:PORT or tree://HOST:PORT";
pub(crate) const FURTHER: &str = "disk:PATH, memory: or kafka://HOST:PORT";

/// A storage's URL, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageUrl {
    /// `memory:`, or `memory:?service_us=N` with appends that take N microseconds each, one after
    /// another, or `memory:?service_us=N@0s,N@TIME,…` with times that change: a node of known capacity,
    /// for experiments and tests.
    Memory {
        /// Time that a batch's append takes, 1 to [`SERVICE_US_MAX`]. `None`: no longer than it must.
        service_us: Option<ServiceTimes>,
    },
    /// `disk:PATH`
    Disk(PathBuf),
    /// `kafka://…`: partitions of a Kafka cluster.
    Kafka(KafkaUrl),
    /// `tree://…`: those of a parent, and of its parents up to the root.
    Tree(TreeUrl),
    /// Those of another node, at `HOST:PORT`, or one of several such. It has no URL: roles, `cluster.join` and
    /// `cluster.peers` say it.
    Node(String),
}

impl StorageUrl {
    /// Reads the URL of a node's first storage, as [`StorageUrl::of`] does; the empty URL and `disk:` are the
    /// disk in `data`.
    ///
    /// # Errors
    /// Those of [`StorageUrl::of`], for the setting `log.url`.
    pub fn parse(url: &str, data: &Path) -> Result<StorageUrl, Error> {
        match url {
            "" | "disk:" => Ok(StorageUrl::Disk(data.to_owned())),
            url => StorageUrl::read("log.url", url, FIRST),
        }
    }

    /// Reads `memory:`, `memory:?service_us=…`, `disk:PATH`, `kafka://…` or `tree://…`, the value of a further storage's
    /// setting.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for a storage that is reserved or that this build does not have, `INVALID_ARGUMENT` for any
    /// other, and for a parameter that is not known or cannot be.
    pub fn of(setting: &str, url: &str) -> Result<StorageUrl, Error> {
        StorageUrl::read(setting, url, FURTHER)
    }

    fn read(setting: &str, url: &str, expected: &str) -> Result<StorageUrl, Error> {
        let wrong = |code| Error::new(code).field(setting).value(url);
        match url.split_once(':') {
            Some(("memory", "")) => Ok(StorageUrl::Memory { service_us: None }),
            Some(("memory", rest)) if rest.starts_with('?') => {
                memory(&rest[1..]).map_err(|limit| wrong(ErrorCode::InvalidArgument).limit(limit))
            }
            Some(("disk", path)) if !path.is_empty() => Ok(StorageUrl::Disk(path.into())),
            Some(("tree", rest)) => TreeUrl::parse(rest)
                .map(StorageUrl::Tree)
                .map_err(|limit| wrong(ErrorCode::InvalidArgument).limit(limit)),
            Some(("kafka", rest)) if cfg!(feature = "kafka") => KafkaUrl::parse(rest)
                .map(StorageUrl::Kafka)
                .map_err(|limit| wrong(ErrorCode::InvalidArgument).limit(limit)),
            Some(("kafka" | "raft", _)) => Err(wrong(ErrorCode::Unimplemented).limit(expected)),
            _ => Err(wrong(ErrorCode::InvalidArgument).limit(expected)),
        }
    }

    /// The strongest durability that it has; of another node's, the strongest of all: that node says more.
    #[must_use]
    pub fn strongest(&self) -> Durability {
        match self {
            StorageUrl::Memory { .. } => Durability::MEMORY,
            StorageUrl::Kafka(url) => url.durability(),
            StorageUrl::Disk(_) | StorageUrl::Tree(_) | StorageUrl::Node(_) => Durability::FSYNC,
        }
    }

    /// Traits that an owner of several storages goes by.
    #[must_use]
    pub fn traits(&self) -> StorageTraits {
        let has_one_writer = !matches!(self, StorageUrl::Kafka(_));
        StorageTraits {
            strongest: self.strongest(),
            topic_index: has_one_writer,
            seal: has_one_writer,
        }
    }

    /// Its kind, for errors.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            StorageUrl::Memory { .. } => "memory:",
            StorageUrl::Disk(_) => "disk:",
            StorageUrl::Kafka(_) => "kafka:",
            StorageUrl::Tree(_) => "of a parent in a tree",
            StorageUrl::Node(_) => "of another node",
        }
    }
}

/// The parameters of `memory:?…`, of which there is one; or what they should have been.
fn memory(parameters: &str) -> Result<StorageUrl, String> {
    let Some(value) = parameters.strip_prefix("service_us=") else {
        return Err("memory: or memory:?service_us=N".to_owned());
    };
    let service_us = Some(ServiceTimes::parse(value)?);
    Ok(StorageUrl::Memory { service_us })
}

impl fmt::Display for StorageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageUrl::Memory { service_us: None } => f.write_str("memory:"),
            StorageUrl::Memory {
                service_us: Some(service_us),
            } => write!(f, "memory:?service_us={service_us}"),
            StorageUrl::Disk(path) => write!(f, "disk:{}", path.display()),
            StorageUrl::Kafka(url) => url.fmt(f),
            StorageUrl::Tree(url) => url.fmt(f),
            StorageUrl::Node(address) => write!(f, "logs of the node at {address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_memory_or_a_path() {
        let parse = |url: &str| StorageUrl::parse(url, Path::new("here"));
        let memory = |service_us| StorageUrl::Memory { service_us };
        assert_eq!(parse("memory:"), Ok(memory(None)));
        for times in ["250", "20@0s,40@3s"] {
            let url = format!("memory:?service_us={times}");
            let expected = memory(ServiceTimes::parse(times).ok());
            assert_eq!(parse(&url), Ok(expected.clone()));
            assert_eq!(expected.to_string(), url);
        }
        for (url, path) in [("", "here"), ("disk:", "here"), ("disk:/x/y", "/x/y")] {
            assert_eq!(parse(url), Ok(StorageUrl::Disk(path.into())));
        }
    }

    const KAFKA: ErrorCode = if cfg!(feature = "kafka") {
        ErrorCode::InvalidArgument
    } else {
        ErrorCode::Unimplemented
    };

    #[test]
    fn storages_to_come_are_unimplemented_and_others_invalid() {
        for (url, code) in [
            ("raft://a", ErrorCode::Unimplemented),
            ("kafka:a", KAFKA),
            ("memory:x", ErrorCode::InvalidArgument),
            ("memory:?", ErrorCode::InvalidArgument),
            ("memory:?service_us=0", ErrorCode::InvalidArgument),
            ("memory:?service_us=1000001", ErrorCode::InvalidArgument),
            ("memory:?service_us=5@0s,6", ErrorCode::InvalidArgument),
            ("memory:?service_us=5&x=1", ErrorCode::InvalidArgument),
            ("memory:?latency_us=5", ErrorCode::InvalidArgument),
            ("tree:a", ErrorCode::InvalidArgument),
            ("ftp:x", ErrorCode::InvalidArgument),
            ("here", ErrorCode::InvalidArgument),
        ] {
            let error = StorageUrl::parse(url, Path::new("d")).unwrap_err();
            assert_eq!(error.code(), code);
            assert_eq!(error.found(), url);
        }
    }
}
