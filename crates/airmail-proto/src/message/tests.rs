use super::*;
use airmail_model::NamespaceId;
use std::collections::BTreeMap;

const NAMESPACE: NamespaceId = NamespaceId(3);
const LIMITS: Limits = Limits::DEFAULT;

fn map(logs: u16) -> LogMap {
    LogMap::even(NAMESPACE, MapEpoch(2), LogIndex(0), logs)
}

fn message(topic: &str, payload: String) -> v1::Message {
    v1::Message {
        topic: topic.into(),
        payload: payload.into(),
        ..Default::default()
    }
}

fn everything(batch: &Batch) -> Vec<v1::StoredMessage> {
    let placed = Placed {
        log: batch.log(),
        incarnation: Incarnation(1),
        epoch: MapEpoch(2),
        base: Sequence(100),
        appended: AppendTime(5),
    };
    let covers = Extent {
        first: Sequence(100),
        last: Sequence::MAX,
    };
    stored_messages(batch, &placed, covers, |_, _, _| Some(Vec::new()), |_| None)
}

#[test]
fn a_message_survives_with_every_kind_of_attribute() {
    use v1::attribute::Value;
    let mut sent = message("orders", "payload".into());
    let values = [
        Value::Text("é".into()),
        Value::Integer(i64::MIN),
        Value::Float(-0.5),
        Value::Boolean(true),
    ];
    for (n, value) in values.into_iter().enumerate() {
        let value = Some(value);
        sent.attributes
            .insert(format!("k{n}"), v1::Attribute { value });
    }
    let batches = messages_to_batches(&map(1), vec![sent.clone()], 7, &LIMITS).unwrap();
    let stored = everything(&batches[0]);
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].topic, sent.topic);
    assert_eq!(stored[0].payload, sent.payload);
    assert_eq!(stored[0].attributes, sent.attributes);
    assert_eq!((stored[0].sequence, stored[0].appended_at_us), (100, 5));
    let position: Position = stored[0].position.parse().unwrap();
    assert_eq!(position.logs[0].next, Sequence(101));
}

#[test]
fn messages_are_split_by_log_and_each_topic_keeps_its_order() {
    let map = map(4);
    let messages = (0..400).map(|n| message(&format!("t{}", n % 40), n.to_string()));
    let batches = messages_to_batches(&map, messages.collect(), 0, &LIMITS).unwrap();
    assert_eq!(batches.len(), 4);
    let mut seen = BTreeMap::new();
    for batch in &batches {
        assert_eq!(batch.map_epoch(), MapEpoch(2));
        for stored in everything(batch) {
            let topic = TopicName::new(&stored.topic, &LIMITS).unwrap();
            assert_eq!(map.log(topic.hash(NAMESPACE), Lane::Normal), batch.log());
            let number: u32 = std::str::from_utf8(&stored.payload)
                .unwrap()
                .parse()
                .unwrap();
            let before = seen.insert(stored.topic, number);
            assert!(before.is_none_or(|before| before < number));
        }
    }
    assert_eq!(seen.len(), 40);
}

#[test]
fn a_plain_message_goes_to_the_log_of_its_lane_and_comes_back_with_it() {
    let in_lane = |lane: v1::Lane, payload: &str| v1::Message {
        lane: lane.into(),
        ..message("t", payload.into())
    };
    let messages = vec![
        in_lane(v1::Lane::Normal, "normal"),
        in_lane(v1::Lane::High, "high"),
    ];
    let batches = messages_to_batches(&map(4), messages, 0, &LIMITS).unwrap();
    assert_eq!(batches.len(), 2);
    for batch in &batches {
        let stored = everything(batch);
        let lane = batch.log().lane;
        assert_eq!(stored[0].payload, lane.to_string());
        assert_eq!(lane_from_proto(stored[0].lane), Some(lane));
    }
}

#[test]
fn a_message_of_lane_high_survives() {
    let sent = v1::Message {
        lane: v1::Lane::High.into(),
        ..message("t", "x".into())
    };
    let read = message_from_proto(sent.clone(), &LIMITS).unwrap();
    assert_eq!(read.lane, Lane::High);
    assert_eq!(message_to_proto(&read), sent);
}

#[test]
fn a_lane_that_there_is_not_is_refused_by_its_number() {
    let strange = v1::Message {
        lane: 2,
        ..message("t", "x".into())
    };
    let error = message_from_proto(strange, &LIMITS).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!((error.field_name(), error.found()), ("lane", "2"));
}

#[test]
fn what_does_not_fit_into_one_batch_goes_into_several() {
    let messages = (0..10).map(|n| message("t", n.to_string().repeat(30 << 10)));
    let batches = messages_to_batches(&map(1), messages.collect(), 0, &LIMITS).unwrap();
    assert!(batches.len() > 1);
    let stored: usize = batches.iter().map(|batch| everything(batch).len()).sum();
    assert_eq!(stored, 10);
}

#[test]
fn one_bad_message_refuses_all() {
    let messages = vec![message("t", "good".into()), message("", "bad".into())];
    let error = messages_to_batches(&map(1), messages, 0, &LIMITS).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TopicInvalid);
    let error = messages_to_batches(&map(1), Vec::new(), 0, &LIMITS).unwrap_err();
    assert_eq!(error.field_name(), "messages");
}

#[test]
fn only_what_is_covered_and_wanted_is_taken_out() {
    let messages = (0..10).map(|n| message(&format!("t{}", n % 2), n.to_string()));
    let batches = messages_to_batches(&map(1), messages.collect(), 0, &LIMITS).unwrap();
    let placed = Placed {
        log: batches[0].log(),
        incarnation: Incarnation(1),
        epoch: MapEpoch(2),
        base: Sequence(1),
        appended: AppendTime(0),
    };
    let covers = Extent {
        first: Sequence(3),
        last: Sequence(8),
    };
    let wanted = |_, topic: TopicEntry<'_>, _| (topic.name == "t0").then(Vec::new);
    let taken = stored_messages(&batches[0], &placed, covers, wanted, |_| None);
    let numbers: Vec<u64> = taken.iter().map(|message| message.sequence).collect();
    assert_eq!(numbers, [3, 5, 7]);
}

#[test]
fn a_log_survives_and_an_impossible_one_is_refused() {
    let log = LogId {
        namespace: NAMESPACE,
        lane: Lane::High,
        index: LogIndex(9),
    };
    assert_eq!(log_from_proto(Some(&log_to_proto(log))).unwrap(), log);
    let wire = v1::Log {
        index: 70_000,
        ..log_to_proto(log)
    };
    assert_eq!(
        log_from_proto(Some(&wire)).unwrap_err().field_name(),
        "log.index"
    );
    assert_eq!(log_from_proto(None).unwrap_err().field_name(), "log");
}
