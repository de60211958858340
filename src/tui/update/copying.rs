//! Copies the item under the cursor (`y`), or its whole table as tab-separated values (`Y`). Other views are copied as
//! drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::app::{Answer, App, Pane, View};
use crate::tui::message::Effect;
use crate::tui::update::status::fail;
use crate::tui::widgets::layout;
use crate::tui::{screen, views};
use atlas_plan::estimate::Metric;

/// Copies the item under the cursor, or the whole table.
pub(in crate::tui) fn copy(app: &mut App, all: bool, effects: &mut Vec<Effect>) {
    match if all { table(app) } else { item_under_cursor(app) } {
        Some((what, text)) if !text.is_empty() => effects.push(Effect::Copy { text, what }),
        _ => fail(app, "nothing to copy"),
    }
}

/// The item under the cursor and its name.
fn item_under_cursor(app: &App) -> Option<(String, String)> {
    let setup = &app.now.setup;
    let figure = |answer: &Answer, metric: &Metric| Some((metric.label.to_owned(), metric.show(answer.value(metric)?)));
    match (app.view, app.pane) {
        (View::Compare, _) => {
            let metric = views::comparison::view::metrics(app).nth(views::comparison::view::metric_index(app))?;
            figure(&app.columns.get(app.column)?.1, metric)
        }
        (View::Race, _) => {
            let entry = crate::tui::views::race::entry_under_cursor(app)?;
            Some(("the layout".to_owned(), crate::tui::views::race::layout::layout(entry.pick()?)))
        }
        (View::Advice, _) => Some(("the advice".to_owned(), views::advice::text_here(app)?)),
        (View::Explain, _) => Some(("the line".to_owned(), views::explain::text_here(app)?)),
        (View::Main, Pane::Targets) => Some(("the target's name".to_owned(), setup.target.to_string())),
        (View::Main, Pane::Workloads) => Some(("the workload's name".to_owned(), setup.workload.to_string())),
        (View::Main, Pane::Knobs) => {
            let knob = app.selected_knob();
            let value = app.answer.scenario.as_ref()?.get(knob);
            Some((knob.name().to_owned(), format!("{}={value}", knob.name())))
        }
        (View::Main, Pane::Results) => match app.headline() {
            Some(line) => Some(("the line".to_owned(), views::results::headline(app, line)?.0)),
            None => figure(&app.answer, app.selected_metric()?),
        },
        (
            View::Breakdown
            | View::Schedule
            | View::Problems
            | View::Sweep
            | View::Frontier
            | View::Sensitivity
            | View::Optimum
            | View::Diff
            | View::Timeline
            | View::Measurements
            | View::Watch
            | View::History
            | View::Launch
            | View::Releases
            | View::Fits,
            _,
        ) => table(app),
    }
}

/// The table of the pane or view.
fn table(app: &App) -> Option<(String, String)> {
    match (app.view, app.pane) {
        (View::Compare, _) => Some(("the comparison".to_owned(), comparison(app))),
        (View::Measurements, _) => Some(("the table of measurements".to_owned(), views::measurements::view::text(app))),
        (View::Main, Pane::Results) => Some(("the table of results".to_owned(), results(app)?)),
        (View::Main, Pane::Knobs) => {
            let scenario = app.answer.scenario.as_ref()?;
            let rows = app.knobs().map(|spec| format!("{}\t{}\t{}\n", spec.name, scenario.get(spec.knob), spec.unit));
            Some(("the table of knobs".to_owned(), rows.collect()))
        }
        (View::Main, Pane::Targets) => {
            let names = app.targets().map(|(_, target)| format!("{}\n", target.name));
            Some(("the list of targets".to_owned(), names.collect()))
        }
        (View::Main, Pane::Workloads) => {
            let names = app.workloads().map(|workload| format!("{}\n", workload.name));
            Some(("the list of workloads".to_owned(), names.collect()))
        }
        _ => Some(("the view".to_owned(), drawn(app))),
    }
}

/// Numbers in full precision for spreadsheets: name, value, ends of the interval, baseline, unit.
fn results(app: &App) -> Option<String> {
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

/// One row per target, one column per metric.
fn comparison(app: &App) -> String {
    let metrics: Vec<&Metric> = views::comparison::view::metrics(app).collect();
    let mut text = "target\tfits".to_owned();
    metrics.iter().for_each(|metric| text += &format!("\t{}", metric.name));
    for (name, answer) in &app.columns {
        text += &format!("\n{name}\t{}", answer.fits());
        for metric in &metrics {
            text += &answer.value(metric).map_or_else(|| "\t".to_owned(), |value| format!("\t{value}"));
        }
    }
    text + "\n"
}

/// The complete text of a full-screen view without its frame.
pub(in crate::tui) fn drawn(app: &App) -> String {
    let mut tall = app.clone();
    tall.view_scroll = 0;
    tall.overlay = None;
    tall.size.1 = u16::try_from(screen::lines(app) + 8).unwrap_or(u16::MAX).clamp(layout::MIN_ROWS, 2000);
    let body = layout::areas(&tall).body;
    let mut buffer = Buffer::empty(Rect::new(0, 0, tall.size.0, tall.size.1));
    screen::view(&tall, &mut buffer);
    let mut lines = Vec::new();
    for y in body.y + 1..body.bottom().saturating_sub(1) {
        let cells = (body.x + 1..body.right().saturating_sub(1)).filter_map(|x| buffer.cell((x, y)));
        lines.push(cells.map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}
