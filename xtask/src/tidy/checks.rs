//! Crates whose invariants are asserted go on asserting them: each has a least number of checks.
//!
//! A check is an `assert!`, `assert_eq!`, `assert_ne!`, their debug kind, or a `bug!`, outside tests. The
//! numbers are no goals; they are there so that checks do not go away unseen.

use super::Complaints;
use crate::workspace::File;

/// Folders or files, without the `.rs` of a file, and the checks that there are at least.
const FLOORS: [(&str, usize); 5] = [
    ("crates/airmail-broker/src/catalog", 30),
    ("crates/airmail-broker/src/gateway", 25),
    ("crates/airmail-broker/src/tower", 15),
    ("crates/airmail-client/src/core", 35),
    ("crates/airmail-log/src", 60),
];

/// Beginnings of a check.
const KINDS: [&str; 7] = [
    "assert!(",
    "assert_eq!(",
    "assert_ne!(",
    "debug_assert!(",
    "debug_assert_eq!(",
    "debug_assert_ne!(",
    "bug!(",
];

/// Complains of each place with fewer checks than it is to have.
pub(crate) fn check(rust: &[File]) -> Complaints {
    FLOORS
        .iter()
        .filter_map(|(place, floor)| below(rust, place, *floor))
        .collect()
}

fn below(rust: &[File], place: &str, floor: usize) -> Option<String> {
    let there = rust.iter().filter(|file| file.is_in(place));
    let count: usize = there.map(count).sum();
    (count < floor)
        .then(|| format!("{place}: {count} checks of invariants outside tests; at least {floor}"))
}

/// The checks of a file. A conformance suite is tests, wherever it stands.
fn count(file: &File) -> usize {
    if file.path.contains("/conformance") {
        return 0;
    }
    let lines = file.product_lines();
    let code = lines.iter().map(|line| line.trim_start());
    let code = code.filter(|line| !line.starts_with("//"));
    code.filter(|line| KINDS.iter().any(|kind| has(line, kind)))
        .count()
}

/// Whether a line has a macro's call, and not that of one whose name ends so.
fn has(line: &str, call: &str) -> bool {
    line.match_indices(call).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_place_with_fewer_checks_than_it_had_is_told() {
        let checked = "assert!(a);\n    debug_assert_eq!(a, b);\nNone => bug!(\"c\"),\n";
        let rust = [
            file("crates/a/src/b.rs", checked),
            file("crates/a/src/b/c.rs", "assert_ne!(a, b);\n"),
        ];
        assert_eq!(below(&rust, "crates/a/src/b", 4), None);
        assert_eq!(
            below(&rust, "crates/a/src/b", 5).unwrap(),
            "crates/a/src/b: 4 checks of invariants outside tests; at least 5"
        );
    }

    #[test]
    fn tests_comments_and_the_macros_of_property_tests_do_not_count() {
        let rust = [
            file("crates/a/src/tests.rs", "assert!(a);\n"),
            file("crates/a/src/conformance/b.rs", "assert!(a);\n"),
            file(
                "crates/a/src/c.rs",
                "// assert!(a);\nprop_assert!(a);\n#[cfg(test)]\nmod tests {\nassert!(a);\n}\n",
            ),
        ];
        assert!(below(&rust, "crates/a/src", 1).is_some());
        assert!(below(&rust, "crates/a/src", 0).is_none());
    }
}
