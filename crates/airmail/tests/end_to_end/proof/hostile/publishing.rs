//! One publisher of a round, through the SDK: it hands messages over to each topic in turn and
//! notes the outcome of each, as soon as it is known.

use super::history::{Answer, Event, History};
use super::stage::Order;
use crate::proof::load::{self, Topic};
use crate::proof::stamp::{STAMP_BYTES, Stamp};
use airmail_client::{ClientBuilder, Error, Published, Publisher};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Messages of a publisher that wait for their acks.
const AHEAD: usize = 512;
/// Messages of one burst, at most.
const BURST: u64 = 24;

/// Interval at which a pausing publisher looks whether it may go on.
const PAUSE: Duration = Duration::from_millis(5);

/// Paces of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// One message, its ack, the next.
    Patient,
    /// Many at once, their acks meanwhile.
    Bursts,
}

/// One publisher.
pub(super) struct Publishing {
    pub(super) id: u32,
    pub(super) pace: Pace,
    pub(super) seed: u64,
    pub(super) client: ClientBuilder,
    pub(super) topics: Arc<[Topic]>,
    pub(super) history: Arc<History>,
    pub(super) order: Arc<Order>,
}

impl Publishing {
    /// Runs until it is stopped and everything is answered.
    pub(super) async fn run(self) {
        let client = self.client.connect().await.unwrap();
        let publisher = client.publisher();
        let mut random = SmallRng::seed_from_u64(self.seed);
        let mut next = vec![0_u64; self.topics.len()];
        let mut open = JoinSet::new();
        let turns = (0..self.topics.len()).cycle();
        for turn in turns {
            while self.order.pause.load(Ordering::Relaxed) {
                tokio::time::sleep(PAUSE).await;
            }
            if self.order.stop.load(Ordering::Relaxed) {
                break;
            }
            let topic = &self.topics[turn];
            let publisher = publisher.clone().namespace(topic.namespace);
            let burst = match self.pace {
                Pace::Patient => 1,
                Pace::Bursts => random.random_range(1..=BURST),
            };
            for _ in 0..burst {
                let stamp = Stamp {
                    publisher: self.id,
                    topic: topic.index,
                    number: next[turn],
                    bytes: size(&mut random),
                };
                next[turn] += 1;
                open.spawn(send(&self.history, &publisher, topic, stamp).await);
            }
            let ahead = match self.pace {
                Pace::Patient => 0,
                Pace::Bursts => AHEAD,
            };
            while open.len() > ahead {
                open.join_next().await;
            }
            while open.try_join_next().is_some() {}
            let pause = Duration::from_micros(random.random_range(0..20_000));
            tokio::time::sleep(pause).await;
        }
        while open.join_next().await.is_some() {}
        client.close().await.unwrap();
    }
}

/// Hands a message over; gives a future that waits for its answer and notes it.
async fn send(
    history: &Arc<History>,
    publisher: &Publisher,
    topic: &Topic,
    stamp: Stamp,
) -> impl Future<Output = ()> + Send + use<> {
    history.note(Event::Invoked(stamp));
    let ack = publisher.send(load::message(topic, stamp)).await.unwrap();
    let history = Arc::clone(history);
    async move {
        let answer = answer(ack.await);
        history.note(Event::Answered(stamp, answer));
    }
}

/// An answer as the history has it.
pub(super) fn answer(answer: Result<Published, Error>) -> Answer {
    match answer {
        Ok(published) => Answer::Stored(Some((published.log, published.sequence.0))),
        Err(error) => Answer::Failed(error.code()),
    }
}

/// Mostly small, some larger, so that segments fill.
fn size(random: &mut SmallRng) -> u32 {
    match random.random_range(0..100) {
        0 => random.random_range(16_384..=65_536),
        1..=5 => random.random_range(1_024..=4_096),
        _ => random.random_range(STAMP_BYTES as u32 + 12..=400),
    }
}
