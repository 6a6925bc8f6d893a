//! Parts: a subscription has one for each log concerned, which is one for each lane. A part is live at its log's
//! tail, or behind, with a record and a place of its own.
//!
//! - A subscription that is live in some lane is in its topic's list at the tail, once; its record says in which.
//! - A part that is behind while another is live is the rare state, and so is a second one that is behind: these are
//!   in a table aside ([`super::behind::BehindTable`]), which is looked up and never walked. One that is behind alone
//!   is named in place of the list's neighbours.
//! - All live parts are at one tail. A part that is to go live at another one sends its subscription away for a moment
//!   ([`Gateway::is_elsewhere`]): its client comes again, and both are read for up to where the earlier logs end.

use super::Gateway;
use super::behind::Behind;
use crate::keys::{BehindKey, LogKey, SubKey};
use airmail_model::{Lane, bug};
use smallvec::SmallVec;

/// Logs of a subscription's parts, or their records: one for each lane.
pub(super) type Parts<T> = SmallVec<[T; Lane::ALL.len()]>;

impl Gateway {
    /// Logs at whose tails a subscription is live, in order of lane.
    pub(super) fn live_parts(&self, key: SubKey) -> Parts<LogKey> {
        let sub = &self.subs[key];
        if !sub.is_live() {
            return Parts::new();
        }
        let tail = &self.logs.tails[sub.tail()];
        let lanes = Lane::ALL.into_iter().filter(|lane| sub.is_live_in(*lane));
        lanes.filter_map(|lane| tail.log(lane)).collect()
    }

    /// Records of a subscription's parts that are behind.
    pub(super) fn late_parts(&self, key: SubKey) -> Parts<BehindKey> {
        let alone = self.subs[key].behind();
        alone.into_iter().chain(self.behind.aside(key)).collect()
    }

    /// Lets a part that is behind be known to its subscription.
    pub(super) fn put_late(&mut self, key: SubKey, part: BehindKey) {
        let sub = &mut self.subs[key];
        if !sub.is_live() && sub.behind().is_none() {
            sub.set_behind(Some(part));
            self.behind.subscriptions += 1;
            return;
        }
        let is_first = sub.behind().is_none();
        match self.behind.put_aside(key, part) {
            None => self.behind.subscriptions += usize::from(is_first),
            Some(other) => bug!("{key:?} has a part more than there are lanes: {other:?}"),
        }
    }

    /// Takes a part out of those that are behind; it waits for nothing any more.
    pub(super) fn take_late(&mut self, part: BehindKey) -> Behind {
        let key = self.behind[part].sub;
        let aside = self.behind.take_aside(key);
        let sub = &mut self.subs[key];
        if sub.behind() == Some(part) {
            sub.set_behind(aside);
        } else if aside != Some(part) {
            bug!("{key:?} does not know its part {part:?}");
        }
        self.behind.subscriptions -= usize::from(sub.behind().is_none());
        self.behind.remove(part)
    }

    /// Whether a part cannot go live at its log's tail, because another one is live at that of another index.
    pub(super) fn is_elsewhere(&self, part: BehindKey) -> bool {
        let behind = &self.behind[part];
        let sub = &self.subs[behind.sub];
        sub.is_live() && sub.tail() != self.logs[behind.log].at
    }

    /// Makes a subscription live at a log's tail.
    pub(super) fn join_tail(&mut self, key: SubKey, log: LogKey) {
        let pace = self.pace(key);
        let of = &mut self.logs[log];
        let (tail, lane) = (of.at, of.id.lane);
        let sub = &mut self.subs[key];
        let session = sub.session;
        if of.tail.of_mut(pace).join(session) {
            self.sessions[session].logs.push(log);
        }
        if !sub.is_live() {
            if let Some(late) = sub.behind() {
                sub.set_behind(None);
                self.behind.put_aside(key, late);
            }
            sub.set_tail(tail);
            self.logs.tails[tail].link(&mut self.subs, key);
        }
        self.subs[key].set_live_in(lane, true);
    }

    /// Takes a subscription off a log's tail, at which it is live.
    pub(super) fn leave_tail(&mut self, key: SubKey, log: LogKey) {
        let pace = self.pace(key);
        let of = &mut self.logs[log];
        let (tail, lane) = (of.at, of.id.lane);
        let sub = &mut self.subs[key];
        of.tail.of_mut(pace).leave(sub.session);
        sub.set_live_in(lane, false);
        if !sub.is_live() {
            self.logs.tails[tail].unlink(&mut self.subs, key);
            let late = self.behind.take_aside(key);
            self.subs[key].set_behind(late);
        }
    }
}
