//! Dialing: a node connects to the parent that its place names, and is taken as its child, or refused.

use super::member::Climb;
use super::{Ambient, ROOT_AT, Tree, address};
use crate::census::Kind;
use crate::invariants::Checked;
use crate::world::plug;
use airmail_link::{NoChild, TreeInput};
use std::time::Duration;

/// Longest time until it is known that nobody listens, or somebody does, in microseconds.
const ANSWER_MICROS_MAX: u64 = 20_000;
/// Time after which one who gets no answer gives up.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Way to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Open,
    /// Nobody listens.
    Refused,
    /// Nobody answers.
    Silent,
}

/// An attempt at a link.
pub(super) fn begin(parent: usize, ambient: &mut Ambient<'_>) -> Climb {
    let answer = ambient.chance.below(ANSWER_MICROS_MAX);
    Climb::Dialing {
        parent,
        begun: ambient.now,
        due: ambient.now.plus(Duration::from_micros(answer)),
    }
}

impl Tree {
    /// Whether a node gets an answer of another one now.
    pub(super) fn reach(&self, node: usize, other: usize, ambient: &Ambient<'_>) -> Reach {
        let process = &ambient.nodes[other];
        if self.is_cut(node, other) || self.is_cut(other, node) {
            Reach::Silent
        } else if !process.is_up || other == ROOT_AT && self.is_root_stopping {
            Reach::Refused
        } else if process.stall.until > ambient.now {
            Reach::Silent
        } else {
            Reach::Open
        }
    }

    /// A node that dials hears what comes of it.
    pub(super) fn dial(&mut self, node: usize, ambient: &mut Ambient<'_>) -> Checked {
        let climb = self.members[node].as_ref().map(|member| member.climb);
        let Some(Climb::Dialing { parent, begun, due }) = climb else {
            // Input: a node that does not dial.
            return Ok(());
        };
        if ambient.now < due {
            return Ok(());
        }
        match self.reach(node, parent, ambient) {
            Reach::Silent if ambient.now < begun.plus(PATIENCE) => Ok(()),
            Reach::Silent | Reach::Refused => self.not_linked(node, parent, None, ambient),
            Reach::Open => self.ask_to_be_child(node, parent, ambient),
        }
    }

    fn not_linked(
        &mut self,
        node: usize,
        parent: usize,
        instead: Option<String>,
        ambient: &mut Ambient<'_>,
    ) -> Checked {
        if let Some(member) = &mut self.members[node] {
            member.climb = Climb::No;
        }
        if instead.is_none() {
            self.places.not_sent_on(node);
        }
        let address = address(parent);
        self.input(node, TreeInput::Gone { address, instead }, ambient)
    }

    fn ask_to_be_child(
        &mut self,
        node: usize,
        parent: usize,
        ambient: &mut Ambient<'_>,
    ) -> Checked {
        self.end_children(parent, ambient)?;
        let own = self.members[node].as_ref().map(|member| member.own.clone());
        let place = self.members[parent].as_mut().map(|of| &mut of.place);
        let admitted = own.zip(place).map(|(own, place)| place.admit(&own));
        let now = ambient.now.0;
        ambient.evidence.note(format_args!(
            "{now} node {node} asks {parent} to be its child: {admitted:?}"
        ));
        match admitted {
            Some(Ok(())) => return self.link(node, parent, ambient),
            Some(Err(NoChild::Full { instead, .. })) => {
                ambient.evidence.count(Kind::SentOn);
                let child = self.node_at(&instead);
                let is_child = child.is_some_and(|child| {
                    let member = self.members[parent].as_ref();
                    member.is_some_and(|member| member.children.contains_key(&child))
                });
                self.places.sent_on(node, &instead, is_child)?;
                return self.not_linked(node, parent, Some(instead), ambient);
            }
            Some(Err(NoChild::Depth(_))) => ambient.evidence.count(Kind::TooDeep),
            Some(Err(NoChild::Ancestor)) => ambient.evidence.count(Kind::CirclePrevented),
            Some(Err(NoChild::NoPlace | NoChild::Name)) | None => {}
        }
        self.not_linked(node, parent, None, ambient)
    }

    /// A node has become a child: its link is bound to this parent from now on.
    fn link(&mut self, node: usize, parent: usize, ambient: &mut Ambient<'_>) -> Checked {
        self.places.not_sent_on(node);
        let Some(of_parent) = &mut self.members[parent] else {
            // Input: a parent that is down, which takes nobody.
            return self.not_linked(node, parent, None, ambient);
        };
        let idle = of_parent.free.iter().position(plug::Socket::is_idle);
        let socket = match idle {
            Some(idle) => of_parent.free.swap_remove(idle),
            None => {
                let (port, socket) = plug::far();
                if of_parent.arrivals.try_send(Box::new(port)).is_err() {
                    // As a storage that takes no more links at the moment.
                    let name = format!("n{node}");
                    self.input(parent, TreeInput::ChildGone { name }, ambient)?;
                    return self.not_linked(node, parent, None, ambient);
                }
                socket
            }
        };
        let wire = ambient.link(node, parent);
        socket.bind(wire.far());
        of_parent.children.insert(node, socket);
        if let Some(member) = &mut self.members[node] {
            member.climb = Climb::Linked { parent };
            if let Some(above) = &member.above {
                above.bind(wire.near());
            }
        }
        let before = self.last_parents[node].replace(parent);
        if before.is_some_and(|before| before != parent) {
            ambient.evidence.count(Kind::Reattached);
        }
        let address = address(parent);
        self.input(node, TreeInput::Linked { address }, ambient)?;
        self.say_heartbeat(parent, node, ambient);
        self.ask(node, ambient);
        self.ask(parent, ambient);
        Ok(())
    }
}
