//! Forms for new entries: targets, workloads, prices and profiles. Fields offer the names of the catalog and show the
//! errors that the reader of the files finds. Nothing is written before the change has been shown.
//!
//! * this file – the state, and what keys do to it
//! * `entry` – the entry as commented YAML, and the problems with it
//! * `offer`, `profile` – the same for prices and profiles
//! * `view` – drawing

pub mod state;

mod entry;
mod offer;
mod profile;
#[cfg(test)]
mod tests;
pub mod view;
mod yaml;

pub use state::{EntryKind, Field, Form, Key};

use std::path::PathBuf;
use std::sync::Arc;

use crate::tui::app::{App, Overlay};
use crate::tui::dialogs::write_back::{Rewrite, WritePlan};
use crate::tui::update::status::fail;
use crate::tui::widgets::line::Line;
use atlas_config::library::Library;
use atlas_core::plan::PriceBasis;
use atlas_document::Origin;

impl Key {
    /// Label of the field.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Key::Name => "name",
            Key::Accelerator => "accelerator",
            Key::PerNode => "accelerators per node",
            Key::Nodes => "nodes",
            Key::Network => "network, Gbit/s/accel",
            Key::Price => "price per node, $/h",
            Key::Watts => "power per node, W",
            Key::Pue => "PUE",
            Key::Mode => "mode",
            Key::Model => "model or config.json",
            Key::Prompt => "prompt tokens",
            Key::Generate => "generated tokens",
            Key::Precision => "weights",
            Key::Tp => "tp",
            Key::Batch => "requests or sequences",
            Key::Provider => "provider",
            Key::Count => "accelerators",
            Key::Hourly => "price, $/h",
            Key::Basis => "basis",
            Key::Region => "region, if any",
            Key::Date => "date, YYYY-MM-DD",
            Key::Source => "source, if any",
            Key::Target => "target",
            Key::Training(0) => "training: compute",
            Key::Training(1) => "training: memory",
            Key::Training(2) => "training: network",
            Key::Training(_) => "training: host",
            Key::Serving(0) => "serving: compute",
            Key::Serving(1) => "serving: memory",
            Key::Serving(2) => "serving: network",
            Key::Serving(_) => "serving: host",
        }
    }

    /// The names from which the user can choose.
    fn choices(self, library: &Library) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Key::Accelerator => library.catalog().accelerators().iter().map(|sheet| sheet.id.clone()).collect(),
            Key::Model => library.catalog().models().iter().map(|model| model.id.to_string()).collect(),
            Key::Mode => words(&["inference", "training"]),
            Key::Basis => PriceBasis::RENTS.iter().map(|basis| basis.name().to_owned()).collect(),
            Key::Target => library.targets().iter().map(|target| target.name.to_string()).collect(),
            Key::Precision => words(&["bf16", "fp8", "fp16", "mxfp8", "mxfp4", "int8", "int4"]),
            _ => Vec::new(),
        }
    }
}

/// Opens the form for a new entry, filled from the selected one.
pub(in crate::tui) fn open(app: &mut App, kind: EntryKind) {
    let fields = entry::begin(app, kind);
    begin(app, kind, fields);
}

/// Opens the form for a workload with a model other than the selected one's.
pub(in crate::tui) fn open_for(app: &mut App, model: &str, tp: f64) {
    let mut fields = entry::begin(app, EntryKind::Workload);
    for (key, text) in &mut fields {
        match key {
            Key::Name => *text = format!("my-{model}"),
            Key::Model => *text = model.to_owned(),
            Key::Tp => *text = tp.to_string(),
            _ => {}
        }
    }
    begin(app, EntryKind::Workload, fields);
}

fn begin(app: &mut App, kind: EntryKind, fields: Vec<(Key, String)>) {
    let fields = fields.into_iter();
    let fields = fields.map(|(key, text)| Field { key, line: Line::selected(text) }).collect();
    let mut form = Form { kind, fields, cursor: 0, matches: Vec::new(), problem: None };
    check(app, &mut form);
    app.overlay = Some(Overlay::Form(form));
}

/// Changes the text, and checks the entry after every key press.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(Overlay::Form(mut form)) = app.overlay.take() else { return };
    let cursor = form.cursor;
    if let Some(field) = form.fields.get_mut(cursor) {
        change(&mut field.line);
    }
    check(app, &mut form);
    app.overlay = Some(Overlay::Form(form));
}

/// Updates the matching names and the problem of the entry.
fn check(app: &App, form: &mut Form) {
    form.matches = form.fields.get(form.cursor).map(|field| matches(&app.library, field)).unwrap_or_default();
    form.problem = entry::first_problem(app, form);
}

fn matches(library: &Library, field: &Field) -> Vec<String> {
    let typed = field.line.text().to_lowercase();
    let words: Vec<&str> = typed.split_whitespace().collect();
    let all = field.key.choices(library);
    let exact = all.contains(&typed);
    let known = |choice: &String| exact || words.iter().all(|word| choice.to_lowercase().contains(word));
    all.into_iter().filter(known).collect()
}

/// Moves to another field. If the text of the current field is part of a name of the catalog, it becomes the first
/// matching name.
pub(in crate::tui) fn go(app: &mut App, by: i32) {
    let Some(Overlay::Form(mut form)) = app.overlay.take() else { return };
    complete(&app.library, &mut form);
    let last = form.fields.len().saturating_sub(1);
    form.cursor = form.cursor.saturating_add_signed(by as isize).min(last);
    check(app, &mut form);
    app.overlay = Some(Overlay::Form(form));
}

fn complete(library: &Library, form: &mut Form) {
    let Some(field) = form.fields.get_mut(form.cursor) else { return };
    let typed = field.line.text().trim().to_owned();
    let found = matches(library, field);
    let known = field.key.choices(library).contains(&typed);
    let file = (typed.contains('/') || typed.ends_with(".json")) && field.key == Key::Model;
    if let Some(first) = found.into_iter().next().filter(|_| !known && !file) {
        field.line = Line::new(first);
    }
}

/// Moves to the next field; on the last one, shows the change to the file.
pub(in crate::tui) fn accept(app: &mut App) {
    let at_end = matches!(&app.overlay, Some(Overlay::Form(form)) if form.cursor + 1 >= form.fields.len());
    if !at_end {
        return go(app, 1);
    }
    let Some(Overlay::Form(mut form)) = app.overlay.take() else { return };
    complete(&app.library, &mut form);
    check(app, &mut form);
    if let Some(trouble) = form.problem.clone() {
        app.overlay = Some(Overlay::Form(form));
        return fail(app, trouble);
    }
    let path = file(app, &form);
    let label = path.display().to_string();
    let known = app.library.text(&label).or_else(|| app.library.catalog().text(&path));
    let before = known.unwrap_or_default().to_owned();
    let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let after = format!("{before}{end}{gap}{}", entry::text(&app.library, &form));
    let plan = WritePlan { files: vec![Rewrite { path, before, after }], left: Vec::new() };
    app.status = None;
    app.overlay = Some(Overlay::WriteBack { plan: Arc::new(plan), scroll: 0 });
}

/// The file for the entry: that of the selected entry if it is the user's own, else the default one.
fn file(app: &App, form: &Form) -> PathBuf {
    let (origin, name) = match form.kind {
        EntryKind::Profile => return app.profiles.join(format!("{}.yaml", profile::stem(form))),
        EntryKind::Offer => (None, "prices.yaml"),
        EntryKind::Target => (app.answer.target.as_ref().map(|target| &target.origin), "targets.yaml"),
        EntryKind::Workload => (app.answer.workload.as_ref().map(|workload| &workload.origin), "workloads.yaml"),
    };
    let own = origin.map(|origin| &*origin.file).filter(|file| !file.starts_with(Origin::BUILT_IN));
    match own {
        Some(file) => PathBuf::from(file),
        None => app.profiles.parent().unwrap_or(&app.profiles).join(name),
    }
}
