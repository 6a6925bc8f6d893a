//! The glossary defines each word once: a word with two definitions means two things.
//!
//! A definition is a word in bold. A compound ("**place of a node**") is a word of its own.

use super::Complaints;
use crate::workspace::File;
use std::collections::BTreeSet;

const PAGE: &str = "docs/glossary.md";

/// Complains of each word that the glossary defines again, and of a glossary without words.
pub(crate) fn check(markdown: &[File]) -> Complaints {
    let Some(page) = markdown.iter().find(|file| file.path == PAGE) else {
        return vec![format!("{PAGE}: is not there")];
    };
    let mut complaints = Complaints::new();
    let mut words = BTreeSet::new();
    for word in bold(&page.text) {
        if !words.insert(word.to_lowercase()) {
            complaints.push(format!("{PAGE}: `{word}` is defined twice"));
        }
    }
    if words.is_empty() {
        complaints.push(format!("{PAGE}: defines no words"));
    }
    complaints
}

/// Texts in bold.
fn bold(text: &str) -> impl Iterator<Item = &str> {
    text.split("**").skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Complaints {
        let (path, text) = (PAGE.to_owned(), text.to_owned());
        check(&[File { path, text }])
    }

    #[test]
    fn a_word_with_two_definitions_is_told() {
        let complaints = told("- **line**: a queue. **gate**: admits.\n- **Line**: a wire.\n");
        assert_eq!(complaints, [format!("{PAGE}: `Line` is defined twice")]);
        assert_eq!(told("no words").len(), 1);
        assert_eq!(check(&[]).len(), 1);
    }

    #[test]
    fn compounds_are_words_of_their_own() {
        let text = "- **place**: an index. **place of a process**: a machine.\n";
        assert!(told(text).is_empty());
    }
}
