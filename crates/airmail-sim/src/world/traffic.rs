//! Traffic of the streams, and the clients' actions.

use super::{End, World};
use crate::census::Kind;
use crate::invariants::Checked;
use airmail_broker::{ClientInput, Entry};
use airmail_client::core::{ProducerOutput, SubscriberOutput};
use airmail_model::frame::{Channel, Reply, Request, State};
use airmail_model::{AppendTime, Lane};
use std::sync::Arc;

impl World {
    /// Clients do something, or nothing.
    pub(super) fn work(&mut self) -> Checked {
        if self.spaces.is_empty() {
            return Ok(());
        }
        let at = self.chance.index(self.spaces.len());
        let who = self.chance.index(self.publishers.len());
        let space = &self.spaces[at];
        match self.chance.below(24) {
            0..=8 => self.publishers[who].publish(
                self.weather.now,
                space,
                &self.shape,
                &mut self.evidence,
                &mut self.chance,
            ),
            9..=18 if !self.clients.is_empty() => self.use_client(at),
            _ => Ok(()),
        }
    }

    /// One of the clients subscribes, unsubscribes, consumes, or stops consuming.
    fn use_client(&mut self, at: usize) -> Checked {
        let id = self.spaces[at].id;
        let catalogs = self.catalogs();
        let entries = catalogs.iter().map(|catalog| catalog.get(id));
        let knows = |entry: Option<&Arc<Entry>>| entry.is_some_and(|entry| entry.has_high);
        let known = entries.filter(|entry| knows(*entry)).count();
        self.spaces[at].has_high = known > 0 && known == catalogs.len();
        let client = self.chance.index(self.clients.len());
        let client = &mut self.clients[client];
        match self.chance.below(10) {
            0..=2 => client.subscribe(
                at,
                &self.spaces[at],
                AppendTime(self.weather.now.wall.0),
                &mut self.evidence,
                &mut self.chance,
            ),
            3 if self.chance.chance(300_000) => {
                self.evidence.count(Kind::Unsubscribed);
                client.unsubscribe(&self.evidence.ledger, &mut self.chance)?;
            }
            _ => client.consume(&mut self.chance),
        }
        if client.stuck && self.chance.chance(10_000) {
            client.stuck = false;
        } else if self.chance.chance(self.weather.swarm.sluggish) {
            self.evidence.count(Kind::Stuck);
            client.stuck = true;
        }
        Ok(())
    }

    /// Moves what has arrived at either end, and lets both go on.
    pub(super) fn exchange(&mut self) -> Checked {
        let streams = self.streams.iter();
        let awake = streams.filter(|(_, stream)| self.is_awake(stream.shard));
        let sessions: Vec<_> = awake.map(|(id, stream)| (*id, stream.end)).collect();
        self.evidence.ledger.expiry.pass(self.weather.now);
        let now = self.weather.now.mono;
        for (session, end) in sessions {
            while let Some(request) = self.link(end).arrived(now) {
                self.request(session, request);
            }
        }
        self.turn()?;
        for at in 0..self.publishers.len() {
            self.publisher_turn(at)?;
        }
        for at in 0..self.clients.len() {
            self.client_turn(at)?;
        }
        Ok(())
    }

    pub(super) fn link(&mut self, end: End) -> &mut super::link::Link {
        match end {
            End::Publisher(at) => &mut self.publishers[at].link,
            End::Client(at) => &mut self.clients[at].link,
        }
    }

    /// A request has arrived at the node.
    pub(super) fn request(&mut self, session: airmail_broker::SessionId, request: Request) {
        let Some(stream) = self.streams.get_mut(&session) else {
            return;
        };
        if let Request::Credit { bytes } = &request {
            stream.budget.grant(*bytes);
        }
        let shard = stream.shard;
        self.input(shard, ClientInput::Request { session, request });
    }

    fn publisher_turn(&mut self, at: usize) -> Checked {
        let publisher = &mut self.publishers[at];
        let mut out = ProducerOutput::default();
        while let Some(reply) = publisher.link.answered(self.weather.now.mono) {
            publisher.core.reply(self.weather.now, reply, &mut out);
        }
        publisher.core.poll(self.weather.now, &mut out);
        if let Some(writers) = self
            .cluster
            .writers
            .as_mut()
            .filter(|_| !out.settled.is_empty())
        {
            let logs = self
                .spaces
                .iter()
                .flat_map(|space| Lane::ALL.map(|lane| space.map.logs(lane)))
                .flatten();
            writers.read(logs, &mut self.evidence.ledger)?;
        }
        let machine = &self.weather.machine;
        publisher.settle(&mut out, &mut self.evidence, machine, &self.spaces)?;
        for request in out.requests {
            let note = brief_request(&request);
            self.evidence.note(format_args!(
                "{} publisher {at} -> {note}",
                self.weather.now.mono.0
            ));
            let most = self.weather.swarm.net_delay;
            publisher
                .link
                .send(self.weather.now.mono, most, &mut self.chance, request);
        }
        Ok(())
    }

    fn client_turn(&mut self, at: usize) -> Checked {
        let client = &mut self.clients[at];
        let mut out = SubscriberOutput::default();
        let mut sent = 0;
        while let Some(reply) = client.link.answered(self.weather.now.mono) {
            if let Reply::Delivery(delivery) = &reply {
                sent += delivery.body.len() as u64;
            }
            client.answered(&reply);
            client.core.reply(self.weather.now.mono, reply, &mut out);
        }
        let session = client.link.session;
        let stream = session.and_then(|session| self.streams.get(&session));
        if let (Some(session), Some(stream), 1..) = (session, stream, sent) {
            let (shard, bytes) = (stream.shard, sent);
            self.input(shard, ClientInput::Sent { session, bytes });
        }
        let client = &mut self.clients[at];
        client.core.poll(self.weather.now.mono, &mut out);
        let machine = &self.weather.machine;
        client.told(&mut out, &mut self.evidence, machine, &self.spaces)?;
        for request in out.requests {
            let note = brief_request(&request);
            self.evidence.note(format_args!(
                "{} client {at} -> {note}",
                self.weather.now.mono.0
            ));
            client.asks(&request)?;
            let most = self.weather.swarm.net_delay;
            let chance = match request {
                Request::Clock { .. } => &mut self.clock_chance,
                _ => &mut self.chance,
            };
            let now = self.weather.now.mono;
            client.link.send(now, most, chance, request);
        }
        Ok(())
    }
}

/// A reply in a line.
pub(super) fn brief(reply: &Reply) -> String {
    let channel = |channel: &Channel| match channel {
        Channel::Live => "live".to_owned(),
        Channel::Detached(subscription, generation) => {
            format!(
                "subscription {} generation {}",
                subscription.0, generation.0
            )
        }
    };
    match reply {
        Reply::Acked { request, result } => format!("acked {} {result:?}", request.0),
        Reply::Delivery(delivery) => format!(
            "delivery {} {} ({}, {}] base {}, {} bytes",
            channel(&delivery.channel),
            delivery.log,
            delivery.previous,
            delivery.last,
            delivery.base,
            delivery.body.len()
        ),
        Reply::Gap {
            channel: whose,
            log,
            previous,
            last,
            why,
        } => format!("gap {} {log} ({previous}, {last}] {why:?}", channel(whose)),
        Reply::Expired(expired) => format!("{expired:?}"),
        Reply::Clock { asked, node } => format!("clock {}, asked at {}", node.0, asked.0),
        Reply::Mark {
            log,
            previous,
            next,
        } => format!("mark {log} after {previous}, next {next}"),
        Reply::Status {
            subscription,
            generation,
            state,
        } => {
            let state = match state {
                State::Live { places } => {
                    let places = places.iter();
                    let places = places.map(|place| format!("{} from {}", place.log, place.next));
                    format!("live on {}", places.collect::<Vec<_>>().join(", "))
                }
                State::Detached { log, next, .. } => format!("detached on {log} from {next}"),
                other => format!("{other:?}"),
            };
            format!(
                "subscription {} generation {} is {state}",
                subscription.0, generation.0
            )
        }
    }
}

fn brief_request(request: &Request) -> String {
    match request {
        Request::Publish { request, batch, .. } => format!(
            "publish {} to {}: {} messages, {:?}",
            request.0,
            batch.log(),
            batch.records(),
            batch.producer()
        ),
        other => format!("{other:?}"),
    }
}
