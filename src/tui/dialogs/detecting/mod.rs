//! `&`: detects the accelerators of this machine and its cluster as targets. Commands run only after the user has
//! confirmed, and the file is written only after it was shown.

pub mod state;

pub use state::{DetectedTargets, State};

use std::sync::Arc;

use atlas_cluster::detection::entries;
use atlas_detect::render::render;
use atlas_detect::runner::System;
use atlas_detect::{Options, PROGRAMS, detect};
use atlas_plan::search::Gauge;
use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, Overlay};
use crate::tui::dialogs::write_back::{Rewrite, WritePlan};
use crate::tui::input::movement::Movement;
use crate::tui::message::Effect;
use crate::tui::update::status::{fail, note};
use crate::tui::widgets::draw::{Canvas, wrap};
use crate::tui::work::job::{Job, Product};
use atlas_config::library::Library;

/// Status message of the first start, when there is neither a saved session nor a file of the user.
pub(in crate::tui) const OFFER: &str =
    "press & to detect the accelerators of this machine and cluster; it asks before running commands";

#[derive(Debug)]
struct DetectJob {
    library: Arc<Library>,
}

impl Job for DetectJob {
    fn run(&self, _: &Gauge) -> Result<Product, String> {
        let catalog = entries(self.library.catalog());
        let found = detect(&System, &Options::default(), &catalog);
        let open = found.undetermined.iter().map(|open| format!("{}: {}", open.what, open.why)).collect();
        let text = render(&found, &catalog, &|_| None);
        Ok(Product::Detected(Arc::new(DetectedTargets { text, targets: found.machines.len(), open })))
    }
}

/// Opens the dialog.
pub(in crate::tui) fn open(app: &mut App) {
    app.overlay = Some(Overlay::Detect);
    app.detect.scroll = 0;
}

/// Scrolls the dialog.
pub(in crate::tui) fn scroll(app: &mut App, movement: &Movement) {
    let (lines, area) = dialog(app);
    let page = usize::from(area.height.saturating_sub(2));
    let scroll = movement.from(app.detect.scroll, (lines.len() + 1).saturating_sub(page), page);
    app.detect.scroll = scroll;
}

/// Starts the commands, unless they are already running.
pub(in crate::tui) fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let state = &mut app.detect;
    if state.found.progress().is_none() {
        state.requests += 1;
        let look = DetectJob { library: Arc::clone(&app.library) };
        state.found.ask(state.requests, &mut app.queries.serial, effects, |_| Ok(Arc::new(look)));
    }
}

/// Shows the file with the detected targets for confirmation, or the reason if there are none. Does nothing if the
/// dialog has been closed.
pub(in crate::tui) fn handle_result(
    app: &mut App,
    serial: u64,
    found: Arc<DetectedTargets>,
    effects: &mut Vec<Effect>,
) {
    if !app.detect.found.store_answer(serial, Arc::clone(&found)) || app.overlay != Some(Overlay::Detect) {
        return;
    }
    app.overlay = None;
    if found.targets == 0 {
        let why = found.open.first().map_or("", String::as_str);
        return fail(app, format!("no accelerators found: {why}"));
    }
    let path = app.profiles.parent().unwrap_or(&app.profiles).join("targets.yaml");
    let before = app.library.text(&path.display().to_string()).unwrap_or_default().to_owned();
    let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    let after = format!("{before}{gap}{}", found.text);
    let plan = WritePlan { files: vec![Rewrite { path, before, after }], left: Vec::new() };
    app.overlay = Some(Overlay::WriteBack { plan: Arc::new(plan), scroll: 0 });
    let count = if found.targets == 1 { "1 target".to_owned() } else { format!("{} targets", found.targets) };
    note(app, format!("found {count}; Enter writes the file"), effects);
}

/// Closes the dialog and shows why the detection failed.
pub(in crate::tui) fn failed(app: &mut App, serial: u64, trouble: &str) {
    if app.detect.found.failed(serial, trouble) && app.overlay == Some(Overlay::Detect) {
        app.overlay = None;
        fail(app, trouble.to_owned());
    }
}

/// Text of the dialog: which commands Enter runs.
#[must_use]
pub fn dialog_text() -> String {
    format!(
        "Runs those of these commands that are installed, for at most 5 seconds each: {}. They change nothing. The targets found \
         are shown before they are written.",
        PROGRAMS.join(", ")
    )
}

/// The lines of the dialog, and its area.
fn dialog(app: &App) -> (Vec<String>, Rect) {
    let (columns, rows) = app.size;
    let width = columns.saturating_sub(4).min(76);
    let running = app.detect.found.progress().is_some();
    let text = if running { "running, at most 5 seconds per command".to_owned() } else { dialog_text() };
    let lines = wrap(&text, usize::from(width.saturating_sub(4)));
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(rows.saturating_sub(2));
    (lines, Rect::new((columns - width) / 2, (rows - height) / 2, width, height))
}

/// Draws the dialog.
pub(in crate::tui) fn draw(app: &App, canvas: &mut Canvas<'_>) {
    let (lines, area) = dialog(app);
    let running = app.detect.found.progress().is_some();
    canvas.clear(area);
    let remark = if running { "Esc closes" } else { "Enter runs, Esc closes" };
    let inner = canvas.frame(area, "Detect targets", remark, true);
    let room = usize::from(inner.height);
    let first = app.detect.scroll.min(lines.len().saturating_sub(room));
    for (y, line) in (inner.y..inner.bottom()).zip(lines.iter().skip(first)) {
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), line, canvas.role(Role::Text));
    }
    canvas.more(area, first > 0, first + room < lines.len());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::tui::testing::TestApp;

    fn found(targets: usize) -> Arc<DetectedTargets> {
        let text = "# Targets as detected.\n\n- name: here\n  accelerator: h100-sxm-80gb\n".to_owned();
        Arc::new(DetectedTargets {
            text,
            targets,
            open: vec!["accelerators of this machine: no tool reports one".to_owned()],
        })
    }

    /// The application after Enter in the dialog and this answer.
    fn answered(answer: Arc<DetectedTargets>) -> TestApp {
        let mut hands = TestApp::new();
        hands.keys("&<Enter>");
        let serial = hands.app.queries.serial;
        handle_result(&mut hands.app, serial, answer, &mut Vec::new());
        hands
    }

    #[test]
    fn no_command_runs_before_enter() {
        let mut hands = TestApp::new();
        hands.keys("&");
        assert!(!hands.effects.iter().any(|effect| matches!(effect, Effect::Work(_))));
        assert!(hands.text().contains("nvidia-smi"), "{}", hands.text());
        hands.keys("<Esc>");
        assert_eq!(hands.app.overlay, None);
        hands.keys("&<Enter>");
        assert!(hands.effects.iter().any(|effect| matches!(effect, Effect::Work(_))));
    }

    #[test]
    fn detected_target_is_previewed_before_it_is_written() {
        let mut hands = answered(found(1));
        let Some(Overlay::WriteBack { plan, .. }) = &hands.app.overlay else { unreachable!("{}", hands.text()) };
        let file = plan.files.first().unwrap();
        assert!(file.path.ends_with("targets.yaml") && file.after.contains("- name: here"));
        hands.effects.clear();
        hands.keys("<Enter>");
        assert!(hands.effects.iter().any(|effect| matches!(effect, Effect::WriteBack(_))));
    }

    #[test]
    fn empty_detection_shows_the_reason_and_opens_no_dialog() {
        let hands = answered(found(0));
        assert_eq!(hands.app.overlay, None);
        assert!(hands.text().contains("no tool reports one"), "{}", hands.text());
    }

    #[test]
    fn an_answer_to_a_closed_dialog_opens_nothing() {
        let mut hands = TestApp::new();
        hands.keys("&<Enter>");
        let serial = hands.app.queries.serial;
        hands.keys("<Esc>");
        handle_result(&mut hands.app, serial, found(1), &mut Vec::new());
        assert_eq!(hands.app.overlay, None);
    }
}
