//! The storages of a node: what of them is taken once a process, and what each shard opens for itself.
//!
//! - The directories are taken first, the first storage's before the others: a new one is made in the cluster
//!   and for the node of the first, and one that is there has to be of these, and of the same name. So log 0
//!   and the logs that it tells of are never parted.
//! - A node with one storage gives it to its shards as it is: nothing stands before it. So does a node with one
//!   shard. Of several, each has its own part of every storage, and reaches the other shards' logs by links; a log
//!   stays with the shard that it was found at.

use super::directory::Directory;
use super::on_disk::OnDisk;
#[cfg(feature = "kafka")]
use super::on_kafka;
use super::precise_timer::PreciseTimer;
use super::throttled::ThrottledStorage;
use super::{Standing, StorageUrl};
use crate::StartError;
use crate::config::Config;
use airmail_link::{HostPort, HostedStorage, LinkLimits, LogHomes};
use airmail_log::disk::{DataDirError, Identity};
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::memory::MemoryFiles;
use airmail_log::routed::Routed;
use airmail_log::{LogStorage, Waker};
use airmail_model::clock::Clock;
use airmail_model::{Error as ModelError, ErrorCode, LogId, NodeId, Now, StorageName, bug, random};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Random numbers of a seed that are used otherwise: cluster and node. What follows is the further storages'.
const SEEDS_USED: u64 = 2;

/// Sets the seeds of shards apart from those of storages.
const OF_SHARDS: u64 = 0x0073_6861_7264;

/// Topics that all links to a shard may want together, 40 bytes each.
const WANTS_MAX: usize = 8_388_608;

pub(super) type Failure = Box<dyn Error + Send + Sync>;

/// A shard's storage, with the logs that were found in it.
type Opened = (Box<dyn LogStorage>, Vec<LogId>);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct StorageSet {
    /// The first is first, and has no name.
    storages: Vec<One>,
    /// The cluster and the node that they are of.
    of: (u64, NodeId),
}

/// Storages of all shards, in order.
pub(crate) struct OpenedStorages {
    pub(crate) storages: Vec<Box<dyn LogStorage>>,
    /// Logs that were found, each with its shard.
    pub(crate) homes: Vec<(LogId, u16)>,
    /// Where ports of others come to each shard, if they may.
    pub(crate) arrivals: Arrivals,
}

/// Where ports of others come to each shard, in order. None: they may not.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// To its own logs.
    pub(crate) own: Vec<SyncSender<HostPort>>,
    /// To all logs.
    pub(crate) all: Vec<SyncSender<HostPort>>,
}

/// A storage, with its directory if it is on a disk.
#[derive(Debug)]
struct One {
    /// The cluster that its logs are of.
    #[cfg(feature = "kafka")]
    cluster: u64,
    name: StorageName,
    url: StorageUrl,
    directory: Option<Arc<Directory>>,
}

/// Reason for which a data directory is not the one that a setting means.
#[derive(Debug, thiserror::Error)]
enum OtherDirectory {
    #[error(
        "data directory {path} is {} of its node, and is named as {}: name each as it was, by --log and \
         storage.NAME.url",
        shown(found),
        shown(wanted)
    )]
    OtherStorage {
        path: PathBuf,
        found: StorageName,
        wanted: StorageName,
    },
    #[error(
        "data directory {path} is of node {:016x} in cluster {:016x}, and the first storage's is of node \
         {:016x} in cluster {:016x}: log 0, which tells of its logs, is not the first storage's",
        found.0, found.1, wanted.0, wanted.1
    )]
    OtherNode {
        path: PathBuf,
        /// Node and cluster.
        found: (NodeId, u64),
        wanted: (NodeId, u64),
    },
}

fn shown(name: &StorageName) -> String {
    if name.is_first() {
        "the first storage".to_owned()
    } else {
        format!("storage {name}")
    }
}

impl StorageSet {
    /// Takes the directories of the storages that the settings name. The wakers, one of each shard, are called
    /// when it changes whether one may be stored in.
    pub(crate) fn take(
        config: &Config,
        seed: u64,
        clock: &Arc<dyn Clock>,
        wakers: &[Waker],
    ) -> Result<StorageSet, StartError> {
        let all = wakers.to_vec();
        let waker: Waker = Arc::new(move || all.iter().for_each(|waker| waker()));
        let mut new = Identity {
            cluster: random::nth(seed, 0),
            node: NodeId(random::nth(seed, 1)),
            shards: config.shards,
            created: clock.now().wall,
            storage: StorageName::FIRST,
            needs: airmail_log::Needs::Nothing,
        };
        let mut storages = Vec::new();
        for (name, url) in config.storages()? {
            new.storage = name;
            let directory = match &url {
                StorageUrl::Memory { .. } | StorageUrl::Tree(_) | StorageUrl::Node(_) => None,
                #[cfg(feature = "kafka")]
                StorageUrl::Kafka(kafka) => {
                    // Where another storage has log 0, that says which cluster it is.
                    if name.is_first() {
                        new.cluster = on_kafka::cluster(kafka).map_err(failed(&url))?;
                    }
                    None
                }
                #[cfg(not(feature = "kafka"))]
                StorageUrl::Kafka(_) => None,
                StorageUrl::Disk(path) => {
                    let taken = Directory::take(path, &new, clock, &waker);
                    let taken = taken.map_err(failed(&url))?;
                    let found = *taken.data().identity();
                    fits(path, &found, &new).map_err(|error| failed(&url)(error.into()))?;
                    new = Identity {
                        created: new.created,
                        needs: airmail_log::Needs::Nothing,
                        ..found
                    };
                    Some(Arc::new(taken))
                }
            };
            storages.push(One {
                #[cfg(feature = "kafka")]
                cluster: new.cluster,
                name,
                url,
                directory,
            });
        }
        let of = (new.cluster, new.node);
        Ok(StorageSet { storages, of })
    }

    /// Whether the first storage's directory is still this node's; it always is for one in memory.
    pub(crate) fn standing(&self) -> Arc<Standing> {
        let first = self.storages.first();
        let directory = first.and_then(|first| first.directory.as_ref());
        directory.map_or_else(Arc::default, |taken| Arc::clone(taken.standing()))
    }

    /// The cluster and the node that they are of.
    pub(crate) fn of(&self) -> (u64, NodeId) {
        self.of
    }

    /// Opens the storages of all shards, in order; there are as many as wakers. Other processes may use them if
    /// the settings say where they connect. Blocks while they recover.
    pub(crate) fn open_all(
        &self,
        (config, seed): (&Config, u64),
        clock: &Arc<dyn Clock>,
        wakers: Vec<Waker>,
    ) -> Result<OpenedStorages, StartError> {
        let is_hosting = !config.cluster.listen.is_empty();
        let config = config.of_one_shard();
        let mut opened = Vec::with_capacity(wakers.len());
        for (shard, waker) in (0..).zip(&wakers) {
            let seed = seed_of_shard(seed, shard);
            opened.push(self.open(shard, (&config, seed), clock, waker)?);
        }
        let found = (0..)
            .zip(&opened)
            .flat_map(|(shard, (_, logs))| logs.iter().map(move |log| (*log, shard)));
        let homes: Vec<(LogId, u16)> = found.collect();
        if opened.len() == 1 && !is_hosting {
            return Ok(OpenedStorages {
                storages: opened.into_iter().map(|(storage, _)| storage).collect(),
                homes,
                arrivals: Arrivals::default(),
            });
        }
        let Some(first) = self.storages.first() else {
            bug!("a node has no storage at all: {self:?}");
            return Err(StartError::Ended);
        };
        let limits = link_limits(&config, is_hosting);
        let storages = opened.into_iter().map(|(storage, _)| storage).collect();
        let (storages, arrivals) =
            shared(storages, &homes, wakers, (limits, is_hosting)).map_err(failed(&first.url))?;
        Ok(OpenedStorages {
            storages,
            homes,
            arrivals,
        })
    }

    /// Opens a shard's part of every storage, as one, with settings of one shard.
    fn open(
        &self,
        shard: u16,
        (config, seed): (&Config, u64),
        clock: &Arc<dyn Clock>,
        waker: &Waker,
    ) -> Result<Opened, StartError> {
        let (mut opened, mut logs) = (Vec::new(), Vec::new());
        for (nth, one) in (0..).zip(&self.storages) {
            // The first has the seed itself, as a node's only one.
            let seed = match nth {
                0 => seed,
                nth => random::nth(seed, SEEDS_USED + nth),
            };
            let storage = one.open(shard, (config, seed), clock.now(), waker);
            let (storage, found) = storage.map_err(failed(&one.url))?;
            logs.extend(found);
            opened.push((one.name, storage));
        }
        let mut opened = opened.into_iter();
        let Some((_, first)) = opened.next() else {
            bug!("a node has no storage at all: {self:?}");
            return Err(StartError::Ended);
        };
        if opened.len() == 0 {
            return Ok((first, logs));
        }
        Ok((Box::new(Routed::new(first, opened)), logs))
    }
}

/// The seed of a shard: the node's for the first, and one of its own for each other.
pub(crate) fn seed_of_shard(seed: u64, shard: u16) -> u64 {
    match shard {
        0 => seed,
        shard => random::nth(seed ^ OF_SHARDS, shard.into()),
    }
}

/// Bounds of links. Only on a wire are topics worth naming.
pub(super) fn link_limits(config: &Config, is_hosting: bool) -> LinkLimits {
    LinkLimits {
        // As much as waits for the storage of one shard.
        append_bytes: config.pending.0,
        wants: if is_hosting { WANTS_MAX } else { 0 },
        ..LinkLimits::default()
    }
}

/// Storages, and where ports of others come to each.
type WithArrivals = (Vec<Box<dyn LogStorage>>, Vec<SyncSender<HostPort>>);

/// Storages of all shards, in order, each with the logs of all, which other processes may use if the last says so. A log
/// stays where it was found.
pub(super) fn shared(
    storages: Vec<Box<dyn LogStorage>>,
    found: &[(LogId, u16)],
    wakers: Vec<Waker>,
    (limits, is_hosting): (LinkLimits, bool),
) -> Result<(Vec<Box<dyn LogStorage>>, Arrivals), Failure> {
    if wakers.len() == 1 {
        // What is its own is all there is.
        let (storages, own) = hosted(storages, limits);
        let all = own.clone();
        return Ok((storages, Arrivals { own, all }));
    }
    let (storages, own) = joined(storages, found, wakers, limits)?;
    if !is_hosting {
        return Ok((storages, Arrivals::default()));
    }
    let around = storages.into_iter().map(|storage| {
        let hosted = HostedStorage::around(storage, limits);
        let arrivals = hosted.arrivals();
        (boxed(hosted), arrivals)
    });
    let (storages, all) = around.unzip();
    Ok((storages, Arrivals { own, all }))
}

/// Storages that others may use.
fn hosted(storages: Vec<Box<dyn LogStorage>>, limits: LinkLimits) -> WithArrivals {
    let hosted = storages.into_iter().map(|storage| {
        let hosted = HostedStorage::new(storage, limits);
        let arrivals = hosted.arrivals();
        (boxed(hosted), arrivals)
    });
    hosted.unzip()
}

/// Storages of several shards, each with links to the others. A log stays where it was found.
fn joined(
    storages: Vec<Box<dyn LogStorage>>,
    found: &[(LogId, u16)],
    wakers: Vec<Waker>,
    limits: LinkLimits,
) -> Result<WithArrivals, Failure> {
    let mut homes = LogHomes::new(storages.len());
    for (log, shard) in found {
        homes.found(*log, usize::from(*shard))?;
    }
    let joined = airmail_link::join(storages, homes, wakers, limits);
    let joined = joined.into_iter().map(|storage| {
        let arrivals = storage.arrivals();
        (boxed(storage), arrivals)
    });
    Ok(joined.unzip())
}

pub(super) fn boxed(storage: impl LogStorage + 'static) -> Box<dyn LogStorage> {
    Box::new(storage)
}

/// Whether a directory that was taken is the one that is meant.
fn fits(path: &Path, found: &Identity, wanted: &Identity) -> Result<(), OtherDirectory> {
    let path = path.to_owned();
    if found.storage != wanted.storage {
        return Err(OtherDirectory::OtherStorage {
            path,
            found: found.storage,
            wanted: wanted.storage,
        });
    }
    let of = |identity: &Identity| (identity.node, identity.cluster);
    // The first storage's says which they are.
    if of(found) != of(wanted) && !found.storage.is_first() {
        return Err(OtherDirectory::OtherNode {
            path,
            found: of(found),
            wanted: of(wanted),
        });
    }
    Ok(())
}

/// A directory with more shards than the settings say is the settings' fault; all else is the storage's.
fn failed(url: &StorageUrl) -> impl Fn(Failure) -> StartError + use<> {
    let url = url.to_string();
    move |error| match error.downcast_ref() {
        Some(DataDirError::FewerShards { path, asked, found }) => {
            let limit = format!("at least {found}, as many as {} has", path.display());
            let error = ModelError::new(ErrorCode::InvalidArgument).field("node.shards");
            StartError::Setting(error.value(asked).limit(limit))
        }
        _ => StartError::Storage {
            url: url.clone(),
            error,
        },
    }
}

impl One {
    fn open(
        &self,
        shard: u16,
        (config, seed): (&Config, u64),
        now: Now,
        waker: &Waker,
    ) -> Result<Opened, Failure> {
        if let Some(directory) = &self.directory {
            let storage = OnDisk::open(directory, shard, (config, seed), now, waker)?;
            let logs = storage.logs();
            return Ok((Box::new(storage), logs));
        }
        #[cfg(feature = "kafka")]
        if let StorageUrl::Kafka(url) = &self.url {
            let of = (self.cluster, !self.name.is_first());
            let storage = on_kafka::open(url, of, (config, seed), waker)?;
            return Ok((storage, Vec::new()));
        }
        let journal = JournalConfig {
            shard: shard.into(),
            segment_bytes: config.segment.0,
            pending_bytes: config.pending.0,
            clock_jump: config.clock_jump.0,
            ..JournalConfig::memory(seed)
        };
        let storage = JournalStorage::open(MemoryFiles::new(), journal, now)?;
        let StorageUrl::Memory {
            service_us: Some(service_us),
        } = &self.url
        else {
            // Input: a storage whose appends take no longer than they must.
            return Ok((Box::new(storage), Vec::new()));
        };
        let timer = PreciseTimer::start(Arc::clone(waker))?;
        let throttled = ThrottledStorage::new(storage, service_us.clone(), config.pending.0);
        Ok((Box::new(throttled.on_time(timer)), Vec::new()))
    }
}
