//! Lane high of a namespace begins while there are subscriptions: each gets a part in it.
//!
//! A namespace has logs of lane high from the first publish to it on. Before, they held nothing, so the part of a subscription
//! that was there earlier begins with the first of its log, however late the gateway hears of it. One with an end asked for
//! what was there before, and gets none.

use super::behind::Begin;
use super::{Gateway, GatewayEffects};
use crate::catalog::Entry;
use crate::keys::{LogKey, SubKey};
use crate::link::Question;
use airmail_model::{Lane, LogId, MapEpoch};

impl Gateway {
    /// Gives those who subscribed before there was lane high a part in a log of it, if that is open, and their namespace is known to
    /// have it.
    pub(super) fn begin_high(&mut self, high: LogId, out: &mut GatewayEffects) {
        let entry = self.catalog().get(high.namespace).cloned();
        let entry = entry.filter(|entry| entry.has_high);
        let Some((entry, key)) = entry.zip(self.find_open(high)) else {
            // Input: the other of the two is told later.
            return;
        };
        let first = entry.oldest_kept(Lane::High);
        if !first.logs(Lane::High).any(|log| log == high) {
            // Input: a log after the first of the lane. Who is in one before gets there when that ends.
            return;
        }
        for sub in self.without_high(&entry, (high, first.epoch)) {
            let begin = Begin::First { lost: false };
            #[cfg(feature = "sabotage")]
            let begin = match self.config.bug {
                Some(crate::sabotage::Bug::HighFromLatest) => Begin::Latest,
                _ => begin,
            };
            let part = self.begin_part(sub, key, begin, None);
            self.ask_tower(part, Question::End, out);
        }
    }

    /// The subscriptions without an end that have no part in lane high, and that one of its logs is for.
    fn without_high(&self, entry: &Entry, (high, epoch): (LogId, MapEpoch)) -> Vec<SubKey> {
        let maps = entry.maps().filter(|map| map.epoch <= epoch);
        let logs = maps.flat_map(|map| {
            // A map of before may have had a topic in any of its logs.
            let is_before = map.epoch < epoch;
            let logs = map.logs(Lane::Normal);
            logs.filter(move |log| is_before || log.index == high.index)
        });
        let keys = logs.filter_map(|log| self.logs.find(log));
        let mut subs: Vec<SubKey> = keys.flat_map(|key| self.of_log_without_end(key)).collect();
        let first = entry.oldest_kept(Lane::High);
        subs.retain(|sub| {
            let topic = self.subs[*sub].scope().in_maps();
            first.log(topic, Lane::High) == high && !self.has_part_in(*sub, Lane::High)
        });
        subs
    }

    /// The subscriptions that are live or behind in a log, and go on for ever.
    fn of_log_without_end(&self, log: LogKey) -> Vec<SubKey> {
        let mut subs = self.logs.lane(log).everyone(&self.subs);
        let behind = self.behind.of_log(log).into_iter();
        let endless = behind.map(|part| &self.behind[part]).filter(|of| {
            let has_end = of.until.is_some() || of.asked_until.is_some();
            !has_end && !of.is_complete()
        });
        subs.extend(endless.map(|of| of.sub));
        subs
    }

    /// Whether a subscription is live or behind in a lane.
    fn has_part_in(&self, sub: SubKey, lane: Lane) -> bool {
        let late = self.late_parts(sub).into_iter();
        let mut late = late.map(|part| self.logs[self.behind[part].log].id.lane);
        self.subs[sub].is_live_in(lane) || late.any(|of| of == lane)
    }
}
