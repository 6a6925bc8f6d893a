//! The start: what the cluster's own topics say, before any log is opened.
//!
//! Brokers before 4.0 are refused: there a record may be visible that too few replicas have. A cluster without any topic
//! of the prefix is new: only then the topic of log 0 is made, for one that is missing later has been lost, and whoever
//! made it again would begin another history under the same names. Then the rows and the statements about logs are read
//! to their end, and followed from there on.
//!
//! Where log 0 is in another storage, the prefix gets an owner when it is first used, by a topic whose name has the
//! cluster's number ([`owning`](crate::owning)): another cluster's logs would be told apart from its own by nothing.

use crate::brokers::{
    Answer, Brokers, ConsumerId, Failure, Order, Partition, Question, Slot, Taken, Topic,
};
use crate::config::KafkaConfig;
use crate::layout::{log_settings, meta_topic, state_settings, state_topic};
use crate::place::Offset;
use crate::rows::Row;
use crate::statements::{StatementKey, Statements};
use crate::storage::{KafkaStorage, Purpose};
use airmail_model::{Mono, Retention};
use std::time::Duration;

/// The oldest brokers that will do, by their major version.
const BROKERS_MIN: u8 = 4;
/// Time after which a start that found nobody is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Bytes of rows that are taken at a time.
const TAKE_BYTES: u64 = 1 << 20;

/// Answer that the start waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// To be begun, at this time or later.
    #[default]
    Due,
    Version,
    List,
    /// The prefix gets an owner.
    MakeOwner,
    /// Whether another cluster has done the same at the same time.
    ListOwners,
    /// The prefix is another cluster's: the topic that says that it is this one's is taken back.
    DisownFor(Topic),
    MakeMeta,
    MakeState,
    Bounds,
    Rows,
    Over,
    Failed(String),
}

/// State of the start, and the consumer of the rows.
#[derive(Debug, Default)]
pub(crate) struct Start {
    step: Step,
    begin_at: Mono,
    rows: Option<ConsumerId>,
    /// The offset before which all rows were read.
    next: Offset,
    is_readable: bool,
}

impl Start {
    pub(crate) fn is_making_owner_known(&self) -> bool {
        self.step == Step::ListOwners
    }

    pub(crate) fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// Reason for which it will not come to an end.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.step {
            Step::Failed(why) => Some(why),
            _ => None,
        }
    }

    /// The offset before which all rows were read.
    pub(crate) fn next(&self) -> Offset {
        self.next
    }

    pub(crate) fn deadline(&self) -> Option<Mono> {
        (self.step == Step::Due).then_some(self.begin_at)
    }

    pub(crate) fn is_consumer(&self, consumer: ConsumerId) -> bool {
        self.rows == Some(consumer)
    }

    pub(crate) fn readable(&mut self) {
        self.is_readable = true;
    }

    fn again(&mut self, now: Mono) {
        self.step = Step::Due;
        self.begin_at = now.plus(RETRY);
        self.is_readable = false;
    }
}

/// The partition of the rows.
pub(crate) fn state_partition(config: &KafkaConfig) -> Partition {
    Partition::new(&state_topic(config), 0)
}

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn go_on_starting(&mut self) {
        if self.start.step == Step::Due && self.now.mono >= self.start.begin_at {
            self.start.step = Step::Version;
            self.order(Purpose::Start, Order::Version);
        }
        if self.start.is_readable {
            self.take_rows();
        }
    }

    pub(crate) fn start_answered(&mut self, answer: &Answer) {
        let step = match (&self.start.step, answer) {
            (Step::Version, Answer::Version { major }) if *major < BROKERS_MIN => {
                let found =
                    format!("brokers are of version {major}, at least {BROKERS_MIN}.0 is needed");
                Step::Failed(found)
            }
            (Step::Version, Answer::Version { .. }) => self.list(Step::List),
            (Step::List | Step::ListOwners, Answer::Topics(topics)) if self.config.is_further => {
                self.owners_told(topics)
            }
            (Step::MakeOwner, Answer::Done | Answer::Failed(Failure::Exists)) => self.list_owners(),
            (Step::DisownFor(owner), Answer::Done | Answer::Failed(Failure::NoTopic)) => {
                self.not_ours(owner)
            }
            (Step::List, Answer::Topics(topics)) if topics.is_empty() => self.make_meta(),
            (Step::List, Answer::Topics(topics)) if topics.contains(&state_topic(&self.config)) => {
                self.ask_rows()
            }
            (Step::List, Answer::Topics(_))
            | (Step::MakeMeta, Answer::Done | Answer::Failed(Failure::Exists)) => self.make_state(),
            (Step::MakeState, Answer::Done | Answer::Failed(Failure::Exists)) => self.ask_rows(),
            (Step::Bounds, Answer::Watermarks { low, .. }) => self.follow_rows(*low),
            _ => return self.start.again(self.now.mono),
        };
        self.start.step = step;
    }

    /// Asks which topics of the prefix there are.
    pub(crate) fn list(&mut self, step: Step) -> Step {
        let prefix = format!("{}.", self.config.prefix);
        self.order(Purpose::Start, Order::List { prefix });
        step
    }

    fn make_meta(&mut self) -> Step {
        let create = Order::Create {
            topic: meta_topic(&self.config),
            partitions: 1,
            replicas: self.config.replicas,
            settings: log_settings(&self.config, &Retention::default()),
        };
        self.order(Purpose::Start, create);
        Step::MakeMeta
    }

    pub(crate) fn make_state(&mut self) -> Step {
        let create = Order::Create {
            topic: state_topic(&self.config),
            partitions: 1,
            replicas: self.config.replicas,
            settings: state_settings(&self.config),
        };
        self.order(Purpose::Start, create);
        Step::MakeState
    }

    pub(crate) fn ask_rows(&mut self) -> Step {
        let partition = state_partition(&self.config);
        self.ask(Purpose::Start, &partition, Question::Watermarks);
        Step::Bounds
    }

    fn follow_rows(&mut self, low: Offset) -> Step {
        let consumer = ConsumerId(self.id());
        if let Some(before) = self.start.rows.replace(consumer) {
            self.brokers.stop(before);
        }
        let partition = state_partition(&self.config);
        self.brokers.consume(consumer, Slot::TAIL, &partition, low);
        // What was removed while nobody read is not there.
        self.work.stating.statements = Statements::default();
        self.start.next = low;
        Step::Rows
    }

    /// The rows' consumer has nothing more to give: it is begun again.
    pub(crate) fn rows_ended(&mut self) {
        if let Some(consumer) = self.start.rows.take() {
            self.brokers.stop(consumer);
        }
        self.start.again(self.now.mono);
    }

    fn take_rows(&mut self) {
        let Some(consumer) = self.start.rows else {
            // Input: a consumer that was stopped meanwhile.
            return;
        };
        let mut taken = Vec::new();
        while self.brokers.take(consumer, TAKE_BYTES, &mut taken) {}
        self.start.is_readable = false;
        for taken in taken {
            match taken {
                Taken::Record(record) => {
                    let key = record.key.as_deref().unwrap_or_default();
                    let value = record.value.as_deref().unwrap_or_default();
                    if let Some(row) = Row::read(key, value) {
                        self.rows.take(row);
                        self.live_on(row.log);
                    } else if let Some(key) = StatementKey::decode(key) {
                        self.take_statement(&key, record.value.as_ref());
                    }
                    self.start.next = record.offset.plus(1);
                }
                Taken::End { next } => {
                    self.start.next = self.start.next.max(next);
                    if !self.start.is_over() {
                        self.start.step = Step::Over;
                        self.remove_gone();
                    }
                }
            }
        }
    }
}
