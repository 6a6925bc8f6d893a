//! Filters and messages that follow from a seed.
//!
//! Values are integers below a million. An interval of the share P holds a value with a chance of about P,
//! so of N filters on K attributes a message matches about N × P^K.

use super::Wanted;
use airmail_model::batch::BatchTarget;
use airmail_model::{
    Batch, BatchEncoder, Checked, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName,
};
use airmail_model::{bug, random};
use serde::Serialize;

/// Values are below it.
const VALUES: u64 = 1_000_000;
/// Messages of the one batch: no more fit.
const MESSAGES: u32 = 4096;
/// Names of attributes in the workload of many names.
const NAMES: u32 = 16;
/// Filters for each value that filters of the workload of equalities ask for.
const FILTERS_OF_VALUE: u64 = 10;

/// A kind of filters and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An interval on each attribute, all of one width, evenly spread.
    Intervals,
    /// One attribute has to equal a value, which ten filters ask for; intervals on the others.
    Equalities,
    /// Intervals and values crowd at the low end, and widths differ by a factor of 100.
    Skewed,
    /// Messages have 16 attributes, of which each filter tests as many as are asked for, its own.
    ManyNames,
}

impl Kind {
    /// All kinds; the first is the one that is asked for, the others are beside it.
    pub const ALL: &'static [Kind] = &[
        Kind::Intervals,
        Kind::Equalities,
        Kind::Skewed,
        Kind::ManyNames,
    ];

    /// The name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Intervals => "intervals",
            Kind::Equalities => "equalities",
            Kind::Skewed => "skewed",
            Kind::ManyNames => "many names",
        }
    }
}

/// Numbers that look random, one after another.
struct Draws {
    seed: u64,
    next: u64,
}

impl Draws {
    fn new(seed: u64, stream: u64) -> Draws {
        Draws {
            seed: random::nth(seed, stream),
            next: 0,
        }
    }

    /// From 0 up to 1, without it.
    fn share(&mut self) -> f64 {
        self.next += 1;
        (random::nth(self.seed, self.next) >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a number is below it"
    )]
    fn below(&mut self, end: u64) -> u64 {
        (self.share() * end as f64) as u64
    }
}

/// The filters' texts.
pub(super) fn filters(wanted: &Wanted, kind: Kind) -> Vec<String> {
    let mut draws = Draws::new(wanted.seed, 1);
    (0..wanted.filters)
        .map(|_| filter(wanted, kind, &mut draws))
        .collect()
}

fn filter(wanted: &Wanted, kind: Kind, draws: &mut Draws) -> String {
    let attributes = wanted.attributes.clamp(1, NAMES);
    let names: Vec<u32> = match kind {
        Kind::ManyNames => some_of(NAMES, attributes, draws),
        _ => (0..attributes).collect(),
    };
    let tests = names.iter().enumerate().map(|(at, name)| match kind {
        Kind::Equalities if at == 0 => format!("a{name} = {}", draws.below(values(wanted))),
        Kind::Skewed => {
            let width = wanted.interval * 10_f64.powf(draws.share() * 2.0 - 1.0);
            let crowded = draws.share().powi(3);
            between(*name, width.min(1.0), crowded)
        }
        _ => between(*name, wanted.interval, draws.share()),
    });
    tests.collect::<Vec<_>>().join(" and ")
}

/// An interval of this width that begins at this share of the room that there is for its beginning.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of a number that is not large"
)]
fn between(name: u32, width: f64, at: f64) -> String {
    let width = (width * VALUES as f64) as u64;
    let low = (at * VALUES.saturating_sub(width) as f64) as u64;
    format!("a{name} between {low} and {}", low + width)
}

/// Distinct values that filters of the workload of equalities ask for.
fn values(wanted: &Wanted) -> u64 {
    (u64::from(wanted.filters) / FILTERS_OF_VALUE).max(1)
}

/// Some of so many names, in order.
fn some_of(names: u32, count: u32, draws: &mut Draws) -> Vec<u32> {
    let mut left: Vec<u32> = (0..names).collect();
    while left.len() > count as usize {
        let at = draws.below(left.len() as u64);
        left.remove(usize::try_from(at).unwrap_or_default());
    }
    left
}

/// Messages without payload, as many as fit in a batch.
pub(super) fn messages(wanted: &Wanted, kind: Kind) -> Vec<Message> {
    let mut draws = Draws::new(wanted.seed, 2);
    let attributes = match kind {
        Kind::ManyNames => NAMES,
        _ => wanted.attributes.clamp(1, NAMES),
    };
    let Ok(topic) = TopicName::new("bench/filters", &Limits::DEFAULT) else {
        bug!("the topic of the workload is none");
        return Vec::new();
    };
    let mut message = || {
        let mut message = Message::new(topic.clone(), "");
        for name in 0..attributes {
            let value = match kind {
                Kind::Equalities if name == 0 => draws.below(values(wanted)),
                Kind::Skewed => scaled(draws.share().powi(3)),
                _ => draws.below(VALUES),
            };
            message = message.attribute(format!("a{name}"), value.cast_signed().into());
        }
        message
    };
    (0..MESSAGES).map(|_| message()).collect()
}

/// A batch of messages.
pub(super) fn batch(wanted: &Wanted, kind: Kind) -> Checked<Batch> {
    let limits = Limits {
        batch_bytes: u32::MAX,
        ..Limits::DEFAULT
    };
    let mut encoder = BatchEncoder::new(NamespaceId(1));
    for message in messages(wanted, kind) {
        if encoder.push(&message, 0, &limits).is_err() {
            break;
        }
    }
    encoder.finish(&BatchTarget {
        log: LogId {
            namespace: NamespaceId(1),
            ..LogId::default()
        },
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a number that is not large"
)]
fn scaled(share: f64) -> u64 {
    (share * VALUES as f64) as u64
}
