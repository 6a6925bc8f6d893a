//! A core never gives up in silence: it names the input that leads there, or reports a programmer
//! error.
//!
//! A `let … else` that leaves by `return` or `continue` looks the same in both cases, and only one of them
//! can happen. So it says which: its body has a `bug!`, or a comment in it or right above the statement
//! begins with `Input:` and names who or what leads there. One that returns an `Err` is not silent.

use super::Complaints;
use crate::workspace::File;

/// The folders and files that are held to it, without the `.rs` of a file.
const PLACES: [&str; 8] = [
    "crates/airmail-broker/src/catalog",
    "crates/airmail-broker/src/gateway",
    "crates/airmail-broker/src/tower",
    "crates/airmail-client/src/core",
    "crates/airmail-link/src",
    "crates/airmail-log/src/journal",
    "crates/airmail-log-kafka/src",
    "crates/airmail-match/src",
];

/// Complains of each `let … else` that does not say why it gives up.
pub(crate) fn check(file: &File) -> Complaints {
    if PLACES.iter().any(|place| file.is_in(place)) {
        complaints(file)
    } else {
        Complaints::new()
    }
}

fn complaints(file: &File) -> Complaints {
    let lines = file.product_lines();
    let mut complaints = Complaints::new();
    for at in 0..lines.len() {
        if begins_else_of_let(&lines, at) && !says_why(&lines, at) {
            complaints.push(format!(
                "{}:{}: a `let … else` gives up in silence: a bug!, or a comment `Input: …` with who leads there",
                file.path,
                at + 1
            ));
        }
    }
    complaints
}

/// Whether the `else` of a `let … else` is on this line. That of an `if` stands behind a brace.
fn begins_else_of_let(lines: &[&str], at: usize) -> bool {
    let line = lines[at].trim();
    if line.starts_with("//") {
        return false;
    }
    line.split_once("else {")
        .is_some_and(|(before, _)| !before.trim_end().ends_with('}'))
}

fn says_why(lines: &[&str], at: usize) -> bool {
    let body = body(lines, at);
    let leaves = body.iter().any(|line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        !line.trim_start().starts_with("//")
            && words.any(|word| matches!(word, "return" | "continue"))
    });
    let tells = body
        .iter()
        .any(|line| line.contains("return Err(") || line.contains("bug!("));
    !leaves
        || tells
        || body.iter().any(|line| names_input(line))
        || above(lines, at).any(|line| names_input(line))
}

fn names_input(line: &str) -> bool {
    line.trim_start().starts_with("// Input: ")
}

/// The lines of the block that begins on a line.
fn body<'a>(lines: &'a [&'a str], at: usize) -> &'a [&'a str] {
    let mut depth = 0;
    for (end, line) in lines.iter().enumerate().skip(at) {
        let from = if end == at {
            line.find("else {").unwrap_or(0)
        } else {
            0
        };
        for character in line[from..].chars() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
        if depth == 0 {
            return &lines[at..=end];
        }
    }
    &lines[at..]
}

/// The comment right above the statement whose `else` is on a line.
fn above<'a>(lines: &'a [&'a str], at: usize) -> impl Iterator<Item = &'a &'a str> {
    let begins = lines[..=at]
        .iter()
        .rposition(|line| line.trim_start().starts_with("let "));
    let before = lines[..begins.unwrap_or(0)].iter().rev();
    before.take_while(|line| line.trim_start().starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> usize {
        let text = text.to_owned();
        let path = "crates/airmail-client/src/core/a.rs".to_owned();
        check(&File { path, text }).len()
    }

    #[test]
    fn giving_up_in_silence_is_told() {
        assert_eq!(told("let Some(a) = b else { return };\n"), 1);
        assert_eq!(told("let Some(a) = b else {\n    return None;\n};\n"), 1);
        assert_eq!(
            told(
                "for b in c {\n    let A { b, .. } = a\n    else {\n        continue;\n    };\n}\n"
            ),
            1
        );
        assert_eq!(
            told("// Because.\nlet Some(a) = b else {\n    return;\n};\n"),
            1
        );
        // What another statement says is not said for this one.
        assert_eq!(
            told("// Input: x.\nlet a = b;\nlet Some(a) = b else {\n    return;\n};\n"),
            1
        );
        assert_eq!(
            told("let Some(a) = b else { return };\nbug!(\"gone\");\n"),
            1
        );
    }

    #[test]
    fn a_programmer_error_an_input_and_an_error_are_allowed() {
        assert_eq!(
            told("let Some(a) = b else {\n    bug!(\"{b} is gone\");\n    return;\n};\n"),
            0
        );
        assert_eq!(
            told("let Some(a) = b else {\n    // Input: a node that is late.\n    return;\n};\n"),
            0
        );
        assert_eq!(
            told(
                "// Input: a node\n// that is late.\nlet Some(a) = b\n    .c()\nelse {\n    return;\n};\n"
            ),
            0
        );
        assert_eq!(
            told("let Some(a) = b else {\n    return Err(damaged(b));\n};\n"),
            0
        );
    }

    #[test]
    fn what_does_not_leave_and_the_else_of_an_if_are_allowed() {
        assert_eq!(told("let Some(a) = b else {\n    break;\n};\n"), 0);
        assert_eq!(
            told("if let Some(a) = b {\n    c\n} else {\n    return;\n}\n"),
            0
        );
        assert_eq!(
            told("#[cfg(test)]\nmod tests {\n    let Some(a) = b else { return };\n}\n"),
            0
        );
    }

    #[test]
    fn only_the_named_places_are_held_to_it() {
        let text = "let Some(a) = b else { return };\n".to_owned();
        let path = "crates/airmail-client/src/core_of_it.rs".to_owned();
        assert!(check(&File { path, text }).is_empty());
    }
}
