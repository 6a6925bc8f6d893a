//! A node's answer to a bug of its own ([`mod@airmail_model::bug`]): it is logged, once for each place
//! in the source, and the node is not ready from then on.
//!
//! It goes on serving all the same. What the wrong place concerned was failed, and the rest works; but a
//! program that was wrong once may be wrong again, so who balances load is to send others elsewhere, and
//! somebody is to look. A restart makes it ready. A bug is the process's: it concerns every node in it.

use airmail_model::bug::{self, Met};
use std::time::Duration;

/// Time between two looks whether a bug was met.
const LOOK: Duration = Duration::from_secs(1);

/// Sees to it that bugs are logged.
pub(super) fn watch() {
    // Another node or a client of the process may have seen to it before.
    bug::on_first_at_each_place(tell);
}

fn tell(met: &Met) {
    tracing::error!(
        facts = met.facts,
        file = met.file,
        line = met.line,
        "a bug in the program: the node goes on and is not ready any more; please report it"
    );
}

/// Waits until a bug was met.
pub(super) async fn met() {
    while bug::first().is_none() {
        tokio::time::sleep(LOOK).await;
    }
}

/// The cause why the node is not ready, if that is a bug.
pub(super) fn why_not_ready() -> Option<String> {
    let first = bug::first()?;
    let count = bug::count();
    Some(format!(
        "a bug in the program, met {count} times in all, first: {first}; a restart makes the node ready"
    ))
}
