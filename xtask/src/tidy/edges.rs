//! Allowed dependencies between crates: arrows point down only, and a new arrow is a decision.
//!
//! Two wings have rules of their own. Nothing outside the laboratory (`lab/`) uses what is in it, so that no
//! experiment reaches users. And the test kit is for tests: no program is built with it.

use super::Complaints;
use crate::process::{cargo, output};
use anyhow::Context;
use serde_json::Value;
use std::path::Path;

/// The folder of the laboratory.
const LABORATORY: &str = "lab";
/// The crate that only tests use.
const TEST_KIT: &str = "airmail-testkit";

/// The arrows that are allowed.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "airmail",
        &[
            "airmail-bench",
            "airmail-client",
            "airmail-collect",
            "airmail-log",
            "airmail-model",
            "airmail-node",
            "airmail-partition",
            "airmail-proto",
            "airmail-topology",
        ],
    ),
    (
        "airmail-bench",
        &[
            "airmail-client",
            "airmail-match",
            "airmail-model",
            "airmail-proto",
        ],
    ),
    (
        "airmail-broker",
        &[
            "airmail-flow",
            "airmail-log",
            "airmail-match",
            "airmail-model",
        ],
    ),
    ("airmail-client", &["airmail-model", "airmail-proto"]),
    (
        "airmail-collect",
        &["airmail-client", "airmail-model", "airmail-partition"],
    ),
    (
        "airmail-experiments",
        &[
            "airmail-bench",
            "airmail-client",
            "airmail-flow",
            "airmail-model",
            "airmail-plot",
            "airmail-queueing",
        ],
    ),
    ("airmail-flow", &["airmail-model"]),
    (
        "airmail-lab",
        &[
            "airmail-bench",
            "airmail-client",
            "airmail-experiments",
            "airmail-flow",
            "airmail-mailbox",
            "airmail-model",
            "airmail-plot",
            "airmail-proto",
            "airmail-queueing",
        ],
    ),
    ("airmail-link", &["airmail-log", "airmail-model"]),
    ("airmail-log", &["airmail-model"]),
    ("airmail-log-kafka", &["airmail-log", "airmail-model"]),
    ("airmail-mailbox", &["airmail-model"]),
    ("airmail-match", &["airmail-model"]),
    ("airmail-membership", &["airmail-model", "airmail-wire"]),
    ("airmail-model", &[]),
    (
        "airmail-node",
        &[
            "airmail-broker",
            // Its tests alone.
            "airmail-client",
            "airmail-flow",
            "airmail-link",
            "airmail-log",
            "airmail-log-kafka",
            "airmail-mailbox",
            "airmail-membership",
            "airmail-model",
            "airmail-proto",
            "airmail-wire",
        ],
    ),
    ("airmail-partition", &[]),
    ("airmail-plot", &[]),
    ("airmail-proto", &["airmail-model"]),
    ("airmail-queueing", &["airmail-flow", "airmail-model"]),
    (
        "airmail-sim",
        &[
            "airmail-broker",
            "airmail-client",
            "airmail-flow",
            "airmail-link",
            "airmail-log",
            "airmail-log-kafka",
            "airmail-model",
        ],
    ),
    ("airmail-testkit", &["airmail-mailbox"]),
    ("airmail-topology", &[]),
    (
        "airmail-wire",
        &["airmail-link", "airmail-log", "airmail-model"],
    ),
    // It has to run on a tree that does not compile.
    ("xtask", &[]),
];

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its manifest, as an absolute path.
    pub(crate) manifest: String,
    /// Root files of its libraries and binaries, as absolute paths.
    pub(crate) roots: Vec<String>,
    /// The crates of ours that it uses, also in its tests.
    pub(crate) uses: Vec<Used>,
}

/// A crate of ours that another one uses.
#[derive(Debug)]
pub(crate) struct Used {
    name: String,
    /// Where it is, as an absolute path.
    path: String,
    in_tests_alone: bool,
}

impl Used {
    fn read(dependency: &Value) -> Option<Used> {
        let text = |field: &str| dependency[field].as_str().map(str::to_owned);
        Some(Used {
            name: text("name")?,
            path: text("path")?,
            in_tests_alone: dependency["kind"] == "dev",
        })
    }
}

/// The crates of the workspace, as cargo tells them.
pub(crate) fn packages() -> anyhow::Result<Vec<Package>> {
    let text = output(&mut cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?;
    read(&serde_json::from_str(&text)?)
}

fn read(metadata: &Value) -> anyhow::Result<Vec<Package>> {
    let packages = metadata["packages"]
        .as_array()
        .context("metadata without packages")?;
    Ok(packages.iter().map(read_package).collect())
}

fn read_package(package: &Value) -> Package {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_root = |target: &&Value| {
        list(&target["kind"])
            .iter()
            .any(|kind| kind == "lib" || kind == "bin")
    };
    Package {
        name: text(&package["name"]),
        manifest: text(&package["manifest_path"]),
        roots: list(&package["targets"])
            .iter()
            .filter(is_root)
            .map(|target| text(&target["src_path"]))
            .collect(),
        uses: list(&package["dependencies"])
            .iter()
            .filter_map(Used::read)
            .collect(),
    }
}

/// Complains of arrows that are not allowed, and of crates that the list does not know.
pub(crate) fn check(packages: &[Package]) -> Complaints {
    let mut complaints = Vec::new();
    for package in packages {
        let name = &package.name;
        let Some((_, allowed)) = ALLOWED.iter().find(|(crate_name, _)| crate_name == name) else {
            complaints.push(format!(
                "{name}: a new crate: say in xtask/src/tidy/edges.rs what it may use"
            ));
            continue;
        };
        let strange = package.uses.iter().filter(|used| used.name != *name);
        complaints.extend(strange.filter_map(|used| complaint(package, used, allowed)));
    }
    complaints
}

fn complaint(package: &Package, used: &Used, allowed: &[&str]) -> Option<String> {
    let (name, used_name) = (&package.name, &used.name);
    if used_name == TEST_KIT {
        let wrong = !used.in_tests_alone;
        return wrong.then(|| format!("{name} must not use {used_name} but in its tests"));
    }
    if is_in_laboratory(&used.path) && !is_in_laboratory(&package.manifest) {
        return Some(format!(
            "{name} must not use {used_name}: nothing outside {LABORATORY}/ does"
        ));
    }
    let known = allowed.contains(&used_name.as_str());
    (!known).then(|| format!("{name} must not use {used_name}: arrows point down only"))
}

/// Whether a crate is there, by its directory or its manifest.
fn is_in_laboratory(path: &str) -> bool {
    let directories = Path::new(path).ancestors().skip(1).take(2);
    let mut names = directories.filter_map(Path::file_name);
    names.any(|name| name == LABORATORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate that uses another one, by where the two are.
    fn uses(from: &str, to: &str, kind: Option<&str>) -> Package {
        let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        let metadata = serde_json::json!({ "packages": [{
            "name": name(from), "manifest_path": format!("/x/{from}/Cargo.toml"), "targets": [],
            "dependencies": [
                { "name": name(to), "path": format!("/x/{to}"), "kind": kind },
                { "name": "bytes", "path": null },
            ],
        }]});
        read(&metadata).unwrap().remove(0)
    }

    #[test]
    fn an_arrow_that_points_up_is_told() {
        let complaints = check(&[uses("crates/airmail-log", "crates/airmail-broker", None)]);
        assert_eq!(
            complaints,
            ["airmail-log must not use airmail-broker: arrows point down only"]
        );
    }

    #[test]
    fn an_unknown_crate_is_told() {
        let unknown = uses("crates/airmail-novelty", "crates/airmail-model", None);
        assert_eq!(check(&[unknown]).len(), 1);
    }

    #[test]
    fn an_arrow_that_points_down_is_allowed() {
        let down = uses("crates/airmail-broker", "crates/airmail-log", None);
        let within = uses("lab/airmail-lab", "lab/airmail-plot", None);
        assert!(check(&[down, within]).is_empty());
    }

    #[test]
    fn nobody_outside_the_laboratory_uses_it() {
        let complaints = check(&[uses("crates/airmail-bench", "lab/airmail-plot", None)]);
        assert_eq!(
            complaints,
            ["airmail-bench must not use airmail-plot: nothing outside lab/ does"]
        );
    }

    #[test]
    fn the_test_kit_is_for_tests() {
        let kit = "crates/airmail-testkit";
        assert!(check(&[uses("crates/airmail", kit, Some("dev"))]).is_empty());
        assert_eq!(check(&[uses("crates/airmail", kit, None)]).len(), 1);
    }

    #[test]
    fn no_crate_may_use_every_other() {
        assert!(ALLOWED.iter().all(|(_, allowed)| !allowed.contains(&"*")));
    }
}
