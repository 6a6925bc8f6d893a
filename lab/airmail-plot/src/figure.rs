//! Contents of a figure, before it is drawn. They can be written down, and drawn again later.

use serde::Serialize;

/// Panels one below another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Above all panels.
    pub title: String,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
}

/// Series over two axes, with a legend beside them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Panel {
    /// Above the panel; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Series in the order of the legend.
    pub series: Vec<Series>,
}

/// An axis with its quantity and unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    /// The axis's scale.
    pub scale: Scale,
    /// Where it ends; by default where the data does, a linear one beginning at 0.
    pub range: Option<(f64, f64)>,
    /// Names at 1, 2, 3 and so on in place of numbers, where the values are things and no quantity.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            scale: Scale::Linear,
            ..Axis::default()
        }
    }

    /// An axis with things on it, from 1.
    #[must_use]
    pub fn of<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Axis {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Axis {
            range: Some((0.5, names.len().max(1) as f64 + 0.5)),
            names,
            ..Axis::default()
        }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: impl Into<String>) -> Axis {
        Axis {
            scale: Scale::Log,
            ..Axis::linear(label)
        }
    }

    /// The same axis with these ends.
    #[must_use]
    pub fn from_to(self, from: f64, to: f64) -> Axis {
        Axis {
            range: Some((from, to)),
            ..self
        }
    }
}

/// Scales of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal factors; values must be above 0, others are left out.
    Log,
}

/// Points that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points by x.
    pub points: Vec<Point>,
    /// The mark that it is drawn with.
    pub mark: Mark,
    /// Index of its colour; each mark has eight before they begin again.
    pub colour: usize,
}

/// Marks that a series is drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Mark {
    /// A line.
    #[default]
    Line,
    /// A dashed line, for a reference.
    Dashes,
    /// A dot for each point.
    Dots,
    /// A line with a dot on each point.
    LineAndDots,
}

/// A value, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The ends of an error bar.
    pub bar: Option<(f64, f64)>,
}

impl Point {
    /// A value of which it is not said how sure it is.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, bar: None }
    }

    /// The same value with an error bar.
    #[must_use]
    pub fn with_bar(self, low: f64, high: f64) -> Point {
        Point {
            bar: Some((low, high)),
            ..self
        }
    }
}

impl Panel {
    /// Where the horizontal axis ends.
    pub(crate) fn x_range(&self) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        range(&self.x, points.map(|point| point.x))
    }

    /// Where the vertical axis ends.
    pub(crate) fn y_range(&self) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let all = points.flat_map(|point| {
            let (low, high) = point.bar.unwrap_or((point.y, point.y));
            [low, point.y, high]
        });
        range(&self.y, all)
    }
}

fn range(axis: &Axis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    if let Some(range) = axis.range {
        return range;
    }
    let fits = |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
    let ends = values.filter(fits).fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    });
    let (low, high) = ends.unwrap_or((1.0, 1.0));
    match axis.scale {
        Scale::Linear => {
            let low = low.min(0.0);
            let room = (high - low).max(f64::MIN_POSITIVE) * 0.05;
            let below = if low < 0.0 { low - room } else { 0.0 };
            // Where all is 0 there has to be an axis nevertheless.
            (below, if high > low { high + room } else { low + 1.0 })
        }
        Scale::Log if high > low => (low / 1.1, high * 1.1),
        Scale::Log => (low / 2.0, high * 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(axis: Axis, values: &[f64]) -> Panel {
        let points = values.iter().map(|value| Point::new(*value, *value));
        Panel {
            x: axis.clone(),
            y: axis,
            series: vec![Series {
                points: points.collect(),
                ..Series::default()
            }],
            ..Panel::default()
        }
    }

    #[test]
    fn a_linear_axis_begins_at_0_and_has_room_above() {
        let (low, high) = panel(Axis::linear("s"), &[5.0, 10.0]).x_range();
        assert_eq!((low, high), (0.0, 10.5));
    }

    #[test]
    fn a_log_axis_leaves_out_what_it_cannot_show() {
        let (low, high) = panel(Axis::log("s"), &[0.0, -1.0, 1.0, 100.0]).y_range();
        assert!(low > 0.5 && low < 1.0 && high > 100.0 && high < 120.0);
    }

    #[test]
    fn an_axis_is_never_empty() {
        for axis in [Axis::linear(""), Axis::log("")] {
            for values in [&[][..], &[0.0], &[7.0], &[f64::NAN]] {
                let (low, high) = panel(axis.clone(), values).x_range();
                assert!(low < high, "{axis:?} {values:?}: {low} {high}");
            }
        }
    }

    #[test]
    fn things_stand_apart_from_the_ends_of_their_axis() {
        let panel = panel(Axis::of(["one", "two"]), &[1.0, 2.0]);
        assert_eq!(panel.x_range(), (0.5, 2.5));
    }

    #[test]
    fn error_bars_are_within_the_axis() {
        let mut panel = panel(Axis::linear("s"), &[1.0]);
        panel.series[0].points[0].bar = Some((0.5, 20.0));
        assert!(panel.y_range().1 > 20.0);
    }
}
