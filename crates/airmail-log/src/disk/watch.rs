//! Watch over a data directory: whether it is still this node's, looked at again and again while
//! the node runs.
//!
//! Locks are of files and directories, not of names: if a lock file is removed, or a directory
//! moved away, the node has a lock that nobody will find, and another node can begin in the same
//! place while the first still acknowledges. So the files at each name are compared with those that
//! the node holds. A lock file that is gone is made anew: the directory and its identity are locked
//! themselves, so nobody could come in between. Any other difference means that stored messages may
//! not be found again: from there on nothing is stored or acknowledged, until everything is as it
//! was and it is known that nobody else has the lock. If another process has it, that is for good:
//! it may have written meanwhile.
//!
//! A state machine without I/O; [`Guard`](super::Guard) looks, and the node's shell acts on the
//! effects.

use airmail_model::Mono;
use std::fmt;
use std::time::Duration;

/// Interval between looks: two fall within the second in which a change is to be noticed, with time
/// left for a machine that is busy.
pub const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Time for which a thing may fail to be looked at before that counts as gone.
const UNCLEAR_FOR: Duration = Duration::from_millis(250);
/// Pause after a failed attempt to make a lock file.
const LOCK_AGAIN: Duration = Duration::from_secs(10);

/// Findings at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The thing that the node holds.
    Same,
    /// Nothing.
    Missing,
    /// Something else.
    Other,
    /// The system does not say, for this reason.
    Unclear(String),
}

/// One of the things that make a directory this node's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// The data directory.
    Directory,
    /// Its identity.
    Identity,
    /// A shard's directory.
    Shard(u16),
    /// The files in a shard's directory, by its mark.
    Files(u16),
}

/// Findings of one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Findings at the lock file's name.
    pub lock: Sight,
    /// Findings at the names of the others.
    pub things: Vec<(Thing, Sight)>,
}

/// Events of the watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// It was looked.
    Seen(Seen),
    /// A lock file was made anew, and is locked.
    LockMade,
    /// Another process has the lock file that is there.
    LockTaken {
        /// Contents of that file: the process's id, or `(unknown)`.
        process: String,
    },
    /// No lock file could be made, for this reason.
    LockFailed(String),
}

/// Actions for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Make a lock file anew and lock it; then report the result.
    MakeLock,
    /// Say that the lock file was removed or replaced, and has been made anew.
    TellLockMade,
    /// Say that the lock file cannot be made anew.
    TellLockFailed(String),
    /// Store and acknowledge nothing from here on.
    Withhold(Estranged),
    /// Everything is as it was: store again.
    Release,
}

/// Reason for which a directory is not this node's any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Estranged {
    /// Something is not where it was.
    Gone(Thing, Sight),
    /// Another process has the lock file.
    Taken {
        /// Its id, as it has told it.
        process: String,
    },
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    withheld: Option<Estranged>,
    unclear_since: Option<Mono>,
    /// No attempt to make a lock file before this time.
    lock_at: Option<Mono>,
    /// An attempt is under way.
    making: bool,
}

impl Watch {
    /// Reason for which nothing is stored at the moment, if there is one.
    #[must_use]
    pub fn withheld(&self) -> Option<&Estranged> {
        self.withheld.as_ref()
    }

    /// Takes an event; gives the actions for the caller, in order.
    pub fn step(&mut self, now: Mono, input: Input) -> Vec<Effect> {
        match input {
            Input::Seen(seen) => self.seen(now, seen),
            Input::LockMade => {
                (self.making, self.lock_at) = (false, None);
                vec![Effect::TellLockMade]
            }
            Input::LockTaken { process } => {
                self.making = false;
                self.withhold(Estranged::Taken { process })
            }
            Input::LockFailed(why) => {
                self.making = false;
                self.lock_at = Some(now.plus(LOCK_AGAIN));
                vec![Effect::TellLockFailed(why)]
            }
        }
    }

    fn seen(&mut self, now: Mono, seen: Seen) -> Vec<Effect> {
        if matches!(self.withheld, Some(Estranged::Taken { .. })) {
            return Vec::new();
        }
        let Some((thing, sight)) = worst(seen.things) else {
            self.unclear_since = None;
            return self.as_it_was(now, &seen.lock).into_iter().collect();
        };
        if matches!(sight, Sight::Unclear(_)) {
            let since = *self.unclear_since.get_or_insert(now);
            if now < since.plus(UNCLEAR_FOR) {
                return Vec::new();
            }
        } else {
            self.unclear_since = None;
        }
        self.withhold(Estranged::Gone(thing, sight))
    }

    /// All but the lock file is the node's. Where something was not, nothing is stored before it is
    /// known who has the lock: while the directory was elsewhere, another process may have come to it.
    fn as_it_was(&mut self, now: Mono, lock: &Sight) -> Option<Effect> {
        let make = self.look_at_lock(now, lock);
        if make.is_some() || self.making {
            return make;
        }
        self.withheld.take().map(|_| Effect::Release)
    }

    /// Only while the directory is the node's: in another's it would be somebody else's lock.
    fn look_at_lock(&mut self, now: Mono, lock: &Sight) -> Option<Effect> {
        let gone = matches!(lock, Sight::Missing | Sight::Other);
        let due = self.lock_at.is_none_or(|at| at <= now);
        let make = gone && due && !self.making;
        self.making |= make;
        make.then_some(Effect::MakeLock)
    }

    /// Told again only where it is for another reason.
    fn withhold(&mut self, why: Estranged) -> Vec<Effect> {
        if self.withheld.as_ref() == Some(&why) {
            return Vec::new();
        }
        self.withheld = Some(why.clone());
        // Before it is released it is tried at once.
        self.lock_at = None;
        vec![Effect::Withhold(why)]
    }
}

/// The first thing that is surely not as it was; or else the first of which nothing is known.
fn worst(things: Vec<(Thing, Sight)>) -> Option<(Thing, Sight)> {
    let odd = things
        .into_iter()
        .filter(|(_, sight)| *sight != Sight::Same);
    odd.min_by_key(|(thing, sight)| (matches!(sight, Sight::Unclear(_)), thing.clone()))
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Thing::Directory => f.write_str("the data directory"),
            Thing::Identity => f.write_str("the data directory's identity"),
            Thing::Shard(shard) => write!(f, "the data directory's shard-{shard:04}"),
            Thing::Files(shard) => {
                write!(f, "what was in the data directory's shard-{shard:04}")
            }
        }
    }
}

impl fmt::Display for Estranged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Estranged::Gone(thing, Sight::Unclear(why)) => {
                write!(f, "{thing} cannot be looked at: {why}")
            }
            Estranged::Gone(thing, Sight::Other) => {
                write!(f, "{thing} was replaced by another")
            }
            Estranged::Gone(thing, _) => write!(f, "{thing} was moved or removed"),
            Estranged::Taken { process } => write!(
                f,
                "process {process} has taken the data directory: this node has to be ended"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
