//! The live view: each gate's state, the course of bound and load, and the last decisions. Drawn
//! from the node's answers, and from nothing else.

use super::lines::decision_text;
use airmail_client::FlowGate;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, Gauge, GraphType, Paragraph};

/// Contents of the live view.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The node, as it is called.
    pub(super) node: String,
    /// The gates, from the last answer.
    pub(super) gates: Vec<FlowGate>,
    /// Reason for which no newer answer came.
    pub(super) trouble: Option<String>,
}

impl View {
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let areas = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]);
        let [head, body] = areas.areas(frame.area());
        let title = format!("airmail flow · {} · q ends", self.node);
        let title = match &self.trouble {
            Some(trouble) => Line::from(format!("{title} · {trouble}")).red(),
            None => Line::from(title).bold(),
        };
        frame.render_widget(title, head);
        if self.gates.is_empty() {
            frame.render_widget(Paragraph::new("no limiter is on"), body);
            return;
        }
        let share = u32::try_from(self.gates.len()).unwrap_or(1);
        let each = vec![Constraint::Ratio(1, share); self.gates.len()];
        for (gate, area) in self
            .gates
            .iter()
            .zip(Layout::vertical(each).split(body).iter())
        {
            draw_gate(frame, gate, *area);
        }
    }
}

fn draw_gate(frame: &mut Frame<'_>, gate: &FlowGate, area: Rect) {
    let title = format!(" {} · {} · {} ", gate.name, gate.limiter, gate.unit);
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(5),
        Constraint::Max(6),
    ];
    let [level, counts, chart, decisions] = Layout::vertical(rows).areas(inner);
    let ratio = gate.in_flight as f64 / gate.bound.max(1) as f64;
    let gauge = Gauge::default()
        .gauge_style(Style::new().fg(Color::Cyan))
        .label(format!("{} of {} in flight", gate.in_flight, gate.bound))
        .ratio(ratio.clamp(0.0, 1.0));
    frame.render_widget(gauge, level);
    let refused = gate.refused.iter();
    let refused: Vec<String> = refused.map(|(name, n)| format!("{name} {n}")).collect();
    let counted = format!(
        "waiting {}   waited {}   refused: {}",
        gate.waiting,
        gate.waited,
        refused.join(", ")
    );
    frame.render_widget(Line::from(counted), counts);
    draw_chart(frame, gate, chart);
    let newest = gate.recent.iter().rev();
    let lines: Vec<Line<'_>> = newest
        .take(decisions.height.into())
        .map(|decision| Line::from(decision_text(gate, decision)))
        .collect();
    frame.render_widget(Paragraph::new(lines), decisions);
}

fn draw_chart(frame: &mut Frame<'_>, gate: &FlowGate, area: Rect) {
    let series = |of: fn(&airmail_client::FlowDecision) -> f64| -> Vec<(f64, f64)> {
        let points = gate.recent.iter();
        points.map(|one| (one.number as f64, of(one))).collect()
    };
    let (bounds, loads) = (series(|one| one.bound as f64), series(|one| one.in_flight));
    let (Some((first, _)), Some((last, _))) = (bounds.first(), bounds.last()) else {
        frame.render_widget(Paragraph::new("no decision yet"), area);
        return;
    };
    let all = bounds.iter().chain(&loads);
    let highest = all.map(|(_, value)| *value).fold(1.0, f64::max);
    let line = |name: &'static str, data, colour| {
        Dataset::default()
            .name(name)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(colour))
            .data(data)
    };
    let sets = vec![
        line("bound", &bounds, Color::Yellow),
        line("L", &loads, Color::Cyan),
    ];
    let chart = Chart::new(sets)
        .x_axis(
            Axis::default()
                .title("decisions")
                .bounds([*first, last.max(first + 1.0)])
                .labels([format!("{first}"), format!("{last}")]),
        )
        .y_axis(
            Axis::default()
                .bounds([0.0, highest * 1.05])
                .labels(["0".to_owned(), format!("{highest:.0}")]),
        );
    frame.render_widget(chart, area);
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::gate;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn shown(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_gate_is_shown_with_its_bound_its_load_and_its_decisions() {
        let view = View {
            node: "127.0.0.1:7400".into(),
            gates: vec![gate(1..40)],
            trouble: None,
        };
        let text = shown(&view, 110, 24);
        for part in [
            "127.0.0.1:7400",
            "publish · gradient · messages",
            "120 of 300 in flight",
            "waiting 4",
            "line-full 2",
            "gradient-try-up",
            "λ 76000/s",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn nothing_is_too_small_or_too_empty_to_be_shown() {
        let mut view = View::default();
        assert!(shown(&view, 60, 5).contains("no limiter is on"));
        view.trouble = Some("no node answers".into());
        view.gates = vec![gate(1..1), gate(1..2)];
        for (width, height) in [(1, 1), (10, 3), (40, 9), (300, 100)] {
            shown(&view, width, height);
        }
        assert!(shown(&view, 100, 30).contains("no node answers"));
    }
}
