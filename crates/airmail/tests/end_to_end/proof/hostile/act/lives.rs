//! The node ends and begins again, and clients that were begun before it.

use crate::proof::hostile::history::{Answer, Begin, Event};
use crate::proof::hostile::stage::Stage;
use airmail_testkit::node;
use rand::Rng;
use rand::rngs::SmallRng;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// Kills the node at some moment, and starts it again.
pub(super) fn kill(stage: &mut Stage, choices: &mut SmallRng) {
    let pause = |choices: &mut SmallRng, most_us| {
        thread::sleep(Duration::from_micros(choices.random_range(0..most_us)));
    };
    match choices.random_range(0..3) {
        0 => pause(choices, 200_000),
        1 => {
            stage.kill();
            let delay = Duration::from_micros(choices.random_range(0..60_000));
            stage.start_and_kill(delay);
        }
        _ => {
            if let Some(node) = &stage.node {
                node.ask_to_stop();
            }
            pause(choices, 30_000);
        }
    }
    stage.kill();
    begin_again(stage, choices);
}

/// Stops the node in order, and starts it again.
pub(super) fn stop(stage: &mut Stage, choices: &mut SmallRng) {
    stage.stop();
    begin_again(stage, choices);
}

/// Starts the node again, at once or after a while.
fn begin_again(stage: &mut Stage, choices: &mut SmallRng) {
    if choices.random() {
        thread::sleep(Duration::from_millis(choices.random_range(0..400)));
    }
    stage.start();
}

/// A subscription, an `airmail sub` and an `airmail pub` are begun while there is no node, and the node
/// soon or at the same moment. None of them fails; what was published is stored.
pub(super) fn late(stage: &mut Stage, choices: &mut SmallRng) {
    stage.end(choices);
    let topic = stage.a_topic(choices);
    stage.readers.follow(&topic, Begin::Earliest);
    let topic = stage.a_topic(choices);
    stage.readers.print(&topic);
    let topic = stage.a_topic(choices);
    let stamp = stage.visitors_stamp(&topic);
    stage.note(Event::Invoked(stamp));
    let mut publish = node::airmail();
    publish.args(["pub", &topic.name, "--namespace", topic.namespace]);
    publish.env("AIRMAIL_URL", format!("airmail://{}", stage.victim.address));
    publish.stdout(Stdio::null());
    let payload = stamp.payload();
    let done = thread::scope(|scope| {
        let publishing = scope.spawn(|| node::run(&mut publish, &payload));
        thread::sleep(Duration::from_millis(choices.random_range(0..300)));
        stage.start();
        node::wait_until("airmail pub, begun before its node, to end", || {
            publishing.is_finished()
        });
        publishing.join().unwrap()
    });
    assert_eq!(
        done.code,
        Some(0),
        "airmail pub was begun before its node, and did not wait for it: {done:?}"
    );
    stage.note(Event::Answered(stamp, Answer::Stored(None)));
}
