//! The tree: a node's place in it ([`TreeNode`]), and everyone who has to do with that.
//!
//! Links say what has happened, from whichever thread; whom to connect to, and what to tell children, follows at once.
//! What passes with time is looked at where the node was started.

use super::carrying::Words;
use airmail_link::{
    Ancestor, CacheState, FromHost, Heartbeat, NoChild, ToHost, TreeInput, TreeNode,
};
use airmail_membership::TreeCard;
use airmail_model::Mono;
use airmail_model::clock::Clock;
use airmail_wire::handshake::Refusal;
use airmail_wire::link_v1::refused::Why;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two looks at what has passed, at most.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time between two questions how long the way to the parent is.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// A node's place in a tree, with its links. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tree(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// The address of the parent to be connected to.
    parent: watch::Sender<Option<String>>,
}

struct State {
    place: TreeNode,
    /// The heartbeat that children were told last.
    told: Option<Heartbeat>,
    /// Links to children, by name.
    children: BTreeMap<String, Arc<Words<FromHost>>>,
    /// The link to the parent.
    above: Option<Arc<Words<ToHost>>>,
    /// Caches of what the parent gives, one of each shard.
    caches: Vec<Arc<CacheState>>,
    asked_at: Mono,
    delay: Duration,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        f.debug_struct("Tree")
            .field("place", &state.place)
            .finish_non_exhaustive()
    }
}

impl Tree {
    /// A node with this place.
    pub(crate) fn new(place: TreeNode, clock: Arc<dyn Clock>) -> Tree {
        Tree(Arc::new(Shared {
            clock,
            state: Mutex::new(State {
                place,
                told: None,
                children: BTreeMap::new(),
                above: None,
                caches: Vec::new(),
                asked_at: Mono::default(),
                delay: Duration::ZERO,
            }),
            parent: watch::Sender::new(None),
        }))
    }

    /// Lets time pass until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let next = self.input(TreeInput::Tick);
            self.ask_now_and_then();
            let now = self.0.clock.mono();
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(next.since(now).min(LOOK_EVERY)) => {}
            }
        }
    }

    /// The address of the parent to be connected to, whenever it changes.
    pub(super) fn parent(&self) -> watch::Receiver<Option<String>> {
        self.0.parent.subscribe()
    }

    /// There is a link to the parent at an address, over which words go.
    pub(super) fn linked(&self, address: &str, words: &Arc<Words<ToHost>>) {
        self.0.state.lock().above = Some(Arc::clone(words));
        let address = address.to_owned();
        self.input(TreeInput::Linked { address });
        self.ask();
    }

    /// Addresses of parents that are better than the present one.
    pub(super) fn better(&self) -> Vec<String> {
        self.0.state.lock().place.better().to_vec()
    }

    /// A parent that is better would take this node.
    pub(super) fn better_found(&self, address: String) {
        self.input(TreeInput::Better { address });
    }

    /// The link to the parent at an address has ended, or cannot be made.
    pub(super) fn gone(&self, address: &str, instead: Option<String>) {
        self.0.state.lock().above = None;
        let address = address.to_owned();
        self.input(TreeInput::Gone { address, instead });
    }

    /// The parent has told a heartbeat, perhaps upon a question.
    pub(super) fn told(&self, heartbeat: Heartbeat, asked_us: u64) {
        if asked_us > 0 {
            let passed = self.now_us().saturating_sub(asked_us);
            self.0.state.lock().delay = Duration::from_micros(passed / 2);
        }
        self.input(TreeInput::Told(heartbeat));
    }

    /// Whether a node may be a child, and then it is.
    pub(super) fn admit(&self, node: &Ancestor) -> Result<(), Refusal> {
        let admitted = self.0.state.lock().place.admit(node);
        let name = &node.name;
        let refused = |why, text: String| Err(Refusal::new(why, text));
        match admitted {
            Ok(()) => Ok(()),
            Err(NoChild::NoPlace) => refused(
                Why::Place,
                "this node has no way to the root now".to_owned(),
            ),
            Err(NoChild::Ancestor) => {
                refused(Why::Place, format!("{name} is an ancestor of this node"))
            }
            Err(NoChild::Name) => {
                let text =
                    format!("the name {name} is that of a node above: name each node otherwise");
                refused(Why::Name, text)
            }
            Err(NoChild::Depth(most)) => {
                let text = format!("{most} nodes are on the way from the root: tree.depth_max");
                refused(Why::Depth, text)
            }
            Err(NoChild::Full {
                children_max,
                instead,
            }) => {
                let text = format!("this node has {children_max} children: tree.children_max");
                let refusal = Refusal::new(Why::Full, text);
                let instead = Some(instead).filter(|instead| !instead.is_empty());
                Err(Refusal { instead, ..refusal })
            }
        }
    }

    /// There is a link to a child, over which words go.
    pub(super) fn child_linked(&self, name: &str, words: &Arc<Words<FromHost>>) {
        let mut state = self.0.state.lock();
        state.say(words, 0);
        state.children.insert(name.to_owned(), Arc::clone(words));
        drop(state);
        self.ask();
    }

    /// A child has told something of itself, and asks for a heartbeat.
    pub(super) fn child_said(
        &self,
        name: &str,
        (children, asked_us): (u32, u64),
        words: &Arc<Words<FromHost>>,
    ) {
        let (name, children) = (name.to_owned(), children as usize);
        self.input(TreeInput::ChildHas { name, children });
        self.0.state.lock().say(words, asked_us);
    }

    /// A child has no link any more.
    pub(super) fn child_gone(&self, name: &str) {
        self.0.state.lock().children.remove(name);
        let name = name.to_owned();
        self.input(TreeInput::ChildGone { name });
        self.ask();
    }

    /// The node's place, as it says of itself.
    pub(crate) fn card(&self) -> TreeCard {
        let state = self.0.state.lock();
        let path = state.place.path().unwrap_or_default();
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let now = self.0.clock.mono();
        let behind = state.caches.iter().map(|cache| cache.behind(now)).max();
        let behind = behind.unwrap_or_default();
        TreeCard {
            is_child: !state.place.is_root(),
            parent: path
                .last()
                .map_or_else(String::new, |above| above.name.clone()),
            depth: count(path.len()),
            children: count(state.place.children()),
            delay_us: u32::try_from(state.delay.as_micros()).unwrap_or(u32::MAX),
            behind_ms: u32::try_from(behind.as_millis()).unwrap_or(u32::MAX),
        }
    }

    /// Takes note of the cache of a shard.
    pub(crate) fn add_cache(&self, cache: Arc<CacheState>) {
        self.0.state.lock().caches.push(cache);
    }

    fn now_us(&self) -> u64 {
        // 0 is no question.
        (self.0.clock.mono().0 / 1_000).max(1)
    }

    /// Takes something that has happened, and tells those whom it concerns.
    fn input(&self, input: TreeInput) -> Mono {
        let now = self.0.clock.mono();
        let mut state = self.0.state.lock();
        let next = state.place.step(now, input);
        let heartbeat = state.place.heartbeat();
        if heartbeat != state.told {
            state.told = heartbeat;
            let children: Vec<_> = state.children.values().cloned().collect();
            children.iter().for_each(|words| state.say(words, 0));
        }
        let parent = state.place.parent().map(str::to_owned);
        self.0.parent.send_if_modified(|before| {
            let is_other = *before != parent;
            *before = parent;
            is_other
        });
        next
    }

    /// Asks the parent how long the way is, and tells it of the children.
    fn ask(&self) {
        let asked_us = self.now_us();
        let state = self.0.state.lock();
        if let Some(above) = &state.above {
            let children = u32::try_from(state.place.children()).unwrap_or(u32::MAX);
            above.say(ToHost::Below { children, asked_us });
        }
    }

    fn ask_now_and_then(&self) {
        let now = self.0.clock.mono();
        let is_time = now >= self.0.state.lock().asked_at.plus(ASK_EVERY);
        if is_time {
            self.0.state.lock().asked_at = now;
            self.ask();
        }
    }
}

impl State {
    /// Tells a child the heartbeat, if there is one.
    fn say(&self, words: &Arc<Words<FromHost>>, asked_us: u64) {
        if let Some(heartbeat) = self.place.heartbeat() {
            let heartbeat = Box::new(heartbeat);
            words.say(FromHost::Heartbeat {
                heartbeat,
                asked_us,
            });
        }
    }
}
