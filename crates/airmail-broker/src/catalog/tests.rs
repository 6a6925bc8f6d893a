//! The catalog alone: storage and logs are whatever a test says.

mod first_start;
mod invariants;
mod overtaken;
mod provisioned;
mod storages;
mod transcripts;
mod upkeep;
mod versions;

use super::change::Change;
use super::*;
use crate::config::FirstNamespace;
use crate::input::Outcome;
use airmail_log::{Bounds, GapWhy, Origin, ReaderId, Refusal, StorageTraits, Stored};
use airmail_model::{
    AppendTime, Batch, Checked, Durability, ErrorCode, Extent, Incarnation, LogIndex, MapEpoch,
    Mono, Namespace, NamespaceSpec, Provisions, Retention, Sequence, StorageName, Wall,
};
use std::collections::BTreeMap;

const READER: ReaderId = ReaderId(1);

/// A catalog, and what it wanted done last.
/// A further storage in memory.
fn in_memory() -> StorageTraits {
    StorageTraits {
        strongest: Durability::MEMORY,
        topic_index: true,
        seal: true,
    }
}

struct Driver {
    core: CatalogCore,
    effects: Vec<CatalogEffect>,
}

impl Driver {
    fn new() -> Driver {
        let config = CatalogConfig {
            first: StorageTraits {
                strongest: Durability::FSYNC,
                topic_index: true,
                seal: true,
            },
            storages: BTreeMap::new(),
            provisions: false,
            default_namespace: FirstNamespace::default(),
            read_window_bytes: 1_024,
            commands_max: 2,
            #[cfg(feature = "sabotage")]
            bug: None,
        };
        Driver {
            core: CatalogCore::new(config),
            effects: Vec::new(),
        }
    }

    /// A catalog whose log 0 holds these commands, from 1 on, and was read; its logs are not open.
    fn restarted(changes: &[Change]) -> Driver {
        let mut driver = Driver::new();
        driver.step(CatalogInput::Start);
        driver.step(CatalogInput::Opened(bounds(1, 1 + changes.len() as u64)));
        for (at, change) in (1..).zip(changes) {
            driver.give(at, change);
        }
        driver.step(CatalogInput::Tail);
        driver
    }

    /// A catalog of the namespace `default`, of two logs.
    fn ready() -> Driver {
        let mut driver = Driver::restarted(&[create(1, "default", 2)]);
        driver.settle(1);
        driver.settle(1);
        assert!(driver.core.is_ready());
        driver
    }

    fn step(&mut self, input: CatalogInput) {
        let now = Now {
            mono: Mono(1),
            wall: Wall(1),
        };
        let mut out = CatalogEffects::default();
        self.core.step(now, input, &mut out);
        self.effects = out.in_order;
    }

    /// The reader of log 0 comes upon a command.
    fn give(&mut self, at: u64, change: &Change) {
        let batch = change.to_batch(Wall(1), u8::MAX).expect("small");
        self.step(given(at, batch));
    }

    /// The command under way, which is to be `change`, gets into log 0 and is read there.
    fn write(&mut self, at: u64, change: &Change) {
        assert_eq!(self.appended(), std::slice::from_ref(change));
        let of = SystemAppend::Command;
        let extent = number(at);
        self.step(CatalogInput::Appended { of, extent });
        self.give(at, change);
    }

    /// The command under way, `change`, gets into log 0 behind another's.
    fn overtaken(&mut self, at: u64, change: &Change) {
        let of = SystemAppend::Command;
        let extent = number(at);
        self.step(CatalogInput::Appended { of, extent });
        assert_eq!(self.answers(), []);
        self.give(at, change);
    }

    /// One log of a namespace is done with.
    fn settle(&mut self, id: u32) {
        let namespace = NamespaceId(id);
        let result = Ok(());
        self.step(CatalogInput::LogSettled { namespace, result });
    }

    fn fail(&mut self, id: u32, code: ErrorCode) {
        let namespace = NamespaceId(id);
        let result = Err(Error::new(code));
        self.step(CatalogInput::LogSettled { namespace, result });
    }

    fn ask(&mut self, id: u64, command: Command) {
        let id = CommandId(id);
        self.step(CatalogInput::Command { id, command });
    }

    fn lose(&mut self, first: u64, last: u64) {
        let extent = Extent {
            first: Sequence(first),
            last: Sequence(last),
        };
        let why = GapWhy::Loss;
        self.step(CatalogInput::Gap { extent, why });
    }

    /// Changes that the last step wrote to log 0.
    fn appended(&self) -> Vec<Change> {
        let batches = self.effects.iter().filter_map(|effect| match effect {
            CatalogEffect::Append { batch, .. } => Some(batch),
            _ => None,
        });
        batches.flat_map(changes_of).flatten().collect()
    }

    /// Orders of the last step.
    fn orders(&self) -> Vec<Order> {
        let orders = self.effects.iter().filter_map(|effect| match effect {
            CatalogEffect::Order(order) => Some(*order),
            _ => None,
        });
        orders.collect()
    }

    /// Answers of the last step: the caller, and the result or the code of a refusal.
    fn answers(&self) -> Vec<(u64, Result<Outcome, ErrorCode>)> {
        let answers = self.effects.iter().filter_map(|effect| match effect {
            CatalogEffect::Answer { id, result } => Some((id.0, result.clone())),
            _ => None,
        });
        let code = |refusal| match refusal {
            CommandRefusal::Failed(error) => error.code(),
            CommandRefusal::NotReady | CommandRefusal::QueueFull { .. } => ErrorCode::Overloaded,
        };
        answers
            .map(|(id, result)| (id, result.map_err(code)))
            .collect()
    }
}

fn bounds(first: u64, next: u64) -> Bounds {
    Bounds {
        first: Sequence(first),
        next: Sequence(next),
        reach: Sequence(next),
        incarnation: Incarnation(1),
        first_time: None,
        bytes: 0,
        sealed: None,
    }
}

fn number(at: u64) -> Extent {
    Extent::starting_at(Sequence(at), 1)
}

fn given(at: u64, batch: Checked<Batch>) -> CatalogInput {
    let stored = Stored {
        base: Sequence(at),
        extent: Extent::starting_at(Sequence(at), batch.numbers()),
        appended: AppendTime(1),
        batch,
    };
    CatalogInput::Batch { r: READER, stored }
}

/// The commands of a batch; `None` for one that cannot be read.
fn changes_of(batch: &Checked<Batch>) -> Vec<Option<Change>> {
    batch
        .iter()
        .map(|record| Change::decode(record.payload))
        .collect()
}

fn create(id: u32, name: &str, logs: u16) -> Change {
    Change::Create {
        id: NamespaceId(id),
        name: name.to_owned(),
        spec: NamespaceSpec {
            logs,
            ..NamespaceSpec::default()
        },
        provisions: Provisions::NONE,
    }
}

fn delete(id: u32, based_on: u64) -> Change {
    let id = NamespaceId(id);
    Change::Delete { id, based_on }
}

fn update(id: u32, based_on: u64, time_ms: u64) -> Change {
    Change::Update {
        id: NamespaceId(id),
        based_on,
        retention: Retention {
            time_ms: Some(time_ms),
            bytes: None,
        },
        durability: Durability::FSYNC,
    }
}

fn create_command(name: &str) -> Command {
    Command::CreateNamespace {
        name: name.to_owned(),
        logs: 1,
        retention: Retention::default(),
        durability: None,
        storage: StorageName::FIRST,
    }
}

fn delete_command(name: &str) -> Command {
    Command::DeleteNamespace {
        name: name.to_owned(),
        based_on: None,
    }
}

fn update_command(name: &str, time_ms: u64) -> Command {
    Command::UpdateNamespace {
        name: name.to_owned(),
        logs: None,
        retention: Some(Retention {
            time_ms: Some(time_ms),
            bytes: None,
        }),
        durability: None,
        storage: None,
        based_on: None,
    }
}

#[test]
fn a_restart_serves_what_log_0_says_and_orders_it_once() {
    let changes = [
        create(1, "default", 2),
        create(2, "orders", 3),
        update(1, 1, 9),
        create(3, "bills", 4),
        delete(3, 1),
        delete(2, 1),
        Change::Purged {
            id: NamespaceId(2),
            epoch: None,
        },
    ];
    let mut driver = Driver::restarted(&changes);
    let entry = driver.core.snapshot().by_name("default").cloned();
    let entry = entry.expect("in log 0");
    let spec = entry.log_spec();
    assert_eq!(spec.retention.time_ms, Some(9));
    let opens = entry.map.logs(airmail_model::Lane::Normal);
    let opens = opens.map(|log| Order::Open {
        log,
        spec,
        seal: None,
    });
    let namespace = NamespaceId(3);
    let left = [Order::Delete {
        namespace,
        first: LogIndex(0),
        logs: 4,
        has_high: false,
        as_of: Sequence(5),
        origin: Origin::default(),
    }];
    let wanted: Vec<Order> = opens.chain(left).collect();
    assert_eq!(driver.orders(), wanted);
    assert_eq!(driver.appended(), [], "there is a namespace");
    for id in [1, 1, 3, 3, 3] {
        driver.settle(id);
        assert!(!driver.core.is_ready());
    }
    driver.settle(3);
    assert_eq!(
        driver.appended(),
        [Change::Purged {
            id: namespace,
            epoch: None
        }]
    );
    assert!(driver.core.is_ready());
}

#[test]
fn log_0_that_cannot_be_opened_is_tried_again_and_one_that_cannot_be_read_is_read_on() {
    let mut driver = Driver::new();
    driver.step(CatalogInput::Start);
    let open = std::mem::take(&mut driver.effects);
    driver.step(CatalogInput::OpenRefused(Refusal::Io("gone".into())));
    assert_eq!(driver.effects, [CatalogEffect::RetryLater]);
    assert!(driver.core.failure().is_some());
    driver.step(CatalogInput::Retry);
    assert_eq!(driver.effects, open);
    driver.step(CatalogInput::Opened(bounds(1, 2)));
    assert_eq!(driver.core.failure(), None);
    driver.give(1, &create(1, "default", 1));
    driver.step(CatalogInput::ReaderEnded);
    driver.step(CatalogInput::Retry);
    let read = CatalogEffect::Read {
        from: Sequence(2),
        credit_bytes: 1_024,
    };
    assert_eq!(driver.effects, [read]);
    driver.step(CatalogInput::Retry);
    assert_eq!(driver.effects, [], "it is being read");
}

#[test]
fn a_command_waits_while_another_is_under_way_and_finds_what_that_one_made() {
    let mut driver = Driver::ready();
    driver.ask(7, create_command("orders"));
    let orders = create(2, "orders", 1);
    assert_eq!(driver.appended(), std::slice::from_ref(&orders));
    let appended = std::mem::take(&mut driver.effects);
    driver.ask(8, create_command("orders"));
    driver.ask(9, delete_command("orders"));
    assert_eq!(driver.effects, []);
    driver.ask(10, delete_command("orders"));
    assert_eq!(driver.answers(), [(10, Err(ErrorCode::Overloaded))]);
    driver.effects = appended;
    driver.write(2, &orders);
    driver.settle(2);
    let made = driver.core.snapshot().by_name("orders").cloned();
    let made = Outcome::Namespace(made.expect("made").namespace.clone());
    let exists = Err(ErrorCode::NamespaceExists);
    assert_eq!(driver.answers(), [(7, Ok(made)), (8, exists)]);
    driver.write(3, &delete(2, 1));
    driver.settle(2);
    assert_eq!(driver.answers(), [(9, Ok(Outcome::Deleted))]);
}

#[test]
fn a_command_that_is_met_before_its_append_is_answered_is_answered_then() {
    let mut driver = Driver::ready();
    driver.ask(7, update_command("default", 5));
    driver.give(2, &update(1, 1, 5));
    driver.settle(1);
    driver.settle(1);
    assert_eq!(driver.answers(), []);
    let of = SystemAppend::Command;
    let extent = number(2);
    driver.step(CatalogInput::Appended { of, extent });
    assert!(matches!(
        driver.answers()[..],
        [(7, Ok(Outcome::Namespace(_)))]
    ));
}

#[test]
fn a_command_that_does_not_get_into_log_0_is_refused_and_the_next_one_begins() {
    let mut driver = Driver::ready();
    driver.ask(7, create_command("orders"));
    driver.ask(8, create_command("orders"));
    let of = SystemAppend::Command;
    let why = Refusal::OutcomeUnknown;
    driver.step(CatalogInput::AppendRefused { of, why });
    let unknown = Err(ErrorCode::OutcomeUnknown);
    assert_eq!(driver.answers(), [(7, unknown)]);
    assert_eq!(driver.appended(), [create(2, "orders", 1)]);
}

#[test]
fn a_torn_log_0_serves_what_is_known_and_changes_nothing() {
    let mut driver = Driver::new();
    driver.step(CatalogInput::Start);
    driver.step(CatalogInput::Opened(bounds(1, 4)));
    driver.give(1, &create(1, "default", 1));
    driver.lose(2, 2);
    driver.give(3, &create(3, "bills", 1));
    driver.step(CatalogInput::Tail);
    driver.settle(1);
    driver.settle(3);
    assert!(driver.core.is_ready());
    assert_eq!(driver.core.snapshot().len(), 2);
    assert!(driver.core.failure().is_some());
    driver.ask(7, create_command("orders"));
    let failed = Err(ErrorCode::StorageFailed);
    assert_eq!(driver.answers(), [(7, failed)]);
    assert_eq!(driver.appended(), []);
}

#[test]
fn commands_that_wait_when_log_0_turns_out_to_be_torn_are_refused() {
    let mut driver = Driver::ready();
    driver.ask(7, create_command("orders"));
    driver.ask(8, create_command("bills"));
    driver.lose(2, 2);
    assert_eq!(
        driver.answers(),
        [],
        "what became of the first is not known"
    );
    let of = SystemAppend::Command;
    let extent = number(3);
    driver.step(CatalogInput::Appended { of, extent });
    driver.give(3, &create(2, "orders", 1));
    driver.settle(2);
    let made = driver.core.snapshot().by_name("orders").cloned();
    let made = Outcome::Namespace(made.expect("made").namespace.clone());
    let failed = Err(ErrorCode::StorageFailed);
    assert_eq!(driver.answers(), [(7, Ok(made)), (8, failed)]);
    assert_eq!(driver.appended(), []);
}

#[test]
fn a_command_that_is_lost_from_log_0_is_answered_with_unknown() {
    let unknown = Err(ErrorCode::OutcomeUnknown);
    for is_lost_first in [true, false] {
        let mut driver = Driver::ready();
        driver.ask(7, create_command("orders"));
        let of = SystemAppend::Command;
        let extent = number(2);
        let appended = CatalogInput::Appended { of, extent };
        if is_lost_first {
            driver.lose(2, 2);
            driver.step(appended);
        } else {
            driver.step(appended);
            driver.lose(2, 2);
        }
        assert_eq!(driver.answers(), [(7, unknown.clone())]);
        let why = driver.core.failure().map(Error::code);
        assert_eq!(why, Some(ErrorCode::StorageFailed));
    }
}

#[test]
fn a_deletion_whose_logs_cannot_be_deleted_is_refused_and_is_done_again_at_the_next_start() {
    let mut driver = Driver::ready();
    driver.ask(7, delete_command("default"));
    let deletion = delete(1, 1);
    driver.write(2, &deletion);
    let namespace = NamespaceId(1);
    let order = Order::Delete {
        namespace,
        first: LogIndex(0),
        logs: 2,
        has_high: false,
        as_of: Sequence(2),
        origin: Origin::default(),
    };
    assert_eq!(driver.orders(), [order]);
    driver.settle(1);
    driver.fail(1, ErrorCode::StorageFailed);
    assert_eq!(driver.answers(), [(7, Err(ErrorCode::StorageFailed))]);
    assert_eq!(driver.appended(), [], "not all of it is gone");
    assert!(driver.core.snapshot().is_empty(), "gone for its users");
    let driver = Driver::restarted(&[create(1, "default", 2), deletion]);
    assert_eq!(driver.orders(), [order]);
}
