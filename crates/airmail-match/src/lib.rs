//! The index of filters: which of a hundred thousand filters a record matches, in microseconds.
//!
//! A [`Matcher`] holds filters, and a [`Cursor`] is one record on its way through it. The filters' normal
//! form, an `or` of conjunctions, says where each is looked for:
//!
//! - A conjunction with an `=` or an `in` stands in the *list* of its rarest (name, value). A record looks
//!   into the lists of its own attributes.
//! - A conjunction of intervals is a row of the *grid*. Each of the 16 names most used is an axis of 256
//!   buckets, cut at quantiles of the filters' ends; for each bucket there is a bitmap of the rows whose
//!   interval touches it, or that do not name the axis. A record picks one bitmap for each axis; rows that are
//!   in all of them are *candidates*. Rows lie in blocks of 512, in the order in which they begin on the two axes on
//!   which they are narrowest: so most blocks are empty for a record, and a summary, a bit a block, passes over
//!   those.
//! - A conjunction whose names have no axis stands in the list of those that have such a name at all; one
//!   that says nothing positive (`a != 1`), in the *residual* list, which every record has to go through. Its
//!   length is bounded.
//!
//! Each candidate's bounds are compared as numbers that keep the order of values. They are rounded outwards, so a record
//! strictly inside of all bounds matches, and one outside of any does not; at the edges, and where a conjunction says
//! more than intervals, the filter itself is asked.
//!
//! Work is bounded: [`Matcher::advance`] does so many units and can go on later, within a record;
//! [`Matcher::tend`], by which the grid is made and made anew as filters come and go, likewise. Memory is
//! bounded by [`MatcherLimits`]. No clock, no I/O, no randomness: the same calls give the same answers in the
//! same order.
//!
//! Invariants: a record's matches are exactly the filters whose [`Filter::matches`] holds, each once, for all
//! filters that are there from when the record is begun until it is done; whatever is inserted, removed, changed
//! or tended meanwhile.
//!
//! [`Filter::matches`]: airmail_model::filter::Filter::matches

#![forbid(unsafe_code)]

mod condition;
mod cursor;
mod grid;
mod index;
mod key;
mod line_store;
mod lists;
mod matcher;
mod matching;
mod name_table;
mod rebuild;
mod row;
mod slots;
mod tending;

pub use cursor::Cursor;
pub use matcher::{Matcher, MatcherLimits, MatcherStats, TooComplex};
pub use slots::FilterId;
