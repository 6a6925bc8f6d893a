//! ARCHITECTURE.md's map has every crate on it.

use super::Complaints;
use super::edges::Package;
use crate::workspace::File;

/// Complains of crates that the map lacks.
pub(crate) fn check(packages: &[Package], markdown: &[File]) -> Complaints {
    let Some(map) = markdown.iter().find(|file| file.path == "ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md: is not there".to_owned()];
    };
    packages
        .iter()
        .filter(|package| !names(&map.text).any(|name| name == package.name))
        .map(|package| format!("ARCHITECTURE.md: {} is not on the map", package.name))
        .collect()
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_the_map_lacks_is_told() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            manifest: String::new(),
            roots: Vec::new(),
            uses: Vec::new(),
        };
        let map = File {
            path: "ARCHITECTURE.md".to_owned(),
            text: "`airmail-log` keeps what is sent".to_owned(),
        };
        let packages = [package("airmail-log"), package("airmail")];
        assert_eq!(
            check(&packages, &[map]),
            ["ARCHITECTURE.md: airmail is not on the map"]
        );
        assert_eq!(check(&packages, &[]).len(), 1);
    }
}
