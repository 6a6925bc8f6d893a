//! Drawing a figure with `plotters`.

use crate::figure::{Axis, Figure, Mark, Panel, Point, Scale, Series};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Pixels of the whole width, of a panel's height, and of what stands around.
const WIDTH: u32 = 1_200;
const PANEL_HEIGHT: u32 = 420;
const TITLE_HEIGHT: u32 = 50;
const LEGEND_WIDTH: u32 = 250;
const LEGEND_LINE: i32 = 26;
const FONT: &str = "sans-serif";
const FONT_SIZE: u32 = 17;
const TITLE_SIZE: u32 = 24;
const PANEL_TITLE_SIZE: u32 = 20;
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);
/// Okabe and Ito's.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(140, 120, 0),
];

/// A figure could not be drawn or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The backend refused.
    #[error("cannot draw {figure}: {reason}")]
    Draw {
        /// The figure's title.
        figure: String,
        /// The backend's error.
        reason: String,
    },
    /// The file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl Figure {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// The backend refused.
    pub fn svg(&self) -> Result<String, PlotError> {
        register();
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, self.size()).into_drawing_area();
        self.draw(&area).map_err(|error| self.error(&error))?;
        drop(area);
        Ok(svg)
    }

    /// Writes the figure as `stem.svg` and `stem.png`.
    ///
    /// # Errors
    /// A file cannot be written, or the backend refused.
    pub fn write(&self, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
        let [svg, png] = ["svg", "png"].map(|ending| {
            let mut path = stem.as_os_str().to_owned();
            path.push(".");
            path.push(ending);
            PathBuf::from(path)
        });
        std::fs::write(&svg, self.svg()?).map_err(|source| PlotError::Write {
            path: svg.clone(),
            source,
        })?;
        let area = BitMapBackend::new(&png, self.size()).into_drawing_area();
        self.draw(&area).map_err(|error| self.error(&error))?;
        drop(area);
        Ok([svg, png])
    }

    fn size(&self) -> (u32, u32) {
        let panels = u32::try_from(self.panels.len().max(1)).unwrap_or(1);
        (WIDTH, TITLE_HEIGHT + panels * PANEL_HEIGHT)
    }

    fn error(&self, reason: &impl std::fmt::Display) -> PlotError {
        PlotError::Draw {
            figure: self.title.clone(),
            reason: reason.to_string(),
        }
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Drawn<B> {
        area.fill(&WHITE)?;
        let (head, panels) = area.split_vertically(TITLE_HEIGHT);
        head.draw(&Text::new(self.title.as_str(), (20, 14), font(TITLE_SIZE)))?;
        for (panel, area) in self
            .panels
            .iter()
            .zip(panels.split_evenly((self.panels.len().max(1), 1)))
        {
            panel.draw(&area)?;
        }
        area.present()
    }
}

type Area<B> = DrawingArea<B, Shift>;
type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

impl Panel {
    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Drawn<B> {
        let (width, _) = area.dim_in_pixel();
        let (chart, legend) = area.split_horizontally(width.saturating_sub(LEGEND_WIDTH));
        let ((left, right), (low, high)) = (self.x_range(), self.y_range());
        let (x, y) = (left..right, low..high);
        let (x_base, y_base) = (base(left, right), base(low, high));
        match (self.x.scale, self.y.scale) {
            (Scale::Linear, Scale::Linear) => self.draw_chart(&chart, x, y),
            (Scale::Linear, Scale::Log) => self.draw_chart(&chart, x, y.log_scale().base(y_base)),
            (Scale::Log, Scale::Linear) => self.draw_chart(&chart, x.log_scale().base(x_base), y),
            (Scale::Log, Scale::Log) => {
                let x = x.log_scale().base(x_base);
                self.draw_chart(&chart, x, y.log_scale().base(y_base))
            }
        }?;
        self.draw_legend(&legend)
    }

    fn draw_chart<B, X, Y>(
        &self,
        area: &Area<B>,
        x: impl AsRangedCoord<CoordDescType = X, Value = f64>,
        y: impl AsRangedCoord<CoordDescType = Y, Value = f64>,
    ) -> Drawn<B>
    where
        B: DrawingBackend,
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, font(PANEL_TITLE_SIZE))
            .margin(8)
            .margin_left(16)
            .x_label_area_size(54)
            .y_label_area_size(92)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x.label.as_str())
            .y_desc(self.y.label.as_str())
            .x_labels(self.x.names.len().max(10))
            .y_labels(8)
            .x_label_formatter(&|value| self.x.written(*value))
            .y_label_formatter(&|value| self.y.written(*value))
            .label_style(font(FONT_SIZE))
            .axis_desc_style(font(FONT_SIZE))
            .axis_style(INK)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for series in &self.series {
            let points = series.within(&self.x, &self.y);
            let style = series.style();
            let bars = points.iter().filter_map(|point| Some((point, point.bar?)));
            chart.draw_series(bars.map(|(point, (low, high))| {
                let ends = vec![(point.x, low), (point.x, high)];
                PathElement::new(ends, series.colour().mix(0.45).stroke_width(2))
            }))?;
            let line = points.iter().map(|point| (point.x, point.y));
            match series.mark {
                Mark::Line | Mark::LineAndDots => {
                    chart.draw_series(LineSeries::new(line, style))?;
                }
                Mark::Dashes => {
                    chart.draw_series(DashedLineSeries::new(line, 8, 6, style))?;
                }
                Mark::Dots => {}
            }
            if matches!(series.mark, Mark::Dots | Mark::LineAndDots) {
                let dots = points.iter().map(|point| (point.x, point.y));
                chart.draw_series(dots.map(|at| Circle::new(at, 5, series.colour().filled())))?;
            }
        }
        Ok(())
    }

    fn draw_legend<B: DrawingBackend>(&self, area: &Area<B>) -> Drawn<B> {
        let mut y = 46;
        for series in &self.series {
            let line = vec![(6, y), (34, y)];
            match series.mark {
                Mark::Dots => {}
                Mark::Dashes => {
                    for start in [6, 18, 30] {
                        let dash = vec![(start, y), (start + 6, y)];
                        area.draw(&PathElement::new(dash, series.style()))?;
                    }
                }
                Mark::Line | Mark::LineAndDots => {
                    area.draw(&PathElement::new(line, series.style()))?;
                }
            }
            if matches!(series.mark, Mark::Dots | Mark::LineAndDots) {
                area.draw(&Circle::new((20, y), 5, series.colour().filled()))?;
            }
            let left = font(FONT_SIZE).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(series.name.as_str(), (42, y), left))?;
            y += LEGEND_LINE;
        }
        Ok(())
    }
}

impl Axis {
    /// Label at a value; empty between two named values.
    fn written(&self, value: f64) -> String {
        if self.names.is_empty() {
            return short(value);
        }
        let name = |at: usize| self.names.get(at.checked_sub(1)?).cloned();
        if value.fract() == 0.0 {
            name(value as usize).unwrap_or_default()
        } else {
            String::new()
        }
    }
}

impl Series {
    fn colour(&self) -> RGBColor {
        COLOURS[self.colour % COLOURS.len()]
    }

    fn style(&self) -> ShapeStyle {
        self.colour().stroke_width(2)
    }

    /// Points that can be shown on these axes.
    fn within(&self, x: &Axis, y: &Axis) -> Vec<Point> {
        let fits = |axis: &Axis, value: f64| {
            value.is_finite() && (axis.scale == Scale::Linear || value > 0.0)
        };
        let points = self.points.iter().copied();
        points
            .filter(|point| fits(x, point.x) && fits(y, point.y))
            .collect()
    }
}

/// A logarithmic axis is divided by powers of ten, or of two where there would be too few.
fn base(low: f64, high: f64) -> f64 {
    if high / low < 500.0 { 2.0 } else { 10.0 }
}

fn font(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}

/// A number with few digits: 1500 as 1.5k.
fn short(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        100.0.. => 0,
        1.0.. => 2,
        0.01.. => 3,
        _ => 6,
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{unit}")
}

/// Makes the font known, once for the process.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It is part of the program: a font that does not parse would be found by the first test.
        let _ = register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        let points = (1..50).map(|x| {
            let y = f64::from(x).sqrt();
            Point::new(f64::from(x), y).with_bar(y * 0.9, y * 1.1)
        });
        let series = |name: &str, mark, colour| Series {
            name: name.to_owned(),
            points: points.clone().collect(),
            mark,
            colour,
        };
        let panel = |x: Axis, y: Axis| Panel {
            title: "roots".to_owned(),
            x,
            y,
            series: vec![
                series("measured", Mark::LineAndDots, 1),
                series("theory", Mark::Dashes, 0),
            ],
        };
        Figure {
            title: "Every kind of axis".to_owned(),
            panels: vec![
                panel(Axis::linear("x, s"), Axis::linear("y, µs")),
                panel(Axis::log("x, s"), Axis::log("y, µs")),
                panel(Axis::linear("x, s"), Axis::log("y, µs").from_to(1.0, 10.0)),
                panel(Axis::log("x, s"), Axis::linear("y, µs")),
            ],
        }
    }

    #[test]
    fn a_figure_has_its_words_whatever_its_axes() {
        let svg = figure().svg().unwrap();
        for word in [
            "Every kind of axis",
            "roots",
            "x, s",
            "y, µs",
            "measured",
            "theory",
        ] {
            assert!(svg.contains(word), "{word}");
        }
    }

    #[test]
    fn a_picture_has_text_without_any_font_on_the_machine() {
        let folder = std::env::temp_dir().join(format!("airmail-plot-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = figure().write(&folder.join("figure-1.5")).unwrap();
        let sizes = files.map(|file| std::fs::metadata(file).unwrap().len());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(sizes[0] > 1_000 && sizes[1] > 1_000, "{sizes:?}");
    }

    #[test]
    fn things_have_their_names_where_they_stand_and_nothing_between() {
        let axis = Axis::of(["one", "two"]);
        let written = [0.5, 1.0, 1.5, 2.0, 3.0].map(|value| axis.written(value));
        assert_eq!(written, ["", "one", "", "two", ""]);
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.0005, "0.0005"),
            (7.0, "7"),
            (1_500.0, "1500"),
            (150_000.0, "150k"),
            (12_500.0, "12.5k"),
            (2_000_000.0, "2M"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
