//! Alternatives to the value of a knob: the metrics that the scenario would have with each, and tables of them. Used by
//! the views of releases and formats.

use std::sync::Arc;

use atlas_config::Mode;
use atlas_plan::estimate::{Metric, MetricId, Scale};
use atlas_plan::knob::{Knob, Setting};
use atlas_report::study::Cell;
use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{Answer, App, Change};
use crate::tui::message::Effect;
use crate::tui::update::status::note;
use crate::tui::views::results::{change_style, refusal};
use crate::tui::widgets::draw::Canvas;

/// Lines of the headings: names and units.
pub(super) const HEADING: u16 = 2;
/// Widths of a metric and of the change of throughput.
pub(super) const FIGURE: u16 = 12;
pub(super) const CHANGE: u16 = 10;

/// Returns the metrics that alternatives are compared by, throughput first.
pub fn metrics(mode: Mode) -> impl Iterator<Item = &'static Metric> {
    const THROUGHPUT: &Metric = MetricId::TokensPerSec.metric();
    const COST: &Metric = MetricId::DollarPer1mTokens.metric();
    let [second, third] = match mode {
        Mode::Training => [MetricId::StepTimeMs.metric(), MetricId::MfuCausal.metric()],
        Mode::Inference => [MetricId::TpotMs.metric(), MetricId::TtftMs.metric()],
    };
    [THROUGHPUT, second, third, COST].into_iter()
}

/// Evaluates the scenario with another value of a knob.
pub(super) fn answer(app: &App, knob: Knob, value: &Arc<str>) -> Answer {
    let mut setup = app.now.setup.clone();
    setup.overrides.insert(knob, Setting::Choice(Arc::clone(value)));
    app.answered(&setup)
}

/// Returns a short reason why the scenario cannot run.
pub(super) fn refused(answer: &Answer) -> Option<String> {
    match (&answer.outcome, answer.detail()) {
        (Err(complaint), _) => Some(complaint.clone()),
        (_, Some(detail)) if !detail.verdict.fits() => Some(refusal(&detail.verdict).to_owned()),
        _ => None,
    }
}

/// Sets a knob, and says so.
pub(super) fn set(app: &mut App, knob: Knob, value: &Arc<str>, effects: &mut Vec<Effect>) {
    let before = app.now.setup.clone();
    app.push_undo(Change::Single);
    app.set_knob(knob, Setting::Choice(Arc::clone(value)));
    if app.now.setup != before {
        note(app, format!("{} {value}; u undoes it", knob.spec().name), effects);
    }
}

/// Returns the metrics of an alternative as cells of a document.
pub(super) fn cells(metrics: &[&Metric], values: &[Option<f64>]) -> Vec<Cell> {
    let cell = |(metric, value): (&&Metric, &Option<f64>)| match value {
        Some(value) => Cell::number(metric.brief(*value), *value),
        None => Cell::default(),
    };
    metrics.iter().zip(values).map(cell).collect()
}

/// Draws a rule with a title.
pub(super) fn rule(canvas: &mut Canvas<'_>, area: Rect, title: &str) {
    let [horizontal, ..] = canvas.glyphs.border;
    let line = horizontal.repeat(usize::from(area.width));
    canvas.text(area.x, area.y, area.width, &line, canvas.role(Role::Border));
    canvas.text(area.x + 1, area.y, area.width.saturating_sub(2), &format!(" {title} "), canvas.role(Role::Heading));
}

/// The columns of metrics of a table, and of the change of throughput, the first metric.
pub(super) struct Columns {
    /// Left edge, metric and scale of each.
    metrics: Vec<(u16, &'static Metric, Scale)>,
    /// Left edge and width of the change.
    change: (u16, u16),
    /// Right edge of the table.
    right: u16,
    /// Throughput that changes are relative to.
    now: Option<f64>,
}

impl Columns {
    /// Draws the headings of the metrics that fit between column `x` and the right edge. `rows` are their values in all
    /// rows.
    pub(super) fn draw<'a>(
        canvas: &mut Canvas<'_>,
        (area, x): (Rect, u16),
        metrics: &[&'static Metric],
        rows: impl Iterator<Item = &'a Vec<Option<f64>>> + Clone,
        now: Option<f64>,
    ) -> Columns {
        let (heading, dim) = (canvas.role(Role::Heading), canvas.role(Role::Dim));
        let room = area.right().saturating_sub(x + CHANGE + 1);
        let count = usize::from(room / FIGURE).clamp(1, metrics.len().max(1));
        let columns: Vec<(u16, &Metric, Scale)> = (0u16..)
            .zip(metrics.iter().take(count))
            .map(|(slot, metric)| {
                let values = rows.clone().filter_map(|row| row.get(usize::from(slot)).copied().flatten());
                (x + slot * FIGURE, *metric, Scale::of(metric, values))
            })
            .collect();
        for (x, metric, scale) in &columns {
            canvas.right(*x, area.y, FIGURE, metric.label, heading);
            canvas.right(*x, area.y + 1, FIGURE, scale.unit(), dim);
        }
        let after = columns.last().map_or(x, |(x, ..)| x + FIGURE);
        // If it does not fit, the change is left out.
        let change = if after + CHANGE < area.right() { CHANGE } else { 0 };
        canvas.right(after, area.y, change, "change", heading);
        let label = columns.first().map_or("", |(_, metric, _)| metric.label);
        canvas.right(after, area.y + 1, change, if label.len() < usize::from(CHANGE) { label } else { "" }, dim);
        Columns { metrics: columns, change: (after, change), right: area.right(), now }
    }

    /// Left edge of what follows the change.
    pub(super) fn end(&self) -> u16 {
        self.change.0 + CHANGE + 2
    }

    /// Draws the metrics of a row, and the change of throughput or why the scenario cannot run.
    pub(super) fn row(&self, canvas: &mut Canvas<'_>, y: u16, values: &[Option<f64>], refused: Option<&str>) {
        let style = canvas.role(if refused.is_some() { Role::Dim } else { Role::Value });
        for ((x, _, scale), value) in self.metrics.iter().zip(values) {
            let text = value.map_or_else(|| "–".to_owned(), |value| scale.show(value));
            canvas.right(*x, y, FIGURE, &text, style);
        }
        let (after, width) = self.change;
        if let Some(why) = refused {
            canvas.text(after + 2, y, self.right.saturating_sub(after + 3), why, canvas.role(Role::Error));
            return;
        }
        let throughput = values.first().copied().flatten();
        let (Some(value), Some(now), Some((_, metric, _))) = (throughput, self.now, self.metrics.first()) else {
            return;
        };
        if now > 0.0 && !metric.is_same(now, value) {
            let text = metric.change(now, value);
            canvas.right(after, y, width, &text, change_style(canvas, metric.better, value - now));
        }
    }
}
