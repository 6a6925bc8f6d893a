//! Filters in their slots. A slot that has become free is given to a later filter, under another id.

use airmail_model::filter::Filter;

/// A filter in a matcher. Never given twice by one matcher, but for 4,294,967,296 later uses of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilterId {
    pub(crate) slot: Slot,
    /// The slot's uses before.
    pub(crate) life: u32,
}

/// A place for a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Slots, with their filters.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Entry>,
    free: Vec<Slot>,
    /// Bytes of the filters themselves.
    code_bytes: usize,
    /// Filters that were ever inserted, or changed.
    insertions: u64,
}

#[derive(Debug)]
struct Entry {
    filter: Option<Filter>,
    life: u32,
    /// The number of its insertion.
    insertion: u64,
}

impl Slots {
    /// Takes a free slot for a filter.
    pub(crate) fn insert(&mut self, filter: Filter) -> FilterId {
        self.code_bytes += filter.heap_bytes();
        self.insertions += 1;
        let slot = self.free.pop().unwrap_or_else(|| self.add());
        let entry = &mut self.slots[slot.index()];
        entry.filter = Some(filter);
        entry.insertion = self.insertions;
        FilterId {
            slot,
            life: entry.life,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "four thousand million filters do not fit any bound of bytes"
    )]
    fn add(&mut self) -> Slot {
        let slot = Slot(self.slots.len() as u32);
        self.slots.push(Entry {
            filter: None,
            life: 0,
            insertion: 0,
        });
        slot
    }

    /// Takes a filter out of its slot.
    pub(crate) fn remove(&mut self, id: FilterId) -> Option<Filter> {
        let entry = self.slots.get_mut(id.slot.index())?;
        if entry.life != id.life {
            return None;
        }
        let filter = entry.filter.take()?;
        entry.life = entry.life.wrapping_add(1);
        self.code_bytes -= filter.heap_bytes();
        self.free.push(id.slot);
        Some(filter)
    }

    /// Puts another filter in the place of one; gives the one that was there.
    pub(crate) fn replace(&mut self, id: FilterId, filter: Filter) -> Option<Filter> {
        let entry = self.slots.get_mut(id.slot.index())?;
        if entry.life != id.life {
            return None;
        }
        let before = entry.filter.as_mut()?;
        self.insertions += 1;
        entry.insertion = self.insertions;
        self.code_bytes += filter.heap_bytes();
        self.code_bytes -= before.heap_bytes();
        Some(std::mem::replace(before, filter))
    }

    /// The filter of an id.
    pub(crate) fn get(&self, id: FilterId) -> Option<&Filter> {
        let entry = self.slots.get(id.slot.index())?;
        entry.filter.as_ref().filter(|_| entry.life == id.life)
    }

    /// The filter in a slot, and its id.
    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> Option<(FilterId, &Filter)> {
        let entry = self.slots.get(slot.index())?;
        let life = entry.life;
        let filter = entry.filter.as_ref()?;
        Some((FilterId { slot, life }, filter))
    }

    /// Whether the filter in a slot was there when so many had been inserted.
    #[inline]
    pub(crate) fn was_there(&self, slot: Slot, insertions: u64) -> bool {
        // Nearly always nothing has come since.
        self.insertions == insertions || self.slots[slot.index()].insertion <= insertions
    }

    /// Filters that were ever inserted, or changed.
    pub(crate) fn insertions(&self) -> u64 {
        self.insertions
    }

    /// Slots that there are, free or not: every slot's index is below.
    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Filters.
    pub(crate) fn filters(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Filters with their ids, in order of slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FilterId, &Filter)> {
        (0..)
            .map(Slot)
            .map_while(|slot| (slot.index() < self.count()).then(|| self.at(slot)))
            .flatten()
    }

    /// Bytes of the filters themselves.
    pub(crate) fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Entry>()
            + self.free.capacity() * size_of::<Slot>()
            + self.code_bytes
    }
}
