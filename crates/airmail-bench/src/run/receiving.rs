//! The subscribers: a task for each, with its own account of every topic.

use super::{AFTERMATH, Account, PATIENCE, Running};
use crate::clock::now_us;
use crate::ledger::Ledger;
use crate::part::Received;
use crate::system::{Failure, Subscription, System};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Open subscriptions, each read by a task.
#[derive(Debug)]
pub(super) struct Subscribers<S: System> {
    clients: Vec<S::Client>,
    tasks: JoinSet<Kept>,
    stop: watch::Sender<bool>,
}

/// Result of one task.
#[derive(Debug)]
struct Kept {
    account: Account,
    error: Option<Failure>,
}

impl<S: System> Subscribers<S> {
    /// Opens every subscription.
    pub(super) async fn open(run: &Arc<Running<S>>) -> Result<Subscribers<S>, Failure> {
        let (stop, stopped) = watch::channel(false);
        let mut subscribers = Subscribers {
            clients: Vec::new(),
            tasks: JoinSet::new(),
            stop,
        };
        let settings = run.settings();
        if !settings.subscribes() {
            return Ok(subscribers);
        }
        let numbers = run.job.subscribing().of(settings.subscribers);
        for (place, number) in numbers.enumerate() {
            let client = run.system.connect().await?;
            let (first, step) = settings.topics_of(number);
            let topics = run.topics.iter().skip(first).step_by(step);
            let topics: Vec<String> = topics.cloned().collect();
            let opened = run
                .system
                .subscribe(&client, &topics, settings.from_earliest);
            let subscription = opened.await?;
            let ledger = Ledger::new(settings.publishers, settings.topics);
            let ledgers = vec![ledger; run.topics.len()];
            let account = Account::new(run.job.id, ledgers, &run.progress, place);
            let kept = Kept {
                account: account.of_topics((first, step)),
                error: None,
            };
            let task = kept.read(Arc::clone(run), place, subscription, stopped.clone());
            subscribers.tasks.spawn(task);
            subscribers.clients.push(client);
        }
        Ok(subscribers)
    }

    /// Waits until all have `messages` (who only subscribes: what is to come), or the time is over,
    /// or nothing has come for a while.
    pub(super) async fn wait_for(&self, run: &Running<S>, messages: u64, start_us: u64) {
        let settings = run.settings();
        let end_us = if settings.publishes() {
            u64::MAX
        } else {
            run.end_us(start_us)
        };
        let messages = if settings.publishes() {
            messages
        } else {
            settings.messages.unwrap_or(u64::MAX)
        };
        // Of topics of its own each subscriber gets an even part.
        let each = messages / (u64::from(settings.subscribers) / settings.readers()).max(1);
        let due = each.saturating_mul(self.clients.len() as u64);
        let mut seen = run.progress.delivered();
        let mut waited = Duration::ZERO;
        // Who only subscribes may wait for a first message as long as it likes.
        let first = !settings.publishes() && end_us != u64::MAX;
        while seen < due && now_us() < end_us && (waited < PATIENCE || (first && seen == 0)) {
            tokio::time::sleep(AFTERMATH).await;
            let now = run.progress.delivered();
            waited = if now == seen {
                waited + AFTERMATH
            } else {
                Duration::ZERO
            };
            seen = now;
        }
        if !self.clients.is_empty() {
            tokio::time::sleep(AFTERMATH).await;
        }
    }

    /// Ends the tasks and adds up their findings.
    pub(super) async fn close(mut self, run: &Running<S>) -> Received {
        self.stop.send_replace(true);
        let mut total = Received::default();
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(kept) => kept.add_to(&mut total, run),
                Err(error) => total.first_error = Some(error.to_string()),
            }
        }
        for client in self.clients {
            if let Err(error) = run.system.close(client).await {
                total.first_error.get_or_insert(error.to_string());
            }
        }
        total
    }
}

impl Kept {
    /// Reads until it is told to stop, or the subscription ends.
    async fn read<S: System>(
        mut self,
        run: Arc<Running<S>>,
        place: usize,
        mut subscription: S::Subscription,
        mut stopped: watch::Receiver<bool>,
    ) -> Kept {
        let settings = run.settings();
        // As far as it is in what is published, of which it gets a part.
        let parts = u64::from(settings.subscribers) / settings.readers();
        loop {
            let next = tokio::select! {
                biased;
                next = subscription.next(&mut self.account) => next,
                _ = stopped.changed() => break,
            };
            run.window.deliver(place, self.account.take_fresh() * parts);
            match next {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        self
    }

    fn add_to<S: System>(mut self, total: &mut Received, run: &Running<S>) {
        let settings = run.settings();
        for ledger in &mut self.account.ledgers {
            if !settings.publishes() && !settings.from_earliest {
                ledger.forgive_the_past();
            }
            total.tally.add(&ledger.tally());
            total.holes += ledger.holes();
        }
        // Who joined at another time has another order.
        if settings.publishes() {
            let ledgers = self.account.ledgers.iter().enumerate();
            for (topic, ledger) in ledgers.filter(|(topic, _)| self.account.has(*topic)) {
                total.enter_order(topic as u32, ledger.order());
            }
        }
        total.gaps += self.account.gaps;
        total.last_us = total.last_us.max(self.account.last_us);
        if let Some(error) = self.error {
            total.first_error.get_or_insert(error.to_string());
        }
    }
}
