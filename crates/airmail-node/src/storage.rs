//! Storages by their URL, and how they are opened.

mod data_dir_watcher;
mod on_disk;
mod precise_timer;
mod service_times;
mod throttled;

use super::StartError;
use crate::config::Config;
use airmail_link::{LinkLimits, LogHomes};
use airmail_log::disk::DataDirError;
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::memory::MemoryFiles;
use airmail_log::{LogStorage, Waker};
use airmail_model::clock::Clock;
use airmail_model::{Error, ErrorCode, LogId, random};
pub(crate) use data_dir_watcher::Standing;
use on_disk::{Failure, OnDisk, Taken};
use precise_timer::PreciseTimer;
pub use service_times::{SERVICE_US_MAX, ServiceTimes};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throttled::ThrottledStorage;

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
}

impl StorageUrl {
    /// Reads `memory:`, `memory:?service_us=…` or `disk:PATH`; the empty URL is `disk:` in `data`.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for a storage that is reserved, `INVALID_ARGUMENT` for any other, and for a
    /// parameter that is not known or cannot be.
    pub fn parse(url: &str, data: &Path) -> Result<StorageUrl, Error> {
        match url.split_once(':') {
            None if url.is_empty() => Ok(StorageUrl::Disk(data.to_owned())),
            Some(("memory", "")) => Ok(StorageUrl::Memory { service_us: None }),
            Some(("memory", rest)) if rest.starts_with('?') => memory(url, &rest[1..]),
            Some(("disk", "")) => Ok(StorageUrl::Disk(data.to_owned())),
            Some(("disk", path)) => Ok(StorageUrl::Disk(path.into())),
            Some(("kafka" | "raft" | "tree", _)) => Err(Error::unimplemented("log.url")
                .value(url)
                .limit("disk:PATH or memory:")),
            _ => Err(Error::new(ErrorCode::InvalidArgument)
                .field("log.url")
                .value(url)
                .limit("disk:PATH or memory:")),
        }
    }
}

/// The parameters of `memory:?…`; there is one.
fn memory(url: &str, parameters: &str) -> Result<StorageUrl, Error> {
    let wrong = |value: &str, limit: String| {
        let error = Error::new(ErrorCode::InvalidArgument).field("log.url");
        Err(error.value(value).limit(limit))
    };
    let Some(value) = parameters.strip_prefix("service_us=") else {
        return wrong(url, "memory: or memory:?service_us=N".to_owned());
    };
    match ServiceTimes::parse(value) {
        Ok(service_us) => Ok(StorageUrl::Memory {
            service_us: Some(service_us),
        }),
        Err(limit) => wrong(url, limit),
    }
}

impl fmt::Display for StorageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageUrl::Memory { service_us: None } => f.write_str("memory:"),
            StorageUrl::Memory {
                service_us: Some(service_us),
            } => write!(f, "memory:?service_us={service_us}"),
            StorageUrl::Disk(path) => write!(f, "disk:{}", path.display()),
        }
    }
}

/// What the settings name, taken once by the process: the storages of its shards are opened in it.
enum Ground {
    /// Nothing but memory, of which each shard has its own.
    Memory(Option<ServiceTimes>),
    /// A data directory.
    Disk(Arc<Taken>),
}

/// A shard's storage, with the logs that were found in it.
type Opened = (Box<dyn LogStorage>, Vec<LogId>);

/// Opens the storages of all shards, in order, as the settings say; there are as many as `wakers`. Blocks
/// while they recover. Whether they may store is `standing`'s to say afterwards.
///
/// A single shard has its storage to itself; of several, each reaches the logs of the others by links.
pub(crate) fn open(
    config: &Config,
    seed: u64,
    clock: &Arc<dyn Clock>,
    wakers: Vec<Waker>,
    standing: &Arc<Standing>,
) -> Result<Vec<Box<dyn LogStorage>>, StartError> {
    let url = StorageUrl::parse(&config.log_url, &config.data)?;
    let failed = |error: Failure| match error.downcast::<DataDirError>() {
        Ok(error) => of_directory(*error, &url),
        Err(error) => StartError::Storage {
            url: url.to_string(),
            error,
        },
    };
    let ground = match &url {
        StorageUrl::Memory { service_us } => Ground::Memory(service_us.clone()),
        StorageUrl::Disk(path) => {
            let all = wakers.clone();
            let waker = Arc::new(move || all.iter().for_each(|waker| waker()));
            let taken = Taken::new(path, (config, seed), clock, waker, standing);
            Ground::Disk(taken.map_err(failed)?)
        }
    };
    let config = config.of_one_shard();
    let mut opened = Vec::with_capacity(wakers.len());
    for (shard, waker) in (0..).zip(&wakers) {
        let seed = seed_of(seed, shard);
        let storage = open_shard(&ground, shard, (&config, seed), clock, Arc::clone(waker));
        opened.push(storage.map_err(failed)?);
    }
    if opened.len() == 1 {
        return Ok(opened.into_iter().map(|(storage, _)| storage).collect());
    }
    joined(opened, wakers, &config).map_err(failed)
}

/// The seed of a shard: the node's for the first, and for each its own.
pub(crate) fn seed_of(seed: u64, shard: u16) -> u64 {
    match shard {
        0 => seed,
        shard => random::nth(seed ^ 0x73_68_61_72_64, shard.into()),
    }
}

/// Opens what one shard has by itself, with settings of one shard.
fn open_shard(
    ground: &Ground,
    shard: u16,
    (config, seed): (&Config, u64),
    clock: &Arc<dyn Clock>,
    waker: Waker,
) -> Result<Opened, Failure> {
    let service_us = match ground {
        Ground::Disk(taken) => {
            let storage = OnDisk::open(taken, shard, (config, seed), clock, waker)?;
            let logs = storage.logs();
            return Ok((Box::new(storage), logs));
        }
        Ground::Memory(service_us) => service_us,
    };
    let journal = JournalConfig {
        shard: shard.into(),
        segment_bytes: config.segment.0,
        pending_bytes: config.pending.0,
        clock_jump: config.clock_jump.0,
        ..JournalConfig::memory(seed)
    };
    let storage = JournalStorage::open(MemoryFiles::new(), journal, clock.now())?;
    let storage: Box<dyn LogStorage> = match service_us {
        None => Box::new(storage),
        Some(service_us) => {
            let timer = PreciseTimer::start(waker)?;
            let throttled = ThrottledStorage::new(storage, service_us.clone(), config.pending.0);
            Box::new(throttled.on_time(timer))
        }
    };
    Ok((storage, Vec::new()))
}

/// Storages of several shards, each with links to the others. A log stays where it was found.
fn joined(
    opened: Vec<Opened>,
    wakers: Vec<Waker>,
    config: &Config,
) -> Result<Vec<Box<dyn LogStorage>>, Failure> {
    let mut homes = LogHomes::new(opened.len());
    let mut storages = Vec::with_capacity(opened.len());
    for (shard, (storage, logs)) in opened.into_iter().enumerate() {
        for log in logs {
            homes.found(log, shard)?;
        }
        storages.push(storage);
    }
    let limits = LinkLimits {
        // As much as waits for the storage of one shard.
        append_bytes: config.pending.0,
        ..LinkLimits::default()
    };
    let joined = airmail_link::join(storages, homes, wakers, limits);
    Ok(joined.into_iter().map(boxed).collect())
}

fn boxed(storage: impl LogStorage + 'static) -> Box<dyn LogStorage> {
    Box::new(storage)
}

/// A directory with more shards than the settings say is the settings' fault.
fn of_directory(error: DataDirError, url: &StorageUrl) -> StartError {
    match error {
        DataDirError::FewerShards { path, asked, found } => {
            let limit = format!("at least {found}, as many as {} has", path.display());
            let error = Error::new(ErrorCode::InvalidArgument).field("node.shards");
            StartError::Setting(error.value(asked).limit(limit))
        }
        error => StartError::Storage {
            url: url.to_string(),
            error: Box::new(error),
        },
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

    #[test]
    fn storages_to_come_are_unimplemented_and_others_invalid() {
        for (url, code) in [
            ("kafka://a:9092", ErrorCode::Unimplemented),
            ("raft://a", ErrorCode::Unimplemented),
            ("memory:x", ErrorCode::InvalidArgument),
            ("memory:?", ErrorCode::InvalidArgument),
            ("memory:?service_us=0", ErrorCode::InvalidArgument),
            ("memory:?service_us=1000001", ErrorCode::InvalidArgument),
            ("memory:?service_us=5@0s,6", ErrorCode::InvalidArgument),
            ("memory:?service_us=5&x=1", ErrorCode::InvalidArgument),
            ("memory:?latency_us=5", ErrorCode::InvalidArgument),
            ("ftp:x", ErrorCode::InvalidArgument),
            ("here", ErrorCode::InvalidArgument),
        ] {
            let error = StorageUrl::parse(url, Path::new("d")).unwrap_err();
            assert_eq!(error.code(), code);
            assert_eq!(error.found(), url);
        }
    }
}
