//! Round robin over a list whose length may change: a counter, and its remainder.

/// A round robin's counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    turn: u64,
    mask: u64,
}

impl Rotation {
    /// 64 bits, which do not overflow in the life of a producer: where the length is no power of two, a
    /// counter that wraps gives some a turn less.
    pub(crate) fn new(start: u32) -> Rotation {
        Rotation {
            turn: u64::from(start),
            mask: u64::MAX,
        }
    }

    /// 31 bits, as the paper's default has them: after 2147483647 comes 0.
    pub(crate) fn of_31_bits(start: u32) -> Rotation {
        Rotation {
            turn: u64::from(start),
            mask: 0x7fff_ffff,
        }
    }

    /// Takes the next turn among `length`, which is not 0.
    pub(crate) fn next(&mut self, length: usize) -> usize {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1) & self.mask;
        (turn % length as u64) as usize
    }
}
