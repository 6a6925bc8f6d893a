//! The directory that the process stores in: its lock file is removed, it is moved away, another
//! node begins on it; and [`Watch`], which has to see it.
//!
//! Time runs faster here than in a node, which looks a few times in a second: looks and moves keep
//! the proportion.

use super::StorageRun;
use crate::census::Kind;
use crate::invariants::{Checked, one_node};
use crate::plant::Plant;
use crate::weather::Ending;
use airmail_log::disk::watch::{Effect, Input, Seen, Sight, Thing, Watch};
use airmail_model::Mono;
use std::collections::VecDeque;
use std::time::Duration;

/// Interval at which the process looks.
const LOOK_EVERY: Duration = Duration::from_millis(3);
/// The shortest time from a move to the start of another node on the same files: the second of the
/// promise, in which the first has looked.
const OTHER_AFTER_US: u64 = 10_000;

/// Fates of a directory that is not where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It is moved back.
    Back,
    /// Another node begins on it, and later this one is ended.
    Other,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Directory {
    watch: Watch,
    look_at: Option<Mono>,
    /// The lock file is not the one that the process has locked.
    lock_gone: bool,
    /// It is another node's that locks no more than that.
    lock_taken: bool,
    /// The directory is not at its place.
    moved: bool,
    /// The next event, and its time.
    then: Option<(Then, Mono)>,
    /// Another node acknowledges on these files.
    other_began: bool,
    /// When this process is ended for it.
    end_at: Option<Mono>,
    /// Whether something was withheld in this process's life, and so written to files that count as
    /// failed.
    pub(super) withheld_once: bool,
}

impl Directory {
    fn seen(&self) -> Seen {
        let sight = |gone| if gone { Sight::Missing } else { Sight::Same };
        Seen {
            lock: sight(self.lock_gone),
            things: vec![(Thing::Directory, sight(self.moved))],
        }
    }

    /// Whether nobody has more in store for it.
    fn is_let_be(&self) -> bool {
        !self.moved && self.then.is_none() && self.end_at.is_none()
    }
}

impl StorageRun {
    /// Lets the seed's events happen to the directory, and the process look.
    pub(super) fn watch_directory(&mut self) {
        if self.storage.is_none() || self.volatile {
            return;
        }
        if self.directory.is_let_be() && self.chance.chance(self.weather.swarm.taken) {
            self.take_away();
        }
        if self
            .directory
            .look_at
            .is_none_or(|at| at <= self.weather.now.mono)
        {
            self.directory.look_at = Some(self.weather.now.mono.plus(LOOK_EVERY));
            self.look();
        }
        if let Some((then, at)) = self.directory.then
            && at <= self.weather.now.mono
        {
            self.directory.then = None;
            self.go_on_with(then);
        }
        if self
            .directory
            .end_at
            .is_some_and(|at| at <= self.weather.now.mono)
        {
            self.end(Ending::Killed);
        }
    }

    /// Somebody removes the lock file, moves the directory, or begins a node that knows no other
    /// lock.
    fn take_away(&mut self) {
        let after = Duration::from_micros(OTHER_AFTER_US + self.chance.below(20_000));
        let at = self.weather.now.mono.plus(after);
        let what = self.chance.below(4);
        let directory = &mut self.directory;
        match what {
            0 => {
                directory.lock_gone = true;
                self.evidence.count(Kind::LockRemoved);
            }
            1 => {
                (directory.lock_gone, directory.lock_taken) = (true, true);
                directory.then = Some((Then::Other, at));
                self.evidence.count(Kind::LockTaken);
            }
            back => {
                directory.moved = true;
                let then = if back == 2 { Then::Back } else { Then::Other };
                directory.then = Some((then, at));
                self.evidence.count(Kind::DirectoryMoved);
            }
        }
        self.evidence.note(format_args!(
            "the directory is touched: {:?}",
            self.directory
        ));
    }

    fn go_on_with(&mut self, then: Then) {
        self.evidence.note(format_args!("the directory: {then:?}"));
        match then {
            Then::Back => {
                self.directory.moved = false;
                self.evidence.count(Kind::DirectoryBack);
            }
            Then::Other => {
                self.directory.other_began = true;
                let still = Duration::from_micros(self.chance.between(2_000, 20_000));
                self.directory.end_at = Some(self.weather.now.mono.plus(still));
                self.evidence.count(Kind::OtherNodeBegan);
            }
        }
    }

    fn look(&mut self) {
        if self.plant == Some(Plant::LockNotLookedAtAgain) {
            return;
        }
        let mut inputs = VecDeque::from([Input::Seen(self.directory.seen())]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.directory.watch.step(self.weather.now.mono, input) {
                inputs.extend(self.does(effect));
            }
        }
    }

    /// Carries out the watch's actions; gives their results as events.
    fn does(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::MakeLock => {
                self.directory.lock_gone = self.directory.lock_taken;
                return Some(if self.directory.lock_taken {
                    Input::LockTaken {
                        process: "another".to_owned(),
                    }
                } else {
                    Input::LockMade
                });
            }
            Effect::TellLockMade | Effect::TellLockFailed(_) => {}
            Effect::Withhold(why) => {
                self.evidence.note(format_args!("withheld: {why}"));
                self.directory.withheld_once = true;
                if let Some(storage) = &mut self.storage {
                    storage.withhold(&why.to_string());
                }
            }
            Effect::Release => {
                self.evidence.note(format_args!("released"));
                if let Some(storage) = &mut self.storage {
                    storage.release();
                }
            }
        }
        None
    }

    /// Somebody was told that something is stored.
    pub(super) fn check_alone(&self) -> Checked {
        one_node::check(self.directory.other_began)
    }
}
