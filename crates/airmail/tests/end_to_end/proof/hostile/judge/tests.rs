//! Tests of the judge: it finds each fault. Each history here is short, and wrong in one way.

use super::{Kept, judge};
use crate::proof::hostile::history::{Answer, Begin, Event, Hole, Place};
use crate::proof::stamp::Stamp;
use airmail_client::{ErrorCode, GapReason};
use airmail_model::{Lane, LogId, LogIndex, NamespaceId};
use std::collections::{BTreeMap, BTreeSet};

const LOG: LogId = LogId {
    namespace: NamespaceId(1),
    lane: Lane::Normal,
    index: LogIndex(0),
};

/// A history being written, of one publisher, topic and log.
#[derive(Default)]
struct Story {
    events: Vec<Event>,
    kept: Kept,
}

fn stamp(number: u64) -> Stamp {
    Stamp {
        publisher: 0,
        topic: 0,
        number,
        bytes: 64,
    }
}

const fn place(life: u64, number: u64) -> Place {
    Place { life, number }
}

fn loss(first: u64, last: u64) -> Hole {
    Hole {
        first,
        last,
        reason: GapReason::Loss,
    }
}

impl Story {
    fn with(mut self, event: Event) -> Story {
        self.events.push(event);
        self
    }

    fn began(self, from: Begin) -> Story {
        self.with(Event::Began {
            reader: 0,
            topic: 0,
            from,
        })
    }

    fn invoked(self, number: u64) -> Story {
        self.with(Event::Invoked(stamp(number)))
    }

    fn answered(self, number: u64, answer: Answer) -> Story {
        self.with(Event::Answered(stamp(number), answer))
    }

    /// Asked for and stored, under the number at which it stands.
    fn stored(self, number: u64, at: u64) -> Story {
        let answer = Answer::Stored(Some((LOG, at)));
        self.invoked(number).answered(number, answer)
    }

    fn given(self, number: u64, place: Place) -> Story {
        self.with(Event::Given {
            reader: 0,
            place,
            stamp: stamp(number),
        })
    }

    fn told(self, gap: Hole) -> Story {
        self.with(Event::Told { reader: 0, gap })
    }

    fn copied(self) -> Story {
        self.with(Event::Copied)
    }

    /// Puts the last copy in the directory's place.
    fn restored(self) -> Story {
        let copied = self.events.iter().position(|event| *event == Event::Copied);
        let copied = copied.unwrap();
        self.with(Event::Restored { copied })
    }

    fn keeps(mut self, number: u64, place: Place) -> Story {
        self.kept.messages.push((place, stamp(number)));
        self
    }

    fn keeps_gap(mut self, gap: Hole) -> Story {
        self.kept.gaps.push(gap);
        self
    }

    fn verdict(self) -> Vec<String> {
        judge(&self.events, &BTreeMap::from([(0, self.kept)]))
    }

    #[track_caller]
    fn holds(self) {
        assert_eq!(self.verdict(), Vec::<String>::new());
    }

    #[track_caller]
    fn fails_with(self, why: &str) {
        let wrong = self.verdict();
        assert!(wrong.iter().any(|wrong| wrong.contains(why)), "{wrong:?}");
    }
}

/// Three messages, published, stored and kept.
fn three() -> Story {
    let story = Story::default().began(Begin::Earliest);
    let story = story.stored(0, 1).stored(1, 2).stored(2, 3);
    let story = story.keeps(0, place(1, 1)).keeps(1, place(1, 2));
    story.keeps(2, place(1, 3))
}

/// Two messages and a copy, two more that were seen, and the copy put back.
fn restored() -> Story {
    let story = Story::default().began(Begin::Earliest);
    let story = story.stored(0, 1).stored(1, 2);
    let story = story.given(0, place(1, 1)).given(1, place(1, 2)).copied();
    let story = story.stored(2, 3).stored(3, 4).given(2, place(1, 3));
    let story = story.given(3, place(1, 4)).restored();
    story.keeps(0, place(1, 1)).keeps(1, place(1, 2))
}

#[test]
fn a_history_in_which_all_is_stored_and_read_is_right() {
    let story = three().given(0, place(1, 1)).given(1, place(1, 2));
    story.given(2, place(1, 3)).holds();
}

#[test]
fn a_lost_message_is_found() {
    let mut lost = three();
    lost.kept.messages.remove(1);
    let lost = lost.given(0, place(1, 1)).given(2, place(1, 3));
    lost.fails_with("acknowledged as Some(2) and lost");
}

#[test]
fn a_silent_hole_is_found() {
    let hole = three().given(0, place(1, 1)).given(2, place(1, 3));
    hole.fails_with("lacks 1 messages from number 2 to 2");
}

#[test]
fn a_message_that_comes_or_stands_twice_is_found() {
    let story = three().given(0, place(1, 1)).given(1, place(1, 2));
    let twice = story.given(2, place(1, 3)).given(2, place(1, 4));
    twice.fails_with("came twice");
    three()
        .keeps(1, place(1, 4))
        .fails_with("for the second time");
}

#[test]
fn messages_out_of_order_are_found() {
    let swapped = three().given(1, place(1, 2)).given(0, place(1, 1));
    swapped.given(2, place(1, 3)).fails_with("came after");
    let reordered = three().given(1, place(1, 1)).given(0, place(1, 2));
    reordered.fails_with("came out of order");
    let mut kept = three();
    kept.kept.messages.swap(0, 2);
    kept.fails_with("after a later one");
}

#[test]
fn an_ack_for_another_number_or_for_one_in_use_is_found() {
    let story = Story::default().stored(0, 1).keeps(0, place(1, 2));
    story.fails_with("acknowledged as number Some(1)");
    let story = Story::default().stored(0, 1).stored(1, 1);
    story.fails_with("acknowledged twice");
}

#[test]
fn a_failure_without_cause_and_an_answer_that_never_came_are_found() {
    let failed = |code| {
        Story::default()
            .invoked(0)
            .answered(0, Answer::Failed(code))
    };
    failed(ErrorCode::OutcomeUnknown).fails_with("OUTCOME_UNKNOWN");
    failed(ErrorCode::Overloaded).fails_with("OVERLOADED");
    Story::default().invoked(0).fails_with("no answer");
}

#[test]
fn what_was_under_way_when_the_directory_was_taken_may_be_unknown_and_nothing_else() {
    let around = |code| {
        let story = Story::default().invoked(0).with(Event::Taken);
        story.answered(0, Answer::Failed(code)).with(Event::Back)
    };
    around(ErrorCode::OutcomeUnknown).holds();
    around(ErrorCode::Overloaded).fails_with("OVERLOADED");
    let later = Story::default().with(Event::Taken).with(Event::Back);
    let later = later.invoked(0);
    let later = later.answered(0, Answer::Failed(ErrorCode::OutcomeUnknown));
    later.fails_with("OUTCOME_UNKNOWN");
}

#[test]
fn what_was_refused_is_not_there_nor_read() {
    let refused = Answer::Failed(ErrorCode::StorageFull);
    let story = Story::default().invoked(0).answered(0, refused.clone());
    story.keeps(0, place(1, 1)).fails_with("keeps at");
    let story = Story::default().began(Begin::Earliest).invoked(0);
    let story = story.answered(0, refused).given(0, place(1, 1));
    story.fails_with("was refused, and came");
}

#[test]
fn what_was_never_published_and_what_came_too_early_are_found() {
    let story = Story::default().keeps(7, place(1, 1));
    story.fails_with("never published");
    let story = Story::default().given(0, place(1, 1)).stored(0, 1);
    story
        .keeps(0, place(1, 1))
        .fails_with("before it was published");
}

#[test]
fn a_gap_where_nothing_was_lost_is_found() {
    three().told(loss(2, 2)).fails_with("nothing was lost");
    let reason = GapReason::Retention;
    let gap = Hole {
        reason,
        ..loss(1, 1)
    };
    three().told(gap).fails_with("nothing was too old");
}

#[test]
fn a_restore_may_cost_what_came_after_the_copy_and_readers_are_told() {
    let told = restored().told(loss(3, u64::MAX));
    let again = told.stored(4, 3).keeps(4, place(2, 3));
    again.given(4, place(2, 3)).holds();
}

#[test]
fn what_a_copy_has_of_what_came_while_it_was_made_is_not_gone() {
    let story = Story::default().began(Begin::Earliest).stored(0, 1);
    let story = story.copied().stored(1, 2).given(0, place(1, 1));
    let story = story.given(1, place(1, 2)).restored();
    let story = story.told(loss(3, u64::MAX)).given(0, place(2, 1));
    let story = story.given(1, place(2, 2)).stored(2, 3);
    let story = story.given(2, place(2, 3));
    let story = story.keeps(0, place(3, 1)).keeps(1, place(3, 2));
    story.keeps(2, place(3, 3)).holds();
}

#[test]
fn a_reader_that_is_not_told_of_a_restore_is_found() {
    let silent = restored().stored(4, 3).stored(5, 4).stored(6, 5);
    let silent = silent.keeps(4, place(1, 3)).keeps(5, place(1, 4));
    let silent = silent.keeps(6, place(1, 5)).given(6, place(1, 5));
    let wrong = silent.verdict();
    let found = |why: &str| wrong.iter().any(|wrong| wrong.contains(why));
    assert!(found("was not told that"), "{wrong:?}");
    assert!(found("lacks 2 messages from number 3 to 4"), "{wrong:?}");
    assert!(found("given was"), "{wrong:?}");
}

#[test]
fn what_is_published_after_a_restore_is_excused_by_no_gap() {
    let told = restored().stored(4, 3).told(loss(3, u64::MAX));
    let story = told.keeps(4, place(2, 3));
    story.fails_with("lacks 1 messages from number 3 to 3");
}

#[test]
fn a_restore_costs_nothing_that_was_there_before_the_copy() {
    let mut story = restored();
    story.kept.messages.pop();
    story.fails_with("acknowledged as Some(2) and lost");
}

#[test]
fn numbers_of_one_life_that_are_used_again_after_a_restore_are_found() {
    let again = restored().told(loss(3, 4)).stored(4, 3);
    let again = again.keeps(4, place(1, 3)).given(4, place(1, 3));
    again.fails_with("and was Stamp");
}

#[test]
fn a_publisher_that_still_fails_after_its_first_ack_since_a_restore_is_found() {
    let unknown = || Answer::Failed(ErrorCode::OutcomeUnknown);
    let at_once = restored().invoked(4).answered(4, unknown());
    at_once.told(loss(3, 4)).holds();
    let later = restored().told(loss(3, 4)).stored(4, 5);
    let later = later.keeps(4, place(2, 5)).given(4, place(2, 5));
    later
        .invoked(5)
        .answered(5, unknown())
        .fails_with("OUTCOME_UNKNOWN");
}

#[test]
fn what_was_in_a_removed_file_alone_is_told_to_readers_and_in_history() {
    let removed = || {
        let mut story = three().given(0, place(1, 1));
        story.kept.messages.truncate(1);
        let lost = BTreeSet::from([stamp(1), stamp(2)]);
        story.with(Event::Removed(lost))
    };
    removed().keeps_gap(loss(2, 3)).told(loss(2, 3)).holds();
    removed()
        .told(loss(2, 3))
        .fails_with("history does not tell");
    let silent = removed().keeps_gap(loss(2, 3));
    silent.fails_with("lacks 2 messages from number 2 to 3");
}

#[test]
fn a_reader_from_the_end_is_owed_what_is_published_from_then_on() {
    let story = Story::default().stored(0, 1).began(Begin::Latest);
    let story = story.stored(1, 2).keeps(0, place(1, 1));
    let story = story.keeps(1, place(1, 2));
    story.fails_with("lacks 1 messages from number 2 to 2");
}
