//! `x`: the view on the screen as a file. A small dialog asks for the format and the name; what is there already is
//! overwritten only when that was said.

mod content;

use std::path::PathBuf;

use super::app::{App, Overlay};
use super::line::Line;
use super::message::Effect;
use super::update::fail;
use atlas_report::document::Kind;

pub use content::document;

/// The dialog.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// The formats that this view has.
    pub kinds: Vec<Kind>,
    /// Which of them is chosen.
    pub chosen: usize,
    /// The name of the file.
    pub line: Line,
    /// What stands in the way.
    pub error: Option<String>,
    /// A file of that name is there, and was described of: Enter overwrites it.
    pub overwrite: bool,
}

impl Export {
    /// The format chosen.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kinds.get(self.chosen).copied().unwrap_or_default()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.line.text().trim())
    }
}

/// A name without what file systems and shells take amiss.
fn plain(name: &str) -> String {
    let kept = name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' });
    kept.take(60).collect()
}

/// Opens the dialog, with a name that says what will be in the file.
pub(super) fn open(app: &mut App) {
    let Some(document) = document(app, "") else {
        return fail(app, "nothing to export: what this view shows is not there, or not yet");
    };
    let kinds = document.kinds();
    let chosen = kinds.iter().position(|kind| *kind == app.export_kind).unwrap_or_default();
    let extension = kinds.get(chosen).copied().unwrap_or_default().extension();
    let setup = &app.now.setup;
    let view = if app.view == super::app::View::Main { "report" } else { app.view.name() };
    let name = format!("{}_{}_{view}.{extension}", plain(&setup.target), plain(&setup.workload));
    let line = Line::new(app.out.join(name).display().to_string());
    app.overlay = Some(Overlay::Export(Export { kinds, chosen, line, error: None, overwrite: false }));
}

/// Changes the name. What was said about another file holds no longer.
pub(super) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(Overlay::Export(export)) = &mut app.overlay else { return };
    let before = export.line.text().to_owned();
    change(&mut export.line);
    if export.line.text() != before {
        (export.error, export.overwrite) = (None, false);
    }
}

/// The next format, or the one before; the name's ending follows.
pub(super) fn choose(app: &mut App, by: i32) {
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

/// Asks for the file to be written.
pub(super) fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(Overlay::Export(export)) = &mut app.overlay else { return };
    if export.line.text().trim().is_empty() {
        export.error = Some("a file needs a name".to_owned());
        return;
    }
    app.export_kind = export.kind();
    if let Some(Overlay::Export(export)) = app.overlay.take() {
        effects.push(Effect::Export(Box::new(export)));
    }
}

/// The file could not be written, or is there already: the dialog comes back and says so.
pub(super) fn refused(app: &mut App, mut export: Export, why: String, exists: bool) {
    export.error = Some(why);
    export.overwrite = exists;
    app.overlay = Some(Overlay::Export(export));
}

#[cfg(test)]
mod tests;
