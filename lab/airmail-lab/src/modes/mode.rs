//! Ways to make a service of nodes: their number, how they hang together, and what each is told when it
//! starts. A further way is a further value here, and nothing else has to know of it.

use anyhow::Context as _;

/// Ways to make a service of nodes.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One node
    Single,
    /// Four nodes: a root with two children, one of which has a child
    Tree,
}

/// A node of a mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Name of the node, and of the machine that it and its clients say they are on.
    pub(super) name: &'static str,
    /// Place of its parent among the mode's nodes, before its own.
    pub(super) parent: Option<usize>,
}

const fn member(name: &'static str, parent: Option<usize>) -> Member {
    Member { name, parent }
}

impl Mode {
    /// Name in rows and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Single => "single",
            Mode::Tree => "tree",
        }
    }

    /// Its nodes, in the order in which they are started.
    pub(super) fn members(self) -> &'static [Member] {
        match self {
            Mode::Single => const { &[member("single", None)] },
            Mode::Tree => {
                const {
                    &[
                        member("root", None),
                        member("left", Some(0)),
                        member("right", Some(0)),
                        member("leaf", Some(2)),
                    ]
                }
            }
        }
    }

    /// Options of its node at a place, listening for other nodes at an address, where those before it can be
    /// reached by these.
    ///
    /// # Errors
    /// The parent lets no nodes connect.
    pub(super) fn options(
        self,
        place: usize,
        address: &str,
        started: &[Option<String>],
    ) -> anyhow::Result<Vec<String>> {
        let log = match self.members()[place].parent {
            None => "--log=memory:".to_owned(),
            Some(parent) => {
                let above = started.get(parent).cloned().flatten();
                let above = above.context("the parent lets no nodes connect")?;
                format!("--log=tree://{above}?cache=64MiB")
            }
        };
        let name = self.members()[place].name;
        Ok(match self {
            Mode::Single => vec![log],
            Mode::Tree => vec![
                log,
                format!("--name={name}"),
                format!("--cluster={address}:0"),
            ],
        })
    }

    /// Number of links from its node at a place to the first one, which all publishes come to.
    pub(super) fn depth(self, place: usize) -> usize {
        let above = self.members()[place].parent;
        above.map_or(0, |parent| self.depth(parent) + 1)
    }

    /// Greatest mean round that is asked of it, as a multiple of a single node's.
    pub(super) fn ratio_max(self) -> f64 {
        match self {
            Mode::Single | Mode::Tree => 1.0,
        }
    }

    /// Sentence about its nodes.
    pub(super) fn about(self) -> &'static str {
        match self {
            Mode::Single => "Single: one node, which knows of no other.",
            Mode::Tree => {
                "Tree: four nodes in the place of the paper's figure 4, of which the text says that it has every \
                 relation there may be: the root has two children, left and right, and right has one, leaf. \
                 Each has a cache of 64 MiB."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn a_parent_is_started_before_its_children_and_the_first_node_has_none() {
        for mode in Mode::value_variants() {
            let members = mode.members();
            assert!(members[0].parent.is_none());
            for (place, member) in members.iter().enumerate() {
                assert!(member.parent.is_none_or(|parent| parent < place));
            }
        }
    }

    #[test]
    fn the_tree_has_a_master_of_slaves_a_slave_of_a_slave_and_one_without() {
        let depths = [0, 1, 2, 3].map(|place| Mode::Tree.depth(place));
        assert_eq!(depths, [0, 1, 1, 2]);
    }

    #[test]
    fn a_child_is_told_where_its_parent_is() {
        let started = ["a:1", "b:2", "c:3"].map(|address| Some(address.to_owned()));
        let options = Mode::Tree.options(3, "here", &started).unwrap();
        let expected = [
            "--log=tree://c:3?cache=64MiB",
            "--name=leaf",
            "--cluster=here:0",
        ];
        assert_eq!(options, expected);
        assert!(Mode::Tree.options(1, "here", &[None]).is_err());
    }
}
