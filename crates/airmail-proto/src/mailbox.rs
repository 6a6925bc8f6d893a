//! Accounts, queues, and what is sent, asked for and handed out.

mod message;

pub use message::{
    message_from_proto, message_to_proto, outgoing_from_proto, outgoing_to_proto, pieces,
    receipts_from_proto, receipts_to_proto, receive_from_proto, receive_to_proto, sent_from_proto,
    sent_to_proto, settled_from_proto, settled_to_proto,
};

use crate::v1;
use airmail_model::mailbox::directory::LIST_MAX;
use airmail_model::mailbox::{
    Account, AccountId, Counts, Name, Queue, QueueId, QueueSettings, Recipients, Selection,
};
use airmail_model::{Error, Wall};
use std::num::NonZeroU32;

/// An account as a message.
#[must_use]
pub fn account_to_proto(account: &Account) -> v1::Account {
    v1::Account {
        id: account.id.0,
        name: account.name.to_string(),
        created_at: account.created_at.0,
    }
}

/// An account from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` for a name that a node never sends.
pub fn account_from_proto(account: v1::Account) -> Result<Account, Error> {
    Ok(Account {
        id: AccountId(account.id),
        name: Name::new("name", &account.name)?,
        created_at: Wall(account.created_at),
    })
}

/// A queue as a message.
#[must_use]
pub fn queue_to_proto(queue: &Queue) -> v1::Queue {
    v1::Queue {
        id: queue.id.0,
        name: queue.name.to_string(),
        created_at: queue.created_at.0,
        settings: Some(settings_to_proto(queue.settings)),
    }
}

/// A queue from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` for a name that a node never sends.
pub fn queue_from_proto(queue: v1::Queue) -> Result<Queue, Error> {
    Ok(Queue {
        id: QueueId(queue.id),
        name: Name::new("name", &queue.name)?,
        created_at: Wall(queue.created_at),
        settings: settings_from_proto(queue.settings),
    })
}

/// A queue's settings as a message.
#[must_use]
pub fn settings_to_proto(settings: QueueSettings) -> v1::QueueSettings {
    v1::QueueSettings {
        dead_letter: settings.dead_letter.map_or(0, |queue| queue.0),
        deliveries_max: settings.deliveries_max.map_or(0, NonZeroU32::get),
    }
}

/// A queue's settings from a message; what is absent is the default.
#[must_use]
pub fn settings_from_proto(settings: Option<v1::QueueSettings>) -> QueueSettings {
    let settings = settings.unwrap_or_default();
    QueueSettings {
        dead_letter: (settings.dead_letter != 0).then_some(QueueId(settings.dead_letter)),
        deliveries_max: NonZeroU32::new(settings.deliveries_max),
    }
}

/// Reads which accounts a request asks for.
#[must_use]
pub fn accounts_from_proto(request: v1::ListAccountsRequest) -> Selection<AccountId> {
    selection(request.ids, request.after, request.limit, AccountId)
}

/// A request for accounts.
#[must_use]
pub fn accounts_to_proto(selection: Selection<AccountId>) -> v1::ListAccountsRequest {
    let (ids, after, limit) = parts(selection, |account| account.0);
    v1::ListAccountsRequest { ids, after, limit }
}

/// Reads which queues a request asks for.
#[must_use]
pub fn queues_from_proto(request: v1::ListQueuesRequest) -> Selection<QueueId> {
    selection(request.ids, request.after, request.limit, QueueId)
}

/// A request for queues.
#[must_use]
pub fn queues_to_proto(selection: Selection<QueueId>) -> v1::ListQueuesRequest {
    let (ids, after, limit) = parts(selection, |queue| queue.0);
    v1::ListQueuesRequest { ids, after, limit }
}

fn selection<Id>(ids: Vec<i32>, after: i32, limit: u32, id: impl Fn(i32) -> Id) -> Selection<Id> {
    if !ids.is_empty() {
        return Selection::These(ids.into_iter().map(id).collect());
    }
    let limit = if limit == 0 { LIST_MAX } else { limit as usize };
    let id = id(after);
    Selection::After { id, limit }
}

fn parts<Id>(selection: Selection<Id>, number: impl Fn(Id) -> i32) -> (Vec<i32>, i32, u32) {
    match selection {
        Selection::These(ids) => (ids.into_iter().map(number).collect(), 0, 0),
        Selection::After { id, limit } => {
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            (Vec::new(), number(id), limit)
        }
    }
}

/// Recipients as the number of an account; 0 is a broadcast.
#[must_use]
pub fn recipients_to_proto(recipients: Recipients) -> i32 {
    match recipients {
        Recipients::Direct(account) => account.0,
        Recipients::Broadcast => 0,
    }
}

/// Recipients from the number of an account.
#[must_use]
pub fn recipients_from_proto(number: i32) -> Recipients {
    match number {
        0 => Recipients::Broadcast,
        account => Recipients::Direct(AccountId(account)),
    }
}

/// Counts as a message.
#[must_use]
pub fn counts_to_proto(counts: Counts) -> v1::CountMessagesResponse {
    v1::CountMessagesResponse {
        ready: counts.ready,
        delayed: counts.delayed,
        leased: counts.leased,
    }
}

/// Counts from a message.
#[must_use]
pub fn counts_from_proto(counts: v1::CountMessagesResponse) -> Counts {
    Counts {
        ready: counts.ready,
        delayed: counts.delayed,
        leased: counts.leased,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_and_queues_survive() {
        let account = Account {
            id: AccountId(7),
            name: Name::new("name", "alice").unwrap(),
            created_at: Wall(3),
        };
        let back = account_from_proto(account_to_proto(&account));
        assert_eq!(back.unwrap(), account);
        for settings in [
            QueueSettings::default(),
            QueueSettings {
                dead_letter: Some(QueueId(9)),
                deliveries_max: NonZeroU32::new(5),
            },
        ] {
            let queue = Queue {
                id: QueueId(8),
                name: Name::new("name", "orders").unwrap(),
                created_at: Wall(4),
                settings,
            };
            assert_eq!(queue_from_proto(queue_to_proto(&queue)).unwrap(), queue);
        }
    }

    #[test]
    fn a_selection_survives_and_an_empty_request_is_the_first_page() {
        let pages = [
            Selection::After {
                id: QueueId(3),
                limit: 7,
            },
            Selection::These(vec![QueueId(1), QueueId(2)]),
        ];
        for selection in pages {
            assert_eq!(
                queues_from_proto(queues_to_proto(selection.clone())),
                selection
            );
        }
        let first = Selection::After {
            id: AccountId(0),
            limit: LIST_MAX,
        };
        assert_eq!(
            accounts_from_proto(v1::ListAccountsRequest::default()),
            first
        );
    }

    #[test]
    fn no_receiver_is_a_broadcast() {
        for recipients in [Recipients::Broadcast, Recipients::Direct(AccountId(5))] {
            assert_eq!(
                recipients_from_proto(recipients_to_proto(recipients)),
                recipients
            );
        }
        assert_eq!(recipients_from_proto(0), Recipients::Broadcast);
    }
}
