//! Reads the file.

use super::{RecordError, schema, sqlite};
use crate::mailbox::call::{Call, Kind, Outcome};
use rusqlite::{Connection, OpenFlags, params};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A file that is there.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Run<C> {
    /// Its number in the file.
    pub id: u32,
    /// Number of the round, from 1.
    pub round: u32,
    /// The case that was run.
    pub case: C,
    /// Time at which the measurement began.
    pub begin_us: u64,
    /// When it ended.
    pub end_us: u64,
}

impl<C> Run<C> {
    /// Duration of the measurement.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.end_us.saturating_sub(self.begin_us) as f64 / 1e6
    }
}

impl Reader {
    /// Opens it.
    ///
    /// # Errors
    /// There is none, or it is another version's.
    pub fn open(path: &Path) -> Result<Reader, RecordError> {
        let failed = |error| sqlite(path, error);
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let connection = connection.map_err(failed)?;
        let version: u32 = connection
            .query_row("SELECT version FROM experiment", (), |row| row.get(0))
            .map_err(failed)?;
        if version != schema::VERSION {
            let what = format!("version {version}");
            return Err(RecordError::Strange { what });
        }
        Ok(Reader {
            connection,
            path: path.to_owned(),
        })
    }

    /// Description of the experiment.
    ///
    /// # Errors
    /// It is not in the expected form.
    pub fn experiment<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        let document: String = self
            .connection
            .query_row("SELECT document FROM experiment", (), |row| row.get(0))
            .map_err(|error| self.failed(error))?;
        parse("experiment", &document)
    }

    /// Sentences for the report.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn notes(&self) -> Result<Vec<String>, RecordError> {
        let read = || {
            let mut statement = self
                .connection
                .prepare("SELECT text FROM note ORDER BY rowid")?;
            let rows = statement.query_map((), |row| row.get(0))?;
            rows.collect::<Result<Vec<String>, _>>()
        };
        read().map_err(|error| self.failed(error))
    }

    /// The runs that came to their end, in their order.
    ///
    /// # Errors
    /// The file cannot be read, or a case is not in the expected form.
    pub fn runs<C: DeserializeOwned>(&self) -> Result<Vec<Run<C>>, RecordError> {
        let read = || {
            let mut statement = self.connection.prepare(
                "SELECT id, round, \"case\", begin_us, end_us FROM run
                 WHERE end_us IS NOT NULL ORDER BY id",
            )?;
            let rows = statement.query_map((), |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                ))
            })?;
            rows.collect::<Result<Vec<(u32, u32, String, i64, i64)>, _>>()
        };
        let rows = read().map_err(|error| self.failed(error))?;
        let run = |(id, round, case, begin_us, end_us): (u32, u32, String, i64, i64)| {
            Ok(Run {
                id,
                round,
                case: parse("case", &case)?,
                begin_us: begin_us.cast_unsigned(),
                end_us: end_us.cast_unsigned(),
            })
        };
        rows.into_iter().map(run).collect()
    }

    /// Gives the calls of a run that were answered while it was measured, in no order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn calls<C>(&self, run: &Run<C>, mut take: impl FnMut(Call)) -> Result<(), RecordError> {
        let mut read = || {
            let mut statement = self.connection.prepare(
                "SELECT client, kind, ended_us, took_us, outcome, messages FROM call
                 WHERE run = ?1 AND ended_us >= ?2 AND ended_us < ?3",
            )?;
            let window = params![run.id, run.begin_us.cast_signed(), run.end_us.cast_signed()];
            let mut rows = statement.query(window)?;
            while let Some(row) = rows.next()? {
                let Some(kind) = Kind::from_number(row.get(1)?) else {
                    continue;
                };
                take(Call {
                    client: row.get(0)?,
                    kind,
                    ended_us: row.get::<_, i64>(2)?.cast_unsigned(),
                    took_us: row.get::<_, i64>(3)?.cast_unsigned(),
                    outcome: Outcome::from_number(row.get(4)?),
                    messages: row.get(5)?,
                });
            }
            Ok(())
        };
        read().map_err(|error| self.failed(error))
    }

    /// Samples under a name, by time.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn samples<C>(&self, run: &Run<C>, name: &str) -> Result<Vec<(u64, f64)>, RecordError> {
        let read = || {
            let mut statement = self.connection.prepare(
                "SELECT at_us, value FROM sample WHERE run = ?1 AND name = ?2 ORDER BY at_us",
            )?;
            let rows = statement.query_map(params![run.id, name], |row| {
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
            })?;
            rows.collect::<Result<Vec<(u64, f64)>, _>>()
        };
        read().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: rusqlite::Error) -> RecordError {
        sqlite(&self.path, error)
    }
}

fn parse<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, RecordError> {
    serde_json::from_str(text).map_err(|error| RecordError::Strange {
        what: format!("{what}: {error}"),
    })
}
