//! Systems that take part, and the promise of an ack in each.

use super::server::Kind;

/// A system, as it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// Airmail as it comes.
    AirmailDisk,
    /// Airmail that stores nothing on a disk.
    AirmailMemory,
    /// NATS without JetStream.
    Nats,
    /// JetStream as it comes, on files.
    JetStream,
    /// JetStream with `sync_interval: always`.
    JetStreamSynced,
    /// Redis Streams with the append-only file as it comes.
    RedisEverySecond,
    /// Redis Streams with the append-only file synced before each reply.
    RedisAlways,
    /// Kafka, one broker.
    Kafka,
    /// No system: write and fdatasync of a file that was written before.
    Disk,
}

impl Subject {
    /// All of them, or without those that differ least.
    pub(super) fn all(quick: bool) -> Vec<Subject> {
        let all = [
            Subject::AirmailDisk,
            Subject::AirmailMemory,
            Subject::Nats,
            Subject::JetStream,
            Subject::JetStreamSynced,
            Subject::RedisEverySecond,
            Subject::RedisAlways,
            Subject::Kafka,
            Subject::Disk,
        ];
        let slow = [Subject::RedisAlways, Subject::JetStreamSynced];
        let mut chosen = all.to_vec();
        chosen.retain(|subject| !quick || !slow.contains(subject));
        chosen
    }

    /// The system that the others are compared with.
    pub(super) const BASELINE: Subject = Subject::AirmailDisk;

    /// Its name in tables and figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Subject::AirmailDisk => "Airmail, disk",
            Subject::AirmailMemory => "Airmail, memory",
            Subject::Nats => "NATS core",
            Subject::JetStream => "JetStream, file",
            Subject::JetStreamSynced => "JetStream, always",
            Subject::RedisEverySecond => "Redis, 1 s",
            Subject::RedisAlways => "Redis, always",
            Subject::Kafka => "Kafka",
            Subject::Disk => "the disk alone",
        }
    }

    /// Its name in rows.
    pub(super) fn system(self) -> &'static str {
        match self {
            Subject::AirmailDisk | Subject::AirmailMemory => "airmail",
            Subject::Nats => "nats",
            Subject::JetStream | Subject::JetStreamSynced => "jetstream",
            Subject::RedisEverySecond | Subject::RedisAlways => "redis",
            Subject::Kafka => "kafka",
            Subject::Disk => "disk",
        }
    }

    /// Promise of an ack, in rows.
    pub(super) fn durability(self) -> &'static str {
        match self {
            Subject::AirmailDisk => "fsync",
            Subject::AirmailMemory => "memory",
            Subject::Nats => "none",
            Subject::JetStream => "file, sync_interval 2m",
            Subject::JetStreamSynced => "file, sync_interval always",
            Subject::RedisEverySecond => "appendfsync everysec",
            Subject::RedisAlways => "appendfsync always",
            Subject::Kafka => "acks=all, 1 broker, no sync",
            Subject::Disk => "fdatasync",
        }
    }

    /// Promise of an ack, in words.
    pub(super) fn promise(self) -> &'static str {
        match self {
            Subject::AirmailDisk => "on the disk before the ack and before delivery",
            Subject::AirmailMemory => "in memory: lost when the process ends",
            Subject::Nats => "nothing stored, nothing acknowledged",
            Subject::JetStream => "written to a file that is synced every 2 minutes",
            Subject::JetStreamSynced => "on the disk before the ack",
            Subject::RedisEverySecond => "in memory, written to a file that is synced every second",
            Subject::RedisAlways => "in memory, and on the disk before the reply",
            Subject::Kafka => "written to files that nobody syncs, one replica",
            Subject::Disk => "4 KiB written and synced: what a durable ack takes at least",
        }
    }

    /// Its place among the colours.
    pub(super) fn colour(self) -> usize {
        self as usize
    }

    /// Whether it is Airmail.
    pub(super) fn is_airmail(self) -> bool {
        matches!(self, Subject::AirmailDisk | Subject::AirmailMemory)
    }

    /// Whether this program has a client for it only with the feature `rivals`.
    pub(super) fn needs_feature(self) -> bool {
        !self.is_airmail() && self != Subject::Disk
    }

    /// Whether it runs throughout.
    pub(super) fn is_kept(self) -> bool {
        self == Subject::Kafka
    }

    /// Further options of a node.
    pub(super) fn node_options(self) -> Vec<String> {
        match self {
            Subject::AirmailMemory => vec!["--log=memory:".to_owned()],
            _ => Vec::new(),
        }
    }

    /// The server that it is; none where it is a node of ours.
    pub(super) fn server(self) -> Option<Kind> {
        match self {
            Subject::AirmailDisk | Subject::AirmailMemory | Subject::Disk => None,
            Subject::Nats => Some(Kind::Nats),
            Subject::JetStream => Some(Kind::JetStream { always: false }),
            Subject::JetStreamSynced => Some(Kind::JetStream { always: true }),
            Subject::RedisEverySecond => Some(Kind::Redis { always: false }),
            Subject::RedisAlways => Some(Kind::Redis { always: true }),
            Subject::Kafka => Some(Kind::Kafka),
        }
    }
}
