//! A port: one end of a connection, whatever the connection is made of.
//!
//! Nothing here blocks or waits. Between two [`Event::Up`] messages arrive in order and whole, or a
//! [`Event::Cut`] comes in place of the rest; both ends of a link stay right whatever a cut has taken.

/// An end of a connection that carries messages. Polled by the storage that it belongs to.
pub trait Port: Send {
    /// Messages that it sends.
    type Out;
    /// Messages that it receives.
    type In;

    /// Sends a message.
    ///
    /// # Errors
    /// The message, given back: there is no room, or no connection. Whoever owns the port is woken when there
    /// is room again.
    fn send(&mut self, message: Self::Out) -> Result<(), Self::Out>;

    /// The next thing that has happened, in order.
    fn receive(&mut self) -> Option<Event<Self::In>>;

    /// Wakes the other end if anything was sent, or room was made, since the last flush. Called once a poll.
    fn flush(&mut self);
}

impl<P: Port + ?Sized> Port for Box<P> {
    type Out = P::Out;
    type In = P::In;

    fn send(&mut self, message: P::Out) -> Result<(), P::Out> {
        (**self).send(message)
    }

    fn receive(&mut self) -> Option<Event<P::In>> {
        (**self).receive()
    }

    fn flush(&mut self) {
        (**self).flush();
    }
}

/// Events of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// There is a connection: what is sent from now on is sent over it. Also the first event of a port that
    /// has always had one.
    Up,
    /// The connection is gone, and with it whatever was under way, in both directions.
    Cut,
    /// A message of the other end.
    Message(M),
}
