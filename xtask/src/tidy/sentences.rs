//! A doc comment is understood without the name of what it stands before: it begins with a noun or a verb.
//!
//! A relative clause in place of a noun ("What was measured."), a bare genitive ("Of the node.") and a
//! reference in place of a description ("As `push`.") leave the noun to the reader, so a first line must not
//! begin with one of [`REFUSED`]. `Whether`, `When` and `Where` are good English before a flag, a time and a
//! place.

use super::Complaints;
use crate::workspace::File;

/// First words that leave the noun to the reader.
const REFUSED: [&str; 16] = [
    "As",
    "Because",
    "How",
    "Of",
    "So",
    "Such",
    "That",
    "What",
    "Whatever",
    "Which",
    "Whichever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Why",
];

/// Complains of each doc comment that begins with such a word.
pub(crate) fn check(file: &File) -> Complaints {
    let mut complaints = Complaints::new();
    let mut before = None;
    for (at, line) in file.text.lines().enumerate() {
        let doc = doc(line);
        let marker = doc.map(|(marker, _)| marker);
        if let Some((_, text)) = doc.filter(|_| marker != before) {
            let word = first_word(text);
            if REFUSED.contains(&word) {
                complaints.push(format!(
                    "{}:{}: a doc comment begins with `{word}`: begin with a noun or a verb",
                    file.path,
                    at + 1
                ));
            }
        }
        before = marker;
    }
    complaints
}

/// The marker and the text of a line of a doc comment.
fn doc(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    ["///", "//!"].into_iter().find_map(|marker| {
        let text = line.strip_prefix(marker)?;
        (!text.starts_with('/')).then_some((marker, text))
    })
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Complaints {
        check(&File {
            path: "crates/airmail-log/src/a.rs".to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn a_comment_that_leaves_the_noun_to_the_reader_is_told() {
        let text = "//! What was measured.\n\n/// Of the node.\n    /// Which.\n    field: u8,\n";
        let complaints = told(text);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].starts_with("crates/airmail-log/src/a.rs:1: "));
        assert!(complaints[1].contains(":3: a doc comment begins with `Of`"));
        for word in REFUSED {
            assert_eq!(told(&format!("    /// {word} it is.\n")).len(), 1, "{word}");
        }
    }

    #[test]
    fn each_comment_counts_by_its_first_line() {
        assert_eq!(told("/// Fields.\na: u8,\n/// Why.\nb: u8,\n").len(), 1);
        assert_eq!(told("//! Nouns.\n/// Which ones.\n").len(), 1);
        assert!(told("/// Lists them.\n/// What is absent is left out.\n").is_empty());
    }

    #[test]
    fn nouns_verbs_and_comments_that_document_nothing_are_allowed() {
        assert!(told("/// Number of records.\n/// \n").is_empty());
        assert!(told("/// Whether the queue is closed.\n").is_empty());
        assert!(told("/// `Of` makes one.\n/// Assigned.\n").is_empty());
        assert!(told("// What follows is sorted.\n//// What was here.\nlet a = 1;\n").is_empty());
    }
}
