//! Beginning: log 0 is opened and read to its end, then every namespace's logs are opened.

use super::Shard;
use super::manage::Phase;
use crate::calls::{Owner, Purpose};
use crate::command::SYSTEM_EPOCH;
use crate::input::Effects;
use airmail_log::{Bounds, Call, GapWhy, LogSpec};
use airmail_model::{Error, ErrorCode, Extent, LogId, Now, Retention};

impl Shard {
    /// Begins to open the logs.
    pub fn start(&mut self, _now: Now, out: &mut Effects) {
        self.open_system(out);
        out.deadline = self.deadline();
    }

    pub(super) fn open_system(&mut self, out: &mut Effects) {
        out.storage.push(Call::Open {
            t: self.calls.tag(Purpose::OpenSystem),
            log: LogId::SYSTEM,
            spec: LogSpec {
                durability: self.capabilities.strongest,
                retention: Retention::default(),
                epoch: SYSTEM_EPOCH,
            },
        });
    }

    pub(super) fn system_opened(&mut self, bounds: Bounds, out: &mut Effects) {
        self.namespaces.phase = Phase::Replaying;
        self.namespaces.failure = None;
        self.namespaces.next = bounds.first;
        self.read_system(out);
    }

    /// Reads log 0 on, from what has been folded.
    pub(super) fn read_system(&mut self, out: &mut Effects) {
        let reader = self.calls.reader(Owner::System);
        self.namespaces.reader = Some(reader);
        out.storage.push(Call::Read {
            r: reader,
            log: LogId::SYSTEM,
            from: self.namespaces.next,
            scope: Box::default(),
            credit: self.config.room_window_bytes,
        });
    }

    /// Something of log 0 is missing: what was folded may be wrong. What is known goes on being
    /// served, but nothing is changed any more.
    pub(super) fn system_gap(&mut self, extent: Extent, why: GapWhy) {
        self.namespaces.next = extent.next();
        if why != GapWhy::Unused {
            let lost = format!("{} to {}", extent.first, extent.last);
            let error = Error::new(ErrorCode::StorageFailed)
                .field("log")
                .value(format_args!("{} lacks numbers {lost}", LogId::SYSTEM))
                .limit("restored from a copy");
            self.namespaces.failure = Some(error);
            self.namespaces.torn = true;
        }
    }

    /// Log 0 has been read to its end.
    pub(super) fn system_tail(&mut self, now: Now, out: &mut Effects) {
        if self.namespaces.phase != Phase::Replaying {
            return;
        }
        self.namespaces.phase = Phase::Settling;
        self.namespaces.publish();
        let known: Vec<_> = self.catalog().iter().map(|e| e.namespace.id).collect();
        for id in known {
            self.open_logs(id, out);
        }
        let dying: Vec<_> = self.namespaces.fold.dying.keys().copied().collect();
        for id in dying {
            self.delete_logs(id, out);
        }
        if !self.namespaces.has_begun() && self.namespaces.failure.is_none() {
            self.create_default(now, out);
        }
        self.check_ready();
    }

    /// Ready, once nothing of the start is under way. Where log 0 is damaged there may be no
    /// namespace: what is known is served, and [`Shard::failure`] says why it is not all.
    pub(super) fn check_ready(&mut self) {
        let waits = self.namespaces.is_busy()
            || self.namespaces.settling.values().any(|s| s.left > 0)
            || self.catalog().is_empty() && !self.namespaces.has_begun();
        if self.namespaces.phase == Phase::Settling && !waits {
            self.namespaces.phase = Phase::Ready;
            self.namespaces.settling.clear();
        }
    }
}
