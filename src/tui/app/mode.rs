//! Which mode handles keys, by overlay and view.

use crate::demo::Pane;
use crate::demo::View;
use crate::tui::app::App;
use crate::tui::app::overlay::Overlay;
use crate::tui::input::keymap::Mode;

impl App {
    /// The mode that handles keys.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.prompt.is_some() {
            return Mode::Prompting;
        }
        if let Some(mode) = self.after {
            return mode;
        }
        match (&self.edit, &self.overlay) {
            (Some(_), _) => return Mode::Editing,
            (_, Some(Overlay::Help { .. })) => return Mode::Helping,
            (_, Some(Overlay::Finder(_))) => return Mode::Finding,
            (_, Some(Overlay::Palette(_))) => return Mode::Commanding,
            (_, Some(Overlay::WriteBack { .. })) => return Mode::Confirming,
            (_, Some(Overlay::Demos { .. })) => return Mode::Choosing,
            (_, Some(Overlay::Goal(_))) => return Mode::OptimizerForm,
            (_, Some(Overlay::Assistant)) => return Mode::Conversing,
            (_, Some(Overlay::Detect)) => return Mode::Detecting,
            _ if self.view == View::Race && self.race.typing.is_some() => return Mode::Asking,
            _ if self.view == View::Optimum && self.optimizer.typing.is_some() => return Mode::Bounding,
            (_, Some(Overlay::Form(_))) => return Mode::Filling,
            (_, Some(Overlay::Export(_))) => return Mode::Exporting,
            _ => {}
        }
        self.mode_below()
    }

    /// The mode that would handle keys without overlays.
    #[must_use]
    pub fn mode_below(&self) -> Mode {
        if self.tour.is_some() {
            return Mode::Touring;
        }
        match (self.view, self.pane) {
            (View::Main, Pane::Targets) => Mode::Targets,
            (View::Main, Pane::Workloads) => Mode::Workloads,
            (View::Main, Pane::Knobs) => Mode::Knobs,
            (View::Main, Pane::Results) => Mode::Results,
            (view, _) => Mode::View(view),
        }
    }
}
