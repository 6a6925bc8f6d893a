//! `ladder`: finds the least bound with nearly all of the throughput, within a latency budget, and
//! keeps it.
//!
//! Where a group costs c + m·n, throughput has no peak, and power λ/W is greatest at half of it. What a
//! node wants of its bound is another thing: to give no throughput away, and to hold no more than that
//! needs. So it seeks the least bound with nearly all of the largest throughput, the bounds at which messages
//! take longer than the budget left out.
//!
//! Bounds are [`Rung`]s, √2 apart; of each it is known how much more or less throughput it has than the one
//! at rest ([`Knowledge`]). It is in one of three states:
//!
//! - **Scan**, at first and when the system has changed: finds the rung ([`Scan`]).
//! - **Rest**: windows at that rung give the level and the noise, and are watched for a change
//!   ([`Change`](change::Change)).
//! - **Probe**, after some windows of rest: a window at one rung higher or lower, in turn, now and then at
//!   two or three higher. What is unlike what was known is looked at again before it counts.
//!
//! Invariants:
//!
//! - From rest it goes to another rung only if what is known of both differs by more than their error, or
//!   messages take longer than the budget; and it scans only if the system has changed. One stall does
//!   neither.
//! - What the bound does not hold back ends a probe at once and a scan after [`IDLE`] windows, and the best
//!   rung known is kept. That is another one only if more was done there than under any lower bound.
//! - Never below two batches.

mod change;
mod knowledge;
mod rungs;
mod scan;
#[cfg(test)]
pub(super) mod tests;

use crate::meter::Sample;
use crate::rule::LadderRule as R;
use crate::settings::LadderSettings;
use knowledge::Knowledge;
use rungs::Rung;
use scan::Scan;

/// The first scan begins at this share of the bound, one after a change at half of it.
const FIRST: u64 = 4;
const CHANGED: u64 = 2;
/// Looks that a probe takes at most.
const LOOKS: u32 = 3;
/// Errors beyond which a difference is looked at again.
const UNLIKE: f64 = 1.5;
/// A probe upwards shows a change if it has so much more throughput than was known, and so many times
/// its error more.
const GROWN: (f64, f64) = (1.25, 2.5);
/// Windows in a row that end a scan if its bound holds nothing back in them.
const IDLE: u32 = 3;
/// Windows of rest before the next probe while a neighbour is hardly known.
const SHORT_REST: u32 = 3;

/// The bounds between which it may move, and what they hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) min: u64,
    pub(super) max: u64,
    /// Size of a batch, which is admitted whole: bounds that hold as many batches are one and the same.
    pub(super) batch: u64,
}

impl Ends {
    fn lowest(self) -> Rung {
        Rung::at_most(self.min)
    }

    fn highest(self) -> Rung {
        Rung::at_most(self.max).max(self.lowest())
    }

    fn bound(self, rung: Rung) -> u64 {
        rung.bound().clamp(self.min, self.max.max(self.min))
    }
}

/// Purpose of the present window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Finding the rung to rest at; so many windows of this look held nothing back.
    Scan { scan: Scan, idle: u32 },
    /// At the best rung known, for so many windows so far.
    Rest { windows: u32 },
    /// A look at another rung.
    Probe(Probe),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Probe {
    rung: Rung,
    /// Looks that were taken.
    looks: u32,
    /// Sum of what they had more than was known, as ln λ.
    more: f64,
}

/// One window, as it counts here.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// ln λ.
    value: f64,
    /// L.
    in_flight: f64,
}

impl Look {
    fn of(sample: &Sample) -> Look {
        Look {
            value: sample.rate_per_s().ln(),
            in_flight: sample.in_flight(),
        }
    }
}

/// The limiter.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    settings: LadderSettings,
    state: State,
    known: Knowledge,
    /// Number of probes so far.
    probes: u32,
}

impl Ladder {
    pub(super) fn new(settings: LadderSettings) -> Ladder {
        Ladder {
            settings,
            state: State::Rest { windows: 0 },
            known: Knowledge::new(settings),
            probes: 0,
        }
    }

    /// The next bound after a sample that was measured under `bound`, which held messages back.
    pub(super) fn observe(&mut self, sample: &Sample, bound: u64, ends: Ends) -> (u64, R) {
        let look = Look::of(sample);
        match self.state {
            State::Rest { .. } if self.known.rungs.is_empty() => {
                self.known.rung = Rung::at_most(bound);
                let next = self.begin(bound / FIRST, ends);
                match self.state {
                    // The first bound is where the scan begins: this was its first look.
                    State::Scan { scan, .. } if next == bound => self.scanned(look, scan, ends),
                    _ => (next, R::ScanUp),
                }
            }
            State::Rest { windows } => self.rested(look, bound, windows + 1, ends),
            State::Scan { scan, .. } => self.scanned(look, scan, ends),
            State::Probe(probe) => self.probed(look, probe, ends),
        }
    }

    /// The next bound after a window in which the bound held nothing back; no rule if nothing changes.
    pub(super) fn idle(&mut self, sample: &Sample, bound: u64, ends: Ends) -> (u64, Option<R>) {
        let look = Look::of(sample);
        self.known.change.interrupt();
        match self.state {
            State::Rest { .. } => return (bound, None),
            State::Scan { scan, idle } => {
                self.known.at_least(scan.rung, look.value, look.in_flight);
                let idle = idle + 1;
                if idle < IDLE {
                    self.state = State::Scan { scan, idle };
                    return (bound, None);
                }
                self.settle();
            }
            State::Probe(Probe { rung, .. }) => {
                let more = self.known.change.clipped(look.value - self.known.level);
                self.known.at_least(rung, more, look.in_flight);
                self.state = State::Rest { windows: 0 };
                if let Some((bound, rule)) = self.moved(ends) {
                    return (bound, Some(rule));
                }
            }
        }
        (ends.bound(self.known.rung), Some(R::BreakOff))
    }

    /// Forgets everything and scans from the rung of this bound.
    fn begin(&mut self, from: u64, ends: Ends) -> u64 {
        self.known.forget();
        let rung = Rung::at_most(from).max(ends.lowest());
        self.state = State::Scan {
            scan: Scan::from(rung),
            idle: 0,
        };
        ends.bound(rung)
    }

    fn scanned(&mut self, look: Look, scan: Scan, ends: Ends) -> (u64, R) {
        let first = self.known.rungs.is_empty();
        let rungs = &mut self.known.rungs;
        rungs.look(scan.rung, look.value, look.in_flight);
        let latency_s = self.known.latency_s(look.in_flight, look.value);
        if first && scan.rung > ends.lowest() && self.known.needs_unloaded(latency_s) {
            return (self.begin(0, ends), R::ScanDown);
        }
        let Some(next) = scan.next(&self.known, ends) else {
            self.settle();
            return (ends.bound(self.known.rung), R::Settle);
        };
        self.state = State::Scan {
            scan: next,
            idle: 0,
        };
        (ends.bound(next.rung), next.rule())
    }

    /// Ends a scan at the least rung with enough throughput, or where it was if nothing is known.
    fn settle(&mut self) {
        let steps = self.known.rungs.isotonic();
        if let Some(step) = self.known.least(&steps) {
            self.known.go(step);
        }
        self.state = State::Rest { windows: 0 };
    }

    fn rested(&mut self, look: Look, bound: u64, windows: u32, ends: Ends) -> (u64, R) {
        let level = self.known.level;
        if self.known.change.observe(look.value, level) {
            return (self.begin(bound / CHANGED, ends), R::Changed);
        }
        self.state = State::Rest { windows };
        self.known.rest(look.value, look.in_flight);
        if let Some(moved) = self.moved(ends) {
            return moved;
        }
        if windows < self.rest_windows(ends) {
            return (bound, R::Rest);
        }
        let Some((rung, rule)) = self.next_probe(ends) else {
            return (bound, R::Rest);
        };
        self.known.change.interrupt();
        self.state = State::Probe(Probe {
            rung,
            looks: 0,
            more: 0.0,
        });
        (ends.bound(rung), rule)
    }

    /// Goes where there is evidence that it is better; `None` to stay.
    fn moved(&mut self, ends: Ends) -> Option<(u64, R)> {
        let (target, rule) = self.known.better(&self.known.rungs.isotonic())?;
        self.known.go(target);
        self.state = State::Rest { windows: 0 };
        Some((ends.bound(target.rung), rule))
    }

    /// Number of windows to rest before the next probe.
    fn rest_windows(&self, ends: Ends) -> u32 {
        let (rung, rungs) = (self.known.rung, &self.known.rungs);
        let known = |rung: Rung| rungs.get(rung).is_some_and(|seen| seen.count > 1);
        let up = known(rung.above(1)) || self.probe_up(0, ends).is_none();
        let down = rung <= self.lowest(ends) || rung.below(1).is_none_or(known);
        if up && down {
            self.settings.rest_windows
        } else {
            self.settings.rest_windows.min(SHORT_REST)
        }
    }

    /// The rung to look at next: one up and one down in turn.
    fn next_probe(&mut self, ends: Ends) -> Option<(Rung, R)> {
        self.probes = self.probes.wrapping_add(1);
        let turn = self.probes / 2;
        let up = || Some((self.probe_up(turn, ends)?, R::ProbeUp));
        let down = || Some((self.probe_down(turn, ends)?, R::ProbeDown));
        if self.probes % 2 == 1 {
            up().or_else(down)
        } else {
            down().or_else(up)
        }
    }

    /// One rung up, now and then two or three, and as many as hold one more batch; none that must be over the
    /// budget.
    fn probe_up(&self, turn: u32, ends: Ends) -> Option<Rung> {
        let far = match turn % 16 {
            15 => 3,
            7 => 2,
            _ => 1,
        };
        let rest = self.known.rung;
        let here = self.known.rungs.get(rest)?;
        let fits = |rung: &Rung| {
            let more = rung.bound() as f64 / rest.bound() as f64;
            *rung > rest
                && *rung <= ends.highest()
                && self.known.within(here.in_flight * more, 0.0, 1.0)
        };
        let more = Rung::at_least(ends.bound(rest).saturating_add(ends.batch)).max(rest.above(1));
        let far = Some(rest.above(far).max(more)).filter(fits);
        far.or(Some(more).filter(fits))
    }

    /// The lowest rung that it may rest at.
    fn lowest(&self, ends: Ends) -> Rung {
        ends.lowest().max(self.known.floor(0.0))
    }

    /// One rung down; seldom where that is known to have too little.
    fn probe_down(&self, turn: u32, ends: Ends) -> Option<Rung> {
        let rung = self.known.rung.below(1)?;
        if rung < self.lowest(ends) {
            return None;
        }
        let steps = self.known.rungs.isotonic();
        let step = steps.iter().find(|step| step.rung == rung);
        let hopeless = step.zip(self.known.enough(&steps));
        let hopeless = hopeless.is_some_and(|(step, enough)| {
            step.count > 1 && step.value + 2.0 * self.known.noise_of(step.count) < enough
        });
        (!hopeless || turn.is_multiple_of(4)).then_some(rung)
    }

    fn probed(&mut self, look: Look, probe: Probe, ends: Ends) -> (u64, R) {
        let Probe { rung, .. } = probe;
        let looks = probe.looks + 1;
        let value = look.value - self.known.level;
        let upwards = rung > self.known.rung;
        // Of a rung that was never looked at it is known that it has no less than those below.
        let expected = match self.known.rungs.get(rung) {
            Some(seen) => seen.value,
            None if upwards => 0.0,
            None => value,
        };
        let noise = self.known.noise_of(1);
        let more = probe.more + value - expected;
        let mean = more / f64::from(looks);
        let grown = GROWN.0.ln().max(GROWN.1 * noise / f64::from(looks).sqrt());
        if upwards && looks > 1 && mean > grown {
            return (self.begin(rung.bound() / CHANGED, ends), R::Changed);
        }
        if looks < LOOKS && (value - expected).abs() > UNLIKE * noise {
            self.state = State::Probe(Probe { rung, looks, more });
            return (ends.bound(rung), R::LookAgain);
        }
        let seen = expected + self.known.change.clipped(mean);
        for _ in 0..looks {
            self.known.rungs.look(rung, seen, look.in_flight);
        }
        self.state = State::Rest { windows: 0 };
        let moved = self.moved(ends);
        moved.unwrap_or_else(|| (ends.bound(self.known.rung), R::TurnBack))
    }
}
