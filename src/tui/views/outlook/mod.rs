//! The outlook: a chart in wide overviews that shows the selected metric of the results over the knob that was changed
//! last, for the selected and marked targets. It is computed as a sweep.
//!
//! It is computed shortly after the last edit or the first frame, so that it delays neither key presses nor the start.
//! A held key causes only one computation.

pub mod state;
pub(in crate::tui) mod view;

pub use state::Outlook;

use crate::tui::app::stale::DirtyRegion;
use crate::tui::app::{App, Pane, View};
use crate::tui::message::{Effect, Timer};
use crate::tui::views::layout;
use crate::tui::views::sweep::{self, Question};
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;

/// How long the scenario must be unchanged before the outlook is computed.
const PAUSE_MS: u64 = 100;

/// The query of the pane, if it is shown: the selected metric over the knob that was changed last, else over the knob
/// of the sweep, the concurrency or the TP degree.
fn question(app: &App) -> Option<(Question, &'static Metric)> {
    // Most screens are too narrow. Checking that first saves computing the layout.
    if app.view != View::Main || app.size.0 < layout::BESIDE_FROM || layout::areas(app).outlook.height == 0 {
        return None;
    }
    let wanted = [app.outlook.changed, app.sweep.across, Some(Knob::Concurrency), Some(Knob::Tp)];
    let across = wanted.into_iter().flatten().find(|knob| sweep::can_be_swept(&app.answer, *knob))?;
    let metric = app.selected_metric()?;
    let (generation, targets) = (app.generation, app.contenders());
    Some((Question { generation, across, against: None, metric, targets }, metric))
}

/// Starts the timer if the query changed. Moving among the knobs does not change it.
pub(in crate::tui) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    if !matches!(app.stale, DirtyRegion::All | DirtyRegion::Pane(Pane::Results)) {
        return;
    }
    let wanted = question(app).map(|(question, _)| question);
    let current = app.queries.outlook.current();
    if wanted.is_none() || wanted.as_ref() == current {
        app.outlook.wanted = None;
    } else if wanted != app.outlook.wanted {
        app.outlook.wanted = wanted;
        app.outlook.serial += 1;
        effects.push(Effect::After { ms: PAUSE_MS, timer: Timer::Outlook(app.outlook.serial) });
    }
}

/// Starts the query unless a newer one is pending.
pub(in crate::tui) fn start_query(app: &mut App, serial: u64, effects: &mut Vec<Effect>) {
    if serial != app.outlook.serial || app.outlook.wanted.take().is_none() {
        return;
    }
    let Some((question, metric)) = question(app) else { return };
    let (mut query, mut last) = (std::mem::take(&mut app.queries.outlook), app.queries.serial);
    query.ask(question, &mut last, effects, |question| sweep::order(app, question, metric));
    (app.queries.outlook, app.queries.serial) = (query, last);
}
