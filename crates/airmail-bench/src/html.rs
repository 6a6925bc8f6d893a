//! A run as a page that needs nothing else: the report's text, and three plots as SVG.

mod plot;

use crate::bystander::Conduct;
use crate::isolation::{IsolationReport, Phase};
use crate::late::{LateReport, LateRun};
use crate::part::Sample;
use crate::report::Report;
use plot::{Line, Plot};
use std::fmt::Write as _;

const STYLE: &str = "body{font:14px sans-serif;margin:2em;max-width:60em}\
svg{width:100%;height:auto;margin:1em 0}pre{background:#f4f4f4;padding:1em;overflow:auto}\
text{font:12px sans-serif}";
const COLOURS: [&str; 4] = ["#1b6ca8", "#c8553d", "#588157", "#8a5a9e"];
/// Kinds of subscribers beside which others are measured, as plots name them.
const KINDS: [(&str, Option<Conduct>); 4] = [
    ("beside nobody", None),
    ("stopped", Some(Conduct::Stopped)),
    ("slow", Some(Conduct::Slow)),
    ("from the earliest", Some(Conduct::Earliest)),
];

/// The page of a run.
#[must_use]
pub fn page(report: &Report) -> String {
    let title = format!("airmail bench: {}", report.system);
    page_of(&title, &report.to_string(), &plots(report))
}

/// The page of what some subscribers cost the others.
#[must_use]
pub fn isolation_page(report: &IsolationReport) -> String {
    let plot = |title, figure: fn(&Phase) -> f64| Plot {
        title,
        lines: KINDS
            .iter()
            .zip(COLOURS)
            .map(|(kind, colour)| Line {
                name: kind.0,
                colour,
                points: (report.phases.iter())
                    .filter(|phase| !phase.saturated && phase.beside == kind.1)
                    .map(|phase| (f64::from(phase.round), figure(phase)))
                    .collect(),
            })
            .collect(),
    };
    let plots = [
        plot("Half load: messages a second, over rounds", |phase| {
            phase.delivered_per_s
        }),
        plot("Half load: p99, microseconds, over rounds", |phase| {
            phase.p99_us as f64
        }),
    ];
    page_of("airmail bench: isolation", &report.to_string(), &plots)
}

/// The page of crowds that caught up, over the numbers of readers that were tried.
#[must_use]
pub fn late_page(report: &LateReport) -> String {
    let line = |name, place: usize, figure: fn(&LateRun) -> f64| Line {
        name,
        colour: COLOURS[place],
        points: (report.tried().into_iter())
            .map(|readers| {
                let at = readers.unwrap_or_default();
                (f64::from(at), report.spread(readers, figure).median)
            })
            .collect(),
    };
    let plots = [
        Plot {
            title: "Times that the log was read, over readers (0: the node's own number)",
            lines: vec![
                line("for them", 0, |run| run.read_times),
                line("of the storage", 1, |run| run.storage_read_times),
            ],
        },
        Plot {
            title: "Milliseconds until half had the first message, and 99 of 100 the last, over readers",
            lines: vec![
                line("first, p50", 0, |run| {
                    run.caught_up.first_us.p50 as f64 / 1e3
                }),
                line("last, p99", 1, |run| run.caught_up.last_us.p99 as f64 / 1e3),
            ],
        },
    ];
    page_of(
        "airmail bench: late subscribers",
        &report.to_string(),
        &plots,
    )
}

fn page_of(title: &str, text: &str, plots: &[Plot]) -> String {
    let mut page =
        String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    let title = escape(title);
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<title>{title}</title><style>{STYLE}</style></head><body>"
    );
    let _ = write!(page, "<h1>{title}</h1><pre>{}</pre>", escape(text));
    for plot in plots {
        page.push_str(&plot.svg());
    }
    page.push_str("</body></html>\n");
    page
}

fn plots(report: &Report) -> [Plot; 3] {
    let over_time = |value: fn(&Sample) -> f64| {
        let samples = report.samples.iter();
        samples
            .map(|sample| (sample.seconds, value(sample)))
            .collect()
    };
    let line = |name, place: usize, points| Line {
        name,
        colour: COLOURS[place],
        points,
    };
    // As many nines as there are: 0.9 is one, 0.99 two.
    let nines = |quantile: f64| -(1.0 - quantile).max(1e-6).log10();
    let curve = report.curve.iter();
    let curve = curve
        .map(|(quantile, us)| (nines(*quantile), *us as f64))
        .collect();
    [
        Plot {
            title: "Messages a second, over seconds",
            lines: vec![
                line("delivered", 0, over_time(|sample| sample.delivered_per_s)),
                line(
                    "acknowledged",
                    1,
                    over_time(|sample| sample.acknowledged_per_s),
                ),
            ],
        },
        Plot {
            title: "Microseconds from publish to delivery, over seconds",
            lines: vec![
                line("p50", 0, over_time(|sample| sample.p50_us as f64)),
                line("p99", 1, over_time(|sample| sample.p99_us as f64)),
                line("max", 2, over_time(|sample| sample.max_us as f64)),
            ],
        },
        Plot {
            title: "Microseconds from publish to delivery, over nines (1: p90, 2: p99, 3: p99.9)",
            lines: vec![line("of all messages", 0, curve)],
        },
    ]
}

/// Text as it stands in a page.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;
    use crate::settings::Settings;

    #[test]
    fn every_element_of_the_page_is_closed() {
        let mut part = Part::default();
        part.course.samples = vec![Sample::default(); 3];
        let page = page(&Report::new("<a & b>", Settings::default(), part, None));
        assert!(page.contains("&lt;a &amp; b&gt;"));
        for element in [
            "html", "head", "body", "svg", "text", "pre", "title", "style",
        ] {
            let opened = page.matches(&format!("<{element}>")).count()
                + page.matches(&format!("<{element} ")).count();
            assert_eq!(
                opened,
                page.matches(&format!("</{element}>")).count(),
                "{element}"
            );
            assert!(opened > 0, "{element}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }
}
