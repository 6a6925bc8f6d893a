//! A tree under test: a way from the root down to a leaf, each node of which has a cache, and lines between them.
//!
//! ```text
//! leaf: CachedStorage over LinkStorage ── Line ──▶ HostedStorage over CachedStorage over LinkStorage ── Line ──▶ …
//!                                                                  … ── Line ──▶ HostedStorage over the storage
//! ```
//!
//! The root hosts its storage twice, as a node with several shards does: that of a shard for links to it, and around it all
//! logs for children.

use super::NearPort;
use super::line::{Line, Weather, below};
use airmail_link::{CacheLimits, CachedStorage, HostedStorage, LinkLimits, LinkStorage};
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble};
use airmail_model::{Mono, Now};

/// A node below the root: its logs are those of the one above.
type Below = CachedStorage<LinkStorage<NearPort>>;

/// A leaf, and everything above it, as one storage.
pub(crate) struct Treed<S: LogStorage> {
    pub(crate) leaves: Vec<Below>,
    /// Nodes between, the nearest to the leaf first.
    inner: Vec<HostedStorage<Below>>,
    root: HostedStorage<HostedStorage<S>>,
    /// The leaves' lines, and then those of the nodes between.
    lines: Vec<Line>,
}

/// A near end, by a line of its own.
fn near(line: &Line, capabilities: Capabilities, limits: (LinkLimits, CacheLimits)) -> Below {
    let near: NearPort = Box::new(line.near());
    CachedStorage::new(
        LinkStorage::to_parents(near, capabilities, limits.0),
        limits.1,
    )
}

impl<S: LogStorage> Treed<S> {
    /// A tree with `depth` links between its root and its leaf.
    pub(crate) fn new(
        storage: S,
        depth: usize,
        limits: (LinkLimits, CacheLimits),
        weather: Weather,
    ) -> Treed<S> {
        Treed::with_leaves(storage, (depth, 1), limits, weather)
    }

    /// The same with several leaves, side by side.
    pub(crate) fn with_leaves(
        storage: S,
        (depth, leaves): (usize, usize),
        limits: (LinkLimits, CacheLimits),
        weather: Weather,
    ) -> Treed<S> {
        assert!(depth > 0, "a leaf is below the root");
        let capabilities = storage.capabilities();
        let mut seed = weather.seed;
        let mut line = || {
            below(&mut seed, 1);
            Line::to(Weather { seed, ..weather }, Some(0))
        };
        let lines: Vec<Line> = (0..leaves + depth - 1).map(|_| line()).collect();
        let (of_leaves, of_inner) = lines.split_at(leaves);
        let mut inner: Vec<HostedStorage<Below>> = of_inner
            .iter()
            .map(|line| HostedStorage::new(near(line, capabilities, limits), limits.0))
            .collect();
        let own = HostedStorage::new(storage, limits.0);
        let mut root = HostedStorage::around(own, limits.0);
        for line in of_leaves {
            let far = Box::new(line.far(0));
            match inner.first_mut() {
                Some(nearest) => nearest.add_port(far),
                None => root.add_port(far),
            }
        }
        for (place, line) in of_inner.iter().enumerate() {
            let far = Box::new(line.far(0));
            match inner.get_mut(place + 1) {
                Some(above) => above.add_port(far),
                None => root.add_port(far),
            }
        }
        let leaves = of_leaves.iter();
        let leaves = leaves
            .map(|line| near(line, capabilities, limits))
            .collect();
        Treed {
            leaves,
            inner,
            root,
            lines,
        }
    }

    /// Bytes of batches that have come down the link to each node below the root, the leaves first.
    pub(crate) fn fetched_bytes(&self) -> Vec<u64> {
        let leaves = self.leaves.iter().map(|leaf| leaf.state().fetched_bytes());
        let inner = self
            .inner
            .iter()
            .map(|inner| inner.storage().state().fetched_bytes());
        leaves.chain(inner).collect()
    }

    /// The line of a leaf.
    pub(crate) fn line(&self, leaf: usize) -> &Line {
        &self.lines[leaf]
    }

    /// No line is cut any more.
    pub(crate) fn calm(&self) {
        self.lines.iter().for_each(Line::calm);
    }

    /// Polls everything once, a moment later: what each leaf is told, and whether nothing more comes by itself.
    pub(crate) fn turn(&mut self, now: &mut Now) -> (Vec<Vec<Completion>>, bool) {
        now.mono.0 += 1_000;
        now.wall.0 += 1;
        let mut told = vec![Vec::new(); self.leaves.len()];
        let deadline = self.poll_all(*now, &mut told);
        let is_quiet = told.iter().all(Vec::is_empty) && deadline.is_none_or(|at| at > now.mono);
        (told, is_quiet)
    }

    fn poll_all(&mut self, now: Now, told: &mut [Vec<Completion>]) -> Option<Mono> {
        let appends = self
            .leaves
            .iter()
            .map(|leaf| leaf.storage().unanswered_appends());
        let may_cut = appends.sum::<usize>() == 0;
        self.lines.iter().for_each(|line| line.pass_time(may_cut));
        let mut deadlines = Vec::new();
        for (leaf, told) in self.leaves.iter_mut().zip(told) {
            deadlines.push(leaf.poll(now, told));
        }
        for inner in &mut self.inner {
            deadlines.push(inner.poll(now, &mut Vec::new()));
        }
        deadlines.push(self.root.poll(now, &mut Vec::new()));
        if self.lines.iter().any(Line::is_busy) {
            return Some(now.mono);
        }
        deadlines.into_iter().flatten().min()
    }

    /// Ends everything but the storage.
    pub(crate) fn into_storage(self) -> S {
        self.root.into_storage().into_storage()
    }
}

/// One storage: that of the first leaf.
impl<S: LogStorage> LogStorage for Treed<S> {
    fn capabilities(&self) -> Capabilities {
        self.leaves[0].capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.leaves[0].submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let mut told = vec![Vec::new(); self.leaves.len()];
        let deadline = self.poll_all(now, &mut told);
        out.append(&mut told[0]);
        deadline
    }

    fn opened(&mut self) {
        self.root.opened();
    }

    fn close(&mut self, now: Now) {
        self.leaves.iter_mut().for_each(|leaf| leaf.close(now));
    }

    fn is_closed(&self) -> bool {
        self.leaves.iter().all(LogStorage::is_closed)
    }

    fn trouble(&self) -> Option<Trouble> {
        self.leaves[0].trouble()
    }

    fn damage(&self) -> u64 {
        self.leaves[0].damage()
    }

    fn read_bytes(&self) -> u64 {
        self.leaves[0].read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.root.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.root.accept_clock(now);
    }
}
