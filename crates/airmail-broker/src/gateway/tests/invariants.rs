//! Each invariant is asserted: a gateway that breaks it is complained of under its name.

use super::super::Gateway;
use super::super::log::LogState;
use super::super::reading_turns::ReadingTurns;
use super::transcripts::Driver;
use crate::gateway::tail_lane::Pace;
use crate::input::SessionId;
use crate::keys::{BehindKey, LogKey, SessionKey, SubKey};
use crate::transcript::{self, LOG, complaint};
use airmail_flow::{Shares, SharesSettings};
use airmail_model::frame::{RequestId, Until};
use airmail_model::{Lane, LogId, Mono, Sequence};

/// Client 1 has a subscription that is live, one that is read for, and one that waits for number 9, and
/// publishes; client 2 has one that waits for credit.
fn busy() -> Driver {
    let mut driver = Driver::new();
    let lines = [
        "catalog: there is namespace 1",
        "tower: the log is open, in life 7",
        "client 1 opens with 1000000 bytes of credit",
        "client 2 opens with 0 bytes of credit",
        "client 1 adds subscription 0 of topic a, from latest",
        "tower: for member 1.0#1, the log ends before 5",
        "client 1 adds subscription 1 of topic a, from number 1",
        "tower: for member 1.1#2, the log ends before 5",
        "client 1 adds subscription 2 of topic a, from number 9",
        "tower: for member 1.2#4, the log ends before 5",
        "client 2 adds subscription 0 of topic a, from number 1",
        "tower: for member 2.0#5, the log ends before 5",
        "client 1 publishes #1: a",
    ];
    for line in lines {
        driver.step(line).unwrap_or_else(|| panic!("{line:?}"));
    }
    driver
}

fn log(gateway: &Gateway) -> LogKey {
    gateway.logs.find(LOG).expect("open")
}

fn session(gateway: &Gateway, id: u64) -> SessionKey {
    gateway.sessions.find(SessionId(id)).expect("open")
}

fn live(gateway: &Gateway) -> SubKey {
    let mut live = gateway.subs.iter().filter(|(_, sub)| sub.is_live());
    live.next().expect("one is").0
}

fn first_behind(gateway: &Gateway) -> BehindKey {
    gateway.behind.iter().next().expect("some are").0
}

#[cfg(feature = "sabotage")]
#[test]
fn a_count_of_members_that_is_kept_is_found_at_the_step_that_keeps_it() {
    let mut driver = busy();
    driver.gateway.config.bug = Some(crate::sabotage::Bug::FollowingKept);
    let mut remove = |n| driver.step(&format!("client 1 removes subscription {n}"));
    remove(0).expect("an input");
    let said = complaint(|| _ = remove(1).expect("an input"));
    assert!(said.starts_with("following: SessionId(1)"), "{said}");
}

type Break = fn(&mut Gateway);

/// Breaks a busy gateway in each of these ways: it is complained of under the name that stands there.
fn complained(breaks: &[(&str, Break)]) {
    busy().gateway.check();
    for (name, broken) in breaks {
        let mut driver = busy();
        broken(&mut driver.gateway);
        let said = complaint(|| driver.gateway.check());
        assert!(said.starts_with(name), "{name}: {said}");
    }
}

#[test]
fn a_broken_state_of_a_subscription_is_complained_of_under_its_name() {
    complained(&[
        ("one_state", |g| {
            let (one, sub) = (first_behind(g), g.subs.iter().next().expect("some").0);
            g.behind[one].sub = sub;
        }),
        ("one_state", |g| {
            let log = log(g);
            g.logs[log].tail.of_mut(Pace::AtOnce).live += 1;
            let session = session(g, 1);
            let range = g.logs[log]
                .tail
                .of_mut(Pace::AtOnce)
                .ranges
                .get_mut(&session);
            range.expect("live").live += 1;
        }),
        ("one_state", |g| {
            let (at, live) = (g.logs[log(g)].at, live(g));
            g.logs.tails[at].unlink(&mut g.subs, live);
        }),
        ("one_state", |g| {
            let live = live(g);
            g.subs[live].set_live_in(Lane::High, true);
            g.subs[live].set_live_in(Lane::Normal, false);
        }),
        ("one_state", |g| {
            let (live, one) = (live(g), first_behind(g));
            g.behind.put_aside(live, one);
        }),
        ("tails", |g| {
            let (log, id) = (
                log(g),
                LogId {
                    lane: Lane::High,
                    ..LOG
                },
            );
            g.logs[log].at = g.logs.tails.put(id, LogKey::new(77));
            g.logs[log].id = id;
        }),
        ("numbers", |g| {
            let (one, sub) = (session(g, 1), g.subs.iter().next().expect("some").0);
            g.sessions[one].take(&g.subs, sub);
        }),
        ("located", |g| {
            let one = first_behind(g);
            g.behind[one].asked_until = Some(Until::Now);
        }),
        ("told", |g| {
            let one = first_behind(g);
            g.behind[one].told = g.behind[one].at.plus(1);
        }),
    ]);
}

#[test]
fn a_broken_state_of_a_tail_is_complained_of_under_its_name() {
    complained(&[
        ("waiting", |g| {
            let log = log(g);
            let (_, one) = g.logs[log]
                .tail
                .of_mut(Pace::AtOnce)
                .waiting
                .pop_first()
                .expect("waits");
            g.logs[log]
                .tail
                .of_mut(Pace::AtOnce)
                .waiting
                .insert((Sequence(77), one));
        }),
        ("waiting", |g| {
            let (log, one) = (log(g), first_behind(g));
            g.logs[log]
                .tail
                .of_mut(Pace::AtOnce)
                .waiting
                .insert((Sequence(99), one));
        }),
        ("wanted", |g| {
            let log = log(g);
            g.logs[log].tail.wants.holds += 1;
        }),
        ("wanted", |g| {
            let one = first_behind(g);
            g.behind[one].holds_want = true;
        }),
        ("returned", |g| {
            let log = log(g);
            g.logs[log].tail.returned.insert(SubKey::new(77));
        }),
        ("ranges", |g| {
            let (log, one) = (log(g), session(g, 1));
            let range = g.logs[log]
                .tail
                .of_mut(Pace::AtOnce)
                .ranges
                .get_mut(&one)
                .expect("live");
            range.next = Sequence(99);
        }),
        ("ranges", |g| {
            let (log, one) = (log(g), session(g, 1));
            g.logs[log].tail.of_mut(Pace::AtOnce).ranges.remove(&one);
        }),
        ("ranges", |g| {
            let one = session(g, 1);
            g.sessions[one].logs.clear();
        }),
        ("attached", |g| {
            let log = log(g);
            g.logs[log].tail.is_attached = false;
        }),
        ("attached", |g| {
            let log = log(g);
            g.logs[log].state = LogState::Closed;
        }),
    ]);
}

#[test]
fn a_broken_state_of_a_session_or_a_publish_is_complained_of_under_its_name() {
    complained(&[
        ("parked", |g| {
            let two = session(g, 2);
            *g.sessions[two].turns_mut(Lane::Normal) = ReadingTurns::default();
        }),
        ("following", |g| {
            let one = session(g, 1);
            g.sessions[one].turns_mut(Lane::Normal).count_one_more();
        }),
        ("order", |g| g.stats.appends_in_flight += 1),
        ("order", |g| g.stats.appends_in_flight_bytes += 1),
        ("gates", |g| {
            let two = session(g, 2);
            let mut gate = Shares::new(SharesSettings::DEFAULT);
            gate.enter(Mono(1), &mut g.sessions[two].share, 7);
        }),
        ("admission", |g| {
            let two = session(g, 2);
            g.timers.admission.insert((Mono(9), two));
        }),
        ("admission", |g| {
            let one = session(g, 1);
            let waits = (RequestId(9), transcript::batch(&["a"]));
            g.sessions[one].publishes.queue.push_back(waits);
        }),
    ]);
}
