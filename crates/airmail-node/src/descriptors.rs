//! Open files: how many the system lets a process have, and who may have them.
//!
//! Every connection is one, and so is every segment that the storage reads or writes. Were clients
//! given all of them, nothing could be stored any more; so they are given what is left when all that
//! the node itself needs has been set aside.

use super::StartError;
use super::storage::StorageUrl;
use crate::cluster::hosting;
use crate::config::Config;
use crate::frontdoor::grpc::turned_away;
use crate::frontdoor::http;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Segments and indexes that a shard reads and writes in one storage, with room for what is made anew.
const OF_STORAGE: u64 = 160;
/// The storage in memory has none.
const OF_MEMORY: u64 = 0;
/// Links to each shard of the node that has the storage, which has at most so many.
const OF_LINKS: u64 = 64;
/// Files of a shard's clients of Kafka: some ten of them, each with connections to up to eight brokers.
const OF_KAFKA: u64 = 128;
/// Beside their connections: a file with its journal, or one more connection while one is made.
const OF_MAILBOXES: u64 = 8;
/// Listeners, runtimes, standard streams, the log.
const OF_PROCESS: u64 = 24;
/// A node for fewer connections is of no use.
const CONNECTIONS_MIN: u64 = 16;

/// Lets this process have as many open files as the system lets it.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, all) {
        tracing::warn!(%error, "the limit on open files could not be raised");
    }
}

/// Number of connections that there may be: as many as the settings say, or fewer if the system does not
/// let the process have so many open files, which is told.
///
/// # Errors
/// [`StartError::OpenFiles`] if there are not enough for a node at all.
pub(super) fn connections(config: &Config) -> Result<u32, StartError> {
    let limit = getrlimit(Resource::Nofile).current;
    let needed = set_aside(config);
    let most = share(limit, needed, config.connections)?;
    if most < config.connections {
        tracing::warn!(
            wanted = config.connections,
            connections = most,
            open_files = limit,
            set_aside = needed,
            "fewer connections than listen.connections: the system allows too few open files \
             (ulimit -n, LimitNOFILE)"
        );
    }
    Ok(most)
}

/// Open files that the node needs for itself.
fn set_aside(config: &Config) -> u64 {
    // Settings that do not fit are refused before: what they would need is of no interest.
    let storages = config.storages().unwrap_or_default();
    let each = storages.iter().map(|(_, url)| match url {
        StorageUrl::Memory { .. } => OF_MEMORY,
        StorageUrl::Disk(_) => OF_STORAGE,
        StorageUrl::Kafka(_) => OF_KAFKA,
        StorageUrl::Tree(_) | StorageUrl::Node(_) => OF_LINKS,
    });
    let storage = each.sum::<u64>() * u64::from(config.shards);
    let of_clients = config.http_connections + http::TURNED_AWAY + turned_away::PLACES;
    let links = if config.cluster.listen.is_empty() {
        0
    } else {
        hosting::CONNECTIONS_MAX as u64
    };
    let mailboxes = OF_MAILBOXES + u64::from(config.mailbox.connections);
    storage + links + mailboxes + OF_PROCESS + u64::from(of_clients)
}

/// Open files left for connections, at most `wanted`. Without a limit there is room for all.
fn share(limit: Option<u64>, needed: u64, wanted: u32) -> Result<u32, StartError> {
    let Some(limit) = limit else {
        return Ok(wanted);
    };
    let left = limit.saturating_sub(needed);
    if left < CONNECTIONS_MIN.min(wanted.into()) {
        let needed = needed + CONNECTIONS_MIN;
        return Err(StartError::OpenFiles { limit, needed });
    }
    Ok(u32::try_from(left).unwrap_or(u32::MAX).min(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_what_storage_and_mailboxes_leave() {
        assert_eq!(share(None, 250, 10_000).unwrap(), 10_000);
        assert_eq!(share(Some(20_000), 250, 10_000).unwrap(), 10_000);
        assert_eq!(share(Some(1_024), 250, 10_000).unwrap(), 774);
        assert_eq!(share(Some(255), 250, 5).unwrap(), 5);
    }

    #[test]
    fn too_few_for_a_node_are_refused_with_how_many_it_needs() {
        for limit in [0, 250, 265] {
            let error = share(Some(limit), 250, 10_000).unwrap_err().to_string();
            assert!(error.contains("open files"), "{error}");
            assert!(error.contains("266"), "{error}");
        }
        assert_eq!(share(Some(266), 250, 10_000).unwrap(), 16);
    }

    #[test]
    fn a_node_with_its_defaults_starts_with_300_open_files() {
        let left = share(Some(300), set_aside(&Config::default()), 10_000);
        assert!(left.unwrap() >= 32);
    }
}
