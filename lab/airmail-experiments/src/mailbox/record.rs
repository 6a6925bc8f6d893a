//! The file that has every call of an experiment, in SQLite; and everything else that its report
//! needs, so that the report can be drawn again from it.
//!
//! One thread writes. Clients give it their calls a few hundred at a time by a bounded queue: a
//! disk that does not keep up delays them, which a report would show, and does not fill memory.

mod reading;
mod schema;

use super::call::Call;
use rusqlite::{Connection, params};
use serde::Serialize;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

pub use reading::{Reader, Run};

/// Entries that may wait to be written.
const ENTRIES: usize = 1024;
/// Calls of an entry.
const CALLS: usize = 256;
/// Entries of a transaction.
const TRANSACTION: usize = 256;

/// Reason for which a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// SQLite says no.
    #[error("{path}: {error}")]
    Sqlite {
        /// The file.
        path: String,
        /// The error of SQLite.
        error: rusqlite::Error,
    },
    /// The file was not written by this version.
    #[error("the record has {what}, which is not understood")]
    Strange {
        /// The part that is strange.
        what: String,
    },
    /// The thread that writes could not be started, or has ended.
    #[error("the record's thread: {0}")]
    Thread(String),
}

#[derive(Debug)]
enum Entry {
    /// A run begins.
    Run {
        run: u32,
        round: u32,
        case: String,
    },
    Calls {
        run: u32,
        calls: Vec<Call>,
    },
    /// Something that was looked at while a run was under way.
    Sample {
        run: u32,
        at_us: u64,
        name: String,
        value: f64,
    },
    /// Bounds of the time in which a run is measured.
    Window {
        run: u32,
        begin_us: u64,
        end_us: u64,
    },
    /// A sentence for the report.
    Note {
        text: String,
    },
}

/// A file that is being written.
#[derive(Debug)]
pub struct Recorder {
    entries: SyncSender<Entry>,
    thread: JoinHandle<Result<(), RecordError>>,
    runs: u32,
}

impl Recorder {
    /// Makes a new file, in place of one that is there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path, experiment: &impl Serialize) -> Result<Recorder, RecordError> {
        let failed = |error| sqlite(path, error);
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(RecordError::Thread(format!("{}: {error}", path.display())));
            }
            _ => {}
        }
        let connection = Connection::open(path).map_err(failed)?;
        connection.execute_batch(schema::CREATE).map_err(failed)?;
        let document = serde_json::to_string(experiment)
            .map_err(|error| RecordError::Thread(error.to_string()))?;
        connection
            .execute(
                "INSERT INTO experiment VALUES (?1, ?2)",
                params![schema::VERSION, document],
            )
            .map_err(failed)?;
        let (entries, waiting) = sync_channel(ENTRIES);
        let name = path.display().to_string();
        let write = move || {
            write(connection, &waiting).map_err(|error| RecordError::Sqlite { path: name, error })
        };
        let thread = std::thread::Builder::new()
            .name("record".into())
            .spawn(write)
            .map_err(|error| RecordError::Thread(error.to_string()))?;
        Ok(Recorder {
            entries,
            thread,
            runs: 0,
        })
    }

    /// Begins a run of a case, in a round from 1; gives where what happens in it is noted.
    ///
    /// # Errors
    /// The case cannot be written.
    pub fn begin(&mut self, round: u32, case: &impl Serialize) -> Result<Sink, RecordError> {
        let case =
            serde_json::to_string(case).map_err(|error| RecordError::Thread(error.to_string()))?;
        self.runs += 1;
        let run = self.runs;
        self.send(Entry::Run { run, round, case })?;
        Ok(Sink {
            run,
            entries: self.entries.clone(),
            calls: Vec::new(),
        })
    }

    /// Adds a sentence for the report.
    ///
    /// # Errors
    /// The thread that writes has ended.
    pub fn note(&self, text: impl Into<String>) -> Result<(), RecordError> {
        self.send(Entry::Note { text: text.into() })
    }

    /// Writes the remaining calls and closes the file. All sinks must be gone.
    ///
    /// # Errors
    /// Something could not be written, now or before.
    pub fn close(self) -> Result<(), RecordError> {
        drop(self.entries);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(RecordError::Thread("it panicked".into())))
    }

    fn send(&self, entry: Entry) -> Result<(), RecordError> {
        let sent = self.entries.send(entry);
        sent.map_err(|_| RecordError::Thread("it has ended".into()))
    }
}

/// Where what happens in a run is noted; cheap to clone. What cannot be noted any more is told by
/// [`Recorder::close`].
#[derive(Debug)]
pub struct Sink {
    run: u32,
    entries: SyncSender<Entry>,
    calls: Vec<Call>,
}

impl Clone for Sink {
    /// Another for the same run; what this one has not handed over stays with it.
    fn clone(&self) -> Sink {
        Sink {
            run: self.run,
            entries: self.entries.clone(),
            calls: Vec::new(),
        }
    }
}

impl Sink {
    /// Notes a call.
    pub fn note(&mut self, call: Call) {
        self.calls.push(call);
        if self.calls.len() >= CALLS {
            self.flush();
        }
    }

    /// Hands over the noted calls.
    pub fn flush(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let _ = self.entries.send(Entry::Calls {
            run: self.run,
            calls,
        });
    }

    /// Notes something that was looked at.
    pub fn sample(&self, at_us: u64, name: &str, value: f64) {
        let _ = self.entries.send(Entry::Sample {
            run: self.run,
            at_us,
            name: name.to_owned(),
            value,
        });
    }

    /// Says between which moments the run is measured: what lies before is warm-up, what lies behind
    /// cool-down.
    pub fn window(&self, begin_us: u64, end_us: u64) {
        let run = self.run;
        let _ = self.entries.send(Entry::Window {
            run,
            begin_us,
            end_us,
        });
    }
}

fn write(mut connection: Connection, waiting: &Receiver<Entry>) -> rusqlite::Result<()> {
    while let Ok(first) = waiting.recv() {
        let transaction = connection.transaction()?;
        insert(&transaction, first)?;
        for entry in waiting.try_iter().take(TRANSACTION) {
            insert(&transaction, entry)?;
        }
        transaction.commit()?;
    }
    // Made when all is there: while rows come it would cost each of them.
    connection.execute_batch(schema::INDEX)
}

fn insert(connection: &Connection, entry: Entry) -> rusqlite::Result<()> {
    match entry {
        Entry::Run { run, round, case } => connection
            .prepare_cached("INSERT INTO run (id, round, \"case\") VALUES (?1, ?2, ?3)")?
            .execute(params![run, round, case]),
        Entry::Calls { run, calls } => {
            let mut statement = connection
                .prepare_cached("INSERT INTO call VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
            for call in calls {
                statement.execute(params![
                    run,
                    call.client,
                    call.kind.number(),
                    call.ended_us.cast_signed(),
                    call.took_us.cast_signed(),
                    call.outcome.number(),
                    call.messages,
                ])?;
            }
            Ok(0)
        }
        Entry::Sample {
            run,
            at_us,
            name,
            value,
        } => connection
            .prepare_cached("INSERT INTO sample VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![run, at_us.cast_signed(), name, value]),
        Entry::Window {
            run,
            begin_us,
            end_us,
        } => connection
            .prepare_cached("UPDATE run SET begin_us = ?2, end_us = ?3 WHERE id = ?1")?
            .execute(params![run, begin_us.cast_signed(), end_us.cast_signed()]),
        Entry::Note { text } => connection
            .prepare_cached("INSERT INTO note VALUES (?1)")?
            .execute([text]),
    }
    .map(drop)
}

fn sqlite(path: &Path, error: rusqlite::Error) -> RecordError {
    let path = path.display().to_string();
    RecordError::Sqlite { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::{Kind, Outcome};

    #[test]
    fn what_was_noted_is_read_back_within_its_window() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.sqlite");
        let mut recorder = Recorder::create(&path, &"the experiment").unwrap();
        let mut sink = recorder.begin(2, &("case", 7)).unwrap();
        let call = |ended_us| Call {
            client: 3,
            kind: Kind::Find,
            ended_us,
            took_us: 5,
            outcome: Outcome::Nothing,
            messages: 1,
        };
        (0..1000).for_each(|ended_us| sink.note(call(ended_us)));
        sink.flush();
        sink.sample(11, "cpu", 0.5);
        sink.window(100, 300);
        drop(sink);
        recorder.note("one more thing").unwrap();
        recorder.close().unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.experiment::<String>().unwrap(), "the experiment");
        assert_eq!(reader.notes().unwrap(), ["one more thing"]);
        let runs = reader.runs::<(String, u32)>().unwrap();
        let [run] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!((run.round, &run.case), (2, &("case".to_owned(), 7)));
        let mut ended = Vec::new();
        reader.calls(run, |call| ended.push(call)).unwrap();
        let expected: Vec<Call> = (100..300).map(call).collect();
        assert_eq!(ended, expected);
        assert_eq!(reader.samples(run, "cpu").unwrap(), [(11, 0.5)]);
    }

    #[test]
    fn a_file_of_something_else_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other.sqlite");
        assert!(Reader::open(&path).is_err(), "it is not there");
        Connection::open(&path)
            .and_then(|other| {
                other.execute_batch(
                    "CREATE TABLE experiment (version, document); INSERT INTO experiment VALUES (99, '1')",
                )
            })
            .unwrap();
        let error = Reader::open(&path).unwrap_err();
        assert!(error.to_string().contains("99"), "{error}");
    }
}
