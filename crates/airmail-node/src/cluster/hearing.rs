//! Hearing: for how long the other end of a link may say nothing until it is lost.
//!
//! Time is counted in looks, which the thread of the link's shard has. One that stood still itself has missed one look,
//! however long that was. An end is lost after three times the longest pause that is usual on this link: where machines
//! are busy, signs of life come late, and a link that is given up for that costs more than it saves.

use std::time::Duration;

/// Time between two looks. A sign of life is sent after one in which nothing was, so that where nothing else is said one
/// comes in every second look.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Looks without a word after which the other end is lost, at least and at most.
const LOST_AFTER: (u32, u32) = (6, 15);
/// Looks without a word that are told as a silence, at most; one less than it is lost after, at least.
const SILENT_AFTER: u32 = 9;
/// Pauses that are remembered.
const PAUSES: usize = 100;

/// State of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It has said something lately.
    Well,
    /// It has said nothing for a while: told once.
    Silent,
    /// It has said nothing for too long.
    Lost,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Hearing {
    missed: u32,
    /// The last pauses, in looks.
    pauses: [u8; PAUSES],
    at: usize,
    lost_after: u32,
}

impl Hearing {
    /// One of a link of which nothing is known: it is patient.
    pub(super) fn new() -> Hearing {
        let mut hearing = Hearing {
            missed: 0,
            pauses: [u8::try_from(LOST_AFTER.1).unwrap_or(u8::MAX); PAUSES],
            at: 0,
            lost_after: LOST_AFTER.1,
        };
        hearing.judge();
        hearing
    }

    /// A look: whether something came since the last one.
    pub(super) fn look(&mut self, has_come: bool) -> Heard {
        if has_come {
            self.pauses[self.at] = u8::try_from(self.missed + 1).unwrap_or(u8::MAX);
            self.at = (self.at + 1) % PAUSES;
            self.missed = 0;
            self.judge();
            return Heard::Well;
        }
        self.missed += 1;
        let silent_after = SILENT_AFTER.min(self.lost_after - 1);
        match self.missed {
            missed if missed >= self.lost_after => Heard::Lost,
            missed if missed == silent_after => Heard::Silent,
            _ => Heard::Well,
        }
    }

    /// Sets the patience by the longest pause but one.
    fn judge(&mut self) {
        let (mut most, mut next) = (0, 0);
        for pause in self.pauses {
            match pause {
                pause if pause > most => (most, next) = (pause, most),
                pause => next = next.max(pause),
            }
        }
        self.lost_after = (3 * u32::from(next)).clamp(LOST_AFTER.0, LOST_AFTER.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until the end is lost, after so many pauses of this length.
    fn lost_after(count: usize, pause: u32) -> u32 {
        let mut hearing = Hearing::new();
        for _ in 0..count {
            (1..pause).for_each(|_| assert_ne!(hearing.look(false), Heard::Lost));
            assert_eq!(hearing.look(true), Heard::Well);
        }
        let mut looks = 1;
        while hearing.look(false) != Heard::Lost {
            looks += 1;
        }
        looks
    }

    #[test]
    fn an_end_is_lost_after_three_times_the_usual_pause_within_bounds() {
        assert_eq!(lost_after(200, 1), 6);
        assert_eq!(lost_after(200, 3), 9);
        assert_eq!(lost_after(200, 5), 15);
        assert_eq!(lost_after(200, 12), 15);
    }

    #[test]
    fn a_link_of_which_little_is_known_is_patient() {
        assert_eq!(lost_after(0, 1), 15);
        assert_eq!(lost_after(PAUSES - 2, 1), 15);
        assert_eq!(lost_after(PAUSES - 1, 1), 6);
    }

    #[test]
    fn a_silence_is_told_once_before_the_end_is_lost() {
        for (known, lost_after) in [(0, 15), (200, 6)] {
            let mut hearing = Hearing::new();
            (0..known).for_each(|_| assert_eq!(hearing.look(true), Heard::Well));
            let heard: Vec<Heard> = (0..lost_after).map(|_| hearing.look(false)).collect();
            assert_eq!(heard.iter().filter(|one| **one == Heard::Silent).count(), 1);
            assert_eq!(heard.last(), Some(&Heard::Lost));
        }
    }
}
