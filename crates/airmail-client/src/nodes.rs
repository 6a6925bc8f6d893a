//! The nodes that a client may talk to, and the connection to the one that it talks to now.
//!
//! All streams and calls of a client share one HTTP/2 connection. When an attempt on it fails, its
//! caller reports that, and the next attempt goes to another address, which
//! [`crate::core::NodeChoice`] chooses. Where that finds a better node while the current one serves, a
//! connection to it is made first, and each stream then goes over to it.

mod node;

pub(crate) use node::Node;

use crate::core::{NodeChoice, Purpose};
use airmail_model::clock::Clock;
use airmail_model::frame::{self, Welcome};
use airmail_model::{Error, ErrorCode};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Time that preparing a move to another node may take.
const MOVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Times of a node's own choosing in which it says nothing, after which it is lost: where there is another node to
/// go to, and where there is none.
const MISSED_MAX: u32 = 3;
const MISSED_MAX_ALONE: u32 = 30;

/// The node that a client talks to now for a purpose, and how it is chosen.
#[derive(Debug)]
struct Side {
    choice: NodeChoice,
    current: Option<Node>,
}

impl Side {
    fn is_at(&self, node: &Node) -> bool {
        self.current.as_ref().is_some_and(|now| now.is(node))
    }

    /// The address at which it is, or to which it is to move.
    fn destination(&self) -> Option<&str> {
        let at = self.current.as_ref()?.address();
        Some(self.choice.target(at).unwrap_or(at))
    }

    /// Gives up a connection to a node that does not serve any more, as another one tells: without streams there is
    /// nobody on it who would be told, and a node that drains would wait for it.
    fn leave_if_of_no_use(&mut self) {
        let serves = |node: &Node| self.choice.serves(node.address()) != Some(false);
        if !self.current.as_ref().is_none_or(serves) {
            self.current = None;
        }
    }

    /// Tells whether whoever talks to `node` is to go on at another.
    fn is_to_move_from(&self, node: &Node) -> bool {
        match &self.current {
            Some(now) if now.is(node) => self.choice.target(node.address()).is_some(),
            // Another stream of this client has moved, or found that the node has failed.
            Some(now) => now.address() != node.address(),
            None => false,
        }
    }
}

/// The sides of a client. Where one node takes everything, there is one connection.
#[derive(Debug)]
struct Sides {
    /// For subscriptions, and everything that is asked.
    subscribing: Side,
    /// For publishing, if that cannot be done where subscriptions are.
    publishing: Side,
}

impl Sides {
    /// The side that a purpose uses. Publishing is done where subscriptions are, or are about to go, if it can be.
    fn of(&mut self, purpose: Purpose) -> &mut Side {
        let Sides {
            subscribing,
            publishing,
        } = self;
        let is_apart = match subscribing.destination() {
            Some(address) => publishing.choice.serves(address) == Some(false),
            None => publishing.current.is_some(),
        };
        match purpose {
            Purpose::Publish if is_apart => publishing,
            Purpose::Publish | Purpose::Subscribe => subscribing,
        }
    }

    fn both(&mut self) -> [&mut Side; 2] {
        [&mut self.subscribing, &mut self.publishing]
    }

    /// Tells whether a stream of this purpose at `node` is to go on at another.
    fn is_to_move_from(&mut self, node: &Node, purpose: Purpose) -> bool {
        let is_refused = purpose == Purpose::Publish
            && self.publishing.choice.serves(node.address()) == Some(false);
        let side = self.of(purpose);
        // A publish stream at a node that takes subscriptions alone goes elsewhere by itself.
        side.is_to_move_from(node) || (is_refused && !side.is_at(node))
    }

    /// Has publishing stay where subscriptions are about to leave for a node at which it cannot be.
    fn part(&mut self) {
        let serves = |address: &str| self.publishing.choice.serves(address) != Some(false);
        let (Some(at), Some(to)) = (&self.subscribing.current, self.subscribing.destination())
        else {
            // Input: nothing is connected.
            return;
        };
        if self.publishing.current.is_none() && serves(at.address()) && !serves(to) {
            self.publishing.current = Some(at.clone());
        }
    }
}

/// The nodes of a client.
#[derive(Debug)]
pub(crate) struct Nodes {
    clock: Arc<dyn Clock>,
    sides: Mutex<Sides>,
}

impl Nodes {
    /// Makes a client's nodes, with a choice for each purpose.
    pub(crate) fn new(choice: impl Fn(Purpose) -> NodeChoice, clock: Arc<dyn Clock>) -> Nodes {
        let side = |purpose| Side {
            choice: choice(purpose),
            current: None,
        };
        let sides = Sides {
            subscribing: side(Purpose::Subscribe),
            publishing: side(Purpose::Publish),
        };
        Nodes {
            clock,
            sides: Mutex::new(sides),
        }
    }

    /// Counts the addresses of the URL, at least 1.
    pub(crate) fn seeds(&self) -> u32 {
        let seeds = self.sides.lock().subscribing.choice.seeds();
        u32::try_from(seeds).unwrap_or(u32::MAX)
    }

    /// Tells whether a node has answered, or there are several addresses at which one may.
    pub(crate) fn are_known(&self) -> bool {
        let choice = &self.sides.lock().subscribing.choice;
        choice.has_met() || choice.addresses() > 1
    }

    /// Counts the addresses that there are to try, at least 1.
    pub(crate) fn addresses(&self) -> u32 {
        let addresses = self.sides.lock().subscribing.choice.addresses();
        u32::try_from(addresses).unwrap_or(u32::MAX)
    }

    /// Gives the current node for a purpose. The connection is made when it is used.
    pub(crate) fn node(&self, purpose: Purpose) -> Result<Node, Error> {
        let mut sides = self.sides.lock();
        let side = sides.of(purpose);
        if let Some(node) = &side.current {
            return Ok(node.clone());
        }
        let address = side.choice.choose(self.clock.mono());
        let node = Node::to(&address)?;
        side.current = Some(node.clone());
        Ok(node)
    }

    /// Takes note that an attempt on `node` failed: the next one goes to another address, if there is one.
    pub(crate) fn failed(&self, node: &Node, error: &Error) {
        let now = self.clock.mono();
        for side in self.sides.lock().both() {
            side.choice.failed(now, node.address());
            // A node that refuses is still connected.
            let is_lost = error.code() == ErrorCode::Disconnected;
            if side.is_at(node) && (is_lost || side.choice.addresses() > 1) {
                side.current = None;
            }
        }
    }

    /// Takes note of the answer of `node` to Hello; gives how often it says something, and how often it may have
    /// said nothing, if it says so.
    pub(crate) fn welcomed(&self, node: &Node, welcome: &Welcome) -> Option<(Duration, u32)> {
        for side in self.sides.lock().both() {
            side.choice.met(node.address(), &welcome.node);
        }
        if !welcome.nodes.nodes.is_empty() {
            self.told(node, &welcome.nodes);
        }
        welcome.alive.map(|within| (within, self.missed_max()))
    }

    /// Counts the times for which a node may say nothing.
    pub(crate) fn missed_max(&self) -> u32 {
        if self.addresses() > 1 {
            MISSED_MAX
        } else {
            MISSED_MAX_ALONE
        }
    }

    /// Takes note of what `node` tells of nodes.
    pub(crate) fn told(&self, node: &Node, nodes: &frame::Nodes) {
        let now = self.clock.mono();
        let mut sides = self.sides.lock();
        for side in sides.both() {
            if side.is_at(node) {
                side.choice.told(now, node.address(), nodes);
            } else {
                side.choice.learn(nodes);
                side.leave_if_of_no_use();
            }
        }
        sides.part();
    }

    /// Looks again whether to go on at another node than `node`, which lives.
    pub(crate) fn look(&self, node: &Node) {
        let now = self.clock.mono();
        let mut sides = self.sides.lock();
        for side in sides.both() {
            if side.is_at(node) && side.choice.target(node.address()).is_none() {
                side.choice.look(now, node.address());
            }
        }
        sides.part();
    }

    /// Tells whether whoever talks to `node` for a purpose is to go on at another.
    pub(crate) fn is_to_move_from(&self, node: &Node, purpose: Purpose) -> bool {
        self.sides.lock().is_to_move_from(node, purpose)
    }

    /// Moves from `node`: connects to the other, while everything goes on here. Tells whether the current node is
    /// another now.
    pub(crate) async fn move_from(&self, node: &Node, purpose: Purpose) -> bool {
        let target = {
            let mut sides = self.sides.lock();
            let side = sides.of(purpose);
            if !side.is_at(node) {
                return true;
            }
            let Some(target) = side.choice.target(node.address()) else {
                return false;
            };
            target.to_owned()
        };
        let connected = tokio::time::timeout(MOVE_TIMEOUT, Node::reach(&target)).await;
        let Ok(Some(reached)) = connected else {
            return self.not_reached(&target);
        };
        let mut sides = self.sides.lock();
        let side = sides.of(purpose);
        if side.is_at(node) {
            tracing::debug!(
                from = node.address(),
                to = target,
                "going on at another node"
            );
            side.current = Some(reached);
            side.choice.moved(self.clock.mono(), node.address());
        }
        true
    }

    fn not_reached(&self, target: &str) -> bool {
        tracing::debug!(target, "another node could not be reached");
        let now = self.clock.mono();
        for side in self.sides.lock().both() {
            side.choice.failed(now, target);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Place;
    use airmail_model::Limits;
    use airmail_model::clock::SystemClock;
    use airmail_model::frame::ServingNode;

    fn nodes() -> Nodes {
        let seeds = vec!["p1:1".to_owned()];
        let choice = |purpose| NodeChoice::new(seeds.clone(), purpose, Place::default(), 1);
        Nodes::new(choice, Arc::new(SystemClock::default()))
    }

    fn told(names: &[&str], leave: bool) -> frame::Nodes {
        let node = |name: &&str| ServingNode {
            name: (*name).to_owned(),
            address: format!("{name}:1"),
            pilot: name.starts_with('p'),
            copilot: name.starts_with('c'),
            ..ServingNode::default()
        };
        frame::Nodes {
            nodes: names.iter().map(node).collect(),
            leave,
        }
    }

    fn welcome(nodes: frame::Nodes) -> Welcome {
        Welcome {
            protocol: 2,
            node: "p1".to_owned(),
            limits: Limits::DEFAULT,
            namespaces: Vec::new(),
            nodes,
            alive: None,
        }
    }

    #[tokio::test]
    async fn publishing_stays_where_it_can_be_while_subscriptions_go_elsewhere() {
        let nodes = nodes();
        let first = nodes.node(Purpose::Publish).unwrap();
        nodes.welcomed(&first, &welcome(told(&["p1", "p2", "c1"], false)));
        assert!(nodes.is_to_move_from(&first, Purpose::Subscribe));
        assert!(!nodes.is_to_move_from(&first, Purpose::Publish));
        assert!(nodes.node(Purpose::Publish).unwrap().is(&first));
    }

    #[tokio::test]
    async fn publishing_goes_with_subscriptions_where_it_can() {
        let nodes = nodes();
        let first = nodes.node(Purpose::Publish).unwrap();
        let serves_all = |names: &[&str], leave| {
            let mut told = told(names, leave);
            for node in &mut told.nodes {
                (node.pilot, node.copilot) = (true, true);
            }
            told
        };
        nodes.welcomed(&first, &welcome(serves_all(&["p1", "p2", "p3"], false)));
        assert!(!nodes.is_to_move_from(&first, Purpose::Publish));
        nodes.told(&first, &serves_all(&["p2", "p3"], true));
        // Either stream moves the one connection that both have.
        let mut sides = nodes.sides.lock();
        for purpose in [Purpose::Publish, Purpose::Subscribe] {
            assert!(sides.is_to_move_from(&first, purpose));
            assert!(sides.of(purpose).is_at(&first));
        }
    }

    #[tokio::test]
    async fn publishing_leaves_a_node_that_drains_also_where_nothing_else_is_connected() {
        let nodes = nodes();
        let first = nodes.node(Purpose::Publish).unwrap();
        nodes.welcomed(&first, &welcome(told(&["p1", "p2", "c1"], false)));
        {
            // As after a failure: subscriptions are nowhere.
            let mut sides = nodes.sides.lock();
            sides.publishing.current = sides.subscribing.current.take();
        }
        nodes.told(&first, &told(&["p2", "c1"], true));
        assert!(nodes.is_to_move_from(&first, Purpose::Publish));
    }

    #[tokio::test]
    async fn an_idle_connection_to_a_node_that_serves_no_more_is_given_up() {
        let nodes = nodes();
        let publishing = nodes.node(Purpose::Publish).unwrap();
        nodes.welcomed(&publishing, &welcome(told(&["p1", "c1"], false)));
        {
            let mut sides = nodes.sides.lock();
            sides.publishing.current = sides.subscribing.current.take();
        }
        let asked = nodes.node(Purpose::Subscribe).unwrap();
        assert_eq!(asked.address(), "c1:1");
        nodes.told(&publishing, &told(&["p1", "c2"], false));
        let asked = nodes.node(Purpose::Subscribe).unwrap();
        assert_eq!(asked.address(), "c2:1");
    }
}
