//! Ack futures give the right result: through splits, renumbering, partial failures, and when they are
//! dropped.

use super::*;
use airmail_model::frame::Ack;
use airmail_model::{AppendTime, Durability, ErrorCode, Extent, LogId, Sequence};
use std::task::{Context, Poll};

fn stored(tickets: &[u64], first: u64) -> Settled {
    Settled {
        tickets: tickets.iter().copied().map(Ticket).collect(),
        log: LogId::default(),
        result: Ok(Ack {
            extent: Extent::starting_at(Sequence(first), tickets.len() as u32),
            appended: AppendTime(1),
            held: Durability::FSYNC,
            duplicate: false,
            exact: true,
        }),
    }
}

fn failed(tickets: &[u64]) -> Settled {
    let tickets = tickets.iter().copied().map(Ticket).collect();
    Settled {
        tickets,
        log: LogId::default(),
        result: Err(Error::new(ErrorCode::OutcomeUnknown)),
    }
}

/// Gives an ack future's number in the log; `Some(Err)` if its message failed, `None` if nothing is
/// known.
fn result(ack: &(Arc<CompletionPage>, u64)) -> Option<Result<u64, ErrorCode>> {
    let context = Context::from_waker(Waker::noop());
    match ack.0.poll(ack.1, &context) {
        Poll::Ready(known) => Some(known.map(|at| at.sequence.0).map_err(|e| e.code())),
        Poll::Pending => None,
    }
}

#[test]
fn each_ack_future_tells_its_own_number_across_pages_batches_and_order_of_answers() {
    let mut completions = Completions::default();
    let acks: Vec<_> = (0..600).map(|_| completions.add()).collect();
    // Two logs' messages mixed, and the later half of one answered first.
    let even: Vec<u64> = (0..600).step_by(2).collect();
    let odd: Vec<u64> = (1..600).step_by(2).collect();
    completions.settle(&stored(&odd[150..], 5_000));
    completions.settle(&stored(&even, 10));
    assert_eq!(result(&acks[1]), None);
    completions.settle(&stored(&odd[..150], 4_000));
    for (at, ack) in acks.iter().enumerate() {
        let half = at as u64 / 2;
        let number = match (at % 2, half) {
            (0, _) => 10 + half,
            (_, ..150) => 4_000 + half,
            _ => 5_000 + half - 150,
        };
        assert_eq!(result(ack), Some(Ok(number)), "{at}");
    }
    completions.flush();
    assert!(completions.pending.is_empty());
}

#[test]
fn a_failure_in_the_middle_is_told_to_those_concerned_only() {
    let mut completions = Completions::default();
    let acks: Vec<_> = (0..9).map(|_| completions.add()).collect();
    completions.settle(&failed(&[3, 4, 5]));
    // What was behind was renumbered and is stored in other batches than it was put in first.
    completions.settle(&stored(&[0, 1, 2, 6], 1));
    completions.settle(&stored(&[7, 8], 9));
    let unknown = Some(Err(ErrorCode::OutcomeUnknown));
    let ok = |number| Some(Ok(number));
    let all: Vec<_> = acks.iter().map(result).collect();
    let (one, two) = ([ok(1), ok(2), ok(3)], [ok(4), ok(9), ok(10)]);
    assert_eq!(all[..3], one);
    assert_eq!(all[3..6], [unknown, unknown, unknown]);
    assert_eq!(all[6..], two);
}

#[test]
fn a_group_counts_what_was_stored_and_what_failed_and_names_the_first_reason() {
    let mut completions = Completions::default();
    let before = completions.add();
    let group = completions.add_group(5);
    let after = completions.add();
    let context = Context::from_waker(Waker::noop());
    completions.settle(&stored(&[0, 1, 2], 1));
    completions.fail(&[Ticket(3)], &Error::new(ErrorCode::MessageTooLarge));
    assert!(group.poll(&context).is_pending());
    completions.settle(&stored(&[4, 5, 6], 4));
    let Poll::Ready(Ok(summary)) = group.poll(&context) else {
        panic!("not told");
    };
    assert_eq!((summary.stored, summary.failed), (4, 1));
    assert_eq!(summary.error.unwrap().code(), ErrorCode::MessageTooLarge);
    assert_eq!(
        (result(&before), result(&after)),
        (Some(Ok(1)), Some(Ok(6)))
    );
}

#[test]
fn dropped_ack_futures_leave_nothing_behind_and_a_flush_still_waits_for_their_messages() {
    let mut completions = Completions::default();
    let tickets: Vec<u64> = (0..1_000).collect();
    tickets.iter().for_each(|_| drop(completions.add()));
    let mut flushed = completions.flush();
    let later = completions.add();
    completions.settle(&stored(&tickets[..999], 1));
    assert!(flushed.try_recv().is_err());
    completions.settle(&stored(&tickets[999..], 1_000));
    assert_eq!(flushed.try_recv(), Ok(()));
    assert_eq!((completions.pending.len(), result(&later)), (1, None));
}

#[test]
fn what_is_not_known_when_the_client_is_gone_is_told_as_unknown() {
    let mut completions = Completions::default();
    let (known, unknown) = (completions.add(), completions.add());
    let group = completions.add_group(2);
    completions.settle(&stored(&[0], 1));
    completions.abandon();
    assert_eq!(result(&known), Some(Ok(1)));
    assert_eq!(result(&unknown), Some(Err(ErrorCode::OutcomeUnknown)));
    let context = Context::from_waker(Waker::noop());
    assert!(matches!(group.poll(&context), Poll::Ready(Err(_))));
}
