//! Scopes: what a subscription is for. A topic, or a selection of the topics of one log.

use crate::keys::SelectorKey;
use airmail_model::map::LogMap;
use airmail_model::{NamespaceId, TopicHash};

/// Messages that a subscription is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// Those of this topic.
    Topic(TopicHash),
    /// Those of every topic that a selector selects, of the logs of one slot.
    Selected(Selection),
}

/// A selection of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Selection {
    pub(crate) logs: SlotLogs,
    pub(crate) selector: SelectorKey,
}

/// The logs to which the maps of a namespace give a slot, one after the other; and all topics in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SlotLogs {
    pub(crate) namespace: NamespaceId,
    pub(crate) slot: u16,
}

/// A place where filters are held against messages: a topic, or all logs of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FilteredPlace {
    Topic(TopicHash),
    Logs(SlotLogs),
}

impl SlotLogs {
    /// A hash that maps give these logs.
    pub(crate) fn in_maps(self) -> TopicHash {
        LogMap::first_of_slot(self.slot)
    }
}

impl Scope {
    /// A hash that maps give the logs of what it is for.
    pub(crate) fn in_maps(self) -> TopicHash {
        match self {
            Scope::Topic(topic) => topic,
            Scope::Selected(selection) => selection.logs.in_maps(),
        }
    }

    /// The topic, where it is for one alone.
    pub(crate) fn topic(self) -> Option<TopicHash> {
        match self {
            Scope::Topic(topic) => Some(topic),
            Scope::Selected(_) => None,
        }
    }

    /// The selection, where it is one.
    pub(crate) fn selection(self) -> Option<Selection> {
        match self {
            Scope::Topic(_) => None,
            Scope::Selected(selection) => Some(selection),
        }
    }

    /// The place where its filter, if it has one, is held against messages.
    pub(crate) fn filtered_place(self) -> FilteredPlace {
        match self {
            Scope::Topic(topic) => FilteredPlace::Topic(topic),
            Scope::Selected(selection) => FilteredPlace::Logs(selection.logs),
        }
    }
}
