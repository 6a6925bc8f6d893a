//! Transcripts: inputs of a core, and the effects of each, as text that can be read without the code. They
//! are in `tests/transcripts`; with `AIRMAIL_REWRITE=1` they are written anew.
//!
//! A line that begins with `>` is an input. The indented lines below it are its effects. All other lines
//! are remarks.

use std::fmt::Write;
use std::path::Path;

/// Compares a transcript with the effects of its inputs, or writes it. `step` applies an input and gives
/// its effects; `None` for a line that is no input.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "a test: whether it compares or writes is said by the environment"
)]
pub(crate) fn hold(core: &str, name: &str, mut step: impl FnMut(&str) -> Option<Vec<String>>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/transcripts")
        .join(core)
        .join(format!("{name}.txt"));
    let old = std::fs::read_to_string(&path).expect("a transcript");
    let mut new = String::new();
    for line in old.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(new, "{line}");
        if let Some(input) = line.strip_prefix("> ") {
            for effect in step(input).unwrap_or_else(|| panic!("{input:?} is no input")) {
                let _ = writeln!(new, "  {effect}");
            }
        }
    }
    if std::env::var_os("AIRMAIL_REWRITE").is_some() {
        std::fs::write(&path, new).expect("it can be written");
    } else {
        let command = "AIRMAIL_REWRITE=1 cargo test -p airmail-client transcripts";
        assert!(new == old, "{name}.txt is stale: {command}\n\n{new}");
    }
}
