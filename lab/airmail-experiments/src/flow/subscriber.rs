//! Subscribers of every topic, beside the first publishers, each with an account of every message.
//!
//! The paper times only the messages of the publisher on the same machine, because clocks of two
//! machines differ. Here every delivery is timed: the clocks of several machines are brought together
//! before the run, as exactly as that can be.

use super::{Halt, Load, SUBSCRIBERS_MAX};
use airmail_bench::part::Received;
use airmail_bench::progress::Progress;
use airmail_bench::run::Account;
use airmail_bench::system::airmail::{Airmail, AirmailSubscription};
use airmail_bench::system::{Failure, Subscription as _, System as _};
use airmail_client::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Silence after which missing messages count as lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same, once the run was told to stop.
const PATIENCE_HALTED: Duration = Duration::from_secs(2);
/// Time between looks; subscribers listen so long after the last message, for what comes again.
const LOOK: Duration = Duration::from_millis(50);

/// Open subscriptions, each read by a task.
#[derive(Debug)]
pub(super) struct Subscribers {
    clients: Vec<Client>,
    tasks: JoinSet<(Account, Option<Failure>)>,
    stop: watch::Sender<bool>,
}

impl Subscribers {
    /// Opens one for each publisher of this process that has one beside it.
    pub(super) async fn open(
        load: &Load,
        progress: &Arc<Progress>,
    ) -> Result<Subscribers, Failure> {
        let (stop, stopped) = watch::channel(false);
        let mut subscribers = Subscribers {
            clients: Vec::new(),
            tasks: JoinSet::new(),
            stop,
        };
        let system = Airmail::new(&load.url, &airmail_bench::run::Job::default());
        let topics = load.topic_names();
        let places = load.share.of(load.publishers);
        for place in places.filter(|place| *place < SUBSCRIBERS_MAX) {
            let client = load.connect().await?;
            let subscription = system.subscribe(&client, &topics, false).await?;
            let account = Account::by_topic(
                load.id,
                load.publishers,
                topics.len(),
                progress,
                place as usize,
            );
            let task = read(subscription, account, stopped.clone());
            subscribers.tasks.spawn(task);
            subscribers.clients.push(client);
        }
        Ok(subscribers)
    }

    /// Number of those of this process.
    pub(super) fn count(&self) -> u64 {
        self.clients.len() as u64
    }

    /// Waits until all of this process have `messages`, or nothing has come for a while.
    pub(super) async fn wait_for(&self, messages: u64, progress: &Progress, halt: &Halt) {
        let due = messages.saturating_mul(self.count());
        let mut seen = progress.delivered();
        let mut waited = Duration::ZERO;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = progress.delivered();
            let patience = if halt() { PATIENCE_HALTED } else { PATIENCE };
            if seen >= due || waited >= patience {
                return;
            }
            waited = if now == seen {
                waited + LOOK
            } else {
                Duration::ZERO
            };
            seen = now;
        }
    }

    /// Ends the tasks and adds up their findings.
    pub(super) async fn close(mut self) -> Received {
        self.stop.send_replace(true);
        let mut total = Received::default();
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok((account, error)) => add(&mut total, &account, error),
                Err(error) => total.first_error = Some(error.to_string()),
            }
        }
        for client in self.clients {
            if let Err(error) = client.close().await {
                total.first_error.get_or_insert(error.to_string());
            }
        }
        total
    }
}

/// Reads until it is told to stop, or the subscription ends.
async fn read(
    mut subscription: AirmailSubscription,
    mut account: Account,
    mut stopped: watch::Receiver<bool>,
) -> (Account, Option<Failure>) {
    loop {
        let next = tokio::select! {
            biased;
            next = subscription.next(&mut account) => next,
            _ = stopped.changed() => return (account, None),
        };
        // They are counted already; nobody is held back by them here.
        let _ = account.take_fresh();
        match next {
            Ok(true) => {}
            Ok(false) => return (account, None),
            Err(error) => return (account, Some(error)),
        }
    }
}

fn add(total: &mut Received, account: &Account, error: Option<Failure>) {
    for (topic, ledger) in (0..).zip(&account.ledgers) {
        total.tally.add(&ledger.tally());
        total.holes += ledger.holes();
        total.enter_order(topic, ledger.order());
    }
    total.gaps += account.gaps;
    total.last_us = total.last_us.max(account.last_us);
    if let Some(error) = error {
        total.first_error.get_or_insert(error.to_string());
    }
}
