//! The two sides of a shard reach one another by messages alone, so that a border can be put between them.
//!
//! Gateway, tower and catalog are folders of their own, and none names another's modules: what one tells the
//! other is in `link.rs`, which knows neither. The catalog's messages may be named, for the tower does its
//! orders. So no method can touch two sides: it would have to name both.

use super::Complaints;
use crate::workspace::File;

/// Each folder or file, without the `.rs` of a file, and the modules that it must not name.
const SIDES: [(&str, &[&str]); 4] = [
    ("crates/airmail-broker/src/gateway", &["tower"]),
    ("crates/airmail-broker/src/tower", &["gateway"]),
    ("crates/airmail-broker/src/catalog", &["gateway", "tower"]),
    ("crates/airmail-broker/src/link", &["gateway", "tower"]),
];

/// Complains of each line that names the other side.
pub(crate) fn check(file: &File) -> Complaints {
    let sides = SIDES.iter().filter(|(place, _)| file.is_in(place));
    let pairs = sides.flat_map(|(place, others)| others.iter().map(move |other| (place, other)));
    let mut complaints = Complaints::new();
    for (place, other) in pairs {
        for (at, line) in file.text.lines().enumerate() {
            if names(line, other) {
                complaints.push(format!(
                    "{}:{}: {place} names the module {other}: sides meet in link.rs alone",
                    file.path,
                    at + 1
                ));
            }
        }
    }
    complaints
}

/// Whether a line of code names a module at the root of the crate, or what is in it.
fn names(line: &str, module: &str) -> bool {
    let code = line.trim_start();
    if code.starts_with("//") {
        return false;
    }
    let path = format!("{module}::");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let in_path = code.match_indices(&path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(is_word)
    });
    in_path
        || code.contains(&format!("crate::{module};"))
        || code.contains(&format!("mod {module};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: format!("crates/airmail-broker/src/{path}"),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_side_that_names_the_other_is_told() {
        let found = check(&file("gateway/live.rs", "use crate::tower::Tower;\n"));
        assert_eq!(
            found,
            [
                "crates/airmail-broker/src/gateway/live.rs:1: crates/airmail-broker/src/gateway names the module tower: sides meet in link.rs alone"
            ]
        );
        assert_eq!(check(&file("tower.rs", "\nuse crate::gateway;\n")).len(), 1);
        assert_eq!(
            check(&file("link.rs", "fn f(t: &tower::Tower) {}\n")).len(),
            1
        );
    }

    #[test]
    fn its_own_modules_comments_and_the_shard_are_free() {
        let own = "use crate::tower::storage_calls::Owner;\n// gateway::Gateway\nuse crate::link::ToTower;\n";
        assert!(check(&file("tower/log_requests.rs", own)).is_empty());
        let both = "use crate::gateway::Gateway;\nuse crate::tower::Tower;\n";
        assert!(check(&file("shard.rs", both)).is_empty());
    }
}
