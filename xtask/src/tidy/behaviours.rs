//! Tests that `docs/behaviours.md` names are there.

use super::Complaints;
use crate::workspace::File;

const PAGE: &str = "docs/behaviours.md";

/// Complains of each test in the page's tables that its file does not have, and of a page that
/// names none. A row is `| behaviour | file | tests |`, the last two in back quotes.
pub(crate) fn check(markdown: &[File], rust: &[File]) -> Complaints {
    let Some(page) = markdown.iter().find(|file| file.path == PAGE) else {
        return vec![format!("{PAGE}: is not there")];
    };
    let mut named = 0;
    let mut complaints = Complaints::new();
    for row in page.text.lines().filter(|line| line.starts_with('|')) {
        let mut cells = row.split('|').skip(2);
        let (Some(file), Some(tests)) = (cells.next(), cells.next()) else {
            continue;
        };
        for path in quoted(file) {
            let source = rust.iter().find(|file| file.path == path);
            for test in quoted(tests) {
                named += 1;
                if !source.is_some_and(|source| has(&source.text, test)) {
                    complaints.push(format!("{PAGE}: {path} has no test {test}"));
                }
            }
        }
    }
    if named == 0 {
        complaints.push(format!("{PAGE}: names no tests"));
    }
    complaints
}

/// Texts between back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a function of this name is there; a case of the conformance suite is generic.
fn has(source: &str, test: &str) -> bool {
    source
        .split(&format!("fn {test}"))
        .skip(1)
        .any(|rest| rest.starts_with(['(', '<']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(page: &str) -> Complaints {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let source = "fn it_holds() {}\npub fn it_holds_anywhere<S: Subject>(s: S) {}\n";
        check(&[file(PAGE, page)], &[file("tests/a.rs", source)])
    }

    #[test]
    fn a_test_that_there_is_not_is_told() {
        assert_eq!(complaints("| x | `tests/a.rs` | `it_held` |").len(), 1);
        assert_eq!(complaints("| x | `tests/a.rs` | `it_hold` |").len(), 1);
        assert_eq!(complaints("| x | `tests/b.rs` | `it_holds` |").len(), 1);
        assert_eq!(
            complaints("| x | `tests/a.rs` | `it_holds` `gone` `lost` |").len(),
            2
        );
        assert_eq!(complaints("no tables").len(), 1);
        assert_eq!(check(&[], &[]).len(), 1);
    }

    #[test]
    fn tests_that_there_are_are_allowed() {
        let page = "| behaviour | file | tests |\n|---|---|---|\n\
                    | x | `tests/a.rs` | `it_holds`, `it_holds_anywhere` |";
        assert!(complaints(page).is_empty());
    }
}
