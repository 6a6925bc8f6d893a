//! The PostgreSQL server of an experiment: one that is there, or one that is started for it; and a
//! database of its own for each case, which is dropped behind it.

mod keeper;

use airmail_bench::family::Stop;
use airmail_bench::family::member::Member;
use airmail_bench::family::place::Place;
use airmail_bench::process::Usage;
use anyhow::{Context as _, bail};
use keeper::{Started, Task, programs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, Row};

pub(crate) use keeper::keep;

/// The server.
#[derive(Debug)]
pub(super) struct Server {
    url: String,
    /// Version of the server.
    pub(super) version: String,
    /// Its process, where it was started for this.
    pid: Option<u32>,
    _keeper: Option<Member>,
    databases: AtomicU32,
}

impl Server {
    /// The one at `url`, or one that is started with its data in `directory`.
    pub(super) fn open(
        url: Option<&str>,
        directory: Option<&Path>,
        stop: &Stop,
    ) -> anyhow::Result<Server> {
        let (url, pid, keeper) = match url {
            Some(url) => (url.to_owned(), None, None),
            None => {
                let task = Task {
                    directory: directory.map(Path::to_owned),
                };
                let mut keeper = Member::start_at(&Place::Here, crate::cli::DATABASE, &task, stop)?;
                let started: Started = serde_json::from_str(&keeper.hear("ready")?)?;
                keeper.outlast_stop();
                (started.url, Some(started.pid), Some(keeper))
            }
        };
        let mut server = Server {
            url,
            version: String::new(),
            pid,
            _keeper: keeper,
            databases: AtomicU32::new(0),
        };
        let connection = Connection::open(&server.url).context("--database")?;
        server.version = connection.text("SHOW server_version")?;
        Ok(server)
    }

    /// A new, empty database.
    pub(super) fn create(&self) -> anyhow::Result<Database<'_>> {
        let count = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("airmail_bench_{}_{count}", std::process::id());
        Connection::open(&self.url)?.run(&format!("CREATE DATABASE {name}"))?;
        let url = with_database(&self.url, &name);
        Ok(Database {
            server: self,
            name,
            url,
        })
    }

    /// Its processes; `None` if it was there before.
    pub(super) fn processes(&self) -> Option<Processes> {
        self.pid.map(Processes)
    }
}

/// The processes of a server, by that of their parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processes(u32);

impl Processes {
    /// Resources that they have used.
    pub(super) fn usage(self) -> Usage {
        let Processes(pid) = self;
        // The processor time of those that have ended is their parent's, in fields that are not asked
        // for; the connections of a run last as long as it does.
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let children = children
            .split_whitespace()
            .filter_map(|child| child.parse().ok());
        let mut sum = Usage::of(pid);
        for child in children.map(Usage::of) {
            sum.cpu_us += child.cpu_us;
            sum.rss_bytes += child.rss_bytes;
        }
        sum
    }
}

/// A database; dropped with this.
#[derive(Debug)]
pub(super) struct Database<'a> {
    server: &'a Server,
    name: String,
    pub(super) url: String,
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        let dropped = Connection::open(&self.server.url)
            .and_then(|connection| connection.run(&format!("DROP DATABASE {} (FORCE)", self.name)));
        if let Err(error) = dropped {
            // That of a server that was started goes with it.
            crate::narration::say(&format!("{}: not dropped: {error:#}", self.name));
        }
    }
}

/// A connection that waits for each answer.
#[derive(Debug)]
pub(super) struct Connection {
    client: Client,
    driver: JoinHandle<()>,
    runtime: Runtime,
}

impl Connection {
    pub(super) fn open(url: &str) -> anyhow::Result<Connection> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let (client, connection) = runtime
            .block_on(tokio_postgres::connect(url, NoTls))
            .map_err(explain)?;
        let driver = runtime.spawn(async move {
            // Whoever asks is told that it has ended.
            let _ = connection.await;
        });
        Ok(Connection {
            client,
            driver,
            runtime,
        })
    }

    pub(super) fn run(&self, sql: &str) -> anyhow::Result<()> {
        let ran = self.runtime.block_on(self.client.batch_execute(sql));
        ran.map_err(explain)
    }

    /// The one row that a statement gives.
    pub(super) fn row(&self, sql: &str) -> anyhow::Result<Row> {
        let row = self.runtime.block_on(self.client.query_one(sql, &[]));
        row.map_err(explain)
    }

    fn text(&self, sql: &str) -> anyhow::Result<String> {
        Ok(self.row(sql)?.try_get(0)?)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// An error with what the server says: on its own it says only what kind it is.
fn explain(error: tokio_postgres::Error) -> anyhow::Error {
    match error.as_db_error() {
        Some(said) => anyhow::anyhow!("PostgreSQL: {}", said.message()),
        None => anyhow::Error::new(error).context("PostgreSQL"),
    }
}

/// The same URL with another database.
fn with_database(url: &str, name: &str) -> String {
    let (place, parameters) = match url.split_once('?') {
        Some((place, parameters)) => (place, format!("?{parameters}")),
        None => (url, String::new()),
    };
    let host = place.find("://").map_or(0, |colon| colon + 3);
    let end = place[host..]
        .find('/')
        .map_or(place.len(), |slash| host + slash);
    format!("{}/{name}{parameters}", &place[..end])
}

/// Where a program of PostgreSQL's is.
pub(super) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let path = programs()?.join(name);
    if !path.exists() {
        bail!(
            "{} is not there: install PostgreSQL's server and contrib",
            path.display()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gets_another_database_and_keeps_the_rest() {
        for (url, expected) in [
            ("postgres://me@host:1/a", "postgres://me@host:1/new"),
            ("postgres://me:pw@host", "postgres://me:pw@host/new"),
            ("postgresql://host/a?x=/y", "postgresql://host/new?x=/y"),
        ] {
            assert_eq!(with_database(url, "new"), expected);
        }
    }
}
