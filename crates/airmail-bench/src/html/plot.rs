//! Lines over a common axis, as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 280.0;
/// Room for what stands beside and below the axes.
const MARGIN: f64 = 60.0;
/// Marks on each axis.
const MARKS: u32 = 4;

/// A plot; its axes begin at 0 and end at the largest values.
pub(super) struct Plot {
    pub(super) title: &'static str,
    pub(super) lines: Vec<Line>,
}

/// One line of it.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) colour: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

impl Plot {
    pub(super) fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let width = points().map(|(x, _)| *x).fold(1e-9, f64::max);
        let height = points().map(|(_, y)| *y).fold(1e-9, f64::max);
        let at = |x: f64, y: f64| {
            let across = MARGIN + x / width * (WIDTH - 2.0 * MARGIN);
            let down = HEIGHT - MARGIN / 2.0 - y / height * (HEIGHT - MARGIN);
            (across, down)
        };
        let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
        let title = self.title;
        // Writing to a string does not fail.
        let _ = write!(svg, "<text x=\"{MARGIN}\" y=\"14\">{title}</text>");
        for mark in 0..=MARKS {
            let part = f64::from(mark) / f64::from(MARKS);
            let (x, bottom) = at(width * part, 0.0);
            let (left, y) = at(0.0, height * part);
            let right = WIDTH - MARGIN;
            let (below, beside) = (bottom + 16.0, left - 6.0);
            let (x_text, y_text) = (short(width * part), short(height * part));
            let _ = write!(
                svg,
                "<path d=\"M{left:.1} {y:.1}H{right:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{beside:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{y_text}</text>\
                 <text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{x_text}</text>"
            );
        }
        for (line, place) in self.lines.iter().zip(0u32..) {
            let path = line.points.iter().map(|(x, y)| at(*x, *y));
            let path: Vec<String> = path.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let (colour, name, path) = (line.colour, line.name, path.join(" "));
            let (x, y) = (WIDTH - MARGIN + 4.0, 30.0 + 16.0 * f64::from(place));
            let _ = write!(
                svg,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
                 <text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>"
            );
        }
        svg.push_str("</svg>");
        svg
    }
}

/// A number in few letters.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.1}M", value / 1e6),
        value if value >= 1e4 => format!("{:.0}k", value / 1e3),
        value if value >= 10.0 || value == 0.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}
