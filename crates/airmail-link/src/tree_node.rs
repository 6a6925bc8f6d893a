//! The place of a node in a tree: whose child it is, and who its children are (`003`, 3.1).
//!
//! The *root* has the logs. Every other node is the child of one parent, from which all batches come down to it, and to
//! which all appends go up. So that nobody is long without a parent, and nobody is its own ancestor, the root's *count*
//! comes down in [`Heartbeat`]s, with the path that it has come; the root renews it all the time. A node that finds itself in
//! the path, or gets no new count for a while, leaves its parent at once, and takes no child until it has a place again.
//! It tries the parents of its settings, and then the ancestors that the last heartbeat named, beginning behind the one that
//! it has left. When one of its settings is there again that comes before the one that it has, it goes back.
//!
//! A node has a bounded number of children. One too many is sent on to the child that has the fewest itself.
//!
//! Nothing here connects: [`TreeNode::parent`] is whom to connect to, [`TreeNode::heartbeat`] what to tell children.
//!
//! Invariants: a node that has no place tells no heartbeat, and admits nobody; a node is never its own child; there are at
//! most as many children, and ancestors, as may be.

mod parent_choice;

#[cfg(feature = "sabotage")]
use crate::sabotage::TreeBug;
use airmail_model::{Mono, NodeId, bug};
use parent_choice::ParentChoice;
use std::collections::BTreeMap;
use std::time::Duration;

/// A node on the way from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its number.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Where other nodes reach it: `HOST:PORT`.
    pub address: String,
}

/// A word of the root that comes down the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The start of the root that it is of.
    pub boot: u64,
    /// The root's count.
    pub count: u64,
    /// The nodes that it has come by: the root first, and last whoever tells it.
    pub path: Vec<Ancestor>,
}

/// Bounds of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Most nodes on a way from the root, both ends included. Default: 8.
    pub depth_max: usize,
    /// Most children of a node. Default: 16.
    pub children_max: usize,
    /// Time after which the root renews its count. Default: 200 ms.
    pub renew_every: Duration,
    /// Time without a new count after which a child of the root leaves it. Whoever is further down has a quarter of it
    /// more for each step: the one above goes first, and has a place again before those below leave it. Default: 1 s.
    pub patience: Duration,
}

impl Default for TreeLimits {
    fn default() -> TreeLimits {
        TreeLimits {
            depth_max: 8,
            children_max: 16,
            renew_every: Duration::from_millis(200),
            patience: Duration::from_secs(1),
        }
    }
}

/// Things that happen to a node in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeInput {
    /// Time has passed.
    Tick,
    /// There is a link to the parent at this address.
    Linked {
        /// The parent's address.
        address: String,
    },
    /// The parent has told a heartbeat.
    Told(Heartbeat),
    /// The link to the parent at this address has ended, or cannot be made.
    Gone {
        /// The parent's address.
        address: String,
        /// The child of its that it names in its place, as one that has no room.
        instead: Option<String>,
    },
    /// A parent that is better than the present one would take it.
    Better {
        /// Address of that parent.
        address: String,
    },
    /// A child has so many children itself.
    ChildHas {
        /// The child's name.
        name: String,
        /// Its children.
        children: usize,
    },
    /// A child has left.
    ChildGone {
        /// The child's name.
        name: String,
    },
}

/// Reason for which a node takes no child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoChild {
    /// It has no place in the tree itself at the moment.
    NoPlace,
    /// It is as far from the root as may be.
    Depth(usize),
    /// It has as many children as it may; the one that has the fewest is at this address.
    Full {
        /// The bound.
        children_max: usize,
        /// The child's address.
        instead: String,
    },
    /// The other node is one of its ancestors.
    Ancestor,
    /// The other node has the name of this one, or of one of its ancestors.
    Name,
}

/// A child.
#[derive(Clone, Debug)]
struct Child {
    address: String,
    children: usize,
}

/// The parent that a node has, or tries.
#[derive(Clone, Debug)]
struct Parent {
    address: String,
    is_linked: bool,
    /// One that had no room has named it.
    is_named: bool,
    /// Time at which it was tried, or the link was there.
    since: Mono,
}

/// A node's place in a tree. See the module's documentation.
#[derive(Clone, Debug)]
pub struct TreeNode {
    own: Ancestor,
    boot: u64,
    limits: TreeLimits,
    choice: ParentChoice,
    parent: Option<Parent>,
    /// The last heartbeat of the parent that was new.
    heartbeat: Option<Heartbeat>,
    /// The root, its start and its count, as they were when they were new last.
    seen: Option<(NodeId, u64, u64)>,
    renewed_at: Mono,
    children: BTreeMap<String, Child>,
    /// A planted bug.
    #[cfg(feature = "sabotage")]
    bug: Option<TreeBug>,
    #[cfg(feature = "sabotage")]
    left: Option<String>,
}

impl TreeNode {
    /// The root.
    #[must_use]
    pub fn root(own: Ancestor, boot: u64, limits: TreeLimits) -> TreeNode {
        TreeNode::new(own, boot, Vec::new(), limits, 0)
    }

    /// A node below one of `parents`, of which there is at least one; `seed` sets its pauses apart from those of others.
    #[must_use]
    pub fn below(
        own: Ancestor,
        boot: u64,
        parents: Vec<String>,
        limits: TreeLimits,
        seed: u64,
    ) -> TreeNode {
        assert!(!parents.is_empty(), "no parents");
        TreeNode::new(own, boot, parents, limits, seed)
    }

    fn new(
        own: Ancestor,
        boot: u64,
        parents: Vec<String>,
        limits: TreeLimits,
        random: u64,
    ) -> TreeNode {
        TreeNode {
            choice: ParentChoice::new(own.address.clone(), parents, random),
            own,
            boot,
            limits,
            parent: None,
            heartbeat: None,
            seen: None,
            renewed_at: Mono::default(),
            children: BTreeMap::new(),
            #[cfg(feature = "sabotage")]
            bug: None,
            #[cfg(feature = "sabotage")]
            left: None,
        }
    }

    /// Plants a bug.
    #[cfg(feature = "sabotage")]
    pub fn plant(&mut self, bug: Option<TreeBug>) {
        self.bug = bug;
    }

    /// Whether it is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.choice.parents.is_empty()
    }

    /// The address of the parent to be connected to now, if there is to be one.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_ref().map(|parent| parent.address.as_str())
    }

    /// The heartbeat to be told to children, where there is a place.
    #[must_use]
    pub fn heartbeat(&self) -> Option<Heartbeat> {
        let mut heartbeat = self.heartbeat.clone()?;
        heartbeat.path.push(self.own.clone());
        Some(heartbeat)
    }

    /// Nodes above it. `None`: it has no place.
    #[must_use]
    pub fn path(&self) -> Option<&[Ancestor]> {
        self.heartbeat
            .as_ref()
            .map(|heartbeat| heartbeat.path.as_slice())
    }

    /// Addresses of parents that are better than the present one, if it has a place: those of its settings that come
    /// before. Whoever was sent on by one of them stays.
    #[must_use]
    pub fn better(&self) -> &[String] {
        match &self.parent {
            Some(parent) if self.heartbeat.is_some() && !parent.is_named => {
                self.choice.before(&parent.address)
            }
            _ => &[],
        }
    }

    /// Number of its children.
    #[must_use]
    pub fn children(&self) -> usize {
        self.children.len()
    }

    /// Takes one thing that has happened; when to come back at the latest.
    pub fn step(&mut self, now: Mono, input: TreeInput) -> Mono {
        match input {
            TreeInput::Tick => {}
            TreeInput::Linked { address } => {
                if let Some(parent) = self.parent.as_mut().filter(|one| one.address == address) {
                    parent.is_linked = true;
                    parent.since = now;
                }
            }
            TreeInput::Told(heartbeat) => self.told(now, heartbeat),
            TreeInput::Gone { address, instead } => {
                if self.parent() == Some(&*address) {
                    self.leave(now, instead);
                }
            }
            TreeInput::Better { address } => {
                if self.better().contains(&address) {
                    self.heartbeat = None;
                    self.connect(now, address, false);
                }
            }
            TreeInput::ChildHas { name, children } => {
                if let Some(child) = self.children.get_mut(&name) {
                    child.children = children;
                }
            }
            TreeInput::ChildGone { name } => {
                let _child = self.children.remove(&name);
                #[cfg(feature = "sabotage")]
                if let Some(child) = _child {
                    self.left = Some(child.address);
                }
            }
        }
        self.pass(now)
    }

    /// Whether a node may be its child, and then it is.
    ///
    /// # Errors
    /// [`NoChild`]: it may not.
    pub fn admit(&mut self, node: &Ancestor) -> Result<(), NoChild> {
        let (name, address) = (&*node.name, &*node.address);
        let Some(heartbeat) = &self.heartbeat else {
            return Err(NoChild::NoPlace);
        };
        let depth_max = self.limits.depth_max;
        let above = heartbeat.path.iter().chain([&self.own]);
        let same = above
            .clone()
            .find(|above| above.name == name || above.node == node.node);
        match same {
            Some(same) if same.node == node.node => return Err(NoChild::Ancestor),
            Some(_) => return Err(NoChild::Name),
            None => {}
        }
        // With this node and the other one.
        if heartbeat.path.len() + 2 > depth_max {
            return Err(NoChild::Depth(depth_max));
        }
        let children_max = self.limits.children_max;
        if self.children.len() >= children_max && !self.children.contains_key(name) {
            let fewest = self.children.values().min_by_key(|child| child.children);
            let instead = fewest
                .map(|child| child.address.clone())
                .unwrap_or_default();
            #[cfg(feature = "sabotage")]
            let instead = match (self.bug, &self.left) {
                (Some(TreeBug::RedirectToOneThatLeft), Some(left)) => left.clone(),
                _ => instead,
            };
            return Err(NoChild::Full {
                children_max,
                instead,
            });
        }
        let child = self.children.entry(name.to_owned()).or_insert(Child {
            address: String::new(),
            children: 0,
        });
        address.clone_into(&mut child.address);
        Ok(())
    }

    /// Asserts the invariants of the module's documentation.
    pub fn check(&self) {
        assert!(self.children.len() <= self.limits.children_max, "children");
        assert!(
            self.choice.ancestors() <= self.limits.depth_max,
            "ancestors"
        );
        assert!(!self.children.contains_key(&self.own.name), "its own child");
        let is_linked = self.parent.as_ref().is_some_and(|parent| parent.is_linked);
        assert!(
            self.heartbeat.is_none() || self.is_root() || is_linked,
            "a heartbeat of no parent"
        );
    }

    /// Time without a new count after which it leaves its parent.
    fn patience(&self) -> Duration {
        let above = self.choice.ancestors();
        self.limits.patience + self.limits.patience / 4 * u32::try_from(above).unwrap_or(u32::MAX)
    }

    /// Lets time pass: what is due by now is done; when to come back.
    fn pass(&mut self, now: Mono) -> Mono {
        if self.is_root() {
            return self.renew(now);
        }
        let patience = self.patience();
        match &self.parent {
            Some(parent) if parent.is_linked => {
                let until = self.renewed_at.max(parent.since).plus(patience);
                #[cfg(feature = "sabotage")]
                if self.bug == Some(TreeBug::PathCheckedWhenAttaching) {
                    return until;
                }
                if now < until {
                    return until;
                }
                self.leave(now, None);
                self.choice.try_at
            }
            // Whoever connects says how that has ended.
            Some(_) => now.plus(patience),
            None if now < self.choice.try_at => self.choice.try_at,
            None => {
                let address = self.choice.next();
                self.connect(now, address, false);
                now.plus(patience)
            }
        }
    }

    /// The root renews its count.
    fn renew(&mut self, now: Mono) -> Mono {
        let due = self.renewed_at.plus(self.limits.renew_every);
        #[cfg(feature = "sabotage")]
        if self.bug == Some(TreeBug::CountNotRenewed) && self.heartbeat.is_some() {
            return due;
        }
        if self.heartbeat.is_some() && now < due {
            return due;
        }
        let count = self
            .heartbeat
            .as_ref()
            .map_or(0, |heartbeat| heartbeat.count)
            + 1;
        self.heartbeat = Some(Heartbeat {
            boot: self.boot,
            count,
            path: Vec::new(),
        });
        self.renewed_at = now;
        now.plus(self.limits.renew_every)
    }

    /// The parent has told a heartbeat.
    fn told(&mut self, now: Mono, heartbeat: Heartbeat) {
        if !self.parent.as_ref().is_some_and(|parent| parent.is_linked) {
            return;
        }
        let is_own = |above: &Ancestor| above.node == self.own.node || above.name == self.own.name;
        let is_too_deep = heartbeat.path.len() + 1 > self.limits.depth_max;
        let Some(root) = heartbeat.path.first().filter(|_| !is_too_deep) else {
            // Input: a parent as far from the root as may be, or one that names no root.
            return self.leave(now, None);
        };
        let is_in_path = heartbeat.path.iter().any(is_own);
        #[cfg(feature = "sabotage")]
        let is_in_path = is_in_path
            && !(self.bug == Some(TreeBug::PathCheckedWhenAttaching) && self.heartbeat.is_some());
        if is_in_path {
            return self.leave(now, None);
        }
        let told = (root.node, heartbeat.boot, heartbeat.count);
        let is_new = self.seen.is_none_or(|(node, boot, count)| {
            (node, boot) != (root.node, heartbeat.boot) || count < heartbeat.count
        });
        if is_new {
            self.seen = Some(told);
            self.renewed_at = now;
            let above = heartbeat.path.iter().rev().skip(1);
            self.choice
                .found(above.map(|above| above.address.clone()).collect());
        }
        // A path that has changed is passed on whatever the count: so a circle is found by all who are in it. A place is
        // got by a new count alone.
        if is_new || self.heartbeat.is_some() {
            self.heartbeat = Some(heartbeat);
        }
    }

    /// Leaves the parent, or gives up an attempt; the next one is another, mostly after a pause.
    fn leave(&mut self, now: Mono, instead: Option<String>) {
        let Some(left) = self.parent.take() else {
            bug!("it leaves no parent");
            return;
        };
        self.heartbeat = None;
        let at_once = self.choice.left(now, left.address, instead, &self.limits);
        if let Some(address) = at_once {
            self.connect(now, address, true);
        }
    }

    fn connect(&mut self, now: Mono, address: String, is_named: bool) {
        self.parent = Some(Parent {
            address,
            is_linked: false,
            is_named,
            since: now,
        });
    }
}

#[cfg(test)]
mod tests;
