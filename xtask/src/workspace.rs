//! The workspace: its root, and the files that the house rules look at.

use crate::process::{self, cargo};
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Directory of cargo's build output, by its own account.
pub(crate) fn target_directory() -> anyhow::Result<PathBuf> {
    let ask = [
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ];
    let told: serde_json::Value = serde_json::from_str(&process::output(&mut cargo(&ask))?)?;
    let path = told.get("target_directory").and_then(|path| path.as_str());
    Ok(path.context("cargo does not say where it builds")?.into())
}

/// A file of the workspace, by its path from the root, with `/` between.
#[derive(Debug)]
pub(crate) struct File {
    /// The path, such as `crates/airmail-log/src/lib.rs`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

impl File {
    /// Whether it is of a module: `a/b` is `a/b.rs`, and all that is in the folder `a/b`.
    pub(crate) fn is_in(&self, module: &str) -> bool {
        let rest = self.path.strip_prefix(module);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Its lines without its tests, which stand last; none of a file of tests.
    pub(crate) fn product_lines(&self) -> Vec<&str> {
        let mut parts = self.path.split('/');
        if parts.any(|part| part == "tests" || part == "tests.rs") {
            return Vec::new();
        }
        let mut lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(2).position(|pair| {
            pair[0].trim() == "#[cfg(test)]"
                && pair[1].trim_start().starts_with("mod ")
                && pair[1].ends_with('{')
        });
        lines.truncate(tests.unwrap_or(lines.len()));
        lines
    }
}

/// Generated code: a test of its crate compares it with its source.
const GENERATED: [&str; 2] = [
    "crates/airmail-proto/generated",
    "crates/airmail-wire/generated",
];

/// Every text file whose name ends in one of `endings`, in order of path. Build output, hidden
/// directories, data and generated code are left out.
pub(crate) fn files(endings: &[&str]) -> anyhow::Result<Vec<File>> {
    let mut paths = Vec::new();
    walk(root(), &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path
            .strip_prefix(root())?
            .to_string_lossy()
            .replace('\\', "/");
        if !endings.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        files.push(File { path: name, text });
    }
    Ok(files)
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let skipped = name.starts_with('.')
            || name.starts_with("target")
            || matches!(
                name.as_str(),
                "airmail-data" | "corpus" | "artifacts" | "__pycache__"
            )
            || GENERATED
                .iter()
                .any(|generated| path == root().join(generated));
        if path.is_dir() {
            if !skipped {
                walk(&path, paths)?;
            }
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
