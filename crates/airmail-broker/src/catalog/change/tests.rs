//! Claims about the commands' bytes.

use super::*;
use airmail_model::namespace::LOGS_MAX;
use airmail_model::{Incarnation, Lane, LogIndex, Synced};

fn create(id: u32, name: &str) -> Change {
    Change::Create {
        id: NamespaceId(id),
        name: name.to_owned(),
        spec: NamespaceSpec {
            logs: 7,
            retention: Retention {
                time_ms: Some(5),
                bytes: None,
            },
            durability: Durability::OS,
            storage: StorageName::FIRST,
        },
        provisions: Provisions::NONE,
    }
}

const LOG: LogId = LogId {
    namespace: NamespaceId(9),
    lane: Lane::Normal,
    index: LogIndex(258),
};

fn suspend(at: Option<Sequence>) -> Change {
    let loss = LogLoss {
        life: Incarnation(7),
        next_life: Incarnation(u64::MAX),
        at,
        end: Sequence(9),
    };
    Change::Suspend { log: LOG, loss }
}

/// The same in a storage.
fn create_in(storage: &str, copies: u8) -> Change {
    let mut change = create(9, "orders");
    if let Change::Create { spec, .. } = &mut change {
        spec.storage = StorageName::new(storage).expect("a name");
        spec.durability.copies = copies;
    }
    change
}

#[test]
fn every_command_is_read_as_written_and_no_part_of_it_is() {
    let id = NamespaceId(9);
    let update = Change::Update {
        id,
        based_on: 3,
        retention: Retention::default(),
        durability: Durability::FSYNC,
    };
    let delete = Change::Delete { id, based_on: 4 };
    let mut copied = create(9, "orders");
    if let Change::Create { spec, .. } = &mut copied {
        spec.durability.copies = 3;
    }
    let fewer = Change::Update {
        id,
        based_on: 3,
        retention: Retention::default(),
        durability: Durability {
            synced: Synced::Memory,
            copies: 2,
        },
    };
    let purged = Change::Purged { id, epoch: None };
    let raise = Change::Raise { version: 2 };
    let moved = |storage, provisions: &[u8]| Change::Move {
        id,
        based_on: 3,
        storage,
        provisions: Provisions::new(provisions).expect("few"),
    };
    let retired = Change::Retired {
        id,
        epoch: MapEpoch(2),
        ends: vec![Sequence(1), Sequence(u64::MAX)],
        high_ends: Vec::new(),
    };

    let epoch = Some(MapEpoch(2));
    for change in [
        create(9, "orders"),
        copied,
        create_in("fast", 1),
        create_in("fast", 3),
        update,
        fewer,
        delete,
        purged,
        raise,
        moved(StorageName::FIRST, b""),
        moved(StorageName::new("fast").expect("a name"), &[0xff, 0]),
        retired,
        Change::Purged { id, epoch },
        suspend(Some(Sequence(5))),
        suspend(None),
        Change::Truncate {
            log: LOG,
            cuts: 3,
            at: Sequence(5),
        },
        Change::Recreate {
            id,
            based_on: 3,
            provisions: Provisions::new(&[0xff, 0]).expect("few"),
        },
    ] {
        assert_read_as_written(change);
    }
}

#[test]
fn commands_about_roles_and_lane_high_are_read_as_written_and_no_part_of_them_is() {
    let id = RoleId(9);
    let name = "the cook".to_owned();
    for change in [Change::CreateRole { id, name }, Change::DeleteRole { id }] {
        assert_read_as_written(change);
    }
    let id = NamespaceId(9);
    assert_read_as_written(Change::AddHigh { id });
    assert_read_as_written(Change::Retired {
        id,
        epoch: MapEpoch(2),
        ends: vec![Sequence(1), Sequence(2)],
        high_ends: vec![Sequence(3), Sequence(4)],
    });
    let id = RoleId(9);
    let nameless = Change::CreateRole {
        id,
        name: String::new(),
    };
    assert_eq!(Change::decode(&nameless.encode()), None);
}

#[test]
fn a_batch_for_log_0_is_known_by_what_its_readers_have_to_know_of() {
    let role = Change::DeleteRole { id: RoleId(9) };
    let needed = |change: &Change, raised| {
        let batch = change.to_batch(Wall(1), raised).expect("small");
        needed_by(&batch)
    };
    assert_eq!(needed(&role, FIRST_VERSION), Needs::Roles);
    assert_eq!(needed(&role, LAST_VERSION), Needs::Roles);
    let raise = |version| Change::Raise { version };
    assert_eq!(needed(&raise(ROLES), ROLES), Needs::Roles);
    let high = Change::AddHigh { id: NamespaceId(1) };
    assert_eq!(needed(&high, LAST_VERSION), Needs::Lanes);
    assert_eq!(needed(&raise(LANES), FIRST_VERSION), Needs::Lanes);
    let plain = Needs::Nothing;
    assert_eq!(needed(&create(1, "orders"), FIRST_VERSION), plain);
    assert_eq!(needed(&create_in("fast", 3), FIRST_VERSION), plain);
}

/// Asserts that a command is read as it is written, and that no part of it is a command.
fn assert_read_as_written(change: Change) {
    let bytes = change.encode();
    assert_eq!(Change::decode(&bytes), Some(change));
    for cut in 0..bytes.len() {
        assert_eq!(Change::decode(&bytes[..cut]), None);
    }
}

#[test]
fn a_command_of_one_copy_is_written_as_every_version_reads_it() {
    let of_version_1 = [
        &[1, 1, 9, 0, 0, 0, 7, 0, 1, 5][..],
        &[0; 7],
        &[0xff; 8],
        b"\x06orders",
    ]
    .concat();
    assert_eq!(create(9, "orders").encode(), of_version_1);
    assert_eq!(Change::decode(&of_version_1), Some(create(9, "orders")));
}

#[test]
fn a_namespace_with_fewer_than_two_copies_is_void_in_version_2() {
    let mut copied = create(9, "orders");
    if let Change::Create { spec, .. } = &mut copied {
        spec.durability.copies = 0;
    }
    let mut bytes = copied.encode();
    assert_eq!(bytes[0], ONE_COPY, "nobody writes that");
    bytes[0] = COPIES;
    bytes.insert(25, 0);
    for (copies, sound) in [(0, false), (1, false), (2, true), (255, true)] {
        bytes[25] = copies;
        assert_eq!(Change::decode(&bytes).is_some(), sound, "{copies}");
    }
}

#[test]
fn a_storage_is_said_in_version_3_and_only_there() {
    let of_version_3 = [
        &[3, 1, 9, 0, 0, 0, 7, 0, 1, 5][..],
        &[0; 7],
        &[0xff; 8],
        &[2],
        b"\x06orders\x04fast",
    ]
    .concat();
    assert_eq!(create_in("fast", 2).encode(), of_version_3);
    assert_eq!(Change::decode(&of_version_3), Some(create_in("fast", 2)));
    for version in [1, 2] {
        let mut bytes = of_version_3.clone();
        bytes[0] = version;
        assert_eq!(Change::decode(&bytes), None, "in version {version}");
    }
    let mut nobodys = of_version_3.clone();
    nobodys[25] = 0;
    assert_eq!(Change::decode(&nobodys), None, "without a copy");
    let named = |name: &[u8]| {
        let length = u8::try_from(name.len()).expect("short");
        let body = &of_version_3[..of_version_3.len() - 5];
        Change::decode(&[body, &[length], name].concat())
    };
    assert!(named(&[b'x'; 32]).is_some());
    for name in [&b""[..], b"Fast", b"a b", &[b'x'; 33]] {
        assert_eq!(named(name), None, "{name:?}");
    }
}

#[test]
fn provisions_are_said_in_version_4_and_only_there() {
    let provisioned = |storage: StorageName, bytes: &[u8]| {
        let mut change = create(9, "orders");
        if let Change::Create {
            spec, provisions, ..
        } = &mut change
        {
            spec.storage = storage;
            *provisions = Provisions::new(bytes).expect("few");
        }
        change
    };
    let body = [
        &[4, 1, 9, 0, 0, 0, 7, 0, 1, 5][..],
        &[0; 7],
        &[0xff; 8],
        &[1],
        b"\x06orders",
    ]
    .concat();
    let fast = StorageName::new("fast").expect("a name");
    for (storage, name) in [(StorageName::FIRST, &b"\0"[..]), (fast, b"\x04fast")] {
        let change = provisioned(storage, &[0xff, 0]);
        let of_version_4 = [&body[..], name, b"\x02\xff\0"].concat();
        assert_eq!(change.encode(), of_version_4);
        assert_eq!(Change::decode(&of_version_4), Some(change));
        for version in 1..4 {
            let mut bytes = of_version_4.clone();
            bytes[0] = version;
            assert_eq!(Change::decode(&bytes), None, "in version {version}");
        }
    }
    let of = |bytes: &[u8]| Change::decode(&[&body[..], bytes].concat());
    assert_eq!(of(b"\0\0"), None, "none are said in an earlier version");
    let most = Provisions::new(&[7; 64]).expect("as many as may be");
    assert!(of(&[&[0, 64][..], most.as_bytes()].concat()).is_some());
    assert_eq!(of(&[&[0, 65][..], &[7; 65]].concat()), None);
}

#[test]
fn a_move_is_said_in_version_5_and_only_there() {
    let id = NamespaceId(9);
    let storage = StorageName::new("far").expect("a name");
    let change = Change::Move {
        id,
        based_on: 3,
        storage,
        provisions: Provisions::new(&[0xff]).expect("few"),
    };
    let of_version_5 = [&[5, 6, 9, 0, 0, 0, 3][..], &[0; 7], b"\x03far\x01\xff"].concat();
    assert_eq!(change.encode(), of_version_5);
    let retired = Change::Retired {
        id,
        epoch: MapEpoch(1),
        ends: vec![Sequence(7)],
        high_ends: Vec::new(),
    };
    let ended = [&[5, 7, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 7][..], &[0; 7]].concat();
    assert_eq!(retired.encode(), ended);
    for bytes in [of_version_5, ended] {
        assert!(Change::decode(&bytes).is_some());
        for version in 1..MOVES {
            let mut earlier = bytes.clone();
            earlier[0] = version;
            assert_eq!(Change::decode(&earlier), None, "in version {version}");
        }
    }
    let purged = Change::Purged { id, epoch: None };
    assert_eq!(
        purged.encode(),
        [1, 4, 9, 0, 0, 0],
        "as every version reads it"
    );
}

#[test]
fn a_namespace_that_no_node_would_make_is_void() {
    let of_logs = |logs| {
        let mut bytes = create(9, "orders").encode();
        bytes[6..8].copy_from_slice(&u16::to_le_bytes(logs));
        Change::decode(&bytes)
    };
    assert!(of_logs(LOGS_MAX).is_some());
    assert_eq!(of_logs(0), None);
    assert_eq!(of_logs(LOGS_MAX + 1), None);
    for name in ["", "_system", "a b", "ä"] {
        assert_eq!(Change::decode(&create(9, name).encode()), None, "{name}");
    }
}
