//! Transcripts: what happens to a core and what it wants done, as text that can be read without the code.
//!
//! A line that begins with `>` is an input. The indented lines below it are what comes of it. All other
//! lines are remarks. A transcript is in `tests/transcripts` of the core's crate; a test plays its inputs and
//! compares, and with `AIRMAIL_REWRITE=1` writes what came of them.
//!
//! A core's inputs are read by the sentences that they are: [`parts`].

use crate::scale;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A transcript of a core.
#[derive(Debug)]
pub struct Transcript {
    /// Its path below the root of the workspace.
    path: String,
    /// The command that writes it anew.
    command: String,
}

impl Transcript {
    /// A transcript of this name, of a core in a crate.
    pub fn of(package: &str, core: &str, name: &str) -> Transcript {
        Transcript {
            path: format!("crates/{package}/tests/transcripts/{core}/{name}.txt"),
            command: format!("AIRMAIL_REWRITE=1 cargo test -p {package} transcripts"),
        }
    }

    /// Compares it with what comes of its inputs, or writes it. `step` takes an input and gives the lines that
    /// tell what came of it; `None` for a line that is no input.
    #[track_caller]
    pub fn hold(&self, step: impl FnMut(&str) -> Option<Vec<String>>) {
        let Transcript { path, command } = self;
        let old = read(path);
        let new = play(&old, step).unwrap_or_else(|line| panic!("{path}: {line:?} is no input"));
        if scale::rewrite() {
            fs::write(at_root(path), new).unwrap();
        } else {
            assert!(new == old, "{path} is stale: {command}\n\n{new}");
        }
    }

    /// Holds that ARCHITECTURE.md links to it and shows, in the block behind the link, a part of it word for
    /// word.
    #[track_caller]
    pub fn hold_architecture(&self) {
        let path = &self.path;
        let page = read("ARCHITECTURE.md");
        let shown = block_behind(&page, path)
            .unwrap_or_else(|| panic!("ARCHITECTURE.md has no block behind a link to {path}"));
        let whole = read(path);
        assert!(whole.contains(shown), "not in {path}:\n\n{shown}");
    }
}

/// Makes a test for each transcript of a core, of the crate that it stands in, and one that none is without a test.
/// `play` gives what takes an input and tells what came of it, in a new state.
#[macro_export]
macro_rules! transcripts {
    ($core:literal, $play:ident, $($claim:ident: $name:literal,)+) => {
        $(
            #[test]
            fn $claim() {
                let package = env!("CARGO_PKG_NAME");
                $crate::transcript::Transcript::of(package, $core, $name).hold($play());
            }
        )+

        #[test]
        fn every_transcript_has_a_test() {
            $crate::transcript::hold_names(env!("CARGO_PKG_NAME"), $core, &[$($name),+]);
        }
    };
}

/// Holds that the transcripts of a core are those of these names.
#[track_caller]
pub fn hold_names(package: &str, core: &str, names: &[&str]) {
    let directory = format!("crates/{package}/tests/transcripts/{core}");
    let files = fs::read_dir(at_root(&directory)).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<String> = files.collect();
    let named = names.iter().map(|name| format!("{name}.txt"));
    let named: BTreeSet<String> = named.collect();
    assert_eq!(there, named, "{directory}: files, and tests");
}

fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(at_root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The transcript that comes of the inputs of an old one, or the line that is no input.
fn play(old: &str, mut step: impl FnMut(&str) -> Option<Vec<String>>) -> Result<String, &str> {
    let mut new = String::new();
    for line in old.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(new, "{line}");
        if let Some(input) = line.strip_prefix("> ") {
            for effect in step(input).ok_or(line)? {
                let _ = writeln!(new, "  {effect}");
            }
        }
    }
    Ok(new)
}

/// The text of the first block behind a link to a file, if there is one.
fn block_behind<'a>(page: &'a str, path: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("]({path})"))?;
    let (_, rest) = rest.split_once("\n```text\n")?;
    let (shown, _) = rest.split_once("```")?;
    Some(shown)
}

/// The parts of a line that stand where the sentence has `{}`; `None` if the line does not say that sentence. A
/// part has at least one letter and ends where the sentence first goes on.
///
/// ```
/// # use airmail_testkit::transcript::parts;
/// let [topic, from] = parts("read {} from {} on", "read a from 5 on").unwrap();
/// assert_eq!((topic, from), ("a", "5"));
/// assert!(parts::<2>("read {} from {} on", "stop").is_none());
/// ```
pub fn parts<'a, const N: usize>(sentence: &str, line: &'a str) -> Option<[&'a str; N]> {
    let (first, mut sentence) = match sentence.split_once("{}") {
        Some((first, rest)) => (first, Some(rest)),
        None => (sentence, None),
    };
    let mut line = line.strip_prefix(first)?;
    let mut parts = Vec::with_capacity(N);
    while let Some(rest) = sentence {
        let (part, behind) = match rest.split_once("{}") {
            Some((words, next)) => {
                sentence = Some(next);
                line.split_once(words)?
            }
            None => {
                sentence = None;
                (line.strip_suffix(rest)?, "")
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        line = behind;
    }
    if !line.is_empty() {
        return None;
    }
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats each input, and knows no numbers.
    fn echo(input: &str) -> Option<Vec<String>> {
        (!input.contains(char::is_numeric)).then(|| vec![input.to_owned(); 2])
    }

    #[test]
    fn what_comes_of_the_inputs_takes_the_place_of_what_came_before() {
        let old = "A remark.\n\n> a\n  old\n> b\n\nAnother.\n";
        let new = "A remark.\n\n> a\n  a\n  a\n> b\n  b\n  b\n\nAnother.\n";
        assert_eq!(play(old, echo).as_deref(), Ok(new));
        assert_eq!(play(new, echo).as_deref(), Ok(new), "and is stable");
    }

    #[test]
    fn a_line_that_is_no_input_is_told() {
        assert_eq!(play("> a\n> 1\n> b\n", echo), Err("> 1"));
    }

    #[test]
    fn a_page_shows_the_block_behind_the_link() {
        let page =
            "```text\nno\n```\n[`x`](a/b.txt).\n\n```text\n> a\n  b\n```\n\n```text\nno\n```\n";
        assert_eq!(block_behind(page, "a/b.txt"), Some("> a\n  b\n"));
        assert_eq!(block_behind(page, "a/c.txt"), None);
    }

    #[test]
    fn a_sentence_is_read_by_its_parts() {
        assert_eq!(parts("start", "start"), Some([]));
        assert_eq!(parts("{} ms pass", "5 ms pass"), Some(["5"]));
        assert_eq!(parts("give {}: {}", "give 1: a: b"), Some(["1", "a: b"]));
        assert_eq!(parts::<0>("start", "start now"), None);
        assert_eq!(parts::<1>("stop {}", "stop "), None, "a part is not empty");
        assert_eq!(parts::<1>("{} ms pass", "5 ms passed"), None);
        assert_eq!(parts::<2>("stop {}", "stop 1"), None, "as many as asked");
    }
}
