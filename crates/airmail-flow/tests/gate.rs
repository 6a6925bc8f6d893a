//! The gate: waiting within bounds, refusals that say when, and decisions that hold at once.

use airmail_flow::{
    Admission, Gate, GateSettings, LimiterKind, LimiterSettings, RefusalReason, Rule, Ticket,
};
use airmail_model::{Lane, Mono};
use std::collections::VecDeque;
use std::time::Duration;

const MILLISECOND: u64 = 1_000_000;

fn at(ms: u64) -> Mono {
    Mono(ms * MILLISECOND)
}

fn settings(kind: LimiterKind, bound: u64) -> GateSettings {
    GateSettings {
        window_messages: 10,
        waiting_messages_max: 5,
        wait_ms_max: 100,
        limiter: LimiterSettings {
            kind,
            bound_initial: bound,
            delta: 2,
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    }
}

fn enter(gate: &mut Gate<u32>, ms: u64, messages: u64) -> Ticket {
    match gate.enter(at(ms), Lane::Normal, messages, 0) {
        Admission::Go(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_admitted_waits_and_what_may_not_wait_is_refused() {
    let mut gate = Gate::new(settings(LimiterKind::Fixed, 4));
    let _flying = enter(&mut gate, 0, 4);
    assert!(matches!(
        gate.enter(at(0), Lane::Normal, 3, 1),
        Admission::Waits(_)
    ));
    assert!(matches!(
        gate.enter(at(0), Lane::Normal, 2, 2),
        Admission::Waits(_)
    ));
    let Admission::Refused(refusal) = gate.enter(at(0), Lane::Normal, 1, 3) else {
        panic!("six messages wait");
    };
    assert_eq!(refusal.reason, RefusalReason::LineFull);
    assert_eq!((gate.in_flight(), gate.waiting_messages()), (4, 5));
}

#[test]
fn nobody_waits_longer_than_it_may_and_who_was_held_up_goes() {
    let mut gate = Gate::new(settings(LimiterKind::Fixed, 4));
    let mut admitted = Vec::new();
    let _flying = enter(&mut gate, 0, 3);
    assert!(matches!(
        gate.enter(at(0), Lane::Normal, 2, 1),
        Admission::Waits(_)
    ));
    assert!(matches!(
        gate.enter(at(50), Lane::Normal, 1, 2),
        Admission::Waits(_)
    ));
    assert_eq!(gate.deadline(), Some(at(100)));
    assert!(gate.expire(at(99), &mut admitted).is_none());
    let (who, refusal) = gate.expire(at(100), &mut admitted).unwrap();
    assert_eq!((who, refusal.reason), (1, RefusalReason::WaitedTooLong));
    assert_eq!(admitted.len(), 1, "the one behind it fits");
    assert_eq!(admitted[0].0, 2);
    assert!(gate.expire(at(100), &mut admitted).is_none());
    assert_eq!(gate.deadline(), None);
}

#[test]
fn a_refusal_says_how_long_what_is_ahead_will_take() {
    let mut gate = Gate::new(settings(LimiterKind::Fixed, 100));
    let mut admitted = Vec::new();
    let refused = |gate: &mut Gate<u32>, ms| match gate.enter(at(ms), Lane::Normal, 6, 9) {
        Admission::Refused(refusal) => refusal.retry_after,
        other => panic!("{other:?}"),
    };
    let flying = enter(&mut gate, 0, 100);
    let shortest = Duration::from_millis(GateSettings::DEFAULT.retry_ms_min);
    assert_eq!(refused(&mut gate, 0), shortest, "nothing was measured yet");
    gate.abandoned(at(0), flying, &mut admitted);
    // One message every 4 ms.
    for index in 0..12 {
        let ticket = enter(&mut gate, index * 4, 1);
        gate.acknowledged(at(index * 4 + 4), ticket, &mut admitted);
    }
    let _flying = enter(&mut gate, 60, 100);
    assert_eq!(refused(&mut gate, 60), Duration::from_millis(400));
}

#[test]
fn a_decision_holds_at_once_and_admits_who_fits_now() {
    let mut gate = Gate::new(settings(LimiterKind::LastThreePoints, 4));
    let mut admitted = Vec::new();
    let mut flying = vec![enter(&mut gate, 0, 2), enter(&mut gate, 0, 2)];
    let mut decisions = Vec::new();
    for ms in 1..30 {
        let ticket = flying.remove(0);
        assert!(matches!(
            gate.enter(at(ms), Lane::Normal, 2, 7),
            Admission::Waits(_)
        ));
        decisions.extend(gate.acknowledged(at(ms), ticket, &mut admitted));
        flying.extend(admitted.drain(..).map(|(_, ticket)| ticket));
        if let Some(decision) = decisions.first() {
            assert_eq!(decision.rule, Rule::WarmingUp);
            assert_eq!((decision.bound_before, decision.bound), (4, 6));
            // The one place that was left, and the two that came with the bound.
            assert_eq!((gate.bound(), gate.in_flight()), (6, 4 + 2 - 2));
            return;
        }
    }
    panic!("no decision in ten windows");
}

#[test]
fn what_was_abandoned_counts_for_neither_latency_nor_rate() {
    let mut gate = Gate::new(settings(LimiterKind::Fixed, 100));
    let mut admitted = Vec::new();
    let slow = enter(&mut gate, 0, 50);
    let mut decisions = Vec::new();
    for ms in 0..12 {
        let ticket = enter(&mut gate, ms, 1);
        decisions.extend(gate.acknowledged(at(ms + 1), ticket, &mut admitted));
    }
    gate.abandoned(at(90), slow, &mut admitted);
    assert_eq!(gate.in_flight(), 0);
    assert!((decisions[0].latency_s - 0.001).abs() < 1e-9);
    assert!((decisions[0].rate_per_s - 1000.0).abs() < 1e-6);
}

#[test]
fn who_is_gone_leaves_the_line() {
    let mut gate = Gate::new(settings(LimiterKind::Fixed, 4));
    let mut admitted = Vec::new();
    let _flying = enter(&mut gate, 0, 4);
    let Admission::Waits(key) = gate.enter(at(0), Lane::Normal, 3, 1) else {
        panic!("it has to wait");
    };
    assert_eq!(gate.withdraw(at(1), key, &mut admitted), Some(1));
    assert_eq!(gate.withdraw(at(1), key, &mut admitted), None);
    assert_eq!((gate.waiting_messages(), gate.deadline()), (0, None));
}

fn patient(bound: u64) -> Gate<u32> {
    Gate::new(GateSettings {
        waiting_messages_max: 1_000,
        burst_ms: 50,
        wait_ms_max: 1_000,
        ..settings(LimiterKind::Fixed, bound)
    })
}

#[test]
fn a_burst_may_wait_but_a_line_that_stands_holds_no_more_than_is_in_flight() {
    let mut gate = patient(10);
    let mut admitted = Vec::new();
    let flying = enter(&mut gate, 0, 10);
    for who in 1..=9 {
        assert!(matches!(
            gate.enter(at(1), Lane::Normal, 5, who),
            Admission::Waits(_)
        ));
    }
    assert_eq!(
        gate.deadline(),
        Some(at(51)),
        "the line may stand until then"
    );
    assert!(gate.expire(at(50), &mut admitted).is_none());
    let refused: Vec<(u32, RefusalReason)> =
        std::iter::from_fn(|| gate.expire(at(51), &mut admitted))
            .map(|(who, refusal)| (who, refusal.reason))
            .collect();
    let full = RefusalReason::LineFull;
    let expected: Vec<_> = (3..=9).rev().map(|who| (who, full)).collect();
    assert_eq!(refused, expected, "who came last, until 10 messages wait");
    assert!(matches!(
        gate.enter(at(52), Lane::Normal, 1, 10),
        Admission::Refused(_)
    ));
    assert_eq!(gate.deadline(), Some(at(1_001)));
    gate.acknowledged(at(60), flying, &mut admitted);
    assert_eq!(admitted.len(), 2);
    assert_eq!(gate.waiting_messages(), 0);
    // The line is empty for 20 ms: for so long what comes now is a burst.
    for who in 11..=14 {
        assert!(matches!(
            gate.enter(at(80), Lane::Normal, 5, who),
            Admission::Waits(_)
        ));
    }
    assert_eq!(gate.deadline(), Some(at(100)));
    assert!(gate.expire(at(99), &mut admitted).is_none());
    let (who, _) = gate.expire(at(100), &mut admitted).unwrap();
    assert_eq!(who, 14);
}

#[test]
fn where_a_message_is_larger_than_the_bound_one_may_wait_however_long_the_line_has_stood() {
    let mut gate = patient(2);
    let mut admitted = Vec::new();
    let mut flying = enter(&mut gate, 0, 8);
    for ms in 1..500 {
        assert!(matches!(
            gate.enter(at(ms), Lane::Normal, 8, 1),
            Admission::Waits(_)
        ));
        assert!(gate.expire(at(ms), &mut admitted).is_none());
        gate.acknowledged(at(ms), flying, &mut admitted);
        flying = admitted.pop().unwrap().1;
    }
}

#[test]
fn windows_of_those_who_seek_throughput_or_latency_last_as_long_as_their_settings_say() {
    for (kind, least_ms) in [(LimiterKind::Ladder, 99), (LimiterKind::LatencyTarget, 29)] {
        let mut gate: Gate<()> = Gate::new(settings(kind, 8));
        let mut flying = VecDeque::new();
        let mut decided = Vec::new();
        // A server that takes 10 µs for each, and is always offered more.
        for done in 1..300_000_u64 {
            while let Some(ticket) = gate.try_enter(Mono(done * 10_000), Lane::Normal, 1) {
                flying.push_back(ticket);
            }
            let ticket = flying.pop_front().unwrap();
            let decision = gate.acknowledged(Mono((done + 1) * 10_000), ticket, &mut Vec::new());
            decided.extend(decision.map(|decision| decision.at));
        }
        // The first window is N messages long: the rate is not known before.
        let windows = decided[1..].windows(2);
        for pair in windows.clone() {
            let window = pair[1].since(pair[0]);
            assert!(
                window >= Duration::from_millis(least_ms),
                "{kind}: {window:?}"
            );
        }
        assert!(windows.len() > 20, "{kind}: {}", windows.len());
    }
}

#[test]
fn a_full_line_of_lane_normal_leaves_lane_high_an_eighth_which_goes_first() {
    let mut gate = Gate::new(GateSettings {
        waiting_messages_max: 16,
        ..settings(LimiterKind::Fixed, 4)
    });
    let mut flying = VecDeque::from([(0, enter(&mut gate, 0, 4))]);
    let waits = |gate: &mut Gate<u32>, lane, who| match gate.enter(at(0), lane, 1, who) {
        Admission::Waits(_) => true,
        Admission::Refused(_) => false,
        other @ Admission::Go(_) => panic!("{other:?}"),
    };
    assert!((1..=16).all(|who| waits(&mut gate, Lane::Normal, who)));
    assert!(!waits(&mut gate, Lane::Normal, 17));
    assert!((20..22).all(|who| waits(&mut gate, Lane::High, who)));
    assert!(!waits(&mut gate, Lane::High, 22), "the eighth is full");
    assert!(
        gate.expire(at(0), &mut flying).is_none(),
        "and nobody is too many"
    );
    let (_, ticket) = flying.pop_front().unwrap();
    gate.abandoned(at(0), ticket, &mut flying);
    let who: Vec<u32> = flying.iter().map(|(who, _)| *who).collect();
    assert_eq!(who, [20, 1, 21, 2]);
}
