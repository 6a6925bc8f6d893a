//! Parts own their state: no struct of a core has more than fifteen fields.
//!
//! Lists of settings and of counters are exempt by name: their fields do not depend on one another.

use super::Complaints;
use crate::workspace::File;

const FIELDS_MAX: usize = 15;

/// The cores, without the `.rs` of a file.
const CORES: [&str; 12] = [
    "crates/airmail-broker/src",
    "crates/airmail-client/src/core",
    "crates/airmail-flow/src",
    "crates/airmail-link/src",
    "crates/airmail-log/src",
    "crates/airmail-log-kafka/src",
    "crates/airmail-match/src",
    "crates/airmail-membership/src",
    "crates/airmail-model/src",
    "crates/airmail-partition/src",
    "crates/airmail-topology/src",
    "crates/airmail-wire/src",
];

/// The structs that may have more, with the reason.
const EXCUSED: [(&str, &str); 3] = [
    // Settings.
    ("crates/airmail-broker/src/config.rs", "ShardConfig"),
    ("crates/airmail-log/src/journal/config.rs", "JournalConfig"),
    // Counters.
    ("crates/airmail-broker/src/stats.rs", "Stats"),
];

/// Complains of each struct that has too many fields.
pub(crate) fn check(file: &File) -> Complaints {
    if !CORES.iter().any(|core| file.is_in(core)) {
        return Complaints::new();
    }
    let structs = structs(file).into_iter();
    let large = structs.filter(|(name, fields)| {
        *fields > FIELDS_MAX && !EXCUSED.contains(&(file.path.as_str(), name.as_str()))
    });
    large
        .map(|(name, fields)| {
            format!(
                "{}: {name} has {fields} fields; at most {FIELDS_MAX}: divide it into parts that own their state",
                file.path
            )
        })
        .collect()
}

/// Each struct with named fields, and how many it has.
fn structs(file: &File) -> Vec<(String, usize)> {
    let lines = file.product_lines();
    let mut structs = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((_, rest)) = line.split_once("struct ") else {
            continue;
        };
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let name: String = rest.chars().take_while(|c| word(*c)).collect();
        if !line.trim_start().starts_with("//") && line.ends_with('{') && !name.is_empty() {
            let indent = line.len() - line.trim_start().len();
            structs.push((name, fields(&lines[at + 1..], indent)));
        }
    }
    structs
}

/// The fields up to the brace that ends a struct with this indent.
fn fields(lines: &[&str], indent: usize) -> usize {
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let inside = lines
        .iter()
        .take_while(|line| !(line.trim() == "}" && indent_of(line) == indent));
    inside
        .filter(|line| indent_of(line) == indent + 4 && is_field(line.trim_start()))
        .count()
}

/// Whether a line begins with a field's name and a colon, visibility before it.
fn is_field(line: &str) -> bool {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    line.split_once(": ").is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, count: usize) -> File {
        let fields: String = (0..count)
            .map(|n| {
                format!("    /// Says: much.\n    #[cfg(x)]\n    pub(super) field_{n}: Vec<u8>,\n")
            })
            .collect();
        File {
            path: path.to_owned(),
            text: format!(
                "pub struct Large<T> {{\n{fields}    pub last: T,\n}}\n\nimpl Large {{\n    other: u8,\n}}\n"
            ),
        }
    }

    #[test]
    fn a_struct_of_more_than_fifteen_fields_is_told() {
        let complaints = check(&file("crates/airmail-broker/src/a.rs", 15));
        assert_eq!(complaints.len(), 1);
        assert!(
            complaints[0].contains("Large has 16 fields"),
            "{complaints:?}"
        );
        assert!(check(&file("crates/airmail-broker/src/a.rs", 14)).is_empty());
    }

    #[test]
    fn both_sides_of_the_shard_and_the_catalog_are_held_to_it() {
        for core in ["catalog", "gateway", "tower"] {
            for path in [format!("{core}.rs"), format!("{core}/a.rs")] {
                let path = format!("crates/airmail-broker/src/{path}");
                assert_eq!(check(&file(&path, 15)).len(), 1, "{path}");
            }
        }
    }

    #[test]
    fn what_is_no_core_may_have_as_many_as_it_likes() {
        assert!(check(&file("crates/airmail-bench/src/a.rs", 30)).is_empty());
    }

    #[test]
    fn each_excuse_is_still_needed() {
        let rust = crate::workspace::files(&[".rs"]).unwrap();
        for (path, name) in EXCUSED {
            let file = rust.iter().find(|file| file.path == path);
            let found = file.map(structs).unwrap_or_default().into_iter();
            let mut large = found.filter(|(_, fields)| *fields > FIELDS_MAX);
            assert!(large.any(|(found, _)| found == name), "{path}: {name}");
        }
    }
}
