//! Membership: no datagram makes a node panic, be it without the secret, of a node that has it and says anything, or
//! one that is passed on as another's card. The same for a node with a fixed list.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_membership::{
    Card, Input, MemberId, Membership, MembershipConfig, PeerInput, PeerList, Place, Seal,
    SealError, Speech,
};
use airmail_model::{Mono, NodeId};
use airmail_wire::Secret;

fn seal(name: &str) -> Seal {
    Seal::new(5, Secret::new(vec![7; 32]), name, 1)
}

/// A node with a list of two, who hears it from a stranger, and from one who has the secret.
fn hear_as_peer(data: &[u8]) {
    let address = ([127, 0, 0, 1], 7402).into();
    let id = MemberId::new("own", NodeId(1), 1, address);
    let listed = ["a:1".to_owned(), "b:2".to_owned()];
    let mut list = PeerList::new(id, listed, seal("own"), Card::default());
    let mut out = Vec::new();
    let found = list.step(Mono(0), PeerInput::Found(Place(0), address), &mut out);
    assert!(found.is_ok(), "a step without a datagram drops none");
    let stranger = list.step(Mono(0), PeerInput::Datagram(address, data), &mut out);
    assert!(stranger.is_err(), "it has not the secret");
    let sealed = seal("other").speaking(Speech::PeerList).seal(data);
    let taken = list.step(Mono(0), PeerInput::Datagram(address, &sealed), &mut out);
    assert!(matches!(taken, Ok(_) | Err(SealError::Malformed)));
    for seconds in 0..10 {
        let now = Mono(seconds * 1_000_000_000);
        assert!(list.step(now, PeerInput::Tick, &mut out).is_ok());
        assert!(list.members().count() <= 2);
    }
}

fuzz_target!(|data: &[u8]| {
    hear_as_peer(data);
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
