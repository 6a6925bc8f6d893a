//! Messages for some roles: each client gets exactly what it may have, however it comes to it, and is told nothing of the
//! rest.

use crate::client::Mode;
use crate::world::{LOG, PLENTY, World, batch_of, message, topic};
use airmail_broker::{Command, Outcome, SessionId};
use airmail_model::frame::{Start, Until};
use airmail_model::{ErrorCode, Message, RoleId, Sequence};

const COOK: RoleId = RoleId(1);
const GUEST: RoleId = RoleId(2);

/// A world with two roles, and a client that publishes.
fn world() -> (World, SessionId) {
    let mut world = World::new();
    for (name, id) in [("cook", COOK), ("guest", GUEST)] {
        let made = world.command(Command::CreateRole { name: name.into() });
        assert!(matches!(made, Ok(Outcome::Role(role)) if role.id == id && role.name == name));
    }
    let publisher = world.open(1, PLENTY);
    (world, publisher)
}

/// A batch of two topics with something for each and for all.
fn menu() -> [Message; 5] {
    [
        message("a", "all"),
        message("a", "cook").for_roles([COOK]),
        message("b", "guest").for_roles([GUEST]),
        message("a", "both").for_roles([GUEST, COOK]),
        message("b", "all"),
    ]
}

/// Roles, and the messages that a client gets who has them, of topics `a` and `b`.
const MAY_HAVE: [(&[RoleId], &[&str], &[&str]); 4] = [
    (&[], &["all"], &["all"]),
    (&[COOK], &["all", "cook", "both"], &["all"]),
    (&[GUEST], &["all", "both"], &["guest", "all"]),
    (&[COOK, GUEST], &["all", "cook", "both"], &["guest", "all"]),
];

#[test]
fn at_the_tail_each_gets_what_is_for_it_whoever_comes_before() {
    for first in 0..MAY_HAVE.len() {
        let (mut world, publisher) = world();
        let mut order = MAY_HAVE;
        order.rotate_left(first);
        let mut readers = Vec::new();
        for (n, (roles, of_a, of_b)) in (10..).zip(order) {
            // One wants all of the batch, another one a part, which is the same for who has the same roles.
            let (whole, part) = (world.open_as(n, roles), world.open_as(n + 10, roles));
            let other = world.open_as(n + 20, roles);
            world.add(whole, 0, "a", Start::Latest);
            world.add(whole, 1, "b", Start::Latest);
            world.add(part, 0, "b", Start::Latest);
            world.add(other, 0, "b", Start::Latest);
            readers.push((whole, part, other, of_a, of_b));
        }
        world.run();
        world.publish_batch(publisher, batch_of(LOG, 1, menu()));
        world.run();
        world.tell(publisher, "a", "last");
        for (whole, part, other, of_a, of_b) in readers {
            let got = world.client(whole);
            let of_a: Vec<&str> = of_a.iter().copied().chain(["last"]).collect();
            assert_eq!((got.payloads(0), got.payloads(1)), (of_a, of_b.to_vec()));
            assert_eq!(world.client(part).payloads(0), of_b);
            assert_eq!(world.client(other).payloads(0), of_b);
            // Everything is accounted for, and nothing is told as missing.
            assert_eq!(got.position(0), Sequence(7));
            assert_eq!(got.sub(0).mode, Mode::Live(LOG));
        }
    }
}

#[test]
fn a_late_one_and_a_look_into_history_get_what_is_for_them() {
    for (roles, of_a, of_b) in MAY_HAVE {
        let (mut world, publisher) = world();
        world.publish_batch(publisher, batch_of(LOG, 1, menu()));
        world.run();
        let late = world.open_as(10, roles);
        world.add(late, 0, "a", Start::Earliest);
        world.add(late, 1, "b", Start::Earliest);
        world.add_until(late, 2, topic("b"), Start::Earliest, Some(Until::Now));
        world.run();
        let got = world.client(late);
        assert_eq!(
            (got.payloads(0), got.payloads(1)),
            (of_a.to_vec(), of_b.to_vec())
        );
        assert_eq!(got.payloads(2), of_b);
        assert_eq!(got.position(0), Sequence(6));
        assert_eq!(got.sub(0).mode, Mode::Live(LOG));
    }
}

#[test]
fn nobody_is_told_of_the_expiry_of_what_is_for_others() {
    let (mut world, publisher) = world();
    let soon = |message: Message| Message {
        ttl_ms: Some(1),
        ..message
    };
    let both = [
        soon(message("a", "all")),
        soon(message("a", "cook").for_roles([COOK])),
    ];
    world.publish_batch(publisher, batch_of(LOG, 1, both));
    world.run();
    world.pass(std::time::Duration::from_secs(1));
    let (guest, cook) = (world.open_as(10, &[GUEST]), world.open_as(11, &[COOK]));
    world.add_told(guest, 0, "a", Start::Earliest);
    world.add_told(cook, 0, "a", Start::Earliest);
    world.run();
    assert_eq!(world.client(guest).sub(0).expired, [Sequence(1)]);
    assert_eq!(
        world.client(cook).sub(0).expired,
        [Sequence(1), Sequence(2)]
    );
}

#[test]
fn what_is_for_a_role_that_there_is_not_is_refused_and_a_number_is_not_given_again() {
    let (mut world, publisher) = world();
    let publish = |world: &mut World, role| {
        let batch = batch_of(LOG, 1, [message("a", "x").for_roles([role])]);
        let request = world.publish_batch(publisher, batch);
        world.run();
        world.client(publisher).refused(request)
    };
    assert_eq!(publish(&mut world, COOK), None);
    assert_eq!(
        publish(&mut world, RoleId(3)),
        Some(ErrorCode::RoleNotFound)
    );
    let name = || "cook".to_owned();
    let exists = world.command(Command::CreateRole { name: name() });
    assert_eq!(
        exists.map_err(|error| error.code()),
        Err(ErrorCode::RoleExists)
    );
    assert_eq!(
        world.command(Command::DeleteRole { name: name() }),
        Ok(Outcome::Deleted)
    );
    let gone = world.command(Command::DeleteRole { name: name() });
    assert_eq!(
        gone.map_err(|error| error.code()),
        Err(ErrorCode::RoleNotFound)
    );
    assert_eq!(publish(&mut world, COOK), Some(ErrorCode::RoleNotFound));
    let again = world.command(Command::CreateRole { name: name() });
    assert!(matches!(again, Ok(Outcome::Role(role)) if role.id == RoleId(3)));
    assert_eq!(publish(&mut world, RoleId(3)), None);
}
