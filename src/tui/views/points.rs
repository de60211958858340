//! Charts with a cursor on a point, which is a scenario with a metric: the sweep and the frontier.

use atlas_plan::estimate::Metric;

use crate::demo::Setup;
use crate::tui::app::App;
use crate::tui::input::keymap::{Action, Binding, bind};
use crate::tui::message::Effect;
use crate::tui::update::applying;
use crate::tui::update::showing::explain_metric;

/// Their keys.
pub(super) static KEYS: [Binding; 3] = [
    bind(&["→", "l"], Action::Focus(1), "next point", Some("point")),
    bind(&["←", "h"], Action::Focus(-1), "previous point", None),
    bind(&["Enter"], Action::Accept, "apply the point; on the current point, explain the metric", Some("apply")),
];

/// Applies a point. If the scenario is already there, explains its metric. Returns whether the scenario changed.
pub(super) fn accept(app: &mut App, (setup, metric): (Setup, &'static Metric), effects: &mut Vec<Effect>) -> bool {
    let is_there = setup == app.now.setup;
    if is_there {
        explain_metric(app, Some(metric), effects);
    } else {
        applying::apply_setup(app, setup, effects);
    }
    !is_there
}
