//! Draws the comparison of targets: columns are targets and rows metrics or, if not all targets fit, rows are targets
//! and columns metrics. The best value of each metric is marked, with ratios to the reference.

mod columns;
mod list;

use std::sync::Arc;

use crate::theme::Role;
use crate::tui::app::{Answer, App, View};
use crate::tui::tables::state::Table;
use crate::tui::views::layout;
use crate::tui::widgets::draw::{Canvas, wrap};
use ratatui::layout::Rect;
use ratatui::style::Style;

use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_plan::estimate::standing::{Rank, ValueWithInterval, ranks, value_with_interval};
use atlas_plan::estimate::{Direction, Metric, MetricId, Scale, Section};
use atlas_plan::search::methodology::{mixed_calibrations, mixed_prices, price_type, prices_prevent_ranking};

/// Widths of a metric's name and of its unit.
const LABEL: u16 = 25;
const UNIT: u16 = 8;
const MIN_COLUMN: u16 = 18;
const MAX_COLUMN: u16 = 30;
/// Maximum and minimum width of a bar next to the numbers.
const BAR: u16 = 24;
const MIN_BAR: u16 = 8;

/// A row of the table of columns.
enum Row {
    Heading(&'static str),
    Metric(&'static Metric),
    Problem(String),
}

/// Returns the chosen metrics, or all, without those that are absent or zero in every column.
pub fn metrics(app: &App) -> impl Iterator<Item = &'static Metric> {
    let says = |(_, answer): &(Arc<str>, Answer), metric: &Metric| {
        let applies = answer.scenario.as_ref().is_some_and(|scenario| metric.applies_to(scenario));
        applies && answer.value(metric).is_some_and(|value| value != 0.0)
    };
    let known = move |metric: &&'static Metric| app.columns.iter().any(|column| says(column, metric));
    // If no chosen metric applies, all are shown.
    let chosen = app.chosen.of(app.answer.mode()).filter(|chosen| chosen.iter().any(&known));
    let usual = chosen.is_none().then(|| Metric::by_importance(app.answer.mode()).filter(known));
    let own = chosen.unwrap_or_default().iter().copied().filter(known);
    usual.into_iter().flatten().chain(own)
}

/// Returns the engine of the reference. Only its metrics are compared.
fn engine(app: &App) -> Option<Engine> {
    let (_, answer) = app.columns.get(app.reference_column())?;
    Some(answer.scenario.as_ref()?.engine)
}

/// Whether the metrics of a column come from the same engine as those of the reference.
fn compares(app: &App, answer: &Answer) -> bool {
    let of = answer.scenario.as_ref().map(|scenario| scenario.engine);
    of.is_none() || of == engine(app)
}

/// Whether the columns cannot be ranked by a metric, because their prices are of different types.
fn is_unranked(app: &App, metric: &Metric) -> bool {
    prices_prevent_ranking(metric, app.columns.iter().filter_map(|(_, answer)| answer.scenario.as_ref()))
}

/// Returns the value of the reference to which the columns have ratios, and the type of its price if only columns with a
/// price of the same type have one.
fn base(app: &App, metric: &Metric) -> Option<(f64, Option<&'static str>)> {
    let (_, reference) = app.columns.get(app.reference_column())?;
    let price = is_unranked(app, metric).then(|| reference.scenario.as_ref().map(price_type)).flatten();
    Some((reference.value(metric)?, price))
}

/// Returns the ratio of a column to the reference, if they are comparable.
fn ratio(
    app: &App,
    metric: &Metric,
    (base, price): (f64, Option<&'static str>),
    (index, answer): (usize, &Answer),
) -> Option<f64> {
    let same_price = price.is_none() || answer.scenario.as_ref().map(price_type) == price;
    let compared = base != 0.0 && index != app.reference_column() && compares(app, answer) && same_price;
    answer.value(metric).filter(|_| compared).map(|value| value / base)
}

/// Returns the unit and the number of digits of a metric for all columns.
fn scale(columns: &[(Arc<str>, Answer)], metric: &Metric) -> Scale {
    Scale::of(metric, columns.iter().filter_map(|(_, answer)| answer.value(metric)))
}

/// Returns the index of the metric under the cursor.
#[must_use]
pub fn metric_index(app: &App) -> usize {
    metrics(app).position(|metric| metric == app.figure).unwrap_or_default()
}

/// Whether the targets do not fit as columns, so that they are rows.
#[must_use]
pub fn is_list(app: &App) -> bool {
    let room = layout::areas(app).body.width.saturating_sub(LABEL + 2);
    app.columns.len() > usize::from(room / MIN_COLUMN).max(1)
}

fn build(app: &App, width: u16) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut section = None;
    let headlines: Vec<&Metric> = Metric::headlines(app.answer.mode()).collect();
    let chosen = app.chosen.of(app.answer.mode()).is_some();
    for metric in metrics(app) {
        let name = match () {
            () if chosen => "chosen figures",
            () if headlines.contains(&metric) => "key figures",
            () => metric.section.name(),
        };
        if section != Some(name) {
            rows.push(Row::Heading(name));
            section = Some(name);
        }
        rows.push(Row::Metric(metric));
    }
    for (name, answer) in &app.columns {
        let complaint = match (&answer.outcome, answer.detail()) {
            (Err(complaint), _) => complaint.clone(),
            (_, Some(detail)) if !detail.verdict.fits() => detail.verdict.describe(),
            _ => continue,
        };
        let text = format!("{name}: {complaint}");
        rows.extend(wrap(&text, usize::from(width.saturating_sub(4))).into_iter().map(Row::Problem));
    }
    rows
}

/// Lines above the rows.
pub const HEADING: u16 = 2;

/// Number of rows, including the two heading lines.
#[must_use]
pub fn rows(app: &App) -> usize {
    if is_list(app) { app.columns.len() + 2 } else { build(app, layout::areas(app).body.width).len() + 2 }
}

/// Returns the line of the item under the cursor, counted below the heading lines.
#[must_use]
pub fn cursor_line(app: &App) -> usize {
    if is_list(app) {
        return app.column;
    }
    let all = build(app, layout::areas(app).body.width);
    let here = |row: &Row| matches!(row, Row::Metric(metric) if *metric == app.figure);
    let line = all.iter().position(here).unwrap_or_default();
    // The first metric is shown with its heading.
    if line == 1 { 0 } else { line }
}

/// Returns the width of a target's column.
fn column_width(columns: usize, width: u16) -> u16 {
    let columns = u16::try_from(columns.max(1)).unwrap_or(u16::MAX);
    (width.saturating_sub(LABEL + 2) / columns).min(MAX_COLUMN + BAR)
}

/// Returns the width of the bars in a column of this width.
fn bar_width(width: u16) -> u16 {
    let room = width.saturating_sub(MAX_COLUMN);
    if room >= MIN_BAR { room } else { 0 }
}

/// Returns the metric whose heading or row label is at a screen position.
#[must_use]
pub fn metric_at(app: &App, x: u16, y: u16) -> Option<&'static Metric> {
    let body = layout::areas(app).body;
    if is_list(app) {
        return list::heading_at(app, body, x, y);
    }
    let line = usize::from(y.checked_sub(body.y + 3)?) + app.view_scroll;
    match build(app, body.width).get(line).filter(|_| (body.x..body.x + 1 + LABEL).contains(&x))? {
        Row::Metric(metric) => Some(metric),
        _ => None,
    }
}

/// Returns the index of the target at a screen position.
#[must_use]
pub fn column_at(app: &App, x: u16, y: u16) -> Option<usize> {
    let body = layout::areas(app).body;
    let index = if is_list(app) {
        usize::from(y.checked_sub(body.y + 3)?) + app.view_scroll
    } else {
        usize::from(x.checked_sub(body.x + 1 + LABEL)? / column_width(app.columns.len(), body.width).max(1))
    };
    (index < app.columns.len()).then_some(index)
}

/// Returns the standing of each column in a metric, according to the intervals. Scenarios that do not fit and other
/// engines are not ranked. Latencies and rates without their own interval are at least as uncertain as the key metric
/// they follow.
fn column_ranks(app: &App, metric: &Metric) -> Vec<Rank> {
    let mut all = column_ranks_in(app, metric);
    let follows = match (metric.section, app.answer.mode()) {
        // Memory limits it, not speed.
        _ if metric.id == MetricId::MaxConcurrency => return all,
        (Section::Latency, Mode::Inference) => MetricId::TpotMs.metric(),
        (Section::Latency, Mode::Training) => MetricId::StepTimeMs.metric(),
        (Section::Throughput, _) => MetricId::TokensPerSec.metric(),
        _ => return all,
    };
    let has_own = |answer: &Answer| match (&answer.scenario, &answer.outcome) {
        (Some(scenario), Ok(estimate)) => metric.interval(estimate, scenario).is_some(),
        _ => false,
    };
    if all.contains(&Rank::Best) && !app.columns.iter().any(|(_, answer)| has_own(answer)) {
        let known = column_ranks_in(app, follows);
        let tied = all.iter_mut().zip(known).filter(|(_, known)| *known == Rank::Tied);
        tied.for_each(|(standing, _)| *standing = Rank::Tied);
    }
    all
}

/// Returns the standing of each column according to the intervals of this metric.
fn column_ranks_in(app: &App, metric: &Metric) -> Vec<Rank> {
    let figure = |answer: &Answer| {
        let (scenario, estimate) = (answer.scenario.as_ref()?, answer.outcome.as_ref().ok()?);
        (answer.fits() && compares(app, answer)).then(|| value_with_interval(metric, scenario, estimate)).flatten()
    };
    if is_unranked(app, metric) {
        return vec![Rank::Unmarked; app.columns.len()];
    }
    let figures: Vec<_> = app.columns.iter().map(|(_, answer)| figure(answer)).collect();
    let mut all = ranks(&figures, metric.better);
    // If the best value is displayed with the same three digits as another, both are tied.
    let best = all.iter().position(|standing| *standing == Rank::Best).and_then(|best| figures.get(best)?.as_ref());
    if let Some(best) = best.map(|best| best.value) {
        let alike = |figure: &Option<ValueWithInterval>| figure.as_ref().is_some_and(|at| is_one(at.value / best));
        if figures.iter().filter(|figure| alike(figure)).count() > 1 {
            let same = all.iter_mut().zip(&figures).filter(|(_, figure)| alike(figure));
            same.for_each(|(standing, _)| *standing = Rank::Tied);
        }
    }
    all
}

/// Marks of the best value, and of those tied with it.
const BEST: &str = "*";
const TIED: &str = "=";

/// Returns the mark after a value.
fn sign(standing: Option<&Rank>) -> &'static str {
    match standing {
        Some(Rank::Best) => BEST,
        Some(Rank::Tied) => TIED,
        _ => "",
    }
}

/// Describes the value under the cursor with its interval.
fn under_cursor(app: &App) -> Option<String> {
    let (name, answer) = app.columns.get(app.column)?;
    let metric = metrics(app).nth(metric_index(app))?;
    let (scenario, estimate) = (answer.scenario.as_ref()?, answer.outcome.as_ref().ok()?);
    let value = answer.value(metric)?;
    // Value and interval in the unit of the row.
    let scale = scale(&app.columns, metric);
    let range = metric.interval(estimate, scenario).filter(|(low, high)| low < high);
    let range = range.map_or_else(String::new, |(low, high)| format!(" ({}, 90 % range)", scale.interval(low, high)));
    Some(format!("{name}: {} {}{range}", metric.label, scale.with_unit(value)))
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let order = match app.order {
        Some(metric) => format!("best {} first (o: file order)", metric.label),
        None => "o sorts".to_owned(),
    };
    let complaint = app.columns.get(app.column).and_then(|(name, answer)| match (&answer.outcome, answer.detail()) {
        (Err(complaint), _) => Some(format!("{name}: {complaint}")),
        (_, Some(detail)) if !detail.verdict.fits() => Some(format!("{name}: {}", detail.verdict.describe())),
        _ => None,
    });
    // Until a simulation has run, the analytical estimate is shown.
    let closed =
        if app.columns.iter().any(|(_, answer)| answer.pending) { "~ closed form, not simulated yet; " } else { "" };
    let others = if app.columns.iter().any(|(_, answer)| !compares(app, answer)) {
        "; ! different engine: not comparable"
    } else {
        ""
    };
    let scenarios = app.columns.iter().filter_map(|(_, answer)| answer.scenario.as_ref());
    let prices =
        if mixed_prices(scenarios).is_some() { "; $ not ranked: price types differ, set price_basis" } else { "" };
    let estimates = app.columns.iter().filter_map(|(name, answer)| Some((&**name, answer.outcome.as_ref().ok()?)));
    let calibrated = if mixed_calibrations(estimates).is_some() { "; not all are calibrated" } else { "" };
    let marks =
        || format!("{closed}* best, = tied with it; × = ratio to reference (b); {order}{others}{prices}{calibrated}");
    complaint.unwrap_or_else(|| match under_cursor(app) {
        Some(figure) => format!("{figure}; {}", marks()),
        None => marks(),
    })
}

/// Draws the view.
pub fn compare(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let marked = app.now.marks.len();
    let remark =
        if marked < 2 { "all targets; mark two or more to choose".to_owned() } else { format!("{marked} marked") };
    let remark = app.filter_remark(Table::Compare, app.columns.len(), app.columns_of()).unwrap_or(remark);
    let title = format!("Compare {}: same knobs on all targets", app.now.setup.workload);
    let inner = canvas.view(area, View::Compare, &title, &remark, app.tour.is_none());
    if app.columns.is_empty() {
        let dim = canvas.role(Role::Dim);
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), "no matches; Esc shows all", dim);
        return;
    }
    if is_list(app) { list::list(app, canvas, area, inner) } else { columns::columns(app, canvas, area, inner) }
}

/// Draws a right-aligned number with its mark.
fn number(canvas: &mut Canvas<'_>, cell: Rect, text: &str, style: Style, sign: &str) {
    let width = cell.width.saturating_sub(1);
    canvas.right(cell.x, cell.y, width, text, style);
    let style = if sign == TIED { canvas.role(Role::Dim) } else { style };
    canvas.text(cell.x + width, cell.y, 1, sign, style);
}

/// Width of a ratio, if there is space.
const RATIO: u16 = 8;

/// Formats a ratio: three digits, or fewer if it is close to zero.
fn ratio_text(ratio: f64, width: u16) -> String {
    let least = if width >= RATIO { 0.0001 } else { 0.001 };
    let digits = match ratio.abs() {
        size if size >= 10.0 * least => 3,
        size if size >= least => 2,
        _ => return format!("<×{least}"),
    };
    format!("×{}", units::significant(ratio, digits))
}

/// Whether a ratio is 1.00 in three digits.
fn is_one(ratio: f64) -> bool {
    (ratio - 1.0).abs() < 0.005
}

/// Returns the style of a ratio: dim if it is 1.00 in three digits.
fn ratio_style(canvas: &Canvas<'_>, better: Direction, ratio: f64) -> Style {
    if is_one(ratio) {
        return canvas.role(Role::Dim);
    }
    crate::tui::views::results::change_style(canvas, better, ratio - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::TestApp;
    use atlas_document::Sources;

    #[test]
    fn comparison_does_not_rank_prices_of_different_types() {
        let mut hands = TestApp::of(&Sources::built_in());
        hands.keys(":serve 70b<Enter>").work();
        hands.keys(&format!("{}", 'C'));
        let app = &hands.app;
        assert_eq!(app.view, View::Compare);
        let cost = MetricId::DollarPer1mTokens.metric();
        assert!(column_ranks(app, cost).iter().all(|rank| *rank == Rank::Unmarked));
        assert!(column_ranks(app, MetricId::TokensPerSec.metric()).iter().any(|rank| *rank != Rank::Unmarked));
        let types = |with_ratio: bool| {
            let base = base(app, cost).filter(|(value, _)| *value > 0.0);
            let columns = app.columns.iter().enumerate();
            let shown = columns.filter(|(index, (_, answer))| {
                let ratio = base.and_then(|base| ratio(app, cost, base, (*index, answer)));
                *index != app.reference_column() && answer.value(cost).is_some() && ratio.is_some() == with_ratio
            });
            let types = shown.filter_map(|(_, (_, answer))| answer.scenario.as_ref().map(price_type));
            types.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(types(true).len(), 1, "only prices of the reference's type");
        assert!(!types(false).is_empty() && types(false).is_disjoint(&types(true)), "{:?}", types(false));
        assert!(info(app).contains("set price_basis"), "{}", info(app));
    }

    #[test]
    fn ratio_text_fits_its_column_for_any_value() {
        let sizes = [1.0, 7.694, 81.5, 999.5, 0.574, 0.00382, 0.000_911, 0.000_091_1, 1e-9, 0.0];
        for ratio in sizes {
            for width in [RATIO - 1, RATIO] {
                let text = ratio_text(ratio, width);
                assert!(text.chars().count() <= usize::from(width), "{ratio}: {text}");
            }
        }
        assert_eq!((ratio_text(0.574, 8), ratio_text(0.000_911, 8)), ("×0.574".to_owned(), "×0.00091".to_owned()));
        assert_eq!((ratio_text(0.574, 7), ratio_text(0.000_911, 7)), ("×0.574".to_owned(), "<×0.001".to_owned()));
    }
}
