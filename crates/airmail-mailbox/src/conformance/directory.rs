//! Claims about accounts and queues: names, lists, deletion, counts.

use super::Fixture;
use super::fixture::{LASTING, code};
use crate::Mailboxes;
use crate::id::{AccountId, QueueId};
use crate::message::{Counts, Outgoing, Receive, Recipients};
use crate::store::{Account, QueueSettings, Selection};
use airmail_model::ErrorCode;
use airmail_model::mailbox::directory::LIST_MAX;

/// A second account or queue of a name is refused.
pub async fn a_name_is_taken_once(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let (mailboxes, settings) = (&fixture.mailboxes, QueueSettings::default());
    let again = mailboxes.create_account("alice").await;
    assert_eq!(code(again), ErrorCode::AccountNameExists);
    let again = mailboxes.create_queue("queue", settings).await;
    assert_eq!(code(again), ErrorCode::QueueNameExists);
    // Accounts and queues do not share their names.
    mailboxes.create_account("queue").await.unwrap();
    mailboxes.create_queue("alice", settings).await.unwrap();
}

/// Requests are refused that name an account or queue that does not exist.
pub async fn what_is_not_there_is_not_found(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mailboxes = &fixture.mailboxes;
    let (queue, account) = (QueueId(77), AccountId(77));
    let not_queue = |result| assert_eq!(result, ErrorCode::QueueNotFound);
    let not_account = |result| assert_eq!(result, ErrorCode::AccountNotFound);
    not_queue(code(mailboxes.find_queue("none").await));
    not_queue(code(mailboxes.delete_queue(queue, true).await));
    not_queue(code(mailboxes.purge(queue).await));
    not_queue(code(mailboxes.counts(queue).await));
    not_queue(code(
        fixture.receive(Receive::new(queue, fixture.bob)).await,
    ));
    let lost = Outgoing {
        queue,
        ..fixture.message("lost")
    };
    not_queue(code(mailboxes.send(lost).await));
    let settings = QueueSettings {
        dead_letter: Some(queue),
        ..QueueSettings::default()
    };
    not_queue(code(mailboxes.create_queue("new", settings).await));
    not_account(code(mailboxes.find_account("none").await));
    not_account(code(mailboxes.delete_account(account, true).await));
    not_account(code(
        fixture.receive(Receive::new(fixture.queue, account)).await,
    ));
    not_account(code(
        fixture
            .receive(Receive::new(fixture.queue, account).broadcast())
            .await,
    ));
    not_account(code(mailboxes.find_from(account, fixture.bob).await));
    not_account(code(mailboxes.find_from(fixture.alice, account).await));
    let from_nobody = Outgoing {
        sender: account,
        ..fixture.message("lost")
    };
    not_account(code(mailboxes.send(from_nobody).await));
    let recipients = Recipients::Direct(account);
    let to_nobody = Outgoing {
        recipients,
        ..fixture.message("lost")
    };
    not_account(code(mailboxes.send(to_nobody).await));
}

/// Names have up to 255 characters, of any alphabet.
pub async fn names_have_1_to_255_characters(mailboxes: Mailboxes) {
    let longest = "š".repeat(255);
    let settings = QueueSettings::default();
    let account = mailboxes.create_account(&longest).await.unwrap();
    let queue = mailboxes.create_queue(&longest, settings).await.unwrap();
    assert_eq!(mailboxes.find_account(&longest).await.unwrap(), account);
    assert_eq!(mailboxes.find_queue(&longest).await.unwrap(), queue);
    for bad in ["", "a\tb", &"š".repeat(256)] {
        let refused = mailboxes.create_account(bad).await;
        assert_eq!(code(refused), ErrorCode::InvalidArgument);
        let refused = mailboxes.create_queue(bad, settings).await;
        assert_eq!(code(refused), ErrorCode::InvalidArgument);
    }
}

/// Lists have all accounts and queues, by number.
pub async fn accounts_and_queues_are_listed(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let settings = QueueSettings {
        dead_letter: Some(fixture.other),
        deliveries_max: std::num::NonZeroU32::new(3),
    };
    let third = fixture
        .mailboxes
        .create_queue("third", settings)
        .await
        .unwrap();
    let accounts = fixture.mailboxes.accounts(all(AccountId(0))).await.unwrap();
    let names: Vec<&str> = accounts
        .iter()
        .map(|account| account.name.as_str())
        .collect();
    assert_eq!(names, ["alice", "bob", "carol"]);
    assert!(accounts.iter().all(|account| account.created_at.0 > 0));
    let queues = fixture.mailboxes.queues(all(QueueId(0))).await.unwrap();
    let ids: Vec<QueueId> = queues.iter().map(|queue| queue.id).collect();
    assert_eq!(ids, [fixture.queue, fixture.other, third]);
    assert_eq!(queues[2].settings, settings);
}

/// Lists are read page by page, or by given numbers; a request for more than the bound is refused.
pub async fn a_list_is_read_in_pages_or_by_number(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mailboxes = &fixture.mailboxes;
    let ids = |accounts: Vec<Account>| accounts.iter().map(|one| one.id).collect::<Vec<_>>();
    let page = |id, limit| mailboxes.accounts(Selection::After { id, limit });
    let (alice, bob, carol) = (fixture.alice, fixture.bob, fixture.carol);
    assert_eq!(ids(page(AccountId(0), 2).await.unwrap()), [alice, bob]);
    assert_eq!(ids(page(bob, 2).await.unwrap()), [carol]);
    assert!(page(carol, 2).await.unwrap().is_empty());
    let these = Selection::These(vec![carol, AccountId(77), alice, carol]);
    assert_eq!(
        ids(mailboxes.accounts(these).await.unwrap()),
        [alice, carol]
    );
    let queue = mailboxes
        .queues(Selection::These(vec![fixture.other]))
        .await;
    assert_eq!(queue.unwrap()[0].name.as_str(), "other");
    for limit in [0, LIST_MAX + 1] {
        assert_eq!(
            code(page(AccountId(0), limit).await),
            ErrorCode::InvalidArgument
        );
    }
    let too_many = mailboxes.queues(Selection::These(vec![QueueId(1); LIST_MAX + 1]));
    assert_eq!(code(too_many.await), ErrorCode::InvalidArgument);
}

fn all<Id>(id: Id) -> Selection<Id> {
    Selection::After {
        id,
        limit: LIST_MAX,
    }
}

/// The number of a deleted account or queue is given to no other.
pub async fn a_number_is_never_given_again(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mailboxes = &fixture.mailboxes;
    mailboxes
        .delete_account(fixture.carol, false)
        .await
        .unwrap();
    mailboxes.delete_queue(fixture.other, false).await.unwrap();
    let carol = mailboxes.create_account("carol").await.unwrap();
    let other = mailboxes
        .create_queue("other", QueueSettings::default())
        .await
        .unwrap();
    assert!(carol > fixture.carol && other > fixture.other);
    let gone = fixture
        .receive(Receive::new(fixture.other, fixture.bob))
        .await;
    assert_eq!(code(gone), ErrorCode::QueueNotFound);
}

/// A queue with ready, delayed or leased messages is not deleted, unless forced; then they go too.
pub async fn a_queue_with_messages_is_deleted_only_by_force(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mailboxes = &fixture.mailboxes;
    let delayed = Outgoing {
        delay_ms: 600_000,
        ..fixture.message("later")
    };
    mailboxes.send(delayed).await.unwrap();
    let refused = mailboxes.delete_queue(fixture.queue, false).await;
    assert_eq!(code(refused), ErrorCode::QueueNotEmpty);
    mailboxes.purge(fixture.queue).await.unwrap();
    fixture.send("ready").await;
    let refused = mailboxes.delete_queue(fixture.queue, false).await;
    assert_eq!(code(refused), ErrorCode::QueueNotEmpty);
    fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap();
    let refused = mailboxes.delete_queue(fixture.queue, false).await;
    assert_eq!(code(refused), ErrorCode::QueueNotEmpty);
    mailboxes.delete_queue(fixture.queue, true).await.unwrap();
    assert_eq!(
        code(mailboxes.find_queue("queue").await),
        ErrorCode::QueueNotFound
    );
    let found = mailboxes.queues_for(Recipients::Direct(fixture.bob)).await;
    assert_eq!(code(found), ErrorCode::NoQueuesFound);
}

/// An account that messages are to or from is not deleted, unless forced; then they go too.
pub async fn an_account_with_messages_is_deleted_only_by_force(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mailboxes = &fixture.mailboxes;
    fixture.send("between them").await;
    for account in [fixture.alice, fixture.bob] {
        let refused = mailboxes.delete_account(account, false).await;
        assert_eq!(code(refused), ErrorCode::AccountNotEmpty);
    }
    mailboxes
        .delete_account(fixture.carol, false)
        .await
        .unwrap();
    mailboxes.delete_account(fixture.alice, true).await.unwrap();
    assert_eq!(
        code(mailboxes.find_account("alice").await),
        ErrorCode::AccountNotFound
    );
    assert!(fixture.texts(fixture.for_bob()).await.is_empty());
    mailboxes.delete_account(fixture.bob, false).await.unwrap();
}

/// A queue is not deleted while the dead letters of another go there.
pub async fn a_queue_for_dead_letters_outlives_those_that_use_it(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mailboxes = &fixture.mailboxes;
    let dead_letter = Some(fixture.other);
    let settings = QueueSettings {
        dead_letter,
        ..QueueSettings::default()
    };
    let user = mailboxes.create_queue("user", settings).await.unwrap();
    for force in [false, true] {
        let refused = mailboxes.delete_queue(fixture.other, force).await;
        assert_eq!(code(refused), ErrorCode::QueueNotEmpty);
    }
    mailboxes.delete_queue(user, false).await.unwrap();
    mailboxes.delete_queue(fixture.other, false).await.unwrap();
}

/// Ready, delayed and leased messages are counted, and removed by a purge.
pub async fn what_a_queue_holds_is_counted_and_purged(mailboxes: Mailboxes) {
    let fixture = Fixture::new(mailboxes).await;
    let mailboxes = &fixture.mailboxes;
    assert_eq!(
        mailboxes.counts(fixture.queue).await.unwrap(),
        Counts::default()
    );
    for content in ["a", "b", "c"] {
        fixture.send(content).await;
    }
    let recipients = Recipients::Broadcast;
    mailboxes
        .send(Outgoing {
            recipients,
            ..fixture.message("all")
        })
        .await
        .unwrap();
    mailboxes
        .send(Outgoing {
            queue: fixture.other,
            ..fixture.message("stays")
        })
        .await
        .unwrap();
    mailboxes
        .send(Outgoing {
            delay_ms: 600_000,
            ..fixture.message("later")
        })
        .await
        .unwrap();
    let leased = fixture
        .receive(fixture.for_bob().take(LASTING))
        .await
        .unwrap();
    let counts = mailboxes.counts(fixture.queue).await.unwrap();
    let expected = Counts {
        ready: 3,
        delayed: 1,
        leased: 1,
    };
    assert_eq!(counts, expected);
    assert_eq!(mailboxes.purge(fixture.queue).await.unwrap(), 5);
    assert_eq!(
        mailboxes.counts(fixture.queue).await.unwrap(),
        Counts::default()
    );
    let settled = fixture
        .settle(&leased[0], crate::message::Settle::Acknowledge)
        .await;
    assert_eq!(code(settled), ErrorCode::LeaseEnded);
    assert_eq!(mailboxes.counts(fixture.other).await.unwrap().ready, 1);
}
