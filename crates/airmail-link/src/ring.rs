//! A port between two threads of one process: a pair of bounded rings, and a waker for each side.
//!
//! A full ring gives the message back, so that it stays at its source. The other side wakes that source as
//! soon as it has made room: `wants_room` says that somebody waits for it. A side is woken once a flush, however
//! much was sent.
//!
//! There is a connection from the beginning on. It is cut when the other side is dropped.

use crate::port::{Event, Port};
use airmail_log::Waker;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// One end of a pair of rings. See the module's documentation.
pub struct RingPort<Out, In> {
    to: rtrb::Producer<Out>,
    from: rtrb::Consumer<In>,
    own: Arc<Side>,
    other: Arc<Side>,
    peer: Waker,
    sent: bool,
    taken: bool,
    told: Told,
}

/// State of a side that the other one looks at.
#[derive(Debug, Default)]
struct Side {
    /// It waits for room in the ring to the other.
    wants_room: AtomicBool,
    /// It was dropped.
    is_gone: AtomicBool,
}

/// Events that were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Up,
    Cut,
}

/// A pair of ports, with room for `slots` messages each way. The wakers are those of the owner of the first
/// port, and of the owner of the second.
#[must_use]
pub fn ring<A, B>(slots: usize, first: Waker, second: Waker) -> (RingPort<A, B>, RingPort<B, A>) {
    let (to_second, from_first) = rtrb::RingBuffer::new(slots);
    let (to_first, from_second) = rtrb::RingBuffer::new(slots);
    let sides = (Arc::new(Side::default()), Arc::new(Side::default()));
    let one = RingPort {
        to: to_second,
        from: from_second,
        own: Arc::clone(&sides.0),
        other: Arc::clone(&sides.1),
        peer: second,
        sent: false,
        taken: false,
        told: Told::Nothing,
    };
    let other = RingPort {
        to: to_first,
        from: from_first,
        own: sides.1,
        other: sides.0,
        peer: first,
        sent: false,
        taken: false,
        told: Told::Nothing,
    };
    (one, other)
}

impl<Out: Send, In: Send> Port for RingPort<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, message: Out) -> Result<(), Out> {
        let message = match self.to.push(message) {
            Ok(()) => {
                self.sent = true;
                return Ok(());
            }
            Err(rtrb::PushError::Full(message)) => message,
        };
        self.own.wants_room.store(true, Ordering::Relaxed);
        // Either the other side sees the flag, or this one the room that was made before it looked.
        fence(Ordering::SeqCst);
        self.to
            .push(message)
            .map_err(|rtrb::PushError::Full(message)| message)?;
        self.sent = true;
        Ok(())
    }

    fn receive(&mut self) -> Option<Event<In>> {
        match self.told {
            Told::Nothing => {
                self.told = Told::Up;
                Some(Event::Up)
            }
            Told::Cut => None,
            Told::Up => {
                // Looked at before the ring: whoever has gone has put everything there before.
                let is_gone = self.other.is_gone.load(Ordering::Acquire);
                if let Ok(message) = self.from.pop() {
                    self.taken = true;
                    return Some(Event::Message(message));
                }
                is_gone.then(|| {
                    self.told = Told::Cut;
                    Event::Cut
                })
            }
        }
    }

    fn flush(&mut self) {
        let mut wakes = std::mem::take(&mut self.sent);
        if std::mem::take(&mut self.taken) {
            fence(Ordering::SeqCst);
            let wants_room = &self.other.wants_room;
            wakes |= wants_room.load(Ordering::Relaxed) && wants_room.swap(false, Ordering::AcqRel);
        }
        if wakes {
            (self.peer)();
        }
    }
}

impl<Out, In> Drop for RingPort<Out, In> {
    /// Wakes the other side, which is told of the cut behind all that was sent.
    fn drop(&mut self) {
        self.own.is_gone.store(true, Ordering::Release);
        (self.peer)();
    }
}

impl<Out, In> fmt::Debug for RingPort<Out, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingPort")
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn counted() -> (Waker, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let waker: Waker = Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        (waker, count)
    }

    #[test]
    fn messages_arrive_in_order_and_wake_once_a_flush() {
        let (first, _) = counted();
        let (second, woken) = counted();
        let (mut one, mut other) = ring::<u32, u32>(8, first, second);
        for n in 0..5 {
            one.send(n).unwrap();
        }
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        one.flush();
        one.flush();
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        assert_eq!(other.receive(), Some(Event::Up));
        for n in 0..5 {
            assert_eq!(other.receive(), Some(Event::Message(n)));
        }
        assert_eq!(other.receive(), None);
    }

    #[test]
    fn a_full_ring_gives_back_and_wakes_its_source_when_there_is_room() {
        let (first, woken) = counted();
        let (second, _) = counted();
        let (mut one, mut other) = ring::<u32, u32>(2, first, second);
        one.send(1).unwrap();
        one.send(2).unwrap();
        assert_eq!(one.send(3), Err(3));
        one.flush();
        other.receive();
        other.flush();
        assert_eq!(woken.load(Ordering::Relaxed), 0, "no room was made");
        assert_eq!(other.receive(), Some(Event::Message(1)));
        other.flush();
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        one.send(3).unwrap();
        assert_eq!(other.receive(), Some(Event::Message(2)));
        other.flush();
        assert_eq!(woken.load(Ordering::Relaxed), 1, "nobody waits for room");
    }

    #[test]
    fn what_was_sent_before_the_other_side_went_still_arrives() {
        let (first, _) = counted();
        let (second, woken) = counted();
        let (mut one, mut other) = ring::<u32, u32>(2, first, second);
        assert_eq!(other.receive(), Some(Event::Up));
        one.send(1).unwrap();
        drop(one);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        assert_eq!(other.receive(), Some(Event::Message(1)));
        assert_eq!(other.receive(), Some(Event::Cut));
        assert_eq!(other.receive(), None);
    }
}
