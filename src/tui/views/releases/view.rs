//! Draws the releases: a row for each with its metrics; below, how the release under the cursor differs from the
//! current one, and what each release changed.

use atlas_plan::estimate::{Direction, MIN_RELATIVE_CHANGE};
use ratatui::layout::Rect;

use super::{Difference, Listed, Row, lines, listed, selected, selected_release};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::alternatives::{CHANGE, Columns, FIGURE, HEADING, metrics, rule};
use crate::tui::views::results::change_style;
use crate::tui::widgets::draw::{Canvas, fit};

const VIEW: View = View::Releases;
/// Widths of a release and a date.
const RELEASE: u16 = 13;
const DATE: u16 = 12;
/// Width of the effect of a release.
const EFFECT: u16 = 8;
/// Minimum width of the view for traits next to their release, and minimum width of a trait's source.
const MIN_SIDE_BY_SIDE_WIDTH: u16 = 76;
const MIN_SOURCE_WIDTH: u16 = 12;
/// Width of a bar, and minimum width of the traits next to it.
const BAR: u16 = 18;
const TRAITS: u16 = 24;

/// Number of rows.
#[must_use]
pub fn rows(app: &App) -> usize {
    lines(&app.releases).len()
}

/// Height of the lower part: a rule, a heading and the traits.
fn below(height: u16) -> u16 {
    if height < 12 { 0 } else { (height / 3).clamp(5, 16) }
}

/// Number of visible releases for this number of lines.
#[must_use]
pub fn page(lines: usize) -> usize {
    let lines = u16::try_from(lines).unwrap_or(u16::MAX);
    usize::from(lines.saturating_sub(HEADING + below(lines)))
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let Some(row) = selected_release(app) else { return "this software has no known releases".to_owned() };
    let in_force = app.answer.scenario.as_ref().is_some_and(|scenario| scenario.software_name() == row.spec);
    let of_group = lines(&app.releases).into_iter().nth(app.view_row).map_or(1, |line| line.releases.len());
    match &row.refused {
        None if in_force && of_group > 1 => {
            format!("{} is the current release; Space lists the {of_group} with equal figures", row.spec)
        }
        None if in_force => format!("{} is the current release; j goes to earlier ones", row.spec),
        Some(why) => format!("{}: {why}; Enter sets it anyway", row.spec),
        None if of_group > 1 => {
            format!("Enter sets software={}; Space lists the {of_group} with equal figures", row.spec)
        }
        None => format!("Enter sets software={}; nothing else changes", row.spec),
    }
}

/// Draws the view.
pub fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let empty = Listed::default();
    let all = listed(app).unwrap_or(&empty);
    let title = format!("Releases of {}", if all.family.is_empty() { "the software" } else { &all.family });
    let inner = canvas.view(area, VIEW, &title, &format!("{} releases", all.rows.len()), app.tour.is_none());
    if all.rows.is_empty() {
        let text = "no known releases of this software, or the target has no accelerator";
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), text, canvas.role(Role::Dim));
        return;
    }
    let below = below(inner.height);
    let table = Rect { height: inner.height - below, ..inner };
    self::table(app, canvas, table, all);
    let height = usize::from(table.height.saturating_sub(HEADING));
    let frame = Rect { height: area.height - below, ..area };
    canvas.more(frame, app.view_scroll > 0, app.view_scroll + height < rows(app));
    if below > 0 {
        traits(app, canvas, Rect { y: table.bottom(), height: below, ..inner }, all);
    }
}

fn table(app: &App, canvas: &mut Canvas<'_>, area: Rect, all: &Listed) {
    let (heading, dim) = (canvas.role(Role::Heading), canvas.role(Role::Dim));
    let x = area.x + 2;
    // The date is dropped if there is no space for it next to the first metric and its change.
    let least = 3 + RELEASE + FIGURE + CHANGE;
    let date = if area.width >= least + DATE { DATE } else { 0 };
    canvas.text(x, area.y, RELEASE, "release", heading);
    canvas.text(x + RELEASE, area.y, date, "date", heading);
    let first = |row: &Row| row.values.first().copied().flatten();
    let now = all.current.and_then(|at| first(all.rows.get(at)?));
    let metrics: Vec<_> = metrics(app.answer.mode()).collect();
    let values = all.rows.iter().map(|row| &row.values);
    let columns = Columns::draw(canvas, (area, x + RELEASE + date), &metrics, values, now);
    let room = area.right().saturating_sub(columns.end());
    let bar = if room >= BAR + TRAITS { BAR } else { 0 };
    let traits_at = columns.end() + bar;
    let traits_width = area.right().saturating_sub(traits_at + 1);
    if traits_width >= TRAITS {
        canvas.text(traits_at, area.y, traits_width, "changed traits", heading);
    }
    let most = all.rows.iter().filter_map(first).fold(0.0, f64::max);
    let shown = lines(&app.releases);
    let height = area.height.saturating_sub(HEADING);
    for (y, (index, line)) in
        (area.y + HEADING..).zip(shown.iter().enumerate().skip(app.view_scroll)).take(height.into())
    {
        let current = all.current.is_some_and(|current| line.releases.contains(&current));
        // The releases of a group differ only in their names and dates.
        let releases = all.rows.get(line.releases.clone()).unwrap_or_default();
        let [row, ..] = releases else { continue };
        let [.., oldest] = releases else { continue };
        let mark = if current { canvas.glyphs.changed } else { "" };
        canvas.text(area.x, y, 1, mark, canvas.role(Role::Accent));
        let style = canvas.role(if current { Role::Changed } else { Role::Text });
        let (name, width) = match line.unfolded {
            // The names of a group take the place of the date.
            Some(false) if date > 0 => {
                (format!("{} – {} {}", oldest.release, row.release, canvas.glyphs.closed), RELEASE + date - 1)
            }
            Some(false) => (format!("{} {}", row.release, canvas.glyphs.closed), RELEASE - 1),
            Some(true) => (format!("{} {}", row.release, canvas.glyphs.open), RELEASE - 1),
            None => (row.release.clone(), RELEASE - 1),
        };
        canvas.text(x, y, width, &fit(&name, usize::from(width), canvas.glyphs.ellipsis), style);
        if line.unfolded != Some(false) {
            canvas.text(x + RELEASE, y, date, &row.date, dim);
        }
        columns.row(canvas, y, &row.values, row.refused.as_deref());
        cursor(canvas, (area, y), index == app.view_row);
        if row.refused.is_some() {
            continue;
        }
        if let (Some(value), true) = (first(row), bar > 0 && most > 0.0) {
            let style = canvas.role(Role::Bar1);
            canvas.segment(Rect::new(columns.end(), y, bar - 2, 1), (0.0, value / most), style);
        }
        if traits_width >= TRAITS {
            let names: Vec<&str> = oldest.brought.iter().map(|change| change.name).collect();
            let text = fit(&names.join(", "), usize::from(traits_width), canvas.glyphs.ellipsis);
            canvas.text(traits_at, y, traits_width, &text, dim);
        }
    }
}

fn cursor(canvas: &mut Canvas<'_>, (area, y): (Rect, u16), is_here: bool) {
    if is_here {
        let selection = canvas.role(Role::Selection);
        canvas.tint(Rect { y, height: 1, width: (2 + RELEASE + DATE).min(area.width), ..area }, selection);
    }
}

/// Draws the traits in which the release under the cursor differs from the current one. In the remaining space, draws
/// what this and earlier releases changed, with the effect on throughput.
fn traits(app: &App, canvas: &mut Canvas<'_>, area: Rect, all: &Listed) {
    let Some(row) = selected_release(app) else { return };
    let mut area = area;
    let current = all.current.and_then(|at| all.rows.get(at)).filter(|current| current.spec != row.spec);
    if let Some(current) = current.filter(|_| !row.differs.is_empty()) {
        let title =
            format!("{} compared with the current release {}: {}", row.release, current.release, count(&row.differs));
        let lines: Vec<Line<'_>> = row.differs.iter().map(|difference| Line { difference, step: None }).collect();
        area = list(canvas, area, &title, &lines);
    }
    let steps: Vec<Line<'_>> = all
        .rows
        .iter()
        .enumerate()
        .skip(selected(&app.releases, app.view_row).unwrap_or_default())
        .flat_map(|(at, row)| {
            // The effect is that of all changes of the release together.
            let effect = all.rows.get(at + 1).and_then(|before| effect(before, row));
            row.brought.iter().enumerate().map(move |(place, difference)| {
                let own = (place == 0).then_some((row.release.as_str(), effect));
                Line { difference, step: Some(own.unwrap_or_default()) }
            })
        })
        .collect();
    if area.height >= 3 && !steps.is_empty() {
        let throughput = metrics(app.answer.mode()).next().map_or("", |metric| metric.label);
        list(canvas, area, &format!("changes up to {} and their effect on {throughput}", row.release), &steps);
    } else if steps.is_empty() && row.differs.is_empty() {
        list(canvas, area, &format!("{}: no changes are known up to this release", row.release), &[]);
    }
}

fn count(differences: &[Difference]) -> String {
    if differences.len() == 1 { "1 trait".to_owned() } else { format!("{} traits", differences.len()) }
}

/// Returns the relative change of throughput between two releases that can both run.
fn effect(before: &Row, after: &Row) -> Option<f64> {
    let runs = |row: &Row| row.values.first().copied().flatten().filter(|_| row.refused.is_none());
    Some(runs(after)? / runs(before)? - 1.0)
}

/// A release, and the effect of its changes.
type Step<'a> = (&'a str, Option<f64>);

/// A trait that changed.
struct Line<'a> {
    difference: &'a Difference,
    /// For the first trait that a release changed: its name and the effect of all its changes. Empty for its other
    /// traits. `None` in a list that is not grouped by release.
    step: Option<Step<'a>>,
}

/// Draws a rule with a title, and below it traits with their sources. Returns the remaining area.
fn list(canvas: &mut Canvas<'_>, area: Rect, title: &str, shown: &[Line<'_>]) -> Rect {
    let (dim, value) = (canvas.role(Role::Dim), canvas.role(Role::Value));
    rule(canvas, area, title);
    let lines = area.height.saturating_sub(1);
    let seen = &shown.get(..usize::from(lines)).unwrap_or(shown);
    let widest = |of: fn(&Difference) -> &str| seen.iter().map(|line| of(line.difference).width()).max().unwrap_or(0);
    let columns = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
    let stepped = shown.iter().any(|line| line.step.is_some());
    // Releases and effects have their own columns if the traits fit next to them; otherwise they have their own lines.
    let steps = if stepped && area.width >= MIN_SIDE_BY_SIDE_WIDTH { RELEASE - 3 + EFFECT + 2 } else { 0 };
    let first = area.x + 2 + steps;
    let room = area.right().saturating_sub(first + 1);
    let arrow = if canvas.glyphs.is_ascii() { "->" } else { "→" };
    let change = columns(2 + widest(|change| &change.before) + arrow.width() + widest(|change| &change.after));
    let name = columns(2 + widest(|change| change.name)).min(room.saturating_sub(change).max(room / 2));
    let change = change.min(room - name);
    // Content of each line: a release with its effect, a trait, or both.
    let rows: Vec<(Option<Step<'_>>, Option<&Difference>)> = shown
        .iter()
        .flat_map(|line| match line.step.filter(|(release, _)| !release.is_empty()) {
            Some(step) if steps == 0 => [Some((Some(step), None)), Some((None, Some(line.difference)))],
            step => [Some((step, Some(line.difference))), None],
        })
        .flatten()
        .collect();
    for (y, (index, (step, difference))) in (area.y + 1..area.y + 1 + lines).zip(rows.iter().enumerate()) {
        if usize::from(lines) < rows.len() && index + 1 == usize::from(lines) {
            let traits = rows.iter().skip(index).filter(|(_, difference)| difference.is_some()).count();
            canvas.text(area.x + 2, y, area.width.saturating_sub(3), &format!("and {traits} more"), dim);
            break;
        }
        let x = area.x + 2;
        if let Some((release, effect)) = step {
            canvas.text(x, y, RELEASE - 3, release, canvas.role(Role::Text));
            let (text, style) = match effect {
                Some(effect) if effect.abs() >= MIN_RELATIVE_CHANGE => {
                    (format!("{:+.1} %", 100.0 * effect), change_style(canvas, Direction::Higher, *effect))
                }
                Some(_) => ("0 %".to_owned(), dim),
                None => ("–".to_owned(), dim),
            };
            canvas.right(x + RELEASE - 3, y, EFFECT, &text, style);
        }
        let Some(Difference { name: key, before, after, source }) = difference else { continue };
        let x = first;
        canvas.text(x, y, name.saturating_sub(1), key, canvas.role(Role::Text));
        canvas.text(x + name, y, change, &format!("{before} {arrow} {after}"), value);
        let x = x + name + change + 2;
        let room = area.right().saturating_sub(x + 1);
        if room >= MIN_SOURCE_WIDTH {
            canvas.text(x, y, room, source, dim);
        }
    }
    let taken = (1 + u16::try_from(rows.len()).unwrap_or(u16::MAX).min(lines)).min(area.height);
    Rect { y: area.y + taken, height: area.height - taken, ..area }
}
