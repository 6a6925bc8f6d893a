//! Flow control by Little's law: how many messages may be in flight, and who waits.
//!
//! A [`Meter`] gathers every N acknowledged messages into a [`Sample`]: the mean time W that a
//! message took, the rate λ, and by Little's law the number in flight, L = λW. A [`Limiter`]
//! answers each sample with a [`Decision`]: the bound from now on, and the [`Rule`] that gave it. A
//! [`Semaphore`] holds whoever asks to that bound. A [`Gate`] is the three together, which is what
//! a pilot or a benchmark's publisher has. A copilot has [`Shares`]: the same bound, but nobody waits
//! in line behind a receiver that takes nothing.
//!
//! ```text
//!            enter                        leave, with the time it took
//! messages ────────▶ Semaphore ──▶ system ──────────▶ Meter ──▶ Limiter
//!                        ▲                                         │
//!                        └──────────────── the bound ──────────────┘
//! ```
//!
//! Why a bound on what is in flight, and not on a rate: the bound stays right when the speed
//! changes. A system that becomes slower acknowledges later, and so admits less, at once and with
//! no decision.
//!
//! Nothing here has a clock, a lock or a runtime: time is an argument, and whoever waits is a value
//! that is handed back when its turn comes. `docs/flow-control.md` tells what the limiters do, what
//! the papers leave open and how it was decided, and what the laboratory measured.

#![forbid(unsafe_code)]

mod decision;
mod gate;
mod limiter;
mod line;
mod meter;
mod record;
mod semaphore;
mod settings;
mod shares;

pub use decision::{AdaptiveRule, Decision, GradientRule, LastThreePointsRule, Rule};
pub use gate::{Admission, Admitted, Gate, Refusal, RefusalReason};
pub use limiter::Limiter;
pub use meter::{Meter, Sample};
pub use record::{RECENT_MAX, Reading};
pub use semaphore::{Entry, Key, Semaphore, Ticket};
pub use settings::{
    AdaptiveSettings, Change, GateSettings, GradientSettings, LastThreePointsSettings, LimiterKind,
    LimiterSettings, SettingsError, Tie, UnknownLimiter,
};
pub use shares::{Share, Shares, SharesSettings};
