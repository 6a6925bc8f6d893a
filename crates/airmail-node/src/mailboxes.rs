//! The node's mailboxes: the store that a URL names, and the threads that serve it.
//!
//! A database may be away, or a file locked or damaged: the node starts all the same, and requests of
//! mailboxes fail with the reason until it can be used. If waiting does not help (a newer version's schema,
//! a file that is not a database), the node does not start. Threads of their own serve connections that
//! use mailboxes and work on PostgreSQL's connections, so that no shard waits for them; SQLite has one more.

use super::StartError;
use super::starting::system;
use crate::config::Config;
use crate::storage::StorageUrl;
use airmail_log::disk::Exposed;
use airmail_mailbox::postgres::PostgresStore;
use airmail_mailbox::sqlite::SqliteStore;
use airmail_mailbox::{MailboxStore, Mailboxes, StoreStartError};
use airmail_model::{Error, ErrorCode};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};

/// Name of the embedded store's file, in the directory of the log.
const FILE: &str = "mailboxes.sqlite";

/// The URL of a store, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailboxUrl {
    /// A file of SQLite: `sqlite:PATH`; the path `:memory:` is kept in memory.
    Sqlite(PathBuf),
    /// A PostgreSQL database: `postgres://…`, whole.
    Postgres(String),
}

impl MailboxUrl {
    /// Reads `sqlite:PATH` or `postgres://…`. The empty URL is SQLite in the directory of `log`, or in memory if
    /// the log has none.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for any other URL.
    pub fn parse(url: &str, log: &StorageUrl) -> Result<MailboxUrl, Error> {
        match (url.split_once(':'), log) {
            (None, StorageUrl::Disk(path)) if url.is_empty() => {
                Ok(MailboxUrl::Sqlite(path.join(FILE)))
            }
            (
                None,
                StorageUrl::Memory { .. }
                | StorageUrl::Kafka(_)
                | StorageUrl::Tree(_)
                | StorageUrl::Node(_),
            ) if url.is_empty() => Ok(MailboxUrl::Sqlite(":memory:".into())),
            (Some(("sqlite", path)), _) if !path.is_empty() => Ok(MailboxUrl::Sqlite(path.into())),
            (Some(("postgres" | "postgresql", rest)), _) if rest.starts_with("//") => {
                Ok(MailboxUrl::Postgres(url.to_owned()))
            }
            _ => Err(Error::new(ErrorCode::InvalidArgument)
                .field("mailbox.url")
                .value(url)
                .limit("postgres://… or sqlite:PATH")),
        }
    }
}

impl fmt::Display for MailboxUrl {
    /// Writes the URL without user, password and parameters: it is shown in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MailboxUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            MailboxUrl::Postgres(url) => {
                let rest = url.split_once("//").map_or("", |(_, rest)| rest);
                let place = rest.split('?').next().unwrap_or_default();
                let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
                write!(f, "postgres://{place}")
            }
        }
    }
}

/// A node's mailboxes, with the threads that work for them.
#[derive(Debug)]
pub(crate) struct NodeMailboxes {
    url: MailboxUrl,
    mailboxes: Mailboxes,
    in_data_directory: bool,
    are_served: bool,
    handle: Handle,
    /// The threads, which end when this is dropped.
    #[expect(dead_code, reason = "dropped with this")]
    threads: Threads,
}

/// The threads of the mailboxes. They are not waited for when this is dropped.
#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // A runtime that is dropped waits, which an asynchronous task must not.
            runtime.shutdown_background();
        }
    }
}

impl NodeMailboxes {
    /// Opens the store that the settings name.
    pub(crate) async fn open(config: &Config) -> Result<NodeMailboxes, StartError> {
        let log = config.first_storage()?;
        let url = MailboxUrl::parse(&config.mailbox.url, &log)?;
        let failed = |error: StoreStartError| StartError::Mailboxes {
            url: url.to_string(),
            error: error.into(),
        };
        if let MailboxUrl::Postgres(database) = &url {
            let options = config.mailbox.options(database);
            options.check_database().await.map_err(failed)?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(config.mailbox.threads())
            .thread_name("mailboxes")
            .enable_all()
            .build()
            .map_err(system("the mailboxes' threads"))?;
        let handle = runtime.handle().clone();
        let threads = Threads(Some(runtime));
        let in_data_directory = match (&url, &log) {
            (MailboxUrl::Sqlite(file), StorageUrl::Disk(data)) => file.starts_with(data),
            _ => false,
        };
        if let (MailboxUrl::Sqlite(file), false) = (&url, in_data_directory) {
            warn_of_exposed(file);
        }
        let inside = handle.enter();
        let store: Arc<dyn MailboxStore> = match &url {
            MailboxUrl::Sqlite(path) => {
                let waiting = config.mailbox.waiting as usize;
                let store = SqliteStore::start(path, waiting);
                Arc::new(store.map_err(|failure| failed(failure.into()))?)
            }
            MailboxUrl::Postgres(database) => {
                let options = config.mailbox.options(database);
                Arc::new(PostgresStore::start(options).map_err(failed)?)
            }
        };
        drop(inside);
        // They would be this process's own, and gone with it.
        let are_served = !(config.has_no_logs() && config.mailbox.url.is_empty());
        Ok(NodeMailboxes {
            in_data_directory,
            are_served,
            mailboxes: Mailboxes::new(store),
            handle,
            threads,
            url,
        })
    }

    /// Returns the threads that serve connections that use mailboxes.
    pub(crate) fn threads(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns whether the store is in the data directory, and lost with it.
    pub(crate) fn in_data_directory(&self) -> bool {
        self.in_data_directory
    }

    /// Returns whether requests are answered: not on a node that has no place of its own for mailboxes, and is
    /// given none.
    pub(crate) fn are_served(&self) -> bool {
        self.are_served
    }

    /// Returns the store's URL.
    pub(crate) fn url(&self) -> &MailboxUrl {
        &self.url
    }

    /// Returns the requests.
    pub(crate) fn mailboxes(&self) -> Mailboxes {
        self.mailboxes.clone()
    }

    /// Finishes what was begun, within `patience`, and ends the store.
    pub(crate) async fn close(self, patience: Duration) {
        match tokio::time::timeout(patience, self.mailboxes.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the mailboxes did not end in order"),
            Err(_) => tracing::warn!("the mailboxes were abandoned: they did not end in time"),
        }
    }
}

/// Warns of files of an SQLite database that others may open. One that is made now is for its owner
/// alone.
fn warn_of_exposed(file: &Path) {
    for suffix in ["", "-wal"] {
        let mut path = file.as_os_str().to_owned();
        path.push(suffix);
        // An error says that there is no such file, or that it cannot be read; then opening it fails, too.
        if let Ok(Some(exposed)) = Exposed::look(Path::new(&path)) {
            tracing::warn!("{exposed}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<MailboxUrl, Error> {
        MailboxUrl::parse(url, &StorageUrl::Disk("data".into()))
    }

    #[test]
    fn without_a_url_they_are_beside_the_log() {
        let beside = MailboxUrl::Sqlite("data/mailboxes.sqlite".into());
        assert_eq!(parse("").unwrap(), beside);
        let log = StorageUrl::Memory { service_us: None };
        let memory = MailboxUrl::parse("", &log).unwrap();
        assert_eq!(memory, MailboxUrl::Sqlite(":memory:".into()));
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("sqlite:a/b.db", "sqlite:a/b.db"),
            (
                "postgres://me:secret@db:5432/mail?x=y",
                "postgres://db:5432/mail",
            ),
            ("postgresql://db/mail", "postgres://db/mail"),
        ] {
            assert_eq!(parse(url).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_store_is_refused() {
        for url in ["sqlite:", "mysql://db", "mailboxes.db", "postgres:db"] {
            let error = parse(url).unwrap_err();
            assert_eq!((error.field_name(), error.found()), ("mailbox.url", url));
        }
    }
}
