//! Draws the results of a search as a table: objective, layout and metrics of each candidate.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::optimum::SearchResult;
use crate::tui::views::results::change_style;
use crate::tui::widgets::draw::Canvas;
use atlas_config::Mode;
use atlas_core::sort;
use atlas_plan::estimate::{Metric, MetricId, Scale};
use atlas_plan::knob::Knob;
use atlas_plan::search::optimize::Candidate;

/// Lines above the first candidate: headings, units, and the scenario at the start of the search.
pub(in crate::tui) const HEADING: u16 = 3;
/// Widths of the rank, the objective, its change, and another metric.
const RANK: u16 = 5;
const OBJECTIVE: u16 = 12;
const CHANGE: u16 = 9;
const FIGURE: u16 = 8;
/// Returns the width of a metric, which includes its name.
fn width_of_figure(metric: &Metric) -> u16 {
    FIGURE.max(u16::try_from(label(metric).width() + 2).unwrap_or(FIGURE))
}

fn label(metric: &Metric) -> &'static str {
    if metric.id == MetricId::Headroom { "free" } else { metric.label }
}

/// Number of metrics that take precedence over settings if space is short.
const FIGURES_FIRST: usize = 3;

/// Layout settings, which are shown even if they do not change.
const LAYOUT: [Knob; 3] = [Knob::Tp, Knob::Pp, Knob::Dp];

/// Short headings of settings with long names.
const SHORT: [(Knob, &str); 8] = [
    (Knob::Microbatch, "micro"),
    (Knob::Recompute, "recomp"),
    (Knob::Sharding, "shard"),
    (Knob::Concurrency, "users"),
    (Knob::MaxNumSeqs, "seqs"),
    (Knob::MaxNumBatchedTokens, "chunk"),
    (Knob::AttentionKernel, "attn"),
    (Knob::RecomputeReserve, "reserve"),
];

fn heading(knob: Knob) -> &'static str {
    SHORT.iter().find(|(known, _)| *known == knob).map_or(knob.name(), |(_, short)| short)
}

/// Returns the metrics next to the objective, most important first.
fn figures(found: &SearchResult, objective: &Metric) -> Vec<&'static Metric> {
    let start = &found.optimum.start.scenario;
    const SERVING: [&Metric; 5] = [
        MetricId::TtftMs.metric(),
        MetricId::TpotMs.metric(),
        MetricId::Headroom.metric(),
        MetricId::DollarPer1mTokens.metric(),
        MetricId::TokensPerSec.metric(),
    ];
    const TRAINING: [&Metric; 5] = [
        MetricId::Headroom.metric(),
        MetricId::MfuCausal.metric(),
        MetricId::StepTimeMs.metric(),
        MetricId::DollarPer1mTokens.metric(),
        MetricId::TokensPerSec.metric(),
    ];
    let known = match start.mode() {
        Mode::Inference => SERVING,
        Mode::Training => TRAINING,
    };
    known.into_iter().filter(|metric| **metric != *objective && metric.applies_to(start)).collect()
}

/// Returns the settings in columns: those of the layout, then others that a candidate changes.
fn knobs(found: &SearchResult) -> Vec<Knob> {
    let heeded = LAYOUT.into_iter().filter(|knob| found.optimum.start.scenario.uses(*knob));
    let mut all: Vec<Knob> = heeded.collect();
    let mut changed: Vec<Knob> =
        found.candidates.iter().flat_map(|(_, candidate)| &candidate.changes).map(|(knob, _)| *knob).collect();
    // Layout and load come first: if space is short, they distinguish candidates best.
    let leads = |knob: &Knob| matches!(knob, Knob::Cp | Knob::Ep | Knob::Microbatch | Knob::Concurrency);
    sort::by_key(&mut changed, |knob| (!leads(knob), *knob));
    changed.dedup();
    all.extend(changed.into_iter().filter(|knob| !LAYOUT.contains(knob)));
    all
}

/// Draws the table; returns the line below it. `here` is the candidate under the cursor.
pub(in crate::tui) fn draw(
    found: &SearchResult,
    objective: &'static Metric,
    here: Option<usize>,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> u16 {
    let start = &found.optimum.start;
    let rows: Vec<&Candidate> = std::iter::once(start).chain(found.candidates.iter().map(|(_, row)| row)).collect();
    let width_of = |knob: Knob| {
        let cells = rows.iter().map(|row| row.scenario.get(knob).to_string().width());
        u16::try_from(cells.chain([heading(knob).width()]).max().unwrap_or_default() + 2).unwrap_or(u16::MAX)
    };
    // The most important metrics, then settings, then the other metrics, as far as they fit.
    let mut room = area.width.saturating_sub(RANK + OBJECTIVE + CHANGE);
    let mut take = |wanted: u16| {
        let fits = wanted <= room;
        room -= if fits { wanted } else { 0 };
        fits
    };
    let mut figures = figures(found, objective);
    let rest = figures.split_off(figures.len().min(FIGURES_FIRST));
    figures.retain(|metric| take(width_of_figure(metric)));
    let knobs: Vec<Knob> = knobs(found).into_iter().filter(|knob| take(width_of(*knob))).collect();
    figures.extend(rest.into_iter().filter(|metric| take(width_of_figure(metric))));
    let scale = |metric: &'static Metric| Scale::of(metric, rows.iter().filter_map(|row| row.value(metric)));
    let show = |scale: &Scale, value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| scale.show(value));
    let (objective_scale, scales) = (scale(objective), figures.iter().map(|m| scale(m)).collect::<Vec<Scale>>());
    let (head, dim) = (canvas.role(Role::Heading), canvas.role(Role::Dim));
    let left = area.x + RANK;
    canvas.right(left, area.y, OBJECTIVE, objective.label, head);
    canvas.right(left, area.y + 1, OBJECTIVE, objective_scale.unit(), dim);
    let mut x = left + OBJECTIVE + CHANGE;
    for knob in &knobs {
        canvas.right(x, area.y, width_of(*knob), heading(*knob), head);
        x += width_of(*knob);
    }
    for (metric, scale) in figures.iter().zip(&scales) {
        let width = width_of_figure(metric);
        canvas.right(x, area.y, width, label(metric), head);
        canvas.right(x, area.y + 1, width, scale.unit(), dim);
        x += width;
    }
    let right = x;
    for (y, (place, row)) in (area.y + HEADING - 1..area.bottom()).zip(rows.iter().enumerate()) {
        let nth = place.checked_sub(1);
        let (name, role) = match nth {
            None => ("now".to_owned(), Role::Dim),
            Some(0) => ("best".to_owned(), Role::Best),
            Some(nth) => (format!("{:>2}", nth + 1), Role::Text),
        };
        let (style, plain) = (canvas.role(role), canvas.role(if nth.is_none() { Role::Dim } else { Role::Value }));
        canvas.text(area.x, y, RANK, &name, style);
        canvas.right(left, y, OBJECTIVE, &show(&objective_scale, row.value(objective)), plain);
        let values = start.value(objective).zip(row.value(objective));
        if let Some((before, now)) = values.filter(|(before, _)| nth.is_some() && *before != 0.0) {
            let change = objective.change(before, now);
            let none = change.starts_with('±');
            let style =
                if none { canvas.role(Role::Dim) } else { change_style(canvas, objective.better, now - before) };
            canvas.right(left + OBJECTIVE, y, CHANGE, &change, style);
        }
        let mut x = left + OBJECTIVE + CHANGE;
        for knob in &knobs {
            let changed = row.changes.iter().any(|(known, _)| known == knob);
            let style = canvas.role(if changed && nth.is_some() { Role::Changed } else { Role::Dim });
            canvas.right(x, y, width_of(*knob), &row.scenario.get(*knob).to_string(), style);
            x += width_of(*knob);
        }
        for (metric, scale) in figures.iter().zip(&scales) {
            canvas.right(x, y, width_of_figure(metric), &show(scale, row.value(metric)), plain);
            x += width_of_figure(metric);
        }
        if nth.is_some() && nth == here {
            let selection = canvas.role(Role::Selection);
            canvas.tint(Rect::new(area.x, y, right - area.x, 1), selection);
        }
    }
    area.y + HEADING + u16::try_from(found.candidates.len()).unwrap_or_default()
}
