//! One connection to the database: made, its schema seen to, its statements prepared once.

use super::fault::{Fault, away};
use super::{Options, schema};
use airmail_model::{Error, ErrorCode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row, Statement};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A lock is waited for so much of the patience at a time, so that what waits behind in the same
/// round has its turn; then the statement is tried again.
const LOCK_SHARE: u32 = 10;
const LOCK_WAIT_MIN: Duration = Duration::from_millis(10);
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);
/// A peer that answers nothing for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// With what a session calls the functions: their statements are planned once, for indexes that are
/// there, and not by statistics of tables that are empty in one moment and full in the next.
pub const SESSION_OPTIONS: &str = "-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off \
     -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c enable_sort=off";

/// Told what was notified on the tender's connection.
pub(super) type Heard = Arc<dyn Fn(&str) + Send + Sync>;

/// A connection that is up, until its driver has ended. Statements that are run at the same time go out
/// one behind the other without waiting, and are done in that order.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    driver: JoinSet<()>,
    end: AbortHandle,
    statements: Mutex<BTreeMap<&'static str, Statement>>,
}

/// Reads the options.
pub(super) fn config(options: &Options) -> Result<Config, Error> {
    let invalid = |field: &str, value: String, limit: &str| {
        Error::new(ErrorCode::InvalidArgument)
            .field(field)
            .value(value)
            .limit(limit)
    };
    if options.connections == 0 || options.waiting_max == 0 {
        return Err(invalid(
            "connections, waiting_max",
            "0".into(),
            "at least 1",
        ));
    }
    // The URL may hold a password: it is not shown.
    let mut config: Config = options
        .url
        .parse()
        .map_err(|error: tokio_postgres::Error| {
            invalid("url", error.to_string(), "postgres://…")
        })?;
    let theirs = config.get_options().unwrap_or_default().to_owned();
    let lock_ms = lock_wait(options.patience()).as_millis();
    config
        .options(format!("{SESSION_OPTIONS} -c lock_timeout={lock_ms} {theirs}").trim_end())
        .application_name("airmail")
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_user_timeout(SILENCE_MAX)
        .keepalives_idle(SILENCE_MAX);
    Ok(config)
}

/// How long a statement waits for a lock.
fn lock_wait(patience: Duration) -> Duration {
    (patience / LOCK_SHARE).clamp(LOCK_WAIT_MIN, LOCK_WAIT_MAX)
}

/// Whether the database can be used, if it answers at once.
///
/// # Errors
/// `MAILBOXES_UNUSABLE`.
pub(super) async fn look(config: &Config) -> Result<(), Error> {
    let looked = async {
        let Ok((client, connection)) = config.connect(NoTls).await else {
            return Ok(());
        };
        let mut driver = JoinSet::new();
        driver.spawn(drive(connection, None));
        schema::check(&client, schema::VERSIONS).await.map(drop)
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, looked).await {
        Ok(Err(error)) if error.code() == ErrorCode::MailboxesUnusable => Err(error),
        _ => Ok(()),
    }
}

impl Link {
    /// Connects, and brings the schema up if it is not.
    ///
    /// # Errors
    /// `MAILBOXES_AWAY` or `MAILBOXES_UNUSABLE`.
    pub(super) async fn connect(config: &Config, heard: Option<Heard>) -> Result<Link, Error> {
        let no_answer = |_| away("no answer");
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await;
        let (mut client, connection) = connected
            .map_err(no_answer)?
            .map_err(|error| away(words(&error)))?;
        let mut driver = JoinSet::new();
        let end = driver.spawn(drive(connection, heard));
        let checked = schema::check(&client, schema::VERSIONS);
        let checked = tokio::time::timeout(CONNECT_TIMEOUT, checked).await;
        let newest = checked.map_err(no_answer)??;
        if !newest {
            schema::bring_up(&mut client, schema::VERSIONS).await?;
        }
        Ok(Link {
            client,
            driver,
            end,
            statements: Mutex::default(),
        })
    }

    /// Ends it, whatever is under way on it.
    pub(super) fn abandon(&self) {
        self.end.abort();
    }

    /// Runs a statement, which is prepared the first time.
    pub(super) async fn query(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query(&statement, parameters).await?)
    }

    /// The statement, prepared. Takes no time but the first.
    pub(super) async fn prepare(&self, sql: &'static str) -> Result<Statement, Fault> {
        let prepared = self.statements.lock().get(sql).cloned();
        if let Some(statement) = prepared {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql, statement.clone());
        Ok(statement)
    }

    /// Runs what is run once.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Whether it has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Waits until it has ended.
    pub(super) async fn closed(&mut self) {
        self.driver.join_next().await;
    }
}

async fn drive<S>(mut connection: Connection<tokio_postgres::Socket, S>, heard: Option<Heard>)
where
    S: tokio_postgres::tls::TlsStream + Unpin,
{
    loop {
        match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(told))) => {
                if let Some(heard) = &heard {
                    heard(told.payload());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %words(&error), "a connection to the database ended");
                return;
            }
            None => return,
        }
    }
}

/// The error with its causes: on its own it says only what kind it is.
fn words(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
