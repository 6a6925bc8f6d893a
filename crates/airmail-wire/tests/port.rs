//! A port over a wire: connections come and go, and a message of one never goes over another.

use airmail_link::{Event, FromHost, Port, ToHost};
use airmail_log::ReaderId;
use airmail_wire::{Carrier, PortLimits, WirePort, wire_port};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

mod messages;

struct Stage {
    port: WirePort<ToHost, FromHost>,
    carrier: Carrier<ToHost, FromHost>,
    owner_woken: Arc<AtomicUsize>,
    carrier_woken: Arc<AtomicUsize>,
}

fn stage(limits: PortLimits) -> Stage {
    let count = || {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let waker: airmail_log::Waker = Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        (count, waker)
    };
    let ((owner_woken, owner), (carrier_woken, waker)) = (count(), count());
    let (port, carrier) = wire_port(limits, owner, waker);
    Stage {
        port,
        carrier,
        owner_woken,
        carrier_woken,
    }
}

impl Stage {
    /// Times that the owner and the carrier were woken since the last look.
    fn woken(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::Relaxed);
        (take(&self.owner_woken), take(&self.carrier_woken))
    }
}

fn ask(number: u64) -> ToHost {
    ToHost::Begin { generation: number }
}

fn tell(number: u64) -> FromHost {
    FromHost::Behind {
        generation: number,
        r: ReaderId(0),
    }
}

#[test]
fn nothing_is_sent_before_the_owner_knows_of_the_connection() {
    let mut stage = stage(PortLimits::default());
    assert!(stage.port.send(ask(1)).is_err());
    assert_eq!(stage.port.receive(), None);
    stage.carrier.up();
    assert_eq!(stage.woken(), (1, 0));
    assert!(stage.port.send(ask(1)).is_err());
    assert_eq!(stage.port.receive(), Some(Event::Up));
    assert_eq!(stage.port.receive(), None);
    assert!(stage.port.send(ask(1)).is_ok());
    stage.port.flush();
    stage.port.flush();
    assert_eq!(stage.woken(), (0, 1));
    assert_eq!(stage.carrier.take(), Some(ask(1)));
    assert_eq!(stage.carrier.take(), None);
}

#[test]
fn a_full_queue_gives_the_message_back_and_whoever_waits_is_woken_when_there_is_room() {
    let mut stage = stage(PortLimits {
        messages: 2,
        bytes: 1000,
    });
    stage.carrier.up();
    assert_eq!(stage.port.receive(), Some(Event::Up));
    assert!(stage.port.send(ask(1)).is_ok() && stage.port.send(ask(2)).is_ok());
    assert_eq!(stage.port.send(ask(3)), Err(ask(3)));
    stage.woken();
    assert_eq!(stage.carrier.take(), Some(ask(1)));
    assert_eq!(stage.woken(), (1, 0));
    assert_eq!(stage.carrier.take(), Some(ask(2)));
    assert_eq!(stage.woken(), (0, 0));
    // By bytes: one message may exceed them alone.
    assert!(
        stage
            .port
            .send(messages::append(messages::batch(2000)))
            .is_ok()
    );
    assert!(stage.port.send(ask(3)).is_err());

    assert!(stage.carrier.has_room());
    stage.carrier.give(tell(1));
    stage.carrier.give(tell(2));
    assert!(!stage.carrier.has_room());
    assert_eq!(stage.port.receive(), Some(Event::Message(tell(1))));
    stage.port.flush();
    assert_eq!(stage.woken(), (0, 1));
    assert!(stage.carrier.has_room());
}

#[test]
fn an_end_without_a_carrier_is_cut() {
    let mut stage = stage(PortLimits::default());
    stage.carrier.up();
    assert_eq!(stage.port.receive(), Some(Event::Up));
    stage.carrier.give(tell(1));
    drop(stage.carrier);
    assert_eq!(stage.port.receive(), Some(Event::Cut));
    assert_eq!(stage.port.receive(), None);
    assert!(stage.port.send(ask(1)).is_err());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Up,
    Cut,
    Give,
    Take,
    Send,
    Receive,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Messages are numbered by the connection that they are of, as their sender sees it, and in their order.
    #[test]
    fn a_message_of_one_connection_never_goes_over_another(
        steps in prop::collection::vec(prop::sample::select(vec![
            Step::Up, Step::Cut, Step::Give, Step::Give, Step::Take, Step::Send, Step::Send,
            Step::Receive, Step::Receive, Step::Receive,
        ]), 1..200),
    ) {
        let mut stage = stage(PortLimits { messages: 5, bytes: 1000 });
        let (mut connection, mut is_up, mut given) = (0, false, 0);
        // As the owner sees it: the connection, if there is one, and the next number that may come of it.
        let (mut seen, mut next, mut sent, mut taken) = (None, 0, 0, 0);
        for step in steps {
            match step {
                Step::Up => {
                    stage.carrier.up();
                    (connection, is_up, given, sent, taken) = (connection + 1, true, 0, 0, 0);
                }
                Step::Cut => {
                    stage.carrier.cut();
                    is_up = false;
                }
                Step::Give if stage.carrier.has_room() => {
                    stage.carrier.give(tell(connection * 1000 + given));
                    given += u64::from(is_up);
                }
                Step::Give => {}
                Step::Take => if let Some(message) = stage.carrier.take() {
                    prop_assert!(is_up);
                    prop_assert_eq!(message, ask(connection * 1000 + taken));
                    taken += 1;
                },
                Step::Send => if let Some(of) = seen
                    && stage.port.send(ask(of * 1000 + sent)).is_ok()
                {
                    prop_assert!(is_up && of == connection);
                    sent += 1;
                },
                Step::Receive => match stage.port.receive() {
                    Some(Event::Up) => {
                        prop_assert!(seen.is_none());
                        (seen, next) = (Some(connection), 0);
                    }
                    Some(Event::Cut) => prop_assert!(seen.take().is_some()),
                    Some(Event::Message(message)) => {
                        prop_assert_eq!(message, tell(seen.unwrap_or(0) * 1000 + next));
                        next += 1;
                    }
                    None => prop_assert_eq!(seen.is_some(), is_up),
                },
            }
        }
    }
}
