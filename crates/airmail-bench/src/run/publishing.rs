//! The publishers: each sends its share in order, while its acks are taken beside it.

use super::acks::{Sent, Sheet, take_acks};
use super::{PATIENCE, Running, sleep_until, timetable};
use crate::chunk::Carver;
use crate::clock::now_us;
use crate::pace::Pace;
use crate::part::Published;
use crate::system::{Failure, Publisher, System};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Chunks of one publisher whose acks are awaited, where nothing else bounds them.
const CHUNKS_MAX: usize = 4096;

/// Connected publishers, with their numbers.
#[derive(Debug)]
pub(super) struct Publishers<S: System> {
    clients: Vec<(u32, S::Client)>,
}

/// One publisher, as it sends.
pub(super) struct Sender<S: System> {
    pub(super) run: Arc<Running<S>>,
    pub(super) publisher: S::Publisher,
    pub(super) carver: Carver,
    pub(super) pace: Pace,
    /// Number of messages that it has to send.
    pub(super) messages: u64,
    /// When it stops.
    pub(super) end_us: u64,
    /// The sheet on which acks are awaited.
    pub(super) sheet: Arc<Sheet>,
    pub(super) sent: mpsc::Sender<Sent<<S::Publisher as Publisher>::Acks>>,
}

impl<S: System> Publishers<S> {
    pub(super) async fn connect(run: &Running<S>) -> Result<Publishers<S>, Failure> {
        let mut clients = Vec::new();
        if run.settings().publishes() {
            for number in run.job.publishing().of(run.settings().publishers) {
                clients.push((number, run.system.connect().await?));
            }
        }
        Ok(Publishers { clients })
    }

    /// Publishes everything and waits for every ack.
    pub(super) async fn publish(self, run: &Arc<Running<S>>, start_us: u64) -> Published {
        let mut tasks = JoinSet::new();
        let mut total = Published::default();
        for (number, client) in self.clients {
            tasks.spawn(publish_share(Arc::clone(run), client, number, start_us));
        }
        while let Some(share) = tasks.join_next().await {
            match share {
                Ok(share) => total.add(&share),
                Err(error) => total.first_error = Some(error.to_string()),
            }
        }
        total
    }
}

async fn publish_share<S: System>(
    run: Arc<Running<S>>,
    client: S::Client,
    number: u32,
    start_us: u64,
) -> Published {
    let settings = run.settings();
    let publisher = match run.system.publisher(&client, &run.topics) {
        Ok(publisher) => publisher,
        Err(error) => return failed(&error),
    };
    let window = settings.in_flight.or(run.system.in_flight());
    let sheet = Arc::new(Sheet::new(window));
    let (sent, acks) = mpsc::channel(CHUNKS_MAX);
    let pace = Pace::new(start_us, settings.rate, number, settings.publishers);
    let sender = Sender {
        run: Arc::clone(&run),
        publisher,
        carver: Carver::new(run.job.id, number, settings),
        pace,
        messages: settings.messages_of(number),
        end_us: run.end_us(start_us),
        sheet: Arc::clone(&sheet),
        sent,
    };
    sleep_until(start_us).await;
    let sending = async {
        match settings.rate {
            Some(_) => timetable::send(sender).await,
            None => sender.send_all().await,
        }
    };
    let taking = take_acks(&run.progress, &sheet, pace, acks);
    let (sending, mut share) = tokio::join!(sending, taking);
    share.sent = sheet.sent();
    share.lateness.add(&sheet.lateness());
    if let Err(error) = sending {
        share.first_error.get_or_insert(error.to_string());
    }
    if let Err(error) = run.system.close(client).await {
        share.first_error.get_or_insert(error.to_string());
    }
    share
}

fn failed(error: &Failure) -> Published {
    Published {
        first_error: Some(error.to_string()),
        ..Published::default()
    }
}

impl<S: System> Sender<S> {
    /// Sends as fast as there is room.
    async fn send_all(mut self) -> Result<(), Failure> {
        let settings = self.run.settings();
        let window = settings.in_flight.or(self.run.system.in_flight());
        let mut most = Carver::messages_max(settings);
        most = window.map_or(most, |window| most.min((u64::from(window) / 4).max(1)));
        let mut first = 0;
        while first < self.messages {
            let count = most.min(self.messages - first);
            self.sheet.room(count).await;
            if !self.run.window.room(count, PATIENCE).await {
                return Err(Failure::new("the subscribers get no more of what was sent"));
            }
            let sent_us = now_us();
            if sent_us >= self.end_us {
                break;
            }
            self.send(first, count, Some(sent_us)).await?;
            first += count;
        }
        self.publisher.flush().await
    }

    /// Sends messages `first` to `first + count`, stamped with this time, or with the times at which
    /// they are due.
    pub(super) async fn send(
        &mut self,
        first: u64,
        count: u64,
        sent_us: Option<u64>,
    ) -> Result<(), Failure> {
        let pace = self.pace;
        let stamp = |number| sent_us.or(pace.due_us(number)).unwrap_or_default();
        let chunk = self.carver.carve(first, count, stamp);
        self.sheet.enter(count);
        let acks = self.publisher.send(&chunk).await?;
        let sent = Sent {
            acks,
            first,
            count,
            sent_us,
        };
        let gone = self.sent.send(sent).await;
        gone.map_err(|_| Failure::new("nobody takes acks any more"))
    }
}
