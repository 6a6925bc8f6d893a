//! A node's storage on the model of Kafka's brokers: the real core, which has to provision what a shard opens without.
//!
//! What a log needs is made when a node first opens it. Several may do that at once; whoever is first is gone by, and
//! what the others have made is used by nobody.

use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogSpec, LogStorage, Refusal, Tag, Trouble,
};
use airmail_log_kafka::model::ModelBrokers;
use airmail_log_kafka::{KafkaConfig, KafkaStorage};
use airmail_model::{LogId, MapEpoch, Mono, Now, Provisions};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Provisions of the logs of a run, each with the map that it is of.
pub(super) type Provisioned = Arc<Mutex<BTreeMap<(LogId, MapEpoch), Provisions>>>;

/// An opening that waits for what it needs.
#[derive(Debug)]
struct Waiting {
    t: Tag,
    log: LogId,
    spec: Box<LogSpec>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct KafkaNode {
    storage: KafkaStorage<ModelBrokers>,
    provisioned: Provisioned,
    waiting: BTreeMap<Tag, Waiting>,
    provisionings: u64,
}

impl KafkaNode {
    pub(super) fn new(
        config: KafkaConfig,
        brokers: ModelBrokers,
        provisioned: Provisioned,
    ) -> KafkaNode {
        KafkaNode {
            storage: KafkaStorage::new(config, brokers),
            provisioned,
            waiting: BTreeMap::new(),
            provisionings: 0,
        }
    }

    fn open(&mut self, t: Tag, log: LogId, mut spec: Box<LogSpec>) {
        let known = self.provisioned.lock().get(&(log, spec.epoch)).copied();
        if let Some(provisions) = known.or((log == LogId::SYSTEM).then_some(Provisions::NONE)) {
            spec.provisions = provisions;
            return self.storage.submit(Call::Open { t, log, spec });
        }
        // Tags of the shard are counted from the other end.
        self.provisionings += 1;
        let own = Tag(u64::MAX - self.provisionings);
        let provision = Call::Provision {
            t: own,
            log,
            logs: 1,
            spec: spec.clone(),
        };
        self.waiting.insert(own, Waiting { t, log, spec });
        self.storage.submit(provision);
    }

    /// The answer to a provisioning: the log is opened, or its opening is refused.
    fn provisioned(&mut self, of: Waiting, answer: Completion, out: &mut Vec<Completion>) {
        let Waiting { t, log, spec } = of;
        match answer {
            Completion::Provisioned { provisions, .. } => {
                let mut known = self.provisioned.lock();
                known.entry((log, spec.epoch)).or_insert(*provisions);
                drop(known);
                self.open(t, log, spec);
            }
            Completion::Refused { why, .. } => out.push(Completion::Refused { t, why }),
            other => {
                let why = Refusal::Io(format!("{other:?} answers a provisioning"));
                out.push(Completion::Refused { t, why });
            }
        }
    }
}

impl LogStorage for KafkaNode {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            provisions: false,
            ..self.storage.capabilities()
        }
    }

    fn submit(&mut self, call: Call) {
        match call {
            Call::Open { t, log, spec } => self.open(t, log, spec),
            other => self.storage.submit(other),
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let mut told = Vec::new();
        let mut deadline = self.storage.poll(now, &mut told);
        for completion in told {
            match completion.tag().and_then(|t| self.waiting.remove(&t)) {
                Some(of) => {
                    self.provisioned(of, completion, out);
                    deadline = Some(now.mono);
                }
                None => out.push(completion),
            }
        }
        let next = self.storage.brokers().next();
        deadline.into_iter().chain(next).min()
    }

    fn opened(&mut self) {
        self.storage.opened();
    }

    fn close(&mut self, now: Now) {
        self.storage.close(now);
    }

    fn is_closed(&self) -> bool {
        self.storage.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.storage.trouble()
    }

    fn damage(&self) -> u64 {
        self.storage.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.storage.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
