//! The tables of the file.

/// Raised when tables change.
pub(super) const VERSION: u32 = 1;

/// Nothing is synced: a file that a power cut broke is made again by its experiment.
pub(super) const CREATE: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    -- What was done, as JSON.
    CREATE TABLE experiment (version INTEGER NOT NULL, document TEXT NOT NULL);
    -- One run of a case (JSON); times are of the machine's monotonic clock, in microseconds.
    CREATE TABLE run (
        id INTEGER PRIMARY KEY, round INTEGER NOT NULL, \"case\" TEXT NOT NULL,
        begin_us INTEGER, end_us INTEGER);
    -- Every call. kind: 0 ping, 1 send, 2 read, 3 read broadcast, 4 find, 5 queues.
    -- outcome: 0 done, 1 there was nothing, 2 failed.
    CREATE TABLE call (
        run INTEGER NOT NULL, client INTEGER NOT NULL, kind INTEGER NOT NULL,
        ended_us INTEGER NOT NULL, took_us INTEGER NOT NULL, outcome INTEGER NOT NULL,
        messages INTEGER NOT NULL);
    CREATE TABLE sample (
        run INTEGER NOT NULL, at_us INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL);
    CREATE TABLE note (text TEXT NOT NULL);";

/// Indexes for reading.
pub(super) const INDEX: &str = "
    CREATE INDEX call_of_run ON call (run);
    CREATE INDEX sample_of_run ON sample (run, name);";
