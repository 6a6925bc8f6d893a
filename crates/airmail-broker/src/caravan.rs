//! Caravans: late subscribers who share a reader of the storage.
//!
//! There are few readers, so they move like elevators: each picks up those who stand a little
//! ahead of it in its log, drops whoever cannot take more, and after its quantum makes place for
//! those who have waited longest. A caravan of one topic reads by the storage's topic index; one of several
//! topics reads everything and deals it out.

use crate::keys::{CaravanKey, LateKey, LogKey};
use airmail_log::ReaderId;
use airmail_model::{AppendTime, Sequence, TopicHash};
use slab::Slab;
use std::collections::BTreeSet;

/// A reader and those aboard.
#[derive(Debug)]
pub(crate) struct Caravan {
    pub(crate) log: LogKey,
    pub(crate) reader: ReaderId,
    /// The first number that the reader has not given.
    pub(crate) position: Sequence,
    /// The only topic that the reader gives. `None`: all.
    pub(crate) topic: Option<TopicHash>,
    /// Those aboard.
    pub(crate) members: BTreeSet<(TopicHash, LateKey)>,
    /// Those aboard who have an end.
    pub(crate) ends: BTreeSet<(Sequence, LateKey)>,
    /// Those aboard who have an end in time.
    pub(crate) times: BTreeSet<(AppendTime, LateKey)>,
    /// Bytes that the reader may still give.
    pub(crate) granted: i64,
    /// Bytes that it has given since it began or last had its turn.
    pub(crate) used: u64,
}

impl Caravan {
    /// Those aboard for a topic, in order of key.
    pub(crate) fn aboard(&self, topic: TopicHash) -> impl Iterator<Item = LateKey> + '_ {
        let stretch = (topic, LateKey::MIN)..=(topic, LateKey::MAX);
        self.members.range(stretch).map(|(_, late)| *late)
    }

    /// Whether everyone aboard wants the same topic.
    pub(crate) fn of_one_topic(&self) -> Option<TopicHash> {
        let (first, _) = self.members.first()?;
        let (last, _) = self.members.last()?;
        (first == last).then_some(*first)
    }
}

/// The caravans under way: at most as many as the settings say.
#[derive(Debug, Default)]
pub(crate) struct Caravans(Slab<Caravan>);

impl Caravans {
    /// Puts one in.
    pub(crate) fn insert(&mut self, caravan: Caravan) -> CaravanKey {
        CaravanKey::new(self.0.insert(caravan))
    }

    /// Takes one out; nobody is aboard.
    pub(crate) fn remove(&mut self, key: CaravanKey) -> Caravan {
        self.0.remove(key.place())
    }

    /// The caravan, if it is still under way.
    pub(crate) fn get(&self, key: CaravanKey) -> Option<&Caravan> {
        self.0.get(key.place())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Each, in order of key.
    pub(crate) fn keys(&self) -> Vec<CaravanKey> {
        self.0
            .iter()
            .map(|(place, _)| CaravanKey::new(place))
            .collect()
    }
}

impl std::ops::Index<CaravanKey> for Caravans {
    type Output = Caravan;

    fn index(&self, key: CaravanKey) -> &Caravan {
        &self.0[key.place()]
    }
}

impl std::ops::IndexMut<CaravanKey> for Caravans {
    fn index_mut(&mut self, key: CaravanKey) -> &mut Caravan {
        &mut self.0[key.place()]
    }
}
