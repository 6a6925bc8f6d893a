//! The publishers: each sends its share in order, while another task takes its acks.

use std::time::Duration;

use airmail_client::{Client, Error, Message, Publisher, Receipt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Context, PublishedAll};
use crate::latency::Latencies;
use crate::pace::Pace;
use crate::stamp::Stamp;

/// Messages of one publisher that wait for their acks. Many enough to keep a node busy over a slow
/// sync, few enough that the queue is not all that is measured.
const UNACKED_MAX: usize = 4096;

/// Connected publishers.
#[derive(Debug)]
pub(super) struct Publishers {
    clients: Vec<Client>,
}

impl Publishers {
    pub(super) async fn connect(context: &Context) -> Result<Publishers, Error> {
        let mut clients = Vec::new();
        for _ in 0..context.run.settings.publishers {
            clients.push(context.connect().await?);
        }
        Ok(Publishers { clients })
    }

    /// Publishes everything and waits for every ack.
    pub(super) async fn publish(self, context: &Context, start_us: u64) -> PublishedAll {
        let mut tasks = JoinSet::new();
        let mut total = PublishedAll::default();
        for (client, publisher) in self.clients.into_iter().zip(0..) {
            tasks.spawn(publish_share(context.clone(), client, publisher, start_us));
        }
        while let Some(share) = tasks.join_next().await {
            match share {
                Ok(share) => total.add(share),
                Err(error) => total.first_error = Some(error.to_string()),
            }
        }
        total
    }
}

async fn publish_share(
    context: Context,
    client: Client,
    publisher: u32,
    start_us: u64,
) -> PublishedAll {
    let (receipts, acks) = mpsc::channel(UNACKED_MAX);
    let sending = send_share(&context, client.publisher(), publisher, start_us, receipts);
    let (sent, mut share) = tokio::join!(sending, take_acks(&context, acks));
    let answered = share.acknowledged + share.failed;
    share.failed += context
        .run
        .settings
        .messages_of(publisher)
        .saturating_sub(answered);
    share.first_error = share
        .first_error
        .or(sent.err().map(|error| error.to_string()));
    if let Err(error) = client.close().await {
        share.first_error.get_or_insert(error.to_string());
    }
    share
}

/// Sends the publisher's messages; the error that ended it early, if one did.
async fn send_share(
    context: &Context,
    sender: Publisher,
    publisher: u32,
    start_us: u64,
    receipts: mpsc::Sender<(u64, Receipt)>,
) -> Result<(), Error> {
    let settings = &context.run.settings;
    let pace = Pace::new(start_us, settings.rate, publisher, settings.publishers);
    let topics = (0..settings.topics).map(|topic| context.topic(topic));
    let topics = topics.collect::<Result<Vec<_>, Error>>()?;
    for number in 0..settings.messages_of(publisher) {
        let sent_us = match pace.due_us(number) {
            Some(due_us) => {
                wait_until(context, due_us).await;
                due_us
            }
            None => context.now_us(),
        };
        let stamp = Stamp {
            run: context.run.id,
            publisher,
            number,
            sent_us,
        };
        let topic = topics[settings.topic_of(number) as usize].clone();
        let receipt = sender
            .send(Message::new(topic, stamp.payload(settings.size)))
            .await?;
        if receipts.send((sent_us, receipt)).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn wait_until(context: &Context, due_us: u64) {
    let wait_us = due_us.saturating_sub(context.now_us());
    // Below a timer's resolution there is nothing to wait for.
    if wait_us >= 1000 {
        tokio::time::sleep(Duration::from_micros(wait_us)).await;
    }
}

async fn take_acks(
    context: &Context,
    mut receipts: mpsc::Receiver<(u64, Receipt)>,
) -> PublishedAll {
    let mut share = PublishedAll {
        latencies: Latencies::new(),
        ..PublishedAll::default()
    };
    while let Some((sent_us, receipt)) = receipts.recv().await {
        match receipt.await {
            Ok(_) => {
                let now_us = context.now_us();
                share.acknowledged += 1;
                share.last_us = now_us;
                share.latencies.record(now_us.saturating_sub(sent_us));
                context.progress.acknowledge();
            }
            Err(error) => {
                share.failed += 1;
                share.first_error.get_or_insert(error.to_string());
            }
        }
    }
    share
}

impl PublishedAll {
    fn add(&mut self, share: PublishedAll) {
        self.acknowledged += share.acknowledged;
        self.failed += share.failed;
        self.latencies.add(&share.latencies);
        self.last_us = self.last_us.max(share.last_us);
        self.first_error = self.first_error.take().or(share.first_error);
    }
}
