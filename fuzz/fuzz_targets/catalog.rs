//! The commands in log 0: a node starts with any of them, and each name belongs to one namespace.

#![no_main]

use airmail_broker::{AllowAll, Engine, ShardConfig, TurnOutput};
use airmail_fuzz::directory::Directory;
use airmail_fuzz::fuzz_target;
use airmail_log::journal::{JournalConfig, JournalStorage};
use airmail_log::{Call, LogSpec, LogStorage, Tag};
use airmail_model::batch::BatchTarget;
use airmail_model::namespace::LOGS_MAX;
use airmail_model::{
    BatchEncoder, Durability, Limits, LogId, MapEpoch, Message, Mono, Namespace, Now, TopicName,
    Wall,
};

const NOW: Now = Now {
    mono: Mono(1),
    wall: Wall(1),
};

/// Log 0 with these commands in one batch: each has its length before it.
fn storage(data: &[u8]) -> Option<JournalStorage<Directory>> {
    let mut encoder = BatchEncoder::new(LogId::SYSTEM.namespace);
    let mut rest = data;
    while let Some((&length, after)) = rest.split_first() {
        let (command, after) = after.split_at(after.len().min(length.into()));
        let topic = TopicName::new("namespaces", &Limits::DEFAULT).expect("a name");
        let message = Message::new(topic, command.to_vec());
        encoder.push(&message, 0, &Limits::DEFAULT).ok()?;
        rest = after;
    }
    if encoder.is_empty() {
        return None;
    }
    encoder.control();
    let (log, epoch) = (LogId::SYSTEM, MapEpoch(1));
    let batch = encoder.finish(&BatchTarget {
        log,
        epoch,
        producer: None,
        producer_time: 0,
    });
    let storage = JournalStorage::open(Directory::new(Vec::new()), JournalConfig::memory(1), NOW);
    let mut storage = storage.expect("memory opens");
    let spec = LogSpec {
        durability: Durability::MEMORY,
        epoch,
        ..LogSpec::default()
    };
    storage.submit(Call::Open {
        t: Tag(1),
        log,
        spec: Box::new(spec),
    });
    storage.submit(Call::Append {
        t: Tag(2),
        log,
        map: epoch,
        batch,
        sole: false,
    });
    let mut done = Vec::new();
    while done.len() < 2 {
        storage.poll(NOW, &mut done);
    }
    Some(storage)
}

fuzz_target!(|data: &[u8]| {
    let Some(storage) = storage(data) else {
        return;
    };
    let config = ShardConfig::default();
    let node = Engine::new(config, storage, Box::new(AllowAll), Box::new(AllowAll), NOW);
    let mut node = node.expect("a shard can honour a journal");
    let mut out = TurnOutput::default();
    for _ in 0..4 {
        node.turn(NOW, &mut out);
    }
    for entry in node.shard().catalog().iter() {
        let named = node.shard().catalog().by_name(&entry.namespace.name);
        assert_eq!(
            named.map(|other| other.namespace.id),
            Some(entry.namespace.id)
        );
        assert!(Namespace::check_name(&entry.namespace.name).is_ok());
        assert!((1..=LOGS_MAX).contains(&entry.namespace.spec.logs));
    }
});
