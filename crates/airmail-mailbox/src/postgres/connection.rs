//! A connection to the database: it brings the schema up when it is made, and prepares each statement
//! once.

use super::statement_error::{StatementError, away};
use super::{Options, schema};
use crate::store_error::{
    CONNECTIONS_SETTING, StoreFailure, StoreStartError, URL_SETTING, WAITING_SETTING,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, Socket, Statement};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Divisor of the patience that gives how long a statement waits for a lock. Then the statement is tried
/// again, so that those behind it in the same round trip have their turn.
const LOCK_SHARE: u32 = 10;
const LOCK_WAIT_MIN: Duration = Duration::from_millis(10);
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);
/// Time after which a peer that answers nothing is given up.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Options of the sessions that call the functions: statements are planned once, for the indexes that
/// there are, and not by statistics of tables that are empty in one moment and full in the next.
pub const SESSION_OPTIONS: &str = "-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off \
     -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c enable_sort=off";

/// A callback for the payloads of notifications.
pub(super) type OnNotification = Arc<dyn Fn(&str) + Send + Sync>;

/// A connection, which is up until its driver has ended. Statements that are run at the same time go out
/// one behind the other without waiting, and are done in that order.
#[derive(Debug)]
pub(super) struct DatabaseConnection {
    client: Client,
    driver: JoinSet<()>,
    end: AbortHandle,
    statements: Mutex<BTreeMap<&'static str, Statement>>,
}

/// Makes the configuration of connections from the options.
pub(super) fn config(options: &Options) -> Result<Config, StoreStartError> {
    for (setting, value) in [
        (CONNECTIONS_SETTING, options.connections),
        (WAITING_SETTING, options.waiting_max),
    ] {
        if value == 0 {
            return Err(StoreStartError::InvalidSetting {
                setting,
                found: value.to_string(),
                expected: "at least 1",
            });
        }
    }
    // The URL may hold a password, so the error does not show it.
    let invalid_url = |error: tokio_postgres::Error| StoreStartError::InvalidSetting {
        setting: URL_SETTING,
        found: error.to_string(),
        expected: "postgres://…",
    };
    let mut config = options.url.parse::<Config>().map_err(invalid_url)?;
    let users_options = config.get_options().unwrap_or_default().to_owned();
    let lock_ms = lock_wait(options.patience()).as_millis();
    config
        .options(format!("{SESSION_OPTIONS} -c lock_timeout={lock_ms} {users_options}").trim_end())
        .application_name("airmail")
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_user_timeout(SILENCE_MAX)
        .keepalives_idle(SILENCE_MAX);
    Ok(config)
}

/// Returns the time for which a statement waits for a lock.
fn lock_wait(patience: Duration) -> Duration {
    (patience / LOCK_SHARE).clamp(LOCK_WAIT_MIN, LOCK_WAIT_MAX)
}

/// Checks that the database can be used, if it answers.
///
/// # Errors
/// [`StoreFailure::Unusable`].
pub(super) async fn check_schema(config: &Config) -> Result<(), StoreFailure> {
    let checked = async {
        let Ok((client, connection)) = config.connect(NoTls).await else {
            // Input: a database that is away may come later.
            return Ok(());
        };
        let mut driver = JoinSet::new();
        driver.spawn(drive(connection, None));
        schema::is_newest(&client, schema::VERSIONS).await.map(drop)
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, checked).await {
        Ok(Err(unusable @ StoreFailure::Unusable { .. })) => Err(unusable),
        _ => Ok(()),
    }
}

impl DatabaseConnection {
    /// Connects, and brings the schema up to the newest version.
    ///
    /// # Errors
    /// [`StoreFailure::Away`] or [`StoreFailure::Unusable`]; another one if the schema cannot be brought
    /// up.
    pub(super) async fn open(
        config: &Config,
        on_notification: Option<OnNotification>,
    ) -> Result<DatabaseConnection, StoreFailure> {
        let no_answer = |_| away("no answer");
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await;
        let (mut client, connection) = connected
            .map_err(no_answer)?
            .map_err(|error| away(with_causes(&error)))?;
        let mut driver = JoinSet::new();
        let end = driver.spawn(drive(connection, on_notification));
        let checked = schema::is_newest(&client, schema::VERSIONS);
        let checked = tokio::time::timeout(CONNECT_TIMEOUT, checked).await;
        let is_newest = checked.map_err(no_answer)??;
        if !is_newest {
            schema::bring_up(&mut client, schema::VERSIONS).await?;
        }
        Ok(DatabaseConnection {
            client,
            driver,
            end,
            statements: Mutex::default(),
        })
    }

    /// Ends the connection, whatever is under way on it.
    pub(super) fn abandon(&self) {
        self.end.abort();
    }

    /// Runs a statement, which is prepared when it is run first.
    pub(super) async fn query(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StatementError> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query(&statement, parameters).await?)
    }

    /// Prepares a statement. Takes time only when it is called first.
    pub(super) async fn prepare(&self, sql: &'static str) -> Result<Statement, StatementError> {
        let prepared = self.statements.lock().get(sql).cloned();
        if let Some(statement) = prepared {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql, statement.clone());
        Ok(statement)
    }

    /// Runs commands without parameters, which are not prepared.
    pub(super) async fn run(&self, sql: &str) -> Result<(), StatementError> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Waits until the connection has ended.
    pub(super) async fn closed(&mut self) {
        self.driver.join_next().await;
    }
}

/// Moves messages between the connection's users and its socket until it ends.
async fn drive<S>(
    mut connection: tokio_postgres::Connection<Socket, S>,
    on_notification: Option<OnNotification>,
) where
    S: tokio_postgres::tls::TlsStream + Unpin,
{
    loop {
        match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(notification))) => {
                if let Some(on_notification) = &on_notification {
                    on_notification(notification.payload());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %with_causes(&error), "a connection to the database ended");
                return;
            }
            None => return,
        }
    }
}

/// Writes an error with its causes: on its own it says only its kind.
fn with_causes(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
