//! Which crate may use which: arrows point down only, and a new arrow is a decision.

use anyhow::Context;
use serde_json::Value;

use super::Complaints;
use crate::process::{cargo, output};

/// The arrows that are allowed. `*`: any crate of ours.
const ALLOWED: &[(&str, &[&str])] = &[
    ("airmail", &["*"]),
    (
        "airmail-bench",
        &[
            "airmail-client",
            "airmail-flow",
            "airmail-model",
            "airmail-plot",
        ],
    ),
    (
        "airmail-broker",
        &["airmail-flow", "airmail-log", "airmail-model"],
    ),
    ("airmail-client", &["airmail-model", "airmail-proto"]),
    (
        "airmail-collect",
        &["airmail-client", "airmail-model", "airmail-partition"],
    ),
    ("airmail-flow", &["airmail-model"]),
    ("airmail-lab", &["airmail-flow", "airmail-model"]),
    ("airmail-log", &["airmail-model"]),
    ("airmail-mailbox", &["airmail-model"]),
    ("airmail-model", &[]),
    ("airmail-partition", &[]),
    ("airmail-plot", &[]),
    ("airmail-proto", &["airmail-model"]),
    (
        "airmail-sim",
        &[
            "airmail-broker",
            "airmail-client",
            "airmail-flow",
            "airmail-log",
            "airmail-model",
        ],
    ),
    ("airmail-topology", &[]),
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
    pub(crate) uses: Vec<String>,
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
            .filter(|dependency| dependency["path"].is_string())
            .map(|dependency| text(&dependency["name"]))
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
        for used in &package.uses {
            if used != name && !allowed.contains(&"*") && !allowed.contains(&used.as_str()) {
                complaints.push(format!(
                    "{name} must not use {used}: arrows point down only"
                ));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(name: &str, used: &str) -> Package {
        let metadata = serde_json::json!({ "packages": [{
            "name": name, "manifest_path": "/x/Cargo.toml", "targets": [],
            "dependencies": [{ "name": used, "path": "/x" }, { "name": "bytes", "path": null }],
        }]});
        read(&metadata).unwrap().remove(0)
    }

    #[test]
    fn an_arrow_that_points_up_is_told() {
        let complaints = check(&[uses("airmail-log", "airmail-broker")]);
        assert_eq!(
            complaints,
            ["airmail-log must not use airmail-broker: arrows point down only"]
        );
    }

    #[test]
    fn an_unknown_crate_is_told() {
        assert_eq!(check(&[uses("airmail-novelty", "airmail-model")]).len(), 1);
    }

    #[test]
    fn an_arrow_that_points_down_is_allowed() {
        assert!(
            check(&[
                uses("airmail-broker", "airmail-log"),
                uses("airmail", "airmail-sim")
            ])
            .is_empty()
        );
    }
}
