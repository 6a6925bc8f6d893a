//! The storage on real brokers: a start goes on from a statement.

use crate::owner::Owner;
use airmail_log::conformance::{EPOCH, Maker, log, spec};
use airmail_log::{Call, Completion, LogSpec, LogStorage as _, ReaderId, Refusal, Scope, Tag};
use airmail_log_kafka::shell::LibrdkafkaBrokers;
use airmail_log_kafka::{KafkaConfig, KafkaStorage};
use airmail_model::{Mono, Now, Provisions, Sequence, Wall};
use airmail_testkit::kafka::KafkaCluster;
use airmail_testkit::waiting;
use std::time::{Duration, Instant, SystemTime};

const LOOK: Duration = Duration::from_millis(5);

/// A storage, and what it has completed.
struct Node {
    storage: KafkaStorage<LibrdkafkaBrokers>,
    begun: Instant,
    out: Vec<Completion>,
    last: u64,
}

impl Node {
    #[expect(clippy::disallowed_methods, reason = "real brokers have real time")]
    fn new(cluster: &KafkaCluster) -> Node {
        let config = KafkaConfig {
            prefix: "starting".to_owned(),
            replicas: 1,
            min_insync: 1,
            ..KafkaConfig::default()
        };
        Node {
            storage: KafkaStorage::new(config, Owner::of(cluster).brokers),
            begun: Instant::now(),
            out: Vec::new(),
            last: 0,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "real brokers have real time")]
    fn poll(&mut self) {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = Now {
            mono: Mono(1).plus(self.begun.elapsed()),
            wall: Wall(i64::try_from(wall.unwrap().as_micros()).unwrap()),
        };
        self.storage.poll(now, &mut self.out);
    }

    fn until(&mut self, what: &str, is_it: impl Fn(&Completion) -> bool) -> Completion {
        let mut found = None;
        waiting::until(what, LOOK, || {
            self.poll();
            let at = self.out.iter().position(&is_it);
            found = at.map(|at| self.out.remove(at));
            found.as_ref().map(|_| ()).ok_or(format!("{:?}", self.out))
        });
        found.unwrap()
    }

    /// Asks until the answer is another one than that it may be asked again.
    fn ask(&mut self, what: &str, call: impl Fn(Tag) -> Call) -> Completion {
        loop {
            self.last += 1;
            let tag = Tag(self.last);
            self.storage.submit(call(tag));
            let answer = self.until(what, |completion| completion.tag() == Some(tag));
            let Completion::Refused {
                why: Refusal::Busy { .. },
                ..
            } = answer
            else {
                return answer;
            };
        }
    }

    fn open(&mut self, provisions: Provisions) {
        let spec = LogSpec {
            provisions,
            ..spec(self.storage.capabilities().strongest)
        };
        let log = log(0);
        let opened = self.ask("it is open", |t| Call::Open {
            t,
            log,
            spec: Box::new(spec),
        });
        assert!(matches!(opened, Completion::Opened { .. }), "{opened:?}");
    }

    fn provision(&mut self) -> Provisions {
        let spec = LogSpec {
            epoch: EPOCH,
            ..spec(self.storage.capabilities().strongest)
        };
        let (log, logs) = (log(0), 1);
        let made = self.ask("topics are made", |t| Call::Provision {
            t,
            log,
            logs,
            spec: Box::new(spec),
        });
        match made {
            Completion::Provisioned { provisions, .. } => *provisions,
            other => panic!("{other:?}"),
        }
    }

    fn append(&mut self, sequence: u64) -> Completion {
        let text = format!("message {sequence}");
        let batch = Maker::of(log(0), 5, 1).at(sequence).batch(&[("a", &text)]);
        let (log, map) = (batch.log(), batch.map_epoch());
        self.ask("it is answered", |t| Call::Append {
            t,
            log,
            map,
            batch: batch.clone(),
            sole: false,
        })
    }
}

pub(crate) fn a_start_goes_on_from_a_statement_and_leaves_out_copies_of_what_was_trimmed(
    cluster: &mut KafkaCluster,
) {
    let mut first = Node::new(cluster);
    let provisions = first.provision();
    first.open(provisions);
    let mut before = Sequence::FIRST;
    for sequence in 0..10 {
        match first.append(sequence) {
            Completion::Appended { extent, .. } => before = extent.first,
            other => panic!("{other:?}"),
        }
    }
    let log = log(0);
    let trimmed = first.ask("it is trimmed", |t| Call::Trim { t, log, before });
    assert!(matches!(trimmed, Completion::Done { .. }), "{trimmed:?}");
    drop(first);

    let mut next = Node::new(cluster);
    next.open(provisions);
    // It is stored, and left out: what it copies is gone.
    let copy = next.append(3);
    assert!(matches!(copy, Completion::Appended { .. }), "{copy:?}");
    assert_eq!(next.storage.left_out(), 1);
    let new = next.append(10);
    assert!(matches!(new, Completion::Appended { .. }), "{new:?}");
    next.storage.submit(Call::Read {
        r: ReaderId(1),
        log,
        from: Sequence::FIRST,
        scope: Box::new(Scope::default()),
        credit: u32::MAX,
    });
    let mut texts = Vec::new();
    while texts.len() < 2 {
        let is_batch = |completion: &Completion| matches!(completion, Completion::Batch { .. });
        if let Completion::Batch { stored, .. } = next.until("a batch comes", is_batch) {
            let payloads = stored.batch.iter().map(|record| record.payload.to_vec());
            texts.extend(payloads.map(|text| String::from_utf8(text).unwrap()));
        }
    }
    assert_eq!(texts, ["message 9", "message 10"]);
}
