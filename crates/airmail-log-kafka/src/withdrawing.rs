//! Withdrawing: topics that were made for a namespace which will never be are deleted, in both lanes.
//!
//! Only whoever made them knows that no command names them. Those of one who has stopped in between are removed by upkeep,
//! and so are those that could not be deleted now.

use crate::brokers::{Answer, Brokers, Failure, Order};
use crate::layout::MapTopics;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, Origin, Refusal, Tag};
use airmail_model::{Holder, LogId};

/// A withdrawal under way.
#[derive(Debug)]
pub(crate) struct Withdrawing {
    /// Answers that are still to come.
    left: usize,
    failure: Option<Refusal>,
}

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn withdraw(&mut self, t: Tag, log: LogId, logs: u16, origin: &Origin) {
        if !origin.storage.is_first() {
            return self.refuse(t, Refusal::Elsewhere(Holder::default()));
        }
        let topics = MapTopics::decode(&origin.provisions);
        let Some(topics) = topics.filter(|of| (of.first, of.logs) == (log.index, logs)) else {
            // Input: provisions of another storage, or for other logs.
            return self.refuse(t, Refusal::Unsupported("these provisions".into()));
        };
        let names = topics.names(&self.config, log);
        let mut open = self.logs.values().map(|log| &log.partition.topic);
        if let Some(topic) = open.find(|topic| names.contains(topic)) {
            let why = format!("topic {topic} has logs that are open");
            return self.refuse(t, Refusal::Io(why));
        }
        let withdrawing = Withdrawing {
            left: names.len(),
            failure: None,
        };
        self.work.provisionings.withdrawals.insert(t, withdrawing);
        for topic in names {
            self.order(Purpose::Withdraw(t), Order::Delete { topic });
        }
    }

    pub(crate) fn withdrawal_answered(&mut self, t: Tag, answer: Answer) {
        let Some(of) = self.work.provisionings.withdrawals.get_mut(&t) else {
            // Input: an answer to what was given up.
            return;
        };
        let failure = match answer {
            Answer::Done | Answer::Failed(Failure::NoTopic) => None,
            Answer::Failed(Failure::TimedOut) => Some(KafkaStorage::<B>::busy()),
            other => Some(Refusal::Io(format!("topics cannot be deleted: {other:?}"))),
        };
        of.failure = of.failure.take().or(failure);
        of.left = of.left.saturating_sub(1);
        if of.left > 0 {
            return;
        }
        match self
            .work
            .provisionings
            .withdrawals
            .remove(&t)
            .and_then(|of| of.failure)
        {
            Some(why) => self.refuse(t, why),
            None => self.out.push(Completion::Done { t }),
        }
    }
}
