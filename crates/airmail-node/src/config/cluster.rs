//! The settings of a node among others: the parts that run in it, and how it reaches the others.

use super::peers::Peers;
use super::{Config, invalid};
use crate::storage::{KafkaUrl, StorageUrl};
use airmail_link::TowerLimits;
use airmail_model::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A node's name where none is given: fine for one that is alone.
pub(super) const ALONE: &str = "airmail";
/// Description of roles, for whoever wrote another thing.
const ROLES_EXPECTED: &str =
    "all, or of pilot, copilot and tower those that run here, with commas between them";

/// Most bytes of the name of a zone or a machine.
const PLACE_BYTES_MAX: usize = 64;

/// The parts of a node that run in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// It takes publishes.
    pub pilot: bool,
    /// It makes deliveries.
    pub copilot: bool,
    /// It has logs. Without it, the logs are another node's.
    pub tower: bool,
}

impl Roles {
    /// All of them.
    pub const ALL: Roles = Roles {
        pilot: true,
        copilot: true,
        tower: true,
    };
    /// Those that clients need: pilot and copilot.
    pub const GATEWAY: Roles = Roles {
        tower: false,
        ..Roles::ALL
    };
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Roles::ALL {
            return f.write_str("all");
        }
        let roles = [
            (self.pilot, "pilot"),
            (self.copilot, "copilot"),
            (self.tower, "tower"),
        ];
        let names: Vec<&str> = roles
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, name)| *name)
            .collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Roles {
    type Err = &'static str;

    /// Reads roles in any order.
    fn from_str(text: &str) -> Result<Roles, &'static str> {
        if text.trim() == "all" {
            return Ok(Roles::ALL);
        }
        let mut roles = Roles {
            pilot: false,
            copilot: false,
            tower: false,
        };
        for role in text.split(',').map(str::trim) {
            *match role {
                "pilot" => &mut roles.pilot,
                "copilot" => &mut roles.copilot,
                "tower" => &mut roles.tower,
                _ => return Err(ROLES_EXPECTED),
            } = true;
        }
        Ok(roles)
    }
}

/// Addresses by which a node reaches others of its cluster, and is reached; and the secret of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Where other nodes connect: `HOST:PORT`. Empty: nowhere.
    pub listen: String,
    /// Where other nodes reach it, if that is not where it listens: `HOST:PORT`.
    pub advertised: String,
    /// The node whose logs are used by one that has none, or where several have the same, one of them: `HOST:PORT`, or
    /// several with commas between, of which one is enough.
    pub join: String,
    /// All nodes of a cluster that is a fixed list, in place of `join`. None: nodes find each other by gossip.
    pub peers: Peers,
    /// Towers of each log, where several nodes have the logs: 1 to 3. Default 2.
    pub towers_per_log: TowersPerLog,
    /// Its zone: clients prefer nodes of theirs. Empty: none.
    pub zone: String,
    /// Name of the machine that it runs on: clients prefer nodes of theirs. Empty: the system's.
    pub host: String,
    /// File of the cluster's secret. Empty: there is none, and other nodes are on this machine alone.
    pub secret_file: PathBuf,
}

/// Number of the towers of each log: 1 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TowersPerLog(u8);

impl TowersPerLog {
    /// The number.
    #[must_use]
    pub fn get(self) -> usize {
        self.0.into()
    }
}

impl Default for TowersPerLog {
    fn default() -> TowersPerLog {
        TowersPerLog(2)
    }
}

impl fmt::Display for TowersPerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TowersPerLog {
    type Err = ();

    fn from_str(text: &str) -> Result<TowersPerLog, ()> {
        let number = text.parse::<u8>().map_err(drop)?;
        let is_good = (1..=TowerLimits::TOWERS_PER_LOG_MAX).contains(&usize::from(number));
        is_good.then_some(TowersPerLog(number)).ok_or(())
    }
}

impl Config {
    /// Whether its logs are another node's.
    #[must_use]
    pub fn is_gateway(&self) -> bool {
        !self.roles.tower
    }

    /// Kafka cluster that has the logs, where this node is a pilot without role tower that is told so: it appends to them by
    /// a handle of its own.
    #[must_use]
    pub fn own_kafka(&self) -> Option<KafkaUrl> {
        let is_pilot = self.is_gateway() && self.roles.pilot;
        match StorageUrl::parse(&self.log_url, &self.data) {
            Ok(StorageUrl::Kafka(url)) if is_pilot => Some(url),
            _ => None,
        }
    }

    /// Whether the settings of a cluster fit together.
    pub(super) fn validate_cluster(&self) -> Result<(), Error> {
        let needs =
            |name: &str, value: &str, limit: &str| Err(invalid(name).value(value).limit(limit));
        for (name, value) in [
            ("cluster.zone", &self.cluster.zone),
            ("cluster.host", &self.cluster.host),
        ] {
            if value.len() > PLACE_BYTES_MAX {
                let limit = format!("at most {PLACE_BYTES_MAX} bytes");
                return needs(name, value, &limit);
            }
        }
        self.validate_joining()?;
        if !self.is_gateway() {
            return Ok(());
        }
        if !self.log_url.is_empty() && self.own_kafka().is_none() {
            let limit = "empty without role tower, or kafka://… with role pilot: the logs are those of the cluster's tower";
            return needs("log.url", &self.log_url, limit);
        }
        if let Some((name, url)) = self.storages.first_key_value() {
            let limit = "none without role tower: storages are those of the cluster's tower";
            return needs(&format!("storage.{name}.url"), url, limit);
        }
        if let Some(durability) = self.durability {
            let limit = "none without role tower: the cluster's tower makes the namespace";
            return needs("namespace.durability", &durability.to_string(), limit);
        }
        Ok(())
    }

    /// Whether it is said in one way how this node comes to the others, as far as it has to.
    fn validate_joining(&self) -> Result<(), Error> {
        let ClusterConfig {
            listen,
            join,
            peers,
            ..
        } = &self.cluster;
        let needs =
            |name: &str, value: &str, limit: &str| Err(invalid(name).value(value).limit(limit));
        let is_shared = matches!(self.first_storage(), Ok(StorageUrl::Kafka(_)));
        if !join.is_empty() && !self.is_gateway() && !is_shared {
            let limit = "empty on a node with role tower, unless log.url is kafka://…: the logs are its own";
            return needs("cluster.join", join, limit);
        }
        if !join.is_empty() && !self.is_gateway() && listen.is_empty() {
            let limit = "HOST:PORT with cluster.join and role tower: where others reach its logs";
            return needs("cluster.listen", listen, limit);
        }
        if !join.is_empty() && !peers.is_empty() {
            let limit = "empty beside cluster.join: one of them says where the others are";
            return needs("cluster.peers", &peers.as_given(), limit);
        }
        if !peers.is_empty() && listen.is_empty() {
            let limit = "HOST:PORT with cluster.peers: where the others have this node in theirs";
            return needs("cluster.listen", listen, limit);
        }
        if join.is_empty() && peers.is_empty() {
            if !self.is_gateway() {
                return Ok(());
            }
            let limit =
                "HOST:PORT of the node that has the logs, or cluster.peers, without role tower";
            return needs("cluster.join", join, limit);
        }
        if join.is_empty() && self.is_gateway() && self.cluster.others().is_empty() {
            let limit = "more than this node, without role tower: the node that has the logs";
            return needs("cluster.peers", &peers.as_given(), limit);
        }
        if self.name == ALONE {
            let limit = "a name of its own for each node of a cluster";
            return needs("node.name", &self.name, limit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_in_any_order_and_written_in_one() {
        for (text, roles, written) in [
            ("all", Roles::ALL, "all"),
            ("tower,pilot,copilot", Roles::ALL, "all"),
            ("copilot, pilot", Roles::GATEWAY, "pilot,copilot"),
        ] {
            assert_eq!(text.parse(), Ok(roles), "{text}");
            assert_eq!(roles.to_string(), written);
        }
        for text in ["", "broker", "all,pilot", "pilot,,copilot"] {
            assert_eq!(text.parse::<Roles>(), Err(ROLES_EXPECTED), "{text}");
        }
    }

    #[test]
    fn each_role_may_be_alone_and_one_without_logs_needs_those_of_another() {
        for (roles, needs) in [
            ("tower", false),
            ("copilot,tower", false),
            ("pilot", true),
            ("copilot", true),
        ] {
            let mut config = Config::default();
            config.set("node.roles", roles).unwrap();
            config.set("node.name", "n").unwrap();
            let refused = config.validate().err();
            let field = refused.map(|error| error.field_name().to_owned());
            assert_eq!(field, needs.then(|| "cluster.join".to_owned()), "{roles}");
        }
    }

    #[test]
    fn what_a_gateway_cannot_have_is_refused_by_its_setting() {
        let gateway = || Config {
            roles: Roles::GATEWAY,
            name: "g1".to_owned(),
            cluster: ClusterConfig {
                join: "127.0.0.1:7402".to_owned(),
                ..ClusterConfig::default()
            },
            ..Config::default()
        };
        assert_eq!(gateway().validate(), Ok(()));
        for (name, value) in [
            ("cluster.join", ""),
            ("node.name", "airmail"),
            ("log.url", "memory:"),
            ("log.url", "disk:here"),
            ("namespace.durability", "os"),
        ] {
            let mut config = gateway();
            config.set(name, value).unwrap();
            let error = config.validate().unwrap_err();
            assert_eq!((error.field_name(), error.found()), (name, value));
        }
        let mut config = gateway();
        config.set_storage("fast=memory:").unwrap();
        assert_eq!(
            config.validate().unwrap_err().field_name(),
            "storage.fast.url"
        );
    }

    #[test]
    fn names_of_places_are_short() {
        for name in ["cluster.zone", "cluster.host"] {
            let mut config = Config::default();
            config.set(name, &"z".repeat(64)).unwrap();
            assert_eq!(config.validate(), Ok(()));
            config.set(name, &"z".repeat(65)).unwrap();
            let error = config.validate().unwrap_err();
            assert_eq!(
                (error.field_name(), error.expected()),
                (name, "at most 64 bytes")
            );
        }
    }

    #[test]
    fn a_node_with_logs_of_its_own_joins_none() {
        let mut config = Config::default();
        config.set("cluster.join", "127.0.0.1:7402").unwrap();
        assert_eq!(config.validate().unwrap_err().field_name(), "cluster.join");
    }

    #[test]
    fn a_fixed_list_is_in_place_of_a_node_to_join_and_needs_an_address_to_be_in_it() {
        let with = |settings: &[(&str, &str)]| {
            let mut config = Config::default();
            for (name, value) in settings {
                config.set(name, value).unwrap();
            }
            config
        };
        let peers = ("cluster.peers", "127.0.0.1:7402,127.0.0.1:7412");
        let listen = ("cluster.listen", "127.0.0.1:7402");
        let own = ("cluster.peers", "127.0.0.1:7402");
        let name = ("node.name", "n");
        let roles = ("node.roles", "pilot,copilot");
        for fits in [&[peers, listen, name][..], &[peers, listen, name, roles]] {
            assert_eq!(with(fits).validate(), Ok(()));
        }
        let join = ("cluster.join", "127.0.0.1:7402");
        for (settings, field, found) in [
            (&[peers, name][..], "cluster.listen", ""),
            (&[peers, listen], "node.name", "airmail"),
            (&[peers, listen, name, roles, join], peers.0, peers.1),
            (&[peers, listen, name, join], join.0, join.1),
            (&[own, listen, name, roles], own.0, own.1),
        ] {
            let error = with(settings).validate().unwrap_err();
            assert_eq!((error.field_name(), error.found()), (field, found));
        }
    }
}
