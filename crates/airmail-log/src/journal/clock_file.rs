//! The file `clock`: the trusted time, as it was last known, for the next start.
//!
//! Append times cannot say it: those that were given while the clock was a day ahead are a day
//! ahead. It is written and synced every now and then, and when a jump is noticed, believed or
//! over. After a failure it is left alone until the next start: what it says then is older and as
//! true, and makes that start more careful. Where there is none that is sound, the newest append
//! time is taken for it.
//!
//! Two places are written in turn: `length u32 | crc u32 | count u64 | trusted i64`, little endian,
//! at byte 0 and at byte 4,096.

use super::clock_guard::ClockGuard;
use super::codec::{Reader, Writer};
use super::format::u32_at;
use super::recover::{OpenError, failed};
use super::{Journal, Purpose};
use crate::contract::ClockState;
use crate::files::{FileName, FileOp, Files};
use airmail_model::{Mono, Wall};
use bytes::Bytes;
use std::io;

/// The file's name.
const CLOCK_NAME: &str = "clock";
/// Bytes of each of the two places.
const PLACE_BYTES: u64 = 4096;
/// The file is written so often in the time that would be a jump, that a start after a kill is
/// none.
const SAVES_IN_A_JUMP: u32 = 6;

/// What has become of the file.
#[derive(Debug, Default)]
pub(super) struct ClockFile {
    made: bool,
    busy: bool,
    count: u64,
    /// It could not be made, written or synced.
    failed: bool,
    /// When it was written last, and what had happened to the clock by then.
    saved: Option<(Mono, ClockMark)>,
}

/// Whether a jump was held, how many were noticed, and whether the journal was being closed.
type ClockMark = (bool, u64, bool);

fn encode(count: u64, trusted: Wall) -> Bytes {
    let mut out = Writer::default();
    out.u64(count).i64(trusted.0);
    let body = out.with_crc();
    let mut all = (body.len() as u32).to_le_bytes().to_vec();
    all.extend_from_slice(&body);
    all.into()
}

fn decode(bytes: &[u8]) -> Option<(u64, Wall)> {
    let length = usize::try_from(u32_at(bytes, 0)).ok()?;
    let mut input = Reader::checked(bytes.get(4..4usize.checked_add(length)?)?)?;
    let found = (input.u64()?, Wall(input.i64()?));
    input.is_empty().then_some(found)
}

/// The newer of a file's two places.
fn newest(file: &[u8]) -> Option<(u64, Wall)> {
    let second = file.get(PLACE_BYTES as usize..).and_then(decode);
    decode(file)
        .into_iter()
        .chain(second)
        .max_by_key(|(count, _)| *count)
}

impl Journal {
    /// Takes up what was known of the time before, when all else is loaded.
    pub(super) fn load_clock<F: Files>(&mut self, files: &mut F) -> Result<(), OpenError> {
        let name: FileName = CLOCK_NAME.into();
        let found = match files.load(&name, 0, 2 * PLACE_BYTES as u32) {
            Ok(bytes) => {
                self.clock_file.made = true;
                newest(&bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(CLOCK_NAME)(error)),
        };
        let appended = self.logs.values().map(|log| log.last_time);
        let appended = appended.max().filter(|time| *time != i64::MIN).map(Wall);
        let known = found.map(|(_, trusted)| trusted).or(appended);
        self.clock_file.count = found.map_or(0, |(count, _)| count);
        self.clock = ClockGuard::new(self.config.clock_jump, known, self.now);
        Ok(())
    }

    /// Writes the file, if it is time. One run of a journal in memory knows nothing of another.
    pub(super) fn save_clock(&mut self) {
        let wait = self.clock_file.busy || self.clock_file.failed;
        if wait || self.config.new_incarnations || self.recovering.is_some() {
            return;
        }
        let state = self.clock.state(self.now);
        let mark = (state.held.is_some(), state.jumps, self.closing);
        let every = self.config.clock_jump / SAVES_IN_A_JUMP;
        let due = self
            .clock_file
            .saved
            .is_none_or(|(at, of)| of != mark || at.plus(every) <= self.now.mono);
        if !due {
            return;
        }
        self.clock_file.busy = true;
        let name: FileName = CLOCK_NAME.into();
        if !self.clock_file.made {
            return self.submit(Purpose::Clock, FileOp::Create { name });
        }
        self.clock_file.count += 1;
        self.clock_file.saved = Some((self.now.mono, mark));
        let count = self.clock_file.count;
        let op = FileOp::Write {
            name,
            at: (count % 2) * PLACE_BYTES,
            parts: vec![encode(count, state.trusted)],
            sync: true,
            note: None,
        };
        self.submit(Purpose::Clock, op);
    }

    pub(super) fn clock_step_done(&mut self, result: &io::Result<()>) {
        self.clock_file.busy = false;
        let made = match result {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
        };
        self.clock_file.failed = !made;
        self.clock_file.made |= made;
    }

    /// What is to be told of the clock.
    pub(super) fn clock_state(&self) -> ClockState {
        self.clock.state(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_of_two_places_counts_and_damage_is_found() {
        let mut file = encode(2, Wall(-5)).to_vec();
        file.resize(PLACE_BYTES as usize, 0);
        file.extend_from_slice(&encode(1, Wall(4)));
        assert_eq!(newest(&file), Some((2, Wall(-5))));
        file[9] ^= 1;
        assert_eq!(newest(&file), Some((1, Wall(4))));
        assert_eq!(newest(&file[..4100]), None);
        assert_eq!(newest(&[]), None);
    }
}
