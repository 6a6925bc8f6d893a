//! Catching up: those who are behind share readers of the storage.
//!
//! There are few readers, so they move like elevators: each picks up the members who want what lies a little
//! ahead of it in its log, and after its quantum makes place for those who have waited longest. A reader of
//! one topic goes by the storage's topic index; one of several topics reads everything and deals it out.
//!
//! - [`member`]: for whom it is read. [`queue`]: who waits for a reader. [`reader`]: the readers.
//! - [`schedule`]: who gets a reader, and what readers may read. [`dispatch`]: what readers give.
//! - [`sweep`]: readers that serve many of one log on a single way.
//! - [`silence`]: readers that give nothing keep nobody waiting who does not need their logs.

pub(super) mod dispatch;
pub(super) mod member;
pub(super) mod queue;
pub(super) mod reader;
pub(super) mod schedule;
mod silence;
pub(crate) mod sweep;
