//! A session's window of publishes: which batches wait for their ack, and how many bytes they are.
//!
//! Inside, each batch has a number of its own: a client may use a number twice, and plain messages
//! may become several batches under one number, whose one ack says what became of all of them.
//!
//! What is of lane high has an eighth of the window more ([`LaneBytes`]), as the SDK counts it, too: what a client sends
//! beside a full window of lane normal is read, unless one batch alone is more than the window.

use airmail_model::frame::{Ack, Refused, RequestId};
use airmail_model::{Batch, Lane, LaneBytes, Mono};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::Notify;

#[derive(Debug)]
struct Waiting {
    asked: Asked,
    size: Size,
    since: Mono,
}

/// Part of the window that a batch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    lane: Lane,
    bytes: usize,
}

impl Size {
    /// Gives the size of a batch.
    pub(crate) fn of(batch: &Batch) -> Size {
        Size {
            lane: batch.log().lane,
            bytes: batch.bytes().len(),
        }
    }
}

/// A batch's part in its client's request.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// All of it.
    Whole(RequestId),
    /// One of several, counted in the group of this number.
    Part(u64),
}

#[derive(Debug)]
struct Group {
    client: RequestId,
    left: usize,
    /// The last batch's ack, or the first refusal.
    result: Option<Result<Ack, Refused>>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the first in `waiting`.
    first: u64,
    /// By number; those in the middle that have been answered leave their place empty.
    waiting: VecDeque<Option<Waiting>>,
    groups: BTreeMap<u64, Group>,
    bytes: LaneBytes,
    /// Somebody waits for `freed`.
    awaited: bool,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    fn has_room(&self, limit: usize) -> bool {
        self.bytes.counted(limit) <= limit
    }

    fn take(&mut self, number: RequestId) -> Option<Waiting> {
        let place = number.0.checked_sub(self.first)?;
        let place = self.waiting.get_mut(usize::try_from(place).ok()?)?;
        let waiting = place.take()?;
        let Size { lane, bytes } = waiting.size;
        self.bytes.remove(lane, bytes);
        while self.waiting.front().is_some_and(Option::is_none) {
            self.waiting.pop_front();
            self.first += 1;
        }
        Some(waiting)
    }

    /// The result of a request, if this was what it waited for.
    fn settle(&mut self, asked: Asked, result: Result<Ack, Refused>) -> Option<Answer> {
        let number = match asked {
            Asked::Whole(client) => return Some((client, result)),
            Asked::Part(number) => number,
        };
        let group = self.groups.get_mut(&number)?;
        group.left -= 1;
        if !matches!(group.result, Some(Err(_))) {
            group.result = Some(result);
        }
        if group.left > 0 {
            return None;
        }
        let group = self.groups.remove(&number)?;
        Some((group.client, group.result?))
    }
}

/// A request and what became of it.
type Answer = (RequestId, Result<Ack, Refused>);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Window {
    limit: usize,
    state: Mutex<State>,
    freed: Notify,
}

/// Result of settling a batch.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) lane: Lane,
    /// When the batch was taken in.
    pub(crate) since: Mono,
    /// The client's request, if this was the last batch of it.
    pub(crate) answer: Option<Answer>,
}

impl Window {
    /// A window of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Window {
        Window {
            limit,
            state: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Takes in a request of one or more batches, by their sizes. Each batch has the number after
    /// the one before it; the first one's is given.
    pub(crate) fn begin(
        &self,
        client: RequestId,
        sizes: impl ExactSizeIterator<Item = Size>,
        now: Mono,
    ) -> RequestId {
        let mut state = self.state.lock();
        let first = state.next();
        let asked = match sizes.len() {
            1 => Asked::Whole(client),
            left => {
                let group = Group {
                    client,
                    left,
                    result: None,
                };
                state.groups.insert(first, group);
                Asked::Part(first)
            }
        };
        for size in sizes {
            state.bytes.add(size.lane, size.bytes);
            let waiting = Waiting {
                asked,
                size,
                since: now,
            };
            state.waiting.push_back(Some(waiting));
        }
        RequestId(first)
    }

    /// Takes a batch's ack. `None` for a number that does not wait.
    pub(crate) fn settle(
        &self,
        number: RequestId,
        result: Result<Ack, Refused>,
    ) -> Option<Settled> {
        let mut state = self.state.lock();
        let waiting = state.take(number)?;
        let answer = state.settle(waiting.asked, result);
        let awaited = std::mem::take(&mut state.awaited);
        drop(state);
        if awaited {
            self.freed.notify_waiters();
        }
        Some(Settled {
            lane: waiting.size.lane,
            since: waiting.since,
            answer,
        })
    }

    /// Whether there is room for another request. One alone may be larger than the window.
    pub(crate) fn has_room(&self) -> bool {
        self.state.lock().has_room(self.limit)
    }

    /// Whether nothing waits for its ack.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }

    /// Waits until there is room for another request. One alone may be larger than the window.
    pub(crate) async fn room(&self) {
        self.wait_for(|state| state.has_room(self.limit)).await;
    }

    /// Waits until nothing waits for its ack.
    pub(crate) async fn empty(&self) {
        self.wait_for(|state| state.waiting.is_empty()).await;
    }

    async fn wait_for(&self, enough: impl Fn(&State) -> bool) {
        // As good as always: nothing to wait for.
        if enough(&self.state.lock()) {
            return;
        }
        loop {
            let freed = self.freed.notified();
            {
                let mut state = self.state.lock();
                if enough(&state) {
                    return;
                }
                state.awaited = true;
            }
            freed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{AppendTime, Durability, Error, ErrorCode, Extent, Sequence};

    fn normal(bytes: usize) -> Size {
        let lane = Lane::Normal;
        Size { lane, bytes }
    }

    fn high(bytes: usize) -> Size {
        let lane = Lane::High;
        Size { lane, bytes }
    }

    fn ack(first: u64) -> Result<Ack, Refused> {
        Ok(Ack {
            extent: Extent::starting_at(Sequence(first), 1),
            appended: AppendTime(0),
            held: Durability::FSYNC,
            duplicate: false,
            exact: true,
        })
    }

    fn refused() -> Result<Ack, Refused> {
        Err(Refused {
            error: Error::new(ErrorCode::StorageFull),
            map: None,
        })
    }

    #[test]
    fn a_number_used_twice_is_answered_twice() {
        let window = Window::new(100);
        let one = window.begin(RequestId(7), [normal(10)].into_iter(), Mono(1));
        let two = window.begin(RequestId(7), [normal(10)].into_iter(), Mono(2));
        let second = window.settle(two, ack(2)).unwrap();
        assert_eq!(second.answer, Some((RequestId(7), ack(2))));
        assert_eq!(second.since, Mono(2));
        let first = window.settle(one, ack(1)).unwrap();
        assert_eq!(first.answer, Some((RequestId(7), ack(1))));
    }

    #[test]
    fn a_request_of_many_batches_has_one_answer_and_a_refusal_of_one_is_it() {
        let window = Window::new(100);
        let first = window
            .begin(RequestId(3), [1, 1, 1].map(normal).into_iter(), Mono(0))
            .0;
        let numbers = [first, first + 1, first + 2].map(RequestId);
        assert!(window.settle(numbers[0], ack(1)).unwrap().answer.is_none());
        assert!(
            window
                .settle(numbers[1], refused())
                .unwrap()
                .answer
                .is_none()
        );
        let last = window.settle(numbers[2], ack(3)).unwrap();
        assert_eq!(last.answer, Some((RequestId(3), refused())));
    }

    #[test]
    fn an_answer_that_nothing_waits_for_is_dropped() {
        assert!(Window::new(1).settle(RequestId(9), ack(1)).is_none());
    }

    #[tokio::test]
    async fn a_full_window_waits_for_an_ack() {
        let window = Window::new(10);
        window.room().await;
        let number = window.begin(RequestId(1), [normal(50)].into_iter(), Mono(0));
        let room = window.room();
        tokio::pin!(room);
        assert!(futures::poll!(room.as_mut()).is_pending());
        window.settle(number, ack(1));
        room.await;
        window.empty().await;
    }

    #[test]
    fn lane_high_takes_no_room_from_lane_normal_within_its_eighth() {
        let window = Window::new(80);
        let begin = |size: Size| window.begin(RequestId(1), [size].into_iter(), Mono(0));
        let urgent = begin(high(10));
        begin(normal(80));
        assert!(window.has_room(), "a full window of lane normal");
        let more = begin(high(1));
        assert!(!window.has_room(), "one byte beyond the eighth");
        window.settle(more, ack(1));
        window.settle(urgent, ack(2));
        assert!(window.has_room());
        begin(normal(1));
        assert!(!window.has_room());
    }
}
