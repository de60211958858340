//! Draws the differences between two scenarios: target, workload, knobs, and every metric with its change.

pub(in crate::tui) mod export;

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Spec, Tab};
use crate::theme::Role;
use crate::tui::app::{Answer, App, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::message::Effect;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::update::showing;
use crate::tui::views::layout;
use crate::tui::views::scenarios::{self, other_side};
use crate::tui::widgets::draw::{Canvas, wrap};
use atlas_plan::estimate::{Metric, digits};
use atlas_plan::knob::Knob;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Difference",
    tab: Tab { place: 13, name: "Difference", short: "Diff" },
    synonyms: "difference delta changes",
    opening: Some(bind(
        &["vd"],
        Action::Show(View::Diff),
        "differences from another tab or the baseline",
        Some("difference"),
    )),
    keys: &[Keys::Own(&[
        bind(&["Enter"], Action::Accept, "explain the metric, down to its inputs", Some("explain")),
        bind(&["→", "l"], Action::Focus(1), "compare with the next tab", Some("against")),
        bind(&["←", "h"], Action::Focus(-1), "compare with the previous tab", None),
    ])],
    rows,
    lines_of,
    draw: diff,
    info,
    document: |app, _| Some(export::document(app)),
    works: |app, action| match action {
        Action::Accept => has_metrics(app),
        Action::Focus(_) => app.tabs.count() > 2,
        _ => true,
    },
    accept,
    update: |app, action, _| {
        match action {
            Action::Focus(by) => scenarios::diff_against(app, by),
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

/// Explains the metric under the cursor.
fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some(metric) = metric_under_cursor(app) {
        app.figure = metric;
        showing::explain(app, effects);
    }
}

/// A row of the view.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A heading.
    Heading(&'static str),
    /// A setting: its name, the other value, this value.
    Words(String, String, String),
    /// A metric: the other value, this value.
    Metric(&'static Metric, Option<f64>, Option<f64>),
    /// A remark.
    Text(Role, String),
}

/// Returns the name of the other side, and everything that differs.
#[must_use]
pub fn rows_of(app: &App) -> (String, Vec<Row>) {
    let (label, other, setup) = other_side(app);
    let here = &app.now.setup;
    let mut rows = Vec::new();
    let mut words = Vec::new();
    if setup.target != here.target {
        words.push(Row::Words("target".to_owned(), setup.target.to_string(), here.target.to_string()));
    }
    if setup.workload != here.workload {
        words.push(Row::Words("workload".to_owned(), setup.workload.to_string(), here.workload.to_string()));
    }
    if !words.is_empty() {
        rows.push(Row::Heading("scenario"));
        rows.append(&mut words);
    }
    let knobs: Vec<Row> = Knob::all().filter_map(|knob| differing(knob, &other, &app.answer)).collect();
    if !knobs.is_empty() {
        rows.push(Row::Heading("knobs"));
        rows.extend(knobs);
    }
    for (name, answer) in [(label.as_str(), &other), ("this scenario", &app.answer)] {
        match (&answer.outcome, answer.detail()) {
            (Err(complaint), _) => rows.push(Row::Text(Role::Error, format!("{name}: {complaint}"))),
            (_, Some(detail)) if !detail.verdict.fits() => {
                rows.push(Row::Text(Role::Error, format!("{name}: {}", detail.verdict.describe())));
            }
            _ => {}
        }
    }
    let (mut section, scenario) = (None, rows.len());
    let headlines: Vec<&Metric> = Metric::headlines(app.answer.mode()).collect();
    for metric in Metric::by_importance(app.answer.mode()) {
        let (before, after) = (other.value(metric), app.answer.value(metric));
        let same = match (before, after) {
            // Skip changes that neither the digits nor the percentage show.
            (Some(before), Some(after)) => metric.is_same(before, after) && metric.show(before) == metric.show(after),
            (None, None) => true,
            _ => false,
        };
        if same {
            continue;
        }
        let name = if headlines.contains(&metric) { "key figures" } else { metric.section.name() };
        if section.replace(name) != Some(name) {
            rows.push(Row::Heading(name));
        }
        rows.push(Row::Metric(metric, before, after));
    }
    if rows.is_empty() {
        rows.push(Row::Text(Role::Dim, format!("Nothing differs from {label}.")));
        let how = "Change a knob (K), select another target (H), or press b to make this scenario the baseline.";
        rows.push(Row::Text(Role::Dim, how.to_owned()));
    } else if rows.len() == scenario {
        rows.push(Row::Text(Role::Dim, "no metric differs".to_owned()));
    }
    let width = usize::from(layout::areas(app).body.width.saturating_sub(5));
    let broken = |row: Row| match row {
        Row::Text(role, text) => wrap(&text, width).into_iter().map(|line| Row::Text(role, line)).collect(),
        row => vec![row],
    };
    (label, rows.into_iter().flat_map(broken).collect())
}

/// Returns the metric under the cursor.
#[must_use]
fn metric_under_cursor(app: &App) -> Option<&'static Metric> {
    let all = rows_of(app).1;
    match selectable_rows(&all).get(app.view_row).and_then(|at| all.get(*at)) {
        Some(Row::Metric(metric, ..)) => Some(metric),
        _ => None,
    }
}

/// Whether a metric differs, so that there is one to explain.
#[must_use]
fn has_metrics(app: &App) -> bool {
    rows_of(app).1.iter().any(|row| matches!(row, Row::Metric(..)))
}

/// Returns the row of a knob that differs or that applies to one side only.
fn differing(knob: Knob, other: &Answer, this: &Answer) -> Option<Row> {
    let value = |answer: &Answer| {
        let scenario = answer.scenario.as_ref()?;
        scenario.uses(knob).then(|| crate::tui::screen::knobs::show(knob.spec(), &scenario.get(knob)))
    };
    let (before, after) = (value(other), value(this));
    let spec = knob.spec();
    let name = if spec.unit.is_empty() { spec.name.to_owned() } else { format!("{} ({})", spec.name, spec.unit) };
    let show = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    (before != after).then(|| Row::Words(name, show(before), show(after)))
}

/// Returns the indices of rows that can be selected: settings and metrics.
fn selectable_rows(all: &[Row]) -> Vec<usize> {
    let stands = |row: &Row| matches!(row, Row::Words(..) | Row::Metric(..));
    all.iter().enumerate().filter(|(_, row)| stands(row)).map(|(at, _)| at).collect()
}

/// Number of rows that can be selected, or of all rows if none can.
#[must_use]
fn rows(app: &App) -> usize {
    let all = rows_of(app).1;
    let stops = selectable_rows(&all).len();
    if stops > 0 { stops } else { all.len() }
}

/// Returns the first and last line of a row, including its heading. The line of names does not scroll.
#[must_use]
fn lines_of(app: &App, row: usize) -> Option<(usize, usize)> {
    let all = rows_of(app).1;
    let line = selectable_rows(&all).get(row).copied().unwrap_or(row);
    let headed = line.checked_sub(1).and_then(|above| all.get(above));
    Some((if matches!(headed, Some(Row::Heading(_))) { line - 1 } else { line }, line + 1))
}

/// Returns the information line.
#[must_use]
fn info(app: &App) -> String {
    match app.tabs.count() {
        1 => "compared with the baseline; T duplicates this scenario in a new tab".to_owned(),
        2 => "compared with the other tab; tp pins a tab as the baseline for all deltas".to_owned(),
        _ => "compared with another tab (arrow keys); tp pins a tab as the baseline for all deltas".to_owned(),
    }
}

/// Maximum widths of a name, of a side, and of a change.
const NAME: (usize, usize) = (18, 24);
const SIDE: usize = 34;
const CHANGE: usize = 14;
/// Width that a setting needs at least; longer ones are truncated if space is short.
const WORD: usize = 12;

/// Formats a value with the precision of the scenario's own value.
fn format_value(answer: &Answer, metric: &Metric, value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let limited = match (&answer.scenario, &answer.outcome) {
        (Some(scenario), Ok(estimate)) => digits::has_wide_interval(metric, scenario, estimate),
        _ => false,
    };
    if limited { metric.brief(value) } else { metric.show(value) }
}

/// Content of the columns of a row.
#[derive(Debug, Default)]
struct Cells {
    name: String,
    /// The other value and this one.
    sides: [String; 2],
    change: Option<(String, Style)>,
}

/// Returns the cells of a setting or a metric.
fn cells(answer: &Answer, canvas: &Canvas<'_>, row: &Row) -> Option<Cells> {
    match row {
        Row::Words(what, before, after) => {
            Some(Cells { name: what.clone(), sides: [before.clone(), after.clone()], change: None })
        }
        Row::Metric(metric, before, after) => Some(Cells {
            name: metric.label.to_owned(),
            sides: [*before, *after].map(|value| format_value(answer, metric, value)),
            change: before
                .zip(*after)
                .map(|(before, after)| crate::tui::views::results::change(canvas, metric, before, after)),
        }),
        Row::Heading(_) | Row::Text(..) => None,
    }
}

/// Widths of the columns. If space is short, first the alignment at the decimal point is dropped, then the other side,
/// because a number without its first digits is misleading.
#[derive(Debug, Default)]
struct Columns {
    name: u16,
    side: u16,
    change: u16,
    /// Widths of the fraction and of the unit, if numbers are aligned at the decimal point.
    aligned: Option<(u16, u16)>,
    /// Whether both sides are shown.
    both: bool,
}

impl Columns {
    fn fit(rows: &[(&Row, Cells)], width: usize) -> Columns {
        let (mut whole, mut fraction, mut unit, mut bare, mut longest) = (0, 0, 0, 0, 0);
        for (row, cells) in rows {
            for side in &cells.sides {
                if !matches!(row, Row::Metric(..)) {
                    longest = longest.max(side.width().min(WORD));
                    continue;
                }
                longest = longest.max(side.width());
                let (before, behind, of) = crate::tui::views::results::split(side);
                (whole, unit) = (whole.max(before.width()), unit.max(of.width()));
                // Small prices have no unit and use its column for digits.
                let into = if of.is_empty() { &mut bare } else { &mut fraction };
                *into = behind.width().max(*into);
            }
        }
        fraction = fraction.max(bare.saturating_sub(unit + 1));
        let names = rows.iter().map(|(_, cells)| cells.name.width() + 2).max().unwrap_or_default();
        let changes = rows.iter().filter_map(|(_, cells)| cells.change.as_ref());
        let change = changes.map(|(text, _)| text.width() + 1).max().unwrap_or_default();
        let wide = if width >= 100 { NAME.1 } else { NAME.0 };
        let cut = |name: usize, side: usize, change: usize, aligned: Option<(usize, usize)>, both: bool| {
            let columns = |columns: usize| u16::try_from(columns).unwrap_or(u16::MAX);
            Columns {
                name: columns(name),
                side: columns(side),
                change: columns(change),
                aligned: aligned.map(|(fraction, unit)| (columns(fraction), columns(unit))),
                both,
            }
        };
        let room = width.saturating_sub(wide + CHANGE + 3) / 2;
        if room > whole + fraction + 1 + unit && room > longest {
            return cut(wide, room.min(SIDE), CHANGE, Some((fraction, unit)), true);
        }
        let name = names.min(wide);
        let room = width.saturating_sub(name + change + 2);
        if room / 2 > longest {
            return cut(name, (room / 2).min(SIDE), change, None, true);
        }
        let name = name.min(width.saturating_sub(longest + change + 3));
        cut(name, width.saturating_sub(name + change + 2).min(SIDE), change, None, false)
    }

    /// Draws one side of a metric, aligned at the decimal point if there is space.
    fn figure(&self, canvas: &mut Canvas<'_>, (x, y): (u16, u16), shown: &str, style: Style) {
        let Some((fraction, unit)) = self.aligned else {
            return canvas.right(x, y, self.side.saturating_sub(1), shown, style);
        };
        let (whole, behind, of) = crate::tui::views::results::split(shown);
        let point = self.side.saturating_sub(1 + fraction + 1 + unit);
        canvas.right(x, y, point, whole, style);
        canvas.text(x + point, y, if of.is_empty() { fraction + 1 + unit } else { fraction }, behind, style);
        let dim = canvas.role(Role::Dim);
        canvas.text(x + point + fraction + 1, y, unit, of, dim);
    }
}

/// Returns the heading of a column, shortened to one word if the column is narrow.
fn heading(name: &str, column: u16) -> &str {
    match name {
        _ if name.width() < usize::from(column) => name,
        "saved values" => "saved",
        "this scenario" => "now",
        _ => name,
    }
}

/// Draws the view.
fn diff(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let (label, all) = rows_of(app);
    let here = if app.tabs.count() > 1 {
        format!("{} {}", app.tabs.current() + 1, app.tab_label(app.tabs.current()))
    } else {
        "this scenario".to_owned()
    };
    let inner = canvas.view(area, View::Diff, "Difference", "differences only", app.tour.is_none());
    let filled: Vec<_> = all.iter().filter_map(|row| Some((row, cells(&app.answer, canvas, row)?))).collect();
    let columns = Columns::fit(&filled, usize::from(inner.width));
    let first = inner.x + 1 + columns.name;
    let second = first + if columns.both { columns.side } else { 0 };
    let third = second + columns.side;
    let (dim, focused) = (canvas.role(Role::Baseline), canvas.role(Role::TitleFocused));
    if columns.both {
        canvas.right(first, inner.y, columns.side.saturating_sub(1), heading(&label, columns.side), dim);
    }
    canvas.right(second, inner.y, columns.side.saturating_sub(1), heading(&here, columns.side), focused);
    let stop = selectable_rows(&all).get(app.view_row).copied();
    let text_style = canvas.role(Role::Text);
    let height = inner.height.saturating_sub(1);
    for (line, (index, row)) in (0..height).zip(all.iter().enumerate().skip(app.view_scroll)) {
        let y = inner.y + 1 + line;
        let side = columns.side.saturating_sub(1);
        match (row, cells(&app.answer, canvas, row).unwrap_or_default()) {
            (Row::Heading(heading), _) => {
                let style = canvas.role(Role::Heading);
                canvas.text(inner.x + 1, y, inner.width, heading, style);
            }
            (Row::Words(..), Cells { name, sides: [before, after], .. }) => {
                let (old, new) = (canvas.role(Role::Dim), canvas.role(Role::Changed));
                canvas.text(inner.x + 2, y, columns.name.saturating_sub(1), &name, text_style);
                let from_to = format!("{before} → {after}");
                match columns.both {
                    true => {
                        canvas.right(first, y, side, &before, old);
                        canvas.right(second, y, side, &after, new);
                    }
                    false if from_to.width() < usize::from(side) => canvas.right(second, y, side, &from_to, new),
                    false => canvas.right(second, y, side, &after, new),
                }
            }
            (Row::Metric(..), Cells { name, sides: [before, after], change }) => {
                canvas.text(inner.x + 2, y, columns.name.saturating_sub(1), &name, text_style);
                let (old, new) = (canvas.role(Role::Dim), canvas.role(Role::Value));
                if columns.both {
                    columns.figure(canvas, (first, y), &before, old);
                }
                columns.figure(canvas, (second, y), &after, new);
                if let Some((text, style)) = change {
                    canvas.right(third, y, columns.change, &text, style);
                }
            }
            (Row::Text(role, text), _) => {
                let style = canvas.role(*role);
                canvas.text(inner.x + 2, y, inner.width.saturating_sub(3), text, style);
            }
        }
        if stop == Some(index) {
            let width = (third + columns.change + 1).min(inner.right()) - inner.x;
            canvas.tint(Rect::new(inner.x, y, width, 1), canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(height) < all.len());
}
