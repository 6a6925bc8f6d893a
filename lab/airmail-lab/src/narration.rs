//! Output of an experiment while it runs: its progress on standard error, its rows on standard
//! output.

use anyhow::Context as _;
use std::io::{ErrorKind, Write as _};

/// Says how far it is.
#[expect(clippy::print_stderr, reason = "standard output is for the rows")]
pub(crate) fn say(text: &str) {
    eprintln!("airmail-lab: {text}");
}

/// Prints rows. Their reader may have closed the output.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("writing standard output"),
    }
}
