//! Versions of Airmail and their programs: each is checked out into a worktree of its own, built, and
//! its program is kept under its commit, so that it is built once.
//!
//! The builds share one target directory, and with it their dependencies, which are most of their
//! time. To cargo a crate of one worktree is that of another: it builds it anew because its files are newer
//! than what was built last. So a worktree is checked out just before its build, and is not kept. A program is
//! put in its place when it is whole, so a program that is there was built to the end.

use crate::process;
use crate::workspace;
use anyhow::Context as _;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A commit.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Version {
    commit: String,
    pub(super) short: String,
    /// Its first line.
    pub(super) subject: String,
}

/// The commit that a name stands for.
pub(super) fn known(name: &str) -> Result<Version, String> {
    let commit = format!("{name}^{{commit}}");
    let ask = |command: &mut Command| process::output(command);
    let commit = ask(&mut git(&[
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &commit,
    ]))
    .map_err(|_| format!("{name} is no commit of this repository"))?;
    let commit = commit.trim().to_owned();
    let subject = ask(&mut git(&["log", "-1", "--format=%s", &commit]));
    Ok(Version {
        short: commit.chars().take(10).collect(),
        subject: subject
            .map_err(|error| error.to_string())?
            .trim()
            .to_owned(),
        commit,
    })
}

/// Says so if there are changes that the judged version has not.
pub(super) fn tell_what_is_left_out(head: &Version) {
    let changed = process::output(&mut git(&["status", "--porcelain"]));
    if changed.is_ok_and(|changes| !changes.is_empty()) {
        println!(
            "pairs: changes that are not committed are not in {}",
            head.short
        );
    }
}

impl Version {
    /// Its program, built if it is not there yet.
    pub(super) fn build(&self, directory: &Path) -> anyhow::Result<PathBuf> {
        let kept = directory.join(&self.commit);
        let program = kept.join("airmail");
        if program.is_file() {
            return Ok(program);
        }
        let tree = Tree::check_out(directory.join("trees").join(&self.short), &self.commit)?;
        let build = directory.join("build");
        process::run(
            Command::new("cargo")
                .args(["build", "--release", "--locked", "--package", "airmail"])
                .arg("--target-dir")
                .arg(&build)
                .current_dir(&tree.path),
        )?;
        fs::create_dir_all(&kept)?;
        let copy = kept.join("airmail.part");
        fs::copy(build.join("release/airmail"), &copy).context("cannot keep the program")?;
        fs::rename(&copy, &program)?;
        Ok(program)
    }
}

/// A worktree, gone with this.
struct Tree {
    path: PathBuf,
}

impl Tree {
    fn check_out(path: PathBuf, commit: &str) -> anyhow::Result<Tree> {
        // One that an earlier run was killed with.
        remove(&path);
        let add = ["worktree", "add", "--quiet", "--detach"];
        process::run(git(&add).arg(&path).arg(commit))?;
        Ok(Tree { path })
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    // What is not there cannot be removed; what stays in the way is told by `git worktree add`.
    let _ = process::output(git(&["worktree", "remove", "--force"]).arg(path));
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(workspace::root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_commit_is_refused_by_its_name() {
        let refused = known("no-such-commit").unwrap_err();
        assert!(refused.contains("no-such-commit"), "{refused}");
        assert!(known("--help").is_err());
    }
}
