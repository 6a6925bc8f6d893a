//! Handshakes: whoever has the secret is let in, by the highest version that both speak, and nobody else is.

#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_log::{AppendClock, Capabilities, Dedup, Numbering, StorageTraits};
use airmail_model::{Durability, LogId, NodeId, StorageName};
use airmail_wire::handshake::{
    Accepting, Asked, Between, Connecting, Credentials, HandshakeError, Heard, Known, Node, Offer,
    OfferedStorage, Refusal, Secret, Told, VERSIONS,
};
use airmail_wire::link_v1;
use airmail_wire::link_v1::handshake_frame::Frame;
use airmail_wire::link_v1::refused::Why;
use bytes::Bytes;
use prost::Message;

const SECRET: [u8; 32] = [7; 32];

fn credentials(name: &str, challenge: u8) -> Credentials {
    Credentials {
        node: Node {
            cluster: 5,
            name: name.to_owned(),
            node: NodeId(u64::from(challenge)),
            boot: 3,
        },
        secret: Secret::new(SECRET.to_vec()),
        versions: VERSIONS,
        challenge: [challenge; 32],
    }
}

fn one() -> Credentials {
    credentials("one", 1)
}

fn other() -> Credentials {
    credentials("other", 2)
}

fn offer() -> Offer {
    Offer {
        shards: 4,
        homes: vec![(LogId::SYSTEM, 0)],
        capabilities: Capabilities {
            dedup: Dedup::AtAppend,
            numbering: Numbering::Dense,
            clock: AppendClock::Monotone,
            strongest: Durability::FSYNC,
            topic_index: true,
            past_end: true,
            seal: true,
            heal: false,
            many_writers: false,
            provisions: false,
            appends_apart: false,
        },
        storages: vec![OfferedStorage {
            name: StorageName::new("fast").unwrap(),
            traits: StorageTraits {
                strongest: Durability::MEMORY,
                topic_index: true,
                seal: true,
            },
        }],
        membership: Some(7402),
    }
}

fn to(shard: u16) -> Asked {
    Asked {
        between: Between { from: 3, to: shard },
        child_address: None,
    }
}

fn sent(frame: &link_v1::HandshakeFrame) -> Bytes {
    frame.encode_to_vec().into()
}

/// Both sides up to the point where the one that accepts knows the other.
fn known(one: Credentials, other: Credentials) -> Result<(Connecting, Known), HandshakeError> {
    let (mut connecting, hello) = Connecting::begin(one, &to(2));
    let mut accepting = Accepting::new(other);
    let Heard::Send(hello) = accepting.step(sent(&hello))? else {
        panic!("known by a Hello");
    };
    let Told::Send(proof) = connecting.step(sent(&hello))? else {
        panic!("no proof was made");
    };
    match accepting.step(sent(&proof))? {
        Heard::Known(known) => Ok((connecting, known)),
        Heard::Send(frame) => panic!("{frame:?} after a proof"),
    }
}

fn refused(one: Credentials, other: Credentials) -> Refusal {
    match known(one, other) {
        Err(HandshakeError::Refusing(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn who_has_the_secret_is_let_in_and_learns_what_the_other_has() {
    let (mut connecting, known) = known(one(), other()).unwrap();
    assert_eq!((&known.link, known.version), (&to(2), *VERSIONS.end()));
    assert_eq!(known.peer, one().node);
    assert!(!connecting.trusts());
    let [proof, welcome] = known.welcome(&offer());
    assert!(matches!(connecting.step(sent(&proof)).unwrap(), Told::Wait));
    assert!(connecting.trusts());
    let Told::Welcome(peer, offered) = connecting.step(sent(&welcome)).unwrap() else {
        panic!("not welcome");
    };
    assert_eq!((peer, offered), (other().node, offer()));
}

#[test]
fn without_a_secret_two_nodes_meet_that_both_have_none() {
    let bare = |credentials: Credentials| Credentials {
        secret: None,
        ..credentials
    };
    known(bare(one()), bare(other())).unwrap();
    let refusal = refused(bare(one()), other());
    assert_eq!(refusal.why, Why::Secret);
    assert_eq!(
        refusal.text,
        "node other has a secret, and node one has none"
    );
    let refusal = refused(one(), bare(other()));
    assert_eq!(
        refusal.text,
        "node other has no secret, and node one has one"
    );
}

#[test]
fn another_secret_gets_nowhere_on_either_side() {
    let stranger = Credentials {
        secret: Secret::new(vec![8; 40]),
        ..one()
    };
    let refusal = refused(stranger.clone(), other());
    assert_eq!(refusal.why, Why::Secret);
    assert_eq!(refusal.text, "nodes other and one have different secrets");

    // One that accepts anybody cannot prove that it is of the cluster.
    let (mut connecting, hello) = Connecting::begin(one(), &to(0));
    let mut accepting = Accepting::new(stranger.clone());
    let Heard::Send(hello) = accepting.step(sent(&hello)).unwrap() else {
        panic!("known by a Hello");
    };
    connecting.step(sent(&hello)).unwrap();
    let (_, known) = self::known(stranger.clone(), stranger).unwrap();
    let [proof, _] = known.welcome(&offer());
    let error = connecting.step(sent(&proof)).unwrap_err();
    assert!(matches!(error, HandshakeError::Refusing(refusal) if refusal.why == Why::Secret));
}

#[test]
fn a_recorded_handshake_does_not_hold_again() {
    let (mut connecting, hello) = Connecting::begin(one(), &to(2));
    let mut accepting = Accepting::new(other());
    let Heard::Send(answer) = accepting.step(sent(&hello)).unwrap() else {
        panic!("known by a Hello");
    };
    let Told::Send(proof) = connecting.step(sent(&answer)).unwrap() else {
        panic!("no proof was made");
    };
    assert!(matches!(
        accepting.step(sent(&proof)).unwrap(),
        Heard::Known(_)
    ));
    // The same two frames at the same node, which asks for something else now.
    let mut again = Accepting::new(credentials("other", 3));
    again.step(sent(&hello)).unwrap();
    let error = again.step(sent(&proof)).unwrap_err();
    assert!(matches!(error, HandshakeError::Refusing(refusal) if refusal.why == Why::Secret));
}

#[test]
fn a_nodes_own_proof_does_not_hold_for_the_other_side() {
    let (mut connecting, hello) = Connecting::begin(one(), &to(0));
    let Told::Send(proof) = connecting.step(sent(&hello)).unwrap() else {
        panic!("no proof was made");
    };
    assert!(connecting.step(sent(&proof)).is_err());
}

#[test]
fn versions_are_a_range_and_the_highest_that_both_speak_is_spoken() {
    let speaks = |credentials: Credentials, versions| Credentials {
        versions,
        ..credentials
    };
    // The next release, which still speaks this one's.
    let ours = *VERSIONS.end();
    let (_, known) = known(speaks(one(), ours..=ours + 1), other()).unwrap();
    assert_eq!(known.version, ours);
    let (_, known) = self::known(one(), speaks(other(), ours..=ours + 1)).unwrap();
    assert_eq!(known.version, ours);
    let (_, known) = self::known(speaks(one(), 1..=3), speaks(other(), 2..=4)).unwrap();
    assert_eq!(known.version, 3);
    // One that does not any more, and one of before, which would give to everybody what is for some.
    for (versions, shown) in [(3..=4, "3..=4"), (1..=1, "1..=1")] {
        let refusal = refused(speaks(one(), versions), other());
        assert_eq!(refusal.why, Why::Version);
        let text = format!("node other speaks versions 2..=2, node one {shown}");
        assert_eq!(refusal.text, text);
    }
}

#[test]
fn what_a_later_version_says_besides_in_its_hello_is_a_part_of_what_is_proven() {
    let (_, hello) = Connecting::begin(one(), &to(2));
    let Some(Frame::Hello(inner)) = hello.frame else {
        panic!("no Hello");
    };
    let mut inner = inner.encode_to_vec();
    // Field 31, of a later version.
    inner.extend([0xf8, 1, 1]);
    let mut later = vec![10, u8::try_from(inner.len()).unwrap()];
    later.extend(inner);
    let mut accepting = Accepting::new(other());
    let answer = accepting.step(later.into()).unwrap();
    assert!(matches!(answer, Heard::Send(_)));
}

#[test]
fn nodes_of_two_clusters_do_not_meet_and_one_of_none_yet_does() {
    let of = |cluster| {
        let mut credentials = one();
        credentials.node.cluster = cluster;
        credentials
    };
    let refusal = refused(of(6), other());
    assert_eq!(refusal.why, Why::Cluster);
    assert_eq!(
        refusal.text,
        "node other is of cluster 0000000000000005, node one of 0000000000000006"
    );
    known(of(0), other()).unwrap();
}

#[test]
fn a_refusal_is_told_with_its_reason_and_frames_out_of_turn_are_none() {
    let (mut connecting, hello) = Connecting::begin(one(), &to(0));
    let refusal = Refusal::new(Why::Name, "one lives at another address");
    let error = connecting.step(sent(&refusal.frame())).unwrap_err();
    let HandshakeError::Refused(told) = error else {
        panic!("{error}");
    };
    assert_eq!(told, refusal);
    let mut accepting = Accepting::new(other());
    accepting.step(sent(&hello)).unwrap();
    assert!(matches!(
        accepting.step(sent(&hello)).unwrap_err(),
        HandshakeError::Malformed(_)
    ));
    assert!(Accepting::new(other()).step(Bytes::new()).is_err());
}

#[test]
fn a_short_secret_is_none() {
    assert!(Secret::new(vec![1; 31]).is_none());
    assert_eq!(format!("{:?}", Secret::new(vec![1; 32]).unwrap()), "Secret");
}
