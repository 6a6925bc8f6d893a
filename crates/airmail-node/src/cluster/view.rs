//! View of the cluster from this node: the members that it knows, what is wrong with them, and which of them clients
//! may use.
//!
//! It is made of what membership knows, at each change, and read by whoever asks.

use crate::config::hosts::Host;
use airmail_membership::{Card, Member, Standing};
use airmail_model::frame::{NODES_TOLD_MAX, Nodes, ServingNode};
use airmail_model::{Error, ErrorCode, Mono};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// A node's view of its cluster. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterView(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    /// Told when the node is to drain.
    wanted: Notify,
}

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// This node, as it says of itself.
    pub(crate) own: Card,
    /// Its number.
    pub(crate) own_number: u64,
    /// Where other nodes reach it. Empty: nowhere.
    pub(crate) own_address: String,
    /// When it began.
    pub(crate) begun: Mono,
    /// The others.
    pub(crate) members: Vec<Member>,
    /// It is to ask its clients to go elsewhere.
    pub(crate) drains: bool,
}

impl ClusterView {
    /// The view of a node that is alone.
    pub(crate) fn alone(own: Card, own_number: u64, begun: Mono) -> ClusterView {
        let view = ClusterView::default();
        *view.0.seen.lock() = Seen {
            own,
            own_number,
            begun,
            ..Seen::default()
        };
        view
    }

    /// Everything that is seen now.
    pub(crate) fn seen(&self) -> Seen {
        self.0.seen.lock().clone()
    }

    /// Takes what is seen, but for whether the node drains.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.seen.lock());
    }

    /// Has the node ask its clients to go elsewhere.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` where there is no other node for them.
    pub(crate) fn drain(&self) -> Result<u32, Error> {
        let mut seen = self.0.seen.lock();
        let others: Vec<&Card> = seen.others_that_may_be_used().collect();
        let is_kept =
            |role: fn(&Card) -> bool| !role(&seen.own) || others.iter().any(|card| role(card));
        if !(is_kept(|card| card.pilot) && is_kept(|card| card.copilot)) {
            let error = Error::new(ErrorCode::InvalidArgument).field("node");
            let limit = "one of several live nodes that clients can use";
            return Err(error.value(&seen.own.name).limit(limit));
        }
        seen.drains = true;
        let connections = seen.own.connections;
        drop(seen);
        self.0.wanted.notify_one();
        Ok(connections)
    }

    /// Waits until somebody has asked for something.
    pub(crate) async fn wanted(&self) {
        self.0.wanted.notified().await;
    }
}

impl Seen {
    /// Nodes that clients of this one may use: it is among them, unless it drains.
    pub(crate) fn serving(&self) -> Nodes {
        let own = Some(&self.own).filter(|own| serves(own) && !self.drains);
        let mut nodes: Vec<ServingNode> = own
            .into_iter()
            .chain(self.others_that_may_be_used())
            .map(serving)
            .collect();
        if nodes.len() == 1 && own.is_some() {
            // Whoever is alone has nothing to tell.
            return Nodes::default();
        }
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        // Of many each node tells others, and always itself.
        let at = nodes.partition_point(|node| node.name < self.own.name);
        nodes.rotate_left(at);
        nodes.truncate(NODES_TOLD_MAX);
        Nodes {
            nodes,
            leave: self.drains,
        }
    }

    /// Cards of the other nodes that clients of this one may use.
    fn others_that_may_be_used(&self) -> impl Iterator<Item = &Card> {
        let is_near =
            |card: &Card| is_loopback(&self.own.client_address) && card.host == self.own.host;
        let live = self
            .members
            .iter()
            .filter(|member| member.standing == Standing::Live);
        let cards = live.filter_map(|member| member.card.as_ref());
        cards.filter(move |card| {
            serves(card) && (!is_loopback(&card.client_address) || is_near(card))
        })
    }

    /// Faults: whatever is not as it should be, in words.
    pub(crate) fn faults(&self, now: Mono) -> Vec<String> {
        let mut faults = Vec::new();
        for member in &self.members {
            let name = &member.id.name;
            if member.standing == Standing::Down {
                let seconds = now.since(member.since).as_secs();
                faults.push(format!("node {name} has been down for {seconds} s"));
            }
        }
        let live = self
            .members
            .iter()
            .filter(|member| member.standing == Standing::Live);
        let cards = live.filter_map(|member| member.card.as_ref());
        let cards: Vec<&Card> = std::iter::once(&self.own).chain(cards).collect();
        for card in &cards {
            if card
                .ways
                .tree
                .as_ref()
                .is_some_and(|tree| tree.is_child && tree.depth == 0)
            {
                faults.push(format!(
                    "node {} has no way to the root of its tree",
                    card.name
                ));
            }
            for unlinked in &card.ways.unlinked {
                faults.push(format!("node {} has no link to {unlinked}", card.name));
            }
        }
        if !cards.iter().any(|card| card.tower) {
            faults.push("no node with role tower is live".to_owned());
        }
        faults
    }
}

/// Whether clients may use the node of a card.
fn serves(card: &Card) -> bool {
    let is_reached = (card.pilot || card.copilot) && !card.client_address.is_empty();
    is_reached && !card.draining && !card.leaving
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.parse::<Host>().is_ok_and(|host| host.is_loopback())
}

fn serving(card: &Card) -> ServingNode {
    ServingNode {
        name: card.name.clone(),
        address: card.client_address.clone(),
        zone: card.zone.clone(),
        host: card.host.clone(),
        connections: card.connections,
        pilot: card.pilot,
        copilot: card.copilot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_membership::MemberId;
    use airmail_model::NodeId;

    fn card(name: &str, address: &str) -> Card {
        Card {
            name: name.into(),
            pilot: true,
            copilot: true,
            client_address: address.into(),
            host: "here".into(),
            ..Card::default()
        }
    }

    fn member(card: Card, standing: Standing) -> Member {
        Member {
            id: MemberId::new(&*card.name, NodeId(1), 1, ([127, 0, 0, 1], 7402).into()),
            card: Some(card),
            standing,
            since: Mono(2_000_000_000),
        }
    }

    fn seen(own: Card, members: Vec<Member>) -> Seen {
        Seen {
            own,
            members,
            ..Seen::default()
        }
    }

    fn names(seen: &Seen) -> Vec<String> {
        let nodes = seen.serving().nodes;
        nodes.into_iter().map(|node| node.name).collect()
    }

    #[test]
    fn clients_are_told_of_live_nodes_that_take_them_and_of_nothing_where_a_node_is_alone() {
        let other = |change: fn(&mut Card), standing| {
            let mut card = card("b", "10.0.0.2:7400");
            change(&mut card);
            seen(card_of_a(), vec![member(card, standing)])
        };
        fn card_of_a() -> Card {
            card("a", "10.0.0.1:7400")
        }
        assert_eq!(names(&seen(card_of_a(), Vec::new())), [""; 0]);
        assert_eq!(names(&other(|_| {}, Standing::Live)), ["a", "b"]);
        let none: [&str; 0] = [];
        for standing in [Standing::Suspect, Standing::Down, Standing::Left] {
            assert_eq!(names(&other(|_| {}, standing)), none);
        }
        let neither = |card: &mut Card| (card.pilot, card.copilot) = (false, false);
        assert_eq!(names(&other(neither, Standing::Live)), none);
        let pilot = |card: &mut Card| card.copilot = false;
        assert_eq!(names(&other(pilot, Standing::Live)), ["a", "b"]);
        assert_eq!(
            names(&other(|card| card.draining = true, Standing::Live)),
            none
        );
        assert_eq!(
            names(&other(|card| card.client_address.clear(), Standing::Live)),
            none
        );
    }

    #[test]
    fn a_node_on_loopback_is_told_of_on_its_own_machine_alone() {
        let on = |own: &str, host: &str| {
            let other = Card {
                host: host.into(),
                ..card("b", "127.0.0.1:7410")
            };
            names(&seen(card("a", own), vec![member(other, Standing::Live)])).len()
        };
        assert_eq!(on("127.0.0.1:7400", "here"), 2);
        assert_eq!(on("127.0.0.1:7400", "there"), 0);
        assert_eq!(on("10.0.0.1:7400", "here"), 0);
    }

    #[test]
    fn a_node_that_drains_tells_of_the_others_and_asks_to_leave() {
        let other = member(card("b", "10.0.0.2:7400"), Standing::Live);
        let mut drains = seen(card("a", "10.0.0.1:7400"), vec![other]);
        drains.drains = true;
        assert_eq!(names(&drains), ["b"]);
        assert!(drains.serving().leave);
    }

    #[test]
    fn nobody_drains_where_clients_have_nowhere_to_go() {
        let view = ClusterView::alone(card("a", "10.0.0.1:7400"), 1, Mono(0));
        let error = view.drain().unwrap_err();
        assert_eq!((error.field_name(), error.found()), ("node", "a"));
        let other = member(card("b", "10.0.0.2:7400"), Standing::Live);
        view.update(|seen| seen.members.push(other));
        assert!(view.drain().is_ok() && view.seen().drains);
    }

    #[test]
    fn the_last_node_of_a_role_does_not_drain() {
        let view = ClusterView::alone(card("a", "10.0.0.1:7400"), 1, Mono(0));
        let pilot = Card {
            copilot: false,
            ..card("b", "10.0.0.2:7400")
        };
        let copilot = Card {
            pilot: false,
            ..card("c", "10.0.0.3:7400")
        };
        view.update(|seen| seen.members.push(member(pilot, Standing::Live)));
        assert!(view.drain().is_err());
        view.update(|seen| seen.members.push(member(copilot, Standing::Live)));
        assert!(view.drain().is_ok());
    }

    #[test]
    fn of_many_nodes_a_client_is_told_of_some_and_always_of_its_own() {
        let others = (0..100).map(|number| {
            let name = format!("n{number:03}");
            member(card(&name, "10.0.0.2:7400"), Standing::Live)
        });
        let many = seen(card("n050b", "10.0.0.1:7400"), others.collect());
        let told = names(&many);
        assert_eq!(told.len(), NODES_TOLD_MAX);
        assert_eq!((&*told[0], &*told[1]), ("n050b", "n051"));
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        let mut own = card("a", "10.0.0.1:7400");
        own.tower = true;
        assert_eq!(seen(own.clone(), Vec::new()).faults(Mono(0)), [""; 0]);
        let down = member(card("b", "10.0.0.2:7400"), Standing::Down);
        let mut cut = card("c", "10.0.0.3:7400");
        cut.ways.unlinked = vec!["a".into()];
        let cut = member(cut, Standing::Live);
        let left = member(card("d", "10.0.0.4:7400"), Standing::Left);
        let faults = seen(own, vec![down, cut, left]).faults(Mono(9_000_000_000));
        assert_eq!(
            faults,
            ["node b has been down for 7 s", "node c has no link to a"]
        );
        let gateway = seen(card("a", "10.0.0.1:7400"), Vec::new());
        assert_eq!(gateway.faults(Mono(0)), ["no node with role tower is live"]);
    }
}
