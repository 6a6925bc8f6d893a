//! Signs of life: what a shard says on streams on which it would otherwise say nothing, and its news of nodes.
//!
//! A client takes a node for lost that says nothing for a while, and goes on at another. So the sign has to come
//! from the shard's own turn, which is what serves the client: a thread beside it would say that all is well while
//! nothing goes on. A slow storage is no reason for silence.
//!
//! A sign costs a wake of the connection's task and a write: some 15 us. The more streams there are, the less often each
//! is given one, and each says when the next comes. They are given in *rounds*, some streams at a time: the signs of two
//! thousand at once keep the shard's thread for 30 ms, and who has something to say waits for as long.
//!
//! Invariants: a stream is told of a longer time before the first such time begins; in a round every stream that was
//! there at its beginning, and is there still, has one sign.

use super::send_queue::SendQueue;
use airmail_broker::SessionId;
use airmail_model::Mono;
use airmail_model::frame::Nodes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Time between two signs of life where there are few streams.
pub(crate) const ALIVE_MIN: Duration = Duration::from_millis(300);
/// Longest time between two signs by which a client notices within 2 s that there are none.
const ALIVE_SOON: Duration = Duration::from_millis(500);
/// Longest time between two signs, where there are very many streams.
const ALIVE_MAX: Duration = Duration::from_secs(1);
/// Steps of the time, so that it does not change with each stream that comes or goes.
const ALIVE_STEP: Duration = Duration::from_millis(100);
/// Time for each stream, up to [`ALIVE_SOON`] and up to [`ALIVE_MAX`]: what signs cost is a share of a core.
const SOON_OF_ONE: Duration = Duration::from_micros(300);
const ALIVE_OF_ONE: Duration = Duration::from_micros(100);
/// Most parts of a round, and streams of a part where there are fewer.
const PARTS_MAX: usize = 32;
const PART_STREAMS: usize = 64;

/// Signs of life of a shard.
#[derive(Debug)]
pub(crate) struct LifeSigns {
    serving: watch::Receiver<Arc<Nodes>>,
    /// Time of the next part; `None` while there are no streams.
    next: Option<Mono>,
    rounds: Rounds<SessionId>,
}

impl LifeSigns {
    /// Signs of life, with news of the nodes that serve.
    pub(crate) fn new(serving: watch::Receiver<Arc<Nodes>>) -> LifeSigns {
        LifeSigns {
            serving,
            next: None,
            rounds: Rounds::new(),
        }
    }

    /// Gives the signs that are due, and news; tells when to come back.
    pub(crate) fn give(
        &mut self,
        now: Mono,
        queues: &BTreeMap<SessionId, Arc<SendQueue>>,
    ) -> Option<Mono> {
        // An error says that nobody will change it any more.
        if self.serving.has_changed().unwrap_or(false) {
            let nodes = Arc::clone(&self.serving.borrow_and_update());
            queues.values().for_each(|queue| queue.tell_nodes(&nodes));
        }
        if queues.is_empty() {
            (self.next, self.rounds) = (None, Rounds::new());
            return None;
        }
        let pause = self.rounds.pause;
        let next = *self.next.get_or_insert_with(|| now.plus(pause));
        if now < next {
            return Some(next);
        }
        for queue in self.rounds.part(queues) {
            queue.say_alive(self.rounds.within());
        }
        self.next = Some(now.plus(self.rounds.pause));
        self.next
    }

    /// Time between two signs, for whoever begins a stream.
    pub(crate) fn within(&self) -> Duration {
        self.rounds.within()
    }
}

/// Rounds over streams, some at a time.
#[derive(Debug)]
struct Rounds<K> {
    /// Length of this round, and of the one after it.
    lengths: [Duration; 2],
    /// Time between two parts.
    pause: Duration,
    part_streams: usize,
    parts_left: usize,
    /// The last stream that has had its turn in this round.
    last: Option<K>,
}

impl<K: Ord + Copy> Rounds<K> {
    fn new() -> Rounds<K> {
        Rounds {
            lengths: [ALIVE_MIN; 2],
            pause: ALIVE_MIN,
            part_streams: 0,
            parts_left: 0,
            last: None,
        }
    }

    /// The streams of the next part.
    fn part<'a, V>(
        &mut self,
        streams: &'a BTreeMap<K, V>,
    ) -> impl Iterator<Item = &'a V> + use<'a, K, V> {
        if self.parts_left == 0 {
            self.begin(streams.len());
        }
        self.parts_left -= 1;
        // Those that have come since the round began are in its last part.
        let most = if self.parts_left == 0 {
            usize::MAX
        } else {
            self.part_streams
        };
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = streams.range((after, Bound::Unbounded));
        self.last = rest
            .clone()
            .take(most)
            .last()
            .map_or(self.last, |(key, _)| Some(*key));
        rest.take(most).map(|(_, stream)| stream)
    }

    fn begin(&mut self, streams: usize) {
        self.lengths = [self.lengths[1], within(streams)];
        let parts = streams.div_ceil(PART_STREAMS).clamp(1, PARTS_MAX);
        self.part_streams = streams.div_ceil(parts);
        self.pause = self.lengths[0] / u32::try_from(parts).unwrap_or(u32::MAX);
        self.parts_left = parts;
        self.last = None;
    }

    /// Time between two turns, as streams are told: a stream's next one is in this round or in the one after it.
    fn within(&self) -> Duration {
        self.lengths[0].max(self.lengths[1])
    }
}

/// Time between two signs of life with this number of streams.
fn within(streams: usize) -> Duration {
    let streams = u32::try_from(streams).unwrap_or(u32::MAX);
    let soon = SOON_OF_ONE.saturating_mul(streams).min(ALIVE_SOON);
    let of_all = ALIVE_OF_ONE.saturating_mul(streams).max(soon);
    let steps = of_all.as_millis().div_ceil(ALIVE_STEP.as_millis());
    let stepped = ALIVE_STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX));
    stepped.clamp(ALIVE_MIN, ALIVE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_rarer_with_more_streams_and_never_rarer_than_once_a_second() {
        let told = [1, 1_000, 1_010, 2_000, 5_000, 5_010, 10_000, usize::MAX].map(within);
        assert_eq!(
            told.map(|time| time.as_millis()),
            [300, 300, 400, 500, 500, 600, 1_000, 1_000]
        );
    }

    #[test]
    fn in_a_round_everybody_has_one_turn_and_few_have_it_at_once() {
        let mut streams: BTreeMap<u32, u32> = (0..5_000).map(|one| (one, one)).collect();
        let mut rounds = Rounds::new();
        let mut turns = vec![0; 5_100];
        let (mut took, mut most) = (Duration::ZERO, 0);
        for round in 1..=3 {
            loop {
                let part: Vec<u32> = rounds.part(&streams).copied().collect();
                most = most.max(part.len());
                part.iter().for_each(|stream| turns[*stream as usize] += 1);
                took += rounds.pause;
                if rounds.parts_left == 0 {
                    break;
                }
                // Some come and go meanwhile.
                if round == 2 && streams.len() < 5_040 {
                    let new = streams.len() as u32;
                    streams.insert(new, new);
                }
            }
            assert!(turns[..5_000].iter().all(|turns| *turns == round));
        }
        assert!(turns[5_000..5_031].iter().all(|turns| *turns == 2));
        assert!(most <= 5_000_usize.div_ceil(PARTS_MAX) + 31, "{most}");
        // The first as for few, the others as for 5,000.
        assert_eq!(took.as_millis(), 300 + 500 + 500);
    }
}
