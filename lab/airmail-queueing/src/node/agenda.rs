//! Events to come, by their time, and those of one time in the order in which they were entered.

use std::collections::BTreeMap;

/// Events to come. One order of entering gives one order of taking.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    events: BTreeMap<(u64, u64), E>,
    entered: u64,
}

impl<E> Agenda<E> {
    pub(super) fn new() -> Agenda<E> {
        Agenda {
            events: BTreeMap::new(),
            entered: 0,
        }
    }

    /// Enters an event for a time in nanoseconds.
    pub(super) fn enter(&mut self, at_ns: u64, event: E) {
        self.events.insert((at_ns, self.entered), event);
        self.entered += 1;
    }

    /// Takes the next event, with its time in nanoseconds.
    pub(super) fn next(&mut self) -> Option<(u64, E)> {
        let ((at_ns, _), event) = self.events.pop_first()?;
        Some((at_ns, event))
    }
}
