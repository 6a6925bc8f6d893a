//! A writer: sends a few messages at a time, and none of them again.

use super::Place;
use super::book::Stamp;
use airmail_client::mailbox::{Outgoing, Recipients};
use rand::Rng;
use std::time::Duration;

const BATCH_MAX: usize = 20;
const BYTES_MAX: usize = 2_000;
/// Messages that wait to be done; more, and writers let readers catch up.
const BACKLOG_MAX: u64 = 10_000;
const PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn run(mut place: Place, writer: usize) {
    let mut number = 0;
    while place.book.is_writing() {
        if place.book.counts().backlog() > BACKLOG_MAX {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let count = place.random.random_range(1..=BATCH_MAX);
        let stamps: Vec<Stamp> = (0..count as u64)
            .map(|more| Stamp {
                writer,
                number: number + more,
            })
            .collect();
        number += count as u64;
        let messages = stamps.iter().map(|stamp| {
            let content = stamp.content(place.random.random_range(1..=BYTES_MAX));
            let recipients = Recipients::Direct(place.reader);
            Outgoing::new(place.queue, place.writer, recipients, content)
        });
        let messages = messages.collect();
        place.book.begin(&stamps);
        let results = place.mailbox.send_all(messages).await;
        place.book.told(&stamps, &results);
    }
}
