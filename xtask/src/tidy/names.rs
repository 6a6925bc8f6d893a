//! Names of crates and modules say what these hold. A module for what fits nowhere grows without
//! end.

use super::Complaints;
use super::edges::Package;

const BANNED: [&str; 9] = [
    "base", "common", "core", "helper", "helpers", "misc", "shared", "util", "utils",
];

/// Modules that may have such a name, with the reason.
const EXCUSED: [&str; 2] = [
    // The sans-I/O half of the SDK; what it is the core of stands before it.
    "crates/airmail-client/src/core",
    "crates/airmail-client/src/core.rs",
];

/// Complains of a file with code, or its folder, with a name that says nothing.
pub(crate) fn check_path(path: &str) -> Complaints {
    if EXCUSED
        .iter()
        .any(|excused| path == *excused || path.starts_with(&format!("{excused}/")))
    {
        return Vec::new();
    }
    path.split('/')
        .map(|part| part.split_once('.').map_or(part, |(name, _)| name))
        .filter(|part| BANNED.contains(&part.to_ascii_lowercase().as_str()))
        .map(|part| format!("{path}: `{part}` says nothing; name it by what it holds"))
        .collect()
}

/// Complains of a crate with such a name.
pub(crate) fn check_packages(packages: &[Package]) -> Complaints {
    packages
        .iter()
        .filter(|package| package.name.split('-').any(|part| BANNED.contains(&part)))
        .map(|package| format!("{}: says nothing; name it by what it holds", package.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_says_nothing_is_told() {
        assert_eq!(check_path("crates/airmail-log/src/utils.rs").len(), 1);
        assert_eq!(check_path("crates/airmail/tests/common/mod.rs").len(), 1);
        assert_eq!(check_path("partitioners/src/Utils.java").len(), 1);
    }

    #[test]
    fn a_name_that_says_something_is_allowed() {
        assert!(check_path("crates/airmail-client/src/core/backoff.rs").is_empty());
        assert!(check_path("crates/airmail-log/src/database.rs").is_empty());
    }
}
