//! All segments of a journal: the one of each class that takes batches, and the files kept for new
//! ones.
//!
//! A class has at most one segment that takes batches, its *active* one, and at most one that was made
//! ahead, the *prepared* one. Emptied segments' files are kept to be new segments: *free* ones.
//!
//! Invariants, held by [`SegmentSet::check`]:
//! - A segment is known by its own number, and that is below the next one's.
//! - A class's active and prepared segments are there, of that class, not sealed and not leaving,
//!   and never the same one.
//! - A free file is no segment, and was one: its number is below the next one's.
//! - Only a segment that is leaving becomes a free one.

use super::block::Block;
use super::format::META_CLASS;
use super::id::{BlockId, ClassId, FileOffset, SegmentId};
use super::segment::Segment;
use airmail_model::Mono;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The segments of a class that take batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Class {
    pub(super) active: Option<SegmentId>,
    pub(super) prepared: Option<SegmentId>,
    /// The active one whose successor was prepared, not needed, and given back: it gets none again.
    pub(super) spared: Option<SegmentId>,
}

/// All segments. See the module's documentation.
#[derive(Debug)]
pub(super) struct SegmentSet {
    all: BTreeMap<SegmentId, Segment>,
    next: SegmentId,
    /// When a segment was made last.
    made_at: Mono,
    classes: BTreeMap<ClassId, Class>,
    /// Emptied segments' files, and where they end.
    free: Vec<(SegmentId, FileOffset)>,
    /// Segments whose files are being kept for new ones.
    recycling: BTreeSet<SegmentId>,
    /// A segment may have come to hold nothing that is kept.
    sweep_due: bool,
    /// A sealed segment may have come to hold less that is kept: a move may be worth it.
    move_due: bool,
}

impl SegmentSet {
    /// No segments, from `now` on.
    pub(super) fn new(now: Mono) -> SegmentSet {
        SegmentSet {
            all: BTreeMap::new(),
            next: SegmentId::FIRST,
            made_at: now,
            classes: BTreeMap::new(),
            free: Vec::new(),
            recycling: BTreeSet::new(),
            sweep_due: true,
            move_due: true,
        }
    }

    /// One of them.
    pub(super) fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.all.get(&id)
    }

    /// One of them, to be changed.
    pub(super) fn get_mut(&mut self, id: SegmentId) -> Option<&mut Segment> {
        self.all.get_mut(&id)
    }

    /// A block of one of them.
    pub(super) fn block(&self, id: BlockId) -> Option<&Block> {
        self.all.get(&id.segment)?.block(id.block)
    }

    /// A block of one of them, to be changed.
    pub(super) fn block_mut(&mut self, id: BlockId) -> Option<&mut Block> {
        self.all.get_mut(&id.segment)?.block_mut(id.block)
    }

    /// All of them, in the order in which they were made.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.all.values()
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Segment> {
        self.all.values_mut()
    }

    /// Their numbers.
    pub(super) fn ids(&self) -> Vec<SegmentId> {
        self.all.keys().copied().collect()
    }

    /// Takes one up.
    pub(super) fn insert(&mut self, segment: Segment) {
        self.all.insert(segment.id, segment);
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, id: SegmentId) -> Option<Segment> {
        self.all.remove(&id)
    }

    /// The number of the segment that is made next.
    pub(super) fn next(&self) -> SegmentId {
        self.next
    }

    /// Goes on with numbers behind those found.
    pub(super) fn go_on_at(&mut self, next: SegmentId) {
        self.next = self.next.max(next);
    }

    /// The number of a segment that is made now.
    pub(super) fn number(&mut self, now: Mono) -> SegmentId {
        let id = self.next;
        self.next = id.next();
        self.made_at = now;
        id
    }

    /// Whether no segment was made for `time`.
    pub(super) fn is_idle(&self, time: Duration, now: Mono) -> bool {
        self.made_at.plus(time) <= now
    }

    /// The segments that a class writes to.
    pub(super) fn class(&self, class: ClassId) -> Class {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    /// The same, to be changed.
    pub(super) fn class_mut(&mut self, class: ClassId) -> &mut Class {
        self.classes.entry(class).or_default()
    }

    /// The classes that have, or had, a segment, in order.
    pub(super) fn classes(&self) -> impl Iterator<Item = (ClassId, Class)> {
        self.classes.iter().map(|(number, class)| (*number, *class))
    }

    /// The first class that has no segment that takes batches.
    pub(super) fn idle_class(&self) -> Option<ClassId> {
        let mut classes = self.classes.iter();
        let idle = classes.find(|(_, class)| class.active.is_none())?;
        Some(*idle.0)
    }

    /// The segments that take batches, in the order of their classes.
    pub(super) fn active(&self) -> impl Iterator<Item = SegmentId> {
        self.classes.values().filter_map(|class| class.active)
    }

    /// The class has no segment that takes batches, or that one is left: which it was. The one that was
    /// made ahead takes its place.
    pub(super) fn leave_active(&mut self, class: ClassId) -> Option<SegmentId> {
        let class = self.class_mut(class);
        let left = class.active.take();
        class.active = class.prepared.take();
        left
    }

    /// A segment takes no more batches, whatever its class.
    pub(super) fn leave(&mut self, id: SegmentId) {
        for class in self.classes.values_mut() {
            if class.active == Some(id) {
                class.active = class.prepared.take();
            }
        }
    }

    /// A segment could not be made.
    pub(super) fn forget(&mut self, id: SegmentId) {
        self.all.remove(&id);
        for class in self.classes.values_mut() {
            if class.active == Some(id) {
                class.active = None;
            }
            if class.prepared == Some(id) {
                class.prepared = None;
            }
        }
    }

    /// Takes those segments that classes write to out of their places of which `unwanted` says so.
    pub(super) fn take_active(&mut self, unwanted: impl Fn(&Segment) -> bool) -> Vec<SegmentId> {
        let mut taken = Vec::new();
        for class in self.classes.values_mut() {
            let active = class.active.and_then(|id| self.all.get(&id));
            if active.is_some_and(&unwanted) {
                taken.extend(class.active.take());
            }
        }
        taken
    }

    /// Takes those segments out of their places that were made ahead and not written; with `active`, also
    /// those that classes would write to next. Commands keep theirs.
    pub(super) fn take_spares(&mut self, active: bool) -> Vec<SegmentId> {
        let is_spare = |id: &SegmentId| self.all.get(id).is_some_and(Segment::is_spare);
        let mut spares = Vec::new();
        for (number, class) in &mut self.classes {
            if *number == META_CLASS {
                continue;
            }
            if let Some(prepared) = class.prepared.take_if(|id| is_spare(id)) {
                class.spared = class.active;
                spares.push(prepared);
            }
            if active && let Some(active) = class.active.take_if(|id| is_spare(id)) {
                spares.push(active);
            }
        }
        spares
    }

    /// A file for a new segment, and where it ends.
    pub(super) fn take_free(&mut self) -> Option<(SegmentId, FileOffset)> {
        self.free.pop()
    }

    /// A file is there for a new segment.
    pub(super) fn add_free(&mut self, id: SegmentId, end: FileOffset) {
        self.free.push((id, end));
    }

    /// Gives up all files that are there for new segments.
    pub(super) fn drop_free(&mut self) -> Vec<(SegmentId, FileOffset)> {
        std::mem::take(&mut self.free)
    }

    /// Number of files that are ready for new segments.
    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// A segment's file is being kept for a new one.
    pub(super) fn recycle(&mut self, id: SegmentId) {
        self.recycling.insert(id);
    }

    /// Whether a segment's file was kept for a new one; it is not any more.
    pub(super) fn was_recycled(&mut self, id: SegmentId) -> bool {
        self.recycling.remove(&id)
    }

    /// A segment may have come to hold nothing that is kept.
    pub(super) fn want_sweep(&mut self) {
        self.sweep_due = true;
    }

    /// Whether one may have.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.sweep_due
    }

    /// It is looked which have.
    pub(super) fn swept(&mut self) {
        self.sweep_due = false;
    }

    /// A sealed segment may have come to hold less that is kept.
    pub(super) fn want_move(&mut self) {
        self.move_due = true;
    }

    /// Whether one may have.
    pub(super) fn is_move_due(&self) -> bool {
        self.move_due
    }

    /// None is worth a move, until one holds less.
    pub(super) fn settled(&mut self) {
        self.move_due = false;
    }

    /// A read of a segment, or of its index, has begun: it is not removed before that has ended.
    pub(super) fn read_begun(&mut self, id: SegmentId) {
        if let Some(segment) = self.all.get_mut(&id) {
            segment.read_begun();
        }
    }

    /// A read has ended.
    pub(super) fn read_ended(&mut self, id: SegmentId) {
        if let Some(segment) = self.all.get_mut(&id) {
            self.sweep_due |= segment.read_ended();
        }
    }

    /// A log keeps nothing more in a block.
    pub(super) fn let_go(&mut self, id: BlockId) {
        if let Some(block) = self.block_mut(id) {
            block.let_go(id);
            self.sweep_due = true;
            self.move_due = true;
        }
    }

    /// Asserts the invariants of the module's documentation, and those of each segment.
    pub(super) fn check(&self) {
        for (id, segment) in &self.all {
            assert_eq!(*id, segment.id, "a segment under another's number");
            assert!(*id < self.next, "{id}, and the next is {}", self.next);
            segment.check();
        }
        for (number, class) in &self.classes {
            let places = [class.active, class.prepared].into_iter().flatten();
            for id in places {
                let segment = self.all.get(&id);
                assert!(
                    segment.is_some_and(|of| of.header.class == *number
                        && !of.is_sealed()
                        && !of.is_leaving()),
                    "{number:?} writes to {id}, which is {segment:?}"
                );
            }
            assert!(
                class.active.is_none() || class.active != class.prepared,
                "{number:?} has its next segment twice: {class:?}"
            );
        }
        for (id, _) in &self.free {
            assert!(!self.all.contains_key(id), "{id} is free, and a segment");
            assert!(
                *id < self.next,
                "{id} is free, and the next is {}",
                self.next
            );
        }
        for id in &self.recycling {
            let leaving = self.all.get(id).is_some_and(Segment::is_leaving);
            assert!(leaving, "{id} is to be recycled, and is not leaving");
        }
    }
}
