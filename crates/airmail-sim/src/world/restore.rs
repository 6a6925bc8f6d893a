//! The node's files are set back to a copy of themselves, made while it ran.
//!
//! If its operator has said so, each log begins a new life at the next start: then every stale
//! position is recognised, whenever it comes. If not, only a position beyond the end can be
//! recognised, so publishers are kept away until every subscriber has come back. A subscriber that
//! had more than the copy lies beyond the end then, and has to be told.

use super::World;
use crate::census::Kind;
use crate::files::DiskCopy;
use crate::ledger::Standing;
use crate::weather::Ending;
use airmail_model::{Lane, LogId, Mono};
use std::time::Duration;

/// Longest time that publishers are kept away.
const PATIENCE: Duration = Duration::from_secs(5);

/// A copy of the files, and what was true when it was made.
#[derive(Debug)]
struct Copy {
    files: Vec<DiskCopy>,
    standing: Standing,
    /// Commands given by then: the namespaces are as they were only while there are no others.
    commands: u64,
}

/// The copy to set back to, and the rest of a restore's work.
#[derive(Debug, Default)]
pub(super) struct Restore {
    copy: Option<Copy>,
    /// Each log is to begin a new life at the next start.
    pub(super) new_lives: bool,
    /// Publishers are kept away, until then at most.
    pub(super) publishers_wait: Option<Mono>,
}

impl World {
    /// A copy of all files is made, if the namespaces are known to stay as they are.
    pub(super) fn copy_files(&mut self) {
        if !self.is_answered() || !self.is_ready() || self.weather.swarm.restored == 0 {
            return;
        }
        self.evidence.note(format_args!("copied"));
        self.restore.copy = Some(Copy {
            files: self
                .weather
                .machine
                .disks()
                .map(|disk| disk.copy())
                .collect(),
            standing: self.evidence.ledger.standing(),
            commands: self.last_command,
        });
    }

    /// The process ends, and all files are set back to the copy; once in a run.
    pub(super) fn set_back(&mut self) {
        let copy = self.restore.copy.take();
        let Some(copy) = copy.filter(|copy| copy.commands == self.last_command) else {
            return;
        };
        // Two faults at once would excuse too much.
        if self.weather.keeps_power()
            || !self.evidence.ledger.damaged.is_empty()
            || self.weather.swarm.damage > 0
        {
            return;
        }
        self.weather.swarm.restored = 0;
        self.end(Ending::Killed);
        let quietly = self.chance.coin();
        self.evidence
            .note(format_args!("set back, quietly: {quietly}"));
        self.evidence.count(Kind::Restored);
        self.evidence.add(Kind::RestoredQuietly, u64::from(quietly));
        for (mut disk, files) in self.weather.machine.disks().zip(&copy.files) {
            disk.set_back(files);
        }
        let spaces = self.spaces.iter();
        let logs: Vec<LogId> = spaces
            .flat_map(|space| Lane::ALL.map(|lane| space.map.logs(lane)))
            .flatten()
            .collect();
        self.evidence.ledger.restore(&copy.standing, logs);
        for client in &mut self.clients {
            client.files_set_back(quietly);
        }
        if quietly {
            self.restore.publishers_wait = Some(self.weather.now.mono.plus(PATIENCE));
        } else {
            self.restore.new_lives = true;
        }
    }

    /// Lets the publishers come when every subscriber is back; the operator is told to ask for new
    /// lives if that takes too long.
    pub(super) fn after_restore(&mut self) {
        let Some(until) = self.restore.publishers_wait else {
            return;
        };
        let back = self.clients.iter().all(super::client::Client::is_back);
        if self.is_ready() && back {
            self.evidence.note(format_args!("everybody is back"));
            self.restore.publishers_wait = None;
        } else if self.weather.now.mono >= until {
            self.end(Ending::Killed);
        }
    }

    /// The process has ended. If subscribers were still to come back, it is no more known who is
    /// stale.
    pub(super) fn restore_ended(&mut self) {
        self.restore.new_lives |= self.restore.publishers_wait.take().is_some();
    }
}
