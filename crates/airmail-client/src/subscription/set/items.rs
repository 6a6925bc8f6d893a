//! Items of a set: messages with the members that they are for, and word of members.

use crate::core::SubscriptionKey;
use crate::received::{Expired, Gap, MessageBatch, Received};
use airmail_model::batch::Record;
use airmail_model::{Error, Position, Sequence};
use std::collections::VecDeque;

/// Members by the numbers of their subscriptions.
pub(super) type Members = Vec<Option<(SubscriptionKey, MemberKey)>>;

/// A member of a set, by a number that is never used again there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberKey(pub(super) u64);

impl MemberKey {
    /// Gives its number: 1 for the first that was added to its set, 2 for the second.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// One thing that a set gives.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// A message, and the members that it is for; at least one. Its position is one of its own log alone:
    /// [`SubscriptionSet::position`](super::SubscriptionSet::position) gives that of a member.
    Message(Vec<MemberKey>, Received),
    /// A node has this member: it misses nothing that is published from then on.
    Ready(MemberKey),
    /// Numbers that this member misses for good.
    Gap(MemberKey, Gap),
    /// A message that this member is not given because it has expired. Only where it was asked for.
    Expired(MemberKey, Expired),
    /// The filter of this member has been changed: its messages from this position on are those that the new filter matches;
    /// those before it were those of the filter before. A log that the position does not name is one where the member is
    /// still to begin.
    Changed(MemberKey, Position),
    /// The filter of this member has not been changed, because of this error.
    Unchanged(MemberKey, Error),
    /// This member has ended with this error; the others go on.
    Failed(MemberKey, Error),
}

/// One thing that a set gives when it is read by batches.
#[derive(Debug)]
pub enum SetItems<'a> {
    /// Messages of one batch.
    Messages(SetBatch<'a>),
    /// Anything else: never [`SetItem::Message`].
    Item(SetItem),
}

/// Messages of a set that came in one batch, to be read where they lie in memory.
#[derive(Debug)]
pub struct SetBatch<'a> {
    pub(super) messages: MessageBatch,
    pub(super) by_index: &'a Members,
}

impl SetBatch<'_> {
    /// Iterates over the messages in order, each with the members that it is for, and its number in its log. There are no
    /// members where all have been removed meanwhile.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (impl Iterator<Item = MemberKey>, Sequence, Record<'_>)> {
        let messages = self.messages.iter_owners();
        messages.map(|(owners, sequence, record)| {
            let members = owners.filter_map(|owner| member_of(self.by_index, owner));
            (members, sequence, record)
        })
    }

    /// Gives the batch itself, which knows when it was appended, and shares payloads.
    #[must_use]
    pub fn messages(&self) -> &MessageBatch {
        &self.messages
    }
}

/// Finds the member of a subscription; `None` if that has ended.
pub(super) fn member_of(by_index: &Members, key: SubscriptionKey) -> Option<MemberKey> {
    let (of, member) = (*by_index.get(key.index() as usize)?)?;
    (of == key).then_some(member)
}

/// Takes note of a message that has expired, where that is to be told.
pub(super) fn note_expired(
    is_told: bool,
    by_index: &Members,
    items: &mut VecDeque<SetItem>,
    owner: SubscriptionKey,
    gone: Expired,
) {
    if let Some(member) = member_of(by_index, owner).filter(|_| is_told) {
        items.push_back(SetItem::Expired(member, gone));
    }
}
