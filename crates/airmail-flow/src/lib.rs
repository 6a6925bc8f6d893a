//! Flow control by Little's law: the number of messages that may be in flight, and the queue of
//! those that wait.
//!
//! A [`Meter`] gathers every N acknowledged messages into a [`Sample`]: the mean time W that a
//! message took, the rate λ, and by Little's law the number in flight, L = λW. A [`Limiter`]
//! answers each sample with a [`Decision`]: the bound from now on, and the [`Rule`] that gave it. A
//! [`Semaphore`] admits no more than that bound. A [`Gate`] is the three together: a node has one
//! for publishes, and a publisher of an experiment one of its own. For deliveries a node has
//! [`Shares`]: the same bound, but without a queue behind a receiver that takes nothing. Where messages of
//! both lanes wait, [`LaneTurns`] says which lane goes next.
//!
//! ```text
//!            enter                        leave, with the time it took
//! messages ────────▶ Semaphore ──▶ system ──────────▶ Meter ──▶ Limiter
//!                        ▲                                         │
//!                        └──────────────── the bound ──────────────┘
//! ```
//!
//! The bound is on messages in flight and not on a rate, because it stays right when the speed
//! changes. A system that becomes slower acknowledges later, and so admits less, at once and with
//! no decision.
//!
//! Nothing here has a clock, a lock or a runtime: time is an argument, and a waiter is a value that
//! is handed back when its turn comes. `docs/flow-control.md` describes the limiters, the choices
//! that the papers leave open, and the laboratory's measurements.

#![forbid(unsafe_code)]

mod decision;
mod defaults;
mod gate;
mod limiter;
mod line;
mod meter;
mod record;
mod rule;
mod semaphore;
mod settings;
mod shares;

pub use airmail_model::{LaneTurns, NormalShare};
pub use decision::Decision;
pub use defaults::{DELIVERY_LIMITER, PROMISE, PUBLISH_LIMITER};
pub use gate::{Admission, Admitted, Gate, Refusal, RefusalReason};
pub use limiter::Limiter;
pub use meter::{Meter, Sample, Window};
pub use record::{RECENT_MAX, Reading};
pub use rule::{
    AdaptiveRule, GradientRule, LadderRule, LastThreePointsRule, LatencyTargetRule, Rule,
};
pub use semaphore::{Entry, Key, Semaphore, Ticket};
pub use settings::{
    AdaptiveSettings, Change, GateSettings, GradientSettings, LadderSettings,
    LastThreePointsSettings, LatencyTargetSettings, LimiterKind, LimiterSettings, SettingsError,
    Tie, UnknownLimiter,
};
pub use shares::{Share, Shares, SharesSettings};
