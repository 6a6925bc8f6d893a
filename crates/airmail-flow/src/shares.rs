//! The gate for deliveries: one bound for many receivers, each with a fair share.
//!
//! A receiver that does not take what it was given must not keep the others from getting theirs. So
//! there is no queue here: a receiver is turned away alone, when the bound is reached *and* it has
//! more in flight than its share, which is the bound divided by the number of receivers with
//! something in flight. A receiver with nothing in flight always gets something. So n receivers
//! that take nothing at all have no more than the bound times 1 + 1/2 + … + 1/n in flight, and each
//! one's last delivery.
//!
//! W comes from Little's law itself: L is measured as the mean over time of the units in flight, λ
//! as the rate at which units leave, and W = L/λ. So nothing is kept for each delivery, which
//! matters at a fan-out of thousands. Units are whatever the caller counts; the delivery gate
//! counts bytes.

use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::meter::Sample;
use crate::record::{Reading, Record};
use crate::settings::LimiterSettings;
use airmail_model::Mono;
use std::time::Duration;

/// One receiver's units in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// Units in flight.
    #[must_use]
    pub fn in_flight(self) -> u64 {
        self.0
    }
}

/// Settings of the gate for deliveries: the limiter, and the window over which it measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharesSettings {
    /// A sample is made of this many units that have left; at least 1. Default: 16 MiB.
    pub window: u64,
    /// The limiter that finds the bound. Default: `gradient`, from 64 MiB up to 1 GiB.
    pub limiter: LimiterSettings,
}

impl SharesSettings {
    /// All defaults, for bytes.
    pub const DEFAULT: SharesSettings = SharesSettings {
        window: 16 << 20,
        limiter: LimiterSettings {
            bound_initial: 64 << 20,
            bound_min: 64 << 20,
            bound_max: 1 << 30,
            delta: 1 << 20,
            ..LimiterSettings::DEFAULT
        },
    };
}

impl Default for SharesSettings {
    fn default() -> SharesSettings {
        SharesSettings::DEFAULT
    }
}

/// One bound, shared.
///
/// ```
/// use airmail_flow::{LimiterKind, LimiterSettings, Share, Shares, SharesSettings};
/// use airmail_model::Mono;
///
/// let mut shares = Shares::new(SharesSettings {
///     window: 1_000,
///     limiter: LimiterSettings { kind: LimiterKind::Fixed, bound_initial: 100, ..Default::default() },
/// });
/// let (mut stopped, mut quick) = (Share::default(), Share::default());
/// shares.enter(Mono(0), &mut stopped, 100);
/// assert!(!shares.admits(stopped), "the bound is reached, by this one");
/// assert!(shares.admits(quick), "but not this one's share");
/// shares.enter(Mono(0), &mut quick, 30);
/// shares.leave(Mono(1), &mut quick, 30);
/// ```
#[derive(Clone, Debug)]
pub struct Shares {
    limiter: Limiter,
    window: u64,
    in_flight: u64,
    /// Receivers with something in flight.
    holders: u64,
    measured: Measured,
    record: Record,
}

/// One window: the units that have left, and the mean in flight meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// When the window began, and when it was last looked at.
    moments: Option<(Mono, Mono)>,
    left: u64,
    /// Units in flight times nanoseconds.
    area: u128,
}

impl Shares {
    /// Makes a gate with the limiter's first bound.
    #[must_use]
    pub fn new(settings: SharesSettings) -> Shares {
        Shares {
            limiter: Limiter::new(settings.limiter),
            window: settings.window.max(1),
            in_flight: 0,
            holders: 0,
            measured: Measured::default(),
            record: Record::default(),
        }
    }

    /// Whether a receiver may be given more.
    #[must_use]
    pub fn admits(&self, share: Share) -> bool {
        let bound = self.limiter.bound();
        share.0 == 0 || self.in_flight < bound || share.0 < bound / self.holders.max(1)
    }

    /// Counts one that was turned away.
    pub fn turned_away(&mut self) {
        self.record.waited();
    }

    /// Notes that a receiver was given `units`.
    pub fn enter(&mut self, now: Mono, share: &mut Share, units: u64) {
        if units == 0 {
            return;
        }
        self.measured.pass(now, self.in_flight);
        self.holders += u64::from(share.0 == 0);
        share.0 += units;
        self.in_flight += units;
    }

    /// Takes `units` of a receiver out of flight. Gives a decision at the end of each window; its
    /// bound holds already.
    pub fn leave(&mut self, now: Mono, share: &mut Share, units: u64) -> Option<Decision> {
        self.measured.pass(now, self.in_flight);
        let units = self.give_up(share, units);
        self.measured.left += units;
        let sample = self.measured.sample(now, self.window)?;
        let decision = self.limiter.observe(&sample, false);
        self.record.decided(decision);
        Some(decision)
    }

    /// Removes a receiver: its units in flight count for neither W nor λ.
    pub fn abandon(&mut self, now: Mono, share: &mut Share) {
        self.measured.pass(now, self.in_flight);
        self.give_up(share, u64::MAX);
    }

    /// The gate's state, and its counters.
    #[must_use]
    pub fn reading(&self) -> Reading {
        Reading {
            bound: self.limiter.bound(),
            in_flight: self.in_flight,
            ..self.record.read(self.limiter.kind())
        }
    }

    /// Takes units out of flight, at most as many as the receiver has.
    fn give_up(&mut self, share: &mut Share, units: u64) -> u64 {
        let units = units.min(share.0);
        if units > 0 {
            share.0 -= units;
            self.in_flight -= units;
            self.holders -= u64::from(share.0 == 0);
        }
        units
    }
}

impl Measured {
    fn pass(&mut self, now: Mono, in_flight: u64) {
        let (opened, last) = *self.moments.get_or_insert((now, now));
        self.area += u128::from(in_flight) * now.since(last).as_nanos();
        self.moments = Some((opened, now.max(last)));
    }

    /// Takes the sample of a window that is full; the next window begins.
    fn sample(&mut self, now: Mono, window: u64) -> Option<Sample> {
        let (opened, _) = self.moments?;
        let span = now.since(opened);
        if self.left < window || span.is_zero() {
            return None;
        }
        let latency_ns = u64::try_from(self.area / u128::from(self.left)).unwrap_or(u64::MAX);
        let sample = Sample {
            at: now,
            messages: self.left,
            batches: self.left,
            span,
            latency: Duration::from_nanos(latency_ns.max(1)),
        };
        *self = Measured {
            moments: Some((now, now)),
            ..Measured::default()
        };
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::LimiterKind;

    fn shares(bound: u64, window: u64) -> Shares {
        Shares::new(SharesSettings {
            window,
            limiter: LimiterSettings {
                kind: LimiterKind::Fixed,
                bound_initial: bound,
                ..LimiterSettings::DEFAULT
            },
        })
    }

    #[test]
    fn w_is_the_mean_in_flight_over_what_has_left() {
        let mut shares = shares(1_000, 100);
        let (mut one, mut other) = (Share::default(), Share::default());
        let mut decisions = Vec::new();
        // Each unit stays for 5 ms: 10 come every millisecond, of two receivers in turn.
        for ms in 0..200_u64 {
            let now = Mono(ms * 1_000_000);
            let share = if ms % 2 == 0 { &mut one } else { &mut other };
            shares.enter(now, share, 10);
            if let Some(before) = ms.checked_sub(5) {
                let share = if before % 2 == 0 {
                    &mut one
                } else {
                    &mut other
                };
                decisions.extend(shares.leave(now, share, 10));
            }
        }
        let last = decisions.last().unwrap();
        assert!((last.rate_per_s - 10_000.0).abs() < 1.0, "{last:?}");
        assert!((last.latency_s - 0.005).abs() < 1e-4, "{last:?}");
        assert_eq!(shares.reading().in_flight, 50);
    }

    #[test]
    fn those_who_take_nothing_leave_the_others_their_share() {
        let mut shares = shares(1_000, 1_000_000);
        let mut stopped = [Share::default(); 9];
        for share in &mut stopped {
            while shares.admits(*share) {
                shares.enter(Mono(0), share, 10);
            }
        }
        let held = shares.reading().in_flight;
        let most: u64 = (1..=9).map(|receivers| 1_000 / receivers + 10).sum();
        assert!((1_000..=most).contains(&held), "{held}");
        let mut quick = Share::default();
        let mut given = 0;
        while shares.admits(quick) {
            shares.enter(Mono(0), &mut quick, 10);
            given += 10;
        }
        assert!(given >= 100, "a tenth of the bound: {given}");
        shares.leave(Mono(1), &mut quick, given);
        assert!(shares.admits(quick));
    }

    #[test]
    fn who_has_nothing_in_flight_always_gets_something() {
        let mut shares = shares(1, 10);
        let mut many = [Share::default(); 50];
        for share in &mut many {
            assert!(shares.admits(*share));
            shares.enter(Mono(0), share, 1_000);
            assert!(!shares.admits(*share));
        }
        for share in &mut many {
            shares.abandon(Mono(1), share);
        }
        let reading = shares.reading();
        assert_eq!((reading.in_flight, reading.decisions), (0, 0));
    }

    #[test]
    fn nobody_gives_back_more_than_it_has() {
        let mut shares = shares(10, 10);
        let mut share = Share::default();
        shares.enter(Mono(0), &mut share, 3);
        shares.leave(Mono(1), &mut share, 8);
        assert_eq!((share.in_flight(), shares.reading().in_flight), (0, 0));
    }
}
