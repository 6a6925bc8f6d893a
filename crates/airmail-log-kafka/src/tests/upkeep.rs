//! Upkeep: topics are set as log 0 says, and those that it will never name are removed.

use super::topics::World;
use crate::brokers::{Brokers as _, Order, Settings, Token, Topic};
use airmail_log::conformance::{EPOCH, log};
use airmail_log::{Call, Completion, Kept, KeptMap, Origin, Refusal};
use airmail_model::{Provisions, Retention, StorageName};

impl World {
    fn topics(&self, part: &str) -> Vec<Topic> {
        let topics = self.cluster.topics().into_iter();
        topics.filter(|of| of.as_str().contains(part)).collect()
    }

    /// The map, whose logs are kept for ever.
    fn named(&self) -> KeptMap {
        KeptMap {
            namespace: log(0).namespace,
            origin: Origin {
                storage: StorageName::FIRST,
                provisions: self.provisions,
            },
            retention: Some(Retention::default()),
        }
    }

    /// Upkeep by a node that knows of these maps, and of no other namespace.
    fn keep(&mut self, maps: Vec<KeptMap>) -> Completion {
        let ids = maps.iter().map(|map| map.namespace);
        let last = ids.max().unwrap_or_default();
        let living = maps.iter().filter(|map| map.retention.is_some());
        let present = living.map(|map| (map.namespace, EPOCH));
        self.keep_all(Kept {
            present: present.collect(),
            maps,
            last,
            ..Kept::default()
        })
    }

    fn keep_all(&mut self, kept: Kept) -> Completion {
        let kept = Box::new(kept);
        let t = self.node.call(|t| Call::Keep { t, kept });
        self.node.answer(&mut self.now, t)
    }

    /// Topics of namespace 7 that nobody names any more, or yet: of the map of this epoch.
    fn make_unnamed(&mut self, epoch: u32) {
        self.make(&[
            &format!("airmail.7.normal.{epoch}.00000000000000aa"),
            &format!("airmail.7.high.{epoch}.00000000000000aa"),
        ]);
    }

    fn make(&mut self, names: &[&str]) {
        let mut somebody = self.cluster.client();
        for (n, name) in names.iter().enumerate() {
            let order = Order::Create {
                topic: Topic::new(name),
                partitions: 1,
                replicas: 3,
                settings: Settings::new(),
            };
            somebody.order(Token(n as u64), order);
        }
        somebody.poll(self.now, &mut Vec::new());
    }
}

fn is_done(answer: &Completion) -> bool {
    matches!(answer, Completion::Done { .. })
}

#[test]
fn what_is_set_otherwise_is_set_right() {
    let mut world = World::new();
    let named = world.named();
    assert!(is_done(&world.keep(vec![named])), "nothing is otherwise");
    let topics = world.topics(".7.");
    assert_eq!(topics.len(), 2);
    for topic in &topics {
        for (name, value) in [
            ("retention.ms", "1000"),
            ("min.insync.replicas", "1"),
            ("cleanup.policy", "compact"),
        ] {
            world.cluster.set(topic, name, value);
        }
    }
    assert!(is_done(&world.keep(vec![named])));
    for topic in &topics {
        assert_eq!(world.cluster.setting(topic, "retention.ms"), "-1");
        assert_eq!(world.cluster.setting(topic, "min.insync.replicas"), "2");
        assert_eq!(world.cluster.setting(topic, "cleanup.policy"), "delete");
    }
}

#[test]
fn what_keeps_more_than_it_has_to_is_left_so() {
    let mut world = World::new();
    let topic = world.topics(".7.normal.").remove(0);
    world.cluster.set(&topic, "min.insync.replicas", "3");
    world.cluster.set(&topic, "max.message.bytes", "9000000");
    world.cluster.set(&topic, "retention.ms", "-1");
    world.cluster.set(&topic, "retention.bytes", "7000");
    let mut named = world.named();
    named.retention = Some(Retention {
        time_ms: Some(60_000),
        bytes: Some(5_000),
    });
    assert!(is_done(&world.keep(vec![named])));
    assert_eq!(world.cluster.setting(&topic, "retention.ms"), "-1");
    assert_eq!(world.cluster.setting(&topic, "retention.bytes"), "7000");
    world.cluster.set(&topic, "retention.bytes", "4000");
    world.keep(vec![named]);
    assert_eq!(world.cluster.setting(&topic, "retention.bytes"), "5000");
    assert_eq!(world.cluster.setting(&topic, "min.insync.replicas"), "3");
    assert_eq!(
        world.cluster.setting(&topic, "max.message.bytes"),
        "9000000"
    );
}

#[test]
fn topics_of_the_cluster_itself_are_set_right_too() {
    let mut world = World::new();
    let log_0 = Topic::new("airmail.meta");
    let rows = Topic::new("airmail.state");
    world.cluster.set(&log_0, "retention.ms", "1000");
    world.cluster.set(&rows, "cleanup.policy", "delete");
    world.keep(Vec::new());
    assert_eq!(world.cluster.setting(&log_0, "retention.ms"), "-1");
    assert_eq!(world.cluster.setting(&rows, "cleanup.policy"), "compact");
}

#[test]
fn topics_that_no_command_can_name_any_more_are_removed() {
    let mut world = World::new();
    let named = world.named();
    world.make_unnamed(1);
    assert!(is_done(&world.keep(vec![named])));
    assert_eq!(world.topics("00000000000000aa"), [], "its map has others");
    assert_eq!(world.topics(".7.").len(), 2);
    let gone = Kept {
        last: named.namespace,
        ..Kept::default()
    };
    world.keep_all(gone);
    assert_eq!(world.topics(".7."), [], "the namespace is gone");
    assert_eq!(world.topics("airmail.").len(), 2, "log 0 and the rows");
}

#[test]
fn topics_that_a_later_command_may_name_are_left() {
    let mut world = World::new();
    let named = world.named();
    world.make_unnamed(2);
    world.keep(vec![named]);
    assert_eq!(world.topics("00000000000000aa").len(), 2, "its next map");
    world.keep(Vec::new());
    assert_eq!(world.topics(".7.").len(), 4, "a namespace not heard of");
    // It has moved elsewhere meanwhile, and may come back.
    let elsewhere = Kept {
        present: [(named.namespace, EPOCH)].into(),
        last: named.namespace,
        ..Kept::default()
    };
    world.keep_all(elsewhere);
    assert_eq!(world.topics(".7.").len(), 2, "those of its next map");
    assert_eq!(world.topics("00000000000000aa").len(), 2);
}

#[test]
fn topics_that_are_to_be_deleted_are_left_to_whoever_does_it() {
    let mut world = World::new();
    let dying = KeptMap {
        retention: None,
        ..world.named()
    };
    let topic = world.topics(".7.normal.").remove(0);
    world.cluster.set(&topic, "retention.ms", "5000");
    world.keep(vec![dying]);
    assert_eq!(world.topics(".7.").len(), 2);
    let kept = world.cluster.setting(&topic, "retention.ms");
    assert_eq!(kept, "5000", "nothing is set right");
}

#[test]
fn topics_of_another_storage_with_the_same_prefix_are_left_as_they_are() {
    let mut world = World::new();
    let mut named = world.named();
    named.origin.storage = StorageName::new("other").unwrap();
    let topic = world.topics(".7.normal.").remove(0);
    world.cluster.set(&topic, "retention.ms", "5000");
    assert!(is_done(&world.keep(vec![named])));
    assert_eq!(world.topics(".7.").len(), 2);
    assert_eq!(world.cluster.setting(&topic, "retention.ms"), "5000");
}

#[test]
fn topics_of_other_names_are_somebody_elses() {
    let mut world = World::new();
    let names = [
        "airmail.7.normal.1.mine",
        "airmail.7.low.1.00000000000000aa",
        "airmail.7.normal.1.00000000000000aa.copy",
        "airmail.backup",
        "airmails.7.normal.1.00000000000000aa",
    ];
    world.make(&names);
    let named = world.named();
    assert!(is_done(&world.keep(vec![named])));
    let topics = world.cluster.topics();
    assert!(names.iter().all(|name| topics.contains(&Topic::new(name))));
}

#[test]
fn provisions_that_cannot_be_read_stop_upkeep_before_it_removes_anything() {
    let mut world = World::new();
    let unknown = KeptMap {
        origin: Origin {
            provisions: Provisions::new(&[9; 19]).unwrap(),
            ..Origin::default()
        },
        ..world.named()
    };
    let answer = world.keep(vec![unknown]);
    assert!(
        matches!(
            answer,
            Completion::Refused {
                why: Refusal::Unsupported(_),
                ..
            }
        ),
        "{answer:?}"
    );
    assert_eq!(world.topics(".7.").len(), 2);
}
