//! Results of experiments: many runs that together answer one question.
//!
//! An experiment gives [`Findings`]: rows for programs, and sections with tables and figures for
//! people. [`Findings::write`] makes them into files. A value that was measured several times is a
//! [`Spread`](airmail_bench::Spread), so that every table and every error bar says the same thing:
//! median, least, greatest. Where a paper gives means with their confidence, it is an [`Interval`].

mod findings;
mod interval;
mod machine;
mod page;
mod plotted;

pub use findings::{Findings, Row, Section, Table, WriteError};
pub use interval::{Confidence, Interval};
pub use machine::machine;
pub use plotted::Plotted;
