//! The conformance suite on a storage at the other end of a link: as it is, with everything tiny, and by a line
//! that is slow and cut, to one of two hosts; and behind two towers, with such a line to each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "../../airmail-log/tests/subjects/mod.rs"]
mod subjects;
mod wire;

use airmail_link::LinkLimits;
use airmail_log::conformance::{End, Subject};
use airmail_log::journal::JournalConfig;
use airmail_model::Now;
use subjects::OnKept;
use wire::Linked;
use wire::line::Weather;

/// A storage that is used over a link.
struct OverLink<D> {
    storage: D,
    limits: LinkLimits,
    weather: Option<Weather>,
    /// There are two towers, with a line to each.
    has_towers: bool,
}

impl<D: Subject> OverLink<D> {
    fn link(&self, storage: D::Storage) -> Linked<D::Storage> {
        match self.weather {
            Some(weather) if self.has_towers => {
                Linked::by_towers(storage, self.limits, weather, true)
            }
            Some(weather) => Linked::by_line(storage, self.limits, weather, true),
            None => Linked::by_ring(storage, self.limits),
        }
    }
}

impl<D: Subject> Subject for OverLink<D> {
    type Storage = Linked<D::Storage>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        let storage = self.storage.fresh(now);
        self.link(storage)
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, mut now: Now) -> Self::Storage {
        if end == End::Clean {
            now = subjects::close_before(&mut storage, &mut self.storage, now);
        }
        let storage = self.storage.reopen(storage.into_storage(), end, now);
        self.link(storage)
    }

    fn outlives(&self) -> bool {
        self.storage.outlives()
    }

    fn busy(&self) -> bool {
        self.storage.busy()
    }

    fn wait(&mut self) {
        self.storage.wait();
    }
}

fn over_link(limits: LinkLimits, weather: Option<Weather>) -> OverLink<OnKept> {
    OverLink {
        storage: OnKept::new(JournalConfig::default()),
        limits,
        weather,
        has_towers: false,
    }
}

/// A storage behind two towers, to each of which the line is slow and cut.
fn over_towers(limits: LinkLimits, weather: Weather) -> OverLink<OnKept> {
    OverLink {
        has_towers: true,
        ..over_link(limits, Some(weather))
    }
}

/// Bounds so small that everything waits for room, and readers are cut off all the time.
fn narrow() -> LinkLimits {
    LinkLimits {
        window_bytes: 300,
        reader_bytes: 100,
        marks: 4,
        wants: 1_000,
        ring_slots: 2,
        turn_messages: 3,
        ..LinkLimits::default()
    }
}

/// Bounds under which readers are given what they want alone.
fn wanted() -> LinkLimits {
    LinkLimits {
        wants: 1 << 20,
        ..LinkLimits::default()
    }
}

fn bad(seed: u64) -> Weather {
    Weather {
        seed,
        delay: 5,
        cuts: 40,
        cuts_max: 1_000,
        is_late: false,
        holes: 0,
        room: 16,
    }
}

mod by_default {
    use super::over_link;
    use airmail_link::LinkLimits;

    airmail_log::conformance!(over_link(LinkLimits::default(), None));
}

mod narrow_ones {
    use super::{narrow, over_link};

    airmail_log::conformance!(over_link(narrow(), None));
}

mod slow_and_cut {
    use super::{bad, over_link, wanted};

    airmail_log::conformance!(over_link(wanted(), Some(bad(1))));
}

mod narrow_slow_and_cut {
    use super::{bad, narrow, over_link};

    airmail_log::conformance!(over_link(narrow(), Some(bad(2))));
}

mod two_towers {
    use super::{bad, over_towers, wanted};

    airmail_log::conformance!(over_towers(wanted(), bad(3)));
}

mod two_towers_with_narrow_links {
    use super::{bad, narrow, over_towers};

    airmail_log::conformance!(over_towers(narrow(), bad(4)));
}
