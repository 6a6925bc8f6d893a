//! Work of the gateway that is due by time: it tells the progress of quiet logs, asks for their clocks, admits publishes
//! that wait, and refuses those that have waited for too long.

use super::publish_gate::PublishGate;
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::keys::{LogKey, SessionKey};
use crate::link::MemberId;
use airmail_model::Mono;
use airmail_model::frame::Reply;
use std::collections::BTreeSet;

/// When to do something even if nothing happens.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// To tell where quiet ranges are.
    pub(super) marks: Option<Mono>,
    /// Members that were without credit when there was progress to tell.
    pub(super) withheld: BTreeSet<MemberId>,
    /// To give up topics that nobody needs.
    pub(super) wants: Option<Mono>,
    /// To ask for the clocks of logs in which messages expire.
    pub(super) clocks: Option<Mono>,
    /// To go on with what waits to be held against filters.
    pub(super) turns: Option<Mono>,
    /// To ask for admission again.
    pub(super) admission: BTreeSet<(Mono, SessionKey)>,
}

impl Gateway {
    /// When the gateway wants to be called, if nothing else happens before.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let admission = self.timers.admission.first().map(|(wake, _)| *wake);
        let gate = self.publish_gate.as_ref().and_then(PublishGate::deadline);
        let Timers {
            marks,
            wants,
            clocks,
            turns,
            ..
        } = self.timers;
        [marks, wants, clocks, turns, admission, gate]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn timer(&mut self, out: &mut GatewayEffects) {
        let now = self.now.mono;
        if self.timers.marks.take_if(|at| *at <= now).is_some() {
            self.mark_ranges(out);
            self.mark_behind(out);
        }
        if self.timers.wants.take_if(|at| *at <= now).is_some() {
            self.give_up_wants(out);
        }
        if self.timers.clocks.take_if(|at| *at <= now).is_some() {
            self.ask_clocks(out);
        }
        // Turns are taken at the end of each step.
        self.timers.turns.take_if(|at| *at <= now);
        self.admit_parked(out);
        self.expire(out);
    }

    /// Makes sure that marks are sent before long.
    pub(super) fn mark_later(&mut self) {
        let at = self.now.mono.plus(self.config.mark_interval);
        self.timers.marks.get_or_insert(at);
    }

    /// Tells each session whose range of a log lags how far the log has got. One without credit is
    /// told when it has some again: what a client does not read must not pile up.
    fn mark_ranges(&mut self, out: &mut GatewayEffects) {
        let logs: Vec<LogKey> = self.logs.keys().collect();
        for key in logs {
            let log = &mut self.logs[key];
            if !log.tail.is_attached {
                continue;
            }
            let lane = log.id.lane;
            for pace in Pace::ALL {
                let next = log.tail.told_to(pace);
                for (session, range) in &mut log.tail.of_mut(pace).ranges {
                    let behind = range.live > 0 && range.next < next;
                    if !behind || !self.sessions[*session].has_credit(lane) {
                        continue;
                    }
                    let mark = Reply::Mark {
                        log: log.id,
                        previous: range.next.before(),
                        next,
                    };
                    range.next = next;
                    self.stats.marks += 1;
                    out.reply(self.sessions[*session].id, mark);
                }
            }
        }
    }

    /// Tells those who are read for, and were without credit when there was progress to tell, how far they
    /// have got.
    fn mark_behind(&mut self, out: &mut GatewayEffects) {
        for member in std::mem::take(&mut self.timers.withheld) {
            let Some(key) = self.behind.find(member) else {
                // Input: a member that has left since.
                continue;
            };
            let behind = &self.behind[key];
            let lane = self.logs[behind.log].id.lane;
            if self.sessions[behind.session].has_credit(lane) {
                self.tell_progress(key, behind.at, out);
            } else {
                self.timers.withheld.insert(member);
            }
        }
    }
}
