//! Draws the history.

use atlas_cluster::history::Entry;
use ratatui::layout::Rect;

use super::{Page, filtered_entries, pages, selected_entry};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth;
use crate::tui::tables::state::Table;
use crate::tui::views::draw_lines;
use crate::tui::widgets::draw::{Canvas, fit};

const VIEW: View = View::History;

/// Number of lines of the page.
#[must_use]
pub fn rows(app: &App) -> usize {
    match app.history.page {
        Page::List => filtered_entries(app).len(),
        _ => page(app).len(),
    }
}

/// Draws the view.
pub fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let state = &app.history;
    let focused = app.tour.is_none();
    let Some(listed) = state.listed.answer() else {
        let inner = canvas.view(area, VIEW, "History", "", focused);
        let text = state.listed.problem().unwrap_or("reading");
        canvas.message(inner, text, canvas.role(Role::Dim));
        return;
    };
    if state.page != Page::List {
        let title = match &state.page {
            Page::Trend(_) => "History: over time",
            Page::Difference(..) => "History: difference",
            Page::List | Page::Entry(_) => "History: entry",
        };
        let inner = canvas.view(area, VIEW, title, "", focused);
        let all = page(app);
        draw_lines(canvas, inner, &all, app.view_scroll);
        canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < all.len());
        return;
    }
    let all = filtered_entries(app);
    let damaged = if listed.damaged > 0 { format!(", {} damaged files", listed.damaged) } else { String::new() };
    let remark = app.filter_remark(Table::History, all.len(), listed.entries.len());
    let remark = remark
        .unwrap_or_else(|| format!("{} {}{damaged}", all.len(), if all.len() == 1 { "entry" } else { "entries" }));
    let inner = canvas.view(area, VIEW, "History", &remark, focused);
    if all.is_empty() {
        let text = match listed.entries.is_empty() {
            true => "No entries yet. Saved predictions, submitted jobs, watched runs and measurements appear here.",
            false => "no matches; Esc shows all",
        };
        canvas.message(inner, text, canvas.role(Role::Dim));
        return;
    }
    let columns = Columns::of(inner, &all);
    let heading = canvas.role(Role::Heading);
    for (cell, title) in columns.cells().into_iter().zip(TITLES) {
        canvas.text(cell.0, inner.y, cell.1, title, heading);
    }
    canvas.right(columns.value.0, inner.y, columns.value.1, &columns.title, heading);
    let height = inner.height.saturating_sub(HEADING);
    for (line, (row, entry)) in (0..height).zip(all.iter().enumerate().skip(app.view_scroll)) {
        let y = inner.y + HEADING + line;
        let marked = state.marked.as_deref() == Some(&*entry.id);
        let style = canvas.role(if marked { Role::Mark } else { Role::Text });
        let sign = if marked { canvas.glyphs.mark } else { " " };
        canvas.text(inner.x, y, 1, sign, style);
        for ((x, width), text) in columns.cells().into_iter().zip(texts(entry)) {
            canvas.text(x, y, width, &fit(&text, usize::from(width), canvas.glyphs.ellipsis), style);
        }
        let (_, value) = figure_of(entry);
        canvas.right(columns.value.0, y, columns.value.1, &value, style);
        if row == app.view_row {
            canvas.tint(Rect { y, height: 1, ..inner }, canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(height) < all.len());
}

/// Lines above the entries.
pub const HEADING: u16 = 1;
/// Titles of the columns, except for the value, which is right-aligned.
const TITLES: [&str; 7] = ["entry", "date", "kind", "target", "workload", "figure", "software"];

const TITLE_OF_VALUE: &str = "value";

/// Returns the texts of an entry, in the order of [`TITLES`].
fn texts(entry: &Entry) -> [String; 7] {
    let name = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
    [
        entry.handle().to_owned(),
        entry.at.strftime("%m-%d %H:%M").to_string(),
        entry.kind.name().to_owned(),
        name(&entry.target),
        name(&entry.workload),
        figure_of(entry).0,
        name(&entry.software),
    ]
}

/// Returns the label of the entry's headline metric, and its value with unit.
fn figure_of(entry: &Entry) -> (String, String) {
    entry.headline().map_or_else(Default::default, |(name, value)| {
        let (label, shown) = pages::figure(name, &[value]);
        (label.into_owned(), shown.concat())
    })
}

/// First column and width of each cell; hidden cells have width 0.
struct Columns {
    texts: [(u16, u16); 7],
    value: (u16, u16),
    /// Heading of the values.
    title: String,
}

/// Indices into [`TITLES`] of the columns that are dropped from a narrow list, least informative first.
const DROP_ORDER: [usize; 4] = [6, 5, 0, 2];
const DATE: usize = 1;
const TARGET: usize = 3;
const WORKLOAD: usize = 4;
/// Minimum width of a truncated name.
const MIN_NAME_WIDTH: u16 = 8;

impl Columns {
    fn of(inner: Rect, all: &[&Entry]) -> Columns {
        let gap = if inner.width < 100 { 1 } else { 2 };
        let columns = |width: usize, most: u16| u16::try_from(width).unwrap_or(u16::MAX).min(most) + gap;
        let mut longest = TITLES.map(TextWidth::width);
        for entry in all {
            for (longest, text) in longest.iter_mut().zip(texts(entry)) {
                *longest = (*longest).max(text.width());
            }
        }
        let mut widths = longest.map(|width| columns(width, 30));
        // If all entries have the same metric, it is the heading of the values, which helps when its column is dropped.
        let mut figures = all.iter().map(|entry| figure_of(entry).0);
        let first = figures.next().unwrap_or_default();
        let title = if figures.all(|other| other == first) { first } else { TITLE_OF_VALUE.to_owned() };
        let values = all.iter().map(|entry| figure_of(entry).1.width()).chain([title.width()]);
        let value = columns(values.max().unwrap_or_default(), 20);
        let room = inner.width.saturating_sub(2 + value);
        for place in DROP_ORDER {
            if widths.iter().sum::<u16>() > room
                && let Some(width) = widths.get_mut(place)
            {
                *width = 0;
            }
        }
        // Next, the names of workload and target are truncated. If that is not enough, the date is dropped.
        let least: u16 = [WORKLOAD, TARGET]
            .into_iter()
            .filter_map(|place| widths.get(place))
            .map(|width| (*width).min(MIN_NAME_WIDTH + gap))
            .sum();
        if widths.iter().sum::<u16>() > room
            && let Some(date) = widths.get_mut(DATE)
            && *date + least > room
        {
            *date = 0;
        }
        for place in [WORKLOAD, TARGET] {
            let over = widths.iter().sum::<u16>().saturating_sub(room);
            if let Some(width) = widths.get_mut(place) {
                *width = width.saturating_sub(over).max((MIN_NAME_WIDTH + gap).min(*width));
            }
        }
        let title = if widths.get(5).is_some_and(|width| *width > 0) { TITLE_OF_VALUE.to_owned() } else { title };
        let mut x = inner.x + 1;
        let mut take = |width: u16| {
            let cell = (x, width.saturating_sub(gap));
            x += width;
            cell
        };
        let [entry, date, kind, target, workload, figure, software] = widths;
        let (entry, date, kind) = (take(entry), take(date), take(kind));
        let (target, workload, figure) = (take(target), take(workload), take(figure));
        let value = take(value);
        let texts = [entry, date, kind, target, workload, figure, take(software)];
        Columns { texts, value, title }
    }

    fn cells(&self) -> [(u16, u16); 7] {
        self.texts
    }
}

/// Returns the lines of a page other than the list.
fn page(app: &App) -> Vec<pages::Line> {
    // The frame and a column of padding on either side.
    pages::page(app, usize::from(app.size.0.saturating_sub(4)))
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let marked = app.history.marked.is_some();
    match (&app.history.page, selected_entry(app)) {
        (Page::List, Some(entry)) if marked => format!("Enter compares with the marked entry; {}", entry.id),
        (Page::List, Some(entry)) => {
            let (label, value) = figure_of(entry);
            format!("{} {}: {label} {value}; {}", entry.kind.name(), entry.handle(), entry.origin.command.join(" "))
        }
        (Page::Entry(_), Some(entry)) if entry.kind == atlas_cluster::history::EntryKind::Submission => {
            "Enter watches the job; Esc goes back".to_owned()
        }
        (Page::List, None) => "predictions, jobs, runs and measurements".to_owned(),
        _ => "Esc goes back to the list".to_owned(),
    }
}
