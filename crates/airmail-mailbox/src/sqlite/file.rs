//! The file of the database: made for its owner alone, locked, and brought up to the newest schema.

use crate::store_error::StoreFailure;
use rusqlite::{Connection, OpenFlags, ffi};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

/// The version of the schema.
const VERSION: i32 = 1;
/// The path of a store that is kept in memory.
const MEMORY: &str = ":memory:";
/// The mode of the file: its owner reads and writes it.
const FILE_MODE: u32 = 0o600;
/// Prepared statements that the connection keeps.
const STATEMENTS_MAX: usize = 64;
/// Time that the lock of another process is waited for.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// Opens the file, which is made if it is not there.
///
/// # Errors
/// [`StoreFailure::Unusable`] if the file is not a database of SQLite, or a newer version's; else the
/// failure of SQLite. The caller logs it, once.
pub(super) fn open(path: &Path) -> Result<Connection, StoreFailure> {
    let (connection, version) = connect(path).map_err(|error| not_opened(&error))?;
    if version > VERSION {
        return Err(StoreFailure::Unusable {
            found: format!("a schema of version {version}"),
            expected: format!("version {VERSION}: use a newer airmail"),
        });
    }
    bring_up(&connection, version).map_err(|error| not_opened(&error))?;
    Ok(connection)
}

/// Connects to the file, and returns the version of its schema; 0 if there is none.
fn connect(path: &Path) -> rusqlite::Result<(Connection, i32)> {
    make_file(path)?;
    // A path is never taken for a URI: that could name another file than the one that was made.
    let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    // Exclusive: a second process would not wake this one's readers. Full: what is acknowledged
    // is on the disk.
    connection.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         BEGIN EXCLUSIVE;",
    )?;
    let version = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    Ok((connection, version))
}

/// Makes the file for its owner alone, if there is none. SQLite would let everybody read it whom the
/// process's mask lets; the files that it makes beside it (`-wal`, `-shm`) have the file's own mode.
fn make_file(path: &Path) -> rusqlite::Result<()> {
    if path.as_os_str() == MEMORY || path.exists() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let made = options.mode(FILE_MODE).open(path);
    made.map(drop).map_err(|error| {
        let code = ffi::Error::new(ffi::SQLITE_CANTOPEN);
        let message = format!("{}: {error}", path.display());
        rusqlite::Error::SqliteFailure(code, Some(message))
    })
}

fn bring_up(connection: &Connection, version: i32) -> rusqlite::Result<()> {
    if version == 0 {
        connection.execute_batch(include_str!("schema.sql"))?;
        connection.execute_batch("PRAGMA user_version = 1")?;
    }
    connection.execute_batch("COMMIT")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

/// Converts the error of a file that cannot be opened.
fn not_opened(error: &rusqlite::Error) -> StoreFailure {
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) {
        return StoreFailure::Unusable {
            found: error.to_string(),
            expected: "a file of SQLite, or none".to_owned(),
        };
    }
    failure(error)
}

/// Converts an error of SQLite.
pub(super) fn failure(error: &rusqlite::Error) -> StoreFailure {
    let reason = error.to_string();
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
        StoreFailure::DiskFull { reason }
    } else {
        StoreFailure::Internal { reason }
    }
}
