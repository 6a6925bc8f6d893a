//! Positions and maps: a written position is read again unchanged, and every slot has an owner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use airmail_model::map::SLOTS;
use airmail_model::position::LogPosition;
use airmail_model::{
    ErrorCode, Incarnation, Lane, LogId, LogIndex, LogMap, MapEpoch, NamespaceId, Position,
    Sequence, TopicHash, TopicName,
};
use proptest::collection::btree_map;
use proptest::prelude::*;

fn position() -> impl Strategy<Value = Position> {
    let logs = btree_map(
        (any::<bool>(), any::<u16>()),
        (any::<u64>(), any::<u64>()),
        0..5,
    );
    (any::<u32>(), any::<u32>(), logs).prop_map(|(namespace, epoch, logs)| Position {
        namespace: NamespaceId(namespace),
        epoch: MapEpoch(epoch),
        logs: logs
            .into_iter()
            .map(|((high, index), (incarnation, next))| LogPosition {
                log: LogId {
                    namespace: NamespaceId(namespace),
                    lane: if high { Lane::High } else { Lane::Normal },
                    index: LogIndex(index),
                },
                incarnation: Incarnation(incarnation),
                next: Sequence(next),
            })
            .collect(),
    })
}

fn refused(text: &str) -> bool {
    text.parse::<Position>()
        .is_err_and(|error| error.code() == ErrorCode::PositionInvalid)
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(position in position()) {
        prop_assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
    }

    #[test]
    fn a_text_cut_or_changed_is_refused(position in position()) {
        let text = position.to_string();
        for at in 0..text.len() {
            prop_assert!(refused(&text[..at]));
            for other in ["A", "b", "_", "="] {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                prop_assert!(changed == text || refused(&changed), "{}", changed);
            }
        }
    }

    #[test]
    fn no_text_makes_reading_panic(text in ".{0,80}") {
        let _ = text.parse::<Position>();
        let _ = format!("pos1-{text}").parse::<Position>();
    }

    #[test]
    fn every_slot_has_an_owner_and_no_log_has_two_slots_more_than_another(logs in 1..=1024_u16) {
        let map = LogMap::even(NamespaceId(7), MapEpoch(1), LogIndex(3), logs);
        let mut owned = vec![0_usize; logs.into()];
        for (slot, index) in map.slots().iter().enumerate() {
            owned[usize::from(index.0 - 3)] += 1;
            // A topic's slot is the top of its hash, whatever comes below.
            let topic = TopicHash((slot as u128) << 116 | 0xffff);
            prop_assert_eq!(map.log(topic, Lane::Normal).index, *index);
        }
        prop_assert_eq!(owned.iter().sum::<usize>(), SLOTS);
        let (least, most) = (owned.iter().min().unwrap(), owned.iter().max().unwrap());
        prop_assert!(most - least <= 1);
        prop_assert_eq!(map.logs(Lane::Normal).count(), usize::from(logs));
    }
}

#[test]
fn topics_are_spread_evenly_over_logs_and_each_stays_where_it_is() {
    let map = |epoch| LogMap::even(NamespaceId(7), MapEpoch(epoch), LogIndex(0), 16);
    let (first, later) = (map(1), map(2));
    let mut topics = [0_u32; 16];
    for n in 0..16_000 {
        let topic = TopicName::hash_of(NamespaceId(7), &format!("user/{n}"));
        let log = first.log(topic, Lane::Normal);
        topics[usize::from(log.index.0)] += 1;
        assert_eq!(later.log(topic, Lane::Normal), log);
    }
    // 1,000 are expected of each, give or take 31; these are six times that.
    assert!(
        topics.iter().all(|count| (810..1_190).contains(count)),
        "{topics:?}"
    );
}

#[test]
fn a_position_that_names_a_log_twice_is_refused() {
    let log = LogPosition {
        log: LogId {
            namespace: NamespaceId(7),
            ..LogId::default()
        },
        incarnation: Incarnation(0),
        next: Sequence(1),
    };
    let twice = Position {
        namespace: NamespaceId(7),
        epoch: MapEpoch(1),
        logs: vec![log, log],
    };
    assert!(refused(&twice.to_string()));
}

#[test]
fn a_position_of_all_the_logs_a_map_can_name_is_read_and_a_longer_text_is_not() {
    let log = |index| LogPosition {
        log: LogId {
            namespace: NamespaceId(7),
            lane: Lane::Normal,
            index: LogIndex(index),
        },
        incarnation: Incarnation(1),
        next: Sequence(2),
    };
    let position = |logs| Position {
        namespace: NamespaceId(7),
        epoch: MapEpoch(1),
        logs: (0..logs).map(log).collect(),
    };
    let most = position(4096);
    assert_eq!(most.to_string().parse::<Position>().unwrap(), most);
    assert!(refused(&position(4097).to_string()));
    assert!(refused(&format!("pos1-{}", "A".repeat(1 << 20))));
}
