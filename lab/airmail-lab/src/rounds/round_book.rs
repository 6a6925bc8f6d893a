//! One client's account of the rounds: the next message, and each round's time.

use airmail_bench::stamp::Stamp;

/// Messages of a round.
pub(crate) const MESSAGES: u64 = 20;

/// Book of one client's messages.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundBook {
    /// The next message of the run.
    next: u64,
    /// Times of the rounds that are complete, in microseconds, in order.
    pub(super) took_us: Vec<u32>,
    /// Batches of messages that came.
    pub(super) deliveries: u64,
    /// Messages that came though something before them had not, twice, or out of order; gaps; and what
    /// is none of the run's.
    pub(super) wrong: u64,
}

impl RoundBook {
    /// Takes a message. All messages of a round have the time of the round's beginning.
    pub(super) fn take(&mut self, run: u32, payload: &[u8], now_us: u64) {
        let stamp = Stamp::read(payload).filter(|stamp| stamp.is_of(run, payload.len()));
        let Some(stamp) = stamp.filter(|stamp| stamp.number == self.next) else {
            self.wrong += 1;
            return;
        };
        self.next += 1;
        if self.next.is_multiple_of(MESSAGES) {
            let took_us = now_us.saturating_sub(stamp.sent_us);
            self.took_us
                .push(u32::try_from(took_us).unwrap_or(u32::MAX));
        }
    }

    /// A gap was told.
    pub(super) fn take_gap(&mut self) {
        self.wrong += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(number: u64, sent_us: u64) -> Vec<u8> {
        let stamp = Stamp {
            run: 7,
            publisher: 0,
            number,
            sent_us,
        };
        stamp.payload(100)
    }

    #[test]
    fn a_round_takes_until_its_last_message() {
        let mut book = RoundBook::default();
        for number in 0..2 * MESSAGES {
            let begun_us = 1000 * (number / MESSAGES);
            book.take(7, &payload(number, begun_us), begun_us + number);
        }
        let last = (MESSAGES - 1) as u32;
        assert_eq!(book.took_us, [last, last + MESSAGES as u32]);
        assert_eq!(book.wrong, 0);
    }

    #[test]
    fn what_is_missing_again_or_of_another_run_is_wrong() {
        let mut book = RoundBook::default();
        for number in [0, 2, 1, 1] {
            book.take(7, &payload(number, 0), 1);
        }
        book.take(8, &payload(2, 0), 1);
        book.take(7, b"short", 1);
        book.take_gap();
        assert_eq!(book.wrong, 5);
        assert!(book.took_us.is_empty());
    }
}
