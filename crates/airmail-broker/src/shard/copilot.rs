//! The copilot: how many bytes of deliveries may be on their way to clients, and who gets none
//! meanwhile.
//!
//! Credit bounds what one stream may be sent; the copilot bounds what all of them have been given and
//! their connections have not taken. A stream that is turned away is treated as one without credit: its
//! live subscriptions are detached where the delivery begins, and go on from there when it has taken
//! what it has. Nobody else waits for it ([`Shares`]).

use super::Shard;
use crate::input::{Effects, SessionId};
use crate::keys::SessionKey;
use airmail_flow::{Reading, Share, Shares, SharesSettings};
use airmail_model::Mono;

/// One shard's.
#[derive(Debug)]
pub(super) struct Copilot {
    shares: Shares,
    /// Turned away in this step.
    watch: Vec<SessionId>,
}

impl Copilot {
    pub(super) fn new(settings: SharesSettings) -> Copilot {
        Copilot {
            shares: Shares::new(settings),
            watch: Vec::new(),
        }
    }

    /// How it stands.
    pub(super) fn reading(&self) -> Reading {
        self.shares.reading()
    }

    /// A stream is gone, with all that was on its way.
    pub(super) fn forget(&mut self, now: Mono, mut share: Share) {
        self.shares.abandon(now, &mut share);
    }
}

impl Shard {
    /// Whether a stream may be given a delivery.
    pub(super) fn may_deliver(&mut self, session: SessionKey) -> bool {
        if !self.sessions[session].has_credit() {
            return false;
        }
        let room = self.has_room(session);
        if let Some(copilot) = self.copilot.as_mut().filter(|_| !room) {
            copilot.shares.turned_away();
        }
        room
    }

    /// Whether one more of a stream's subscriptions may travel.
    pub(super) fn may_travel(&mut self, session: SessionKey) -> bool {
        self.sessions[session].may_travel() && self.has_room(session)
    }

    /// Whether it has not too much on its way; else it is watched.
    fn has_room(&mut self, session: SessionKey) -> bool {
        let Some(copilot) = &mut self.copilot else {
            return true;
        };
        let session = &self.sessions[session];
        let room = copilot.shares.admits(session.share);
        if !room {
            copilot.watch.push(session.id);
        }
        room
    }

    /// A stream is given a delivery of so many bytes.
    pub(super) fn given(&mut self, session: SessionKey, bytes: usize) {
        if let Some(copilot) = &mut self.copilot {
            let share = &mut self.sessions[session].share;
            copilot.shares.enter(self.mono, share, bytes as u64);
        }
    }

    /// A stream's connection has taken so many bytes of deliveries.
    pub(super) fn sent(&mut self, session: SessionId, bytes: u64, out: &mut Effects) {
        let Some(key) = self.sessions.find(session) else {
            return;
        };
        let Some(copilot) = &mut self.copilot else {
            return;
        };
        let share = &mut self.sessions[key].share;
        copilot.shares.leave(self.mono, share, bytes);
        if !self.sessions[key].parked.is_empty() {
            self.unpark(key, out);
        }
    }

    /// Those who were turned away in this step.
    pub(super) fn watch(&mut self, out: &mut Effects) {
        if let Some(copilot) = &mut self.copilot {
            copilot.watch.sort_unstable();
            copilot.watch.dedup();
            out.watch.append(&mut copilot.watch);
        }
    }
}
