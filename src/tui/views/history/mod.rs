//! The history: a list with a filter, an entry with its chain, the differences between two entries, and a metric
//! over time.

pub mod pages;
pub mod state;
pub mod view;

pub use state::{Listed, Page, State};

use std::sync::Arc;

use atlas_cluster::history::{Entry, EntryKind, Filter, Store};
use atlas_plan::search::Gauge;

use super::{Spec, Tab, watch};
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, SharedKeys, bind};
use crate::tui::message::Effect;
use crate::tui::tables::state::Table;
use crate::tui::update::status::{fail, note};
use crate::tui::work::job::{Job, Product};

/// Maximum number of entries read, newest first.
const MAX_ENTRIES: usize = 5000;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "History",
    tab: Tab { place: 18, name: "History", short: "Hist" },
    synonyms: "history trend runs",
    opening: Some(bind(
        &["vh"],
        Action::Show(View::History),
        "history of predictions, jobs, runs and measurements",
        Some("history"),
    )),
    keys: &[Keys::Own(&[
        bind(
            &["Enter"],
            Action::Accept,
            "open the entry or compare it with the marked one; for a submission, watch its job",
            Some("open"),
        ),
        bind(&["Space", "m"], Action::Mark, "mark the entry to compare others with", Some("mark")),
        bind(&["o"], Action::Sort, "trend of the entry's metric over time", Some("trend")),
    ])],
    shared_keys: &[SharedKeys::Filter],
    is_empty: |app| app.history.store.is_none(),
    table: |_| Some(Table::History),
    rows: view::rows,
    lines_of: super::one_line,
    heading: |app| if is_list(&app.history) { view::HEADING } else { 0 },
    is_text: |app| !is_list(&app.history),
    draw: view::draw,
    info: view::info,
    opened: |app, _| opened(app),
    follow,
    works: |app, action| {
        !matches!(action, Action::Accept | Action::Mark | Action::Sort) || (view::rows(app) > 0 && works(app, action))
    },
    accept: open,
    update: |app, action, _| {
        match action {
            Action::Mark => mark(app),
            Action::Sort => trend(app),
            Action::Escape => return back(app),
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

/// Whether the list page is shown.
fn is_list(state: &State) -> bool {
    state.page == Page::List
}

#[derive(Debug)]
struct Read(Store);

impl Job for Read {
    fn run(&self, _: &Gauge) -> Result<Product, String> {
        let filter = Filter { limit: Some(MAX_ENTRIES), ..Filter::default() };
        let (mut entries, problems) = self.0.list(&filter).map_err(|error| error.to_string())?;
        // The bodies of thousands of entries would take much memory, and the view shows none of them.
        entries.iter_mut().for_each(|entry| entry.body = serde_json::Value::Null);
        Ok(Product::History(Arc::new(Listed { entries, damaged: problems.len() })))
    }
}

/// Returns the entries that match the filter.
#[must_use]
pub fn filtered_entries(app: &App) -> Vec<&Entry> {
    let Some(listed) = app.history.listed.answer() else { return Vec::new() };
    listed.entries.iter().filter(|entry| app.matches_filter(Table::History, &text(entry))).collect()
}

/// Returns the text that the filter is matched against.
fn text(entry: &Entry) -> String {
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    let names = [of(&entry.target), of(&entry.workload), of(&entry.software), of(&entry.engine)];
    format!("{} {} {} {}", entry.handle(), entry.kind.name(), entry.at.strftime("%Y-%m-%d"), names.join(" "))
}

/// Returns the entry under the cursor, or that of the page.
#[must_use]
pub fn selected_entry(app: &App) -> Option<&Entry> {
    match &app.history.page {
        Page::List => filtered_entries(app).get(app.view_row).copied(),
        Page::Entry(id) | Page::Trend(id) | Page::Difference(_, id) => entry(app, id),
    }
}

/// Returns the entry with this id.
pub(super) fn entry<'a>(app: &'a App, id: &str) -> Option<&'a Entry> {
    app.history.listed.answer()?.entries.iter().find(|entry| entry.id == id)
}

/// Opens the list. The files are read again each time.
fn opened(app: &mut App) {
    app.history.opened += 1;
    app.history.page = Page::List;
}

fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let store = app.history.store.clone();
    let (opened, queries) = (app.history.opened, &mut app.queries);
    app.history.listed.ask(opened, &mut queries.serial, effects, |_| {
        let store = store.ok_or("no history: ATLAS_HISTORY is off, or there is no home directory")?;
        Ok(Arc::new(Read(store)))
    });
}

fn open_page(app: &mut App, page: Page) {
    if app.history.page == Page::List {
        app.history.row = app.view_row;
    }
    app.history.page = page;
    (app.view_row, app.view_scroll) = (0, 0);
}

/// Opens the entry under the cursor, or its differences from the marked entry. On the page of a submission, watches its
/// job.
fn open(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(entry) = selected_entry(app).cloned() else { return };
    let marked = app.history.marked.clone().filter(|marked| *marked != entry.id);
    let page = app.history.page.clone();
    match (page, marked) {
        (Page::List, Some(marked)) => open_page(app, Page::Difference(marked, entry.id)),
        (Page::List, None) => open_page(app, Page::Entry(entry.id)),
        (Page::Entry(_), _) if entry.kind == EntryKind::Submission => {
            let jobs = entry.inputs.get(atlas_cluster::history::JOBS).and_then(|jobs| jobs.as_str());
            match jobs.and_then(|jobs| jobs.split(' ').find(|job| atlas_cluster::watch::job::is_id(job))) {
                Some(job) => {
                    watch::of(app, vec![job.to_owned()]);
                    crate::tui::update::showing::open_from_here(app, View::Watch, effects);
                }
                None => fail(app, "this submission has no Slurm job; use atlas tui --watch LOG to follow a log"),
            }
        }
        _ => note(app, "Esc goes back to the list", effects),
    }
}

/// Whether `action` has an effect on the page that is shown.
fn works(app: &App, action: Action) -> bool {
    match (&app.history.page, action) {
        (Page::List, _) | (Page::Entry(_), Action::Sort) => true,
        (Page::Entry(_), Action::Accept) => {
            selected_entry(app).is_some_and(|entry| entry.kind == EntryKind::Submission)
        }
        _ => false,
    }
}

/// Marks the entry under the cursor for comparison, or unmarks it.
fn mark(app: &mut App) {
    let id = selected_entry(app).map(|entry| entry.id.clone());
    let marked = &mut app.history.marked;
    *marked = if *marked == id { None } else { id };
}

/// Shows the metric of the entry under the cursor over time.
fn trend(app: &mut App) {
    if let Some(id) = selected_entry(app).map(|entry| entry.id.clone()) {
        open_page(app, Page::Trend(id));
    }
}

/// Returns to the list. Returns `false` if the list is already shown.
fn back(app: &mut App) -> bool {
    let was_list = app.history.page == Page::List;
    if !was_list {
        app.history.page = Page::List;
        (app.view_row, app.view_scroll) = (app.history.row, 0);
    }
    !was_list
}
