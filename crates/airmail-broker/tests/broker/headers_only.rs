//! Streams without payloads, beside streams that have them.

use crate::client::Mode;
use crate::world::{LOG, PLENTY, World};
use airmail_broker::SessionId;
use airmail_model::frame::{DELIVERY_OVERHEAD_BYTES, Start};

fn payload(number: u32) -> String {
    format!("{number:0>5000}")
}

/// Numbers and payloads that a subscription has got.
fn got(world: &World, session: SessionId, n: u32) -> Vec<(u64, usize)> {
    let got = world.client(session).sub(n).got.iter();
    got.map(|(number, text)| (number.0, text.len())).collect()
}

#[test]
fn at_the_tail_each_stream_gets_what_it_asked_for_of_the_same_batch_in_either_order() {
    for headers_first in [false, true] {
        let mut world = World::new();
        let (one, other) = (world.open(1, PLENTY), world.open(2, PLENTY));
        let (plain, headers) = if headers_first {
            (other, one)
        } else {
            (one, other)
        };
        for n in [0, 1] {
            let name = ["a", "b"][n as usize];
            world.add(plain, n, name, Start::Latest);
            world.add_headers(headers, n, name, Start::Latest);
        }
        // The same slice of a batch of which a part is wanted.
        let third = world.open(3, PLENTY);
        world.add(third, 0, "a", Start::Latest);
        let fourth = world.open(4, PLENTY);
        world.add_headers(fourth, 0, "a", Start::Latest);
        world.run();
        let text = payload(1);
        world.publish(plain, &[("a", &text), ("b", &text)]);
        world.run();
        for (session, length) in [(plain, 5_000), (headers, 0)] {
            assert_eq!(got(&world, session, 0), [(1, length)]);
            assert_eq!(got(&world, session, 1), [(2, length)]);
        }
        assert_eq!(got(&world, third, 0), [(1, 5_000)]);
        assert_eq!(got(&world, fourth, 0), [(1, 0)]);
        assert_eq!(world.client(plain).wholes, 1);
    }
}

#[test]
fn a_late_subscriber_gets_everything_without_payloads_and_then_goes_live() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    for number in 0..3 {
        let text = payload(number);
        world.publish(client, &[("a", &text), ("b", &text)]);
        world.run();
    }
    let late = world.open(2, PLENTY);
    world.add_headers(late, 0, "a", Start::Earliest);
    world.run();
    assert_eq!(got(&world, late, 0), [(1, 0), (3, 0), (5, 0)]);
    assert_eq!(world.client(late).sub(0).mode, Mode::Live(LOG));
    world.tell(client, "a", &payload(3));
    assert_eq!(got(&world, late, 0).len(), 4);
}

#[test]
fn what_is_not_sent_takes_no_credit() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    // Room for four deliveries of headers, and not for a single payload.
    let late = world.open(2, 4 * (DELIVERY_OVERHEAD_BYTES + 150));
    for number in 0..4 {
        world.tell(client, "a", &payload(number));
    }
    world.add_headers(late, 0, "a", Start::Earliest);
    world.run();
    assert_eq!(got(&world, late, 0).len(), 4);
}

#[test]
fn the_first_subscription_of_a_stream_decides_for_all() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    let (plain, headers) = (world.open(2, PLENTY), world.open(3, PLENTY));
    world.add(plain, 0, "a", Start::Latest);
    world.add_headers(headers, 0, "a", Start::Latest);
    world.run();
    world.add_headers(plain, 1, "b", Start::Latest);
    world.add(headers, 1, "b", Start::Latest);
    world.run();
    world.tell(client, "b", &payload(1));
    assert_eq!(got(&world, plain, 1), [(1, 5_000)]);
    assert_eq!(got(&world, headers, 1), [(1, 0)]);
}
