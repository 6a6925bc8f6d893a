//! Names of attributes as small numbers, with how many conditions use each.
//!
//! Invariant: a name has a number as long as a condition uses it, and the number is given to another name only
//! after that.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// A name of an attribute, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameId(u16);

impl NameId {
    /// The number of no name.
    pub(crate) const NONE: NameId = NameId(u16::MAX);

    /// Its place in a table of names.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

/// Names in use.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    ids: HashTable<NameId>,
    names: Vec<Entry>,
    free: Vec<NameId>,
    /// Bytes of the names' texts.
    text_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    name: Box<str>,
    /// Bounds of conditions that name it.
    uses: u32,
    /// Those of conditions that are made of intervals alone.
    spans: u32,
}

impl NameTable {
    /// The number of a name that is in use.
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<NameId> {
        let is = |id: &NameId| &*self.names[id.index()].name == name;
        self.ids.find(xxh3_64(name.as_bytes()), is).copied()
    }

    /// The number of a name, which is given one if it has none; `None` if there are no more numbers.
    pub(crate) fn find_or_add(&mut self, name: &str) -> Option<NameId> {
        if let Some(id) = self.find(name) {
            return Some(id);
        }
        let entry = Entry {
            name: name.into(),
            uses: 0,
            spans: 0,
        };
        let id = if let Some(id) = self.free.pop() {
            self.names[id.index()] = entry;
            id
        } else {
            let id = u16::try_from(self.names.len()).ok().map(NameId)?;
            if id == NameId::NONE {
                return None;
            }
            self.names.push(entry);
            id
        };
        let names = &self.names;
        let hash = |id: &NameId| xxh3_64(names[id.index()].name.as_bytes());
        self.ids.insert_unique(hash(&id), id, hash);
        self.text_bytes += name.len();
        Some(id)
    }

    /// Counts a bound more, of a condition of intervals alone if `is_span`.
    pub(crate) fn acquire(&mut self, id: NameId, is_span: bool) {
        let entry = &mut self.names[id.index()];
        entry.uses += 1;
        entry.spans += u32::from(is_span);
    }

    /// Counts a bound less, as it was acquired.
    pub(crate) fn release(&mut self, id: NameId, is_span: bool) {
        let entry = &mut self.names[id.index()];
        entry.uses -= 1;
        entry.spans -= u32::from(is_span);
    }

    /// Forgets a name that is not used; one that is stays.
    pub(crate) fn forget_unused(&mut self, id: NameId) {
        let entry = &mut self.names[id.index()];
        if entry.uses > 0 || entry.name.is_empty() {
            return;
        }
        let name = std::mem::take(&mut entry.name);
        let found = self
            .ids
            .find_entry(xxh3_64(name.as_bytes()), |other| *other == id);
        if let Ok(found) = found {
            found.remove();
        }
        self.text_bytes -= name.len();
        self.free.push(id);
    }

    /// Numbers that were ever in use at once: every number is below.
    pub(crate) fn numbers(&self) -> usize {
        self.names.len()
    }

    /// Names in use.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The names that most conditions of intervals use, at most `count`, the most used first.
    pub(crate) fn most_used(&self, count: usize) -> Vec<NameId> {
        let ids = (0..).map(NameId).zip(&self.names);
        let mut used: Vec<_> = ids
            .filter(|(_, entry)| entry.spans > 0)
            .map(|(id, entry)| (std::cmp::Reverse(entry.spans), id))
            .collect();
        used.sort_unstable();
        used.truncate(count);
        used.into_iter().map(|(_, id)| id).collect()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.names.capacity() * size_of::<Entry>() + self.text_bytes + self.ids.allocation_size()
    }
}
