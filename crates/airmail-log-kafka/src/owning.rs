//! The owner of a prefix, where log 0 is in another storage: the cluster that has used it first.
//!
//! A topic whose name has the cluster's number says it. It is made only where no topic of the prefix is there, and who has
//! made it looks once more: of two who begin at the same time each sees the other, or at least the later one the
//! earlier. Whoever sees another gives way, so that a prefix never has two owners; both may have to come again.

use crate::brokers::{Brokers, Order, Topic};
use crate::layout::{meta_topic, owner_prefix, owner_topic, state_settings, state_topic};
use crate::start::Step;
use crate::storage::{KafkaStorage, Purpose};

impl<B: Brokers> KafkaStorage<B> {
    /// The topics of the prefix are known: they are this cluster's, or it makes the prefix its own, or it keeps away.
    pub(crate) fn owners_told(&mut self, topics: &[Topic]) -> Step {
        let own = owner_topic(&self.config);
        let is_owned = topics.contains(&own);
        let prefix = owner_prefix(&self.config);
        let mut others = topics.iter().filter(|topic| **topic != own);
        let other = others.find(|topic| topic.as_str().starts_with(&prefix));
        if let Some(other) = other {
            // Only what this start has made is taken back.
            if is_owned && self.start.is_making_owner_known() {
                return self.disown(other);
            }
            return self.not_ours(other);
        }
        let meta = meta_topic(&self.config);
        if topics.contains(&meta) || !is_owned && !topics.is_empty() {
            let first = topics.first().filter(|_| !topics.contains(&meta));
            return self.not_ours(first.unwrap_or(&meta));
        }
        if !is_owned {
            return self.make_owner();
        }
        if topics.contains(&state_topic(&self.config)) {
            self.ask_rows()
        } else {
            self.make_state()
        }
    }

    fn make_owner(&mut self) -> Step {
        let create = Order::Create {
            topic: owner_topic(&self.config),
            partitions: 1,
            replicas: self.config.replicas,
            settings: state_settings(&self.config),
        };
        self.order(Purpose::Start, create);
        Step::MakeOwner
    }

    /// Looks who else has made the prefix its own.
    pub(crate) fn list_owners(&mut self) -> Step {
        self.list(Step::ListOwners)
    }

    fn disown(&mut self, other: &Topic) -> Step {
        let topic = owner_topic(&self.config);
        self.order(Purpose::Start, Order::Delete { topic });
        Step::DisownFor(other.clone())
    }

    /// The prefix is another's, as this topic says.
    pub(crate) fn not_ours(&self, other: &Topic) -> Step {
        let (prefix, cluster) = (&self.config.prefix, self.config.cluster);
        Step::Failed(format!(
            "prefix {prefix} is not of cluster {cluster:016x}, as topic {other} says: another prefix is needed"
        ))
    }
}
