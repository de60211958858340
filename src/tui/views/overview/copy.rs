//! The items and tables of the panes, for the clipboard.

use crate::tui::app::{App, Pane};
use crate::tui::views::results;

/// Name and text of the item under the cursor.
pub(super) fn item(app: &App) -> Option<(String, String)> {
    let setup = &app.now.setup;
    match app.pane {
        Pane::Targets => Some(("the target's name".to_owned(), setup.target.to_string())),
        Pane::Workloads => Some(("the workload's name".to_owned(), setup.workload.to_string())),
        Pane::Knobs => {
            let knob = app.selected_knob();
            let value = app.answer.scenario.as_ref()?.get(knob);
            Some((knob.name().to_owned(), format!("{}={value}", knob.name())))
        }
        Pane::Results => match app.headline() {
            Some(line) => Some(("the line".to_owned(), results::headline(app, line)?.0)),
            None => app.answer.label_and_value(app.selected_metric()?),
        },
    }
}

/// Name and rows of the pane.
pub(super) fn table(app: &App) -> Option<(String, String)> {
    match app.pane {
        Pane::Results => Some(("the table of results".to_owned(), metrics(app)?)),
        Pane::Knobs => {
            let scenario = app.answer.scenario.as_ref()?;
            let rows = app.knobs().map(|spec| format!("{}\t{}\t{}\n", spec.name, scenario.get(spec.knob), spec.unit));
            Some(("the table of knobs".to_owned(), rows.collect()))
        }
        Pane::Targets => {
            let names = app.targets().map(|(_, target)| format!("{}\n", target.name));
            Some(("the list of targets".to_owned(), names.collect()))
        }
        Pane::Workloads => {
            let names = app.workloads().map(|workload| format!("{}\n", workload.name));
            Some(("the list of workloads".to_owned(), names.collect()))
        }
    }
}

/// Numbers in full precision for spreadsheets: name, value, ends of the interval, baseline, unit.
fn metrics(app: &App) -> Option<String> {
    let (scenario, estimate) = (app.answer.scenario.as_ref()?, app.answer.outcome.as_ref().ok()?);
    let mut text = "metric\tvalue\tlow\thigh\tbaseline\tunit\n".to_owned();
    for metric in app.figures() {
        let Some(value) = app.answer.value(metric) else { continue };
        let (low, high) = metric
            .interval(estimate, scenario)
            .map_or_else(Default::default, |(low, high)| (low.to_string(), high.to_string()));
        let baseline = app.baseline.value(metric).map_or_else(String::new, |value| value.to_string());
        text += &format!("{}\t{value}\t{low}\t{high}\t{baseline}\t{}\n", metric.name, metric.unit);
    }
    Some(text)
}
