//! Settings of a journal, with their defaults.

use super::format::{META_CLASS, SYSTEM_CLASS};
use super::id::{ClassId, FileOffset, Slot};
use airmail_model::random::nth;
use airmail_model::{Incarnation, Limits, NodeId, NormalShare, Synced};
use std::time::Duration;

/// Settings of a journal. [`JournalConfig::default`] is for a disk; [`JournalConfig::memory`] for
/// files that do not outlive the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// The cluster that the data belongs to; files of another are refused. Default 0.
    pub cluster: u64,
    /// The node that the data belongs to; files of another are refused. Default 0.
    pub node: NodeId,
    /// The shard that the data belongs to; files of another are refused. Default 0.
    pub shard: u32,
    /// Source of salts and incarnations; the shell draws it anew for each open. Default 0.
    pub seed: u64,
    /// The strongest that the files can give, of their one copy. Default `fsync`.
    pub strongest: Synced,
    /// Each log gets a new incarnation when the journal opens, and no numbers are reserved.
    /// Default false.
    pub new_incarnations: bool,
    /// Whether each log begins a new life when the journal opens, and keeps its records and
    /// numbers: the files are an older copy of themselves. Default false.
    pub renewed: bool,
    /// Size of a segment file, in bytes; one batch alone may be larger. Default 64 MiB.
    pub segment_bytes: u64,
    /// Size of a segment file for the journal's own commands, in bytes. Default 1 MiB.
    pub meta_segment_bytes: u64,
    /// Distance ahead of the writing end to which a segment is filled with zeros, in bytes; 0: not
    /// at all. Default 4 MiB.
    pub fill_bytes: u64,
    /// Emptied segments kept for new ones. Default 2.
    pub recycled_max: usize,
    /// Time for which files that are ready for new segments (emptied ones, and those made ahead)
    /// stay when no segment is made. Default 20 s.
    pub spare_time: Duration,
    /// A segment is indexed in blocks of about this size, in bytes. Default 8 MiB.
    pub block_bytes: u64,
    /// A checkpoint is written when this much has been appended since the last, in bytes.
    /// Default 16 MiB.
    pub checkpoint_bytes: u64,
    /// Largest commit, in bytes (one batch alone may be larger). Default 4 MiB.
    pub commit_bytes: u64,
    /// Longest time that batches for which no publisher waits (of logs of durability `memory` and lane `normal`)
    /// gather before a commit takes them; if there is anything else to do in its last quarter, they
    /// go then. Default 20 ms.
    pub gather_time: Duration,
    /// Total size of the batches that may gather in this way, in bytes. Default 256 KiB.
    pub gather_bytes: u64,
    /// Total size of the batches that may wait to be stored, in bytes; more is refused as `Busy`. Lane `high` may
    /// use an eighth more, on top. Default 64 MiB.
    pub pending_bytes: u64,
    /// Share of the bytes that lane `normal` gets in commits and of readers' turns while lane `high` waits too.
    /// Default 1/4.
    pub normal_share: NormalShare,
    /// Written but not synced bytes (logs of durability `os` or `memory`) that cause a sync.
    /// 0: every write is synced. Default 4 MiB.
    pub unsynced_bytes: u64,
    /// Longest time for which written bytes stay unsynced. Default 1 s.
    pub unsynced_time: Duration,
    /// The newest batches kept in memory for readers, in bytes. Default 16 MiB.
    pub cache_bytes: u64,
    /// Bytes read last for readers of everything, kept for others that are a little behind them.
    /// Default 16 MiB.
    pub run_cache_bytes: u64,
    /// One read of a segment, in bytes (one batch alone may be more). Default 256 KiB.
    pub read_bytes: u32,
    /// Reads under way at once. Default 64.
    pub reads_max: usize,
    /// Numbers reserved ahead for a log weaker than `fsync`. Default 1,048,576.
    pub reserve_numbers: u64,
    /// Difference between the wall clock and the time that the monotone clock and the last start
    /// imply, from which the wall clock counts as having jumped: retention by time then waits. At
    /// least 1 ms. Default 1 h.
    pub clock_jump: Duration,
    /// Interval at which retention is applied. Default 5 s.
    pub retention_interval: Duration,
    /// Pause between attempts on a full or failing disk, and the delay that clients are told to
    /// wait. Default 1 s.
    pub probe_interval: Duration,
    /// Producers known at most; the one not heard of for longest is forgotten. Default 100,000.
    pub producers_max: usize,
    /// Time for which a silent producer stays known. Default 24 h.
    pub producer_age: Duration,
    /// Results remembered for each producer and log, at least 1: a producer that has no more
    /// batches than that in flight to a log gets each one's first result however often it sends it
    /// again. Twelve bytes of memory each. Default 256, as clients are told
    /// ([`Limits::batches_in_flight`]): 3 KiB for each producer and log that has sent as many.
    pub producer_results: usize,
    /// A planted bug: a producer's sequence above the next is taken for the next.
    #[cfg(feature = "sabotage")]
    pub greater_is_next: bool,
    /// Another planted bug.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

impl Default for JournalConfig {
    fn default() -> JournalConfig {
        JournalConfig {
            cluster: 0,
            node: NodeId(0),
            shard: 0,
            seed: 0,
            strongest: Synced::Fsync,
            new_incarnations: false,
            renewed: false,
            segment_bytes: 64 << 20,
            meta_segment_bytes: 1 << 20,
            fill_bytes: 4 << 20,
            recycled_max: 2,
            spare_time: Duration::from_secs(20),
            block_bytes: 8 << 20,
            checkpoint_bytes: 16 << 20,
            commit_bytes: 4 << 20,
            gather_time: Duration::from_millis(20),
            gather_bytes: 256 << 10,
            pending_bytes: 64 << 20,
            normal_share: NormalShare::DEFAULT,
            unsynced_bytes: 4 << 20,
            unsynced_time: Duration::from_secs(1),
            cache_bytes: 16 << 20,
            run_cache_bytes: 16 << 20,
            read_bytes: 256 << 10,
            reads_max: 64,
            reserve_numbers: 1 << 20,
            clock_jump: Duration::from_secs(3600),
            retention_interval: Duration::from_secs(5),
            probe_interval: Duration::from_secs(1),
            producers_max: 100_000,
            producer_age: Duration::from_secs(24 * 3600),
            producer_results: Limits::DEFAULT.batches_in_flight as usize,
            #[cfg(feature = "sabotage")]
            greater_is_next: false,
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}

impl JournalConfig {
    /// Whether this bug is planted.
    #[cfg(feature = "sabotage")]
    pub(super) fn has_bug(&self, bug: crate::sabotage::Bug) -> bool {
        self.bug == Some(bug)
    }

    /// The life of a log that begins now.
    pub(super) fn incarnation(&self, slot: Slot) -> Incarnation {
        // Positive, so that it survives wherever a signed number carries it.
        Incarnation(nth(self.seed ^ 0x6c_6f67, u64::from(slot.0)) >> 1)
    }

    /// Where a segment of this class is full.
    pub(super) fn segment_limit(&self, class: ClassId) -> FileOffset {
        FileOffset(match class {
            META_CLASS | SYSTEM_CLASS => self.meta_segment_bytes,
            _ => self.segment_bytes,
        })
    }

    /// Settings for files in memory: nothing is filled ahead or recycled, every write is "synced",
    /// and each open begins new incarnations.
    #[must_use]
    pub fn memory(seed: u64) -> JournalConfig {
        JournalConfig {
            seed,
            strongest: Synced::Memory,
            new_incarnations: true,
            fill_bytes: 0,
            recycled_max: 0,
            gather_time: Duration::ZERO,
            unsynced_bytes: 0,
            cache_bytes: 1 << 20,
            ..JournalConfig::default()
        }
    }
}
