//! The versions of the schema, each applied once.
//!
//! Each new connection checks which version is there. Only if it is not the newest, it takes a lock that
//! nodes use for nothing else, checks again, and applies the missing versions, each in a transaction of
//! its own. A version must not keep others from reading for long: it waits for locks on tables for no
//! longer than [`LOCK_TIMEOUT_MS`], and is then tried again.

use super::statement_error::{StatementError, away};
use crate::store_error::StoreFailure;
use tokio_postgres::Client;

const LOCK_TIMEOUT_MS: u32 = 500;

/// A version of the schema, with the scripts that make it of the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    number: i32,
    scripts: &'static [&'static str],
}

/// All versions, oldest first. One that was released is never changed.
pub(super) const VERSIONS: &[Version] = &[
    Version {
        number: 1,
        scripts: &[
            include_str!("schema/tables.sql"),
            include_str!("schema/send.sql"),
            include_str!("schema/receive.sql"),
            include_str!("schema/lease.sql"),
            include_str!("schema/tend.sql"),
            include_str!("schema/directory.sql"),
            include_str!("schema/people.sql"),
        ],
    },
    Version {
        number: 2,
        scripts: &[include_str!("schema/snapshots.sql")],
    },
];

/// Brings the schema up to the newest version.
///
/// # Errors
/// Those of [`is_newest`]; [`StoreFailure::Internal`] if the database refuses a script.
pub(super) async fn bring_up(
    client: &mut Client,
    versions: &[Version],
) -> Result<(), StoreFailure> {
    client
        .batch_execute("SELECT pg_advisory_lock(740200, 1)")
        .await
        .map_err(refused)?;
    let done = bring_up_locked(client, versions).await;
    client
        .batch_execute("SELECT pg_advisory_unlock(740200, 1)")
        .await
        .map_err(refused)?;
    done
}

/// Converts the error of a statement for which no request waits: after a lost connection it is repeated.
fn refused(error: tokio_postgres::Error) -> StoreFailure {
    match StatementError::from(error) {
        StatementError::ConnectionLost => away("the connection was lost"),
        other => other.into_failure(),
    }
}

async fn bring_up_locked(client: &mut Client, versions: &[Version]) -> Result<(), StoreFailure> {
    let present = present(client, versions).await?;
    for version in versions.iter().filter(|version| version.number > present) {
        tracing::info!(
            version = version.number,
            "bringing up the schema of the mailboxes"
        );
        apply(client, version).await.map_err(refused)?;
    }
    Ok(())
}

async fn apply(client: &mut Client, version: &Version) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction
        .batch_execute(&format!(
            "SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS};
             CREATE SCHEMA IF NOT EXISTS airmail;
             CREATE TABLE IF NOT EXISTS airmail.schema_version
                 (number int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());"
        ))
        .await?;
    for script in version.scripts {
        transaction.batch_execute(script).await?;
    }
    transaction
        .execute(
            "INSERT INTO airmail.schema_version VALUES ($1)",
            &[&version.number],
        )
        .await?;
    transaction.commit().await
}

/// Returns whether the newest version is there.
///
/// # Errors
/// [`StoreFailure::Unusable`] if a version is there that this node does not know;
/// [`StoreFailure::Away`].
pub(super) async fn is_newest(client: &Client, versions: &[Version]) -> Result<bool, StoreFailure> {
    let newest = versions.last().map_or(0, |version| version.number);
    Ok(present(client, versions).await? == newest)
}

/// Returns the version that is there; 0 if none is.
async fn present(client: &Client, versions: &[Version]) -> Result<i32, StoreFailure> {
    let newest = versions.last().map_or(0, |version| version.number);
    let row = client
        .query_one(
            "SELECT to_regclass('airmail.schema_version') IS NOT NULL",
            &[],
        )
        .await
        .map_err(refused)?;
    if !row.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = client
        .query_one(
            "SELECT coalesce(max(number), 0) FROM airmail.schema_version",
            &[],
        )
        .await
        .map_err(refused)?;
    let present: i32 = row.get(0);
    if present > newest {
        return Err(StoreFailure::Unusable {
            found: format!("a schema of version {present}"),
            expected: format!("version {newest}: use a newer airmail"),
        });
    }
    Ok(present)
}
