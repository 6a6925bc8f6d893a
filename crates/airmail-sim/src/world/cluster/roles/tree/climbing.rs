//! Climbing: what happens to each node of a tree in a turn, as in the shell of a real one.

use super::member::{Climb, Member};
use super::{Ambient, ROOT_AT, Tree, address};
use crate::census::Kind;
use crate::invariants::Checked;
use airmail_link::{FromHost, Heartbeat, NoChild, ToHost, TreeInput};
use std::time::Duration;

/// Time between two words of a node to its parent about its children.
const ASK_EVERY: Duration = Duration::from_secs(1);

impl Tree {
    /// Lets every node that has a turn do what is due.
    pub(in crate::world::cluster::roles) fn turn(&mut self, ambient: &mut Ambient<'_>) -> Checked {
        let has_turn = |node: &usize| ambient.nodes[*node].is_up && ambient.nodes[*node].is_awake;
        let nodes: Vec<usize> = (0..self.nodes()).filter(has_turn).collect();
        for node in nodes.iter().copied() {
            self.end_children(node, ambient)?;
            self.hear_children(node, ambient)?;
            self.climb(node, ambient)?;
        }
        self.check_circles(&nodes, ambient)
    }

    /// Takes something that has happened to a node, and tells its children what is new.
    pub(super) fn input(
        &mut self,
        node: usize,
        input: TreeInput,
        ambient: &mut Ambient<'_>,
    ) -> Checked {
        let Some(member) = &mut self.members[node] else {
            // Input: a node that is down.
            return Ok(());
        };
        member.place.step(ambient.now, input);
        member.place.check();
        let heartbeat = member.place.heartbeat();
        if heartbeat != member.told {
            if let Some(heartbeat) = &heartbeat {
                for child in member.children.keys() {
                    ambient.say_heartbeat(*child, heartbeat);
                }
            }
            member.told = heartbeat;
        }
        self.places
            .see(ambient.now, node, &member.own, &member.place)
    }

    /// Forgets children whose links have ended.
    pub(super) fn end_children(&mut self, node: usize, ambient: &mut Ambient<'_>) -> Checked {
        let Some(member) = &mut self.members[node] else {
            // Input: a node that is down.
            return Ok(());
        };
        let children: Vec<usize> = member.children.keys().copied().collect();
        for child in children {
            if ambient.parent_of(child) == Some(node) {
                continue;
            }
            self.child_gone(node, child, ambient)?;
        }
        Ok(())
    }

    fn child_gone(&mut self, node: usize, child: usize, ambient: &mut Ambient<'_>) -> Checked {
        if let Some(member) = &mut self.members[node] {
            member.free.extend(member.children.remove(&child));
        }
        let name = format!("n{child}");
        self.input(node, TreeInput::ChildGone { name }, ambient)?;
        self.ask(node, ambient);
        Ok(())
    }

    /// Takes what children say of theirs, and answers with the root's word.
    fn hear_children(&mut self, node: usize, ambient: &mut Ambient<'_>) -> Checked {
        let Some(member) = &self.members[node] else {
            // Input: a node that is down.
            return Ok(());
        };
        let children = member.children.iter();
        let heard: Vec<(usize, ToHost)> = children
            .flat_map(|(child, socket)| socket.take_heard().into_iter().map(|word| (*child, word)))
            .collect();
        for (child, word) in heard {
            if let ToHost::Below { children, .. } = word {
                let (name, children) = (format!("n{child}"), children as usize);
                self.input(node, TreeInput::ChildHas { name, children }, ambient)?;
                self.say_heartbeat(node, child, ambient);
            }
        }
        Ok(())
    }

    /// A node tells a child the root's word as it is now.
    pub(super) fn say_heartbeat(&self, node: usize, child: usize, ambient: &mut Ambient<'_>) {
        let member = self.members[node].as_ref();
        if let Some(heartbeat) = member.and_then(|member| member.place.heartbeat()) {
            ambient.say_heartbeat(child, &heartbeat);
        }
    }

    /// A node tells its parent of its children.
    pub(super) fn ask(&self, node: usize, ambient: &mut Ambient<'_>) {
        if let Some(member) = &self.members[node]
            && matches!(member.climb, Climb::Linked { .. })
        {
            ambient.say_children(node, member.place.children());
        }
    }

    /// A node hears its parent, and goes where its place says.
    fn climb(&mut self, node: usize, ambient: &mut Ambient<'_>) -> Checked {
        if node != ROOT_AT {
            self.see_link(node, ambient)?;
            self.hear_parent(node, ambient)?;
        }
        let had_place = self.has_place(node);
        self.input(node, TreeInput::Tick, ambient)?;
        if had_place && !self.has_place(node) {
            ambient.evidence.count(Kind::PlaceLost);
            let now = ambient.now.0;
            ambient
                .evidence
                .note(format_args!("{now} node {node} misses the root's count"));
        }
        if node == ROOT_AT {
            return Ok(());
        }
        self.follow(node, ambient);
        self.dial(node, ambient)?;
        self.look_for_better(node, ambient)?;
        if let Some(member) = &mut self.members[node]
            && ambient.now >= member.asked_at.plus(ASK_EVERY)
        {
            member.asked_at = ambient.now;
            self.ask(node, ambient);
        }
        Ok(())
    }

    fn has_place(&self, node: usize) -> bool {
        let member = self.members[node].as_ref();
        member.is_some_and(|member| member.place.path().is_some())
    }

    /// Notes that a node's link has ended.
    fn see_link(&mut self, node: usize, ambient: &mut Ambient<'_>) -> Checked {
        let is_linked = ambient.parent_of(node).is_some();
        let Some(member) = &mut self.members[node] else {
            // Input: a node that is down.
            return Ok(());
        };
        let Climb::Linked { parent } = member.climb else {
            // Input: a node that has no link.
            return Ok(());
        };
        if is_linked {
            return Ok(());
        }
        member.climb = Climb::No;
        ambient.unlink(node);
        let (address, instead) = (address(parent), None);
        self.input(node, TreeInput::Gone { address, instead }, ambient)
    }

    fn hear_parent(&mut self, node: usize, ambient: &mut Ambient<'_>) -> Checked {
        let member = self.members[node].as_ref();
        let above = member.and_then(|member| {
            let is_linked = matches!(member.climb, Climb::Linked { .. });
            member.above.as_ref().filter(|_| is_linked)
        });
        let heard = above.map(crate::world::plug::Socket::take_heard);
        for word in heard.into_iter().flatten() {
            if let FromHost::Heartbeat { heartbeat, .. } = word {
                self.count_circle(node, &heartbeat, ambient);
                self.input(node, TreeInput::Told(*heartbeat), ambient)?;
            }
        }
        Ok(())
    }

    fn count_circle(&self, node: usize, heartbeat: &Heartbeat, ambient: &mut Ambient<'_>) {
        let member = self.members[node].as_ref();
        let is_own = |member: &Member| {
            let mut path = heartbeat.path.iter();
            path.any(|above| above.node == member.own.node)
        };
        if member.is_some_and(is_own) {
            ambient.evidence.count(Kind::CirclePrevented);
        }
    }

    /// Gives up the link, or the attempt at one, that its place does not want any more, and begins another.
    fn follow(&mut self, node: usize, ambient: &mut Ambient<'_>) {
        let wanted = self.members[node].as_ref().and_then(|member| {
            let address = member.place.parent()?;
            self.node_at(address)
        });
        let Some(member) = &mut self.members[node] else {
            // Input: a node that is down.
            return;
        };
        let has = match member.climb {
            Climb::No => None,
            Climb::Dialing { parent, .. } | Climb::Linked { parent } => Some(parent),
        };
        if has == wanted {
            return;
        }
        if matches!(member.climb, Climb::Linked { .. }) {
            ambient.unlink(node);
        }
        member.climb = wanted.map_or(Climb::No, |parent| super::dialing::begin(parent, ambient));
    }

    /// Asks now and then whether a parent would take a node that comes before its own, and goes there.
    fn look_for_better(&mut self, node: usize, ambient: &mut Ambient<'_>) -> Checked {
        let Some(member) = &mut self.members[node] else {
            // Input: a node that is down.
            return Ok(());
        };
        let is_linked = matches!(member.climb, Climb::Linked { .. });
        if !is_linked || ambient.now < member.looked_at.plus(self.look_every) {
            return Ok(());
        }
        // Two that went to each other at once would both lose their way.
        let apart = ambient
            .chance
            .below(self.look_every.as_nanos() as u64 / 3 + 1);
        member.looked_at = ambient.now.plus(Duration::from_nanos(apart));
        let own = member.own.clone();
        for address in member.place.better().to_vec() {
            let Some(parent) = self.node_at(&address) else {
                // Input: no node has such an address.
                continue;
            };
            if self.reach(node, parent, ambient) != super::dialing::Reach::Open {
                continue;
            }
            self.end_children(parent, ambient)?;
            let place = self.members[parent]
                .as_mut()
                .map(|member| &mut member.place);
            match place.map(|place| place.admit(&own)) {
                Some(Ok(())) => {
                    // Only to know: the link is another one's.
                    let name = own.name;
                    self.input(parent, TreeInput::ChildGone { name }, ambient)?;
                    ambient.evidence.count(Kind::ParentBetter);
                    return self.input(node, TreeInput::Better { address }, ambient);
                }
                Some(Err(NoChild::Ancestor)) => ambient.evidence.count(Kind::CirclePrevented),
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks for nodes that are their own ancestors, by links over which nothing is lost.
    fn check_circles(&mut self, awake: &[usize], ambient: &mut Ambient<'_>) -> Checked {
        for node in 0..self.nodes() {
            let mut at = Some(node);
            for _ in 0..self.nodes() {
                at = at
                    .filter(|at| awake.contains(at) && ambient.is_whole(*at))
                    .and_then(|at| ambient.parent_of(at));
                if at == Some(node) {
                    break;
                }
            }
            let is_circling = at == Some(node);
            self.places.see_circle(ambient.now, node, is_circling)?;
        }
        Ok(())
    }
}
