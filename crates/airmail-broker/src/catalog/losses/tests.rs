//! Claims about losses, and what is decided about them.

use super::super::change::LAST_VERSION;
use super::*;
use airmail_model::NamespaceSpec;

const ID: NamespaceId = NamespaceId(1);

fn log(index: u16) -> LogId {
    LogId {
        namespace: ID,
        lane: airmail_model::Lane::Normal,
        index: LogIndex(index),
    }
}

/// A loss of life `life` from a number on, after which the next life would come.
fn loss(life: u64, at: Option<u64>, end: u64) -> LogLoss {
    LogLoss {
        life: Incarnation(life),
        next_life: Incarnation(life + 1),
        at: at.map(Sequence),
        end: Sequence(end),
    }
}

/// A namespace of two logs, and the place of the next command.
struct World(Fold, u64);

impl World {
    fn new() -> World {
        let mut world = World(Fold::default(), 1);
        let version = LAST_VERSION;
        assert!(world.apply(&Change::Raise { version }));
        let spec = NamespaceSpec {
            logs: 2,
            ..NamespaceSpec::default()
        };
        assert!(world.apply(&Change::Create {
            id: ID,
            name: "a".to_owned(),
            spec,
            provisions: Provisions::NONE,
        }));
        world
    }

    fn apply(&mut self, change: &Change) -> bool {
        self.1 += 1;
        self.0.apply(change, Sequence(self.1))
    }

    fn suspend(&mut self, index: u16, loss: LogLoss) -> bool {
        let log = log(index);
        self.apply(&Change::Suspend { log, loss })
    }

    fn accept(&mut self, index: u16, cuts: u32, at: u64) -> bool {
        let (log, at) = (log(index), Sequence(at));
        self.apply(&Change::Truncate { log, cuts, at })
    }

    fn recreate(&mut self, based_on: u64) -> bool {
        self.apply(&Change::Recreate {
            id: ID,
            based_on,
            provisions: Provisions::NONE,
        })
    }

    fn entry(&self) -> &Entry {
        self.0.catalog.get(ID).unwrap()
    }
}

#[test]
fn a_log_stops_once_and_goes_on_by_the_loss_that_was_told() {
    let mut world = World::new();
    assert!(!world.accept(0, 1, 5), "nothing is lost");
    assert!(world.suspend(0, loss(7, Some(5), 9)));
    assert!(!world.suspend(0, loss(7, Some(4), 9)), "it has stopped");
    assert!(world.entry().spec_of(log(0)).soundness.is_suspended);
    assert!(!world.entry().spec_of(log(1)).soundness.is_suspended);
    assert!(!world.accept(0, 1, 4), "of another loss");
    assert!(!world.accept(0, 2, 5), "another time");
    assert!(world.accept(0, 1, 5));
    assert!(!world.accept(0, 1, 5), "once");
    let soundness = world.entry().spec_of(log(0)).soundness;
    assert_eq!((soundness.cuts, soundness.cut_at), (1, Sequence(5)));
    assert!(!world.suspend(0, loss(7, Some(3), 9)), "of the life before");
    assert!(world.suspend(0, loss(8, Some(3), 6)));
}

#[test]
fn a_namespace_is_of_the_command_that_said_last_what_becomes_of_its_logs() {
    let mut world = World::new();
    assert!(world.suspend(0, loss(7, Some(5), 9)));
    assert_eq!(world.entry().as_of, Sequence(world.1));
    assert!(world.accept(0, 1, 5));
    assert_eq!(world.entry().as_of, Sequence(world.1));
    assert_eq!(world.entry().namespace.version, 1, "its user's");
}

#[test]
fn a_life_is_left_at_the_lowest_of_the_cuts_that_came_after_it() {
    let mut world = World::new();
    for (life, at, end, cuts) in [(7, 50, 90, 1), (8, 60, 70, 2), (9, 20, 65, 3)] {
        assert!(world.suspend(0, loss(life, Some(at), end)));
        assert!(world.accept(0, cuts, at));
    }
    let crossing = |life| {
        let crossing = world.entry().crossing(log(0), Incarnation(life));
        crossing.map(|of| (of.at.0, of.end.0))
    };
    assert_eq!(crossing(7), Some((20, 90)));
    assert_eq!(crossing(8), Some((20, 70)));
    assert_eq!(crossing(9), Some((20, 65)));
    assert_eq!(crossing(10), None, "the present one");
    assert_eq!(world.entry().crossing(log(1), Incarnation(7)), None);
}

#[test]
fn a_namespace_is_made_anew_only_when_a_log_of_it_is_gone() {
    let mut world = World::new();
    assert!(!world.recreate(1));
    assert!(world.suspend(0, loss(7, Some(5), 9)));
    assert!(!world.recreate(1), "a part of it is there");
    assert!(world.suspend(0, loss(7, None, 9)), "less than was told");
    assert!(!world.recreate(2), "of another version");
    assert!(world.recreate(1));
    assert!(!world.recreate(2), "it is sound");
    let entry = world.entry();
    assert_eq!(entry.namespace.epoch, MapEpoch(2));
    assert_eq!(entry.namespace.first_log, LogIndex(2));
    let ends = [0, 1].map(|index| entry.earlier[0].retired_end(log(index)));
    assert_eq!(ends, [Some(Sequence(9)), Some(Sequence::MAX)]);
    assert!(entry.earlier[0].is_lost() && entry.losses.is_empty());
    assert!(!world.suspend(0, loss(7, None, 9)), "of the map before");
}
