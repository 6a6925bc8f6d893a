//! A stream between a client and the node: in order both ways, late, and cut now and then.

use crate::entropy::Entropy;
use airmail_broker::SessionId;
use airmail_client::core::NodeChoice;
use airmail_model::Mono;
use airmail_model::frame::{Reply, Request};
use std::collections::VecDeque;
use std::time::Duration;

/// One client's stream, as long as it holds, and the wait for the next.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// The node's name for it, while it is open.
    pub(super) session: Option<SessionId>,
    /// When the client may try to connect again.
    pub(super) retry: Mono,
    /// The shard that the last one led to.
    pub(super) shard: Option<usize>,
    /// Choice of a gateway, where these are processes of their own.
    pub(super) choice: Option<NodeChoice>,
    /// Nothing reaches the client before.
    late: Mono,
    up: VecDeque<(Mono, Request)>,
    down: VecDeque<(Mono, Reply)>,
}

impl Link {
    /// The stream is open, and leads to a shard. Gives the shard that the one before led to.
    pub(super) fn open(&mut self, session: SessionId, shard: usize) -> Option<usize> {
        self.session = Some(session);
        self.late = Mono(0);
        self.up.clear();
        self.down.clear();
        self.shard.replace(shard)
    }

    /// The stream has ended. Gives the node's name for it, and the requests that still arrive.
    pub(super) fn cut(
        &mut self,
        now: Mono,
        chance: &mut Entropy,
    ) -> Option<(SessionId, Vec<Request>)> {
        let session = self.session.take()?;
        self.retry = now.plus(Duration::from_micros(chance.below(20_000)));
        let arriving = chance.index(self.up.len() + 1);
        let requests = self.up.drain(..).take(arriving).map(|(_, request)| request);
        let requests = requests.collect();
        self.down.clear();
        Some((session, requests))
    }

    /// The client sends.
    pub(super) fn send(&mut self, now: Mono, most: Duration, chance: &mut Entropy, what: Request) {
        if self.session.is_some() {
            let due = due(now, most, chance, self.up.back().map(|(due, _)| *due));
            self.up.push_back((due, what));
        }
    }

    /// The node sends.
    pub(super) fn reply(&mut self, now: Mono, most: Duration, chance: &mut Entropy, what: Reply) {
        if self.session.is_some() {
            let due = due(now, most, chance, self.down.back().map(|(due, _)| *due));
            self.down.push_back((due.max(self.late), what));
        }
    }

    /// Delays the node's replies until then, and with them all that follow.
    pub(super) fn dawdle(&mut self, until: Mono) {
        self.late = until.max(self.late);
    }

    /// Takes a request that has reached the node.
    pub(super) fn arrived(&mut self, now: Mono) -> Option<Request> {
        self.up
            .pop_front_if(|(due, _)| *due <= now)
            .map(|(_, what)| what)
    }

    /// Takes a reply that has reached the client.
    pub(super) fn answered(&mut self, now: Mono) -> Option<Reply> {
        self.down
            .pop_front_if(|(due, _)| *due <= now)
            .map(|(_, what)| what)
    }
}

fn due(now: Mono, most: Duration, chance: &mut Entropy, after: Option<Mono>) -> Mono {
    let most = u64::try_from(most.as_nanos()).unwrap_or(0);
    let due = now.plus(Duration::from_nanos(chance.between(0, most)));
    due.max(after.unwrap_or(due))
}
