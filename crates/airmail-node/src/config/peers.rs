//! The setting of a cluster that is a fixed list: where its nodes are.

use super::cluster::ClusterConfig;
use super::hosts::Authority;
use airmail_membership::PEERS_MAX;
use std::fmt;
use std::str::FromStr;

/// Description of an entry, for whoever wrote another thing.
const EXPECTED: &str = "HOST:PORT[,HOST:PORT…], each the --cluster of a node";

/// Where a node of a list is: `HOST:PORT`, as its `--cluster` says, or as others reach that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress(String);

impl PeerAddress {
    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PeerAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PeerAddress, &'static str> {
        match text.parse::<Authority>() {
            Ok(Authority {
                port: Some(1..), ..
            }) => Ok(PeerAddress(text.to_owned())),
            _ => Err(EXPECTED),
        }
    }
}

/// Addresses of a cluster's nodes, each once. None: the cluster is no fixed list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers(Vec<PeerAddress>);

impl Peers {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The addresses, as a flag has them.
    #[must_use]
    pub fn as_given(&self) -> String {
        let texts: Vec<&str> = self.0.iter().map(PeerAddress::as_str).collect();
        texts.join(",")
    }
}

impl ClusterConfig {
    /// Addresses of the others: those of the list that are not, by the same text, this node's own. One that is its own
    /// by another text is found out by whoever asks there.
    #[must_use]
    pub fn others(&self) -> Vec<PeerAddress> {
        let own = [self.listen.as_str(), self.advertised.as_str()];
        let peers = self.peers.0.iter();
        peers
            .filter(|peer| !own.contains(&peer.as_str()))
            .cloned()
            .collect()
    }

    /// Addresses where the node may be whose logs a gateway uses.
    #[must_use]
    pub fn towers(&self) -> Vec<String> {
        if self.peers.is_empty() {
            return self
                .join
                .split(',')
                .map(|one| one.trim().to_owned())
                .collect();
        }
        let others = self.others().into_iter();
        others.map(|PeerAddress(address)| address).collect()
    }
}

impl FromStr for Peers {
    type Err = String;

    /// Takes a list as a file has it, `["a:1", "b:2"]`, and as a flag has it, `a:1,b:2`.
    fn from_str(text: &str) -> Result<Peers, String> {
        let wrong = || EXPECTED.to_owned();
        let listed: Vec<String> = match text.parse::<toml::Value>() {
            Ok(toml::Value::Array(values)) => {
                let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().ok_or_else(wrong)?
            }
            _ if text.is_empty() => Vec::new(),
            _ => text.split(',').map(|peer| peer.trim().to_owned()).collect(),
        };
        if listed.len() > PEERS_MAX {
            return Err(format!(
                "at most {PEERS_MAX} addresses, and it has {}",
                listed.len()
            ));
        }
        let mut peers = Vec::with_capacity(listed.len());
        for listed in listed {
            let peer: PeerAddress = listed
                .parse()
                .map_err(|_| format!("{EXPECTED}, and not {listed:?}"))?;
            if peers.contains(&peer) {
                return Err(format!("each address once, and {listed} is there twice"));
            }
            peers.push(peer);
        }
        Ok(Peers(peers))
    }
}

impl fmt::Display for Peers {
    /// Writes the list as a file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self
            .0
            .iter()
            .map(|peer| format!("\"{}\"", peer.0))
            .collect();
        write!(f, "[{}]", quoted.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(text: &str) -> Result<Peers, String> {
        text.parse()
    }

    #[test]
    fn a_list_is_read_from_a_file_and_from_a_flag() {
        let three = peers("10.0.0.1:7402, node.example.org:7402,[::1]:7402").unwrap();
        let written = r#"["10.0.0.1:7402", "node.example.org:7402", "[::1]:7402"]"#;
        assert_eq!(three.to_string(), written);
        assert_eq!(peers(written), Ok(three));
        for none in ["", "[]"] {
            assert_eq!(peers(none), Ok(Peers::default()));
        }
    }

    #[test]
    fn an_entry_that_is_empty_or_malformed_is_refused_with_what_it_should_be() {
        for wrong in [
            "a:1,",
            ",a:1",
            "a:1,,b:2",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "a:x",
            "a b:1",
            "http://a:1",
            "::1:7402",
            "[::1:7402",
            "[a]:1",
            "[1]",
            "[\"\"]",
        ] {
            let expected = peers(wrong).unwrap_err();
            assert!(expected.contains("HOST:PORT"), "{wrong}: {expected}");
        }
    }

    #[test]
    fn a_list_has_thirty_two_addresses_at_most_and_each_once() {
        let list = |count: usize| {
            let all: Vec<String> = (0..count).map(|node| format!("n{node}:7402")).collect();
            all.join(",")
        };
        assert!(peers(&list(PEERS_MAX)).is_ok());
        let refused = peers(&list(PEERS_MAX + 1)).unwrap_err();
        assert_eq!(refused, "at most 32 addresses, and it has 33");
        let refused = peers("a:1,b:2,a:1").unwrap_err();
        assert_eq!(refused, "each address once, and a:1 is there twice");
    }

    #[test]
    fn a_node_s_own_address_is_left_out_be_it_where_it_listens_or_where_it_is_reached() {
        let config = ClusterConfig {
            listen: "0.0.0.0:7402".into(),
            advertised: "b:7402".into(),
            peers: peers("a:7402,b:7402,c:7402").unwrap(),
            ..ClusterConfig::default()
        };
        let others = config.others();
        let others: Vec<&str> = others.iter().map(PeerAddress::as_str).collect();
        assert_eq!(others, ["a:7402", "c:7402"]);
    }
}
