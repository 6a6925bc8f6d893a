//! Nothing half done is committed: no notes to oneself, no stubs, no tests switched off.

use super::Complaints;
use crate::workspace::File;

/// Words in two halves, so that this file does not find itself.
const BANNED: [(&str, &str); 7] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("todo", "!("),
    ("unimplemented", "!("),
    ("#[ign", "ore"),
    ("@Dis", "abled"),
];

/// Complains of each leftover, by line.
pub(crate) fn check(file: &File) -> Complaints {
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for (head, tail) in BANNED {
            let word = format!("{head}{tail}");
            if line.contains(&word) {
                complaints.push(format!("{}:{}: {word} is left over", file.path, number + 1));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leftover_is_told() {
        for (head, tail) in BANNED {
            let file = File {
                path: "a.rs".to_owned(),
                text: format!("fine\n// {head}{tail}\n"),
            };
            let complaints = check(&file);
            assert_eq!(complaints.len(), 1);
            assert!(complaints[0].starts_with("a.rs:2: "));
        }
    }

    #[test]
    fn the_name_of_an_error_is_no_leftover() {
        let file = File {
            path: "a.rs".to_owned(),
            text: "Error::unimplemented(\"key\")".to_owned(),
        };
        assert!(check(&file).is_empty());
    }
}
