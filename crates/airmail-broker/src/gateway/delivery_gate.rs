//! The delivery gate: how many bytes of deliveries may be on their way to clients, and who gets none
//! meanwhile.
//!
//! Credit bounds what one stream may be sent; the gate bounds what all of them have been given and
//! their connections have not taken (`gates`). A stream that is turned away is treated as one without credit: its
//! live subscriptions are detached where the delivery begins, and go on from there when it has taken
//! what it has. Nobody else waits for it ([`Shares`]).

use super::{Gateway, GatewayEffects};
use crate::input::SessionId;
use crate::keys::{LogKey, SessionKey};
use airmail_flow::{Reading, Share, Shares, SharesSettings};
use airmail_model::{Lane, Mono};

/// The gate, and the streams that it turned away.
#[derive(Debug)]
pub(super) struct DeliveryGate {
    shares: Shares,
    /// Streams that were turned away in this step.
    watch: Vec<SessionId>,
}

impl DeliveryGate {
    pub(super) fn new(settings: SharesSettings) -> DeliveryGate {
        DeliveryGate {
            shares: Shares::new(settings),
            watch: Vec::new(),
        }
    }

    /// The gate's bound and what is in flight.
    pub(super) fn reading(&self) -> Reading {
        self.shares.reading()
    }

    /// Gives back what was on its way to a stream that is gone.
    pub(super) fn forget(&mut self, now: Mono, mut share: Share) {
        self.shares.abandon(now, &mut share);
    }
}

impl Gateway {
    /// Whether a stream may be given a delivery of a log.
    pub(super) fn may_deliver(&mut self, session: SessionKey, log: LogKey) -> bool {
        let lane = self.logs[log].id.lane;
        if !self.sessions[session].has_credit(lane) {
            return false;
        }
        let room = self.has_room(session);
        if let Some(gate) = self.delivery_gate.as_mut().filter(|_| !room) {
            gate.shares.turned_away();
        }
        room
    }

    /// Number of a stream's subscriptions that may be read for in a lane. None: not even one of a log of which none is.
    pub(super) fn following_max(&mut self, session: SessionKey, lane: Lane) -> Option<u64> {
        let most = self.sessions[session].following_max(lane)?;
        self.has_room(session).then_some(most)
    }

    /// Whether it has not too much on its way; else it is watched.
    fn has_room(&mut self, session: SessionKey) -> bool {
        let Some(gate) = &mut self.delivery_gate else {
            // Input: a shard without a gate.
            return true;
        };
        let session = &self.sessions[session];
        let room = gate.shares.admits(session.share);
        if !room {
            gate.watch.push(session.id);
        }
        room
    }

    /// Counts a delivery of so many bytes that a stream is given.
    pub(super) fn given(&mut self, session: SessionKey, bytes: usize) {
        if let Some(gate) = &mut self.delivery_gate {
            let share = &mut self.sessions[session].share;
            gate.shares.enter(self.now.mono, share, bytes as u64);
        }
    }

    /// Counts so many bytes of deliveries that a stream's connection has taken.
    pub(super) fn sent(&mut self, session: SessionId, bytes: u64, out: &mut GatewayEffects) {
        let Some(key) = self.sessions.find(session) else {
            // Input: a stream that has ended meanwhile.
            return;
        };
        let Some(gate) = &mut self.delivery_gate else {
            // Input: a shard without a gate.
            return;
        };
        let share = &mut self.sessions[key].share;
        gate.shares.leave(self.now.mono, share, bytes);
        self.unpark(key, out);
    }

    /// Says which streams were turned away in this step.
    pub(super) fn watch(&mut self, out: &mut GatewayEffects) {
        if let Some(gate) = &mut self.delivery_gate {
            gate.watch.sort_unstable();
            gate.watch.dedup();
            out.watch.append(&mut gate.watch);
        }
    }
}
