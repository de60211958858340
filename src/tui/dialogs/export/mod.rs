//! `x`: exports the view to a file. A dialog requests format and name. An existing file is replaced only after
//! confirmation.

pub mod state;

pub(in crate::tui) mod parts;

pub use state::Export;

use crate::tui::app::{App, Overlay};
use crate::tui::message::Effect;
use crate::tui::update::status::fail;
use crate::tui::widgets::line::Line;
use atlas_report::document::Document;

/// The current view as a document; `None` if it is empty. `made` is the current time, which is passed in so that the
/// function is pure.
#[must_use]
pub fn document(app: &App, made: &str) -> Option<Document> {
    (app.view.spec().document)(app, made)
}

/// Replaces characters that file systems or shells treat specially, and truncates the name to 60 characters.
fn plain(name: &str) -> String {
    let kept = name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' });
    kept.take(60).collect()
}

/// Opens the dialog with a descriptive file name.
pub(in crate::tui) fn open(app: &mut App) {
    let Some(document) = document(app, "") else {
        return fail(app, "nothing to export yet");
    };
    let kinds = document.formats();
    let chosen = kinds.iter().position(|kind| *kind == app.export_kind).unwrap_or_default();
    let extension = kinds.get(chosen).copied().unwrap_or_default().extension();
    let setup = &app.now.setup;
    let view = if app.view == crate::tui::app::View::Main { "report" } else { app.view.name() };
    let name = format!("{}_{}_{view}.{extension}", plain(&setup.target), plain(&setup.workload));
    let line = Line::new(app.out.join(name).display().to_string());
    app.overlay = Some(Overlay::Export(Export { kinds, chosen, line, error: None, overwrite: false }));
}

/// Changes the name and clears messages about the previous one.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(Overlay::Export(export)) = &mut app.overlay else { return };
    let before = export.line.text().to_owned();
    change(&mut export.line);
    if export.line.text() != before {
        (export.error, export.overwrite) = (None, false);
    }
}

/// Selects the next or previous format; the file extension follows.
pub(in crate::tui) fn choose(app: &mut App, by: i32) {
    let Some(Overlay::Export(export)) = &mut app.overlay else { return };
    let kinds = i64::try_from(export.kinds.len().max(1)).unwrap_or(1);
    let next = (export.chosen as i64 + i64::from(by)).rem_euclid(kinds);
    let was = export.kind().extension();
    export.chosen = usize::try_from(next).unwrap_or_default();
    let ends = export.line.text().strip_suffix(was).and_then(|stem| stem.strip_suffix('.'));
    if let Some(stem) = ends {
        export.line = Line::new(format!("{stem}.{}", export.kind().extension()));
    }
    (export.error, export.overwrite) = (None, false);
}

/// Starts writing the file.
pub(in crate::tui) fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(Overlay::Export(export)) = &mut app.overlay else { return };
    if export.line.text().trim().is_empty() {
        export.error = Some("type a file name".to_owned());
        return;
    }
    app.export_kind = export.kind();
    if let Some(Overlay::Export(export)) = app.overlay.take() {
        effects.push(Effect::Export(Box::new(export)));
    }
}

/// Reopens the dialog after the file could not be written or already exists, and shows the reason.
pub(in crate::tui) fn reopen_with_error(app: &mut App, mut export: Export, why: String, exists: bool) {
    export.error = Some(why);
    export.overwrite = exists;
    app.overlay = Some(Overlay::Export(export));
}

#[cfg(test)]
mod tests;
