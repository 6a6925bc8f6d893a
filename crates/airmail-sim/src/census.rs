//! Census of the events in runs, by kind: a kind that never happens is a hole in the simulation,
//! whatever the invariants say.

use airmail_broker::{Flow, Stats};
use std::fmt;

macro_rules! kinds {
    ($(#[$stage:ident] $name:ident = $text:literal,)*) => {
        /// Something that a run may meet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each has its text")]
        pub enum Kind { $($name,)* }

        impl Kind {
            /// Every one of them.
            pub const ALL: &[Kind] = &[$(Kind::$name,)*];

            /// Description in words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Kind::$name => $text,)* }
            }

            /// Where it can happen.
            #[must_use]
            pub const fn place(self) -> Place {
                match self { $(Kind::$name => Place::$stage,)* }
            }
        }
    };
}

/// Stages that can meet a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Every stage.
    All,
    /// [`crate::Stage::Storage`] alone.
    Storage,
    /// [`crate::Stage::World`] and [`crate::Stage::Cluster`].
    World,
    /// The same, but for nodes whose logs are elsewhere: not [`crate::Stage::Kafka`].
    Disks,
    /// [`crate::Stage::Cluster`] alone.
    Cluster,
    /// [`crate::Stage::Kafka`] alone.
    Kafka,
}

kinds! {
    #[All] Started = "process started",
    #[All] Killed = "process killed",
    #[All] PowerCut = "power cut",
    #[All] StoppedClean = "stopped in good order",
    #[All] StoppedDirty = "stopped without getting to the end",
    #[All] WriteFailed = "write failed",
    #[All] SyncFailed = "sync failed",
    #[All] ReadFailed = "read failed",
    #[All] Stalled = "operation stalled",
    #[All] DiskFull = "write refused: disk full",
    #[All] DiskFilled = "disk filled up",
    #[All] DiskAiling = "disk failed every sync for a while",
    #[All] DiskSlow = "disk slow for a while",
    #[All] ConfirmedLate = "sync told long after it was done",
    #[All] WriteTorn = "unsynced write torn by a power cut",
    #[All] WriteLost = "unsynced write lost by a power cut",
    #[All] FileBack = "removed file brought back by a power cut",
    #[All] PayloadDamaged = "bit flipped in a payload",
    #[All] BatchFlipped = "bit flipped in a batch or its envelope",
    #[All] CommandFlipped = "bit flipped in a segment of commands",
    #[All] SegmentFlipped = "bit flipped in a segment, not in a record",
    #[All] IndexFlipped = "bit flipped in an index",
    #[All] CheckpointFlipped = "bit flipped in a checkpoint",
    #[All] EndsFlipped = "bit flipped in the durable ends",
    #[All] IndexCut = "index truncated",
    #[All] CheckpointCut = "checkpoint truncated",
    #[All] SegmentCut = "segment truncated",
    #[All] ClockBack = "wall clock set back",
    #[Storage] ClockAstray = "wall clock hours ahead for a while",
    #[All] ClockLeap = "clock leapt ahead",
    #[Storage] GapUnused = "gap told: unused",
    #[All] GapRetention = "gap told: retention",
    #[All] GapLoss = "gap told: loss",
    #[Storage] BatchSplit = "batch given in pieces around damage",
    #[Storage] Duplicate = "retry answered with the first one's result",
    #[All] RefusedFull = "append refused: full",
    #[All] RefusedBusy = "append refused: busy",
    #[Storage] RefusedIo = "append refused: I/O",
    #[Storage] RefusedUnknown = "append refused: outcome unknown",
    #[Storage] RefusedOrder = "append refused: out of order",
    #[Storage] RefusedStranger = "append refused: unknown producer",
    #[Storage] RefusedFenced = "append refused: fenced",
    #[Storage] RefusedSealed = "append refused: sealed",
    #[Storage] RefusedStale = "append refused: stale map",
    #[Storage] Trimmed = "log trimmed",
    #[Storage] Sealed = "log sealed",
    #[Storage] SealTold = "reader told of a seal",
    #[Storage] Deleted = "log deleted",
    #[Storage] Recreated = "log created again under its id",
    #[Storage] Respecified = "log opened with another durability or retention",
    #[Storage] OpenedLate = "log opened by a spec of an earlier place in log 0",
    #[Storage] Reborn = "volatile log began a new life",
    #[Storage] LockRemoved = "lock file removed",
    #[Storage] LockTaken = "lock file taken by another process",
    #[Storage] DirectoryMoved = "directory moved away",
    #[Storage] DirectoryBack = "directory moved back",
    #[Storage] OtherNodeBegan = "another node begun on the files",
    #[Storage] TimeFound = "time looked up",
    #[Storage] TopicRead = "topic read by index",
    #[World] PublisherRestarted = "publisher restarted with a new id",
    #[World] PublisherFencing = "publisher restarted with a higher epoch of its id",
    #[World] PublisherFenced = "old publisher fenced",
    #[World] StreamCut = "stream cut",
    #[World] AnsweredLate = "answers to a publisher late",
    #[World] Restored = "files set back to an older copy",
    #[World] RestoredQuietly = "files set back, and no new lives asked for",
    #[World] RestoreTold = "subscription told of a loss by a restore",
    #[World] RestoreMet = "log began a new life for a position beyond its end",
    #[World] Provisioned = "logs provisioned for",
    #[World] Withdrawn = "provisions of no namespace withdrawn",
    #[World] SubscribedLatest = "subscribed from latest",
    #[World] SubscribedEarliest = "subscribed from earliest",
    #[World] SubscribedNumber = "subscribed from a number",
    #[World] SubscribedTime = "subscribed from a time",
    #[World] SubscribedPosition = "subscribed from a saved position",
    #[World] HistoryNow = "history until now",
    #[World] HistoryTime = "history until a time",
    #[World] HistoryNumber = "history until a number",
    #[World] HistoryDone = "history complete",
    #[World] PublishedHigh = "message published to lane high",
    #[World] ToldOfBothLanes = "subscription told of both lanes at once",
    #[World] PublishedExpiring = "message published that expires",
    #[World] PublishedRestricted = "message published for some roles",
    #[World] SubscribedFiltered = "subscribed with a filter",
    #[World] FilterChanged = "filter changed",
    #[World] SubscribedSelection = "subscribed to a selection",
    #[World] ExpiredAtNode = "message told as expired by the node",
    #[World] ExpiredAtClient = "message found expired by the client",
    #[World] Unsubscribed = "unsubscribed",
    #[World] Stuck = "subscriber stopped reading",
    #[World] Detached = "live subscription detached for want of credit",
    #[World] PublishWaited = "publish waited to be in flight",
    #[World] PublishTooMany = "publish refused: too many wait",
    #[World] PublishTooLong = "publish refused: waited too long",
    #[World] DeliveryPutOff = "delivery put off: too much not taken",
    #[World] BoundChanged = "a limiter changed its bound",
    #[World] Rejoined = "late subscription went live",
    #[World] CatchUpReader = "catch-up reader started",
    #[World] Sweep = "log swept for many who were behind",
    #[World] Slice = "slice delivered",
    #[World] Mark = "mark sent",
    #[World] NamespaceCreated = "namespace created",
    #[World] NamespaceUpdated = "namespace updated while in use",
    #[World] NamespaceRefused = "stale namespace update refused",
    #[World] NamespaceDeleted = "namespace's deletion asked for",
    #[World] TopicsListed = "topics listed",
    #[World] MessageTimedOut = "message given up after its delivery timeout",
    #[World] NamespaceGone = "message refused: namespace deleted",
    #[World] OutcomeUnknown = "message's outcome unknown",
    #[World] MemoryFull = "publisher's memory full",
    #[World] DuplicateAcked = "retry answered with the first one's result (node)",
    #[World] ManyPublishers = "20 publishers or more",
    #[World] ManyClients = "50 subscribers or more",
    #[World] ManyTopics = "500 topics or more",
    #[World] ManySpaces = "5 namespaces or more",
    #[Disks] NamespaceMoved = "namespace moved to another storage",
    #[Disks] MovedUnderLoad = "namespace moved while publishes to it were under way",
    #[Disks] MoveCutUnsealed = "process ended while a namespace was moved, before the old logs were sealed",
    #[Disks] MoveCutSealed = "process ended while a namespace was moved, when the old logs were sealed",
    #[Disks] MovedLive = "live subscription went on in the log after a move",
    #[Disks] MovedBehind = "subscription that was behind went on in the log after a move",
    #[Disks] PositionOfEarlierMap = "subscribed from a position in a log from before a move",
    #[Disks] RetryOverMove = "retry answered with the first one's result by a log from before a move",
    #[Disks] MapRetired = "map from before a move retired",
    #[Cluster] LinkCut = "link cut",
    #[Cluster] LinkSilent = "direction of a link silent, and cut later",
    #[Cluster] ShardStalled = "shard stalled for a while",
    #[Cluster] ShardIsolated = "shard stalled for good, and the others went on",
    #[Cluster] StreamElsewhere = "client back at another shard",
    #[Cluster] CommandsAtOnce = "command given while another shard had one",
    #[Cluster] GatewayKilled = "gateway killed, and the others went on",
    #[Cluster] TowerKilled = "tower killed, and the others went on",
    #[Cluster] TowerStalled = "tower stalled for a while",
    #[Cluster] TowerIsolated = "tower stalled for good, and the others went on",
    #[Cluster] FalseNews = "gateway told that a tower is gone which lives",
    #[Cluster] ClientMoved = "client went to another gateway by choice",
    #[Cluster] LogMoved = "log moved to another tower",
    #[Cluster] Tree = "processes are a tree",
    #[Cluster] RootEnded = "root ended, and the others went on",
    #[Cluster] TreeNodeKilled = "node of a tree killed, and the others went on",
    #[Cluster] TreeNodeStalled = "node of a tree stalled for a while",
    #[Cluster] TreeNodeIsolated = "node of a tree stalled for good, and the others went on",
    #[Cluster] FalseStart = "node of a tree ended as soon as it had started",
    #[Cluster] WayCut = "way between nodes of a tree cut",
    #[Cluster] WayCutOneWay = "way between nodes of a tree cut in one direction",
    #[Cluster] PlaceLost = "node of a tree missed the root's count, and left",
    #[Cluster] Reattached = "node of a tree attached to another parent",
    #[Cluster] ParentBetter = "node of a tree went back to a parent of its settings",
    #[Cluster] SentOn = "node of a tree sent on to a child of the one it asked",
    #[Cluster] TooDeep = "node of a tree refused: too deep",
    #[Cluster] CirclePrevented = "circle in a tree prevented",
    #[Cluster] ManyWriters = "nodes append to the same logs, which are on none of them",
    #[Cluster] WriterKilled = "node of those that append to the same logs killed",
    #[Kafka] PartitionDead = "partition of Kafka dead for a while",
    #[Kafka] DeadForLong = "partition of Kafka dead for up to 25 hours",
    #[Kafka] HoursPassed = "hours passed at once",
    #[Kafka] LeaderIsolated = "isolated leader of Kafka went on answering",
    #[Kafka] BrokersCutOff = "node cut off from Kafka's brokers",
    #[Kafka] BrokersSlow = "Kafka's brokers slow for a while",
    #[Kafka] UncleanElection = "unclean election cut a log",
    #[Kafka] TopicDeleted = "topic of Kafka deleted by hand",
    #[Kafka] TopicMadeAgain = "topic of Kafka made again by hand",
    #[Kafka] CopyLeftOut = "copy on Kafka that readers are not given",
    #[Kafka] StragglerLeftOut = "straggler on Kafka that readers are not given",
    #[Kafka] NodeJoined = "node came while the others had begun",
    #[Cluster] HealedRunning = "links healed under a running process",
}

/// Number of times that each kind has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    counts: Vec<u64>,
}

impl Default for Census {
    fn default() -> Census {
        Census {
            counts: vec![0; Kind::ALL.len()],
        }
    }
}

impl Census {
    /// It has happened once more.
    pub fn count(&mut self, kind: Kind) {
        self.add(kind, 1);
    }

    /// It has happened so often.
    pub fn add(&mut self, kind: Kind, times: u64) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count += times;
        }
    }

    /// Number of times that a kind has happened.
    #[must_use]
    pub fn get(&self, kind: Kind) -> u64 {
        self.counts.get(kind as usize).copied().unwrap_or(0)
    }

    /// Takes over what another has counted.
    pub fn merge(&mut self, other: &Census) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Adds the counters of a shard's whole life.
    pub fn take_shard(&mut self, stats: &Stats, flow: &Flow) {
        self.add(Kind::Detached, stats.detached);
        self.add(Kind::Rejoined, stats.rejoined);
        self.add(Kind::CatchUpReader, stats.catch_up_readers_started);
        self.add(Kind::Sweep, stats.catch_up_sweeps);
        self.add(Kind::Slice, stats.slices);
        self.add(Kind::Mark, stats.marks);
        self.add(Kind::RestoreMet, stats.renewed);
        self.add(Kind::DuplicateAcked, stats.duplicates);
        for (_, _, gate) in flow.gates() {
            let changed = gate
                .recent
                .iter()
                .filter(|one| one.bound != one.bound_before);
            self.add(Kind::BoundChanged, changed.count() as u64);
        }
        if let Some(publishes) = &flow.publishes {
            let [too_many, too_long] = publishes.refused;
            self.add(Kind::PublishWaited, publishes.waited);
            self.add(Kind::PublishTooMany, too_many);
            self.add(Kind::PublishTooLong, too_long);
        }
        let put_off = flow.deliveries.as_ref().map_or(0, |gate| gate.waited);
        self.add(Kind::DeliveryPutOff, put_off);
    }

    /// The kinds of `place`, or of every stage, that never happened.
    #[must_use]
    pub fn holes(&self, place: Place) -> Vec<Kind> {
        let here = |kind: &Kind| match kind.place() {
            Place::All => true,
            Place::World => matches!(place, Place::World | Place::Cluster | Place::Kafka),
            Place::Disks => matches!(place, Place::World | Place::Cluster),
            of => of == place,
        };
        let all = Kind::ALL.iter().copied();
        all.filter(|kind| here(kind) && self.get(*kind) == 0)
            .collect()
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in Kind::ALL {
            writeln!(f, "{:>12}  {}", self.get(*kind), kind.text())?;
        }
        Ok(())
    }
}
