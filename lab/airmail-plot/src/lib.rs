//! Figures: lines, dots and error bars over two axes, as SVG and PNG.
//!
//! A [`Figure`] is data: panels one below another, each with its axes and [`Series`]. It is drawn
//! by `plotters`, with a font that is part of the program, so that a picture is the same on a
//! machine that has no fonts at all. The legend stands beside the panel and never on the data;
//! colours are those of Okabe and Ito, which those who confuse red and green can tell apart.

#![forbid(unsafe_code)]

mod draw;
mod figure;

pub use draw::PlotError;
pub use figure::{Axis, Figure, Mark, Panel, Point, Scale, Series};
