//! What an experiment tells while it runs, on standard error: standard output is for its rows.

/// Says how far it is.
#[expect(clippy::print_stderr, reason = "standard output is for the rows")]
pub(in crate::commands::bench) fn say(text: &str) {
    eprintln!("airmail: {text}");
}
