//! Bytes of batches that wait, by lane, and the room for more.
//!
//! Lane normal has a bound. Lane high has an eighth of it more, on top: a queue full of normal never keeps
//! high out, and where there is no high message, normal has the bound to the byte. High beyond that eighth is in
//! the common bound like any other. A batch alone may be larger than all this.

use airmail_model::Lane;

/// Part of a bound that high has on top of it: one in so many.
const RESERVE: u64 = 8;

/// Bytes by lane. See the module's documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneBytes([u64; 2]);

impl LaneBytes {
    /// Bytes of a lane wait.
    pub(super) fn add(&mut self, lane: Lane, bytes: u64) {
        self.0[lane as usize] += bytes;
    }

    /// Bytes of a lane wait no more.
    pub(super) fn sub(&mut self, lane: Lane, bytes: u64) {
        self.0[lane as usize] -= bytes;
    }

    /// Bytes of both lanes.
    pub(super) fn total(self) -> u64 {
        let [normal, high] = self.0;
        normal + high
    }

    /// Whether a batch of a lane may wait too, where `max` bytes may.
    pub(super) fn has_room(self, lane: Lane, bytes: u64, max: u64) -> bool {
        let [normal, high] = self.0;
        let reserve = max / RESERVE;
        match lane {
            Lane::Normal => {
                let used = normal + high.saturating_sub(reserve);
                used == 0 || used + bytes <= max
            }
            Lane::High => high == 0 || normal + high + bytes <= max + reserve,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 800;

    fn waiting(normal: u64, high: u64) -> LaneBytes {
        LaneBytes([normal, high])
    }

    #[test]
    fn where_nothing_of_high_waits_normal_has_the_bound_to_the_byte() {
        for normal in [1, 300, 799] {
            let of = waiting(normal, 0);
            assert!(of.has_room(Lane::Normal, MAX - normal, MAX), "{normal}");
            assert!(!of.has_room(Lane::Normal, MAX - normal + 1, MAX));
        }
        assert!(waiting(0, 0).has_room(Lane::Normal, 10 * MAX, MAX));
    }

    #[test]
    fn high_has_an_eighth_more_which_is_not_taken_from_normal() {
        let full = waiting(MAX, 0);
        assert!(full.has_room(Lane::High, 100, MAX));
        assert!(waiting(MAX, 60).has_room(Lane::High, 40, MAX));
        assert!(!waiting(MAX, 60).has_room(Lane::High, 41, MAX));
        for high in [0, 60, 100] {
            let of = waiting(300, high);
            assert!(of.has_room(Lane::Normal, 500, MAX), "{high}");
            assert!(!of.has_room(Lane::Normal, 501, MAX), "{high}");
        }
        assert!(!waiting(300, 101).has_room(Lane::Normal, 500, MAX));
    }

    #[test]
    fn without_normal_high_has_all_of_both() {
        assert!(waiting(0, 400).has_room(Lane::High, 500, MAX));
        assert!(!waiting(0, 400).has_room(Lane::High, 501, MAX));
        assert!(!waiting(0, 900).has_room(Lane::Normal, 1, MAX));
    }

    #[test]
    fn a_high_batch_alone_may_be_larger_than_its_reserve() {
        assert!(waiting(MAX, 0).has_room(Lane::High, 101, MAX));
        assert!(!waiting(MAX, 101).has_room(Lane::High, 1, MAX));
    }
}
