//! Draws the results: a headline that does not scroll, and below it every metric with its interval and its change from
//! the baseline, in groups that can be folded.
//!
//! * `headline` – verdict, bottleneck and key metrics
//! * `metric_row` – a metric as a row
//! * `change` – formats changes, with colors

mod change;
mod headline;
mod metric_row;

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, Headline, Pane, View};
use crate::tui::input::movement::Movement;
use crate::tui::widgets::draw::{Canvas, wrap};
use crate::tui::work::query::Query;
use atlas_plan::estimate::{Metric, Section};
use metric_row::Columns;

pub use change::change_text;
pub(in crate::tui) use change::{change, change_style};
pub(in crate::tui) use headline::summary;
pub use headline::{about_headline, headline, refusal, tiles, verdict};
pub(in crate::tui) use metric_row::split;

/// A row of the list below the headline.
#[derive(Debug, Clone, PartialEq)]
enum Row {
    Heading(&'static str),
    /// A folded group, and the number of its metrics.
    Folded(Section, usize),
    Metric(&'static Metric),
    Blank,
    Text(Role, String),
}

/// Minimum height of the screen for which no group is folded by default.
const TALL: u16 = 50;
/// Minimum height of the screen for which the first groups are not folded by default.
const MEDIUM: u16 = 36;

/// Whether a group of metrics is folded.
#[must_use]
pub fn is_folded(app: &App, section: Section) -> bool {
    let by_itself = match section {
        Section::Throughput | Section::Latency => app.size.1 < MEDIUM,
        Section::Cost | Section::Power | Section::Utilization => app.size.1 < TALL,
    };
    by_itself != app.folds.contains(&section)
}

/// Returns the group of a metric if it can be folded; `None` for key metrics.
#[must_use]
pub fn group(app: &App, metric: &Metric) -> Option<Section> {
    let key = Metric::headlines(app.answer.mode()).any(|headline| headline == metric);
    (!key && folds(app)).then_some(metric.section)
}

/// Whether metrics are in groups that can be folded. If a filter is set, all matching metrics are shown.
fn folds(app: &App) -> bool {
    app.figures_are_grouped() && app.tables.filter(crate::tui::tables::Table::Results).is_none()
}

/// Folds or unfolds a group.
pub(in crate::tui) fn fold(app: &mut App, section: Section) {
    match app.folds.iter().position(|known| *known == section) {
        Some(at) => drop(app.folds.remove(at)),
        None => app.folds.push(section),
    }
}

/// Folds or unfolds the group of the metric under the cursor, and moves the cursor to a visible metric.
pub(in crate::tui) fn fold_here(app: &mut App) {
    let Some(section) = app.selected_metric().and_then(|metric| group(app, metric)) else { return };
    fold(app, section);
    if is_folded(app, section) {
        let before = app.figures().take_while(|metric| metric.section != section || group(app, metric).is_none());
        let stays = before.filter(|metric| group(app, metric).is_none_or(|group| !is_folded(app, group))).last();
        app.figure = stays.unwrap_or(app.figure);
    }
}

/// Unfolds the group of the metric under the cursor.
pub(in crate::tui) fn reveal(app: &mut App) {
    let group = app.selected_metric().and_then(|metric| group(app, metric));
    if let Some(section) = group.filter(|section| is_folded(app, *section)) {
        fold(app, section);
    }
}

/// Number of rows of the headline and of the metrics with all groups folded.
#[must_use]
pub fn figure_rows(app: &App, width: u16) -> usize {
    let folded = |metric: &Metric| group(app, metric).is_some();
    let tiles = tiles(app, width);
    let mut sections: Vec<Section> =
        app.figures().filter(|metric| folded(metric)).map(|metric| metric.section).collect();
    sections.dedup();
    let listed = app.figures().filter(|metric| !folded(metric) && !tiles.contains(metric)).count();
    usize::from(headline::height(app, width, u16::MAX)) + 1 + listed + sections.len()
}

/// Returns the number of rows of the list below the headline, and the row of the cursor. The row is 0 for the first
/// metric, so that its heading is visible.
#[must_use]
pub fn rows_and_cursor(app: &App, width: u16) -> (usize, usize) {
    let here = app.selected_metric();
    let all = build(app, width);
    let first = all.iter().position(|row| matches!(row, Row::Metric(_)));
    let row = all.iter().position(|row| matches!(row, Row::Metric(metric) if Some(*metric) == here));
    (all.len(), if row == first || app.headline().is_some() { 0 } else { row.unwrap_or_default() })
}

/// Number of rows of a pane that the headline takes.
#[must_use]
pub fn headline_rows(app: &App, inner: Rect) -> u16 {
    headline::height(app, inner.width, inner.height).min(inner.height)
}

/// A selectable item of the pane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// A line of the headline.
    Above(Headline),
    /// A metric.
    Metric(&'static Metric),
    /// The heading of a folded group.
    Folded(Section),
}

/// Selects the item at a screen position inside the pane. Returns whether it was selected before.
pub(super) fn click(app: &mut App, inner: Rect, (column, row): (u16, u16)) -> Option<bool> {
    let here = app.selected_metric().map(Place::Metric);
    let here = app.headline().map(Place::Above).or(here);
    let place = place_at(app, inner, column, row)?;
    match place {
        Place::Above(line) => app.headline = Some(line),
        Place::Metric(figure) => {
            app.headline = None;
            app.figure = figure;
        }
        Place::Folded(section) => fold(app, section),
    }
    Some(Some(place) == here)
}

/// Returns the item at a screen position inside the pane.
#[must_use]
pub fn place_at(app: &App, inner: Rect, column: u16, row: u16) -> Option<Place> {
    match headline::at(app, inner, column, row) {
        Some((Some(above), _)) => return Some(Place::Above(above)),
        Some((_, figure)) => return figure.map(Place::Metric),
        None => {}
    }
    let line = row.checked_sub(inner.y + headline_rows(app, inner))?;
    match build(app, inner.width).get(usize::from(line) + app.scroll[3])? {
        Row::Metric(metric) => Some(Place::Metric(metric)),
        Row::Folded(section, _) => Some(Place::Folded(*section)),
        _ => None,
    }
}

/// Returns the rows of the list: metrics, then caveats.
fn build(app: &App, width: u16) -> Vec<Row> {
    let mut rows = upper(app, width);
    let width = usize::from(width.saturating_sub(2));
    if app.answer.pending {
        rows.push(Row::Heading("caveats"));
        let text = format!("closed-form estimate {}", pending(&app.queries.simulation));
        rows.extend(wrap(&text, width).into_iter().map(|line| Row::Text(Role::Warn, line)));
        return rows;
    }
    for (i, remark) in app.answer.notes().iter().enumerate() {
        if i == 0 {
            rows.push(Row::Heading("caveats"));
        }
        for (j, line) in wrap(remark, width.saturating_sub(2)).into_iter().enumerate() {
            rows.push(Row::Text(Role::Dim, format!("{} {line}", if j == 0 { app.glyphs.bullet } else { " " })));
        }
    }
    rows
}

/// Returns the rows of the metrics. Layout and cursor need them at every key press.
fn upper(app: &App, width: u16) -> Vec<Row> {
    let text_width = usize::from(width.saturating_sub(2));
    let mut rows = Vec::new();
    if let Err(complaint) = &app.answer.outcome {
        rows.extend(wrap(complaint, text_width).into_iter().map(|line| Row::Text(Role::Error, line)));
        rows.push(Row::Blank);
    }
    let tiles = tiles(app, width);
    let (mut heading, grouped) = (None, app.figures_are_grouped());
    for metric in app.figures() {
        let section = group(app, metric);
        if let (Some(section), Some(Row::Folded(last, count))) = (section, rows.last_mut())
            && section == *last
        {
            *count += 1;
            continue;
        }
        if let Some(section) = section.filter(|section| is_folded(app, *section)) {
            rows.push(Row::Folded(section, 1));
            continue;
        }
        let key = Metric::headlines(app.answer.mode()).any(|headline| headline == metric);
        let name = if key { "key figures" } else { metric.section.name() };
        if grouped && heading != Some(name) {
            rows.push(Row::Heading(name));
            heading = Some(name);
        }
        if !tiles.contains(&metric) {
            rows.push(Row::Metric(metric));
        }
    }
    rows
}

/// Describes the state of the simulation while the analytical estimate is shown instead.
fn pending<Q: Clone + PartialEq, A>(query: &Query<Q, A>) -> String {
    match (query.progress(), query.problem()) {
        (Some(progress), _) => format!("while simulating ({:.0} %); Esc stops", 100.0 * progress.share()),
        (None, Some(trouble)) => format!("because the simulation is {trouble}"),
        (None, None) => "until the simulation has run".to_owned(),
    }
}

/// Returns the name of the baseline.
#[must_use]
pub fn baseline_name(app: &App) -> String {
    if let Some(place) = app.tabs.pinned().filter(|_| app.pinned_setup().is_some()) {
        return if place == app.tabs.current() { "pinned (this tab)".to_owned() } else { app.tab_label(place) };
    }
    match &app.now.baseline {
        None => "saved values".to_owned(),
        Some(setup) if setup.target != app.now.setup.target => setup.target.to_string(),
        Some(setup) if setup.workload != app.now.setup.workload => setup.workload.to_string(),
        Some(_) => "baseline".to_owned(),
    }
}

/// Draws the pane.
pub fn results(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let focused = app.pane == Pane::Results && app.view == View::Main && app.tour.is_none();
    let versus = format!("{} vs {}", canvas.glyphs.delta, baseline_name(app));
    // Until the simulation has run, the analytical estimate is shown, with a remark.
    let remark = if app.answer.pending { pending(&app.queries.simulation) } else { versus };
    let inner = canvas.pane(area, Pane::Results, &remark, focused);
    let taken = headline::draw(app, canvas, inner);
    let inner = Rect { y: inner.y + taken, height: inner.height - taken, ..inner };
    let all = build(app, inner.width);
    let scroll = app.scroll[3].min(all.len().saturating_sub(1));
    // If space is short, the right margin is dropped first.
    let width = inner.width.saturating_sub(if inner.width >= 53 { 2 } else { 1 });
    let columns = Columns::fit(width, app.answer.detail().is_some());
    let here = app.selected_metric().filter(|_| focused && app.headline().is_none());
    let first = all.iter().position(|row| matches!(row, Row::Heading(_)));
    for (line, (index, row)) in (0..inner.height).zip(all.iter().enumerate().skip(scroll)) {
        let at = Rect::new(inner.x + 1, inner.y + line, width, 1);
        let heading = canvas.role(Role::Heading);
        match row {
            Row::Heading(name) => {
                canvas.text(at.x, at.y, at.width, name, heading);
                if Some(index) == first {
                    metric_row::headings(
                        canvas,
                        at,
                        &columns,
                        app.reference().is_some() || !app.now.setup.overrides.is_empty(),
                    );
                }
            }
            Row::Folded(section, count) => {
                let x = canvas.text(at.x, at.y, at.width, section.name(), heading) + 1;
                let (dim, text) = (canvas.role(Role::Dim), format!("{} {count}", canvas.glyphs.closed));
                canvas.text(x, at.y, at.right().saturating_sub(x), &text, dim);
            }
            Row::Text(role, text) => {
                let style = canvas.role(*role);
                canvas.text(at.x, at.y, at.width, text, style);
            }
            Row::Metric(metric) => {
                metric_row::draw(app, canvas, at, &columns, metric);
                if here == Some(*metric) {
                    let selection = canvas.role(Role::Selection);
                    canvas.tint(Rect::new(inner.x, at.y, inner.width, 1), selection);
                }
            }
            Row::Blank => {}
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < all.len());
}

/// Moves from metric to metric. A step past either end scrolls the pane, to show the notes.
pub(in crate::tui) fn move_to_metric(app: &mut App, movement: &Movement, page: usize) {
    let metrics: Vec<&'static Metric> = app.figures().collect();
    let here = app.selected_metric();
    let row = metrics.iter().position(|metric| Some(*metric) == here).unwrap_or_default();
    let next = movement.from(row, metrics.len(), page);
    match movement {
        Movement::By(by) if next == row => app.scroll[3] = app.scroll[3].saturating_add_signed(*by as isize),
        _ => app.figure = metrics.get(next).copied().unwrap_or(app.figure),
    }
}
