//! Transcripts: inputs of a subscriber, and the effects of each, as text that can be read without
//! the code. They are in `tests/transcripts/subscriber`; with `AIRMAIL_REWRITE=1` they are written
//! anew.
//!
//! A line that begins with `>` is an input, after which the subscriber is polled. The indented
//! lines below it are the effects: what users get, requests that are sent, and the time at which
//! the subscriber wants to be polled again, where that has changed. All other lines are remarks.
//! `behind 9: a x` is a delivery that accounts for everything behind number 9 and has number 10, of
//! topic `a`, and number 11, of topic `x`. Time begins at 0 ms, and delays have no jitter.

use super::*;
use crate::core::transcript;
use std::time::Duration;

#[test]
fn a_live_subscription_is_as_written() {
    hold("live");
}

#[test]
fn a_hole_is_as_written() {
    hold("hole");
}

#[test]
fn a_reconnection_is_as_written() {
    hold("reconnection");
}

#[test]
fn a_subscription_that_falls_behind_is_as_written() {
    hold("falling_behind");
}

#[test]
fn gaps_are_as_written() {
    hold("gaps");
}

#[test]
fn a_new_life_of_the_log_is_as_written() {
    hold("new_life");
}

#[test]
fn a_start_beyond_the_end_is_as_written() {
    hold("beyond_the_end");
}

#[test]
fn refusals_are_as_written() {
    hold("refusals");
}

#[test]
fn credit_is_as_written() {
    hold("credit");
}

/// Holds a transcript to what a subscriber does.
#[track_caller]
fn hold(name: &str) {
    let mut player = Player::new();
    transcript::hold("subscriber", name, |input| {
        let words: Vec<&str> = input
            .split([' ', ',', ':'])
            .filter(|w| !w.is_empty())
            .collect();
        player.apply(&words)?;
        Some(player.poll())
    });
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

    /// Applies an input; `None` if the words are none.
    fn apply(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["set", "credit_bytes", bytes] => {
                self.subscriber.config.credit_bytes = bytes.parse().ok()?;
            }
            ["connect"] => self.subscriber.connected(),
            ["cut"] => self.subscriber.disconnected(),
            [ms, "ms", "pass"] => self.now_ms += ms.parse::<u64>().ok()?,
            ["subscribe", name, "from", start @ ..] => self.subscribe(name, read_start(start)?),
            ["unsubscribe", name] => self.subscriber.remove(self.key(name)?),
            ["consume"] => self
                .subscriber
                .consumed(std::mem::take(&mut self.unconsumed)),
            ["where", "is", name] => {
                let position = self.subscriber.position(self.key(name)?);
                let next = position.map(|position| position.logs[0].next);
                self.effects.push(next.map_or_else(
                    || "it has no position".to_owned(),
                    |next| format!("it goes on from {next}"),
                ));
            }
            [name, "is" | "fails", state @ ..] => {
                let add = self.last_request(name)?;
                let (subscription, generation) = (add.subscription, add.generation);
                self.reply(Reply::Status {
                    subscription,
                    generation,
                    state: read_state(state)?,
                });
            }
            ["live", "behind", previous, topics @ ..] => {
                self.deliver(Channel::Live, previous, topics)?;
            }
            ["to", name, "behind", previous, topics @ ..] => {
                let channel = channel_of(self.last_request(name)?);
                self.deliver(channel, previous, topics)?;
            }
            ["live", "gap", "behind", previous, "up", "to", last, why] => {
                let (previous, last) = (previous.parse().ok()?, last.parse().ok()?);
                self.reply(gap(Channel::Live, previous, last, read_reason(why)?));
            }
            [
                "gap",
                "for",
                name,
                "behind",
                previous,
                "up",
                "to",
                last,
                why,
            ] => {
                let channel = channel_of(self.last_request(name)?);
                let (previous, last) = (previous.parse().ok()?, last.parse().ok()?);
                self.reply(gap(channel, previous, last, read_reason(why)?));
            }
            ["mark", "behind", previous, "up", "to", last] => {
                self.reply(Reply::Mark {
                    log: LOG,
                    previous: Sequence(previous.parse().ok()?),
                    next: Sequence(last.parse::<u64>().ok()? + 1),
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn subscribe(&mut self, name: &str, start: Start) {
        let key = self.subscriber.add(SubscriptionSpec {
            namespace: NAMESPACE,
            topic: topic(name),
            start,
            until: None,
        });
        self.topics.push((name.to_owned(), key));
    }

    fn deliver(&mut self, channel: Channel, previous: &str, topics: &[&str]) -> Option<()> {
        let previous: u64 = previous.parse().ok()?;
        let last = previous + topics.len() as u64;
        self.reply(delivery(channel, previous, last, previous + 1, topics));
        Some(())
    }

    fn reply(&mut self, reply: Reply) {
        self.subscriber.reply(self.now(), reply, &mut self.out);
    }

    fn key(&self, name: &str) -> Option<SubscriptionKey> {
        let topics = self.topics.iter().rev();
        let mut keys = topics.filter(|(topic, _)| topic == name);
        keys.next().map(|(_, key)| *key)
    }

    fn last_request(&self, name: &str) -> Option<&Subscribe> {
        let mut requested = self.requested.iter().rev();
        requested.find(|add| add.topic == topic(name))
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
            effects.push(match request {
                Request::Add(add) => {
                    let asked = self.topics.iter().rev();
                    let mut asked = asked.filter(|(name, _)| topic(name) == add.topic);
                    let (name, _) = asked.next().expect("a topic that was subscribed to");
                    let text = format!(
                        "add {name} as #{}, generation {}, from {}",
                        add.subscription.0,
                        add.generation.0,
                        show_start(&add.start)
                    );
                    self.requested.push(add);
                    text
                }
                Request::Remove { subscription } => format!("remove #{}", subscription.0),
                Request::Credit { .. } => "give back credit".to_owned(),
                Request::Publish { .. } => panic!("a subscriber publishes"),
            });
        }
        if wake != self.wake {
            effects.extend(wake.map(|wake| format!("come back at {} ms", wake.0 / 1_000_000)));
            self.wake = wake;
        }
        effects
    }
}

fn read_start(words: &[&str]) -> Option<Start> {
    Some(match words {
        ["latest"] => Start::Latest,
        ["earliest"] => Start::Earliest,
        ["number", number] => Start::Sequence(Sequence(number.parse().ok()?)),
        _ => return None,
    })
}

/// Reads what stands behind `is` or `fails`. A life of the log is 7 unless it is named.
fn read_state(words: &[&str]) -> Option<State> {
    Some(match words {
        ["live", "from", next] => live_at(next.parse().ok()?),
        ["detached", "from", next] => detached_at(next.parse().ok()?),
        ["detached", "from", next, "in", "life", life] => State::Detached {
            log: LOG,
            incarnation: Incarnation(life.parse().ok()?),
            next: Sequence(next.parse().ok()?),
            resumed: false,
        },
        ["with", code] => State::Failed(Error::new(ErrorCode::from_name(code)?)),
        ["with", code, "retry", "after", ms, "ms"] => {
            let delay = Duration::from_millis(ms.parse().ok()?);
            State::Failed(Error::new(ErrorCode::from_name(code)?).retry_after(delay))
        }
        _ => return None,
    })
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
    match event {
        Event::Messages(received) => {
            let numbers = received.iter().map(|(number, _)| number.to_string());
            format!("{name} gets {}", numbers.collect::<Vec<_>>().join(" "))
        }
        Event::Gap(gap) => {
            let why = format!("{:?}", gap.why).to_lowercase();
            let first = gap.extent.first;
            match gap.extent.last {
                Sequence::MAX => {
                    let life = gap.incarnation.0;
                    format!("{name} misses {first} to the end of life {life}: {why}")
                }
                last => format!("{name} misses {first} to {last}: {why}"),
            }
        }
        Event::Status(State::Live { next, .. }) => format!("{name} is live from {next}"),
        Event::Status(State::Detached { next, .. }) => format!("{name} is detached from {next}"),
        Event::Status(State::Failed(error)) => format!("{name} fails: {}", error.code().name()),
        Event::Status(state) => format!("{name} is {state:?}"),
    }
}
