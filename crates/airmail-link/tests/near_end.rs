//! The near end of a link, message by message: what it sends, and what it makes of what comes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_link::{Event, FromHost, LinkLimits, LinkStorage, Port, ToHost};
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::memory;
use airmail_log::{Bounds, Call, Completion, LogStorage, ReaderId, Refusal, Scope, Stored, Tag};
use airmail_model::{
    AppendTime, Durability, Extent, Incarnation, LogId, Mono, Now, Sequence, Wall,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

const NOW: Now = Now {
    mono: Mono(1),
    wall: Wall(1),
};

/// The other end of a port: what it will receive, and what it has sent.
#[derive(Default)]
struct Script {
    coming: VecDeque<Event<FromHost>>,
    sent: Vec<ToHost>,
}

struct Scripted(Arc<Mutex<Script>>);

impl Port for Scripted {
    type Out = ToHost;
    type In = FromHost;

    fn send(&mut self, message: ToHost) -> Result<(), ToHost> {
        self.0.lock().sent.push(message);
        Ok(())
    }

    fn receive(&mut self) -> Option<Event<FromHost>> {
        self.0.lock().coming.pop_front()
    }

    fn flush(&mut self) {}
}

/// A near end, and the hand that plays the far end.
struct Near {
    link: LinkStorage<Scripted>,
    script: Arc<Mutex<Script>>,
    generation: u64,
}

impl Near {
    /// A near end whose first connection has begun, and which has opened a log there.
    fn open() -> Near {
        let script = Arc::<Mutex<Script>>::default();
        let capabilities = memory::open(1, NOW).unwrap().capabilities();
        let port = Scripted(Arc::clone(&script));
        let mut near = Near {
            link: LinkStorage::new(port, capabilities, LinkLimits::default()),
            script,
            generation: 0,
        };
        near.up();
        let spec = Box::new(spec(Durability::FSYNC));
        near.link.submit(Call::Open {
            t: Tag(1),
            log: log(0),
            spec,
        });
        near.poll();
        let told = near.answer_opens();
        assert!(matches!(told[..], [Completion::Opened { t: Tag(1), .. }]));
        near
    }

    fn poll(&mut self) -> Vec<Completion> {
        let mut told = Vec::new();
        self.link.poll(NOW, &mut told);
        told
    }

    fn comes(&mut self, event: Event<FromHost>) -> Vec<Completion> {
        self.script.lock().coming.push_back(event);
        self.poll()
    }

    fn up(&mut self) -> Vec<Completion> {
        self.generation += 1;
        self.comes(Event::Up)
    }

    fn says(&mut self, completion: Completion) -> Vec<Completion> {
        let generation = self.generation;
        self.comes(Event::Message(FromHost::Told {
            generation,
            completion,
        }))
    }

    /// Calls of the present generation that were sent since the last time.
    fn sent(&mut self) -> Vec<Call> {
        let wanted = self.generation;
        let sent = std::mem::take(&mut self.script.lock().sent);
        let calls = sent.into_iter().filter_map(|message| match message {
            ToHost::Call { generation, call }
            | ToHost::Resume {
                generation, call, ..
            } => {
                assert_eq!(generation, wanted);
                Some(call)
            }
            ToHost::Begin { .. } | ToHost::Closing { .. } | ToHost::Below { .. } => None,
        });
        calls.collect()
    }

    /// Answers each opening that was sent.
    fn answer_opens(&mut self) -> Vec<Completion> {
        let mut told = Vec::new();
        for call in self.sent() {
            if let Call::Open { t, .. } = call {
                let bounds = bounds(1);
                told.extend(self.says(Completion::Opened { t, bounds }));
            }
        }
        told
    }

    /// Cuts the connection and makes another, over which the log is open again.
    fn reconnect(&mut self) {
        assert_eq!(self.comes(Event::Cut), [Completion::Lost { log: log(0) }]);
        self.up();
        let gained = self.answer_opens();
        assert!(
            matches!(gained[..], [Completion::Gained { .. }]),
            "{gained:?}"
        );
    }

    /// Starts reader 9, and gives the credit and the reader under which the far end knows it.
    fn read(&mut self, from: u64, credit: u32) -> ReaderId {
        self.link.submit(Call::Read {
            r: ReaderId(9),
            log: log(0),
            from: Sequence(from),
            scope: Box::new(Scope::default()),
            credit,
        });
        self.poll();
        self.started(from, credit)
    }

    /// The run that was just started, which has to be from there, with this credit.
    fn started(&mut self, from: u64, credit: u32) -> ReaderId {
        let sent = self.sent();
        let [
            Call::Read {
                r,
                from: is,
                credit: given,
                ..
            },
        ] = sent[..]
        else {
            panic!("{sent:?} in place of one reader");
        };
        assert_eq!((is, given), (Sequence(from), credit));
        r
    }

    /// The far end gives numbers of a run, behind `previous`.
    fn gives(&mut self, r: ReaderId, previous: u64, first: u64, last: u64) -> Vec<Completion> {
        let generation = self.generation;
        let stored = stored(first, last);
        self.comes(Event::Message(FromHost::Range {
            generation,
            previous: Sequence(previous),
            completion: Completion::Batch { r, stored },
        }))
    }
}

fn bounds(next: u64) -> Bounds {
    Bounds {
        first: Sequence::FIRST,
        next: Sequence(next),
        reach: Sequence(next),
        incarnation: Incarnation(7),
        first_time: None,
        bytes: 0,
        sealed: None,
    }
}

fn extent(first: u64, last: u64) -> Extent {
    Extent {
        first: Sequence(first),
        last: Sequence(last),
    }
}

/// A batch whose records have their numbers as payloads.
fn stored(first: u64, last: u64) -> Stored {
    let payloads: Vec<String> = (first..=last).map(|n| n.to_string()).collect();
    let records: Vec<_> = payloads.iter().map(|text| ("a", text.as_str())).collect();
    Stored {
        base: Sequence(first),
        extent: extent(first, last),
        appended: AppendTime(1),
        batch: Maker::new(log(0)).batch(&records),
    }
}

fn size(first: u64, last: u64) -> u32 {
    u32::try_from(stored(first, last).batch.bytes().len()).unwrap()
}

/// Extents of the batches that were told, with their payloads.
fn batches(told: &[Completion]) -> Vec<(Extent, Vec<String>)> {
    let batches = told.iter().map(|completion| match completion {
        Completion::Batch {
            r: ReaderId(9),
            stored,
        } => {
            let payloads = stored.batch.iter();
            let payloads = payloads.map(|of| String::from_utf8(of.payload.to_vec()).unwrap());
            (stored.extent, payloads.collect())
        }
        other => panic!("{other:?} in place of a batch"),
    });
    batches.collect()
}

fn append(near: &mut Near, t: u64, maker: &Maker) -> Tag {
    append_more(near, t, maker);
    the_append(near)
}

fn append_more(near: &mut Near, t: u64, maker: &Maker) {
    let batch = maker.batch(&[("a", "x")]);
    let map = batch.map_epoch();
    near.link.submit(Call::Append {
        t: Tag(t),
        log: log(0),
        map,
        batch,
        sole: false,
    });
    near.poll();
}

/// The link's tag of the append that was just sent.
fn the_append(near: &mut Near) -> Tag {
    let sent = near.sent();
    let [Call::Append { t, .. }] = sent[..] else {
        panic!("{sent:?} in place of one append");
    };
    t
}

#[test]
fn a_hole_is_read_again_from_where_the_reader_stands() {
    let mut near = Near::open();
    let run = near.read(1, 10_000);
    assert_eq!(batches(&near.gives(run, 0, 1, 2)).len(), 1);
    assert_eq!(near.gives(run, 4, 5, 6), []);
    let again = near.started(3, 10_000 - size(1, 2));
    assert_eq!(near.gives(run, 2, 3, 4), [], "of the run before");
    let told = near.gives(again, 2, 3, 4);
    assert_eq!(
        batches(&told),
        [(extent(3, 4), vec!["3".into(), "4".into()])]
    );
}

#[test]
fn a_mark_beyond_a_hole_is_not_told() {
    let mut near = Near::open();
    let r = near.read(1, 10_000);
    let next = Sequence(3);
    assert_eq!(near.says(Completion::Tail { r, next }), []);
    near.started(1, 10_000);
}

#[test]
fn what_was_told_is_cut_off_or_left_out() {
    let mut near = Near::open();
    let run = near.read(1, 10_000);
    near.gives(run, 0, 1, 4);
    assert_eq!(near.gives(run, 1, 2, 3), []);
    let told = near.gives(run, 2, 3, 6);
    assert_eq!(
        batches(&told),
        [(extent(5, 6), vec!["5".into(), "6".into()])]
    );
}

#[test]
fn a_reader_is_resumed_with_the_credit_that_is_left() {
    let mut near = Near::open();
    let run = near.read(1, 1_000);
    near.gives(run, 0, 1, 2);
    near.reconnect();
    let run = near.started(3, 1_000 - size(1, 2));
    near.gives(run, 2, 3, 200);
    near.reconnect();
    // Overdrawn: what is paid of that is not passed on.
    let run = near.started(201, 0);
    let debt = size(1, 2) + size(3, 200) - 1_000;
    for (bytes, passed) in [(debt - 1, None), (11, Some(10))] {
        let r = ReaderId(9);
        near.link.submit(Call::Credit { r, bytes });
        near.poll();
        let expected = passed.map(|bytes| Call::Credit { r: run, bytes });
        assert_eq!(near.sent(), Vec::from_iter(expected));
    }
}

#[test]
fn what_comes_late_of_an_older_generation_changes_nothing() {
    let mut near = Near::open();
    let run = near.read(1, 1_000);
    near.reconnect();
    near.started(1, 1_000);
    let late = |completion| {
        let generation = 1;
        Event::Message(FromHost::Told {
            generation,
            completion,
        })
    };
    assert_eq!(near.comes(late(Completion::Lost { log: log(0) })), []);
    let ended = Completion::Ended { r: run, why: None };
    assert_eq!(near.comes(late(ended)), []);
}

#[test]
fn an_append_without_a_producer_that_was_sent_is_unknown_after_a_cut() {
    let mut near = Near::open();
    append(&mut near, 2, &Maker::new(log(0)));
    let told = near.comes(Event::Cut);
    let t = Tag(2);
    let why = Refusal::OutcomeUnknown;
    assert!(told.contains(&Completion::Refused { t, why }), "{told:?}");
    near.up();
    near.answer_opens();
    assert_eq!(near.sent(), [], "it is not sent again");
}

#[test]
fn a_refusal_is_believed_at_the_first_attempt_only() {
    let busy = Refusal::Busy {
        retry_after: Duration::from_secs(1),
    };
    for (is_cut, why) in [(false, busy.clone()), (true, Refusal::OutcomeUnknown)] {
        let mut near = Near::open();
        let mut t = append(&mut near, 2, &Maker::of(log(0), 5, 1));
        if is_cut {
            near.reconnect();
            t = the_append(&mut near);
        }
        let refused = Completion::Refused {
            t,
            why: busy.clone(),
        };
        let t = Tag(2);
        assert_eq!(near.says(refused), [Completion::Refused { t, why }]);
    }
}

#[test]
fn appends_of_a_log_are_answered_in_the_order_of_the_calls() {
    let mut near = Near::open();
    append(&mut near, 2, &Maker::of(log(0), 5, 1));
    append(&mut near, 3, &Maker::new(log(0)));
    let told = near.comes(Event::Cut);
    let is_refused = |of: &Completion| matches!(of, Completion::Refused { .. });
    assert!(!told.iter().any(is_refused), "{told:?}");
    near.up();
    near.answer_opens();
    let t = the_append(&mut near);
    let told = near.says(Completion::Appended {
        t,
        extent: extent(1, 1),
        at: AppendTime(1),
        held: Durability::FSYNC,
        duplicate: true,
        exact: true,
    });
    let tags: Vec<_> = told.iter().map(Completion::tag).collect();
    assert_eq!(tags, [Some(Tag(2)), Some(Tag(3))]);
}

#[test]
fn what_is_not_answered_is_asked_again_in_the_order_of_the_calls() {
    let mut near = Near::open();
    let id = log(0);
    let before = Sequence(2);
    append(&mut near, 2, &Maker::of(id, 5, 1));
    near.link.submit(Call::Trim {
        t: Tag(3),
        log: id,
        before,
    });
    append_more(&mut near, 4, &Maker::of(id, 5, 1).at(1));
    assert_eq!(near.sent().len(), 2);
    near.reconnect();
    let sent = near.sent();
    let tags: Vec<_> = sent.iter().filter_map(Call::tag).collect();
    assert_eq!(tags.len(), 3, "{sent:?}");
    assert!(tags.is_sorted(), "{sent:?}");
    assert!(matches!(sent[1], Call::Trim { .. }), "{sent:?}");
}

#[test]
fn a_log_that_is_gone_at_the_new_connection_stays_lost() {
    let mut near = Near::open();
    near.comes(Event::Cut);
    near.up();
    let sent = near.sent();
    let [Call::Open { t, log: of, .. }] = sent[..] else {
        panic!("{sent:?} in place of one opening");
    };
    let id: LogId = log(0);
    assert_eq!(of, id);
    let why = Refusal::NoLog;
    assert_eq!(near.says(Completion::Refused { t, why }), []);
}
