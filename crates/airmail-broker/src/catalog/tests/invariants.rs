//! Each invariant is asserted: a state that breaks it is complained of under its name, at the step that
//! finds it so.

use super::*;
use crate::catalog::commands::{Became, Met};
use crate::catalog::fold::Dying;
use crate::transcript::complaint;
use airmail_model::{LogId, LogIndex};

/// A catalog with one command under way and one that waits.
fn busy() -> Driver {
    let mut driver = Driver::ready();
    driver.ask(7, create_command("orders"));
    driver.ask(8, create_command("bills"));
    driver
}

type Break = fn(&mut CatalogCore);

fn applied(at: u64) -> Met {
    Met {
        extent: number(at),
        became: Became::Applied,
    }
}

const DYING: Dying = Dying {
    as_of: Sequence(1),
    logs: Vec::new(),
};

fn rename(core: &mut CatalogCore) {
    let entry = core.fold.catalog.get(NamespaceId(1)).unwrap();
    let name = "another".to_owned();
    let namespace = Namespace {
        name,
        ..entry.namespace.clone()
    };
    let entry = Entry::new(namespace, Provisions::NONE, Sequence(1));
    core.fold.catalog.put(entry);
    core.snapshot = Arc::new(core.fold.catalog.clone());
}

#[test]
fn a_state_that_breaks_an_invariant_is_complained_of_under_its_name() {
    let breaks: [(&str, Break); 17] = [
        ("served", |c| c.snapshot = Arc::default()),
        ("served", |c| c.phase = Phase::Replaying),
        ("numbers", |c| c.fold.last_id = NamespaceId(0)),
        ("numbers", |c| {
            c.fold.dying.insert(NamespaceId(1), DYING);
        }),
        ("numbers", |c| {
            c.fold.dying.insert(NamespaceId(2), DYING);
        }),
        ("names", rename),
        ("under_way", |c| c.log.is_opening = true),
        ("line", |c| c.current = None),
        ("line", |c| c.config.commands_max = 0),
        ("line", |c| {
            let mut out = CatalogEffects::default();
            c.config.provisions = true;
            let change = create(7, "provisioned", 1);
            let provisioned = c.provision(&change, &mut out);
            let current = c.current.as_mut().unwrap();
            (current.provisioned, current.at) = (provisioned, Some(Sequence(9)));
        }),
        ("ready", |c| c.phase = Phase::Settling),
        ("ready", |c| {
            c.fold = Fold::default();
            c.snapshot = Arc::default();
        }),
        ("met", |c| {
            let current = c.current.as_mut().unwrap();
            current.met = vec![applied(9)];
        }),
        ("met", |c| {
            c.current.as_mut().unwrap().at = Some(Sequence(1))
        }),
        ("torn", |c| c.log.is_torn = true),
        ("met", |c| {
            let current = c.current.as_mut().unwrap();
            current.met = vec![applied(1), applied(1)];
        }),
        ("settling", |c| {
            c.settling.entry(NamespaceId(5)).or_default();
        }),
    ];
    for (name, change) in breaks {
        let mut core = busy().core;
        core.check();
        change(&mut core);
        let complaint = complaint(|| core.check());
        assert!(
            complaint.starts_with(&format!("{name}: ")),
            "{name}: {complaint}"
        );
    }
}

#[test]
fn a_step_after_which_a_planted_break_stands_is_the_one_that_complains() {
    let mut driver = busy();
    driver.step(CatalogInput::Retry);
    driver.core.queue.clear();
    driver.core.current = None;
    driver.core.fold.last_id = NamespaceId(0);
    let complaint = complaint(|| driver.step(CatalogInput::Retry));
    assert_eq!(complaint, "numbers: 1 is above the last, 0");
}

/// The complaint about a step that does `change` and nothing else.
fn step_complaint(change: impl FnOnce(&mut CatalogCore, &mut CatalogEffects)) -> String {
    let mut core = busy().core;
    let mut out = CatalogEffects::default();
    let before = core.before(&CatalogInput::Retry, &out);
    change(&mut core, &mut out);
    complaint(|| core.after(before, &out))
}

#[test]
fn a_step_that_goes_back_is_complained_of() {
    let phase = step_complaint(|core, _| core.phase = Phase::Settling);
    assert!(phase.starts_with("phase: "), "{phase}");
    let next = step_complaint(|core, _| core.log.next = Sequence(1));
    assert!(next.starts_with("served: "), "{next}");
    let last = step_complaint(|core, _| core.fold.last_id = NamespaceId(0));
    assert!(last.starts_with("numbers: "), "{last}");
    let mut core = busy().core;
    let out = CatalogEffects::default();
    core.log.is_torn = true;
    let before = core.before(&CatalogInput::Retry, &out);
    core.log.is_torn = false;
    let torn = complaint(|| core.after(before, &out));
    assert!(torn.starts_with("torn: "), "{torn}");
}

#[test]
fn a_command_that_a_step_drops_or_answers_twice_is_complained_of() {
    let dropped = step_complaint(|core, _| {
        core.queue.pop_back();
    });
    assert!(dropped.starts_with("answers: "), "{dropped}");
    let twice = step_complaint(|_, out| out.answer(CommandId(8), Ok(Outcome::Deleted)));
    assert!(twice.starts_with("answers: "), "{twice}");
}

#[test]
fn a_number_that_is_given_again_is_complained_of() {
    let again = step_complaint(|core, _| {
        let entry = core.fold.catalog.get(NamespaceId(1)).unwrap();
        let namespace = Namespace {
            id: NamespaceId(0),
            name: "again".to_owned(),
            ..entry.namespace.clone()
        };
        let entry = Entry::new(namespace, Provisions::NONE, Sequence(1));
        core.fold.catalog.put(entry);
        core.snapshot = Arc::new(core.fold.catalog.clone());
    });
    assert!(again.starts_with("numbers: 0 is given again"), "{again}");
}

#[test]
fn an_order_that_no_namespace_wants_is_complained_of() {
    let open = step_complaint(|core, out| {
        let entry = core.snapshot.get(NamespaceId(1)).unwrap();
        let spec = entry.log_spec();
        let log = LogId::SYSTEM;
        out.push(CatalogEffect::Order(Order::Open {
            log,
            spec,
            seal: None,
        }));
    });
    assert!(open.starts_with("orders: "), "{open}");
    let delete = step_complaint(|_, out| {
        let namespace = NamespaceId(1);
        out.push(CatalogEffect::Order(Order::Delete {
            namespace,
            first: LogIndex(0),
            logs: 2,
            has_high: false,
            as_of: Sequence(1),
            origin: Origin::default(),
        }));
    });
    assert!(delete.starts_with("orders: "), "{delete}");
}

#[test]
fn a_step_that_reads_log_0_while_it_is_read_is_complained_of() {
    let (from, credit_bytes) = (Sequence(2), 1);
    let read = CatalogEffect::Read { from, credit_bytes };
    let twice = step_complaint(|_, out| out.push(read));
    assert!(twice.starts_with("under_way: "), "{twice}");
}

#[test]
fn a_batch_that_leaves_a_number_out_or_comes_twice_is_complained_of() {
    for at in [1, 3] {
        let mut driver = busy();
        let told = complaint(|| driver.give(at, &create(2, "orders", 1)));
        assert!(told.starts_with("served: "), "{at}: {told}");
    }
}

#[test]
fn a_start_that_forgets_an_order_or_does_not_wait_for_one_is_complained_of() {
    let mut core = Driver::restarted(&[create(1, "default", 2)]).core;
    let out = CatalogEffects::default();
    core.phase = Phase::Replaying;
    let before = core.before(&CatalogInput::Tail, &out);
    core.phase = Phase::Settling;
    let forgotten = complaint(|| core.after(before, &out));
    assert!(forgotten.starts_with("orders: "), "{forgotten}");
    let before = core.before(&CatalogInput::Retry, &out);
    core.phase = Phase::Ready;
    let early = complaint(|| core.after(before, &out));
    assert!(early.starts_with("ready: "), "{early}");
}

#[test]
fn two_commands_appended_in_one_step_are_complained_of() {
    let two = step_complaint(|_, out| {
        for _ in 0..2 {
            let batch = create(2, "orders", 1).to_batch(Wall(1), u8::MAX).unwrap();
            let of = SystemAppend::Command;
            out.push(CatalogEffect::Append { of, batch });
        }
    });
    assert!(two.starts_with("line: "), "{two}");
}

#[cfg(feature = "sabotage")]
#[test]
fn a_number_that_a_deletion_frees_is_found_at_the_step_that_frees_it() {
    let mut driver = Driver::ready();
    driver.core.config.bug = Some(crate::sabotage::Bug::NumberFreed);
    driver.ask(7, delete_command("default"));
    let (of, extent) = (SystemAppend::Command, number(2));
    driver.step(CatalogInput::Appended { of, extent });
    let said = complaint(|| driver.give(2, &delete(1, 1)));
    assert_eq!(said, "numbers: the last was 1, and is 0");
}
