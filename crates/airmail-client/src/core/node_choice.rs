//! Choice of a node: which of the nodes that a client knows it talks to, and when it goes on at another.
//!
//! A client begins with the addresses of its URL and learns others from the nodes themselves. It prefers a node of
//! its own host, then one of its zone, and within such a class the less loaded of two drawn at random. Where clients
//! are spread unevenly over its class, it moves with the probability that makes them even, if all do the same: nobody
//! assigns clients to nodes.
//!
//! Invariants: a node that has failed, or that the client has left, is not chosen for [`AVOIDED`] while there is
//! another; a client moves without need at most once in that time; one that has no node is always given one.

use airmail_model::Mono;
use airmail_model::frame::{Nodes, ServingNode};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which a node is avoided after it has failed or was left.
pub const AVOIDED: Duration = Duration::from_secs(10);
/// Addresses whose nodes are remembered; beyond it they are learned again.
const NAMES_MAX: usize = 1_024;
/// Connections above the mean from which on clients move, and the share of the mean, whichever is more.
const UNEVEN_MIN: f64 = 4.0;
const UNEVEN: f64 = 0.05;

/// Place of a client, as it is compared with those of nodes. What is empty is nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Name of the machine.
    pub host: String,
    /// Zone, as the nodes' settings name it.
    pub zone: String,
}

/// Use that a client makes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It publishes there.
    Publish,
    /// It subscribes there, and asks for what is stored.
    Subscribe,
}

impl Purpose {
    fn is_served_by(self, node: &ServingNode) -> bool {
        match self {
            Purpose::Publish => node.pilot,
            Purpose::Subscribe => node.copilot,
        }
    }
}

/// Distance of a node. The least is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Host,
    Zone,
    Far,
}

/// Chooser of a client's node.
#[derive(Clone, Debug)]
pub struct NodeChoice {
    seeds: Vec<String>,
    told: Vec<ServingNode>,
    purpose: Purpose,
    place: Place,
    /// Names of nodes by the addresses under which the client has met them, or was told of them.
    names: BTreeMap<String, String>,
    /// Nodes, by name or address, and the times until which they are avoided.
    avoided: BTreeMap<String, Mono>,
    random: SmallRng,
    /// Time of the last move without need.
    moved: Option<Mono>,
    /// Address to which the client is to move.
    target: Option<String>,
    /// The node that the client talks to has asked it to leave.
    leave: bool,
}

impl NodeChoice {
    /// Makes the choice of a node for `purpose` among the addresses of a URL, for a client at `place`.
    #[must_use]
    pub fn new(seeds: Vec<String>, purpose: Purpose, place: Place, seed: u64) -> NodeChoice {
        NodeChoice {
            seeds,
            told: Vec::new(),
            purpose,
            place,
            names: BTreeMap::new(),
            avoided: BTreeMap::new(),
            random: SmallRng::seed_from_u64(seed),
            moved: None,
            target: None,
            leave: false,
        }
    }

    /// Counts the addresses of the URL, at least 1.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.seeds.len().max(1)
    }

    /// Tells whether a node has answered to Hello, or was told of by one.
    #[must_use]
    pub fn has_met(&self) -> bool {
        !self.names.is_empty()
    }

    /// Counts the addresses that there are to try, at least 1: all of the URL until nodes tell of others, then those
    /// and what of the URL is not known to be one of them.
    #[must_use]
    pub fn addresses(&self) -> usize {
        if self.told.is_empty() {
            return self.seeds();
        }
        let unmet = |seed: &&String| !self.names.contains_key(*seed);
        let seeds = self.seeds.iter().filter(unmet).count();
        self.told.len() + seeds
    }

    /// Chooses the address to talk to next.
    pub fn choose(&mut self, now: Mono) -> String {
        (self.target, self.leave) = (None, false);
        let told: Vec<ServingNode> = self.usable(now, None);
        if let Some(address) = self.nearest(told) {
            return address;
        }
        let seeds: Vec<String> = self.seeds.clone();
        let fresh = seeds
            .iter()
            .filter(|seed| !self.is_avoided(now, seed) && self.serves(seed) != Some(false));
        let nearest = fresh.clone().map(|seed| self.distance_of_seed(seed)).min();
        let fresh: Vec<&String> = fresh
            .filter(|seed| Some(self.distance_of_seed(seed)) == nearest)
            .collect();
        if !fresh.is_empty() {
            let drawn = self.random.random_range(0..fresh.len());
            return fresh[drawn].clone();
        }
        self.longest_avoided()
    }

    /// Takes note that the node at this address has failed, or could not be reached.
    pub fn failed(&mut self, now: Mono, address: &str) {
        self.avoid(now, address);
        if self.target.as_deref() == Some(address) {
            self.target = None;
        }
    }

    /// Takes note of which node answers at an address.
    pub fn met(&mut self, address: &str, name: &str) {
        self.names.insert(address.to_owned(), name.to_owned());
        self.avoided.remove(address);
        self.avoided.remove(name);
    }

    /// Takes note of nodes that a node tells of to which the client does not talk for this purpose.
    pub fn learn(&mut self, nodes: &Nodes) {
        self.told.clone_from(&nodes.nodes);
        if self.names.len() > NAMES_MAX {
            self.names.clear();
        }
        for node in &self.told {
            self.names.insert(node.address.clone(), node.name.clone());
        }
    }

    /// Takes note of what the node at `address`, to which the client talks, tells of nodes; decides whether to move.
    pub fn told(&mut self, now: Mono, address: &str, nodes: &Nodes) {
        self.learn(nodes);
        (self.target, self.leave) = (None, nodes.leave);
        if nodes.leave {
            self.avoid(now, address);
        }
        self.look(now, address);
        if self.target.is_none() && !nodes.leave {
            self.target = self.less_loaded(now, address);
        }
    }

    /// Decides again whether to move from the node at `address`, as time has passed: another one may be there that was
    /// avoided before.
    pub fn look(&mut self, now: Mono, address: &str) {
        let is_forced = self.leave || self.serves(address) == Some(false);
        let mut others = self.usable(now, Some(address));
        if is_forced && others.is_empty() {
            // One that has failed before is better than none, if the nodes say that it lives.
            others = self.serving(Some(address));
        }
        if !is_forced {
            if self.is_at_rest(now) {
                return;
            }
            let Some(own) = self.told_of(address) else {
                // Input: it is not known where it is, so nothing is nearer.
                return;
            };
            let distance = self.distance(own);
            others.retain(|node| self.distance(node) < distance);
        }
        self.target = self.nearest(others);
    }

    /// Tells whether the node at `address` serves the purpose, if that is known: one that is not told of any more
    /// serves nothing.
    #[must_use]
    pub fn serves(&self, address: &str) -> Option<bool> {
        if let Some(node) = self.told_of(address) {
            return Some(self.purpose.is_served_by(node));
        }
        let was_met = self.names.contains_key(address);
        (was_met && !self.told.is_empty()).then_some(false)
    }

    /// Gives the address to which a client that talks to `address` is to move, if it is to.
    #[must_use]
    pub fn target(&self, address: &str) -> Option<&str> {
        self.target.as_deref().filter(|target| *target != address)
    }

    /// Takes note that the client has moved from one address to its target.
    pub fn moved(&mut self, now: Mono, from: &str) {
        self.avoid(now, from);
        self.moved = Some(now);
        (self.target, self.leave) = (None, false);
    }

    /// Tells whether the client has moved without need so lately that it stays where it is.
    fn is_at_rest(&self, now: Mono) -> bool {
        self.moved.is_some_and(|moved| now < moved.plus(AVOIDED))
    }

    /// A node that is as near as the one at `address` and has fewer clients, with the probability that makes them even.
    fn less_loaded(&mut self, now: Mono, address: &str) -> Option<String> {
        if self.is_at_rest(now) {
            return None;
        }
        let own = self.told_of(address)?.clone();
        let distance = self.distance(&own);
        let others = self.usable(now, Some(address));
        let peers = others.iter().filter(|node| self.distance(node) == distance);
        let least = peers.clone().min_by_key(|node| node.connections)?;
        let all: f64 = peers.clone().map(|node| f64::from(node.connections)).sum();
        let own = f64::from(own.connections);
        let mean = (all + own) / (peers.count() + 1) as f64;
        let excess = own - mean;
        if excess < UNEVEN_MIN.max(mean * UNEVEN) {
            return None;
        }
        let target = least.address.clone();
        self.random.random_bool(excess / own).then_some(target)
    }

    /// Nodes that may be used now, but not the one at `except`.
    fn usable(&self, now: Mono, except: Option<&str>) -> Vec<ServingNode> {
        let mut usable = self.serving(except);
        usable.retain(|node| {
            let avoided = [&node.name, &node.address];
            !avoided.iter().any(|name| self.is_avoided(now, name))
        });
        usable
    }

    /// Nodes that serve the purpose, avoided or not, but not the one at `except`.
    fn serving(&self, except: Option<&str>) -> Vec<ServingNode> {
        let except_name = except.and_then(|address| self.names.get(address));
        let serving = self.told.iter().filter(|node| {
            let same = Some(node.address.as_str()) == except || Some(&node.name) == except_name;
            self.purpose.is_served_by(node) && !same
        });
        serving.cloned().collect()
    }

    /// The less loaded of two of the nearest nodes.
    fn nearest(&mut self, mut nodes: Vec<ServingNode>) -> Option<String> {
        let nearest = nodes.iter().map(|node| self.distance(node)).min()?;
        nodes.retain(|node| self.distance(node) == nearest);
        let first = nodes.swap_remove(self.random.random_range(0..nodes.len()));
        let second = (!nodes.is_empty())
            .then(|| nodes.swap_remove(self.random.random_range(0..nodes.len())));
        let less = second.filter(|second| second.connections < first.connections);
        Some(less.unwrap_or(first).address)
    }

    fn distance(&self, node: &ServingNode) -> Distance {
        if !node.host.is_empty() && node.host == self.place.host {
            Distance::Host
        } else if !node.zone.is_empty() && node.zone == self.place.zone {
            Distance::Zone
        } else {
            Distance::Far
        }
    }

    /// Distance of an address of the URL, of which nothing else is known.
    fn distance_of_seed(&self, address: &str) -> Distance {
        if let Some(node) = self.told_of(address) {
            return self.distance(node);
        }
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
        if loopback || host == self.place.host {
            Distance::Host
        } else {
            Distance::Far
        }
    }

    /// The told node that is known to be at `address`.
    fn told_of(&self, address: &str) -> Option<&ServingNode> {
        let name = self.names.get(address);
        let mut told = self.told.iter();
        told.find(|node| node.address == address || Some(&node.name) == name)
    }

    fn avoid(&mut self, now: Mono, address: &str) {
        let until = now.plus(AVOIDED);
        self.avoided.retain(|_, until| now < *until);
        if let Some(node) = self.told_of(address) {
            let (name, own) = (node.name.clone(), node.address.clone());
            self.avoided.insert(name, until);
            self.avoided.insert(own, until);
        }
        self.avoided.insert(address.to_owned(), until);
    }

    fn is_avoided(&self, now: Mono, name: &str) -> bool {
        let until = |name: &str| self.avoided.get(name).copied();
        let met = self.names.get(name).and_then(|name| until(name));
        let until = until(name).max(met);
        until.is_some_and(|until| now < until)
    }

    /// The address that has been avoided for the longest time, where all that are told of are. Any that was ever
    /// known counts: whoever told of nodes last may have been cut off, and have known of no other than itself.
    fn longest_avoided(&self) -> String {
        let told = self.told.iter().map(|node| &node.address);
        let all = self.seeds.iter().chain(told).chain(self.names.keys());
        // One that serves something else is no way out, but there may be no other.
        let since = |address: &&String| {
            let told = self.told_of(address);
            let is_of_no_use = told.is_some_and(|node| !self.purpose.is_served_by(node));
            (is_of_no_use, self.avoided.get(*address).copied())
        };
        all.min_by_key(since).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
