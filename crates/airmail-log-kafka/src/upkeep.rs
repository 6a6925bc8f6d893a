//! Upkeep: the brokers' topics are set as log 0 says, and those that it will never name are removed.
//!
//! From time to time the owner says what log 0 names ([`Call::Keep`](airmail_log::Call::Keep)). Then the topics are listed,
//! and looked at one after the other: one thing is asked at a time, so that upkeep is in nobody's way.
//!
//! *Whoever does this may be behind in log 0*, for hours even: an isolated leader goes on to answer a node that is on its
//! side. So nothing is done that a later command could make wrong. A setting is only changed to what keeps at
//! least as much; a retention that is longer than it has to be is left so until its log is opened anew. A topic is removed if
//! its namespace is gone, or has a map of the topic's epoch or a later one, and that map has other topics: ids and epochs
//! are never given twice. One whose id or epoch nobody has yet may belong to a command under way, and is left until
//! somebody else has it. The maps of other storages are looked at, too: one may have the same prefix.

use crate::brokers::{Answer, Brokers, Described, Order, Settings, Topic};
use crate::config::KafkaConfig;
use crate::layout::{MapTopics, log_settings, meta_topic, state_settings, state_topic};
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, Kept, Refusal, Tag};
use airmail_model::{Lane, LogId, MapEpoch, NamespaceId, Retention, bug};
use std::collections::{BTreeMap, VecDeque};

/// Settings of which more keeps more.
const LEAST: [&str; 4] = [
    "min.insync.replicas",
    "max.message.bytes",
    "retention.ms",
    "retention.bytes",
];

/// Something to be done to a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    /// List all.
    List,
    /// Compare its settings with these.
    Compare(Topic, Settings),
    Alter(Topic, Settings),
    Delete(Topic),
}

/// Upkeep under way.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// The call that it answers.
    t: Option<Tag>,
    kept: Kept,
    /// Topics that log 0 names; how they are to be set, unless they are to go or another storage's.
    named: BTreeMap<Topic, Option<Settings>>,
    queue: VecDeque<Task>,
    under_way: Option<Task>,
}

impl<B: Brokers> KafkaStorage<B> {
    /// Begins upkeep, with all that log 0 names.
    pub(crate) fn keep(&mut self, t: Tag, kept: Kept) {
        if !self.start.is_over() || self.work.upkeep.t.is_some() || self.work.is_closing {
            return self.refuse(t, KafkaStorage::<B>::busy());
        }
        let mut named = BTreeMap::new();
        for map in &kept.maps {
            if map.origin.provisions.is_none() {
                continue;
            }
            let Some(topics) = MapTopics::decode(&map.origin.provisions) else {
                // Input: provisions of another version of this storage. Nobody knows what it names.
                let why = Refusal::Unsupported("upkeep beside these provisions".into());
                return self.refuse(t, why);
            };
            let own = map.retention.filter(|_| map.origin.storage == kept.storage);
            let settings = own.map(|retention| log_settings(&self.config, &retention));
            let log = LogId {
                namespace: map.namespace,
                ..LogId::default()
            };
            for name in topics.names(&self.config, log) {
                named.insert(name, settings.clone());
            }
        }
        if !self.config.is_further {
            let for_ever = log_settings(&self.config, &Retention::default());
            named.insert(meta_topic(&self.config), Some(for_ever));
        }
        named.insert(
            state_topic(&self.config),
            Some(state_settings(&self.config)),
        );
        self.work.upkeep = Upkeep {
            t: Some(t),
            kept,
            named,
            queue: VecDeque::from([Task::List]),
            under_way: None,
        };
        self.go_on_keeping();
    }

    /// Begins the next task; the call is answered after the last.
    fn go_on_keeping(&mut self) {
        let upkeep = &mut self.work.upkeep;
        let Some(task) = upkeep.queue.pop_front() else {
            let upkeep = std::mem::take(upkeep);
            match upkeep.t {
                Some(t) => self.out.push(Completion::Done { t }),
                None => bug!("upkeep that nobody has asked for has ended"),
            }
            return;
        };
        upkeep.under_way = Some(task.clone());
        let order = match task {
            Task::List => Order::List {
                prefix: format!("{}.", self.config.prefix),
            },
            Task::Compare(topic, _) => Order::Describe { topic },
            Task::Alter(topic, settings) => Order::Alter { topic, settings },
            Task::Delete(topic) => Order::Delete { topic },
        };
        self.order(Purpose::Upkeep, order);
    }

    pub(crate) fn upkeep_answered(&mut self, answer: Answer) {
        match (self.work.upkeep.under_way.take(), answer) {
            (Some(Task::List), Answer::Topics(topics)) => self.topics_to_keep(topics),
            (Some(Task::Compare(topic, wanted)), Answer::Described(found)) => {
                let settings = otherwise(&wanted, &found);
                if !settings.is_empty() {
                    let alter = Task::Alter(topic, settings);
                    self.work.upkeep.queue.push_front(alter);
                }
            }
            // What could not be asked or done is looked at the next time.
            _ => {}
        }
        self.go_on_keeping();
    }

    /// The topics of the prefix are known.
    fn topics_to_keep(&mut self, topics: Vec<Topic>) {
        let upkeep = &mut self.work.upkeep;
        for topic in topics {
            let task = match upkeep.named.get(&topic) {
                Some(Some(settings)) => Task::Compare(topic, settings.clone()),
                None if is_past(&upkeep.kept, &self.config, &topic) => Task::Delete(topic),
                Some(None) | None => continue,
            };
            upkeep.queue.push_back(task);
        }
    }
}

/// Settings that are not as they have to be, as they have to be: those that keep too little, or otherwise.
fn otherwise(wanted: &Settings, found: &Described) -> Settings {
    let is_otherwise = |name: &str, wanted: &str| {
        let found = found.settings.get(name).map_or("", String::as_str);
        let is_least = LEAST.contains(&name);
        // -1 is without bound.
        let amount = |text: &str| {
            text.parse::<i64>()
                .map(|n| u64::try_from(n).unwrap_or(u64::MAX))
        };
        match (amount(found), amount(wanted)) {
            (Ok(found), Ok(least)) if is_least => found < least,
            _ => found != wanted,
        }
    };
    let otherwise = wanted
        .iter()
        .filter(|(name, value)| is_otherwise(name, value));
    otherwise
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether no command that is still to come can name a topic that `kept` does not name.
fn is_past(kept: &Kept, config: &KafkaConfig, topic: &Topic) -> bool {
    let Some((namespace, epoch)) = place_of(config, topic) else {
        // Input: a topic that belongs to the whole cluster, or to somebody else.
        return false;
    };
    #[cfg(feature = "sabotage")]
    if config.has_bug(crate::sabotage::Bug::UnheardRemoved) {
        return true;
    }
    match kept.present.get(&namespace) {
        Some(present) => epoch <= *present,
        None => namespace <= kept.last,
    }
}

/// Namespace and epoch of a topic of logs, as this storage names it: `<prefix>.<namespace>.<lane>.<epoch>.<nonce>`.
fn place_of(config: &KafkaConfig, topic: &Topic) -> Option<(NamespaceId, MapEpoch)> {
    let rest = topic.as_str().strip_prefix(&config.prefix)?;
    let parts: Vec<&str> = rest.strip_prefix('.')?.split('.').collect();
    let [namespace, lane, epoch, nonce] = parts[..] else {
        // Input: a name of another form.
        return None;
    };
    let is_nonce = nonce.len() == 16 && u64::from_str_radix(nonce, 16).is_ok();
    let place = (
        NamespaceId(namespace.parse().ok()?),
        MapEpoch(epoch.parse().ok()?),
    );
    (Lane::of_name(lane).is_some() && is_nonce).then_some(place)
}
