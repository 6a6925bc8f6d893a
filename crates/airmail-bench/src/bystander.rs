//! A subscriber that others are measured beside: one that stops reading, is slow, or begins at the
//! earliest message that is stored.
//!
//! It is in a process of its own, so that its cost to its own side is not taken from the others'.
//! It keeps an account too: its messages must be whole and in order, however slowly it takes them.

use crate::clock::now_us;
use crate::process::Usage;
use crate::stamp::Stamp;
use crate::system::Failure;
use airmail_client::{Client, Items, Start, Subscription};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Conduct of a subscriber beside which others are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conduct {
    /// It subscribes from now, and reads nothing.
    Stopped,
    /// It subscribes from now, and reads at a hundredth of the rate.
    Slow,
    /// It begins at the earliest message, and reads as fast as it can.
    Earliest,
}

impl Conduct {
    /// All.
    pub const ALL: [Conduct; 3] = [Conduct::Stopped, Conduct::Slow, Conduct::Earliest];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Conduct::Stopped => "stopped",
            Conduct::Slow => "slow",
            Conduct::Earliest => "earliest",
        }
    }
}

/// Task of such a subscriber.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The node, as `airmail://HOST:PORT`.
    pub target: String,
    /// Namespace of the topic.
    pub namespace: String,
    /// The topic that the others use.
    pub topic: String,
    /// Its conduct.
    pub conduct: Conduct,
    /// Messages a second that it takes at most. Absent: all.
    pub per_s: Option<u64>,
    /// Credit, in bytes; absent: the SDK's default.
    #[serde(default)]
    pub credit_bytes: Option<u32>,
    /// Its process takes only what processor time nobody else wants.
    pub yields: bool,
}

/// Messages that it got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Time from when it began to read until it was stopped, in microseconds.
    pub time_us: u64,
    /// Messages of a publisher that were left out between others.
    pub missing: u64,
    /// Messages that were not later than the one before of their publisher.
    pub again: u64,
    /// Payloads of no bench.
    pub strange: u64,
    /// Gaps that it was told.
    pub gaps: u64,
    /// Processor time of its process.
    pub cpu_us: u64,
}

/// A subscriber that stands.
#[derive(Debug)]
pub struct Bystander {
    client: Client,
    subscription: Subscription,
    task: Task,
    account: Account,
}

impl Bystander {
    /// Subscribes.
    ///
    /// # Errors
    /// The node cannot be reached, or refuses.
    pub async fn open(task: Task) -> Result<Bystander, Failure> {
        let mut builder = Client::builder().url(&*task.target);
        if let Some(bytes) = task.credit_bytes {
            builder = builder.credit_bytes(bytes);
        }
        let client = builder.namespace(&*task.namespace).connect().await?;
        let start = match task.conduct {
            Conduct::Earliest => Start::Earliest,
            Conduct::Stopped | Conduct::Slow => Start::Latest,
        };
        let subscription = client.subscribe(&task.topic).from(start).open().await?;
        Ok(Bystander {
            client,
            subscription,
            task,
            account: Account::default(),
        })
    }

    /// Does what it is to do until `stop` is done.
    ///
    /// # Errors
    /// The subscription has failed.
    pub async fn read_until(mut self, stop: impl Future<Output = ()>) -> Result<Taken, Failure> {
        let (start_us, before) = (now_us(), Usage::own());
        tokio::select! {
            () = stop => {}
            failed = self.read() => failed?,
        }
        let mut taken = self.account.taken;
        taken.time_us = now_us() - start_us;
        taken.cpu_us = Usage::own().since(&before).cpu_us;
        // What it has not read is not waited for.
        drop((self.subscription, self.client));
        Ok(taken)
    }

    /// Ends only if the subscription does.
    async fn read(&mut self) -> Result<(), Failure> {
        if self.task.conduct == Conduct::Stopped {
            return std::future::pending().await;
        }
        let start_us = now_us();
        while let Some(items) = self.subscription.next_batch().await? {
            self.account.enter(&items);
            if let Some(per_s) = self.task.per_s {
                let due_us = start_us + self.account.taken.messages * 1_000_000 / per_s.max(1);
                let wait_us = due_us.saturating_sub(now_us());
                tokio::time::sleep(Duration::from_micros(wait_us)).await;
            }
        }
        Err(Failure::new("the subscription has ended"))
    }
}

/// Account of the messages of any number of runs: each publisher of each run numbers its messages
/// from 0.
#[derive(Debug, Default)]
struct Account {
    taken: Taken,
    /// The next number, by run and publisher.
    next: BTreeMap<(u32, u32), u64>,
}

impl Account {
    fn enter(&mut self, items: &Items) {
        match items {
            Items::Messages(messages) => messages
                .iter()
                .for_each(|(_, record)| self.take(record.payload)),
            Items::Gap(_) => self.taken.gaps += 1,
            // Nobody asks to be told of what has expired.
            Items::Expired(_) => {}
        }
    }

    fn take(&mut self, payload: &[u8]) {
        self.taken.messages += 1;
        self.taken.bytes += payload.len() as u64;
        let Some(stamp) = Stamp::read(payload) else {
            self.taken.strange += 1;
            return;
        };
        let next = self.next.entry((stamp.run, stamp.publisher)).or_default();
        if stamp.number < *next {
            self.taken.again += 1;
            return;
        }
        self.taken.missing += stamp.number - *next;
        *next = stamp.number + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_or_comes_again_is_counted_for_each_publisher_of_each_run() {
        let mut account = Account::default();
        let messages = [(1, 0), (1, 1), (2, 0), (1, 3), (2, 1), (1, 3), (1, 4)];
        for (run, number) in messages {
            let stamp = Stamp {
                run,
                publisher: 0,
                number,
                sent_us: 0,
            };
            account.take(&stamp.bytes());
        }
        account.take(b"short");
        let Taken {
            messages,
            missing,
            again,
            strange,
            ..
        } = account.taken;
        assert_eq!((messages, missing, again, strange), (8, 1, 1, 1));
    }
}
