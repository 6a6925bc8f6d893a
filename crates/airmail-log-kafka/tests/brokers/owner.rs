//! The owner of brokers, as the storage would be: hands over, and polls until what it waits for is told.

use airmail_log_kafka::brokers::{
    Answer, Brokers as _, ConsumerId, NewRecord, Order, Partition, Produced, Question, Record,
    Settings, Slot, Taken, Token, Told, Topic, Unstored,
};
use airmail_log_kafka::place::Offset;
use airmail_log_kafka::shell::{KafkaSettings, LibrdkafkaBrokers};
use airmail_model::Now;
use airmail_testkit::kafka::KafkaCluster;
use airmail_testkit::waiting;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;

/// Time between looks, where nobody wakes.
const LOOK: Duration = Duration::from_millis(5);

/// Settings of every topic here; several brokers would want more replicas by default.
pub(crate) fn settings(more: &[(&str, &str)]) -> Settings {
    let own = [
        ("message.timestamp.type", "LogAppendTime"),
        ("min.insync.replicas", "1"),
    ];
    let all = own.iter().chain(more);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Brokers, and what they have told that nobody has asked for yet.
pub(crate) struct Owner {
    pub(crate) brokers: LibrdkafkaBrokers,
    told: Vec<Told>,
    given: u64,
    /// Consumers that have something to take.
    readable: BTreeSet<ConsumerId>,
}

impl Owner {
    pub(crate) fn of(cluster: &KafkaCluster) -> Owner {
        Owner::with(KafkaSettings::new(&cluster.bootstrap()))
    }

    pub(crate) fn with(settings: KafkaSettings) -> Owner {
        let me: Thread = thread::current();
        let brokers = LibrdkafkaBrokers::open(settings, Arc::new(move || me.unpark())).unwrap();
        Owner {
            brokers,
            told: Vec::new(),
            given: 0,
            readable: BTreeSet::new(),
        }
    }

    pub(crate) fn token(&mut self) -> Token {
        self.given += 1;
        Token(self.given)
    }

    pub(crate) fn poll(&mut self) {
        let mut told = Vec::new();
        self.brokers.poll(Now::default(), &mut told);
        for one in told {
            match one {
                Told::Readable { consumer } => _ = self.readable.insert(consumer),
                other => self.told.push(other),
            }
        }
    }

    /// Polls until something is told that `wanted` finds.
    #[track_caller]
    pub(crate) fn until<T>(&mut self, what: &str, wanted: impl Fn(&Told) -> Option<T>) -> T {
        let mut found = None;
        waiting::until(what, LOOK, || {
            self.poll();
            let at = self.told.iter().position(|told| wanted(told).is_some());
            found = at.and_then(|at| wanted(&self.told.remove(at)));
            found.is_some().then_some(()).ok_or("nothing".to_owned())
        });
        found.unwrap()
    }

    /// All that was told and that nobody has asked for.
    pub(crate) fn rest(&mut self) -> Vec<Told> {
        self.poll();
        std::mem::take(&mut self.told)
    }

    #[track_caller]
    pub(crate) fn produced(&mut self, token: Token) -> Result<Produced, Unstored> {
        self.until("a record's report", |told| match told {
            Told::Produced { token: of, result } if *of == token => Some(result.clone()),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, token: Token) -> Answer {
        self.until("an answer", |told| match told {
            Told::Answered { token: of, answer } if *of == token => Some(answer.clone()),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn order(&mut self, order: Order) -> Answer {
        let token = self.token();
        self.brokers.order(token, order);
        self.answer(token)
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, partition: &Partition, question: Question) -> Answer {
        let token = self.token();
        self.brokers.ask(token, partition, question);
        self.answer(token)
    }

    /// Asks until there is an answer: on a busy machine one may not come in half a second.
    #[track_caller]
    pub(crate) fn ask_patiently(&mut self, partition: &Partition, question: Question) -> Answer {
        let mut answer = Answer::Done;
        waiting::until("a question is answered", Duration::from_millis(100), || {
            answer = self.ask(partition, question);
            match &answer {
                Answer::Failed(why) => Err(format!("{why:?}")),
                _ => Ok(()),
            }
        });
        answer
    }

    /// Makes a topic, as soon as there are brokers enough.
    #[track_caller]
    pub(crate) fn make(&mut self, name: &str, partitions: u16, replicas: u8) -> Topic {
        self.make_with(name, (partitions, replicas), &[])
    }

    /// The same with settings.
    #[track_caller]
    pub(crate) fn make_with(
        &mut self,
        name: &str,
        (partitions, replicas): (u16, u8),
        with: &[(&str, &str)],
    ) -> Topic {
        let topic = Topic::new(name);
        waiting::until("a topic is made", Duration::from_millis(100), || {
            let made = self.order(Order::Create {
                topic: topic.clone(),
                partitions,
                replicas,
                settings: settings(with),
            });
            (made == Answer::Done)
                .then_some(())
                .ok_or(format!("{made:?}"))
        });
        topic
    }

    /// Hands a record over that is taken.
    #[track_caller]
    pub(crate) fn produce(&mut self, partition: &Partition, value: &str) -> Token {
        let token = self.token();
        let taken = self.brokers.produce(token, partition, record(value));
        assert_eq!(taken, Ok(()));
        token
    }

    /// Stores a record.
    #[track_caller]
    pub(crate) fn store(&mut self, partition: &Partition, value: &str) -> Produced {
        let token = self.produce(partition, value);
        self.produced(token).unwrap()
    }

    pub(crate) fn consume(&mut self, slot: u8, partition: &Partition, from: Offset) -> ConsumerId {
        let consumer = ConsumerId(self.token().0);
        self.brokers.consume(consumer, Slot(slot), partition, from);
        consumer
    }

    /// Takes once, if there was something to take.
    pub(crate) fn take(&mut self, consumer: ConsumerId, bytes_max: u64) -> Vec<Taken> {
        self.poll();
        let mut taken = Vec::new();
        if self.readable.remove(&consumer) {
            self.brokers.take(consumer, bytes_max, &mut taken);
        }
        taken
    }

    /// Takes until the end is told at `end` or behind it, and whatever else came with that.
    #[track_caller]
    pub(crate) fn take_until(&mut self, consumer: ConsumerId, end: Offset) -> Vec<Taken> {
        let mut all = Vec::new();
        waiting::until("the end of a partition", LOOK, || {
            all.extend(self.take(consumer, u64::MAX));
            match all.last() {
                Some(Taken::End { next }) if *next >= end => Ok(()),
                last => Err(format!("{} taken, the last: {last:?}", all.len())),
            }
        });
        all
    }
}

/// A record as the storage makes them.
pub(crate) fn record(value: &str) -> NewRecord {
    NewRecord {
        key: None,
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        sent_ms: 1_700_000_000_123,
    }
}

/// The records among what was taken.
pub(crate) fn records(taken: &[Taken]) -> Vec<&Record> {
    taken
        .iter()
        .filter_map(|one| match one {
            Taken::Record(record) => Some(record),
            Taken::End { .. } => None,
        })
        .collect()
}

/// Offsets and contents of the records among what was taken.
pub(crate) fn values(taken: &[Taken]) -> Vec<(Offset, String)> {
    let text = |record: &Record| {
        let value = record.value.clone().unwrap_or_default();
        String::from_utf8(value.to_vec()).unwrap()
    };
    let records = records(taken).into_iter();
    records
        .map(|record| (record.offset, text(record)))
        .collect()
}
