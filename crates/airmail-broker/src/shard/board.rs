//! Who gets a reader: those who stand ahead of a caravan join it, others wait their turn.

use super::Shard;
use crate::calls::Owner;
use crate::caravan::Caravan;
use crate::input::Effects;
use crate::keys::{CaravanKey, LateKey};
use crate::late::Stand;
use airmail_log::{Call, Scope, ScopeFilter};
use airmail_model::{Now, Sequence, TopicHash};
use std::collections::BTreeSet;

/// How many have to wait near a reader of one topic before it reads all topics for them.
const SHARE: usize = 16;

impl Shard {
    /// Gives readers to those who wait. Runs at the end of each step, or of several at once.
    pub(super) fn board(&mut self, now: Now, out: &mut Effects) {
        let held = self.timers.hold.is_some_and(|until| until > now.mono);
        if held || !self.has_late() {
            return;
        }
        if !self.allowance.is_open(now.mono) {
            self.timers.late = Some(self.allowance.again());
            return;
        }
        self.timers.late = None;
        self.timers.hold = None;
        if self.late.queued() > 0 {
            for caravan in self.caravans.keys() {
                self.pick_up(caravan, out);
            }
        }
        self.take_turns(out);
        self.grant_caravans(out);
        while self.caravans.len() < self.config.caravans {
            let Some(key) = self.late.oldest() else { break };
            self.begin_caravan(key, out);
        }
    }

    /// Joins a caravan that is under way, if one suits; `true` if so.
    pub(super) fn board_passing(&mut self, key: LateKey) -> bool {
        let late = &self.late[key];
        let suits = |caravan: &Caravan| {
            let to = caravan.position.plus(self.config.caravan_span);
            caravan.log == late.log
                && (caravan.position..=to).contains(&late.at)
                && caravan.topic.is_none_or(|topic| topic == late.topic)
        };
        let mut keys = self.caravans.keys().into_iter();
        let found = keys.find(|caravan| suits(&self.caravans[*caravan]));
        if let Some(caravan) = found {
            self.put_aboard(key, caravan);
        }
        found.is_some()
    }

    fn put_aboard(&mut self, key: LateKey, caravan: CaravanKey) {
        let late = &mut self.late[key];
        late.stand = Stand::Aboard(caravan);
        let caravan = &mut self.caravans[caravan];
        caravan.members.insert((late.topic, key));
        caravan.ends.extend(late.until.map(|until| (until, key)));
        caravan.times.extend(late.not_after.map(|time| (time, key)));
    }

    /// Takes aboard those who wait a little ahead. A reader of one topic takes its own; where many
    /// others wait, it is exchanged for one that reads everything.
    fn pick_up(&mut self, caravan: CaravanKey, out: &mut Effects) {
        loop {
            let Caravan {
                log,
                position,
                topic,
                ..
            } = self.caravans[caravan];
            let to = position.plus(self.config.caravan_span);
            let most = if topic.is_some() { SHARE } else { usize::MAX };
            let near: Vec<LateKey> = self.late.near(log, position, to, most).collect();
            let mine = near.iter().copied();
            let mine: Vec<LateKey> = mine
                .filter(|key| topic.is_none_or(|topic| self.late[*key].topic == topic))
                .collect();
            for key in &mine {
                self.late.dequeue(*key);
                self.put_aboard(*key, caravan);
            }
            if topic.is_none() || mine.is_empty() && near.len() < SHARE {
                return;
            }
            if mine.is_empty() {
                self.reread(caravan, None, out);
            }
        }
    }

    /// Caravans that have had their turn make place for those who wait.
    fn take_turns(&mut self, out: &mut Effects) {
        let mut waiting = self.late.queued();
        for caravan in self.caravans.keys() {
            if self.caravans[caravan].used < self.config.caravan_quantum_bytes {
                continue;
            }
            if waiting == 0 || self.caravans.len() < self.config.caravans {
                self.caravans[caravan].used = 0;
                self.narrow(caravan, out);
                continue;
            }
            waiting -= 1;
            self.disband(caravan, true, out);
        }
    }

    /// A caravan in which only one topic is left reads only that.
    fn narrow(&mut self, caravan: CaravanKey, out: &mut Effects) {
        let one = self.caravans[caravan].of_one_topic();
        let wide = self.caravans[caravan].topic.is_none();
        if let Some(topic) = one.filter(|_| wide && self.capabilities.topic_index) {
            self.reread(caravan, Some(topic), out);
        }
    }

    /// Starts a caravan for one who waits.
    fn begin_caravan(&mut self, key: LateKey, out: &mut Effects) {
        self.late.dequeue(key);
        let late = &self.late[key];
        let (log, position) = (late.log, late.at);
        let topic = Some(late.topic).filter(|_| self.capabilities.topic_index);
        let caravan = self.caravans.insert(Caravan {
            log,
            reader: airmail_log::ReaderId(0),
            position,
            topic,
            members: BTreeSet::new(),
            ends: BTreeSet::new(),
            times: BTreeSet::new(),
            granted: 0,
            used: 0,
        });
        self.put_aboard(key, caravan);
        self.stats.caravans_started += 1;
        self.read_caravan(caravan, topic, out);
        self.pick_up(caravan, out);
    }

    /// Exchanges a caravan's reader.
    fn reread(&mut self, caravan: CaravanKey, topic: Option<TopicHash>, out: &mut Effects) {
        self.stop_reading(caravan, out);
        self.read_caravan(caravan, topic, out);
    }

    fn read_caravan(&mut self, key: CaravanKey, topic: Option<TopicHash>, out: &mut Effects) {
        let reader = self.calls.reader(Owner::Caravan(key));
        let credit = self.config.caravan_step_bytes;
        let caravan = &mut self.caravans[key];
        caravan.reader = reader;
        caravan.topic = topic;
        caravan.granted = credit.into();
        out.storage.push(Call::Read {
            r: reader,
            log: self.logs[caravan.log].id,
            from: caravan.position,
            scope: Box::new(Scope {
                filter: topic.map_or(ScopeFilter::All, ScopeFilter::Topic),
                ..Scope::default()
            }),
            credit,
        });
    }

    fn stop_reading(&mut self, caravan: CaravanKey, out: &mut Effects) {
        let r = self.caravans[caravan].reader;
        self.calls.give_up(r);
        out.storage.push(Call::Stop { r });
    }

    /// Ends a caravan without anybody aboard.
    pub(super) fn rest_caravan(&mut self, caravan: CaravanKey, out: &mut Effects) {
        let found = self.caravans.get(caravan);
        if found.is_some_and(|caravan| caravan.members.is_empty()) {
            self.stop_reading(caravan, out);
            self.caravans.remove(caravan);
        }
    }

    /// Ends a caravan; those aboard wait again, where they have got.
    pub(super) fn disband(&mut self, caravan: CaravanKey, stop: bool, out: &mut Effects) {
        if stop {
            self.stop_reading(caravan, out);
        }
        let ended = self.caravans.remove(caravan);
        for (_, key) in ended.members {
            self.set_back(key, ended.position);
        }
    }

    /// Puts one who was aboard at the end of the queue.
    fn set_back(&mut self, key: LateKey, position: Sequence) {
        let ticket = self.late.ticket();
        let late = &mut self.late[key];
        late.at = late.at.max(position);
        late.ticket = ticket;
        self.late.enqueue(key);
    }
}
