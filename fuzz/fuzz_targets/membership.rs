//! Membership: no datagram makes a node panic, be it without the secret, of a node that has it and says anything, or
//! one that is passed on as another's card.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_membership::{Card, Input, MemberId, Membership, MembershipConfig, Seal};
use airmail_model::{Mono, NodeId};
use airmail_wire::Secret;

fn seal(name: &str) -> Seal {
    Seal::new(5, Secret::new(vec![7; 32]), name, 1)
}

fuzz_target!(|data: &[u8]| {
    let id = MemberId::new("own", NodeId(1), 1, ([127, 0, 0, 1], 7402).into());
    let config = MembershipConfig { id, seed: 1 };
    let mut membership = Membership::new(config, seal("own"), Card::default());
    let mut out = Vec::new();
    let stranger = membership.step(Mono(0), Input::Datagram(data), &mut out);
    assert!(stranger.is_err(), "it has not the secret");
    let sealed = seal("other").seal(data);
    // What it says may be anything; whatever follows of it is done for a while.
    let mut now = 0;
    let taken = membership.step(Mono(now), Input::Datagram(&sealed), &mut out);
    assert!(taken.is_ok(), "it has the secret");
    for _ in 0..20 {
        now += 500_000_000;
        out.clear();
        assert!(membership.step(Mono(now), Input::Tick, &mut out).is_ok());
    }
    if let Ok(card) = Card::decode(data) {
        assert_eq!(
            Card::decode(&card.encode()).expect("what was written can be read"),
            card
        );
    }
});
