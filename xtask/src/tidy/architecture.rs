//! ARCHITECTURE.md's map has every crate on it, and each file that the page names is there.
//!
//! A file is named by a link, whose target the rule on [`links`](super::links) looks for; so this
//! rule checks that every name is a link, and leads to the file of that name.

use super::Complaints;
use super::edges::Package;
use crate::workspace::File;

const PAGE: &str = "ARCHITECTURE.md";

/// Endings of the files that the page names.
const ENDINGS: [&str; 4] = [".java", ".md", ".proto", ".rs"];

/// Complains of crates that the map lacks, and of names of files that lead to none.
pub(crate) fn check(packages: &[Package], markdown: &[File]) -> Complaints {
    let Some(page) = markdown.iter().find(|file| file.path == PAGE) else {
        return vec![format!("{PAGE}: is not there")];
    };
    let lacking = packages
        .iter()
        .filter(|package| !names(&page.text).any(|name| name == package.name))
        .map(|package| format!("{PAGE}: {} is not on the map", package.name));
    lacking.chain(unlinked(&page.text)).collect()
}

/// Complains of each file's name in back quotes that is not the text of a link to that file.
fn unlinked(text: &str) -> Complaints {
    let pieces: Vec<&str> = text.split('`').collect();
    let quoted = (1..pieces.len()).step_by(2);
    let files = quoted.filter(|at| {
        let name = pieces[*at];
        ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.contains(char::is_whitespace)
    });
    let lost = files.filter(|at| {
        let behind = pieces.get(at + 1).copied().unwrap_or_default();
        !leads_to(behind, pieces[*at])
    });
    lost.map(|at| format!("{PAGE}: `{}` is no link to a file of that name", pieces[at]))
        .collect()
}

/// Whether what stands behind a name makes it a link to a file of that name.
fn leads_to(behind: &str, name: &str) -> bool {
    let target = behind
        .strip_prefix("](")
        .and_then(|rest| rest.split_once(')'));
    target.is_some_and(|(target, _)| {
        let before = target.strip_suffix(name);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_the_map_lacks_is_told() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            manifest: String::new(),
            roots: Vec::new(),
            uses: Vec::new(),
        };
        let map = File {
            path: "ARCHITECTURE.md".to_owned(),
            text: "`airmail-log` keeps what is sent".to_owned(),
        };
        let packages = [package("airmail-log"), package("airmail")];
        assert_eq!(
            check(&packages, &[map]),
            ["ARCHITECTURE.md: airmail is not on the map"]
        );
        assert_eq!(check(&packages, &[]).len(), 1);
    }

    #[test]
    fn a_file_that_is_named_and_not_linked_is_told() {
        let told = |text: &str| unlinked(text).len();
        assert_eq!(told("The `shard.rs` decides."), 1);
        assert_eq!(told("[`gate.rs`](crates/airmail-flow/src/delegate.rs)"), 1);
        assert_eq!(told("[`gate.rs`](crates/airmail-flow/src/line.rs), `a`"), 1);
        assert_eq!(
            told("[`gate.rs`](crates/airmail-flow/src/gate.rs), `seg-…`"),
            0
        );
        assert_eq!(
            told("[`core/gate.rs`](a/core/gate.rs) and [`a.md`](a.md)"),
            0
        );
    }
}
