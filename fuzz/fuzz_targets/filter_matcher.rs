//! A matcher against its filters asked one by one, while filters come, go and change, the index is made anew,
//! and records are under way.

#![no_main]

use airmail_fuzz::filters::{batch, texts};
use airmail_fuzz::fuzz_target;
use airmail_match::{Cursor, FilterId, Matcher, MatcherLimits};
use airmail_model::filter::{Facts, Filter};
use airmail_model::{Batch, Checked};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a record is made of.
const RECORD_BYTES: usize = 12;

/// A record under way, and the filters that have been there since it was begun.
struct UnderWay {
    batch: Checked<Batch>,
    cursor: Cursor,
    stayed: BTreeSet<FilterId>,
    known: BTreeSet<FilterId>,
}

struct World {
    matcher: Matcher,
    filters: BTreeMap<FilterId, Filter>,
    under_way: Option<UnderWay>,
}

impl World {
    fn nth(&self, at: u8) -> Option<FilterId> {
        let count = self.filters.len().max(1);
        self.filters.keys().nth(usize::from(at) % count).copied()
    }

    fn gone(&mut self, id: FilterId) {
        if let Some(under_way) = &mut self.under_way {
            under_way.stayed.remove(&id);
        }
    }

    fn insert(&mut self, text: &str) {
        let Ok(filter) = Filter::parse(text) else {
            return;
        };
        if let Ok(id) = self.matcher.insert(filter.clone()) {
            assert!(
                self.filters.insert(id, filter).is_none(),
                "an id given twice"
            );
        }
    }

    fn change(&mut self, at: u8, text: &str) {
        let (Some(id), Ok(filter)) = (self.nth(at), Filter::parse(text)) else {
            return;
        };
        if let Ok(before) = self.matcher.change(id, filter.clone()) {
            assert_eq!(before, self.filters.insert(id, filter));
            self.gone(id);
        }
    }

    fn remove(&mut self, at: u8) {
        if let Some(id) = self.nth(at) {
            assert_eq!(self.matcher.remove(id), self.filters.remove(&id));
            self.gone(id);
        }
    }

    fn begin(&mut self, bytes: &[u8]) {
        let batch = batch(bytes);
        let before = self.under_way.take();
        let mut cursor = before.map_or_else(Cursor::new, |before| before.cursor);
        self.matcher
            .begin(&Facts::read(batch.record(0).attributes), &mut cursor);
        let known: BTreeSet<FilterId> = self.filters.keys().copied().collect();
        self.under_way = Some(UnderWay {
            batch,
            cursor,
            stayed: known.clone(),
            known,
        });
    }

    fn advance(&mut self, mut units: u32) {
        let Some(mut under_way) = self.under_way.take() else {
            return;
        };
        let batch = under_way.batch.clone();
        let facts = Facts::read(batch.record(0).attributes);
        if !self
            .matcher
            .advance(&facts, &mut under_way.cursor, &mut units)
        {
            self.under_way = Some(under_way);
            return;
        }
        let found = under_way.cursor.matches();
        let once: BTreeSet<FilterId> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "one found twice");
        assert!(
            once.is_subset(&under_way.known),
            "one found that came later"
        );
        for id in &under_way.stayed {
            let filter = &self.filters[id];
            assert_eq!(once.contains(id), filter.matches_facts(&facts), "{filter}");
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut world = World {
        matcher: Matcher::new(MatcherLimits {
            bytes: 4 << 20,
            residual: 8,
        }),
        filters: BTreeMap::new(),
        under_way: None,
    };
    let mut rest = data;
    while let Some((&[step, at], behind)) = rest.split_first_chunk() {
        let (own, behind) = behind.split_at(behind.len().min(RECORD_BYTES));
        rest = behind;
        match step % 8 {
            // Many at once, so that there are enough for a grid.
            0 => texts(own).for_each(|text| {
                (0..=at % 32).for_each(|n| world.insert(&text.replace("12", &n.to_string())));
            }),
            1 => texts(own).for_each(|text| world.insert(&text)),
            2 => texts(own).for_each(|text| world.change(at, &text)),
            3 => world.remove(at),
            4 => {
                world.matcher.tend(u32::from(at) * 16);
            }
            5 => while world.matcher.tend(u32::MAX) {},
            6 => world.begin(own),
            _ => world.advance(u32::from(at) + 1),
        }
    }
    world.matcher.check();
    world.advance(u32::MAX);
});
