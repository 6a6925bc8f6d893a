//! Capabilities of a storage: its owner reads them before it makes a call.
//!
//! A shard refuses at its start capabilities that contradict each other (`dedup`, `numbering`), offers no
//! durability that `strongest` does not satisfy, and reads by topic only with `topic_index`. It goes by `clock`
//! where times matter, and by `dedup` where publishes do. It moves a namespace only away from where logs can be sealed
//! (`seal`). It never reads from beyond an end or heals, takes numbers as they come, and asks where a log ends whether there are `many_writers` or not; the conformance suite
//! checks that a storage's word on these holds too.

use airmail_model::{AppendTime, Durability};
use std::time::Duration;

/// Capabilities of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// When a producer's retry is recognised.
    pub dedup: Dedup,
    /// The numbers that a log gives to its records.
    pub numbering: Numbering,
    /// The order in which append times come.
    pub clock: AppendClock,
    /// The durability that it gives to who asks for none, and that satisfies each that it can give. There is
    /// one such: how a copy is held and how many there are cost each other nothing, so a storage that has the
    /// most of either can give both at once.
    pub strongest: Durability,
    /// It finds a topic's records without reading the log ([`ScopeFilter::Topic`]).
    ///
    /// [`ScopeFilter::Topic`]: super::ScopeFilter::Topic
    pub topic_index: bool,
    /// It takes reads from beyond the end.
    pub past_end: bool,
    /// It can seal a log.
    pub seal: bool,
    /// It can take a replica's copy in place of a loss.
    pub heal: bool,
    /// More than one node may append to a log.
    pub many_writers: bool,
    /// It makes what a new namespace needs before the namespace is there ([`Call::Provision`]), and opens logs only
    /// with what it has answered; log 0 is opened without.
    ///
    /// [`Call::Provision`]: super::Call::Provision
    pub provisions: bool,
    /// It appends what is sole ([`Call::Append`]) by another way than all else: also while a log is lost, and answered in
    /// an order of its own.
    ///
    /// [`Call::Append`]: super::Call::Append
    pub appends_apart: bool,
}

/// Part of a storage's capabilities that an owner of several goes by log by log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageTraits {
    /// The same as [`Capabilities::strongest`].
    pub strongest: Durability,
    /// The same as [`Capabilities::topic_index`].
    pub topic_index: bool,
    /// The same as [`Capabilities::seal`].
    pub seal: bool,
}

impl StorageTraits {
    /// Those of an only storage, or of the first one.
    #[must_use]
    pub const fn of(capabilities: &Capabilities) -> StorageTraits {
        StorageTraits {
            strongest: capabilities.strongest,
            topic_index: capabilities.topic_index,
            seal: capabilities.seal,
        }
    }
}

/// When a producer's retry is recognised (G3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dedup {
    /// When appended: the verdict, the numbers and the append time are known at once. Acks are exact.
    AtAppend,
    /// When a replica applies what its group has agreed on: verdict, numbers and append time follow from
    /// the entry's place in that order, and no earlier. Acks are exact.
    AtApply,
    /// When read, by log order: a batch is left out if its producer's place (epoch, sequence) is not above the last
    /// that was given of the log, and everything else is given, also behind a hole. So an ack tells neither that its
    /// batch was stored once, nor under which number it is given. And so a storage that has refused a batch of a
    /// producer, or does not know what became of it, stores nothing behind it: after a refusal until that batch comes
    /// again ([`Refusal::OutOfOrder`]), after an unknown outcome nothing of that epoch any more
    /// ([`Refusal::UnknownProducer`]).
    ///
    /// [`Refusal::OutOfOrder`]: super::Refusal::OutOfOrder
    /// [`Refusal::UnknownProducer`]: super::Refusal::UnknownProducer
    AtRead,
}

impl Dedup {
    /// Whether an ack says for certain that its batch was stored once.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        matches!(self, Dedup::AtAppend | Dedup::AtApply)
    }
}

/// The numbers that a log gives to its records. In either case they rise strictly, no two batches overlap,
/// and a number that no record has is told as [`GapWhy::Unused`].
///
/// [`GapWhy::Unused`]: super::GapWhy::Unused
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// From 1 on, each batch where the one before ended. After an unclean stop a log may go on higher.
    Dense,
    /// By the places of an engine that has an order of its own: there may be a hole before any batch.
    Sparse,
}

/// The order in which the append times of a log come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendClock {
    /// The clock of whoever polls the storage, held so that a log's times never go back.
    Monotone,
    /// Clocks of the storage's own, of several machines: a time may be before an earlier one, by at most
    /// this.
    Within(Duration),
}

impl AppendClock {
    /// The append time by which a batch proves that nothing behind it is from before `time`. Between the first
    /// batch of `time` or later and the first of this one, there may be either.
    #[must_use]
    pub fn proof(self, time: AppendTime) -> AppendTime {
        match self {
            AppendClock::Monotone => time,
            AppendClock::Within(most) => {
                let most = i64::try_from(most.as_micros()).unwrap_or(i64::MAX);
                AppendTime(time.0.saturating_add(most))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_proves_that_a_time_is_over_when_no_clock_can_go_back_to_it() {
        let time = AppendTime(1_000_000);
        assert_eq!(AppendClock::Monotone.proof(time), time);
        let within = AppendClock::Within(Duration::from_secs(2));
        assert_eq!(within.proof(time), AppendTime(3_000_000));
        let never = AppendClock::Within(Duration::MAX).proof(time);
        assert_eq!(never, AppendTime(i64::MAX));
    }
}
