//! Findings as one page that needs nothing else.

use super::findings::{Findings, Table};
use airmail_bench::html::escape;
use airmail_plot::PlotError;
use std::fmt::Write as _;

const STYLE: &str = "body{font:15px/1.45 sans-serif;margin:2em auto;max-width:68em;padding:0 1em}\
svg{width:100%;height:auto;margin:.5em 0 1.5em}h2{margin-top:2em}\
table{border-collapse:collapse;font-size:13px;margin:1em 0}\
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}\
td:first-child,th:first-child{text-align:left}div{overflow-x:auto}";

/// The page.
///
/// # Errors
/// A figure that cannot be drawn.
pub(super) fn page(findings: &Findings) -> Result<String, PlotError> {
    let title = escape(&findings.title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><h1>{title}</h1>"
    );
    paragraphs(&mut page, &findings.about);
    for section in &findings.sections {
        // Writing to a string does not fail.
        let _ = write!(page, "<h2>{}</h2>", escape(&section.title));
        paragraphs(&mut page, &section.text);
        table(&mut page, &section.table);
        for (_, figure) in &section.figures {
            let svg = figure.svg()?;
            // An XML declaration has no place within a page.
            page.push_str(svg.find("<svg").map_or("", |start| &svg[start..]));
        }
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn paragraphs(page: &mut String, text: &[String]) {
    for paragraph in text {
        let _ = write!(page, "<p>{}</p>", escape(paragraph));
    }
}

fn table(page: &mut String, table: &Table) {
    if table.head.is_empty() {
        return;
    }
    let cells = |cells: &[String], element: &str| -> String {
        let cells = cells.iter().map(|cell| escape(cell));
        let cells = cells.map(|cell| format!("<{element}>{cell}</{element}>"));
        cells.collect()
    };
    let _ = write!(page, "<div><table><tr>{}</tr>", cells(&table.head, "th"));
    for row in &table.rows {
        let _ = write!(page, "<tr>{}</tr>", cells(row, "td"));
    }
    page.push_str("</table></div>");
}
