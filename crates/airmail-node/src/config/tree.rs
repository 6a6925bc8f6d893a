//! The settings of a node in a tree, whose logs are those of a parent.

use super::cluster::ALONE;
use super::{Config, invalid};
use crate::storage::{StorageUrl, TreeUrl};
use airmail_model::Error;
use std::ops::RangeInclusive;

/// Bounds of `tree.depth_max` and `tree.children_max`.
const DEPTH: RangeInclusive<u32> = 2..=32;
const CHILDREN: RangeInclusive<u32> = 1..=128;

/// Bounds of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeConfig {
    /// Most nodes on a way from the root, both ends included. 2 to 32.
    pub depth_max: u32,
    /// Most children of a node: one too many is sent on to the child that has the fewest. 1 to 128.
    pub children_max: u32,
}

impl Default for TreeConfig {
    fn default() -> TreeConfig {
        TreeConfig {
            depth_max: 8,
            children_max: 16,
        }
    }
}

impl Config {
    /// Where its parents are, if its logs are those of a parent in a tree.
    #[must_use]
    pub fn parents(&self) -> Option<TreeUrl> {
        match self.first_storage() {
            Ok(StorageUrl::Tree(url)) => Some(url),
            _ => None,
        }
    }

    /// Whether its logs are another node's, by a link or in a tree.
    #[must_use]
    pub fn has_no_logs(&self) -> bool {
        self.is_gateway() || self.parents().is_some()
    }

    /// Whether the settings of a tree fit together.
    pub(super) fn validate_tree(&self) -> Result<(), Error> {
        let bounds = [
            ("tree.depth_max", self.tree.depth_max, DEPTH),
            ("tree.children_max", self.tree.children_max, CHILDREN),
        ];
        for (name, value, bounds) in bounds {
            if !bounds.contains(&value) {
                let bounds = format!("{} to {}", bounds.start(), bounds.end());
                return Err(invalid(name).value(value).limit(bounds));
            }
        }
        let Some(url) = self.parents() else {
            // Input: a node with logs of its own, or a gateway.
            return Ok(());
        };
        let needs =
            |name: &str, value: &str, limit: &str| Err(invalid(name).value(value).limit(limit));
        if self.name == ALONE {
            let limit = "a name of its own for each node of a tree";
            return needs("node.name", &self.name, limit);
        }
        if self.cluster.listen.is_empty() {
            let limit = "HOST:PORT where its children connect, with tree://";
            return needs("cluster.listen", &self.cluster.listen, limit);
        }
        let own = [&self.cluster.listen, &self.cluster.advertised];
        if let Some(itself) = url.parents.iter().find(|parent| own.contains(parent)) {
            let limit = "parents that are other nodes than itself";
            return needs("log.url", itself, limit);
        }
        if let Some((name, url)) = self.storages.first_key_value() {
            let limit = "none beside tree://: storages are those of the root";
            return needs(&format!("storage.{name}.url"), url, limit);
        }
        if let Some(durability) = self.durability {
            let limit = "none with tree://: the root makes the namespace";
            return needs("namespace.durability", &durability.to_string(), limit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(changes: &[(&str, &str)]) -> Config {
        let mut config = Config::default();
        let usual = [
            ("log.url", "tree://127.0.0.1:7402"),
            ("node.name", "c1"),
            ("cluster.listen", "127.0.0.1:7412"),
        ];
        for (name, value) in usual.iter().chain(changes) {
            config.set(name, value).unwrap();
        }
        config
    }

    #[test]
    fn a_child_needs_parents_a_name_and_an_address_and_nothing_else() {
        assert_eq!(child(&[]).validate(), Ok(()));
        assert!(child(&[]).has_no_logs() && !child(&[]).is_gateway());
        for (name, value) in [
            ("node.name", "airmail"),
            ("cluster.listen", ""),
            ("namespace.durability", "os"),
            ("cluster.join", "127.0.0.1:7402"),
            ("tree.depth_max", "1"),
            ("tree.depth_max", "33"),
            ("tree.children_max", "0"),
            ("tree.children_max", "129"),
        ] {
            let error = child(&[(name, value)]).validate().unwrap_err();
            assert_eq!((error.field_name(), error.found()), (name, value));
        }
    }

    #[test]
    fn a_node_is_not_its_own_parent_and_has_no_storage_beside_the_roots() {
        let error = child(&[("cluster.listen", "127.0.0.1:7402")]).validate();
        assert_eq!(error.unwrap_err().found(), "127.0.0.1:7402");
        let mut config = child(&[]);
        config.set_storage("fast=memory:").unwrap();
        let error = config.validate().unwrap_err();
        assert_eq!(error.field_name(), "storage.fast.url");
        let mut config = Config::default();
        config.set_storage("far=tree://127.0.0.1:7402").unwrap();
        assert_eq!(
            config.validate().unwrap_err().field_name(),
            "storage.far.url"
        );
    }
}
