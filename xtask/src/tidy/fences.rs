//! Commands in the documentation are run by a test (`crates/airmail/tests/end_to_end/book.rs`) if they stand in
//! a `console` block. Above another kind of shell block stands the reason why it is not run.

use super::Complaints;
use crate::workspace::File;

const MARK: &str = "<!-- not run: ";

/// Complains of shell blocks that are neither run nor excused.
pub(crate) fn check(file: &File) -> Complaints {
    let mut complaints = Vec::new();
    let mut before = "";
    for (number, line) in file.text.lines().enumerate() {
        let shell = ["```sh", "```bash", "```shell", "```text console"].contains(&line.trim());
        if shell && !before.starts_with(MARK) {
            complaints.push(format!(
                "{}:{}: commands that nothing runs: make it a console block, or say `{MARK}why -->` above it",
                file.path,
                number + 1,
            ));
        }
        if !line.trim().is_empty() {
            before = line.trim();
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Complaints {
        check(&File {
            path: "README.md".to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn commands_that_nothing_runs_are_told() {
        assert_eq!(complaints("Try:\n\n```sh\nairmail serve\n```\n").len(), 1);
    }

    #[test]
    fn commands_that_are_run_or_excused_are_allowed() {
        assert!(complaints("```console\n$ airmail topics\n```\n").is_empty());
        assert!(
            complaints("<!-- not run: it does not end -->\n```sh\nairmail serve\n```\n").is_empty()
        );
    }
}
