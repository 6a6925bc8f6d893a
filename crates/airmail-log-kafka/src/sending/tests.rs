//! Claims about appends that are under way.

use super::*;
use crate::producers::RecordFacts;

const EPOCH: u32 = 1;

struct World {
    sending: Sending,
    seen: Producers,
    stamps: BTreeMap<Token, ProducerStamp>,
    token: u64,
    offset: u64,
    floor: Offset,
}

impl World {
    fn new() -> World {
        World {
            sending: Sending::default(),
            seen: Producers::default(),
            stamps: BTreeMap::new(),
            token: 0,
            offset: 0,
            floor: Offset(0),
        }
    }

    fn stamp(epoch: u32, sequence: u64) -> ProducerStamp {
        ProducerStamp {
            id: ProducerId(5),
            epoch: ProducerEpoch(epoch),
            sequence: ProducerSequence(sequence),
        }
    }

    /// Appends a message, if it is admitted.
    fn send(&mut self, epoch: u32, sequence: u64) -> Result<Token, Refusal> {
        self.send_by(epoch, sequence, false)
    }

    fn send_by(&mut self, epoch: u32, sequence: u64, sole: bool) -> Result<Token, Refusal> {
        let stamp = World::stamp(epoch, sequence);
        let proof = self.sending.admit((stamp, sole), &self.seen, Mono(0))?;
        self.token += 1;
        let append = HandedOver {
            token: Token(self.token),
            stamp: Some(stamp),
            messages: 1,
            bytes: 10,
            sent_ms: 0,
            floor: self.floor,
            proof,
        };
        self.stamps.insert(append.token, stamp);
        self.sending.handed_over(Tag(self.token), append, Mono(0));
        self.sending.check();
        Ok(append.token)
    }

    fn report(&mut self, token: Token, is_stored: bool) -> Vec<Result<u64, Refusal>> {
        self.offset += 1;
        let produced = Produced {
            offset: Offset(self.offset),
            appended_ms: 0,
        };
        let result = if is_stored {
            Ok(produced)
        } else {
            Err(Unstored("?".into()))
        };
        if is_stored && !self.seen.holds(&self.stamps[&token], 1) {
            self.see(token);
        }
        assert!(self.sending.report(token, result, Mono(0)));
        self.answers()
    }

    /// The log shows an append.
    fn see(&mut self, token: Token) {
        self.seen.take(&RecordFacts {
            offset: Offset(token.0),
            appended_ms: 0,
            sent_ms: 0,
            stamp: Some(self.stamps[&token]),
            messages: 1,
        });
    }

    fn answers(&mut self) -> Vec<Result<u64, Refusal>> {
        self.answers_at(Mono(0))
    }

    fn answers_at(&mut self, now: Mono) -> Vec<Result<u64, Refusal>> {
        let mut out = Vec::new();
        let seen = (&self.seen, Offset(self.offset + 1));
        self.sending.answer(Durability::OS, seen, now, &mut out);
        self.sending.check();
        let answers = out.into_iter().map(|answer| match answer {
            Completion::Appended { t, .. } => Ok(t.0),
            Completion::Refused { why, .. } => Err(why),
            other => panic!("{other:?}"),
        });
        answers.collect()
    }
}

#[test]
fn an_error_makes_everything_behind_it_unknown_until_a_new_epoch() {
    let mut world = World::new();
    let tokens = [0, 1, 2].map(|n| world.send(EPOCH, n).unwrap());
    // The later one succeeds, and is told first.
    world.see(tokens[0]);
    world.see(tokens[2]);
    assert_eq!(world.report(tokens[2], true), []);
    assert_eq!(world.report(tokens[0], true), [Ok(1)]);
    let unknown = || Err(Refusal::OutcomeUnknown);
    assert_eq!(world.report(tokens[1], false), [unknown(), unknown()]);
    for sequence in [1, 2, 3] {
        assert_eq!(world.send(EPOCH, sequence), Err(Refusal::UnknownProducer));
    }
    let token = world.send(EPOCH + 1, 0).unwrap();
    assert_eq!(world.report(token, true), [Ok(4)]);
    assert!(world.send(EPOCH, 1).is_err(), "given up");
}

#[test]
fn below_an_epoch_that_is_over_the_older_ones_are_fenced() {
    let mut world = World::new();
    let token = world.send(7, 0).unwrap();
    assert_eq!(world.report(token, false), [Err(Refusal::OutcomeUnknown)]);
    assert_eq!(world.send(7, 1), Err(Refusal::UnknownProducer));
    assert_eq!(world.send(6, 0), Err(Refusal::Fenced));
    assert!(world.send(8, 0).is_ok());
}

#[test]
fn behind_a_refused_batch_everything_is_out_of_order() {
    let mut world = World::new();
    // Admitted, and then refused before it was handed over.
    assert_eq!(
        world
            .sending
            .admit((World::stamp(EPOCH, 7), false), &world.seen, Mono(0)),
        Ok(Proof::Reading)
    );
    let out_of_order = Refusal::OutOfOrder {
        expected: ProducerSequence(7),
        found: ProducerSequence(8),
    };
    assert_eq!(world.send(EPOCH, 8), Err(out_of_order));
    assert!(world.send(EPOCH, 7).is_ok());
    assert!(world.send(EPOCH, 8).is_ok());
    assert!(world.send(EPOCH, 7).is_ok(), "a retry may come at any time");
}

#[test]
fn what_another_node_has_stored_meanwhile_is_gone_on_from() {
    let mut world = World::new();
    assert!(world.send(EPOCH, 0).is_ok());
    assert!(world.send(EPOCH, 5).is_err());
    let facts = RecordFacts {
        offset: Offset(9),
        appended_ms: 0,
        sent_ms: 0,
        stamp: Some(World::stamp(EPOCH, 4)),
        messages: 1,
    };
    world.seen.take(&facts);
    assert!(world.send(EPOCH, 5).is_ok());
    assert!(world.send(EPOCH, 6).is_ok());
}

#[test]
fn an_older_epoch_is_fenced_by_what_was_sent_and_by_what_was_read() {
    let mut world = World::new();
    assert!(world.send(2, 0).is_ok());
    assert_eq!(world.send(1, 0), Err(Refusal::Fenced));
    let facts = RecordFacts {
        offset: Offset(9),
        appended_ms: 0,
        sent_ms: 0,
        stamp: Some(World::stamp(3, 0)),
        messages: 1,
    };
    world.seen.take(&facts);
    assert_eq!(world.send(2, 1), Err(Refusal::Fenced));
}

#[test]
fn an_offset_that_goes_back_and_a_straggler_acknowledge_nothing() {
    let mut world = World::new();
    let tokens = [0, 1].map(|n| world.send(EPOCH, n).unwrap());
    assert_eq!(world.report(tokens[0], true), [Ok(1)]);
    world.offset = 0;
    assert_eq!(
        world.report(tokens[1], true),
        [Err(Refusal::OutcomeUnknown)]
    );
    let mut world = World::new();
    let token = world.send(EPOCH, 0).unwrap();
    let late = Produced {
        offset: Offset(1),
        appended_ms: STALE_MS + 1,
    };
    world.offset = 1;
    assert!(world.sending.report(token, Ok(late), Mono(0)));
    assert_eq!(world.answers(), [Err(Refusal::OutcomeUnknown)]);
}

#[test]
fn a_batch_that_is_left_out_for_its_successor_is_not_acknowledged() {
    let mut world = World::new();
    let token = world.send(EPOCH, 0).unwrap();
    // Another node has stored the next one alone.
    let other = RecordFacts {
        offset: Offset(1),
        appended_ms: 0,
        sent_ms: 0,
        stamp: Some(World::stamp(EPOCH, 1)),
        messages: 1,
    };
    world.seen.take(&other);
    world.offset = 1;
    assert_eq!(world.report(token, true), [Err(Refusal::OutcomeUnknown)]);
    assert_eq!(world.send(EPOCH, 1), Err(Refusal::UnknownProducer));
}

#[test]
fn a_batch_is_acknowledged_when_the_log_shows_it_or_is_unknown_when_it_does_not() {
    let mut world = World::new();
    let tokens = [0, 1].map(|n| world.send(EPOCH, n).unwrap());
    let stored = |offset| Produced {
        offset: Offset(offset),
        appended_ms: 0,
    };
    for (token, offset) in [(tokens[0], 1), (tokens[1], 2)] {
        assert!(world.sending.report(token, Ok(stored(offset)), Mono(0)));
    }
    assert_eq!(world.answers(), []);
    world.see(tokens[0]);
    world.offset = 1;
    assert_eq!(world.answers(), [Ok(1)]);
    let late = Mono(0).plus(PROOF);
    assert_eq!(world.sending.deadline(), Some(late));
    assert_eq!(world.answers_at(late), [Err(Refusal::OutcomeUnknown)]);
}

/// Appends messages of an epoch, and whether each was acknowledged by its report alone.
fn by_report(world: &mut World, sequences: &[(u64, bool)]) -> Vec<bool> {
    let mut acknowledged = Vec::new();
    for (sequence, sole) in sequences {
        let token = world.send_by(EPOCH, *sequence, *sole).unwrap();
        world.offset += 1;
        let stored = Produced {
            offset: Offset(world.offset),
            appended_ms: 0,
        };
        assert!(world.sending.report(token, Ok(stored), Mono(0)));
        let mut out = Vec::new();
        let seen = (&world.seen, Offset(0));
        world
            .sending
            .answer(Durability::OS, seen, Mono(0), &mut out);
        acknowledged.push(!out.is_empty());
        world.see(token);
        world.answers();
    }
    acknowledged
}

#[test]
fn a_whole_epoch_is_acknowledged_by_reports() {
    let sole = [0, 1, 2].map(|sequence| (sequence, true));
    assert_eq!(by_report(&mut World::new(), &sole), [true, true, true]);
}

#[test]
fn an_epoch_that_does_not_begin_here_is_not_whole() {
    let sole = [(3, true), (4, true)];
    assert_eq!(by_report(&mut World::new(), &sole), [false, false]);
}

#[test]
fn from_one_that_may_have_gone_elsewhere_an_epoch_is_not_whole() {
    let mixed = [(0, true), (1, false), (2, true), (3, true)];
    let acknowledged = by_report(&mut World::new(), &mixed);
    assert_eq!(acknowledged, [true, false, false, false]);
    let again = [(0, true), (1, true), (0, true), (1, true), (2, true)];
    let acknowledged = by_report(&mut World::new(), &again);
    assert_eq!(acknowledged, [true, true, false, false, false]);
}

#[test]
fn one_that_may_have_gone_elsewhere_counts_though_it_is_refused() {
    let mut world = World::new();
    assert_eq!(by_report(&mut world, &[(0, true)]), [true]);
    assert!(
        world.send_by(EPOCH, 2, true).is_err(),
        "behind one that was refused"
    );
    assert_eq!(by_report(&mut world, &[(1, true)]), [true]);
    assert!(world.send_by(EPOCH, 3, false).is_err());
    assert_eq!(by_report(&mut world, &[(2, true)]), [false]);
}

#[test]
fn a_new_epoch_is_whole_again() {
    let mut world = World::new();
    assert_eq!(by_report(&mut world, &[(0, false)]), [false]);
    let token = world.send_by(EPOCH + 1, 0, true).unwrap();
    assert!(world.sending.pending.back().unwrap().proof == Proof::Report);
    assert_eq!(world.report(token, true), [Ok(2)]);
}

#[test]
fn an_offset_that_was_read_before_acknowledges_nothing() {
    let mut world = World::new();
    world.floor = Offset(5);
    let token = world.send(EPOCH, 0).unwrap();
    world.offset = 3;
    assert_eq!(world.report(token, true), [Err(Refusal::OutcomeUnknown)]);
    let token = world.send(EPOCH + 1, 0).unwrap();
    assert_eq!(world.report(token, true), [Ok(2)]);
}

#[test]
fn without_a_report_the_outcome_is_unknown_in_time_and_the_record_is_under_way_until_there_is_one()
{
    let mut world = World::new();
    let tokens = [0, 1].map(|n| world.send(EPOCH, n).unwrap());
    let late = Mono(0).plus(LIMIT);
    assert_eq!(world.sending.deadline(), Some(late));
    assert_eq!(world.answers(), []);
    let unknown = Err(Refusal::OutcomeUnknown);
    assert_eq!(world.answers_at(late), [unknown.clone(), unknown]);
    assert_eq!(
        (world.sending.deadline(), world.sending.bytes()),
        (None, 20)
    );
    assert_eq!(world.send(EPOCH, 2), Err(Refusal::UnknownProducer));
    assert_eq!(world.report(tokens[0], true), []);
    assert_eq!(world.report(tokens[1], false), []);
    assert_eq!(world.sending.bytes(), 0);
}

#[test]
fn a_log_without_reports_for_a_second_is_slow() {
    let mut world = World::new();
    assert!(!world.sending.is_slow(Mono::NEVER));
    let token = world.send(EPOCH, 0).unwrap();
    assert!(!world.sending.is_slow(Mono(999_999_999)));
    assert!(world.sending.is_slow(Mono(1_000_000_000)));
    world.report(token, true);
    assert!(!world.sending.is_slow(Mono::NEVER));
}
