//! Clients in closed loop: each makes one request, waits for its answer, and makes the next.

use super::call::{Call, Kind, Outcome};
use super::mix::{Mix, QUEUES, REMOVED_PERCENT};
use super::record::Sink;
use airmail_bench::clock::now_us;
use airmail_client::mailbox::{
    AccountId, Mailbox, Outgoing, QueueId, QueueSettings, Receive, Recipients, Take,
};
use airmail_model::{Error, ErrorCode};
use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

/// Time that the reader of a batch waits for one: else it would ask an empty queue as fast as it
/// can.
const BATCH_WAIT: Duration = Duration::from_millis(100);

/// The queues and accounts of a run.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// [`QUEUES`] of them.
    pub queues: Vec<QueueId>,
    /// One for each client.
    pub accounts: Vec<AccountId>,
    /// One that nobody reads as.
    pub nobody: Option<AccountId>,
}

impl World {
    /// Makes them, in an empty store.
    ///
    /// # Errors
    /// Those of the requests.
    pub async fn make(mailbox: &Mailbox, clients: u32) -> Result<World, Error> {
        let mut world = World::default();
        for queue in 0..QUEUES {
            let (name, settings) = (format!("queue-{queue}"), QueueSettings::default());
            world
                .queues
                .push(mailbox.create_queue(&name, settings).await?);
        }
        for account in 0..clients {
            let name = format!("account-{account}");
            world.accounts.push(mailbox.create_account(&name).await?);
        }
        world.nobody = Some(mailbox.create_account("nobody").await?);
        Ok(world)
    }
}

/// A client.
#[derive(Debug)]
pub struct Client {
    /// Its number, from 0: it acts as the account of this number.
    pub number: u32,
    /// Its connection.
    pub mailbox: Mailbox,
    /// The queues and accounts; not used for pings.
    pub world: Arc<World>,
    /// The requests to make.
    pub mix: Mix,
    /// Bytes of messages, each as probable as the others.
    pub sizes: Vec<u32>,
    /// Seed of its choices.
    pub seed: u64,
    /// Where its calls are noted.
    pub sink: Sink,
}

impl Client {
    /// Makes requests until this moment; the one that is under way then is the last.
    ///
    /// # Errors
    /// The first error of a request that says something else than that there was nothing; others are
    /// only counted.
    pub async fn run(mut self, until_us: u64) -> Result<(), Error> {
        let mut random = SmallRng::seed_from_u64(self.seed);
        let content = Bytes::from(vec![
            b'x';
            self.sizes.iter().copied().max().unwrap_or(1) as usize
        ]);
        let mut failed = None;
        let mut begun_us = now_us();
        while begun_us < until_us {
            let kind = self.mix.next(self.number, &mut random);
            let answered = self.ask(kind, &content, &mut random).await;
            let ended_us = now_us();
            let (outcome, messages) = match &answered {
                Ok(messages) => (Outcome::Done, *messages),
                Err(error) if is_nothing_there(error.code()) => (Outcome::Nothing, 0),
                Err(_) => (Outcome::Failed, 0),
            };
            if let (Outcome::Failed, Err(error), None) = (outcome, answered, &failed) {
                failed = Some(error);
            }
            self.sink.note(Call {
                client: self.number,
                kind,
                ended_us,
                took_us: ended_us - begun_us,
                outcome,
                messages,
            });
            begun_us = ended_us;
        }
        self.sink.flush();
        failed.map_or(Ok(()), Err)
    }

    /// One request; how many messages it sent or gave.
    async fn ask(&self, kind: Kind, content: &Bytes, random: &mut SmallRng) -> Result<u32, Error> {
        let mailbox = &self.mailbox;
        if kind == Kind::Ping {
            return mailbox.ping(content.slice(..1)).await.map(|_| 0);
        }
        let me = self.world.accounts[self.number as usize];
        match kind {
            Kind::Send => self.send(me, content, random).await,
            Kind::Read | Kind::ReadBroadcast => self.read(kind, me, random).await,
            Kind::Find => {
                let other = self.someone(random);
                mailbox.find_from(other, me).await.map(|_| 1)
            }
            Kind::Queues => mailbox.queues_for(Recipients::Direct(me)).await.map(|_| 0),
            Kind::Ping => Ok(0),
        }
    }

    async fn send(
        &self,
        me: AccountId,
        content: &Bytes,
        random: &mut SmallRng,
    ) -> Result<u32, Error> {
        let message = |recipients, queue, size: u32| {
            Outgoing::new(queue, me, recipients, content.slice(..size as usize))
        };
        if let Mix::Batch(count) = self.mix {
            // All in one line, as in one queue of pgmq's.
            let recipients = Recipients::Direct(self.world.accounts[0]);
            let messages =
                (0..count).map(|_| message(recipients, self.world.queues[0], self.size(random)));
            let sent = self.mailbox.send_all(messages.collect()).await;
            return sent
                .into_iter()
                .try_fold(0, |sent, one| one.map(|_| sent + 1));
        }
        let recipients = if random.random_range(0..100) < self.mix.broadcast_percent() {
            Recipients::Broadcast
        } else {
            Recipients::Direct(self.someone(random))
        };
        let message = message(recipients, self.queue(random), self.size(random));
        self.mailbox.send(message).await.map(|_| 1)
    }

    async fn read(&self, kind: Kind, me: AccountId, random: &mut SmallRng) -> Result<u32, Error> {
        let (request, wait) = match self.mix {
            Mix::Batch(count) => {
                let request = Receive::new(self.world.queues[0], self.world.accounts[0]);
                (request.count(count as usize), BATCH_WAIT)
            }
            _ => {
                let removes = random.random_range(0..100) < REMOVED_PERCENT;
                let take = if removes { Take::Remove } else { Take::Peek };
                let request = Receive::new(self.queue(random), me).take(take);
                let broadcast = kind == Kind::ReadBroadcast;
                (
                    Receive {
                        broadcast,
                        ..request
                    },
                    Duration::ZERO,
                )
            }
        };
        let messages = self.mailbox.receive(request, wait).await?;
        Ok(messages.len() as u32)
    }

    fn queue(&self, random: &mut SmallRng) -> QueueId {
        self.world.queues[random.random_range(0..self.world.queues.len())]
    }

    fn someone(&self, random: &mut SmallRng) -> AccountId {
        self.world.accounts[random.random_range(0..self.world.accounts.len())]
    }

    fn size(&self, random: &mut SmallRng) -> u32 {
        self.sizes[random.random_range(0..self.sizes.len())]
    }
}

fn is_nothing_there(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::QueueIsEmpty | ErrorCode::NoMessageFound | ErrorCode::NoQueuesFound
    )
}
