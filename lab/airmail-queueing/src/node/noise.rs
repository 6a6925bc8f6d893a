//! Noise of a machine: a speed that changes by itself, drawn as a path over time.
//!
//! The path depends on the seed and the time alone, and not on what is done: two runs of one seed meet
//! the same slow moments, so a limiter and a fixed bound are compared without the noise between them. It
//! is drawn in cells of a millisecond. In each, ln of the speed is the next value of an AR(1) process; it
//! has less than all of it during a stall, and a share of it in the slow mode.
//!
//! Over a stretch of T the mean of such a process has the variance 2s²(a - 1 + e^-a)/a², a = T/τ. The two
//! constants of [`Noise::MEASURED`] are solved from what was measured on a node: a standard deviation of
//! 0.15 for stretches of 25 ms, 0.08 for 100 ms.

use crate::service::exponential;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const CELL_NS: u64 = 1_000_000;
const CELLS_PER_S: f64 = 1_000.0;

/// Parameters of the noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of ln λ at one moment, s.
    pub deviation: f64,
    /// Time in which it is forgotten to 1/e, τ, in milliseconds; more than 0.
    pub memory_ms: f64,
    /// Mean time between stalls, in seconds; infinite for none.
    pub stall_every_s: f64,
    /// Shortest and longest stall, in milliseconds.
    pub stall_ms: [f64; 2],
    /// Mean time between slow modes, in seconds; infinite for none.
    pub slow_every_s: f64,
    /// Shortest and longest time in the slow mode, in seconds.
    pub slow_s: [f64; 2],
    /// Speed in the slow mode, as a share.
    pub slow_speed: f64,
}

impl Noise {
    /// None.
    pub const NONE: Noise = Noise {
        deviation: 0.0,
        memory_ms: 1.0,
        stall_every_s: f64::INFINITY,
        stall_ms: [0.0, 0.0],
        slow_every_s: f64::INFINITY,
        slow_s: [0.0, 0.0],
        slow_speed: 1.0,
    };
    /// Noise of two processors that a node and its clients share. How often stalls and slow modes come was
    /// not measured: both were seen in runs of some seconds, and the slow mode in few of them.
    pub const MEASURED: Noise = Noise {
        deviation: 0.293,
        memory_ms: 3.9,
        stall_every_s: 3.0,
        stall_ms: [20.0, 100.0],
        slow_every_s: 20.0,
        slow_s: [1.0, 4.0],
        slow_speed: 0.55,
    };
}

/// Times at which something begins and ends again, one after the other.
#[derive(Debug)]
struct Spells {
    random: SmallRng,
    every_s: f64,
    length_s: [f64; 2],
    begin: f64,
    end: f64,
}

impl Spells {
    fn new(random: SmallRng, every_s: f64, length_s: [f64; 2]) -> Spells {
        let mut spells = Spells {
            random,
            every_s,
            length_s,
            begin: 0.0,
            end: 0.0,
        };
        spells.next();
        spells
    }

    fn next(&mut self) {
        let [shortest, longest] = self.length_s;
        let length = shortest + (longest - shortest) * self.random.random::<f64>();
        self.begin = self.end + exponential(&mut self.random).max(1e-9) * self.every_s;
        self.end = self.begin + length;
    }

    /// Tells whether one lasts at this time, which never goes back.
    fn lasts(&mut self, at_s: f64) -> bool {
        while at_s >= self.end {
            self.next();
        }
        at_s >= self.begin
    }
}

/// The speed over time.
#[derive(Debug)]
pub(super) struct Speed {
    noise: Noise,
    random: SmallRng,
    stalls: Spells,
    slow: Spells,
    cell: u64,
    /// ln of the speed, without stalls and modes.
    level: f64,
    now: f64,
}

impl Speed {
    pub(super) fn new(noise: Noise, seed: u64) -> Speed {
        let mut seeds = SmallRng::seed_from_u64(seed);
        let mut random = || SmallRng::seed_from_u64(seeds.random());
        let stall_s = noise.stall_ms.map(|ms| ms / 1e3);
        let mut speed = Speed {
            noise,
            random: random(),
            stalls: Spells::new(random(), noise.stall_every_s, stall_s),
            slow: Spells::new(random(), noise.slow_every_s, noise.slow_s),
            cell: 0,
            level: 0.0,
            now: 1.0,
        };
        speed.level = noise.deviation * speed.normal();
        speed.now = speed.of_cell();
        speed
    }

    /// When work that begins now and takes `work_ns` at speed 1 is done. Time never goes back: no work begins
    /// before the end of the one before.
    pub(super) fn finish(&mut self, begin_ns: u64, work_ns: f64) -> u64 {
        while (self.cell + 1) * CELL_NS <= begin_ns {
            self.next_cell();
        }
        let mut at = begin_ns as f64;
        let mut left = work_ns;
        loop {
            let end = ((self.cell + 1) * CELL_NS) as f64;
            let done = (end - at) * self.now;
            if done >= left {
                let until = at + left / self.now.max(f64::MIN_POSITIVE);
                return (until.round() as u64).max(begin_ns + 1);
            }
            left -= done;
            at = end;
            self.next_cell();
        }
    }

    fn next_cell(&mut self) {
        self.cell += 1;
        let kept = (-1e3 / CELLS_PER_S / self.noise.memory_ms).exp();
        let new = (1.0 - kept * kept).sqrt() * self.noise.deviation;
        self.level = kept * self.level + new * self.normal();
        self.now = self.of_cell();
    }

    fn of_cell(&mut self) -> f64 {
        let at_s = self.cell as f64 / CELLS_PER_S;
        if self.stalls.lasts(at_s) {
            return 0.0;
        }
        let mode = if self.slow.lasts(at_s) {
            self.noise.slow_speed
        } else {
            1.0
        };
        // Its mean is 1.
        mode * (self.level - self.noise.deviation.powi(2) / 2.0).exp()
    }

    /// A normal value with mean 0 and variance 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (2.0 * exponential(&mut self.random)).sqrt();
        radius * (std::f64::consts::TAU * self.random.random::<f64>()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Standard deviation of ln of the work that is done in stretches of so many milliseconds.
    fn deviation(ms: u64) -> f64 {
        let noise = Noise {
            stall_every_s: f64::INFINITY,
            slow_every_s: f64::INFINITY,
            ..Noise::MEASURED
        };
        let mut speed = Speed::new(noise, 5);
        let stretch = |_| {
            let work: f64 = (0..ms)
                .map(|_| {
                    speed.next_cell();
                    speed.now
                })
                .sum();
            (work / ms as f64).ln()
        };
        let all: Vec<f64> = (0..4_000).map(stretch).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let square = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        (square / all.len() as f64).sqrt()
    }

    #[test]
    fn it_varies_as_measured_over_25_and_over_100_milliseconds() {
        assert!((deviation(25) - 0.15).abs() < 0.015, "{}", deviation(25));
        assert!((deviation(100) - 0.08).abs() < 0.01, "{}", deviation(100));
    }

    #[test]
    fn without_noise_work_takes_its_time() {
        let mut speed = Speed::new(Noise::NONE, 1);
        assert_eq!(speed.finish(17, 5_000_000.0), 5_000_017);
        assert_eq!(speed.finish(9_000_000, 0.0), 9_000_001);
    }

    #[test]
    fn a_stall_lets_nothing_be_done_and_the_slow_mode_its_share() {
        let noise = Noise {
            stall_every_s: 0.5,
            stall_ms: [50.0, 50.0],
            slow_every_s: 1.0,
            slow_s: [1.0, 1.0],
            slow_speed: 0.5,
            ..Noise::NONE
        };
        let mut speed = Speed::new(noise, 3);
        let mut cells = [0u32; 3];
        for _ in 0..100_000 {
            speed.next_cell();
            cells[(speed.now * 2.0) as usize] += 1;
        }
        // Stalls last for an eleventh of the time, and the slow mode for half of the rest.
        assert!((8_000..10_500).contains(&cells[0]), "{cells:?}");
        assert!((40_000..52_000).contains(&cells[1]), "{cells:?}");
    }

    #[test]
    fn the_path_is_the_seeds_whatever_is_done() {
        let path = |seed, work: &[f64]| {
            let mut speed = Speed::new(Noise::MEASURED, seed);
            let mut now = 0;
            for work in work {
                now = speed.finish(now, *work);
            }
            while speed.cell < 1_000 {
                speed.next_cell();
            }
            (speed.level, speed.now)
        };
        assert_eq!(path(7, &[4e6, 9e6]), path(7, &[1e5; 20]));
        assert_ne!(path(7, &[]).0, path(8, &[]).0);
    }
}
