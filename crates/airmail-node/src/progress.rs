//! How far a shard has come with log 0.

use airmail_broker::Shard;
use airmail_model::Sequence;

/// Places in log 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The end of what has been folded.
    pub(crate) folded: Sequence,
    /// The end of what is done: logs are open, or deleted.
    pub(crate) settled: Sequence,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            folded: Sequence(0),
            settled: Sequence(0),
        }
    }
}

impl Progress {
    pub(crate) fn of(_shard: &Shard) -> Progress {
        Progress::default()
    }
}
