//! The history on the screen.

use atlas_cluster::history::{Entry, chain};
use atlas_plan::estimate::Metric;
use atlas_report::Format;
use ratatui::layout::Rect;

use super::{Page, entry, here, shown};
use crate::cli::history as text;
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::panels::{Panel, lines, wrapped};
use crate::tui::tables::Table;
use crate::tui::theme::Role;
use crate::tui::view::draw::{Canvas, fit};

const VIEW: View = View::Panel(Panel::History);

/// Lines of the page.
#[must_use]
pub fn rows(app: &App) -> usize {
    match app.panels.history.page {
        Page::List => shown(app).len(),
        _ => page(app).len(),
    }
}

/// Draws the view.
pub fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let state = &app.panels.history;
    let focused = app.tour.is_none();
    let Some(listed) = state.listed.answer() else {
        let inner = canvas.view(area, VIEW, "History", "", focused);
        let text = state.listed.trouble().unwrap_or("reading");
        canvas.text(inner.x + 1, inner.y, inner.width.saturating_sub(2), text, canvas.role(Role::Dim));
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
        lines(app, canvas, inner, &all);
        canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < all.len());
        return;
    }
    let all = shown(app);
    let damaged = if listed.damaged > 0 { format!(", {} files are damaged", listed.damaged) } else { String::new() };
    let remark = app.filter_remark(Table::History, all.len(), listed.entries.len());
    let remark = remark
        .unwrap_or_else(|| format!("{} {}{damaged}", all.len(), if all.len() == 1 { "entry" } else { "entries" }));
    let inner = canvas.view(area, VIEW, "History", &remark, focused);
    if all.is_empty() {
        let text = if listed.entries.is_empty() { "no entries yet" } else { "nothing matches; Esc shows all" };
        canvas.text(inner.x + 1, inner.y, inner.width, text, canvas.role(Role::Dim));
    }
    let height = usize::from(inner.height);
    for (line, (row, entry)) in (0..inner.height).zip(all.iter().enumerate().skip(app.view_scroll)) {
        let y = inner.y + line;
        let marked = state.marked.as_deref() == Some(&*entry.id);
        let style = canvas.role(if marked { Role::Mark } else { Role::Text });
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), &row_text(entry, inner.width, marked), style);
        if row == app.view_row {
            canvas.tint(Rect { y, height: 1, ..inner }, canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + height < all.len());
}

/// One entry in a line: what is most looked for comes first, what has no room is left out.
fn row_text(entry: &Entry, width: u16, marked: bool) -> String {
    let name = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let figure = text::headline(entry).map_or_else(String::new, |(name, value)| match Metric::named(name) {
        Some(metric) => format!("{} {}", metric.label, metric.show(value)),
        None => format!("{name} {}", text::number(name, value)),
    });
    let mark = if marked { "*" } else { " " };
    let (target, workload) = (name(&entry.target), name(&entry.workload));
    let wide = usize::from(width.saturating_sub(2));
    let head = format!("{mark}{} {} {:<11} ", entry.handle(), entry.at.strftime("%m-%d %H:%M"), entry.kind.name());
    if wide < 100 {
        let room = wide.saturating_sub(head.width() + figure.width() + 1);
        let names = fit(&format!("{target} {workload}"), room, "…");
        return format!("{head}{names}{}{figure}", " ".repeat(room.saturating_sub(names.width()) + 1));
    }
    let (a, b) = if wide < 140 { (16, 21) } else { (24, 30) };
    let (target, workload, figure) = (fit(&target, a, "…"), fit(&workload, b, "…"), fit(&figure, 22, "…"));
    format!("{head}{target:<a$} {workload:<b$} {figure:<22} {}", name(&entry.software))
}

/// The lines of a page that is no list.
fn page(app: &App) -> Vec<(Role, String)> {
    let Some(listed) = app.panels.history.listed.answer() else { return Vec::new() };
    let all = &listed.entries;
    let written = match &app.panels.history.page {
        Page::List => return Vec::new(),
        Page::Entry(id) => entry(app, id).map(|entry| text::show(entry, &chain(all, entry), Format::Table)),
        Page::Difference(first, second) => entry(app, first).zip(entry(app, second)).map(|(first, second)| {
            let (first, second) = if first.at <= second.at { (first, second) } else { (second, first) };
            text::compared::diff(first, second, &chain(all, first), Format::Table)
        }),
        Page::Trend(id) => entry(app, id).and_then(|entry| {
            let (figure, _) = text::headline(entry)?;
            // What may be compared: runs and predictions of the same target and workload.
            let same = |other: &&Entry| (&other.target, &other.workload) == (&entry.target, &entry.workload);
            let same: Vec<Entry> = all.iter().filter(same).cloned().collect();
            Some(text::compared::trend(&same, figure, Format::Table, app.size.0 >= 100))
        }),
    };
    match written {
        Some(Ok(text)) => wrapped(app, text.lines().map(|line| (Role::Text, line.to_owned())).collect()),
        Some(Err(error)) => vec![(Role::Error, error.to_string())],
        None => vec![(Role::Dim, "nothing to show".to_owned())],
    }
}

/// The information line.
#[must_use]
pub fn info(app: &App) -> String {
    let marked = app.panels.history.marked.is_some();
    match (&app.panels.history.page, here(app)) {
        (Page::List, Some(entry)) if marked => format!("Enter: what differs from the marked entry; {}", entry.id),
        (Page::List, Some(entry)) => format!("{}  {}", entry.id, entry.origin.command.join(" ")),
        (Page::Entry(_), Some(entry)) if entry.kind == atlas_cluster::history::Kind::Submission => {
            "Enter watches the job; Esc goes back".to_owned()
        }
        _ => "Esc goes back to the list".to_owned(),
    }
}
