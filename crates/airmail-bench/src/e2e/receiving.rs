//! The subscribers: one task for each topic of each, with its own account.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airmail_client::{Client, Error, Item, Received, Subscription};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{AFTERMATH, Context, PATIENCE, ReceivedAll};
use crate::latency::Latencies;
use crate::ledger::Ledger;
use crate::stamp::Stamp;

/// Open subscriptions, each read by a task.
#[derive(Debug)]
pub(super) struct Subscribers {
    clients: Vec<Client>,
    tasks: JoinSet<Account>,
    stop: watch::Sender<bool>,
    latencies: SharedLatencies,
}

/// One histogram for all: with one for each topic, many topics would cost more memory than they are
/// worth.
type SharedLatencies = Arc<Mutex<Latencies>>;

/// What one task found on one topic.
#[derive(Debug)]
struct Account {
    topic: u32,
    ledger: Ledger,
    latencies: SharedLatencies,
    gaps: u64,
    last_us: u64,
    error: Option<String>,
}

impl Subscribers {
    /// Opens every subscription, at the end of its topic.
    pub(super) async fn open(context: &Context) -> Result<Subscribers, Error> {
        let (stop, stopped) = watch::channel(false);
        let latencies = SharedLatencies::default();
        let mut subscribers = Subscribers {
            clients: Vec::new(),
            tasks: JoinSet::new(),
            stop,
            latencies,
        };
        for _ in 0..context.run.settings.subscribers {
            let client = context.connect().await?;
            for topic in 0..context.run.settings.topics {
                let subscription = client
                    .subscribe(context.topic(topic)?.as_str())
                    .open()
                    .await?;
                let account = Account::new(context, topic, &subscribers.latencies);
                let task = account.read(context.clone(), subscription, stopped.clone());
                subscribers.tasks.spawn(task);
            }
            subscribers.clients.push(client);
        }
        Ok(subscribers)
    }

    /// Waits until all have `messages`, or nothing has come for a while.
    pub(super) async fn wait_for(&self, context: &Context, messages: u64) {
        let due = messages * u64::from(context.run.settings.subscribers);
        let mut seen = context.progress.delivered();
        let mut waited = Duration::ZERO;
        while seen < due && waited < PATIENCE {
            tokio::time::sleep(AFTERMATH).await;
            let now = context.progress.delivered();
            waited = if now == seen {
                waited + AFTERMATH
            } else {
                Duration::ZERO
            };
            seen = now;
        }
        tokio::time::sleep(AFTERMATH).await;
    }

    /// Ends the tasks and adds up what they found.
    pub(super) async fn close(mut self) -> ReceivedAll {
        self.stop.send_replace(true);
        let mut total = ReceivedAll::default();
        let mut orders: BTreeMap<u32, u64> = BTreeMap::new();
        while let Some(account) = self.tasks.join_next().await {
            match account {
                Ok(account) => {
                    let order = account.ledger.order();
                    let first = *orders.entry(account.topic).or_insert(order);
                    total.disagreements += u64::from(first != order);
                    total.add(account);
                }
                Err(error) => total.first_error = Some(error.to_string()),
            }
        }
        total.latencies = lock(&self.latencies).clone();
        for client in self.clients {
            if let Err(error) = client.close().await {
                total.first_error.get_or_insert(error.to_string());
            }
        }
        total
    }
}

impl Account {
    fn new(context: &Context, topic: u32, latencies: &SharedLatencies) -> Account {
        let settings = &context.run.settings;
        Account {
            topic,
            ledger: Ledger::new(settings.publishers, settings.topics),
            latencies: Arc::clone(latencies),
            gaps: 0,
            last_us: 0,
            error: None,
        }
    }

    /// Reads until it is told to stop, or the subscription ends.
    async fn read(
        mut self,
        context: Context,
        mut subscription: Subscription,
        mut stopped: watch::Receiver<bool>,
    ) -> Account {
        loop {
            let next = tokio::select! {
                biased;
                next = subscription.next() => next,
                _ = stopped.changed() => break,
            };
            match next {
                Ok(Some(Item::Message(message))) => self.take(&context, &message),
                Ok(Some(Item::Gap(_))) => self.gaps += 1,
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error.to_string());
                    break;
                }
            }
        }
        self
    }

    fn take(&mut self, context: &Context, message: &Received) {
        let now_us = context.now_us();
        match Stamp::read(&message.payload).filter(|stamp| stamp.run == context.run.id) {
            Some(stamp) => {
                if self.ledger.enter(&stamp) {
                    let latency_us = now_us.saturating_sub(stamp.sent_us);
                    lock(&self.latencies).record(latency_us);
                    self.last_us = now_us;
                    context.progress.deliver();
                }
            }
            None => self.ledger.enter_strange(),
        }
    }
}

impl ReceivedAll {
    fn add(&mut self, account: Account) {
        self.tally.add(&account.ledger.tally());
        self.gaps += account.gaps;
        self.last_us = self.last_us.max(account.last_us);
        self.first_error = self.first_error.take().or(account.error);
    }
}

fn lock(latencies: &Mutex<Latencies>) -> std::sync::MutexGuard<'_, Latencies> {
    latencies.lock().unwrap_or_else(PoisonError::into_inner)
}
