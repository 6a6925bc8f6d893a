//! Questions where a log ends: asked of the storage, always, because others may append to it too.
//!
//! Questions of one step are one call. All who asked before it was sent are served by its answer: what was
//! acknowledged to anybody before they asked is before that end. Whoever asks later gets a later call, for
//! the answer under way may be from before; so at most one call of a log is under way.
//!
//! Invariant, which `check.rs` asserts under this name:
//!
//! - `asked`: after a step, whoever asks for a log's end waits for a call under way, or for the one after it.

use super::storage_calls::Purpose;
use super::{Tower, TowerEffects};
use crate::keys::TowerLogKey;
use crate::link::{Answer, MemberId};
use airmail_log::{Bounds, Call, Refusal};
use std::collections::BTreeMap;

/// Members who ask where one log ends.
#[derive(Debug, Default)]
struct Asking {
    /// Those whom the call under way serves.
    served: Vec<MemberId>,
    /// Those who have asked since it was sent.
    later: Vec<MemberId>,
    is_under_way: bool,
}

/// Questions where logs end, by log. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Ends {
    logs: BTreeMap<TowerLogKey, Asking>,
}

impl Ends {
    /// Somebody asks.
    pub(super) fn ask(&mut self, log: TowerLogKey, member: MemberId) {
        self.logs.entry(log).or_default().later.push(member);
    }

    /// Somebody asks, and is served by the call under way, if there is one: a planted bug.
    #[cfg(feature = "sabotage")]
    pub(super) fn ask_earlier(&mut self, log: TowerLogKey, member: MemberId) {
        let asking = self.logs.entry(log).or_default();
        if asking.is_under_way {
            asking.served.push(member);
        } else {
            asking.later.push(member);
        }
    }

    /// Logs of which a call is to be sent now; it serves all who have asked.
    fn send(&mut self) -> Vec<TowerLogKey> {
        let mut send = Vec::new();
        for (log, asking) in &mut self.logs {
            if !asking.is_under_way {
                asking.is_under_way = true;
                asking.served = std::mem::take(&mut asking.later);
                send.push(*log);
            }
        }
        send
    }

    /// A call is answered: those whom it serves.
    fn answered(&mut self, log: TowerLogKey) -> Vec<MemberId> {
        let Some(asking) = self.logs.get_mut(&log) else {
            // Input: an answer about a log that was deleted meanwhile.
            return Vec::new();
        };
        asking.is_under_way = false;
        let served = std::mem::take(&mut asking.served);
        if asking.later.is_empty() {
            self.logs.remove(&log);
        }
        served
    }

    /// The log is deleted, with all who ask about it.
    pub(super) fn forget(&mut self, log: TowerLogKey) {
        self.logs.remove(&log);
    }

    /// Whether all who ask wait for a call under way, or for the one after it.
    pub(super) fn are_asked(&self) -> bool {
        self.logs.values().all(|asking| asking.is_under_way)
    }
}

impl Tower {
    /// Asks the storage where logs end, for all who have asked in this step.
    pub(super) fn ask_ends(&mut self, out: &mut TowerEffects) {
        if self.ends.logs.is_empty() {
            return;
        }
        for key in self.ends.send() {
            let t = self.calls.tag(Purpose::End(key));
            let log = self.logs[key].id;
            out.call(Call::Bounds { t, log });
        }
    }

    /// The storage has said where a log ends, or cannot.
    pub(super) fn end_found(
        &mut self,
        key: TowerLogKey,
        found: Result<Bounds, Refusal>,
        out: &mut TowerEffects,
    ) {
        let answer = match found {
            Ok(bounds) => {
                self.known_end(key, &bounds, out);
                Answer::End
            }
            Err(why) => Answer::Refused(why),
        };
        for member in self.ends.answered(key) {
            self.answer(key, member, answer.clone(), out);
        }
    }

    /// Takes note of where a log ends, as far as it is news, and whether for ever.
    pub(super) fn known_end(&mut self, key: TowerLogKey, bounds: &Bounds, out: &mut TowerEffects) {
        if let Some(log) = self.logs.get_mut(key) {
            log.end = log.end.max(bounds.next);
        }
        if bounds.sealed.is_some() {
            self.note_sealed(key, bounds.next, out);
        }
    }
}
