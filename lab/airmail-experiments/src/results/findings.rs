//! Findings of an experiment, and the files that they become.

use super::page;
use airmail_plot::{Figure, PlotError};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Named values of one case; an experiment's rows need not all have the same names.
pub type Row = serde_json::Map<String, Value>;

/// A [`Row`] of names and values, written as `serde_json::json!` has an object.
#[macro_export]
macro_rules! row {
    ($($name:literal: $value:expr),+ $(,)?) => {{
        let mut row = $crate::results::Row::new();
        $(row.insert($name.to_owned(), ::serde_json::json!($value));)+
        row
    }};
}

/// Findings of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Prefix of its files' names, as `size`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Paragraphs about the runs: their kind, place and number, and the limits of what they show.
    pub about: Vec<String>,
    /// Sections from top to bottom.
    pub sections: Vec<Section>,
    /// One for each case, for programs.
    pub rows: Vec<Row>,
    /// Finer rows, by the name of their file: what happened over time, window by window.
    pub courses: BTreeMap<String, Vec<Row>>,
}

/// A part of the report: text, then a table, then figures.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// A paragraph each.
    pub text: Vec<String>,
    /// May be empty.
    pub table: Table,
    /// Each with its name in file names, as `throughput`.
    pub figures: Vec<(String, Figure)>,
}

/// Cells, as they are read.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Names of the columns, with their units.
    pub head: Vec<String>,
    /// Rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    #[must_use]
    pub fn new<'a>(
        head: impl IntoIterator<Item = &'a str>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Table {
        Table {
            head: head.into_iter().map(str::to_owned).collect(),
            rows: rows.into_iter().collect(),
        }
    }
}

/// Reason for which findings could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A figure.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A file.
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    title: &'a str,
    about: &'a [String],
    rows: &'a [Row],
    /// Figures as they were drawn, by the names of their files.
    figures: BTreeMap<&'a str, &'a Figure>,
}

impl Findings {
    fn figures(&self) -> impl Iterator<Item = &(String, Figure)> {
        self.sections.iter().flat_map(|section| &section.figures)
    }

    /// Writes `NAME.json`, which has the rows and all points of the figures, `NAME.csv`, a CSV for each
    /// course, each figure as SVG and PNG, and `NAME.html`, which needs none of the others; gives the
    /// page's path.
    ///
    /// # Errors
    /// The first file that cannot be written, or figure that cannot be drawn.
    pub fn write(&self, out: &Path) -> Result<PathBuf, WriteError> {
        let name = &self.name;
        fs::create_dir_all(out).map_err(|error| WriteError::File {
            path: out.to_owned(),
            error,
        })?;
        let document = Document {
            experiment: name,
            title: &self.title,
            about: &self.about,
            rows: &self.rows,
            figures: self
                .figures()
                .map(|(name, figure)| (&**name, figure))
                .collect(),
        };
        let json = serde_json::to_string_pretty(&document).map_err(io::Error::from);
        save(out.join(format!("{name}.json")), json)?;
        save(out.join(format!("{name}.csv")), Ok(csv(&self.rows)))?;
        for (course, rows) in &self.courses {
            save(out.join(format!("{name}-{course}.csv")), Ok(csv(rows)))?;
        }
        for (figure_name, figure) in self.figures() {
            figure.write(&out.join(format!("{name}-{figure_name}")))?;
        }
        save(out.join(format!("{name}.html")), Ok(page::page(self)?))
    }
}

/// The tables, for a terminal.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for section in &self.sections {
            let Section { title, table, .. } = section;
            if table.head.is_empty() {
                continue;
            }
            writeln!(f, "\n{title}\n")?;
            let lines = || std::iter::once(&table.head).chain(&table.rows);
            let width = |column: usize| {
                let cells = lines().filter_map(|line| line.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            };
            let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
            for line in lines() {
                for (place, (cell, width)) in line.iter().zip(&widths).enumerate() {
                    match place {
                        0 => write!(f, "{cell:<width$}")?,
                        _ => write!(f, "  {cell:>width$}")?,
                    }
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

fn save(path: PathBuf, text: io::Result<String>) -> Result<PathBuf, WriteError> {
    match text.and_then(|text| fs::write(&path, text)) {
        Ok(()) => Ok(path),
        Err(error) => Err(WriteError::File { path, error }),
    }
}

/// Rows as a table for programs: a column for each name, in the order in which they appear.
fn csv(rows: &[Row]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut text = columns.join(",") + "\n";
    for row in rows {
        let cells = columns.iter().map(|column| match row.get(*column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => quoted(text),
            Some(value) => quoted(&value.to_string()),
        });
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(","));
    }
    text
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_plot::{Axis, Panel, Point, Series};

    fn findings() -> Findings {
        let figure = Figure {
            title: "Rate".into(),
            panels: vec![Panel {
                x: Axis::linear("s"),
                y: Axis::linear("messages/s"),
                series: vec![Series {
                    name: "all".into(),
                    points: vec![Point::new(0.0, 1.0), Point::new(1.0, 2.0)],
                    ..Series::default()
                }],
                ..Panel::default()
            }],
        };
        Findings {
            name: "size".into(),
            title: "Sizes <all>".into(),
            about: vec!["On one machine.".into()],
            sections: vec![Section {
                title: "Rate".into(),
                table: Table::new(["bytes"], [vec!["16".into()]]),
                figures: vec![("rate".into(), figure)],
                ..Section::default()
            }],
            rows: vec![
                row! {"bytes": 16, "note": "a, \"b\""},
                row! {"per_s": 2.5, "bytes": 32},
            ],
            courses: [("course".to_owned(), vec![row! {"seconds": 1}])].into(),
        }
    }

    #[test]
    fn every_row_has_every_column_and_odd_cells_are_quoted() {
        let text = csv(&findings().rows);
        assert_eq!(text, "bytes,note,per_s\n16,\"a, \"\"b\"\"\",\n32,,2.5\n");
    }

    #[test]
    fn all_files_are_there_and_the_page_holds_the_figure() {
        let out = tempfile::tempdir().unwrap();
        let page = findings().write(out.path()).unwrap();
        for ending in ["json", "csv", "html"] {
            assert!(out.path().join(format!("size.{ending}")).exists());
        }
        for file in ["size-course.csv", "size-rate.svg", "size-rate.png"] {
            assert!(out.path().join(file).exists(), "{file}");
        }
        let json = fs::read_to_string(out.path().join("size.json")).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            json["figures"]["rate"]["panels"][0]["series"][0]["points"][1]["y"],
            2.0
        );
        let page = fs::read_to_string(page).unwrap();
        assert!(page.contains("<svg") && page.contains("Sizes &lt;all&gt;"));
    }
}
