//! The file `clock`: the trusted time, as it was last known, for the next start.
//!
//! Append times cannot give it: those that were given while the clock was a day ahead are a day
//! ahead. The file is written and synced every now and then, and when a jump is noticed, believed
//! or over. After a failure it is left alone until the next start: an older time in it is as true,
//! and makes that start more careful. Without a sound file, the newest append time is used in its
//! place.
//!
//! Two places are written in turn: `length u32 | crc u32 | count u64 | trusted i64`, little endian,
//! at byte 0 and at byte 4,096.

use super::Journal;
use super::codec::{Reader, Writer};
use super::effects::{Effects, Purpose};
use super::format::u32_at;
use super::recover::{OpenError, failed};
use crate::contract::ClockState;
use crate::files::{FileName, FileOp, Files};
use airmail_model::{Mono, Wall};
use bytes::Bytes;
use std::io;
use std::time::Duration;

/// The file's name.
const CLOCK_NAME: &str = "clock";
/// Bytes of each of the two places.
const PLACE_BYTES: u64 = 4096;
/// The file is written so often in the time that would be a jump, that a start after a kill is
/// none.
const SAVES_IN_A_JUMP: u32 = 6;

/// State of the clock's file.
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

impl ClockFile {
    /// Reads the last trusted time, if the file is there and sound.
    pub(super) fn load<F: Files>(&mut self, files: &mut F) -> Result<Option<Wall>, OpenError> {
        let name: FileName = CLOCK_NAME.into();
        let found = match files.load(&name, 0, 2 * PLACE_BYTES as u32) {
            Ok(bytes) => {
                self.made = true;
                newest(&bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(CLOCK_NAME)(error)),
        };
        self.count = found.map_or(0, |(count, _)| count);
        Ok(found.map(|(_, trusted)| trusted))
    }

    /// Writes the file, if it is time: where a start after a kill would else be a `jump`, or something has
    /// happened to the clock.
    fn save(
        &mut self,
        state: &ClockState,
        now: Mono,
        closing: bool,
        jump: Duration,
        effects: &mut Effects,
    ) {
        if self.busy || self.failed {
            return;
        }
        let mark = (state.held.is_some(), state.jumps, closing);
        let every = jump / SAVES_IN_A_JUMP;
        let due = self
            .saved
            .is_none_or(|(at, of)| of != mark || at.plus(every) <= now);
        if !due {
            return;
        }
        self.busy = true;
        let name: FileName = CLOCK_NAME.into();
        if !self.made {
            return effects.submit(Purpose::Clock, FileOp::Create { name });
        }
        self.count += 1;
        self.saved = Some((now, mark));
        let op = FileOp::Write {
            name,
            at: (self.count % 2) * PLACE_BYTES,
            parts: vec![encode(self.count, state.trusted)],
            sync: true,
            note: None,
        };
        effects.submit(Purpose::Clock, op);
    }

    /// It was made or written, or could not be.
    pub(super) fn step_done(&mut self, result: &io::Result<()>) {
        self.busy = false;
        let made = match result {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
        };
        self.failed = !made;
        self.made |= made;
    }

    /// Asserts that a file that was written was made before.
    pub(super) fn check(&self) {
        assert!(
            self.saved.is_none() || self.made,
            "the clock's file was written, and was not made"
        );
    }
}

impl Journal {
    /// Takes up the last trusted time, when all else is loaded. Where no file says it, the
    /// newest append time does. The logs' own clocks begin.
    pub(super) fn load_clock<F: Files>(&mut self, files: &mut F) -> Result<(), OpenError> {
        let told = self.time.file().load(files)?;
        let appended = self.logs.iter().map(|log| log.clock.shown());
        let appended = appended.max().filter(|time| time.0 != i64::MIN);
        let known = told.or(appended.map(|time| Wall(time.0)));
        self.time.known(self.config.clock_jump, known);
        let at = self.time.mono();
        self.logs.iter_mut().for_each(|log| log.clock.begin(at));
        Ok(())
    }

    /// Writes the file, if it is time. One run of a journal in memory knows nothing of another.
    pub(super) fn save_clock(&mut self) {
        if self.config.new_incarnations || self.commands.are_held_back() {
            return;
        }
        let (state, now) = (self.time.state(), self.time.mono());
        let jump = self.config.clock_jump;
        let file = self.time.file();
        file.save(
            &state,
            now,
            self.calls.is_closing(),
            jump,
            &mut self.effects,
        );
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
