//! Wants: the topics that the tower has to give of a log, where it does not give everything.
//!
//! A topic with live subscriptions is wanted, without a word here. Here are those on their way to that, and from
//! it: a subscription that comes to the tail *holds* its topic, and waits until the tower has said from where it
//! is given; one that has been behind meanwhile is read for up to there. A topic that nobody needs any more is
//! given up a second later, for its subscribers may only have changed their connection. From when that is sent it
//! is wanted no more, whatever the tower still gives of it.
//!
//! If the tower has lost what was wanted, it is said anew, and nothing comes before. If there is no room for it,
//! the gateway attaches to the log anew, from where it stands, and is given everything; and so it does for a selection.

use super::behind::BehindState;
use super::log::GatewayLog;
use super::scope::Scope;
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, LogKey};
use crate::link::{Interest, ToTower};
use airmail_log::WantEdit;
use airmail_model::{LogId, Mono, Sequence, TopicHash, bug};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time for which a topic that nobody needs is wanted all the same.
const IDLE: Duration = Duration::from_secs(1);
/// Topics of one edit. More are sent as several that take effect together.
const EDIT_TOPICS: usize = 4096;

/// State of a topic that is not wanted by live subscriptions alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WantState {
    /// The tower has not said from where it is given.
    Asked,
    /// It is given.
    Given,
    /// It is given, and nobody needs it since then.
    Idle(Mono),
}

#[derive(Debug)]
struct Want {
    state: WantState,
    /// Subscriptions that are behind and hold it.
    holds: u32,
    /// Those that wait until it is given.
    waiting: BTreeSet<BehindKey>,
}

/// Topics that a tail wants. See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct TailWants {
    pub(super) interest: Interest,
    /// Everything is given from now on: there was no room for what was wanted, or somebody has a selection.
    is_everything: bool,
    topics: BTreeMap<TopicHash, Want>,
    /// Number of subscriptions that hold a topic.
    pub(super) holds: usize,
    edit: u32,
    /// Topics that each edit has asked for.
    asked: BTreeMap<u32, Vec<TopicHash>>,
    /// Topics to be asked for at the end of the step.
    adding: Vec<TopicHash>,
    idle: BTreeSet<(Mono, TopicHash)>,
}

impl TailWants {
    /// Whether a topic that no live subscription has is given.
    fn is_given(&self, topic: TopicHash) -> bool {
        let want = self.topics.get(&topic);
        want.is_some_and(|want| want.state != WantState::Asked)
    }

    /// One more subscription holds a topic, which is `state` if it was not wanted.
    fn hold(&mut self, topic: TopicHash, state: WantState) -> &mut Want {
        self.holds += 1;
        let want = self.topics.entry(topic).or_insert(Want {
            state,
            holds: 0,
            waiting: BTreeSet::new(),
        });
        if let WantState::Idle(since) = want.state {
            self.idle.remove(&(since, topic));
            want.state = WantState::Given;
        }
        want.holds += 1;
        want
    }

    /// Forgets a topic that nobody holds if live subscriptions have it, or begins to let go of it.
    fn settle(&mut self, topic: TopicHash, is_live: bool, now: Mono) {
        let is_everything = self.interest == Interest::All;
        let want = self.topics.get_mut(&topic);
        match want {
            Some(want) if want.holds > 0 || want.state == WantState::Asked => {}
            Some(want) if is_live || is_everything => {
                if let WantState::Idle(since) = want.state {
                    self.idle.remove(&(since, topic));
                }
                self.topics.remove(&topic);
            }
            Some(want) => {
                if want.state == WantState::Given {
                    want.state = WantState::Idle(now);
                    self.idle.insert((now, topic));
                }
            }
            None if is_live || is_everything => {}
            None => {
                let state = WantState::Idle(now);
                let (holds, waiting) = (0, BTreeSet::new());
                let want = Want {
                    state,
                    holds,
                    waiting,
                };
                self.topics.insert(topic, want);
                self.idle.insert((now, topic));
            }
        }
    }

    /// Topics that have been idle for long enough; they are wanted no more.
    fn give_up(&mut self, now: Mono) -> Vec<TopicHash> {
        let mut given_up = Vec::new();
        while let Some((since, topic)) = self.idle.first().copied() {
            if since.plus(IDLE) > now {
                break;
            }
            self.idle.pop_first();
            self.topics.remove(&topic);
            given_up.push(topic);
        }
        given_up
    }

    /// Forgets everything: the tail is not needed any more. There may be room when it is needed again.
    pub(super) fn clear(&mut self) {
        self.is_everything = false;
        self.topics.clear();
        self.asked.clear();
        self.adding.clear();
        self.idle.clear();
    }

    /// Whether somebody waits for a topic, which was asked for.
    pub(super) fn waits(&self, topic: TopicHash, key: BehindKey) -> bool {
        let want = self.topics.get(&topic);
        want.is_some_and(|want| want.state == WantState::Asked && want.waiting.contains(&key))
    }

    /// Number of subscriptions that hold topics, by topic.
    pub(super) fn count_holds(&self) -> usize {
        self.topics.values().map(|want| want.holds as usize).sum()
    }
}

impl Gateway {
    /// Whether what a subscription wants is given at its log's tail.
    pub(super) fn is_given(&self, key: BehindKey) -> bool {
        let behind = &self.behind[key];
        let tail = &self.logs[behind.log].tail;
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::LiveBeforeEffective) {
            return true;
        }
        let lane = self.logs.lane(behind.log);
        let is_topic_given = |topic| tail.wants.is_given(topic) || lane.has_live(&self.subs, topic);
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::SelectionOfWanted)
            && behind.scope.topic().is_none()
        {
            return true;
        }
        tail.wants.interest == Interest::All || behind.scope.topic().is_some_and(is_topic_given)
    }

    /// Has the tower give everything of a log's tail from where it stands.
    pub(super) fn want_everything(&mut self, log: LogKey, out: &mut GatewayEffects) {
        let tail = &mut self.logs[log].tail;
        tail.wants.is_everything = true;
        let next = tail.next;
        self.attach(log, next, out);
        self.give_all(log, out);
    }

    /// Lets a subscription wait until what it wants is given.
    pub(super) fn await_want(&mut self, key: BehindKey) {
        let behind = &mut self.behind[key];
        behind.state = BehindState::AwaitingWant;
        let log = behind.log;
        let Some(topic) = behind.scope.topic() else {
            bug!("{behind:?} waits for a topic");
            return;
        };
        let was_held = std::mem::replace(&mut behind.holds_want, true);
        let wants = &mut self.logs[log].tail.wants;
        if !wants.topics.contains_key(&topic) {
            wants.adding.push(topic);
            self.logs.wanting.insert(log);
        }
        let wants = &mut self.logs[log].tail.wants;
        if was_held {
            // It came while the topic was given, which the tower has lost since.
            let want = wants.topics.get_mut(&topic);
            if want.is_none_or(|want| !want.waiting.insert(key)) {
                bug!("{key:?} holds {topic:?}, and is not known there");
            }
        } else {
            let want = wants.hold(topic, WantState::Asked);
            want.waiting.insert(key);
        }
    }

    /// Lets a subscription that waits at the tail hold its topic.
    pub(super) fn hold_want(&mut self, key: BehindKey) {
        let behind = &mut self.behind[key];
        let wants = &mut self.logs[behind.log].tail.wants;
        let Some(topic) = behind.scope.topic() else {
            // Input: a selection, for which everything is given.
            return;
        };
        if wants.interest == Interest::Wanted && !std::mem::replace(&mut behind.holds_want, true) {
            wants.hold(topic, WantState::Given);
        }
    }

    /// Lets a subscription that is behind no more give up its hold on its topic.
    pub(super) fn release_want(&mut self, key: BehindKey) {
        let behind = &mut self.behind[key];
        if !std::mem::take(&mut behind.holds_want) {
            return;
        }
        let (log, scope) = (behind.log, behind.scope);
        let wants = &mut self.logs[log].tail.wants;
        wants.holds -= 1;
        let topic = scope.topic();
        if let Some(want) = topic.and_then(|topic| wants.topics.get_mut(&topic)) {
            want.holds -= 1;
            want.waiting.remove(&key);
        }
        self.settle_want(log, scope);
    }

    /// A subscription has gone live, and with it the hold that it had on its topic.
    pub(super) fn live_now(&mut self, log: LogKey, scope: Scope, held: bool) {
        let wants = &mut self.logs[log].tail.wants;
        wants.holds -= usize::from(held);
        let topic = scope.topic();
        if let Some(want) = topic.and_then(|topic| wants.topics.get_mut(&topic)) {
            want.holds -= u32::from(held);
            self.settle_want(log, scope);
        }
    }

    /// A live subscription has left what it was for, or another has given up its hold on it. For a selection nothing is
    /// settled: as long as somebody is at the tail, everything is given.
    pub(super) fn settle_want(&mut self, log: LogKey, scope: Scope) {
        if let Some(topic) = scope.topic() {
            self.settle_topic(log, topic);
        }
    }

    fn settle_topic(&mut self, log: LogKey, topic: TopicHash) {
        let wants = &self.logs[log].tail.wants;
        if wants.interest == Interest::All && wants.topics.is_empty() {
            return;
        }
        let is_live = self.logs.lane(log).has_live(&self.subs, topic);
        let wants = &mut self.logs[log].tail.wants;
        wants.settle(topic, is_live, self.now.mono);
        if !wants.idle.is_empty() {
            let at = self.now.mono.plus(IDLE);
            self.timers.wants.get_or_insert(at);
        }
    }

    /// Tells the tower what is wanted since the last step.
    pub(super) fn send_wants(&mut self, out: &mut GatewayEffects) {
        for key in std::mem::take(&mut self.logs.wanting) {
            let Some(log) = self.logs.get_mut(key) else {
                // Input: a log that was deleted in the same step.
                continue;
            };
            let wants = &mut log.tail.wants;
            let add = std::mem::take(&mut wants.adding);
            if log.tail.is_attached && !add.is_empty() {
                let edit = tell_wants(log, &add, true, out);
                log.tail.wants.asked.insert(edit, add);
            }
        }
    }

    /// Gives up topics that nobody has needed for a while.
    pub(super) fn give_up_wants(&mut self, out: &mut GatewayEffects) {
        let now = self.now.mono;
        let mut next: Option<Mono> = None;
        for key in self.logs.keys().collect::<Vec<_>>() {
            let log = &mut self.logs[key];
            let wants = &mut log.tail.wants;
            let drop = wants.give_up(now);
            let first = wants.idle.first().map(|(since, _)| since.plus(IDLE));
            next = next.into_iter().chain(first).min();
            if drop.is_empty() {
                continue;
            }
            #[cfg(feature = "sabotage")]
            if self.config.bug == Some(crate::sabotage::Bug::WantedUntilDropped) {
                for topic in &drop {
                    wants.settle(*topic, false, now);
                }
            }
            tell_wants(log, &drop, false, out);
        }
        self.timers.wants = next;
    }

    /// The part of a log that the tower is to give, to which the gateway attaches.
    pub(super) fn interest(&self, log: LogKey) -> Interest {
        if self.logs[log].tail.wants.is_everything {
            Interest::All
        } else {
            self.config.interest
        }
    }

    /// Says everything that is wanted of a log: the tower knows nothing of it.
    pub(super) fn want_all(&mut self, key: LogKey, out: &mut GatewayEffects) {
        let log = &mut self.logs[key];
        let wants = &mut log.tail.wants;
        wants.asked.clear();
        wants.adding.clear();
        wants.idle.clear();
        wants.topics.retain(|_, want| want.holds > 0);
        if wants.interest == Interest::All {
            return;
        }
        let held: Vec<TopicHash> = wants.topics.keys().copied().collect();
        for want in wants.topics.values_mut() {
            want.state = WantState::Asked;
        }
        let mut all = self.logs.lane(key).live_topics(&self.subs);
        all.extend(&held);
        all.sort_unstable();
        all.dedup();
        let log = &mut self.logs[key];
        let edit = tell_wants(log, &all, true, out);
        if !held.is_empty() {
            log.tail.wants.asked.insert(edit, held);
        }
    }

    /// The tower gives what an edit has asked for, from here on; or has no room for it.
    pub(super) fn want_effective(
        &mut self,
        log: LogId,
        generation: u64,
        edit: u32,
        at: Option<Sequence>,
        out: &mut GatewayEffects,
    ) {
        let Some(key) = self.find_attached(log, generation) else {
            // Input: what the tower had sent before it was told of another attachment, or of none.
            return;
        };
        let next = self.logs[key].tail.next;
        if at.is_none() {
            self.want_everything(key, out);
            return self.rest_tail(key, out);
        }
        if at.is_some_and(|at| at > next) {
            // What lies between was lost on the way: it is asked for anew.
            return self.attach(key, next, out);
        }
        let wants = &mut self.logs[key].tail.wants;
        let later = wants.asked.split_off(&(edit.saturating_add(1)));
        let asked = std::mem::replace(&mut wants.asked, later);
        for topic in asked.into_values().flatten() {
            self.given_now(key, topic, out);
        }
        self.rest_tail(key, out);
    }

    /// The tower has forgotten what is wanted of a log.
    pub(super) fn wants_lost(&mut self, log: LogId, generation: u64, out: &mut GatewayEffects) {
        if let Some(key) = self.find_attached(log, generation) {
            self.want_all(key, out);
        }
    }

    /// Everything is given: nobody waits any more.
    fn give_all(&mut self, key: LogKey, out: &mut GatewayEffects) {
        let topics = self.logs[key].tail.wants.topics.keys();
        for topic in topics.copied().collect::<Vec<_>>() {
            self.given_now(key, topic, out);
        }
    }

    /// A topic is given from where the tail stands: those who wait for it go on.
    fn given_now(&mut self, key: LogKey, topic: TopicHash, out: &mut GatewayEffects) {
        let wants = &mut self.logs[key].tail.wants;
        let Some(want) = wants.topics.get_mut(&topic) else {
            // Input: nobody needed it any more when what is wanted was said anew.
            return;
        };
        want.state = WantState::Given;
        let waiting = std::mem::take(&mut want.waiting);
        self.settle_topic(key, topic);
        for one in waiting {
            self.behind[one].state = BehindState::Moving;
            self.go_on_at_tail(one, out);
        }
    }

    fn find_attached(&self, log: LogId, generation: u64) -> Option<LogKey> {
        let key = self.logs.find(log)?;
        let tail = &self.logs[key].tail;
        (tail.is_attached && tail.generation == generation).then_some(key)
    }
}

/// Tells the tower that topics are wanted, or are no more, in edits that take effect together; the last one.
fn tell_wants(
    log: &mut GatewayLog,
    topics: &[TopicHash],
    is_wanted: bool,
    out: &mut GatewayEffects,
) -> u32 {
    let wants = &mut log.tail.wants;
    let mut chunks = topics.chunks(EDIT_TOPICS).peekable();
    while let Some(chunk) = chunks.next() {
        wants.edit += 1;
        let mut topics = Box::new(WantEdit {
            more: chunks.peek().is_some(),
            ..WantEdit::default()
        });
        let list = if is_wanted {
            &mut topics.add
        } else {
            &mut topics.drop
        };
        list.extend_from_slice(chunk);
        out.tell(ToTower::Want {
            log: log.id,
            generation: log.tail.generation,
            edit: wants.edit,
            topics,
        });
    }
    wants.edit
}
