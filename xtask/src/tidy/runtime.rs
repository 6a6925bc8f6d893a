//! No async runtime among the cores' dependencies: they must run under the simulator as they are.

use super::Complaints;
use crate::process::{cargo, output};

/// The cores, with the features that leave their shells out, and what all of their tests may use.
const CORES: [(&str, &[&str]); 16] = [
    ("airmail-flow", &[]),
    ("airmail-queueing", &[]),
    ("airmail-match", &[]),
    ("airmail-model", &[]),
    ("airmail-link", &[]),
    ("airmail-log", &[]),
    ("airmail-log-kafka", &[]),
    ("airmail-broker", &[]),
    ("airmail-client", &["--no-default-features"]),
    ("airmail-sim", &[]),
    ("airmail-partition", &[]),
    ("airmail-collect", &[]),
    ("airmail-topology", &[]),
    ("airmail-wire", &[]),
    ("airmail-membership", &[]),
    ("airmail-testkit", &[]),
];

const RUNTIMES: [&str; 8] = [
    "async-global-executor",
    "async-std",
    "hyper",
    "mio",
    "monoio",
    "smol",
    "tokio",
    "tonic",
];

/// Complains of each runtime in the tree of a core.
pub(crate) fn check() -> anyhow::Result<Complaints> {
    let mut complaints = Vec::new();
    for (core, features) in CORES {
        let mut tree = cargo(&[
            "tree",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--package",
            core,
        ]);
        complaints.extend(check_tree(core, &output(tree.args(features))?));
    }
    Ok(complaints)
}

fn check_tree(core: &str, tree: &str) -> Complaints {
    RUNTIMES
        .iter()
        .filter(|runtime| {
            tree.lines()
                .any(|line| line.split(' ').next() == Some(**runtime))
        })
        .map(|runtime| format!("{core}: has {runtime} in its tree; a core has no async runtime"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_in_the_tree_is_told() {
        let tree = "airmail-log v0.1.0 (/x)\nbytes v1.12.0\ntokio v1.54.0\n";
        assert_eq!(check_tree("airmail-log", tree).len(), 1);
    }

    #[test]
    fn a_crate_with_a_runtime_in_its_name_is_not_a_runtime() {
        assert!(check_tree("airmail-log", "smolstr v1.0.0\n").is_empty());
    }
}
