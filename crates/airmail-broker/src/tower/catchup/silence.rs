//! Silent readers: a part of the storage that gives nothing does not keep the others' readers from beginning.
//!
//! A log may be out of reach for a while: its shard stalls, its disk hangs. Its readers would keep their places
//! for as long, and whoever is behind on another log would wait with it. So where somebody waits for a place, a
//! reader that may give and has given nothing for [`SILENCE`] is *silent*: it goes on waiting, and does not count
//! against the bound. Each log has one such reader at most, and while it has it, none of its members begins;
//! another that falls silent there is ended.
//!
//! So there are at most as many readers as the settings say and one for each log.

use crate::keys::ReaderKey;
use crate::tower::catchup::queue::HeldFor;
use crate::tower::catchup::reader::CatchUpReader;
use crate::tower::{Tower, TowerEffects};
use airmail_model::Mono;
use std::time::Duration;

/// Time without anything after which a reader is silent. A disk that is busy takes less.
const SILENCE: Duration = Duration::from_millis(250);
/// The same while another is silent: many logs may be out of reach at once, and those who wait for others come
/// after one reader of each.
const SILENCE_OF_MORE: Duration = Duration::from_millis(25);

impl Tower {
    /// Passes over readers that are silent, if somebody waits for a place.
    pub(super) fn pass_over_silent(&mut self, out: &mut TowerEffects) {
        if !self.is_place_wanted() {
            return;
        }
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::SilentReaderCounts) {
            return;
        }
        for key in self.readers.active_keys() {
            let at = self.readers[key].silent_at(self.silence());
            if at.is_none_or(|at| at > self.now.mono) {
                continue;
            }
            let log = self.readers[key].log;
            if self.readers.silent().contains_key(&log) {
                self.stop_reading(key, out);
                self.disband(key);
            } else {
                self.readers.fall_silent(key);
                self.members.hold(log, HeldFor::Silence);
            }
        }
    }

    /// When the next reader is silent, if somebody waits for its place.
    pub(super) fn next_silence(&self) -> Option<Mono> {
        if !self.is_place_wanted() {
            return None;
        }
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::SilentReaderCounts) {
            return None;
        }
        let after = self.silence();
        let active = self.readers.active_readers();
        let silences = active.filter_map(|(_, reader)| reader.silent_at(after));
        silences.min()
    }

    fn silence(&self) -> Duration {
        if self.readers.silent().is_empty() {
            SILENCE
        } else {
            SILENCE_OF_MORE
        }
    }

    fn is_place_wanted(&self) -> bool {
        self.waiting_for_turn() > 0 && self.readers.active() >= self.config.catch_up_readers
    }

    /// A reader has given something.
    pub(super) fn heard(&mut self, key: ReaderKey) {
        self.readers[key].heard_at = self.now.mono;
        self.wake(key);
    }

    /// Takes a reader out.
    pub(super) fn remove_reader(&mut self, key: ReaderKey) -> CatchUpReader {
        self.wake(key);
        self.end_sweep(self.readers[key].log, key);
        self.readers.remove(key)
    }

    fn wake(&mut self, key: ReaderKey) {
        if self.readers.wake(key) {
            let log = self.readers[key].log;
            self.members.release(log, HeldFor::Silence);
        }
    }
}
