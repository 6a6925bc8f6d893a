//! Why a run over several processes was not made.

use crate::system::Failure;
use std::fmt::Display;
use std::io;
use std::num::ParseIntError;

/// What kept processes from doing a run together.
#[derive(Debug, thiserror::Error)]
pub enum FamilyError {
    /// What was under way was told to stop.
    #[error("stopped")]
    Stopped,
    /// A process of the run failed, and said this.
    #[error("{0}")]
    Failed(String),
    /// A process said something else than was due.
    #[error("a part said {said:?}, not {due}")]
    OutOfTurn {
        /// What it said.
        said: String,
        /// The word that was due.
        due: String,
    },
    /// An option cannot be followed.
    #[error("{option}: {why}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was wanted of it.
        what: String,
        /// What it says.
        error: io::Error,
    },
    /// The run itself failed.
    #[error(transparent)]
    Run(#[from] Failure),
    /// What a process said is not the JSON that was agreed.
    #[error("not what was agreed between processes of one run: {0}")]
    Json(#[from] serde_json::Error),
    /// What a process said is no number.
    #[error("not what was agreed between processes of one run: {0}")]
    Number(#[from] ParseIntError),
}

/// Says what was wanted of the system.
pub(super) fn system(what: impl Display) -> impl FnOnce(io::Error) -> FamilyError {
    let what = what.to_string();
    move |error| FamilyError::System { what, error }
}
