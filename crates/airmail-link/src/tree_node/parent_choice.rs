//! The choice of a parent: those of the settings, and then the ancestors that the root's heartbeat has named, beginning
//! behind the one that was tried last.
//!
//! A parent that has no room names a child of its, which is tried at once; all others after a pause, which grows with
//! each round in vain. If nothing comes of the child, the one that named it was tried in vain.

use super::TreeLimits;
use airmail_model::{Mono, random};
use std::time::Duration;

/// Pause before another parent is tried: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct ParentChoice {
    own: String,
    /// Addresses of the settings. None: it is the root's.
    pub(super) parents: Vec<String>,
    /// Addresses of the ancestors above the parent, the nearest first.
    ancestors: Vec<String>,
    /// The address that was tried last.
    tried: Option<String>,
    /// The address that is being tried, or has sent it on, until a parent has led to the root.
    begun: Option<String>,
    /// Addresses that were tried in vain, one after the other.
    failures: u32,
    /// Those among them to which it was sent on.
    redirects: usize,
    /// Time at which the next one is tried.
    pub(super) try_at: Mono,
    random: u64,
}

impl ParentChoice {
    /// The choice of the node at `own`, which is never its own parent.
    pub(super) fn new(own: String, parents: Vec<String>, random: u64) -> ParentChoice {
        ParentChoice {
            own,
            parents,
            ancestors: Vec::new(),
            tried: None,
            begun: None,
            failures: 0,
            redirects: 0,
            try_at: Mono::default(),
            random,
        }
    }

    /// Number of ancestors above the parent.
    pub(super) fn ancestors(&self) -> usize {
        self.ancestors.len()
    }

    /// Addresses of the settings that come before one.
    pub(super) fn before(&self, address: &str) -> &[String] {
        let at = self.parents.iter().position(|one| one == address);
        &self.parents[..at.unwrap_or(self.parents.len())]
    }

    /// A parent has led to the root, by these ancestors, the nearest first.
    pub(super) fn found(&mut self, ancestors: Vec<String>) {
        self.failures = 0;
        self.redirects = 0;
        self.begun = None;
        self.ancestors = ancestors;
    }

    /// A parent was left, or tried in vain, and names another node in its place: the one to be tried at once, if there
    /// is one.
    pub(super) fn left(
        &mut self,
        now: Mono,
        left: String,
        instead: Option<String>,
        limits: &TreeLimits,
    ) -> Option<String> {
        self.failures += 1;
        let instead = instead.filter(|instead| *instead != left && *instead != self.own);
        self.redirects += 1;
        // No more than there are steps to go down.
        if instead.is_some() && self.redirects <= limits.depth_max {
            return instead;
        }
        self.redirects = 0;
        self.tried = Some(self.begun.take().unwrap_or(left));
        self.random = random::nth(self.random, u64::from(self.failures));
        let rounds = self.failures as usize / self.candidates().len().max(1);
        let pause = PAUSE_MIN * 2_u32.saturating_pow(u32::try_from(rounds).unwrap_or(u32::MAX));
        let pause = pause.min(PAUSE_MAX);
        let jitter = self.random % u64::try_from(pause.as_nanos()).unwrap_or(1).max(1);
        self.try_at = now.plus(pause / 2 + Duration::from_nanos(jitter / 2));
        None
    }

    /// Addresses that may be tried, each once.
    fn candidates(&self) -> Vec<&String> {
        let mut candidates: Vec<&String> = Vec::new();
        for address in self.parents.iter().chain(&self.ancestors) {
            if *address != self.own && !candidates.contains(&address) {
                candidates.push(address);
            }
        }
        candidates
    }

    /// The address behind the one that was tried last.
    pub(super) fn next(&mut self) -> String {
        let next = self.behind_tried();
        self.begun = Some(next.clone());
        next
    }

    fn behind_tried(&self) -> String {
        let candidates = self.candidates();
        let is_tried = |one: &&String| Some(*one) == self.tried.as_ref();
        let next = candidates.iter().position(is_tried).map_or(0, |at| at + 1);
        let next = candidates.get(next).or(candidates.first());
        // One that has itself alone for a parent is refused there.
        next.map_or_else(|| self.own.clone(), |next| (*next).clone())
    }
}
