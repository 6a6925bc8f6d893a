//! A list of messages, and requests that are made of the store and of the list.

use airmail_mailbox::conformance::World;
use airmail_mailbox::id::{AccountId, LeaseId, MessageId, QueueId};
use airmail_mailbox::message::{
    BATCH_MAX, Counts, Message, Outgoing, Receipt, Receive, Recipients, Settle, Take,
};
use airmail_model::ErrorCode;
use proptest::collection::vec;
use proptest::prelude::*;

const LASTING: Take = Take::Lease { lease_ms: 600_000 };

/// A request. Numbers choose among what there is.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send {
        messages: Vec<Sent>,
    },
    Receive {
        line: usize,
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
        line: usize,
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
    line: usize,
    sender: usize,
    priority: u8,
    key: Option<u8>,
}

/// Up to `most` requests.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let sent = (0..6_usize, 0..3_usize, 0..4_u8, 0..6_u8).prop_map(|(line, sender, p, key)| Sent {
        line,
        sender,
        priority: p.saturating_sub(1),
        key: (key < 2).then_some(key),
    });
    let take = prop_oneof![Just(Take::Peek), Just(Take::Remove), Just(LASTING)];
    let step = prop_oneof![
        6 => vec(sent, 1..5).prop_map(|messages| Step::Send { messages }),
        8 => (0..6_usize, 1..4_usize, take)
            .prop_map(|(line, count, take)| Step::Receive { line, count, take }),
        4 => (any::<usize>(), any::<bool>())
            .prop_map(|(which, acknowledge)| Step::Settle { which, acknowledge }),
        1 => (any::<usize>(), 0..3_usize).prop_map(|(which, reader)| Step::LookUp { which, reader }),
        1 => (0..3_usize, 0..3_usize).prop_map(|(sender, reader)| Step::Find { sender, reader }),
        1 => (0..6_usize).prop_map(|line| Step::Queues { line }),
        1 => (0..2_usize).prop_map(|queue| Step::Counts { queue }),
        1 => (0..200_usize).prop_map(|queue| Step::Purge { queue }),
    ];
    vec(step, 1..most)
}

#[derive(Clone, Debug)]
struct Kept {
    id: MessageId,
    message: Outgoing,
    /// It came back from a reader.
    came_back: bool,
    deliveries: u32,
    lease: Option<LeaseId>,
}

/// The list.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    world: &'a World,
    kept: Vec<Kept>,
    sent: Vec<MessageId>,
    removed: Vec<MessageId>,
    leases: Vec<Receipt>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(world: &'a World) -> Model<'a> {
        Model {
            world,
            kept: Vec::new(),
            sent: Vec::new(),
            removed: Vec::new(),
            leases: Vec::new(),
        }
    }

    /// Requests for one message, one of each line.
    pub(crate) fn lines(world: &World) -> Vec<Receive> {
        let queues = [world.queue, world.other];
        let of_queue = |queue| {
            let direct = [world.bob, world.carol].map(|reader| Receive::new(queue, reader));
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

    /// Makes a request and compares.
    pub(crate) async fn check(&mut self, step: &Step) {
        let mailboxes = &self.world.mailboxes;
        match *step {
            Step::Send { ref messages } => self.send(messages).await,
            Step::Receive { line, count, take } => self.receive(line, count, take).await,
            Step::Settle { which, acknowledge } => self.settle(which, acknowledge).await,
            Step::LookUp { which, reader } => {
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
            Step::Find { sender, reader } => {
                let (sender, reader) = (self.account(sender), self.account(reader));
                let expected = self.ready(|kept| {
                    kept.message.recipients == Recipients::Direct(reader)
                        && kept.message.sender == sender
                });
                let expected = expected.iter().map(|kept| kept.id).min();
                let found = mailboxes.find_from(sender, reader).await.ok();
                assert_eq!(found.map(|found| found.id), expected);
            }
            Step::Queues { line } => {
                let recipients = self.line(line).inbox().recipients;
                let ready = self.ready(|kept| kept.message.recipients == recipients);
                let mut expected: Vec<QueueId> = ready.iter().map(|k| k.message.queue).collect();
                expected.sort();
                expected.dedup();
                let found = mailboxes.queues_for(recipients).await.unwrap_or_default();
                assert_eq!(found, expected);
            }
            Step::Counts { queue } => {
                let queue = self.line(queue * 3).queue;
                let of_queue = self.kept.iter().filter(|kept| kept.message.queue == queue);
                let (leased, ready): (Vec<_>, Vec<_>) = of_queue.partition(|k| k.lease.is_some());
                let expected = Counts {
                    ready: ready.len() as u64,
                    delayed: 0,
                    leased: leased.len() as u64,
                };
                assert_eq!(mailboxes.counts(queue).await.unwrap(), expected);
            }
            Step::Purge { queue } if queue < 2 => {
                let queue = self.line(queue * 3).queue;
                let before = self.kept.len();
                self.kept.retain(|kept| kept.message.queue != queue);
                let purged = mailboxes.purge(queue).await.unwrap();
                assert_eq!(purged, (before - self.kept.len()) as u64);
            }
            Step::Purge { .. } => {}
        }
    }

    /// Reads all that the list has, and no more.
    pub(crate) async fn drain(&mut self) {
        for which in 0..self.leases.len() {
            self.settle(which, false).await;
        }
        for _ in 0..=self.kept.len() {
            for line in 0..6 {
                self.receive(line, BATCH_MAX, Take::Remove).await;
            }
        }
        assert!(self.kept.is_empty());
    }

    /// Makes a request while others make theirs, and remembers only what it sent and removed.
    pub(crate) async fn do_blindly(&mut self, step: &Step) {
        match *step {
            Step::Send { ref messages } => self.send(messages).await,
            Step::Receive { line, count, take } => {
                let request = self.line(line).count(count).take(take);
                let found = self.world.receive(request).await.unwrap_or_default();
                self.note(&found, take);
            }
            Step::Settle { which, acknowledge } if !self.leases.is_empty() => {
                let receipt = self.leases.swap_remove(which % self.leases.len());
                let what = if acknowledge {
                    self.removed.push(receipt.message);
                    Settle::Acknowledge
                } else {
                    Settle::Release { delay_ms: 0 }
                };
                let settled = self.world.mailboxes.settle(vec![receipt], what).await;
                settled.unwrap().remove(0).unwrap();
            }
            _ => {}
        }
    }

    pub(crate) async fn release_all(&self) {
        for receipt in &self.leases {
            let release = Settle::Release { delay_ms: 0 };
            let settled = self.world.mailboxes.settle(vec![*receipt], release).await;
            settled.unwrap().remove(0).unwrap();
        }
    }

    async fn send(&mut self, messages: &[Sent]) {
        let messages: Vec<Outgoing> = messages.iter().map(|sent| self.outgoing(sent)).collect();
        let results = self
            .world
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

    async fn receive(&mut self, line: usize, count: usize, take: Take) {
        let request = self.line(line).count(count).take(take);
        let expected: Vec<MessageId> = self
            .handed_out(request)
            .iter()
            .map(|kept| kept.id)
            .take(count)
            .collect();
        let found = self.world.receive(request).await.unwrap_or_default();
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
            .world
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

    /// What a request would get without a bound, in order.
    fn handed_out(&self, request: Receive) -> Vec<&Kept> {
        let line = request.inbox();
        let of_line = |kept: &Kept| {
            kept.message.queue == line.queue && kept.message.recipients == line.recipients
        };
        let is_next = |kept: &&Kept| {
            let before = |other: &Kept| {
                other.message.key == kept.message.key
                    && of_line(other)
                    && (other.lease.is_some() || other.id < kept.id)
            };
            kept.message.key.is_none() || !self.kept.iter().any(|k| k.id != kept.id && before(k))
        };
        let mut found: Vec<&Kept> = self.ready(of_line).into_iter().filter(is_next).collect();
        found.sort_by_key(|kept| {
            let priority = kept.message.priority;
            let fresh = priority == 0 && !kept.came_back;
            (std::cmp::Reverse(priority), fresh, kept.id)
        });
        found
    }

    fn outgoing(&self, sent: &Sent) -> Outgoing {
        let line = self.line(sent.line).inbox();
        let sender = self.account(sent.sender);
        Outgoing {
            priority: sent.priority,
            key: sent.key.map(|key| format!("key {key}")),
            ..Outgoing::new(line.queue, sender, line.recipients, "content")
        }
    }

    fn line(&self, which: usize) -> Receive {
        Model::lines(self.world)[which]
    }

    fn account(&self, which: usize) -> AccountId {
        [self.world.alice, self.world.bob, self.world.carol][which]
    }
}

fn pick<T: Copy>(from: &[T], which: usize) -> Option<T> {
    from.get(which.checked_rem(from.len())?).copied()
}
