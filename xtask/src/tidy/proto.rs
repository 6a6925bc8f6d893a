//! The API is read by people first: it begins by saying what it is, and every call that carries
//! messages has its words.

use super::Complaints;
use crate::workspace::File;

/// The services whose calls need words.
const SPOKEN_OF: [&str; 2] = ["Airmail", "Mailbox"];

/// Complains of calls of these services without a comment, and of a file that does not begin with
/// one.
pub(crate) fn check(file: &File) -> Complaints {
    let mut complaints = Vec::new();
    if !file.text.starts_with("//") {
        complaints.push(format!(
            "{}: does not begin by saying what it is",
            file.path
        ));
    }
    let mut service = "";
    let mut before = "";
    for (number, line) in file.text.lines().map(str::trim).enumerate() {
        if let Some(name) = line.strip_prefix("service ") {
            service = name.split(' ').next().unwrap_or_default();
        }
        let commented = before.starts_with("//");
        if line.starts_with("rpc ") && SPOKEN_OF.contains(&service) && !commented {
            complaints.push(format!(
                "{}:{}: a call without a comment",
                file.path,
                number + 1
            ));
        }
        before = line;
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_words_is_told() {
        let text = "// It.\nservice Airmail {\n  rpc Publish(A) returns (B);\n}\n".to_owned();
        let complaints = check(&File {
            path: "a.proto".to_owned(),
            text,
        });
        assert_eq!(complaints, ["a.proto:3: a call without a comment"]);
    }

    #[test]
    fn a_file_without_words_is_told() {
        let file = File {
            path: "a.proto".to_owned(),
            text: "syntax = \"proto3\";\n".to_owned(),
        };
        assert_eq!(check(&file).len(), 1);
    }
}
