//! The schema's versions, each brought up once.
//!
//! Whoever connects looks which version is there; only if it is not the newest it takes a lock
//! that nodes have for this alone, looks again, and brings up what is missing, each version in a
//! transaction of its own. A version must not keep others from reading for long: locks on tables
//! are waited for no longer than [`LOCK_TIMEOUT_MS`], then it is tried again.

use super::fault::{Fault, away};
use airmail_model::{Error, ErrorCode};
use tokio_postgres::Client;

const LOCK_TIMEOUT_MS: u32 = 500;

/// A version of the schema and what brings it up from the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    number: i32,
    scripts: &'static [&'static str],
}

/// All versions, oldest first. One that was released is never changed.
pub(super) const VERSIONS: &[Version] = &[Version {
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
}];

/// Brings the newest version up.
///
/// # Errors
/// As [`check`]; `INTERNAL` if the database refuses.
pub(super) async fn bring_up(client: &mut Client, versions: &[Version]) -> Result<(), Error> {
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

/// An error of the database, of which nothing has come.
fn refused(error: tokio_postgres::Error) -> Error {
    match Fault::from(error) {
        Fault::Lost => away("the connection was lost"),
        fault => fault.of_change(),
    }
}

async fn bring_up_locked(client: &mut Client, versions: &[Version]) -> Result<(), Error> {
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

/// Whether the newest version is there.
///
/// # Errors
/// `MAILBOXES_UNUSABLE` if there is one that this node does not know; `MAILBOXES_AWAY`.
pub(super) async fn check(client: &Client, versions: &[Version]) -> Result<bool, Error> {
    let newest = versions.last().map_or(0, |version| version.number);
    Ok(present(client, versions).await? == newest)
}

/// The version that is there; 0 if none is.
async fn present(client: &Client, versions: &[Version]) -> Result<i32, Error> {
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
        return Err(Error::new(ErrorCode::MailboxesUnusable)
            .field("schema of the mailboxes")
            .value(format!("version {present}"))
            .limit(format!("version {newest}: use a newer airmail")));
    }
    Ok(present)
}
