//! Messages that are sent together, in one buffer.
//!
//! A payload costs no allocation of its own: all of a chunk lie behind one another, and a system
//! takes them as slices or, where its client wants to own them, as shared parts of the buffer.

use crate::settings::Settings;
use crate::stamp::Stamp;
use bytes::Bytes;

/// Messages in a chunk at most: enough that what is done for each chunk is nothing for a message.
const MESSAGES_MAX: u64 = 256;
/// Bytes in a chunk at most, unless one message has more.
const BYTES_MAX: u64 = 32 * 1024;

/// Payloads of one publisher, in order, each on a topic.
#[derive(Clone, Debug)]
pub struct Chunk {
    payloads: Bytes,
    size: usize,
    first: u64,
    topics: u64,
}

impl Chunk {
    /// Number of messages.
    #[must_use]
    pub fn count(&self) -> u64 {
        (self.payloads.len() / self.size) as u64
    }

    /// Each message's topic, by its place in the run's list, and its payload.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = (usize, &[u8])> {
        let mut turn = self.turns();
        let payloads = self.payloads.chunks_exact(self.size);
        payloads.map(move |bytes| (turn(), bytes))
    }

    /// The messages like [`Chunk::messages`], each payload as a part of the shared buffer.
    pub fn shared(&self) -> impl ExactSizeIterator<Item = (usize, Bytes)> {
        let mut turn = self.turns();
        let count = self.payloads.len() / self.size;
        (0..count).map(move |at| {
            let begin = at * self.size;
            (turn(), self.payloads.slice(begin..begin + self.size))
        })
    }

    /// The topic of each message, one after the other: without a division for each.
    fn turns(&self) -> impl FnMut() -> usize + use<> {
        let topics = self.topics as usize;
        let mut next = self.topic(0);
        move || {
            let topic = next;
            next = if topic + 1 == topics { 0 } else { topic + 1 };
            topic
        }
    }

    fn topic(&self, at: usize) -> usize {
        ((self.first + at as u64) % self.topics) as usize
    }
}

/// Makes the chunks of one publisher.
#[derive(Clone, Debug)]
pub struct Carver {
    size: usize,
    topics: u64,
    /// A chunk's payloads, without numbers and times.
    blank: Vec<u8>,
}

impl Carver {
    /// Carves chunks for the publisher with this number.
    #[must_use]
    pub fn new(run: u32, publisher: u32, settings: &Settings) -> Carver {
        let size = settings.size.max(Stamp::SHORT_BYTES);
        let stamp = Stamp {
            run,
            publisher,
            number: 0,
            sent_us: 0,
        };
        Carver {
            size,
            topics: settings.topics.into(),
            blank: stamp
                .payload(size)
                .repeat(Carver::messages_max(settings) as usize),
        }
    }

    /// Most messages of a chunk: one where each is to be sent by itself, and few enough that
    /// several chunks fit into the bound on waiting acks. Where subscribers have topics of their own, each
    /// topic as often as any other, so that it is known how many messages each subscriber is to get.
    #[must_use]
    pub fn messages_max(settings: &Settings) -> u64 {
        if settings.unbatched {
            return 1;
        }
        let by_bytes = BYTES_MAX / settings.size.max(1) as u64;
        let by_window = settings
            .in_flight
            .map_or(u64::MAX, |window| u64::from(window) / 4);
        let most = MESSAGES_MAX.min(by_bytes).min(by_window).max(1);
        let turn = u64::from(settings.topics.max(1));
        if settings.own_topics {
            (most / turn).max(1) * turn
        } else {
            most
        }
    }

    /// Messages `first` to `first + count`, each with the time that `sent_us` gives for its number.
    /// At most [`Carver::messages_max`] of them.
    #[must_use]
    pub fn carve(&self, first: u64, count: u64, sent_us: impl Fn(u64) -> u64) -> Chunk {
        let mut payloads = self.blank[..self.size * count as usize].to_vec();
        for (payload, number) in payloads.chunks_exact_mut(self.size).zip(first..) {
            Stamp::put(payload, number, sent_us(number));
        }
        Chunk {
            payloads: payloads.into(),
            size: self.size,
            first,
            topics: self.topics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_goes_on_where_the_last_one_ended() {
        let settings = Settings {
            topics: 3,
            size: 50,
            ..Settings::default()
        };
        let chunk = Carver::new(7, 2, &settings).carve(10, 4, |number| number * 100);
        assert_eq!(chunk.count(), 4);
        for ((at, (topic, payload)), (same_topic, shared)) in
            chunk.messages().enumerate().zip(chunk.shared())
        {
            let number = 10 + at as u64;
            let stamp = Stamp::read(payload).unwrap();
            assert_eq!((stamp.run, stamp.publisher), (7, 2));
            assert_eq!((stamp.number, stamp.sent_us), (number, number * 100));
            assert_eq!((topic as u64, same_topic), (number % 3, topic));
            assert_eq!(shared, payload);
            assert_eq!(payload.len(), 50);
        }
    }

    #[test]
    fn a_chunk_is_a_part_of_what_may_wait() {
        let chunk = |in_flight, size| {
            Carver::messages_max(&Settings {
                in_flight,
                size,
                ..Settings::default()
            })
        };
        assert_eq!(chunk(None, 100), MESSAGES_MAX);
        assert_eq!(chunk(Some(500), 100), 125);
        assert_eq!(chunk(Some(1), 100), 1);
        assert_eq!(chunk(None, 1 << 20), 1);
    }

    #[test]
    fn where_topics_are_the_subscribers_own_a_chunk_has_each_as_often() {
        let chunk = |topics, size| {
            Carver::messages_max(&Settings {
                own_topics: true,
                topics,
                size,
                ..Settings::default()
            })
        };
        assert_eq!(chunk(100, 100), 200);
        assert_eq!(chunk(300, 100), 300);
        assert_eq!(chunk(8, 1 << 20), 8);
    }
}
