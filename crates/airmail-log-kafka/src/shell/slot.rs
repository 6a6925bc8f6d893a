//! A slot: one consumer client of librdkafka, whose partitions are assigned and unassigned by a thread of its own.
//!
//! Assigning waits for librdkafka's main thread, and so does ending a client, which may take seconds: neither is for
//! the owner. The order of things is librdkafka's trap. A partition's queue is one object for all who hold it, so
//! whoever gives it up also switches off the wake-up of the next who has it; and what was fetched before a partition was
//! given up stays there until somebody looks, and takes memory. So a consumer's queue is given back to this thread, which
//! unassigns, looks into it once (librdkafka drops there what is outdated), and lets it go before it makes the next.
//!
//! Bound of the jobs that wait: two for each partition, because one to start that was not begun goes with the one to
//! stop.

use super::consumer::{Cell, Events, ended};
use super::news::News;
use crate::brokers::{Failure, Slot};
use parking_lot::{Condvar, Mutex};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaResult;
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::{ClientConfig, Offset};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The most time between looks at the client's own events.
const LOOK: Duration = Duration::from_millis(200);

/// Something for the slot's thread to do.
#[derive(Debug)]
enum Job {
    Start(Arc<Cell>),
    Stop(Arc<Cell>),
}

/// Jobs that wait, and whether there will be more.
#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    is_last: bool,
}

/// State that the owner and the thread have in common.
#[derive(Debug, Default)]
struct Desk {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

/// The owner's end of a slot.
#[derive(Debug)]
pub(super) struct SlotDesk(Arc<Desk>);

impl SlotDesk {
    /// Starts the slot's thread, which makes the client.
    ///
    /// # Errors
    /// The system has no thread.
    pub(super) fn start(
        config: ClientConfig,
        slot: Slot,
        news: &Arc<News>,
    ) -> io::Result<SlotDesk> {
        let desk = Arc::new(Desk::default());
        let (working, telling) = (Arc::clone(&desk), Arc::clone(news));
        news.spawn(&format!("kafka-slot-{}", slot.0), move || {
            match config.create_with_context(Events) {
                Ok(client) => Worker {
                    client: Arc::new(client),
                    news: telling,
                }
                .run(&working),
                Err(error) => refuse(&working, &telling, &error.to_string()),
            }
        })?;
        Ok(SlotDesk(desk))
    }

    /// Assigns a consumer's partition, soon.
    pub(super) fn begin(&self, cell: Arc<Cell>) {
        self.put(Job::Start(cell));
    }

    /// Unassigns a consumer's partition, soon.
    pub(super) fn stop(&self, cell: &Arc<Cell>) {
        let mut jobs = self.0.jobs.lock();
        let is_start = |job: &Job| matches!(job, Job::Start(begun) if Arc::ptr_eq(begun, cell));
        if let Some(at) = jobs.waiting.iter().position(is_start) {
            jobs.waiting.remove(at);
            return;
        }
        drop(jobs);
        self.put(Job::Stop(Arc::clone(cell)));
    }

    fn put(&self, job: Job) {
        self.0.jobs.lock().waiting.push_back(job);
        self.0.changed.notify_one();
    }
}

impl Drop for SlotDesk {
    fn drop(&mut self) {
        self.0.jobs.lock().is_last = true;
        self.0.changed.notify_one();
    }
}

impl Desk {
    /// The next job; none if there is none for a while. `Err` at the end.
    fn next(&self) -> Result<Option<Job>, ()> {
        let mut jobs = self.jobs.lock();
        if jobs.waiting.is_empty() && !jobs.is_last {
            self.changed.wait_for(&mut jobs, LOOK);
        }
        match jobs.waiting.pop_front() {
            None if jobs.is_last => Err(()),
            job => Ok(job),
        }
    }
}

/// Fails every consumer of a slot without a client.
fn refuse(desk: &Desk, news: &News, why: &str) {
    while let Ok(job) = desk.next() {
        if let Some(Job::Start(cell)) = job {
            news.tell(ended(cell.consumer, Failure::Other(why.to_owned())));
        }
    }
}

/// The slot's thread.
struct Worker {
    client: Arc<BaseConsumer<Events>>,
    news: Arc<News>,
}

impl Worker {
    fn run(self, desk: &Desk) {
        while let Ok(job) = desk.next() {
            match job {
                Some(Job::Start(cell)) => self.start(&cell),
                Some(Job::Stop(cell)) => self.stop(&cell),
                None => {}
            }
            self.look();
        }
    }

    fn start(&self, cell: &Cell) {
        let partition = &cell.partition;
        let (topic, number) = (partition.topic.as_str(), partition.number.0.into());
        let Some(mut queue) = self.client.split_partition_queue(topic, number) else {
            // Input: a topic's name with a zero byte.
            let why = Failure::Other("librdkafka has no queue for it".to_owned());
            self.news.tell(ended(cell.consumer, why));
            return;
        };
        let (flag, news) = (Arc::clone(&cell.flag), Arc::clone(&self.news));
        queue.set_nonempty_callback(move || flag.raise(&news));
        *cell.queue.lock() = Some(queue);
        // What was fetched for the last who had it may have come after it was looked into. The queue is not empty
        // then, and librdkafka tells of one that was empty alone: so it is looked into once in any case.
        cell.flag.raise(&self.news);
        if let Err(error) = self.assign(cell) {
            let why = Failure::Other(error.to_string());
            self.news.tell(ended(cell.consumer, why));
        }
    }

    fn assign(&self, cell: &Cell) -> KafkaResult<()> {
        let list = list(cell)?;
        self.client.incremental_assign(&list)
    }

    fn stop(&self, cell: &Cell) {
        let queue = cell.queue.lock().take();
        let unassigned = list(cell).and_then(|list| self.client.incremental_unassign(&list));
        if let Err(error) = unassigned {
            // It was never assigned, which was told then.
            tracing::debug!(partition = %cell.partition, %error, "a partition is not unassigned");
        }
        if let Some(queue) = queue {
            while queue.poll(Duration::ZERO).is_some() {}
        }
    }

    /// Takes the client's own events: its log, and errors of no partition, which librdkafka gets over.
    fn look(&self) {
        while let Some(event) = self.client.poll(Duration::ZERO) {
            match event {
                Ok(_) => airmail_model::bug!("a record came in no partition's queue"),
                Err(error) => tracing::debug!(%error, "Kafka's consumer reports an error"),
            }
        }
    }
}

fn list(cell: &Cell) -> KafkaResult<TopicPartitionList> {
    let partition = &cell.partition;
    let (topic, number) = (partition.topic.as_str(), partition.number.0.into());
    let mut list = TopicPartitionList::with_capacity(1);
    // Every offset that has a number is in range.
    let from = i64::try_from(cell.from.0).unwrap_or(i64::MAX);
    list.add_partition_offset(topic, number, Offset::Offset(from))?;
    Ok(list)
}
