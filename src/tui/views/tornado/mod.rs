//! The sensitivity of the selected metric of the results: the effect of changing every knob by one step, and every
//! hardware parameter by ten percent, up and down. It is recomputed after every edit.

pub(in crate::tui) mod export;
pub mod state;
pub mod view;

pub use state::Question;

use std::sync::Arc;

use super::{Spec, Tab, keys};
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, Place, bind};
use crate::tui::message::Effect;
use crate::tui::update::showing::{explain_metric, open_from_here};
use crate::tui::views::explain::reveal;
use crate::tui::views::sweep;
use crate::tui::work::job::{Job, Product};
use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::Metric;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::sensitivity::{Hardware, Lever, Tornado};
use atlas_plan::search::{Gauge, sensitivity};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Sensitivity",
    tab: Tab { place: 9, name: "Sensitivity", short: "Sens" },
    synonyms: "sensitivity tornado importance",
    opening: Some(bind(
        &["0"],
        Action::Show(View::Sensitivity),
        "sensitivity: which knobs and hardware parameters matter most",
        Some("sensitivity"),
    )),
    keys_place: Place::BeforeEsc,
    keys: &[
        Keys::Own(&[bind(
            &["Enter"],
            Action::Accept,
            "sweep the knob; on a hardware parameter, explain the metric down to it",
            Some("open"),
        )]),
        Keys::Own(&keys::METRICS),
    ],
    rows: view::rows,
    lines_of: super::one_line,
    heading: |_| view::HEADING,
    page: view::page,
    draw: view::sensitivity,
    info: view::info,
    document: |app, _| export::document(app),
    follow,
    hidden: |app, effects| app.queries.tornado.forget(effects),
    stop: |app, effects| app.queries.tornado.stop(effects),
    works: |app, action| !matches!(action, Action::Accept | Action::Metric(_)) || view::rows(app) > 0,
    accept: open,
    ..Spec::DEFAULT
};

#[derive(Debug)]
struct Work {
    scenario: Scenario,
    parts: Parts,
    metric: &'static Metric,
}

impl Job for Work {
    fn run(&self, _: &Gauge) -> Result<Product, String> {
        // Some hundred estimates take too little time for progress.
        let tornado = sensitivity(&self.scenario, &self.parts, self.metric);
        let tornado = tornado.ok_or_else(|| self.metric.inapplicable(&self.scenario))?;
        Ok(Product::Tornado(Arc::new(tornado)))
    }
}

/// Starts the query if the view is shown.
fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let (Some(metric), Ok(_)) = (app.selected_metric(), &app.answer.outcome) else {
        return app.queries.tornado.forget(effects);
    };
    let question = Question { generation: app.generation, metric };
    let (scenario, parts) = (app.answer.scenario.clone(), app.answer.parts.clone());
    let queries = &mut app.queries;
    queries.tornado.ask(question, &mut queries.serial, effects, |_| {
        let (scenario, parts) = scenario.zip(parts).ok_or("no scenario")?;
        Ok(Arc::new(Work { scenario: analytical_scenario(&scenario), parts, metric }))
    });
}

/// The tornado on the screen; `None` for a scenario that cannot run, whose metrics are meaningless.
#[must_use]
pub fn current_tornado(app: &App) -> Option<&Tornado> {
    app.queries.tornado.answer().filter(|_| app.answer.fits()).map(AsRef::as_ref)
}

/// Symbols of a hardware parameter in explanations. The first that occurs is used.
fn inputs(hardware: Hardware) -> &'static [&'static str] {
    match hardware {
        Hardware::PeakFlops => &["peak"],
        Hardware::MemoryBandwidth => &["bw"],
        Hardware::Memory => &["M_usable", "M_has", "memory"],
        Hardware::Link => &["link"],
        Hardware::Network => &["network"],
        Hardware::Price => &["C_rent"],
        Hardware::Power => &["TDP", "P_nominal"],
    }
}

/// Sweeps over the lever under the cursor if it is a knob. For a hardware parameter, opens the explanation of the
/// metric and reveals the parameter in it.
fn open(app: &mut App, effects: &mut Vec<Effect>) {
    let lever = current_tornado(app).and_then(|tornado| tornado.swings.get(app.view_row)).map(|swing| swing.lever);
    match lever {
        Some(Lever::Knob(knob)) => {
            sweep::choose(app, Some(knob), None);
            open_from_here(app, View::Sweep, effects);
        }
        Some(Lever::Hardware(hardware)) => {
            let metric = current_tornado(app).map(|tornado| tornado.metric);
            explain_metric(app, metric, effects);
            reveal(app, inputs(hardware));
        }
        None => {}
    }
}
