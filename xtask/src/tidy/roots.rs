//! Every crate root says what the crate is, forbids unsafe code, and takes the one lint table.

use super::Complaints;
use super::edges::Package;
use anyhow::Context;
use std::fs;

/// Complains of a root or a manifest that lacks something.
pub(crate) fn check(packages: &[Package]) -> anyhow::Result<Complaints> {
    let mut complaints = Vec::new();
    for package in packages {
        for root in &package.roots {
            let text = fs::read_to_string(root).with_context(|| format!("cannot read {root}"))?;
            complaints.extend(check_root(root, &text));
        }
        let manifest: toml::Table = fs::read_to_string(&package.manifest)?.parse()?;
        complaints.extend(check_manifest(&package.name, &manifest));
    }
    Ok(complaints)
}

fn check_root(path: &str, text: &str) -> Complaints {
    let mut complaints = Vec::new();
    if !text.starts_with("//!") {
        complaints.push(format!("{path}: does not begin by saying what it is (//!)"));
    }
    if !text.contains("#![forbid(unsafe_code)]") {
        complaints.push(format!("{path}: lacks #![forbid(unsafe_code)]"));
    }
    complaints
}

fn check_manifest(name: &str, manifest: &toml::Table) -> Complaints {
    let inherits = |section: &str, key: &str| {
        let value = manifest.get(section).and_then(|section| section.get(key));
        value.and_then(toml::Value::as_bool) == Some(true)
    };
    let mut complaints = Vec::new();
    if !inherits("lints", "workspace") {
        complaints.push(format!("{name}: does not take the workspace's lints"));
    }
    let library = !matches!(name, "airmail" | "airmail-lab" | "xtask");
    let uses_anyhow = manifest
        .get("dependencies")
        .is_some_and(|table| table.get("anyhow").is_some());
    if library && uses_anyhow {
        complaints.push(format!("{name}: a library has typed errors, not anyhow"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_root_is_told() {
        assert_eq!(check_root("a/src/lib.rs", "pub mod x;\n").len(), 2);
        assert!(check_root("a/src/lib.rs", "//! It.\n#![forbid(unsafe_code)]\n").is_empty());
    }

    #[test]
    fn a_manifest_of_its_own_ways_is_told() {
        let manifest = "[dependencies]\nanyhow = \"1\"\n".parse().unwrap();
        assert_eq!(check_manifest("airmail-log", &manifest).len(), 2);
        let manifest = "[lints]\nworkspace = true\n".parse().unwrap();
        assert!(check_manifest("airmail-log", &manifest).is_empty());
    }
}
