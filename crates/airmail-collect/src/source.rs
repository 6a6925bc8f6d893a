//! Sources: streams of records that are collected in one order.

/// A source: a partition of a topic of the small cluster, or a topic of Airmail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The topic, as its place in the list of those that are collected.
    pub topic: usize,
    /// The partition. A topic of Airmail has one: the topic's place in the list, again.
    pub partition: i32,
}
