//! Views as text: one statement per line, and rows with the number that selects them.

use crate::demo::narration;
use crate::tui::app::{App, Overlay, Pane, View};
use crate::tui::dialogs::palette::Command;
use crate::tui::dialogs::{detecting, export, goal};
use crate::tui::input::keymap::Mode;
use crate::tui::views::{race, results};
use atlas_plan::estimate::{Metric, digits};
use atlas_report::study::{Block, Grid};

/// Joins lines, each ended by a newline.
fn lines(all: impl IntoIterator<Item = String>) -> String {
    all.into_iter().map(|line| line + "\n").collect()
}

fn numbered(all: impl IntoIterator<Item = String>) -> String {
    lines(all.into_iter().enumerate().map(|(at, line)| format!("{}. {line}", at + 1)))
}

/// The contents of the screen as text.
pub(super) fn view(app: &App) -> String {
    if let Some(text) = overlay(app) {
        return text;
    }
    let tour = tour(app);
    let text = match (app.view, app.pane) {
        (View::Main, Pane::Targets) => numbered(app.targets().map(|(_, target)| marked(app, &target.name))),
        (View::Main, Pane::Workloads) => numbered(app.workloads().map(|workload| workload.name.to_string())),
        (View::Main, Pane::Knobs) => knobs(app),
        (View::Main, Pane::Results) => whole(app),
        (view, _) => lines((view.spec().statements)(app)) + &document(app),
    };
    tour + &text
}

fn marked(app: &App, name: &str) -> String {
    let mark = if app.now.marks.contains(name) { ", marked" } else { "" };
    let here = if *app.now.setup.target == *name { ", selected" } else { "" };
    format!("{name}{mark}{here}")
}

fn knobs(app: &App) -> String {
    let Some(scenario) = &app.answer.scenario else { return "no scenario\n".to_owned() };
    numbered(app.knobs().map(|spec| {
        let changed = if app.now.setup.overrides.contains_key(&spec.knob) { ", changed" } else { "" };
        let unit = if spec.unit.is_empty() { String::new() } else { format!(" {}", spec.unit) };
        format!("{} {}{unit}{changed}: {}", spec.name, scenario.get(spec.knob), spec.help)
    }))
}

/// A metric as a statement.
fn figure(app: &App, metric: &Metric) -> Option<String> {
    let (scenario, estimate) = (app.answer.scenario.as_ref()?, app.answer.outcome.as_ref().ok()?);
    let value = app.answer.value(metric)?;
    let shown = digits::shown(metric, scenario, estimate);
    let range = digits::interval(metric, scenario, estimate);
    let range = range.map_or_else(String::new, |[low, high]| format!("; 90 % range {low} to {high}"));
    let before = app.baseline.value(metric).filter(|before| !metric.is_same(*before, value));
    let change = before.map_or_else(String::new, |before| {
        format!("; {} compared with {}", metric.change(before, value), results::baseline_name(app))
    });
    Some(format!("{}: {shown}{range}{change}", metric.label))
}

fn scenario(app: &App) -> String {
    let setup = &app.now.setup;
    let knobs: Vec<String> =
        setup.overrides.iter().map(|(knob, setting)| format!("{}={setting}", knob.name())).collect();
    let changed = if knobs.is_empty() { String::new() } else { format!(", with {}", knobs.join(" ")) };
    format!("{} on {}{changed}", setup.workload, setup.target)
}

fn verdict(app: &App) -> Vec<String> {
    match (&app.answer.outcome, app.answer.detail()) {
        (Err(complaint), _) => vec![format!("No estimate: {complaint}")],
        (_, Some(detail)) => vec![results::verdict(&app.glyphs, detail).1, detail.limits.describe()],
        _ => Vec::new(),
    }
}

/// The scenario, whether it fits, and the key metrics.
pub(super) fn summary(app: &App) -> String {
    let keys = Metric::headlines(app.answer.mode()).filter_map(|metric| figure(app, metric));
    lines(std::iter::once(scenario(app)).chain(verdict(app)).chain(keys))
}

/// The scenario with all its metrics, evidence and caveats.
fn whole(app: &App) -> String {
    let mut section = "";
    let mut out = lines(std::iter::once(scenario(app)).chain(verdict(app)));
    for metric in app.figures() {
        let Some(text) = figure(app, metric) else { continue };
        let key = Metric::headlines(app.answer.mode()).any(|known| known == metric);
        let name = if key { "key figures" } else { metric.section.name() };
        if name != section {
            out += &format!("\n{name}\n");
            section = name;
        }
        out += &(text + "\n");
    }
    out += &lines(app.answer.evidence());
    out += &lines(app.answer.notes().iter().map(|note| format!("caveat: {note}")));
    out
}

/// The text of the current step of a tour.
fn tour(app: &App) -> String {
    let Some(tour) = &app.tour else { return String::new() };
    let mut out = format!("Tour {}, step {} of {}\n", tour.demo.title, tour.step + 1, tour.demo.steps.len());
    if let Some(step) = tour.demo.steps.get(tour.step) {
        let say =
            narration::described(&step.say, |metric| app.answer.value(metric), |metric| app.baseline.value(metric));
        out += &format!("{}\n{say}\n", step.title);
    }
    out + "Type next to continue, or back to leave.\n\n"
}

/// The open overlay as text.
fn overlay(app: &App) -> Option<String> {
    Some(match app.overlay.as_ref()? {
        Overlay::Demos { .. } => {
            "Tours; type a number to play one, back to close.\n".to_owned()
                + &numbered(app.demos.iter().map(|demo| match &demo.section {
                    Some(section) => format!("{section}: {}", demo.title),
                    None => demo.title.clone(),
                }))
        }
        Overlay::WriteBack { plan, .. } => {
            let diff = plan.lines().into_iter().map(|(_, line)| line);
            "Type yes to write this, back to cancel.\n".to_owned() + &lines(diff)
        }
        Overlay::Goal(seek) => {
            let lead = format!(
                "Goal for {}: type the value you want; yes applies the first row, next moves to the next row, back closes.\n",
                seek.metric.label
            );
            let why = seek.found.as_ref().err().map(|why| format!("{why}\n")).unwrap_or_default();
            let rows = seek.rows().into_iter().skip(seek.cursor);
            lead + &why + &numbered(rows.map(|row| goal::solution_text(&app.answer, seek.metric, row)))
        }
        Overlay::Export(export) => format!(
            "Export as {}: type a file name, or back to cancel. Current name: {}.\n{}",
            export.kind().name(),
            export.path().display(),
            lines(export.error.clone())
        ),
        Overlay::Detect => format!("{}\nType yes to run them, back to cancel.\n", detecting::dialog_text()),
        Overlay::Assistant => {
            let prompt = "Ask in plain English; yes applies the suggested change, back closes.\n".to_owned();
            let last = app.assistant.turns.last().map(|turn| match &turn.answer {
                Ok(reply) => {
                    reply.text(100).lines().map(without_drawing_characters).collect::<Vec<_>>().join("\n") + "\n"
                }
                Err(why) => format!("{why}\n"),
            });
            last.unwrap_or_default() + &prompt
        }
        Overlay::Form(form) => {
            let field = form.fields.get(form.cursor);
            let prompt = field.map(|field| {
                format!("Type {}; current value: {}; back cancels.", field.key.label(), field.line.text())
            });
            let matches = form.matches.iter().take(8).map(|name| format!("choice: {name}"));
            lines(form.problem.iter().map(|trouble| format!("Not ready: {trouble}")).chain(matches).chain(prompt))
        }
        Overlay::Finder(found) => {
            numbered(found.matches.iter().map(|place| format!("{} {}", place.kind(), place.name())))
        }
        Overlay::Palette(_) | Overlay::Help { .. } => return None,
    })
}

/// The request for the value being typed, with its error.
pub(super) fn typing(app: &App) -> String {
    let error = match (&app.edit, &app.prompt) {
        (Some(edit), _) => edit.error.clone(),
        (_, Some(prompt)) => prompt.error.clone(),
        _ => app.race.typing.as_ref().and_then(|(_, error)| error.clone()),
    };
    let what = match (&app.edit, &app.prompt, app.mode()) {
        (Some(edit), ..) => format!("{}, now {}: {}", edit.knob.name(), edit.line.text(), edit.knob.spec().help),
        (_, Some(prompt), _) => prompt.label().to_owned(),
        (.., Mode::Asking) => format!("question; current: {}", race::question(app)),
        _ => "value".to_owned(),
    };
    lines(error.into_iter().chain([format!("Type a value for {what}; back keeps the current value.")]))
}

/// The view's document as text.
fn document(app: &App) -> String {
    let Some(document) = export::document(app, "") else {
        let why = app.answer.outcome.as_ref().err().cloned();
        return why.unwrap_or_else(|| "nothing to show yet".to_owned()) + "\n";
    };
    let mut out = String::new();
    for block in &document.blocks {
        match block {
            Block::Heading(_, text) => out += &format!("\n{text}\n"),
            Block::Text(text) | Block::Callout(text) => out += &format!("{text}\n"),
            Block::Code(text) => out += &lines(text.lines().map(without_drawing_characters)),
            Block::List(points) => out += &lines(points.iter().cloned()),
            Block::Table(grid) | Block::Heat(grid) => out += &table(grid),
            Block::Bars(bars) => out += &lines(bars.bars.iter().map(|bar| format!("{}: {}", bar.name, bar.label))),
            Block::Plot(plot) => {
                out += &format!("Chart {}: {} over {}\n", plot.title, plot.up.label, plot.across.label);
                let point = |(x, y): &(f64, f64)| format!("{} at {}", number(*y), number(*x));
                out += &lines(plot.series.iter().map(|series| {
                    format!("{}: {}", series.name, series.points.iter().map(point).collect::<Vec<_>>().join(", "))
                }));
            }
            // Its values are listed in a table.
            Block::Picture(_) => {}
        }
    }
    out
}

/// A line without tree lines and column alignment.
fn without_drawing_characters(line: &str) -> String {
    let plain = line.replace(['│', '├', '└', '─'], " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn number(value: f64) -> String {
    atlas_core::units::significant(value, 3)
}

/// A table with one line per row: each cell after its heading.
fn table(grid: &Grid) -> String {
    numbered(grid.rows.iter().map(|row| {
        let cells = grid.head.iter().zip(row).filter(|(_, cell)| !cell.text.is_empty());
        cells
            .map(|((head, _), cell)| if head.is_empty() { cell.text.clone() } else { format!("{head} {}", cell.text) })
            .collect::<Vec<_>>()
            .join("; ")
    }))
}

/// Lists the commands of the mode.
pub(super) fn commands(all: &[Command]) -> String {
    let first =
        ["Type a number to choose a row, yes to accept, back to leave, an empty line to repeat the view, keys TEXT to press keys.".to_owned()];
    lines(first.into_iter().chain(all.iter().map(|command| command.text.clone())))
}
