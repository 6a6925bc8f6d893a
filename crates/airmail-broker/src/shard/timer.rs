//! What happens because time passes: progress marks, retries, admissions.

use super::Shard;
use super::pilot::Pilot;
use crate::calls::Purpose;
use crate::catalog::CatalogInput;
use crate::input::Effects;
use crate::log_head::Openness;
use airmail_log::{Refusal, Tag};
use airmail_model::frame::Reply;
use airmail_model::{Mono, Now};

impl Shard {
    /// When the shard wants to be called, if nothing else happens before.
    pub(super) fn deadline(&self) -> Option<Mono> {
        let admission = self.timers.admission.first().map(|(wake, _)| *wake);
        let timers = &self.timers;
        let pilot = self.pilot.as_ref().and_then(Pilot::deadline);
        [timers.marks, timers.retry, timers.late, admission, pilot]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn timer(&mut self, now: Now, out: &mut Effects) {
        let due = |at: &mut Option<Mono>| at.take_if(|at| *at <= now.mono).is_some();
        if due(&mut self.timers.marks) {
            self.mark(out);
            self.mark_caravans(out);
        }
        due(&mut self.timers.late);
        if due(&mut self.timers.retry) {
            self.retry(now, out);
        }
        self.admit_parked(now, out);
        self.expire(out);
    }

    /// Makes sure that marks are sent before long.
    pub(super) fn mark_later(&mut self, now: Now) {
        let at = now.mono.plus(self.config.mark_interval);
        self.timers.marks.get_or_insert(at);
    }

    /// Makes sure that what failed is tried again.
    pub(super) fn retry_later(&mut self, now: Now) {
        let at = now.mono.plus(self.config.retry_delay);
        self.timers.retry.get_or_insert(at);
    }

    /// Tells each session whose range of a log lags how far the log has got. One without credit is
    /// told when it has some again: what a client does not read must not pile up.
    fn mark(&mut self, out: &mut Effects) {
        let logs: Vec<_> = self.logs.keys().map(|(_, key)| key).collect();
        for key in logs {
            let head = &mut self.logs[key];
            if head.room.reader.is_none() {
                continue;
            }
            let next = head.room.next;
            for (session, range) in &mut head.room.ranges {
                let behind = range.live > 0 && range.next < next;
                if !behind || !self.sessions[*session].has_credit() {
                    continue;
                }
                let mark = Reply::Mark {
                    log: head.id,
                    previous: range.next.before(),
                    next,
                };
                range.next = next;
                self.stats.marks += 1;
                out.replies.push((self.sessions[*session].id, mark));
            }
        }
    }

    fn retry(&mut self, now: Now, out: &mut Effects) {
        self.step_catalog(now, CatalogInput::Retry, out);
        let logs: Vec<_> = self.logs.keys().map(|(_, key)| key).collect();
        for log in logs {
            let head = &self.logs[log];
            if head.openness == Openness::Failed {
                self.open_again(log, out);
            } else if head.room.failed {
                self.read_room(log, out);
            }
        }
    }
}

impl Shard {
    /// The storage has refused a call.
    pub(super) fn refused(&mut self, now: Now, t: Tag, why: &Refusal, out: &mut Effects) {
        match self.calls.answered(t) {
            Some(Purpose::OpenSystem) => {
                self.step_catalog(now, CatalogInput::OpenRefused(why.clone()), out);
            }
            Some(Purpose::AppendSystem(of)) => {
                let why = why.clone();
                self.step_catalog(now, CatalogInput::AppendRefused { of, why }, out);
            }
            Some(Purpose::Open(log)) => self.log_not_opened(now, log, why, out),
            Some(Purpose::Delete(id, log)) => self.log_not_deleted(now, id, log, why, out),
            Some(Purpose::Append(log, number)) => self.append_refused(log, number, why, out),
            Some(
                Purpose::First { late, ticket, .. }
                | Purpose::End { late, ticket, .. }
                | Purpose::Find(late, ticket),
            ) => {
                self.not_found(late, ticket, why, out);
            }
            Some(Purpose::Renew(log)) => self.not_renewed(log, why, out),
            Some(Purpose::Topics(listing, part)) => self.topics_refused(listing, part, why, out),
            None => {}
        }
    }
}
