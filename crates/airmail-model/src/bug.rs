//! Programmer errors, states that no input and no fault can cause: the macro [`bug!`](crate::bug!).
//!
//! Three things can go wrong, and each has its own answer:
//!
//! - *Input*: a request, a file, a reply, a peer that is too fast. It gets an error with facts.
//! - *The world*: a disk, a network, a clock. The failure is handled, and reported to those it
//!   concerns.
//! - *The program*: a state that no input and no fault can cause, such as a commit of a segment that is
//!   not there. Nobody outside can cure that, and to go on as if nothing had happened hides it until
//!   data are wrong. That is what `bug!` is for.
//!
//! ```
//! use airmail_model::bug;
//! # fn answer(_: Result<u32, &str>) {}
//! # fn commit(segments: &std::collections::BTreeMap<u64, u32>, id: u64) {
//! let Some(segment) = segments.get(&id) else {
//!     bug!("segment {id} of a commit is gone, of {}", segments.len());
//!     return answer(Err("failed"));
//! };
//! # answer(Ok(*segment));
//! # }
//! # commit(&std::collections::BTreeMap::from([(1, 2)]), 1);
//! ```
//!
//! While bugs panic (debug builds, the simulator, fuzz targets) the program ends there, with the
//! facts. A release goes on: a bug may cost the request that met it, and must not cost every other
//! client the node. So the code after `bug!` takes the safest way on: it answers or fails the
//! request, and never drops an answer in silence. The bug is counted ([`count`]); the first one is
//! kept ([`first`]), and fails the readiness of a node; and the first at each place is passed to a
//! function that the process has named ([`on_first_at_each_place`]), so that it stands in the log
//! once and does not fill it.
//!
//! A core that has a `check` asserts its invariants after each step while [`is_checking`] says so.
//!
//! Invariants: every occurrence is counted, and each place in the source is reported once. The
//! facts are formatted only for that report, so a bug that is met a million times costs a million
//! additions. Nothing here does I/O or holds a lock for long.

use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Reports a state that only a mistake in the program can cause, with the facts that lead to it.
///
/// Takes what `format!` takes. It panics in debug builds, in the simulator and in fuzz targets; else it
/// counts, tells, and returns `()`: the code behind it answers the waiting caller.
/// [`bug`](mod@crate::bug) has the rule.
#[macro_export]
macro_rules! bug {
    ($($facts:tt)+) => {{
        static MET: ::std::sync::atomic::AtomicBool = ::std::sync::atomic::AtomicBool::new(false);
        $crate::bug::meet(&MET, ::std::format_args!($($facts)+));
    }};
}

/// A bug that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// The source file, relative to the workspace.
    pub file: &'static str,
    /// The line of the `bug!`.
    pub line: u32,
    /// Facts found there, as text.
    pub facts: String,
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.facts, self.file, self.line)
    }
}

/// All that is kept of the bugs of a process.
struct Book {
    panics: AtomicBool,
    count: AtomicU64,
    first: OnceLock<Met>,
    tell: OnceLock<fn(&Met)>,
}

static BOOK: Book = Book::new(cfg!(debug_assertions));

impl Book {
    const fn new(panics: bool) -> Book {
        Book {
            panics: AtomicBool::new(panics),
            count: AtomicU64::new(0),
            first: OnceLock::new(),
            tell: OnceLock::new(),
        }
    }

    #[track_caller]
    fn meet(&self, met: &AtomicBool, facts: fmt::Arguments<'_>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics.load(Ordering::Relaxed), "bug: {facts}");
        if met.swap(true, Ordering::Relaxed) {
            return;
        }
        let place = Location::caller();
        let bug = Met {
            file: place.file(),
            line: place.line(),
            facts: facts.to_string(),
        };
        // A later one is told, and needs no keeping.
        let _ = self.first.set(bug.clone());
        if let Some(tell) = self.tell.get() {
            tell(&bug);
        }
    }

    fn on_first_at_each_place(&self, tell: fn(&Met)) -> bool {
        let named = self.tell.set(tell).is_ok();
        if let (true, Some(first)) = (named, self.first.get()) {
            tell(first);
        }
        named
    }
}

/// Target of [`bug!`](crate::bug!)'s expansion; `met` belongs to the place in the source.
///
/// # Panics
/// While bugs panic.
#[cold]
#[inline(never)]
#[track_caller]
pub fn meet(met: &'static AtomicBool, facts: fmt::Arguments<'_>) {
    BOOK.meet(met, facts);
}

/// Number of times that this process has met a bug.
#[must_use]
pub fn count() -> u64 {
    BOOK.count.load(Ordering::Relaxed)
}

/// The first bug that this process has met and survived.
#[must_use]
pub fn first() -> Option<&'static Met> {
    BOOK.first.get()
}

/// Names the function that is told of the first bug at each place, in the thread that met it; it must not
/// wait. One that was met earlier is told at once. The first function named stays: says whether it is
/// this one.
pub fn on_first_at_each_place(tell: fn(&Met)) -> bool {
    BOOK.on_first_at_each_place(tell)
}

/// Sets whether a bug ends what met it with a panic, and whether cores check their invariants after each
/// step. So it is from the start where `debug_assertions` are on.
pub fn set_panics(panics: bool) {
    BOOK.panics.store(panics, Ordering::Relaxed);
}

/// Whether a core is to assert its invariants after each step: where a bug panics.
#[must_use]
#[inline]
pub fn is_checking() -> bool {
    cfg!(debug_assertions) || BOOK.panics.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[test]
    #[should_panic(expected = "bug: segment 7 of a commit is gone, of 3")]
    fn a_bug_panics_with_its_facts_where_bugs_panic() {
        let id = 7;
        crate::bug!("segment {id} of a commit is gone, of {}", 3);
    }

    #[test]
    fn a_bug_that_panics_is_counted_and_not_kept_as_one_that_was_survived() {
        let book = Book::new(true);
        let panicked = std::panic::catch_unwind(|| {
            book.meet(&AtomicBool::new(false), format_args!("one"));
        });
        assert!(panicked.is_err());
        assert_eq!(book.count.load(Ordering::Relaxed), 1);
        assert_eq!(book.first.get(), None);
    }

    #[test]
    fn a_release_counts_each_bug_and_tells_each_place_once() {
        static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let book = Book::new(false);
        let told = |met: &Met| TOLD.lock().push(met.facts.clone());
        assert!(book.on_first_at_each_place(told));
        let (one, other) = (AtomicBool::new(false), AtomicBool::new(false));
        for round in 0..3 {
            book.meet(&one, format_args!("one in round {round}"));
            book.meet(&other, format_args!("other in round {round}"));
        }
        assert_eq!(book.count.load(Ordering::Relaxed), 6);
        let told = TOLD.lock();
        assert_eq!(*told, ["one in round 0", "other in round 0"]);
    }

    #[test]
    fn the_first_bug_is_kept_with_its_place() {
        let book = Book::new(false);
        let met = AtomicBool::new(false);
        book.meet(&met, format_args!("first"));
        let line = line!() - 1;
        book.meet(&AtomicBool::new(false), format_args!("second"));
        let first = book.first.get().unwrap();
        assert_eq!((first.file, first.line), (file!(), line));
        assert_eq!(first.to_string(), format!("first ({}:{line})", file!()));
    }

    #[test]
    fn a_bug_from_before_anybody_listened_is_told_when_somebody_does() {
        static TOLD: AtomicU64 = AtomicU64::new(0);
        let book = Book::new(false);
        book.meet(&AtomicBool::new(false), format_args!("early"));
        let tell = |_: &Met| {
            TOLD.fetch_add(1, Ordering::Relaxed);
        };
        assert!(book.on_first_at_each_place(tell));
        assert_eq!(TOLD.load(Ordering::Relaxed), 1);
        assert!(!book.on_first_at_each_place(tell), "the first one stays");
        assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    }
}
