//! Dispatch policies against theory, and against one another.

use airmail_queueing::dispatch::{Plan, Policy, Row, Setting, measure, run, theory};

const PLAN: Plan = Plan {
    seeds: 4,
    jobs: 50_000,
};

fn at(policy: Policy, dispatchers: usize, load: f64) -> Row {
    let setting = Setting {
        policy,
        queues: 10,
        dispatchers,
        load,
    };
    measure(setting, &PLAN)
}

fn assert_near(row: &Row, expected: f64, share: f64) {
    let wait = row.waits.mean;
    assert!(
        (wait / expected - 1.0).abs() < share,
        "{row:?}: not {expected}"
    );
}

#[test]
fn random_waits_as_m_m_1_however_many_dispatch() {
    for dispatchers in [1, 10] {
        for load in [0.3, 0.7] {
            let row = at(Policy::Random, dispatchers, load);
            assert_eq!(row.theory, Some(("M/M/1", load / (1.0 - load))));
            assert_near(&row, load / (1.0 - load), 0.06);
        }
    }
}

#[test]
fn round_robin_waits_as_e_n_m_1_with_one_dispatcher_and_longer_with_several() {
    for load in [0.3, 0.7] {
        let one = at(Policy::RoundRobin, 1, load);
        assert_near(&one, theory::erlang_m1(10, load), 0.06);
        let several = at(Policy::RoundRobin, 10, load);
        assert!(several.waits.mean > 1.2 * one.waits.mean);
        assert!(several.waits.mean < theory::mm1(load));
    }
}

#[test]
fn held_until_a_queue_is_idle_jobs_wait_as_m_m_n() {
    for load in [0.7, 0.8] {
        let row = at(Policy::IdleQueue, 1, load);
        assert_near(&row, theory::mmn(10, load), 0.08);
        assert!((row.waits.messages_per_job - 1.0).abs() < 0.01);
    }
}

#[test]
fn the_more_is_known_the_shorter_the_wait() {
    let wait = |policy| at(policy, 1, 0.8).waits.mean;
    let order = [
        wait(Policy::IdleQueue),
        wait(Policy::ShortestQueue),
        wait(Policy::ShortestOf { d: 3 }),
        wait(Policy::ShortestOf { d: 2 }),
        wait(Policy::Random),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(
        order[0] > 0.9 * theory::mmn(10, 0.8),
        "nothing beats one line"
    );
}

#[test]
fn the_older_the_answers_the_longer_the_wait_and_the_fewer_the_messages() {
    for dispatchers in [1, 10] {
        let periods = [0.5, 2.0, 10.0];
        let rows = periods.map(|update_period| {
            at(
                Policy::ShortestQueueStale { update_period },
                dispatchers,
                0.7,
            )
        });
        assert!(rows.is_sorted_by(|one, next| one.waits.mean < next.waits.mean));
        for (row, period) in rows.iter().zip(periods) {
            // A question and an answer for each queue, by each dispatcher; 7 jobs in a service
            // time.
            let expected = 2.0 * 10.0 * dispatchers as f64 / period / 7.0;
            assert!(
                (row.waits.messages_per_job / expected - 1.0).abs() < 0.03,
                "{row:?}"
            );
        }
    }
}

#[test]
fn messages_are_counted_as_questions_and_answers() {
    let messages = |policy| at(policy, 10, 0.5).waits.messages_per_job;
    assert_eq!(messages(Policy::Random), 0.0);
    assert_eq!(messages(Policy::RoundRobin), 0.0);
    assert_eq!(messages(Policy::ShortestQueue), 20.0);
    assert_eq!(messages(Policy::ShortestOf { d: 2 }), 4.0);
    assert!(messages(Policy::IdleQueueOrRandom) <= 1.0);
}

#[test]
fn one_seed_gives_one_run() {
    for policy in Policy::table() {
        let setting = Setting {
            policy,
            queues: 5,
            dispatchers: 3,
            load: 0.8,
        };
        assert_eq!(run(setting, 1_000, 7), run(setting, 1_000, 7));
    }
}
