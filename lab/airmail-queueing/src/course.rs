//! The course of a run: what was acknowledged in each window, and under which bounds.
//!
//! A window here is a piece of the record, N acknowledged messages of all clients together; limiters
//! count their own. A course can be asked for any stretch of time ([`Course::between`]), so that two runs
//! of one seed are compared over the same time, whatever each had done by then.

use crate::recovery::Stretch;

const NANOS_PER_S: f64 = 1e9;

/// A stretch of a run at one capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Its length, in nanoseconds of virtual time.
    pub span_ns: u64,
    /// 1: the system as described; 0.5: half its capacity.
    pub capacity: f64,
}

/// One limiter in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Messages that were acknowledged to it.
    pub messages: u64,
    /// Its bound at the window's end.
    pub bound: u64,
}

/// N acknowledged messages, whatever the limiters make of them; the last of a run may have fewer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// When it ended, in nanoseconds of virtual time.
    pub until_ns: u64,
    /// Its length, in nanoseconds.
    pub span_ns: u64,
    /// Number of messages.
    pub messages: u64,
    /// The sum of the time from admission to acknowledgement over these messages, in nanoseconds.
    pub latency_ns: u64,
    /// A part for each limiter.
    pub parts: Vec<Part>,
}

impl Window {
    /// The mean of the limiters' bounds.
    #[must_use]
    pub fn bound(&self) -> f64 {
        let sum: u64 = self.parts.iter().map(|part| part.bound).sum();
        sum as f64 / self.parts.len() as f64
    }

    /// The same in seconds, for whoever compares it with a knee.
    #[must_use]
    pub fn stretch(&self) -> Stretch {
        Stretch {
            messages: self.messages as f64,
            span_s: self.span_ns as f64 / NANOS_PER_S,
            latency_s: self.latency_ns as f64 / self.messages.max(1) as f64 / NANOS_PER_S,
        }
    }

    fn since_ns(&self) -> u64 {
        self.until_ns - self.span_ns
    }
}

/// Messages that came to one client at once, and their time from being made until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When they were acknowledged to the client, in nanoseconds of virtual time.
    pub at_ns: u64,
    /// The time that they took, in nanoseconds: waiting in the client, in line, and in the storage.
    pub latency_ns: u64,
    /// Their number.
    pub messages: u64,
}

/// All windows of a run, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// The windows.
    pub windows: Vec<Window>,
    /// The deliveries, in order; empty for systems that have no clients of their own.
    pub deliveries: Vec<Delivered>,
}

impl Course {
    /// The windows that lie in a stretch of time as a whole, given in nanoseconds.
    #[must_use]
    pub fn within(&self, from_ns: u64, to_ns: u64) -> &[Window] {
        let first = self.windows.partition_point(|one| one.since_ns() < from_ns);
        let end = self.windows.partition_point(|one| one.until_ns <= to_ns);
        &self.windows[first.min(end)..end]
    }

    /// The mean of the limiters' bounds at a time in nanoseconds, as it was noted last, and in the
    /// first window as at its end.
    #[must_use]
    pub fn bound_at(&self, at_ns: u64) -> f64 {
        let ended = self.windows.partition_point(|one| one.until_ns <= at_ns);
        let window = self.windows.get(ended.saturating_sub(1));
        window.map_or(0.0, Window::bound)
    }

    /// All that was done in a stretch of time, given in nanoseconds; windows that are cut count in
    /// proportion.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Stretch {
        let first = self.windows.partition_point(|one| one.until_ns <= from_ns);
        let rest = self.windows[first..].iter();
        let touched = rest.take_while(|one| one.since_ns() < to_ns).map(|one| {
            let from = one.since_ns().max(from_ns);
            let to = one.until_ns.min(to_ns);
            let share = (to - from) as f64 / one.span_ns as f64;
            let whole = one.stretch();
            Stretch {
                messages: whole.messages * share,
                span_s: whole.span_s * share,
                latency_s: whole.latency_s,
            }
        });
        Stretch::together(&touched.collect::<Vec<_>>())
    }

    /// Quantiles of the deliveries' latency in a stretch of time, in seconds; `None` if there were none.
    #[must_use]
    pub fn delivery_s<const N: usize>(
        &self,
        from_ns: u64,
        to_ns: u64,
        shares: [f64; N],
    ) -> Option<[f64; N]> {
        let inside = |one: &&Delivered| (from_ns..to_ns).contains(&one.at_ns);
        let mut all: Vec<Delivered> = self.deliveries.iter().filter(inside).copied().collect();
        all.sort_unstable_by_key(|one| one.latency_ns);
        let last = all.last()?.latency_ns;
        let messages: u64 = all.iter().map(|one| one.messages).sum();
        Some(shares.map(|share| {
            let mut left = share * messages as f64;
            let found = all.iter().find(|one| {
                left -= one.messages as f64;
                left <= 0.0
            });
            found.map_or(last, |one| one.latency_ns) as f64 / NANOS_PER_S
        }))
    }
}

/// Gathers acknowledgements into windows.
#[derive(Debug)]
pub(crate) struct Recorder {
    window_messages: u64,
    opened_ns: u64,
    window: Window,
    course: Course,
}

impl Recorder {
    /// Records a run of so many limiters, in windows of so many messages.
    pub(crate) fn new(window_messages: u64, limiters: usize) -> Recorder {
        Recorder {
            window_messages,
            opened_ns: 0,
            window: Window {
                parts: vec![Part::default(); limiters],
                ..Window::default()
            },
            course: Course::default(),
        }
    }

    /// Notes an acknowledgement to one of the limiters.
    pub(crate) fn acknowledged(&mut self, limiter: usize, messages: u64, latency_ns: u64) {
        self.window.messages += messages;
        self.window.latency_ns += messages * latency_ns;
        self.window.parts[limiter].messages += messages;
    }

    /// Notes that messages came back to the client that made them.
    pub(crate) fn delivered(&mut self, delivered: Delivered) {
        self.course.deliveries.push(delivered);
    }

    /// Notes the limiters' bounds, and ends the window if it is full; to be called when everything of this
    /// moment is noted.
    pub(crate) fn close(&mut self, now_ns: u64, bounds: impl Iterator<Item = u64>) {
        for (part, bound) in self.window.parts.iter_mut().zip(bounds) {
            part.bound = bound;
        }
        if self.window.messages >= self.window_messages && now_ns > self.opened_ns {
            self.end_window(now_ns);
        }
    }

    /// Gives the course, with a last window up to the end of the run, which need not be full.
    pub(crate) fn finish(mut self, end_ns: u64) -> Course {
        if end_ns > self.opened_ns {
            self.end_window(end_ns);
        }
        self.course
    }

    fn end_window(&mut self, now_ns: u64) {
        let parts = self.window.parts.iter().map(|part| Part {
            messages: 0,
            ..*part
        });
        let next = Window {
            parts: parts.collect(),
            ..Window::default()
        };
        let mut window = std::mem::replace(&mut self.window, next);
        window.until_ns = now_ns;
        window.span_ns = now_ns - self.opened_ns;
        self.opened_ns = now_ns;
        self.course.windows.push(window);
    }
}
