//! Everything around a tree's nodes that they meet: the time, the links, which processes have turns.

use super::super::Process;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::world::cluster::{Condition, Joint};
use crate::world::wire::{Wire, WireSettings};
use airmail_link::{FromHost, Heartbeat, ToHost};
use airmail_model::Mono;

/// See the module's documentation.
pub(in crate::world::cluster::roles) struct Ambient<'a> {
    pub(in crate::world::cluster::roles) now: Mono,
    pub(in crate::world::cluster::roles) nodes: &'a [Process],
    pub(in crate::world::cluster::roles) joints: &'a mut Vec<Joint>,
    pub(in crate::world::cluster::roles) wires: WireSettings,
    pub(in crate::world::cluster::roles) chance: &'a mut Entropy,
    pub(in crate::world::cluster::roles) evidence: &'a mut Evidence,
}

impl Ambient<'_> {
    /// The link of a node to its parent, as long as it is there.
    fn joint(&mut self, child: usize) -> Option<&mut Joint> {
        self.joints.iter_mut().rfind(|joint| {
            joint.near == child && !joint.is_over && !matches!(joint.condition, Condition::Down(_))
        })
    }

    /// The parent to which a node has a link.
    pub(super) fn parent_of(&mut self, child: usize) -> Option<usize> {
        self.joint(child).map(|joint| joint.far)
    }

    /// Whether nothing is lost between a node and its parent.
    pub(super) fn is_whole(&mut self, child: usize) -> bool {
        let joint = self.joint(child);
        joint.is_some_and(|joint| matches!(joint.condition, Condition::Up))
    }

    /// Makes a link of a node to a parent.
    pub(super) fn link(&mut self, child: usize, parent: usize) -> &Wire {
        let wire = Wire::new(self.wires, self.chance);
        wire.pass(self.now);
        wire.up();
        let mut joint = Joint::new(child, parent, wire);
        joint.condition = Condition::Up;
        self.evidence
            .note(format_args!("{} {joint} is up", self.now.0));
        self.joints.push(joint);
        &self.joints[self.joints.len() - 1].wire
    }

    /// A node gives up its link.
    pub(super) fn unlink(&mut self, child: usize) {
        let now = self.now;
        for joint in self.joints.iter_mut().filter(|joint| joint.near == child) {
            if !matches!(joint.condition, Condition::Down(_)) {
                joint.cut(now, self.chance, self.evidence);
            }
            joint.is_over = true;
        }
    }

    /// A node tells a child of its the root's word.
    pub(super) fn say_heartbeat(&mut self, child: usize, heartbeat: &Heartbeat) {
        if let Some(joint) = self.joint(child) {
            let heartbeat = Box::new(heartbeat.clone());
            let asked_us = 0;
            joint.wire.say_near(FromHost::Heartbeat {
                heartbeat,
                asked_us,
            });
        }
    }

    /// A node tells its parent of its children.
    pub(super) fn say_children(&mut self, child: usize, children: usize) {
        if let Some(joint) = self.joint(child) {
            let children = u32::try_from(children).unwrap_or(u32::MAX);
            let asked_us = 1;
            joint.wire.say_far(ToHost::Below { children, asked_us });
        }
    }
}
