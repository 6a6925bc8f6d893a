//! The conformance suite on two storages as one, with every second log in each; and what only several have.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

use airmail_log::conformance::{End, Subject};
use airmail_log::journal::JournalConfig;
use airmail_log::many_writers::{LogsHandle, SharedLogs, SharedSettings};
use airmail_log::routed::Routed;
use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogSpec, LogStorage, Origin, ReaderId, Refusal,
    Tag, Trouble,
};
use airmail_model::{
    Durability, Holder, LogId, LogIndex, Mono, NamespaceId, Now, Provisions, Sequence, StorageName,
    Wall,
};
use subjects::{InMemory, OnKept, tiny};

fn fast() -> StorageName {
    StorageName::new("fast").unwrap()
}

/// Has every second log in the second storage, whatever is asked for.
struct Alternating<S> {
    routed: Routed<S>,
}

impl<S: LogStorage> Alternating<S> {
    fn new(first: S, second: S) -> Alternating<S> {
        Alternating {
            routed: Routed::new(first, [(fast(), second)]),
        }
    }
}

/// The name under which a log is asked for: one that a case has chosen stays.
fn name_of(log: LogId, asked: StorageName) -> StorageName {
    if asked.is_first() && log.index.0 % 2 == 1 {
        fast()
    } else {
        asked
    }
}

impl<S: LogStorage> LogStorage for Alternating<S> {
    fn capabilities(&self) -> Capabilities {
        self.routed.capabilities()
    }

    fn submit(&mut self, mut call: Call) {
        match &mut call {
            Call::Open { log, spec, .. } => spec.storage = name_of(*log, spec.storage),
            Call::Delete { log, origin, .. } => {
                origin.storage = name_of(*log, origin.storage);
            }
            _ => {}
        }
        self.routed.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.routed.poll(now, out)
    }

    fn opened(&mut self) {
        self.routed.opened();
    }

    fn close(&mut self, now: Now) {
        self.routed.close(now);
    }

    fn is_closed(&self) -> bool {
        self.routed.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.routed.trouble()
    }

    fn damage(&self) -> u64 {
        self.routed.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.routed.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.routed.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.routed.accept_clock(now);
    }
}

/// Two subjects as one.
struct Both<S> {
    first: S,
    second: S,
}

impl<S: Subject> Subject for Both<S> {
    type Storage = Alternating<S::Storage>;

    fn fresh(&mut self, now: Now) -> Self::Storage {
        Alternating::new(self.first.fresh(now), self.second.fresh(now))
    }

    fn reopen(&mut self, mut storage: Self::Storage, end: End, now: Now) -> Self::Storage {
        if end == End::Clean {
            close(&mut storage, now);
        }
        let [first, second] = storage.routed.into_parts().try_into().ok().unwrap();
        let first = self.first.reopen(first, End::Crash, now);
        Alternating::new(first, self.second.reopen(second, End::Crash, now))
    }

    fn outlives(&self) -> bool {
        self.first.outlives()
    }

    fn busy(&self) -> bool {
        self.first.busy() || self.second.busy()
    }

    fn wait(&mut self) {}
}

fn close(storage: &mut impl LogStorage, mut now: Now) {
    storage.close(now);
    for _ in 0..1_000_000 {
        if storage.is_closed() {
            return;
        }
        let deadline = storage.poll(now, &mut Vec::new());
        now.mono = deadline.map_or(now.mono, |at| now.mono.max(at));
        now.mono = Mono(now.mono.0 + 1000);
    }
    panic!("the storages do not close");
}

mod in_memory {
    use super::*;

    /// Seeds are the subjects' own: no two of them may give equal lives.
    fn both() -> Both<InMemory> {
        let tiny = || InMemory::new(tiny(JournalConfig::memory(0)));
        let (first, second) = (tiny(), tiny().after(1_000));
        Both { first, second }
    }

    airmail_log::conformance!(both());
}

mod kept {
    use super::*;

    fn both() -> Both<OnKept> {
        let tiny = || OnKept::new(tiny(JournalConfig::default()));
        let (first, second) = (tiny(), tiny());
        Both { first, second }
    }

    airmail_log::conformance!(both());
}

const NOW: Now = Now {
    mono: Mono(1_000),
    wall: Wall(1_790_000_000_000_000),
};
const LOG: LogId = LogId {
    namespace: NamespaceId(3),
    lane: airmail_model::Lane::Normal,
    index: LogIndex(0),
};

fn memories() -> Routed<airmail_log::memory::MemoryStorage> {
    let memory = |seed| airmail_log::memory::open(seed, NOW).unwrap();
    Routed::new(memory(1), [(fast(), memory(2))])
}

fn ask(storage: &mut impl LogStorage, call: Call) -> Vec<Completion> {
    storage.submit(call);
    let mut out = Vec::new();
    for _ in 0..100 {
        storage.poll(NOW, &mut out);
    }
    out
}

fn open(storage: StorageName) -> Call {
    Call::Open {
        t: Tag(1),
        log: LOG,
        spec: Box::new(LogSpec {
            durability: Durability::MEMORY,
            storage,
            ..LogSpec::default()
        }),
    }
}

fn is_refused(out: &[Completion], expected: &Refusal) -> bool {
    matches!(out, [Completion::Refused { why, .. }] if why == expected)
}

#[test]
fn what_is_asked_of_a_log_in_a_storage_that_is_missing_is_elsewhere() {
    let mut storage = memories();
    let gone = StorageName::new("gone").unwrap();
    let elsewhere = Refusal::Elsewhere(Holder::default());
    let (t, log) = (Tag(1), LOG);
    for call in [open(gone), Call::Bounds { t, log }, Call::Renew { t, log }] {
        assert!(
            is_refused(&ask(&mut storage, call.clone()), &elsewhere),
            "{call:?}"
        );
    }
    let r = ReaderId(1);
    let read = ask(
        &mut storage,
        Call::Read {
            r,
            log,
            from: Sequence::FIRST,
            scope: Box::default(),
            credit: 1,
        },
    );
    let why = Some(elsewhere);
    assert_eq!(read, [Completion::Ended { r, why }]);
    for call in [Call::Credit { r, bytes: 1 }, Call::Stop { r }] {
        assert_eq!(ask(&mut storage, call), [], "it has ended");
    }
}

#[test]
fn a_log_stays_in_the_storage_that_it_was_opened_in() {
    let mut storage = memories();
    let opened = ask(&mut storage, open(fast()));
    assert!(
        matches!(opened[..], [Completion::Opened { .. }]),
        "{opened:?}"
    );
    let refused = ask(&mut storage, open(StorageName::FIRST));
    assert!(
        matches!(
            refused[..],
            [Completion::Refused {
                why: Refusal::Unsupported(_),
                ..
            }]
        ),
        "{refused:?}"
    );
    let (t, log) = (Tag(1), LOG);
    let bounds = ask(&mut storage, Call::Bounds { t, log });
    assert!(
        matches!(bounds[..], [Completion::Bounds { .. }]),
        "{bounds:?}"
    );
}

#[test]
fn a_deletion_goes_to_the_storage_that_it_names_though_the_log_was_not_opened() {
    let mut storage = memories();
    let delete = |name| Call::Delete {
        t: Tag(1),
        log: LOG,
        as_of: Sequence(5),
        origin: Box::new(Origin {
            storage: name,
            ..Origin::default()
        }),
    };
    let deleted = ask(&mut storage, delete(fast()));
    assert_eq!(deleted, [Completion::Done { t: Tag(1) }]);
    assert!(
        is_refused(&ask(&mut storage, open(fast())), &Refusal::NoLog),
        "its mark is there"
    );
}

/// Shared logs as one, of which the second has to be provisioned for.
fn one_that_provisions() -> Routed<LogsHandle> {
    let handle = |provisions| {
        let settings = SharedSettings {
            provisions,
            ..SharedSettings::default()
        };
        SharedLogs::new(settings).handle()
    };
    Routed::new(handle(false), [(fast(), handle(true))])
}

fn provision(storage: StorageName) -> Call {
    let spec = LogSpec {
        durability: Durability::MEMORY,
        storage,
        ..LogSpec::default()
    };
    Call::Provision {
        t: Tag(1),
        log: LOG,
        logs: 1,
        spec: Box::new(spec),
    }
}

fn provisioned(answers: &[Completion]) -> Provisions {
    match answers {
        [Completion::Provisioned { provisions, .. }] => **provisions,
        other => panic!("{other:?}"),
    }
}

#[test]
fn where_one_storage_provisions_all_can_be_asked_to() {
    let mut storage = one_that_provisions();
    assert!(storage.capabilities().provisions);
    let none = provisioned(&ask(&mut storage, provision(StorageName::FIRST)));
    assert!(none.is_none());
    let withdraw = |storage, provisions| Call::Withdraw {
        t: Tag(1),
        log: LOG,
        logs: 1,
        origin: Box::new(Origin {
            storage,
            provisions,
        }),
    };
    let answer = ask(&mut storage, withdraw(StorageName::FIRST, none));
    assert_eq!(answer, [Completion::Done { t: Tag(1) }]);
    let provisions = provisioned(&ask(&mut storage, provision(fast())));
    assert!(!provisions.is_none());
    let elsewhere = StorageName::new("slow").unwrap();
    let holder = Holder::default();
    let answer = ask(&mut storage, provision(elsewhere));
    assert!(is_refused(&answer, &Refusal::Elsewhere(holder)));
    let answer = ask(&mut storage, withdraw(fast(), provisions));
    assert_eq!(answer, [Completion::Done { t: Tag(1) }]);
}

#[test]
fn what_is_made_beforehand_goes_by_the_name_though_such_a_log_is_elsewhere() {
    let mut storage = one_that_provisions();
    // Another namespace of the same number.
    ask(&mut storage, open(StorageName::FIRST));
    let provisions = provisioned(&ask(&mut storage, provision(fast())));
    assert!(!provisions.is_none());
}
