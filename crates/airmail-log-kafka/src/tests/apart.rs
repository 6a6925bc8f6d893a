//! Tests of a storage with a handle of its own to append by: what goes which way.

use super::node::{BEGIN, Node, after};
use crate::config::KafkaConfig;
use crate::model::{Faults, ModelBrokers, ModelCluster};
use crate::{ApartStorage, KafkaAppender, KafkaStorage};
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::{
    Bounds, Call, Capabilities, ClockState, Completion, LogSpec, LogStorage, Origin, Refusal,
    Soundness, Tag, Trouble,
};
use airmail_model::{Incarnation, MapEpoch, Mono, Now, Provisions, Sequence};
use std::time::Duration;

const BOUNDS: Bounds = Bounds {
    first: Sequence(1),
    next: Sequence(1),
    reach: Sequence::MAX,
    incarnation: Incarnation(1),
    first_time: None,
    bytes: 0,
    sealed: None,
};

/// A storage that is asked, and tells what it is made to.
#[derive(Debug)]
struct Behind {
    capabilities: Capabilities,
    asked: Vec<Call>,
    told: Vec<Completion>,
}

impl LogStorage for Behind {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&mut self, call: Call) {
        if let Call::Open { t, .. } = call {
            self.told.push(Completion::Opened { t, bounds: BOUNDS });
        }
        self.asked.push(call);
    }

    fn poll(&mut self, _: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        out.append(&mut self.told);
        None
    }

    fn opened(&mut self) {}

    fn close(&mut self, _: Now) {}

    fn is_closed(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<Trouble> {
        None
    }

    fn damage(&self) -> u64 {
        0
    }

    fn read_bytes(&self) -> u64 {
        0
    }

    fn clock(&self) -> ClockState {
        ClockState::default()
    }

    fn accept_clock(&mut self, _: Now) {}
}

struct World {
    now: Now,
    storage: ApartStorage<ModelBrokers, Behind>,
    provisions: Provisions,
    last: u64,
    heard: Vec<Completion>,
}

impl World {
    /// A log that is open, on brokers with these faults.
    fn new(faults: Faults) -> World {
        let cluster = ModelCluster::new(1, Faults::NONE);
        let mut node = Node::new(&cluster, KafkaConfig::default());
        let mut now = BEGIN;
        let provisions = node.provision(&mut now, log(0), 1);
        cluster.set_faults(faults);
        let config = KafkaConfig::default();
        let capabilities = KafkaStorage::new(config.clone(), cluster.client()).capabilities();
        let behind = Behind {
            capabilities,
            asked: Vec::new(),
            told: Vec::new(),
        };
        let appender = KafkaAppender::new(config, cluster.client());
        let mut world = World {
            now,
            storage: ApartStorage::new(appender, behind),
            provisions,
            last: 0,
            heard: Vec::new(),
        };
        world.open();
        world
    }

    fn open(&mut self) {
        let spec = LogSpec {
            provisions: self.provisions,
            ..spec(self.storage.capabilities().strongest)
        };
        self.call(|t| Call::Open {
            t,
            log: log(0),
            spec: Box::new(spec),
        });
        self.poll();
        self.heard.clear();
    }

    fn call(&mut self, call: impl FnOnce(Tag) -> Call) -> Tag {
        self.last += 1;
        self.storage.submit(call(Tag(self.last)));
        Tag(self.last)
    }

    fn poll(&mut self) {
        for _ in 0..50 {
            self.now = after(self.now, Duration::from_millis(10));
            self.storage.poll(self.now, &mut self.heard);
        }
    }

    /// Appends a batch of a producer, of an epoch; whether it went to the storage behind.
    fn append(&mut self, (epoch, sequence): (u32, u64), map: MapEpoch, sole: bool) -> bool {
        let batch = Maker::of(log(0), 7, epoch)
            .at(sequence)
            .batch(&[("a", "x")]);
        let t = self.call(|t| Call::Append {
            t,
            log: log(0),
            map,
            batch,
            sole,
        });
        let asked = self.storage.storage().asked.iter();
        asked.filter_map(Call::tag).any(|asked| asked == t)
    }

    fn append_to(&mut self, place: (u32, u64), sole: bool) -> bool {
        self.append(place, airmail_log::conformance::EPOCH, sole)
    }

    fn answers(&mut self) -> Vec<Result<(), Refusal>> {
        self.poll();
        let answers = self.heard.drain(..).filter_map(|told| match told {
            Completion::Appended { .. } => Some(Ok(())),
            Completion::Refused { why, .. } => Some(Err(why)),
            _ => None,
        });
        answers.collect()
    }
}

#[test]
fn an_epoch_that_begins_sole_is_appended_by_the_own_handle() {
    let mut world = World::new(Faults::NONE);
    let went = [0, 1, 2].map(|sequence| world.append_to((1, sequence), true));
    assert_eq!(went, [false; 3]);
    assert_eq!(world.answers(), [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn an_epoch_that_begins_behind_goes_on_there() {
    let mut world = World::new(Faults::NONE);
    assert!(world.append_to((1, 0), false));
    assert!(world.append_to((1, 1), true), "the rest of the epoch");
    assert!(!world.append_to((2, 0), true), "the next one");
    assert!(world.append_to((2, 1), false), "no longer sole");
    assert!(world.append_to((3, 5), true), "begun elsewhere");
}

#[test]
fn behind_an_unknown_outcome_nothing_of_the_epoch_is_taken_here() {
    let mut world = World::new(Faults {
        unknown_lost: 1000,
        ..Faults::NONE
    });
    assert!(!world.append_to((1, 0), true));
    assert!(!world.append_to((1, 1), true));
    let unknown = || Err(Refusal::OutcomeUnknown);
    assert_eq!(world.answers(), [unknown(), unknown()]);
    assert!(!world.append_to((1, 2), true));
    assert_eq!(world.answers(), [Err(Refusal::UnknownProducer)]);
    assert!(
        world.append_to((1, 0), false),
        "what its client sends again"
    );
}

#[test]
fn while_a_log_is_lost_the_own_handle_goes_on_and_what_would_go_behind_is_away() {
    let mut world = World::new(Faults::NONE);
    let lost = Completion::Lost { log: log(0) };
    world.storage.storage_mut().told.push(lost);
    world.poll();
    assert!(!world.append_to((1, 0), true));
    assert!(!world.append_to((2, 4), true), "refused here");
    let answers = world.answers();
    assert!(answers.contains(&Ok(())), "{answers:?}");
    let is_away = |answer: &Result<(), Refusal>| matches!(answer, Err(Refusal::Away { .. }));
    assert!(answers.iter().any(is_away), "{answers:?}");
}

#[test]
fn an_old_map_and_a_deleted_log_are_refused() {
    let mut world = World::new(Faults::NONE);
    assert!(!world.append((1, 0), MapEpoch(77), true));
    let answers = world.answers();
    assert!(
        matches!(answers[..], [Err(Refusal::StaleMap { .. })]),
        "{answers:?}"
    );
    world.call(|t| Call::Delete {
        t,
        log: log(0),
        as_of: Sequence(9),
        origin: Box::new(Origin::default()),
    });
    assert!(
        world.append_to((1, 0), true),
        "for the storage behind to refuse"
    );
    world.open();
    assert!(!world.append_to((2, 0), true));
}

#[test]
fn a_handle_that_closes_answers_what_is_under_way() {
    let mut world = World::new(Faults::NONE);
    world.append_to((1, 0), true);
    world.storage.close(world.now);
    assert!(!world.storage.is_closed());
    assert_eq!(world.answers(), [Ok(())]);
    assert!(world.storage.is_closed());
}

#[test]
fn a_log_that_has_stopped_is_not_appended_to_here_and_goes_on_in_its_next_life() {
    let mut world = World::new(Faults::NONE);
    assert!(!world.append_to((1, 0), true));
    assert_eq!(world.answers(), [Ok(())]);
    let open = |world: &mut World, as_of: u64, soundness: Soundness| {
        let spec = LogSpec {
            provisions: world.provisions,
            as_of: Sequence(as_of),
            soundness,
            ..spec(world.storage.capabilities().strongest)
        };
        world.call(|t| Call::Open {
            t,
            log: log(0),
            spec: Box::new(spec),
        })
    };
    let suspended = Soundness {
        is_suspended: true,
        ..Soundness::default()
    };
    let t = open(&mut world, 1, suspended);
    assert!(world.append_to((2, 0), true), "at once");
    world.storage.storage_mut().told = vec![Completion::Refused {
        t,
        why: Refusal::Suspended("cut".into()),
    }];
    world.poll();
    assert!(world.append_to((2, 1), true), "for as long as it is so");
    world.heard.clear();
    let cut = Soundness {
        cuts: 1,
        cut_at: Sequence(4096),
        is_suspended: false,
    };
    open(&mut world, 2, cut);
    world.poll();
    world.heard.clear();
    assert!(!world.append_to((3, 0), true));
    assert_eq!(world.answers(), [Ok(())]);
}
