//! The model: a list of messages. Operations are applied to the store and to the list.

use airmail_mailbox::conformance::Fixture;
use airmail_mailbox::id::{AccountId, LeaseId, MessageId, QueueId};
use airmail_mailbox::message::{
    BATCH_MAX, Counts, Message, Outgoing, Receipt, Receive, Recipients, Settle, Take,
};
use airmail_model::ErrorCode;
use proptest::collection::vec;
use proptest::prelude::*;

const LASTING: Take = Take::Lease { lease_ms: 600_000 };

/// An operation. Its numbers choose among the queues, accounts and leases that there are.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Send {
        messages: Vec<Sent>,
    },
    Receive {
        inbox: usize,
        count: usize,
        take: Take,
    },
    Settle {
        which: usize,
        acknowledge: bool,
    },
    LookUp {
        which: usize,
        reader: usize,
    },
    Find {
        sender: usize,
        reader: usize,
    },
    Queues {
        inbox: usize,
    },
    Counts {
        queue: usize,
    },
    Purge {
        queue: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    inbox: usize,
    sender: usize,
    priority: u8,
    key: Option<u8>,
}

/// Makes a strategy for up to `most` operations.
pub(crate) fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let sent =
        (0..6_usize, 0..3_usize, 0..4_u8, 0..6_u8).prop_map(|(inbox, sender, p, key)| Sent {
            inbox,
            sender,
            priority: p.saturating_sub(1),
            key: (key < 2).then_some(key),
        });
    let take = prop_oneof![Just(Take::Peek), Just(Take::Remove), Just(LASTING)];
    let operation = prop_oneof![
        6 => vec(sent, 1..5).prop_map(|messages| Operation::Send { messages }),
        8 => (0..6_usize, 1..4_usize, take)
            .prop_map(|(inbox, count, take)| Operation::Receive { inbox, count, take }),
        4 => (any::<usize>(), any::<bool>())
            .prop_map(|(which, acknowledge)| Operation::Settle { which, acknowledge }),
        1 => (any::<usize>(), 0..3_usize).prop_map(|(which, reader)| Operation::LookUp { which, reader }),
        1 => (0..3_usize, 0..3_usize).prop_map(|(sender, reader)| Operation::Find { sender, reader }),
        1 => (0..6_usize).prop_map(|inbox| Operation::Queues { inbox }),
        1 => (0..2_usize).prop_map(|queue| Operation::Counts { queue }),
        1 => (0..200_usize).prop_map(|queue| Operation::Purge { queue }),
    ];
    vec(operation, 1..most)
}

#[derive(Clone, Debug)]
struct Kept {
    id: MessageId,
    message: Outgoing,
    /// True if a reader gave it back.
    came_back: bool,
    deliveries: u32,
    lease: Option<LeaseId>,
}

/// The list.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    fixture: &'a Fixture,
    kept: Vec<Kept>,
    sent: Vec<MessageId>,
    removed: Vec<MessageId>,
    leases: Vec<Receipt>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(fixture: &'a Fixture) -> Model<'a> {
        Model {
            fixture,
            kept: Vec::new(),
            sent: Vec::new(),
            removed: Vec::new(),
            leases: Vec::new(),
        }
    }

    /// Makes a request for one message of each inbox.
    pub(crate) fn inboxes(fixture: &Fixture) -> Vec<Receive> {
        let queues = [fixture.queue, fixture.other];
        let of_queue = |queue| {
            let direct = [fixture.bob, fixture.carol].map(|reader| Receive::new(queue, reader));
            [direct[0], direct[1], direct[0].broadcast()]
        };
        queues.into_iter().flat_map(of_queue).collect()
    }

    pub(crate) fn sent(&self) -> Vec<MessageId> {
        self.sent.clone()
    }

    pub(crate) fn removed(&self) -> Vec<MessageId> {
        self.removed.clone()
    }

    /// Applies an operation to the store and to the list, and compares.
    pub(crate) async fn check(&mut self, operation: &Operation) {
        let mailboxes = &self.fixture.mailboxes;
        match *operation {
            Operation::Send { ref messages } => self.send(messages).await,
            Operation::Receive { inbox, count, take } => self.receive(inbox, count, take).await,
            Operation::Settle { which, acknowledge } => self.settle(which, acknowledge).await,
            Operation::LookUp { which, reader } => {
                let Some(id) = pick(&self.sent, which) else {
                    return;
                };
                let reader = self.account(reader);
                let kept = self.kept.iter().find(|kept| kept.id == id);
                let expected = match kept {
                    None => Err(ErrorCode::NoMessageFound),
                    Some(kept) => match kept.message.recipients {
                        Recipients::Direct(to) if to != reader => {
                            Err(ErrorCode::NoPermissionToRead)
                        }
                        _ => Ok((id, kept.deliveries)),
                    },
                };
                let found = mailboxes.look_up(id, reader).await;
                let found = found.map(|found| (found.id, found.deliveries));
                assert_eq!(found.map_err(|error| error.code()), expected);
            }
            Operation::Find { sender, reader } => {
                let (sender, reader) = (self.account(sender), self.account(reader));
                let expected = self.ready(|kept| {
                    kept.message.recipients == Recipients::Direct(reader)
                        && kept.message.sender == sender
                });
                let expected = expected.iter().map(|kept| kept.id).min();
                let found = mailboxes.find_from(sender, reader).await.ok();
                assert_eq!(found.map(|found| found.id), expected);
            }
            Operation::Queues { inbox } => {
                let recipients = self.inbox(inbox).inbox().recipients;
                let ready = self.ready(|kept| kept.message.recipients == recipients);
                let mut expected: Vec<QueueId> = ready.iter().map(|k| k.message.queue).collect();
                expected.sort();
                expected.dedup();
                let found = mailboxes.queues_for(recipients).await.unwrap_or_default();
                assert_eq!(found, expected);
            }
            Operation::Counts { queue } => {
                let queue = self.inbox(queue * 3).queue;
                let of_queue = self.kept.iter().filter(|kept| kept.message.queue == queue);
                let (leased, ready): (Vec<_>, Vec<_>) = of_queue.partition(|k| k.lease.is_some());
                let expected = Counts {
                    ready: ready.len() as u64,
                    delayed: 0,
                    leased: leased.len() as u64,
                };
                assert_eq!(mailboxes.counts(queue).await.unwrap(), expected);
            }
            Operation::Purge { queue } if queue < 2 => {
                let queue = self.inbox(queue * 3).queue;
                let before = self.kept.len();
                self.kept.retain(|kept| kept.message.queue != queue);
                let purged = mailboxes.purge(queue).await.unwrap();
                assert_eq!(purged, (before - self.kept.len()) as u64);
            }
            Operation::Purge { .. } => {}
        }
    }

    /// Reads all that the list has, and no more.
    pub(crate) async fn drain(&mut self) {
        for which in 0..self.leases.len() {
            self.settle(which, false).await;
        }
        for _ in 0..=self.kept.len() {
            for inbox in 0..6 {
                self.receive(inbox, BATCH_MAX, Take::Remove).await;
            }
        }
        assert!(self.kept.is_empty());
    }

    /// Applies an operation while others apply theirs, and notes only messages that it sent and removed.
    pub(crate) async fn do_blindly(&mut self, operation: &Operation) {
        match *operation {
            Operation::Send { ref messages } => self.send(messages).await,
            Operation::Receive { inbox, count, take } => {
                let request = self.inbox(inbox).count(count).take(take);
                let found = self.fixture.receive(request).await.unwrap_or_default();
                self.note(&found, take);
            }
            Operation::Settle { which, acknowledge } if !self.leases.is_empty() => {
                let receipt = self.leases.swap_remove(which % self.leases.len());
                let what = if acknowledge {
                    self.removed.push(receipt.message);
                    Settle::Acknowledge
                } else {
                    Settle::Release { delay_ms: 0 }
                };
                let settled = self.fixture.mailboxes.settle(vec![receipt], what).await;
                settled.unwrap().remove(0).unwrap();
            }
            _ => {}
        }
    }

    pub(crate) async fn release_all(&self) {
        for receipt in &self.leases {
            let release = Settle::Release { delay_ms: 0 };
            let settled = self.fixture.mailboxes.settle(vec![*receipt], release).await;
            settled.unwrap().remove(0).unwrap();
        }
    }

    async fn send(&mut self, messages: &[Sent]) {
        let messages: Vec<Outgoing> = messages.iter().map(|sent| self.outgoing(sent)).collect();
        let results = self
            .fixture
            .mailboxes
            .send_all(messages.clone())
            .await
            .unwrap();
        for (result, message) in results.into_iter().zip(messages) {
            let id = result.unwrap();
            assert!(self.sent.last().is_none_or(|last| *last < id));
            self.sent.push(id);
            self.kept.push(Kept {
                id,
                message,
                came_back: false,
                deliveries: 0,
                lease: None,
            });
        }
    }

    async fn receive(&mut self, inbox: usize, count: usize, take: Take) {
        let request = self.inbox(inbox).count(count).take(take);
        let expected: Vec<MessageId> = self
            .handed_out(request)
            .iter()
            .map(|kept| kept.id)
            .take(count)
            .collect();
        let found = self.fixture.receive(request).await.unwrap_or_default();
        let ids: Vec<MessageId> = found.iter().map(|message| message.id).collect();
        assert_eq!(ids, expected, "{request:?}");
        self.note(&found, take);
        for message in found {
            let Some(at) = self.kept.iter().position(|kept| kept.id == message.id) else {
                continue;
            };
            let once_more = u32::from(take != Take::Peek);
            assert_eq!(message.deliveries, self.kept[at].deliveries + once_more);
            match take {
                Take::Peek => {}
                Take::Remove => drop(self.kept.remove(at)),
                Take::Lease { .. } => {
                    self.kept[at].lease = message.lease;
                    self.kept[at].deliveries += 1;
                }
            }
        }
    }

    fn note(&mut self, found: &[Message], take: Take) {
        if take == Take::Remove {
            self.removed.extend(found.iter().map(|message| message.id));
        }
        self.leases
            .extend(found.iter().filter_map(Message::receipt));
    }

    async fn settle(&mut self, which: usize, acknowledge: bool) {
        let Some(receipt) = pick(&self.leases, which) else {
            return;
        };
        let what = if acknowledge {
            Settle::Acknowledge
        } else {
            Settle::Release { delay_ms: 0 }
        };
        let held = self
            .kept
            .iter()
            .position(|kept| kept.lease == Some(receipt.lease));
        let settled = self
            .fixture
            .mailboxes
            .settle(vec![receipt], what)
            .await
            .unwrap()
            .remove(0);
        assert_eq!(settled.is_ok(), held.is_some());
        match held {
            Some(at) if acknowledge => drop(self.kept.remove(at)),
            Some(at) => {
                self.kept[at].lease = None;
                self.kept[at].came_back = true;
            }
            None => {}
        }
    }

    fn ready(&self, is: impl Fn(&Kept) -> bool) -> Vec<&Kept> {
        let ready = |kept: &&Kept| kept.lease.is_none() && is(kept);
        self.kept.iter().filter(ready).collect()
    }

    /// Returns what a request would get without a bound, in order.
    fn handed_out(&self, request: Receive) -> Vec<&Kept> {
        let inbox = request.inbox();
        let of_inbox = |kept: &Kept| {
            kept.message.queue == inbox.queue && kept.message.recipients == inbox.recipients
        };
        let is_next = |kept: &&Kept| {
            let before = |other: &Kept| {
                other.message.key == kept.message.key
                    && of_inbox(other)
                    && (other.lease.is_some() || other.id < kept.id)
            };
            kept.message.key.is_none() || !self.kept.iter().any(|k| k.id != kept.id && before(k))
        };
        let mut found: Vec<&Kept> = self.ready(of_inbox).into_iter().filter(is_next).collect();
        found.sort_by_key(|kept| {
            let priority = kept.message.priority;
            let fresh = priority == 0 && !kept.came_back;
            (std::cmp::Reverse(priority), fresh, kept.id)
        });
        found
    }

    fn outgoing(&self, sent: &Sent) -> Outgoing {
        let inbox = self.inbox(sent.inbox).inbox();
        let sender = self.account(sent.sender);
        Outgoing {
            priority: sent.priority,
            key: sent.key.map(|key| format!("key {key}")),
            ..Outgoing::new(inbox.queue, sender, inbox.recipients, "content")
        }
    }

    fn inbox(&self, which: usize) -> Receive {
        Model::inboxes(self.fixture)[which]
    }

    fn account(&self, which: usize) -> AccountId {
        [self.fixture.alice, self.fixture.bob, self.fixture.carol][which]
    }
}

fn pick<T: Copy>(from: &[T], which: usize) -> Option<T> {
    from.get(which.checked_rem(from.len())?).copied()
}
