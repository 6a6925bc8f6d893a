//! A node for tests: a storage on a cluster that others share, and what it has told.

use crate::config::KafkaConfig;
use crate::model::{ModelBrokers, ModelCluster};
use crate::storage::KafkaStorage;
use airmail_log::conformance::{EPOCH, spec};
use airmail_log::{
    Bounds, Call, Completion, GapWhy, LogLoss, LogSpec, LogStorage, ReaderId, Scope, Soundness, Tag,
};
use airmail_model::{Extent, LogId, Mono, Now, Provisions, Sequence, Wall};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time at which every test begins.
pub(super) const BEGIN: Now = Now {
    mono: Mono(1_000_000_000),
    wall: Wall(1_790_000_000_000_000),
};

/// A time later.
pub(super) fn after(now: Now, time: Duration) -> Now {
    Now {
        mono: now.mono.plus(time),
        wall: Wall(now.wall.0 + i64::try_from(time.as_micros()).unwrap()),
    }
}

/// A reader's deliveries: each message with its number, and the gaps where something was.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) next: Option<Sequence>,
    pub(super) messages: Vec<(u64, String)>,
    pub(super) losses: Vec<Extent>,
    /// Told as removed by retention.
    pub(super) removed: Vec<Extent>,
    pub(super) is_over: bool,
}

impl Heard {
    /// Takes a delivery, whose numbers must go on where the one before ended.
    fn take(&mut self, completion: &Completion) {
        let extent = match completion {
            Completion::Batch { stored, .. } => {
                for record in stored.batch.iter() {
                    let number = stored.base.plus(record.index.into()).0;
                    let text = String::from_utf8(record.payload.to_vec()).unwrap();
                    self.messages.push((number, text));
                }
                stored.extent
            }
            Completion::Gap { extent, why, .. } => {
                match why {
                    GapWhy::Loss => self.losses.push(*extent),
                    GapWhy::Retention => self.removed.push(*extent),
                    _ => {}
                }
                *extent
            }
            Completion::Ended { .. } => {
                self.is_over = true;
                return;
            }
            _ => return,
        };
        assert_eq!(
            extent.first,
            self.next.unwrap_or(Sequence::FIRST),
            "{completion:?}"
        );
        self.next = Some(extent.next());
    }
}

/// A node.
pub(super) struct Node {
    pub(super) storage: KafkaStorage<ModelBrokers>,
    pub(super) heard: BTreeMap<ReaderId, Heard>,
    pub(super) answers: BTreeMap<Tag, Completion>,
    /// Lives that somebody else has begun.
    pub(super) gained: Vec<Bounds>,
    /// Losses that it has told of.
    pub(super) losses: Vec<LogLoss>,
    last: u64,
}

impl Node {
    pub(super) fn new(cluster: &ModelCluster, config: KafkaConfig) -> Node {
        Node {
            storage: KafkaStorage::new(config, cluster.client()),
            heard: BTreeMap::new(),
            answers: BTreeMap::new(),
            gained: Vec::new(),
            losses: Vec::new(),
            last: 0,
        }
    }

    pub(super) fn call(&mut self, call: impl FnOnce(Tag) -> Call) -> Tag {
        self.last += 1;
        let tag = Tag(self.last);
        self.storage.submit(call(tag));
        tag
    }

    /// Starts a reader of everything.
    pub(super) fn read(&mut self, log: LogId, credit: u32) -> ReaderId {
        self.last += 1;
        let r = ReaderId(self.last);
        self.storage.submit(Call::Read {
            r,
            log,
            from: Sequence::FIRST,
            scope: Box::new(Scope::default()),
            credit,
        });
        self.heard.insert(r, Heard::default());
        r
    }

    pub(super) fn poll(&mut self, now: Now) {
        let mut out = Vec::new();
        self.storage.poll(now, &mut out);
        for completion in out {
            if let Some(t) = completion.tag() {
                assert!(
                    self.answers.insert(t, completion).is_none(),
                    "{t:?} is answered twice"
                );
            } else if let Some(heard) = completion.reader().and_then(|r| self.heard.get_mut(&r)) {
                heard.take(&completion);
            } else if let Completion::Gained { bounds, .. } = completion {
                self.gained.push(bounds);
            } else if let Completion::Suspended { loss, .. } = completion {
                self.losses.push(*loss);
            }
        }
    }

    /// Polls until an answer is there.
    pub(super) fn answer(&mut self, now: &mut Now, tag: Tag) -> Completion {
        for _ in 0..10_000 {
            if let Some(answer) = self.answers.remove(&tag) {
                return answer;
            }
            *now = after(*now, Duration::from_millis(1));
            self.poll(*now);
        }
        panic!("{tag:?} is not answered");
    }

    pub(super) fn provision(&mut self, now: &mut Now, log: LogId, logs: u16) -> Provisions {
        let spec = Box::new(LogSpec {
            epoch: EPOCH,
            ..spec(self.storage.capabilities().strongest)
        });
        let tag = self.call(|t| Call::Provision { t, log, logs, spec });
        match self.answer(now, tag) {
            Completion::Provisioned { provisions, .. } => *provisions,
            other => panic!("{other:?}"),
        }
    }

    /// Opens a log of these provisions; its answer.
    pub(super) fn open(&mut self, now: &mut Now, log: LogId, of: Provisions) -> Completion {
        self.open_as(now, log, of, (Sequence(0), Soundness::default()))
    }

    /// Opens a log as log 0 says it from a place on; its answer.
    pub(super) fn open_as(
        &mut self,
        now: &mut Now,
        log: LogId,
        of: Provisions,
        (as_of, soundness): (Sequence, Soundness),
    ) -> Completion {
        let spec = spec(self.storage.capabilities().strongest);
        let spec = Box::new(LogSpec {
            provisions: of,
            as_of: spec.as_of.max(as_of),
            soundness,
            ..spec
        });
        let tag = self.call(|t| Call::Open { t, log, spec });
        self.answer(now, tag)
    }
}
