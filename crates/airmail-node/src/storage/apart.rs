//! A pilot's own handle to append by, beside the links to the towers that have its logs. It has one where `log.url` says on
//! which Kafka these are: then its publishes need no tower.

#[cfg(feature = "kafka")]
use super::storage_set::{boxed, seed_of_shard};
#[cfg(feature = "kafka")]
use super::{KafkaUrl, on_kafka};
use crate::StartError;
use crate::cluster::dialing::Remote;
use crate::config::Config;
use airmail_log::{LogStorage, Waker};
#[cfg(feature = "kafka")]
use airmail_log_kafka::ApartStorage;
#[cfg(feature = "kafka")]
use airmail_model::{Error, ErrorCode};

/// The storages of a gateway's shards, in order, each with a handle of its own beside it if the settings want that.
pub(super) fn beside(
    storages: Vec<Box<dyn LogStorage>>,
    of: (&Config, u64),
    remote: &Remote,
    wakers: &[Waker],
) -> Result<Vec<Box<dyn LogStorage>>, StartError> {
    #[cfg(feature = "kafka")]
    if let Some(url) = of.0.own_kafka() {
        return with_handles(storages, &url, of, remote, wakers);
    }
    #[cfg(not(feature = "kafka"))]
    let _ = (of, remote, wakers);
    Ok(storages)
}

#[cfg(feature = "kafka")]
fn with_handles(
    storages: Vec<Box<dyn LogStorage>>,
    url: &KafkaUrl,
    (config, seed): (&Config, u64),
    remote: &Remote,
    wakers: &[Waker],
) -> Result<Vec<Box<dyn LogStorage>>, StartError> {
    let failed = |error| StartError::Storage {
        url: config.log_url.clone(),
        error,
    };
    let cluster = on_kafka::cluster(url).map_err(failed)?;
    let of_towers = remote.peer().cluster;
    if cluster != of_towers {
        let error = Error::new(ErrorCode::InvalidArgument).field("log.url");
        let limit = format!("the storage of the cluster's towers: cluster {of_towers:016x}");
        return Err(StartError::Setting(
            error.value(&config.log_url).limit(limit),
        ));
    }
    let part = config.of_one_shard();
    let with_handle = |(shard, (storage, waker)): (u16, (Box<dyn LogStorage>, &Waker))| {
        let seed = seed_of_shard(seed, shard);
        let appender = on_kafka::append(url, cluster, (&part, seed), waker).map_err(failed)?;
        Ok(boxed(ApartStorage::new(appender, storage)))
    };
    (0..)
        .zip(storages.into_iter().zip(wakers))
        .map(with_handle)
        .collect()
}
