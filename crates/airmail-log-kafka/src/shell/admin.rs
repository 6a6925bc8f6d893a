//! Orders, carried out one at a time by a thread of their own.
//!
//! librdkafka's client for administration is kept while orders come, and ended when none has come for a while: nobody
//! can read its log and its errors through its safe interface, so that they would gather as long as it lives.

use super::clock::now;
use super::news::News;
use super::routes::{closing, full};
use super::topics::Topics;
use crate::brokers::{Answer, Failure, Order, Token};
use rdkafka::ClientConfig;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// Time in which an order is answered.
const ANSWER: Duration = Duration::from_secs(30);
/// The most of it that one order takes, so that one that waits behind it has some left.
const ORDER: Duration = Duration::from_secs(20);
/// Time without orders after which the client is ended.
const IDLE: Duration = Duration::from_secs(10);
/// Orders after which it is ended as well.
const ORDERS_MAX: u32 = 1000;
/// The most orders that wait.
const WAITING_MAX: usize = 256;

/// An order under way.
#[derive(Debug)]
struct Ordered {
    token: Token,
    order: Order,
    until: Instant,
}

/// The owner's end of the thread, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct Orders {
    queue: SyncSender<Ordered>,
    news: Arc<News>,
}

impl Orders {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn start(config: ClientConfig, news: &Arc<News>) -> io::Result<Orders> {
        let (queue, orders) = sync_channel(WAITING_MAX);
        let telling = Arc::clone(news);
        news.spawn("kafka-orders", move || {
            carry_out_all(&config, &telling, &orders);
        })?;
        let news = Arc::clone(news);
        Ok(Orders { queue, news })
    }

    /// Hands an order over.
    pub(super) fn order(&self, token: Token, order: Order) {
        let until = now() + ANSWER;
        let ordered = Ordered {
            token,
            order,
            until,
        };
        match self.queue.try_send(ordered) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.news.fail(token, full()),
            Err(TrySendError::Disconnected(_)) => self.news.fail(token, closing()),
        }
    }
}

fn carry_out_all(config: &ClientConfig, news: &Arc<News>, orders: &Receiver<Ordered>) {
    let mut client: Option<Topics> = None;
    let mut count = 0;
    loop {
        let ordered = match orders.recv_timeout(IDLE) {
            Ok(ordered) => ordered,
            Err(RecvTimeoutError::Timeout) => {
                client = None;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if news.is_closing() {
            news.fail(ordered.token, closing());
            continue;
        }
        count += 1;
        if count % ORDERS_MAX == 0 {
            client = None;
        }
        if client.is_none() {
            client = match Topics::connect(config, news) {
                Ok(made) => Some(made),
                Err(error) => {
                    news.fail(ordered.token, Failure::Other(error.to_string()));
                    continue;
                }
            };
        }
        let until = ordered.until.min(now() + ORDER);
        let done = match &client {
            Some(client) => client.carry_out(&ordered.order, until),
            None => Err(closing()),
        };
        let answer = done.unwrap_or_else(Answer::Failed);
        if !matches!(answer, Answer::Failed(_)) {
            news.note_answer();
        }
        news.answer(ordered.token, answer);
    }
}
