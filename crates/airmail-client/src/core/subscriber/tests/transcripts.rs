//! Transcripts: inputs of a subscriber, and the effects of each, as text that can be read without
//! the code. They are in `tests/transcripts/subscriber`; with `AIRMAIL_REWRITE=1` they are written
//! anew.
//!
//! After each input the subscriber is polled. The effects are what users get, requests that are
//! sent, and the time at which the subscriber wants to be polled again, where that has changed.
//! Time begins at 0 ms, and delays have no jitter.

use super::*;
use airmail_testkit::transcript::{Transcript, parts};
use airmail_testkit::transcripts;
use std::time::Duration;

transcripts! {
    "subscriber",
    play,
    a_live_subscription_is_as_written: "live",
    a_hole_is_as_written: "hole",
    a_reconnection_is_as_written: "reconnection",
    a_subscription_that_falls_behind_is_as_written: "falling_behind",
    gaps_are_as_written: "gaps",
    a_new_life_of_the_log_is_as_written: "new_life",
    a_start_beyond_the_end_is_as_written: "beyond_the_end",
    refusals_are_as_written: "refusals",
    credit_is_as_written: "credit",
    history_is_as_written: "history",
}

#[test]
fn the_architecture_shows_a_transcript_as_it_is() {
    Transcript::of(env!("CARGO_PKG_NAME"), "subscriber", "falling_behind").hold_architecture();
}

/// Gives a subscriber that takes inputs, and is polled after each.
fn play() -> impl FnMut(&str) -> Option<Vec<String>> {
    let mut player = Player::new();
    move |line| {
        player.apply(line)?;
        Some(player.poll())
    }
}

/// Plays the inputs of a transcript to a subscriber.
struct Player {
    subscriber: Subscriber,
    now_ms: u64,
    out: SubscriberOutput,
    /// Topics, each with the key of its subscription, in the order in which they were subscribed
    /// to.
    topics: Vec<(String, SubscriptionKey)>,
    /// Subscriptions as they were requested, the last request last.
    requested: Vec<Subscribe>,
    unconsumed: u32,
    /// Effects of the input, other than those in `out`.
    effects: Vec<String>,
    wake: Option<Mono>,
}

impl Player {
    fn new() -> Player {
        let config = SubscriberConfig {
            backoff: BackoffConfig {
                base: Duration::ZERO,
                cap: Duration::ZERO,
            },
            ..SubscriberConfig::default()
        };
        Player {
            subscriber: Subscriber::new(config),
            now_ms: 0,
            out: SubscriberOutput::default(),
            topics: Vec::new(),
            requested: Vec::new(),
            unconsumed: 0,
            effects: Vec::new(),
            wake: None,
        }
    }

    fn now(&self) -> Mono {
        Mono(self.now_ms * 1_000_000)
    }

    /// Applies an input; `None` if the line is none.
    fn apply(&mut self, line: &str) -> Option<()> {
        if let Some([rest]) = parts("node: {}", line) {
            let reply = self.read_reply(rest)?;
            self.reply(reply);
        } else if let Some([name, range]) = parts("subscribe to {} from {}", line) {
            self.subscribe(name, range)?;
        } else if let Some([name]) = parts("unsubscribe from {}", line) {
            self.subscriber.remove(self.key(name)?);
        } else if let Some([name]) = parts("where is {}?", line) {
            let position = self.subscriber.position(self.key(name)?);
            let next = position.map(|position| position.logs[0].next);
            self.effects.push(next.map_or_else(
                || format!("{name} has no position"),
                |next| format!("{name} goes on from {next}"),
            ));
        } else if let Some([ms]) = parts("{} ms pass", line) {
            self.now_ms += ms.parse::<u64>().ok()?;
        } else if let Some([bytes]) = parts("set credit_bytes {}", line) {
            self.subscriber.config.credit_bytes = bytes.parse().ok()?;
        } else {
            match line {
                "connected" => self.subscriber.connected(),
                "disconnected" => self.subscriber.disconnected(),
                "consume what was delivered" => {
                    let bytes = std::mem::take(&mut self.unconsumed);
                    self.subscriber.consumed(bytes);
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn subscribe(&mut self, name: &str, range: &str) -> Option<()> {
        let (start, until) = match range.strip_suffix(" until now") {
            Some(start) => (start, Some(Until::Now)),
            None => (range, None),
        };
        let key = self.subscriber.add(SubscriptionSpec {
            namespace: NAMESPACE,
            wanted: Wanted::Topic(topic(name)),
            start: read_start(start)?,
            until,
            tell_expired: false,
            filter: None,
            headers_only: false,
        });
        self.topics.push((name.to_owned(), key));
        Some(())
    }

    /// Reads what a node says. Of a subscription it speaks in its last generation.
    fn read_reply(&self, line: &str) -> Option<Reply> {
        if let Some([id, state]) = parts("subscription {} is {}", line) {
            let add = self.last_request(id)?;
            return Some(Reply::Status {
                subscription: add.subscription,
                generation: add.generation,
                state: read_state(state)?,
            });
        }
        let (to, rest) = line.split_once(", ")?;
        let channel = match parts("subscription {}", to) {
            Some([id]) => channel_of(self.last_request(id)?),
            None => (to == "live").then_some(Channel::Live)?,
        };
        let [previous, last, what] = parts("after {} up to {}: {}", rest)?;
        let (previous, last) = (previous.parse().ok()?, last.parse().ok()?);
        if what == "mark" {
            return Some(Reply::Mark {
                log: LOG,
                previous: Sequence(previous),
                next: Sequence(last).plus(1),
            });
        }
        if let Some([why]) = parts("gap ({})", what) {
            return Some(gap(channel, previous, last, read_reason(why)?));
        }
        let records = what.split(", ").map(|record| record.split_once(' '));
        let (numbers, topics): (Vec<&str>, Vec<&str>) = records.collect::<Option<_>>()?;
        let base = numbers[0].parse().ok()?;
        Some(delivery(channel, previous, last, base, &topics))
    }

    fn reply(&mut self, reply: Reply) {
        self.subscriber.reply(self.now(), reply, &mut self.out);
    }

    fn key(&self, name: &str) -> Option<SubscriptionKey> {
        let topics = self.topics.iter().rev();
        let mut keys = topics.filter(|(topic, _)| topic == name);
        keys.next().map(|(_, key)| *key)
    }

    /// The last request for the subscription of this number.
    fn last_request(&self, id: &str) -> Option<&Subscribe> {
        let id: u32 = id.parse().ok()?;
        let mut requested = self.requested.iter().rev();
        requested.find(|add| add.subscription.0 == id)
    }

    /// Polls the subscriber; gives all effects since the last poll.
    fn poll(&mut self) -> Vec<String> {
        let wake = self.subscriber.poll(self.now(), &mut self.out);
        let mut effects = std::mem::take(&mut self.effects);
        let out = std::mem::take(&mut self.out);
        for (key, event) in &out.events {
            let owner = self.topics.iter().find(|(_, own)| own == key);
            let (name, _) = owner.expect("a subscription that was made");
            effects.push(show_event(name, event));
            if let Event::Messages(received) = event {
                self.unconsumed += received.cost;
            }
        }
        for request in out.requests {
            let text = match &request {
                Request::Add(add) => self.show_add(add),
                Request::Remove { subscription } => {
                    format!("remove subscription {}", subscription.0)
                }
                Request::Change(change) => format!("change: {}", change.filter),
                Request::Credit { .. } => "more credit".to_owned(),
                Request::Clock { .. } => "what does the node's clock show?".to_owned(),
                Request::Publish { .. } => panic!("a subscriber publishes"),
                Request::Roles(_) => panic!("a subscriber says which roles it has"),
            };
            effects.push(format!("to the node: {text}"));
            if let Request::Add(add) = request {
                self.requested.push(add);
            }
        }
        if wake != self.wake {
            effects.extend(wake.map(|wake| format!("come back at {} ms", wake.0 / 1_000_000)));
            self.wake = wake;
        }
        effects
    }

    fn show_add(&self, add: &Subscribe) -> String {
        let mut topics = self.topics.iter().rev();
        let found = topics.find(|(name, _)| Some(topic(name)) == add.wanted.topic());
        let (name, _) = found.expect("a topic that was subscribed to");
        let (id, generation) = (add.subscription.0, add.generation.0);
        let start = show_start(&add.start);
        let until = if add.until.is_some() {
            " until now"
        } else {
            ""
        };
        format!(
            "add subscription {id} of topic {name}, generation {generation}, from {start}{until}"
        )
    }
}

fn read_start(words: &str) -> Option<Start> {
    Some(match words {
        "latest" => Start::Latest,
        "earliest" => Start::Earliest,
        _ => {
            let [number] = parts("number {}", words)?;
            Start::Sequence(Sequence(number.parse().ok()?))
        }
    })
}

/// Reads the state of a subscription. A life of the log is 7 unless it is named.
fn read_state(words: &str) -> Option<State> {
    if let Some([next]) = parts("live from {} on", words) {
        next.parse().ok().map(live_at)
    } else if let Some([next, life]) = parts("detached from {} on, in life {}", words) {
        Some(State::Detached {
            log: LOG,
            incarnation: Incarnation(life.parse().ok()?),
            next: Sequence(next.parse().ok()?),
            resumed: false,
            lost_before: None,
            beside: None,
        })
    } else if let Some([next]) = parts("detached from {} on", words) {
        next.parse().ok().map(detached_at)
    } else if let Some([next]) = parts("complete before {}", words) {
        let next = next.parse().ok()?;
        Some(State::complete(place_at(next)))
    } else {
        let [how] = parts("ended: {}", words)?;
        let (code, delay) = match parts("{}, retry after {} ms", how) {
            Some([code, ms]) => (code, Some(Duration::from_millis(ms.parse().ok()?))),
            None => (how, None),
        };
        let error = Error::new(ErrorCode::from_name(code)?);
        Some(State::Failed(match delay {
            Some(delay) => error.retry_after(delay),
            None => error,
        }))
    }
}

fn read_reason(word: &str) -> Option<GapReason> {
    Some(match word {
        "unused" => GapReason::Unused,
        "retention" => GapReason::Retention,
        "loss" => GapReason::Loss,
        _ => return None,
    })
}

fn show_start(start: &Start) -> String {
    match start {
        Start::Latest => "latest".to_owned(),
        Start::Earliest => "earliest".to_owned(),
        Start::Sequence(number) => format!("number {number}"),
        Start::Time(_) => "a time".to_owned(),
        Start::Position(position) => format!("position {}", position.logs[0].next),
    }
}

fn show_event(name: &str, event: &Event) -> String {
    let what = match event {
        Event::Messages(received) => {
            let numbers = received.iter().map(|(number, _)| number.to_string());
            numbers.collect::<Vec<_>>().join(", ")
        }
        Event::Gap(gap) => {
            let why = format!("{:?}", gap.why).to_lowercase();
            let first = gap.extent.first;
            match gap.extent.last {
                Sequence::MAX => {
                    let life = gap.incarnation.0;
                    format!("{first} to the end of life {life} are missing ({why})")
                }
                last => format!("{first} to {last} are missing ({why})"),
            }
        }
        Event::Expired(expired) => format!("{:?} have expired", expired.numbers),
        Event::Status(State::Live { places }) => format!("live from {} on", places[0].next),
        Event::Status(State::Detached { next, .. }) => format!("detached from {next} on"),
        Event::Status(State::Complete { places }) => {
            format!("complete before {}", places[0].next)
        }
        Event::Status(State::Failed(error)) => format!("ended: {}", error.code().name()),
        Event::Status(state) => format!("{state:?}"),
    };
    format!("to the user of {name}: {what}")
}
