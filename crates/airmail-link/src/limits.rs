//! Bounds of a link: each queue of both ends has one.

/// Bounds of one link. What exceeds one is refused, or waits at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Total size of the appends that are not answered, in bytes; a single one may exceed it. Beyond it an
    /// append is refused as busy. Default: 64 MiB.
    pub append_bytes: u64,
    /// Number of calls that are not answered. Beyond it a call is refused as busy. Default: 1,048,576.
    pub calls: usize,
    /// Batches that readers were given and that wait to be sent, in bytes: beyond it, readers get no more
    /// credit. Beyond twice as much, a reader is cut off, and resumed when there is room. Default: 4 MiB.
    pub window_bytes: u64,
    /// Credit that a reader has with the far end's storage, in bytes; the rest follows as it is used.
    /// Default: 256 KiB.
    pub reader_bytes: u32,
    /// Messages of readers that wait to be sent: beyond it, a reader is cut off, and resumed when there is
    /// room. Default: 16,384.
    pub marks: usize,
    /// Topics that all guests of a far end may want together ([`airmail_log::ScopeFilter::Wanted`]), 40 bytes each.
    /// Beyond it an edit is refused. 0: everything is given, whatever is wanted. Default: 0.
    pub wants: usize,
    /// Slots of a ring between two threads, at most; many shards have smaller ones. Default: 1,024.
    pub ring_slots: usize,
    /// Messages that one end takes, and sends, in one poll. Default: 1,024.
    pub turn_messages: usize,
    /// A planted bug.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

#[cfg(feature = "sabotage")]
impl LinkLimits {
    pub(crate) fn has_bug(&self, bug: crate::sabotage::Bug) -> bool {
        self.bug == Some(bug)
    }
}

impl Default for LinkLimits {
    fn default() -> LinkLimits {
        LinkLimits {
            append_bytes: 64 << 20,
            calls: 1 << 20,
            window_bytes: 4 << 20,
            reader_bytes: 256 << 10,
            marks: 16 << 10,
            wants: 0,
            ring_slots: 1024,
            turn_messages: 1024,
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}
