//! Draws the ranking, with the constraint bar above.

use ratatui::layout::Rect;

use super::entry::{margin, tied_rows};
use super::layout::layout;
use super::table::{BARELY_MET_SIGN, Columns, NARROW, Table};
use super::{
    ChosenLayout, Entry, Outcome, Race, is_ranked_by_price_type, is_running, objective, places, question, ranked,
};
use crate::theme::{Glyphs, Role};
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::{Canvas, middle};
use atlas_config::Mode;
use atlas_plan::estimate::{Metric, MetricId, Scale};
use atlas_plan::search::Condition;
use atlas_plan::search::methodology::{mixed_calibrations, mixed_prices, price_type};
use atlas_plan::search::optimize::HEADROOM;

/// Lines above the rows: the constraint bar, the headings and their units.
pub const HEADING: u16 = 3;
/// Legend of the mark of a metric that barely meets its constraint.
const NEAR_BOUND_LEGEND: &str = "! within 5 % of a bound";
/// Says why ranks begin anew for each type of price, and how to compare prices of one type.
const RANKED_BY_PRICE_TYPE: &str = "ranked for each price type; choose one with price_basis";

/// Whether TTFT or end-to-end latency is bounded; always true in training. Without a bound, the layouts with the best
/// throughput and cost have long waiting times.
fn is_latency_bounded(app: &App) -> bool {
    const BOUNDING: [&Metric; 5] = [
        MetricId::TtftMs.metric(),
        MetricId::TtftP99Ms.metric(),
        MetricId::P50Ms.metric(),
        MetricId::P95Ms.metric(),
        MetricId::P99Ms.metric(),
    ];
    let bounds =
        |condition: &Condition| matches!(condition, Condition::Metric(metric, ..) if BOUNDING.contains(metric));
    app.answer.mode() == Mode::Training
        || BOUNDING.contains(&objective(app))
        || question(app).constraints.iter().any(bounds)
}

/// Says that the entries cannot be compared directly: only some are calibrated, or their prices are of several types.
fn mixed(race: &Race) -> Option<String> {
    let picks = || race.entries.iter().filter_map(|entry| Some((&*entry.name, entry.pick()?)));
    let notes = [
        mixed_calibrations(picks().map(|(name, pick)| (name, &pick.estimate))),
        mixed_prices(picks().map(|(_, pick)| &pick.scenario)),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Draws the view.
pub fn race(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let race = &app.race;
    let (done, all) = (race.entries.len(), race.lanes.len());
    let remark = match app.queries.race.problem() {
        Some(trouble) => trouble.to_owned(),
        None if is_running(app) => format!("{done} of {all} searched"),
        None if is_ranked_by_price_type(app) => RANKED_BY_PRICE_TYPE.to_owned(),
        None if !is_latency_bounded(app) => "no bound on TTFT; consider adding ttft<2s".to_owned(),
        None if question(app).hardware.is_empty() && app.now.marks.len() < 2 => {
            format!("{}; mark two or more to choose", counted(app, all))
        }
        None => mixed(race).unwrap_or_else(|| counted(app, all)),
    };
    let just = !is_running(app) && race.entries.iter().any(|entry| barely_met(app, entry).is_some());
    let remark = if just { format!("{remark}; {NEAR_BOUND_LEGEND}") } else { remark };
    let workload = &app.now.setup.workload;
    let title = format!("Race {workload}: best layout per target");
    // If the title does not fit, advice about the question has priority over the name of the view.
    let first = remark.split("; ").next().unwrap_or_default();
    let titles = [(title, remark.as_str()), (format!("Race {workload}"), first), ("Race".to_owned(), "")];
    let fits = |(title, remark): &&(String, &str)| title.width() + remark.width() + 10 <= usize::from(area.width);
    let title = titles.iter().find(fits).map_or("Race", |(title, _)| title);
    let inner = canvas.view(area, View::Race, title, &remark, app.tour.is_none());
    if inner.height <= HEADING {
        return;
    }
    bar(app, canvas, inner);
    let rows = ranked(app);
    if rows.is_empty() && (race.problem.is_some() || all == 0) {
        let text = race.problem.as_deref().unwrap_or("no targets");
        let style = canvas.role(if race.problem.is_some() { Role::Error } else { Role::Dim });
        canvas.text(inner.x + 1, inner.y + 1, inner.width.saturating_sub(2), text, style);
        return;
    }
    let table = Table::of(app, inner, &rows);
    table.headings(canvas, inner.y + 1);
    let height = inner.height - HEADING;
    let places = places(app, &rows);
    let shown = rows.iter().zip(places).enumerate().skip(app.view_scroll);
    for (line, (index, (entry, (place, ties)))) in (0..height).zip(shown) {
        let y = inner.y + HEADING + line;
        rank(&app.glyphs, canvas, (inner.x, y), place, entry, ties);
        table.row(canvas, y, entry, place == 0);
        if index == app.view_row {
            let width = table.columns.value + table.columns.objective - inner.x;
            canvas.tint(Rect::new(inner.x, y, width, 1), canvas.role(Role::Selection));
        }
    }
    waiting(app, canvas, &table.columns, Rect { y: inner.y + HEADING, height, ..inner }, rows.len());
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(height) < rows.len());
}

/// Draws the targets without a result below the ranked ones.
fn waiting(app: &App, canvas: &mut Canvas<'_>, columns: &Columns, list: Rect, ranked: usize) {
    if !is_running(app) {
        return;
    }
    let dim = canvas.role(Role::Dim);
    let from = list.y + u16::try_from(ranked.saturating_sub(app.view_scroll)).unwrap_or(list.height);
    for (y, (nth, lane)) in (from..list.bottom()).zip(app.race.lanes.iter().skip(ranked).enumerate()) {
        let name = middle(&lane.target, usize::from(columns.value - columns.name - 1), app.glyphs.ellipsis);
        canvas.text(columns.name, y, columns.value - columns.name, &name, dim);
        if nth == 0 {
            let x = columns.value + 1;
            canvas.text(x, y, list.right().saturating_sub(x), "searching", dim);
        }
    }
}

/// Formats the number of targets and how many are tied for first place.
fn counted(app: &App, all: usize) -> String {
    let targets = if all == 1 { "target" } else { "targets" };
    match tied_rows(&ranked(app), objective(app)) {
        0 | 1 => format!("{all} {targets}"),
        ties => format!("{all} {targets}, first {ties} tied"),
    }
}

/// Returns what the best layout of a target barely meets: a constraint, or the memory capacity.
fn barely_met(app: &App, entry: &Entry) -> Option<String> {
    let Outcome::Best(pick) = &entry.outcome else { return None };
    let narrow = |condition: &Condition| margin(pick, condition).is_some_and(|margin| margin < NARROW);
    let kept = question(app).constraints.into_iter().find(narrow).map(|condition| format!("just meets {condition}"));
    kept.or_else(|| {
        let headroom = MetricId::Headroom.metric();
        let free = pick.value(headroom).filter(|free| *free < HEADROOM)?;
        Some(format!("only {} of device memory is free", headroom.show(free)))
    })
}

/// Draws the constraint bar.
fn bar(app: &App, canvas: &mut Canvas<'_>, inner: Rect) {
    let (key, input, value) = (canvas.role(Role::Key), canvas.role(Role::Input), canvas.role(Role::Value));
    let hint = if app.race.typing.is_some() { "Enter runs it, Esc cancels" } else { "/ edits" };
    let hint_width = u16::try_from(hint.width() + 2).unwrap_or_default();
    let width = inner.width.saturating_sub(hint_width + 4);
    canvas.text(inner.x + 1, inner.y, 1, canvas.glyphs.closed, key);
    match &app.race.typing {
        Some((line, _)) => canvas.typed(inner.x + 3, inner.y, width, line, input),
        None => {
            canvas.text(inner.x + 3, inner.y, width, &question(app).to_string(), value);
        }
    }
    let dim = canvas.role(Role::Hint);
    canvas.right(inner.x, inner.y, inner.width.saturating_sub(1), hint, dim);
}

/// Draws the rank, and a bracket along the rows that are tied with the first.
fn rank(glyphs: &Glyphs, canvas: &mut Canvas<'_>, (x, y): (u16, u16), index: usize, entry: &Entry, ties: usize) {
    let (text, role) = match entry.outcome {
        Outcome::Best(_) => (format!("{}", index + 1), if index == 0 { Role::Best } else { Role::Text }),
        Outcome::Violates(..) => (glyphs.cross.to_owned(), Role::Error),
        Outcome::Refused(_) => (glyphs.bullet.to_owned(), Role::Dim),
    };
    let style = canvas.role(role);
    canvas.right(x, y, 3, &text, style);
    if ties > 1 && index < ties {
        let [_, vertical, top, _, bottom, _] = glyphs.border;
        let glyph = if index == 0 {
            top
        } else if index + 1 == ties {
            bottom
        } else {
            vertical
        };
        let accent = canvas.role(Role::Accent);
        canvas.text(x + 3, y, 1, glyph, accent);
    }
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    if let Some((_, Some(error))) = &app.race.typing {
        return error.clone();
    }
    let Some(entry) = super::entry_under_cursor(app) else {
        return "best layout of each target under the constraints".to_owned();
    };
    let metric = objective(app);
    // A warning needs the room of the interval and the evidence, which the row shows as well.
    let just = barely_met(app, entry);
    let of = |pick: &ChosenLayout| match pick.interval(metric).filter(|_| just.is_none()) {
        Some((low, high)) => {
            let scale = Scale::of(metric, pick.value(metric).into_iter());
            format!("{} {}", metric.label, scale.interval_in_words(low, high))
        }
        None => {
            let value = pick.value(metric).map_or_else(|| "–".to_owned(), |value| metric.brief(value));
            format!("{} {value}", metric.label)
        }
    };
    match &entry.outcome {
        Outcome::Best(pick) => {
            let evidence = pick.evidence.as_ref().filter(|_| just.is_none()).map_or_else(String::new, |support| {
                let error = support.nearest.as_ref().filter(|near| near.comparable).map(|near| 100.0 * near.error);
                match (support.all.rows, error) {
                    (0, _) => "; no measured rows".to_owned(),
                    (rows, None) => format!("; {rows} rows"),
                    (rows, Some(error)) => format!("; {rows} rows, error {error:+.0} %"),
                }
            });
            let just = just.as_ref().map_or_else(String::new, |what| format!("; {BARELY_MET_SIGN} {what}"));
            let price = match is_ranked_by_price_type(app) {
                true => format!(", {} price", price_type(&pick.scenario)),
                false => String::new(),
            };
            format!("{}{price}: {}; {}{just}{evidence}", entry.name, layout(pick), of(pick))
        }
        Outcome::Violates(pick, condition) => {
            let nearest = match condition {
                Condition::Metric(metric, ..) => {
                    let value = pick.value(metric).map_or_else(|| "–".to_owned(), |value| metric.show(value));
                    format!("{} {value}", metric.label)
                }
                other => other.to_string(),
            };
            format!("{}: no layout meets {condition}; the closest one has {nearest}", entry.name)
        }
        Outcome::Refused(why) => format!("{}: {why}", entry.name),
    }
}
