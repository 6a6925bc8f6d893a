//! The store on SQLite and files that it cannot use, or cannot use now.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::Mailboxes;
use airmail_mailbox::sqlite::{SqliteStore, WAITING_MAX};
use airmail_model::{Error, ErrorCode};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

fn start(path: &Path) -> Result<Mailboxes, Error> {
    let store = SqliteStore::start(path, WAITING_MAX)?;
    Ok(Mailboxes::new(Arc::new(store)))
}

#[track_caller]
fn assert_unusable(path: &Path, words: &str) {
    let error = start(path).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MailboxesUnusable, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn what_no_waiting_can_mend_is_told_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mailboxes.sqlite");
    std::fs::write(&path, "a letter, and no database at all\n".repeat(100)).unwrap();
    assert_unusable(&path, "not a database");
    std::fs::remove_file(&path).unwrap();
    let newer = Connection::open(&path).unwrap();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    newer.close().unwrap();
    assert_unusable(&path, "version 99");
}

#[tokio::test]
async fn the_file_and_what_sqlite_makes_beside_it_are_for_their_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mailboxes.sqlite");
    let mailboxes = start(&path).unwrap();
    mailboxes.create_account("alice").await.unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["mailboxes.sqlite", "mailboxes.sqlite-wal"]);
    mailboxes.close().await.unwrap();
}

#[test]
fn a_file_that_cannot_be_made_is_told_with_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let mailboxes = directory.path().join("nowhere/mailboxes.sqlite");
    let mailboxes = start(&mailboxes).unwrap();
    let waits = tokio::runtime::Runtime::new().unwrap();
    let error = waits.block_on(mailboxes.create_account("alice"));
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::MailboxesAway, "{error}");
    assert!(
        error.found().contains("nowhere/mailboxes.sqlite: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_another_process_has_locked_is_away_until_it_is_released() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mailboxes.sqlite");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mailboxes = start(&path).unwrap();
    let error = mailboxes.create_account("alice").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::MailboxesAway, "{error}");
    assert!(error.found().contains("locked"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    while let Err(error) = mailboxes.create_account("alice").await {
        assert_eq!(error.code(), ErrorCode::MailboxesAway, "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    mailboxes.find_account("alice").await.unwrap();
    mailboxes.close().await.unwrap();
}
