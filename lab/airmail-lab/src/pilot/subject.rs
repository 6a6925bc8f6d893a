//! Those that are measured.

/// One who stores on the broker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Subject {
    /// A publisher through a pilot of Airmail.
    Pilot,
    /// librdkafka with a record for each message, which waits so many milliseconds for a batch to fill.
    Linger(u32),
    /// librdkafka with records as large as a pilot's batches, which wait for nothing.
    Records(Batches),
}

/// Batches of a pilot, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Batches {
    pub(super) messages_each: f64,
    pub(super) bytes_each: f64,
}

impl Subject {
    /// Name in rows and tables.
    pub(super) fn name(self) -> String {
        match self {
            Subject::Pilot => "Airmail".to_owned(),
            Subject::Linger(ms) => format!("librdkafka, linger {ms} ms"),
            Subject::Records(_) => "librdkafka, batches as records".to_owned(),
        }
    }

    /// Whether both are the same, however large the batches were.
    pub(super) fn is_like(self, other: Subject) -> bool {
        match (self, other) {
            (Subject::Records(_), Subject::Records(_)) => true,
            (one, other) => one == other,
        }
    }

    /// Time that librdkafka waits, in milliseconds.
    pub(super) fn linger_ms(self) -> u32 {
        match self {
            Subject::Linger(ms) => ms,
            Subject::Pilot | Subject::Records(_) => 0,
        }
    }
}
