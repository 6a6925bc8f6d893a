//! Errors of a run over several processes.

use crate::system::Failure;
use std::fmt::Display;
use std::io;
use std::num::ParseIntError;

/// Reason for which processes could not do a run together.
#[derive(Debug, thiserror::Error)]
pub enum FamilyError {
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
    /// A process of the run failed, and said this.
    #[error("{0}")]
    Failed(String),
    /// A process said something else than was due.
    #[error("a part said {said:?}, not {due}")]
    OutOfTurn {
        /// The line that it said.
        said: String,
        /// The word that was due.
        due: String,
    },
    /// An option cannot be followed.
    #[error("{option}: {why}")]
    Option {
        /// The option.
        option: &'static str,
        /// The fault in it.
        why: String,
    },
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// The action that was tried.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The run itself failed.
    #[error(transparent)]
    Run(#[from] Failure),
    /// A process's line is not the JSON that was agreed.
    #[error("not what was agreed between processes of one run: {0}")]
    Json(#[from] serde_json::Error),
    /// A process's line is no number.
    #[error("not what was agreed between processes of one run: {0}")]
    Number(#[from] ParseIntError),
}

/// Names the action that the system refused.
pub(super) fn system(what: impl Display) -> impl FnOnce(io::Error) -> FamilyError {
    let what = what.to_string();
    move |error| FamilyError::System { what, error }
}
