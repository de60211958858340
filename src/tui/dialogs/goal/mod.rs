//! Goal seek: finds the single changes that bring a metric to a wanted value or to the value of a marked target.

pub mod state;

mod flips;

pub use state::{GoalSeek, RankChange};

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{Answer, App, Change, Overlay};
use crate::tui::message::Effect;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::update::status::{fail, note};
use crate::tui::widgets::draw::{Canvas, wrap};
use crate::tui::widgets::line::Line;
use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Setting;
use atlas_plan::search::goal::{Goal, Solution};
use atlas_plan::search::sensitivity::Lever;
use atlas_plan::search::{Condition, goal_seek};

/// Opens the dialog on the metric under the cursor.
pub(in crate::tui) fn open(app: &mut App) {
    let Some(metric) = app.selected_metric() else { return };
    let Some(value) = app.answer.value(metric) else { return fail(app, "no estimate to start from") };
    let line = Line::selected(metric.show(value));
    let found = Err("type the value you want".to_owned());
    let flips = flips::rank_changes(app, metric);
    app.overlay = Some(Overlay::Goal(GoalSeek { metric, line, found, rank_changes: flips, cursor: 0 }));
}

/// Updates the text and the list of changes.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(Overlay::Goal(mut seek)) = app.overlay.take() else { return };
    let before = seek.line.text().to_owned();
    change(&mut seek.line);
    if seek.line.text() != before {
        seek.found = seek_goal(&app.answer, seek.metric, seek.line.text());
        seek.cursor = 0;
    }
    app.overlay = Some(Overlay::Goal(seek));
}

fn seek_goal(answer: &Answer, metric: &'static Metric, text: &str) -> Result<Goal, String> {
    let (Some(scenario), Some(parts)) = (&answer.scenario, &answer.parts) else {
        return Err("no scenario".to_owned());
    };
    match Condition::on(metric, &format!("<={text}")) {
        Ok(Condition::Metric(_, _, wanted)) => Ok(goal_seek(&analytical_scenario(scenario), parts, metric, wanted)),
        Ok(_) => Err("type a number".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Applies the change under the cursor if it is a knob.
pub(in crate::tui) fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(Overlay::Goal(seek)) = app.overlay.take() else { return };
    let Some(way) = seek.rows().get(seek.cursor).map(|(way, _)| (*way).clone()) else {
        app.overlay = Some(Overlay::Goal(seek));
        return;
    };
    match (way.lever, &way.setting) {
        (Lever::Knob(knob), Some(setting)) => {
            app.push_undo(Change::Single);
            app.set_knob(knob, setting.clone());
            let text = format!("{} {setting}: {} {}", knob.name(), seek.metric.label, seek.metric.brief(way.value));
            note(app, format!("{text}; u undoes it"), effects);
        }
        _ => {
            app.overlay = Some(Overlay::Goal(seek));
            fail(app, "this is a property of the hardware and cannot be set");
        }
    }
}

/// Maximum number of rows of the list that are shown.
const ROWS: u16 = 14;

/// A row of the list as text: what is changed, from what to what, and the resulting value of the metric.
struct GoalRow {
    name: &'static str,
    change: String,
    figure: String,
    hardware: bool,
}

/// Draws the dialog.
pub(in crate::tui) fn draw(app: &App, canvas: &mut Canvas<'_>, seek: &GoalSeek) {
    let (columns, rows) = app.size;
    let width = columns.saturating_sub(4).min(86);
    let shown = |(way, flip): (&Solution, Option<&RankChange>)| {
        let after = flip.map_or_else(String::new, |flip| format!("  {}", flip.text()));
        GoalRow {
            name: name(way),
            change: change(&app.answer, way) + &after,
            figure: seek.metric.brief(way.value),
            hardware: matches!(way.lever, Lever::Hardware(_)),
        }
    };
    let list: Vec<GoalRow> = seek.rows().into_iter().map(shown).collect();
    let longest = |text: fn(&GoalRow) -> &str| {
        u16::try_from(list.iter().map(|row| text(row).width()).max().unwrap_or_default()).unwrap_or(u16::MAX)
    };
    // If a change does not fit next to its name, changes are shown below the names.
    let names = longest(|row| row.name);
    let needed = names.saturating_add(longest(|row| &row.change)).saturating_add(longest(|row| &row.figure));
    let each = if needed.saturating_add(8) <= width { 1 } else { 2 };
    let listed = u16::try_from((list.len() * each).max(2)).unwrap_or(ROWS).min(ROWS);
    let height = (listed + 5).min(rows.saturating_sub(2));
    let area = Rect::new((columns - width) / 2, rows.saturating_sub(height) / 2, width, height);
    canvas.clear(area);
    let inner = canvas.frame(area, &format!("Goal for {}", seek.metric.label), "Enter applies, Esc closes", true);
    let (input, key, dim) = (canvas.role(Role::Input), canvas.role(Role::Key), canvas.role(Role::Dim));
    let x = canvas.text(inner.x + 1, inner.y, width, seek.metric.label, key) + 1;
    let x = canvas.text(x, inner.y, 2, "=", dim) + 1;
    canvas.typed(x, inner.y, inner.right().saturating_sub(x + 1).min(24), &seek.line, input);
    let (lead, style) = match &seek.found {
        Ok(goal) => (introduction(seek.metric, goal), dim),
        Err(why) => (why.clone(), canvas.role(Role::Warn)),
    };
    let mut top = inner.y + 1;
    for line in wrap(&lead, usize::from(inner.width.saturating_sub(2))) {
        canvas.text(inner.x + 1, top, inner.width.saturating_sub(2), &line, style);
        top += 1;
    }
    let room = (usize::from(inner.bottom().saturating_sub(top)) / each).max(1);
    let skip = (seek.cursor + 1).saturating_sub(room);
    let (text, value) = (canvas.role(Role::Text), canvas.role(Role::Value));
    for (y, (at, row)) in (top..inner.bottom()).step_by(each).zip(list.iter().enumerate().skip(skip).take(room)) {
        let figure = u16::try_from(row.figure.width()).unwrap_or(u16::MAX);
        let end = inner.width.saturating_sub(2 + figure);
        canvas.text(inner.x + 1, y, end.saturating_sub(1), row.name, if row.hardware { dim } else { text });
        canvas.right(inner.x, y, inner.width.saturating_sub(1), &row.figure, value);
        if each == 1 {
            canvas.text(inner.x + names + 3, y, end.saturating_sub(names + 3), &row.change, value);
        } else if y + 1 < inner.bottom() {
            canvas.text(inner.x + 3, y + 1, inner.width.saturating_sub(4), &row.change, value);
        }
        if at == seek.cursor {
            let lines = u16::try_from(each).unwrap_or(1).min(inner.bottom() - y);
            canvas.tint(Rect::new(inner.x, y, inner.width, lines), canvas.role(Role::Selection));
        }
    }
    canvas.more(area, skip > 0, skip + room < list.len());
}

/// Introduction to the list of changes.
fn introduction(metric: &Metric, goal: &Goal) -> String {
    let now = goal.now.map_or_else(|| "–".to_owned(), |now| metric.brief(now));
    match (goal.solutions.is_empty(), goal.closest.is_some()) {
        (false, _) => format!("now {now}; each of these changes reaches the goal:"),
        (true, true) => format!("now {now}; no single change reaches the goal; closest:"),
        (true, false) => format!("now {now}; no single change brings it closer"),
    }
}

/// A change in words, with the resulting value of the metric.
#[must_use]
pub fn solution_text(answer: &Answer, metric: &Metric, (way, flip): (&Solution, Option<&RankChange>)) -> String {
    let after = flip.map_or_else(String::new, |flip| format!(", {}", flip.text()));
    format!("{} {}: {} {}{after}", name(way), change(answer, way), metric.label, metric.brief(way.value))
}

fn name(way: &Solution) -> &'static str {
    match way.lever {
        Lever::Knob(knob) => knob.name(),
        Lever::Hardware(hardware) => hardware.name(),
    }
}

/// Old and new value.
fn change(answer: &Answer, way: &Solution) -> String {
    match (way.lever, &way.setting, way.factor) {
        (Lever::Knob(knob), Some(setting), _) => {
            let now = answer.scenario.as_ref().map(|scenario| scenario.get(knob).to_string());
            let unit = knob.spec().unit;
            let number = match setting {
                Setting::Number(value) if value.fract() == 0.0 => setting.to_string(),
                Setting::Number(value) => atlas_core::units::significant(*value, 4),
                other => other.to_string(),
            };
            format!("{} → {number} {unit}", now.unwrap_or_default()).trim_end().to_owned()
        }
        (_, _, Some(factor)) => format!("× {}", atlas_core::units::significant(factor, 3)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::tui::testing::TestApp;
    use atlas_document::Sources;
    use atlas_plan::estimate::MetricId;

    fn serving() -> TestApp {
        let mut hands = TestApp::of(&Sources::built_in());
        hands.keys(":serve 70b<Enter>V/TPOT<Enter>");
        assert_eq!(hands.app.figure.name, "tpot_ms", "{}", hands.text());
        hands
    }

    #[test]
    fn applying_any_goal_seek_row_reaches_the_goal_and_undo_reverts_it() {
        for wanted in ["15ms", "40ms"] {
            let mut hands = serving();
            hands.keys("=").keys(wanted);
            let Some(Overlay::Goal(seek)) = hands.app.overlay.clone() else { panic!("{}", hands.text()) };
            let goal = seek.found.clone().unwrap();
            assert!(goal.solutions.len() > 2, "{}", hands.text());
            for (at, way) in goal.solutions.iter().enumerate() {
                let reached = |value: f64| {
                    if goal.now.unwrap() < goal.wanted { value >= goal.wanted } else { value <= goal.wanted }
                };
                assert!(reached(way.value), "{wanted}: {way:?}");
                if way.setting.is_none() {
                    continue;
                }
                let mut hands = serving();
                hands.keys("=").keys(wanted).keys(&"<Down>".repeat(at)).keys("<Enter>");
                let value = hands.app.answer.value(goal.metric).unwrap();
                assert!((value / way.value - 1.0).abs() < 1e-6, "{way:?}: {value}");
                hands.keys("u");
                assert_eq!(hands.app.answer.value(goal.metric), goal.now, "one undo takes it back");
            }
        }
    }

    #[test]
    fn goal_seek_never_proposes_zero_output_tokens() {
        let mut hands = serving();
        hands.app.figure = MetricId::P50Ms.metric();
        // Shorter than a request with the smallest number of output tokens that is tried.
        hands.keys("=200ms");
        let Some(Overlay::Goal(seek)) = &hands.app.overlay else { panic!("{}", hands.text()) };
        assert_eq!(seek.metric.name, "p50_ms");
        let nothing = |way: &&Solution| way.setting == Some(Setting::Number(0.0));
        assert_eq!(seek.rows().into_iter().map(|(way, _)| way).find(nothing), None, "{}", hands.text());
    }

    /// Pairs of shipped targets and workloads.
    const PAIRS: [(&str, &str); 10] = [
        ("h100-sxm-8", "llama3.1-70b-serve"),
        ("h200-sxm-8", "llama3.1-70b-serve"),
        ("b200-8", "llama3.1-70b-serve"),
        ("mi300x-8", "llama3.1-70b-serve"),
        ("gb200-nvl72", "llama3.1-70b-serve"),
        ("h200-sxm-8", "deepseek-v3-serve"),
        ("b200-8", "deepseek-v3-serve"),
        ("h100-sxm-8", "llama3.1-8b-train"),
        ("h100-sxm-128", "llama3.1-70b-train"),
        ("mi300x-8", "llama3.1-8b-train"),
    ];

    #[test]
    fn goal_seek_proposes_only_settable_rounded_knob_values() {
        let hands = TestApp::of(&Sources::built_in());
        let mut offers = 0;
        for (target, workload) in PAIRS {
            let setup = crate::demo::Setup { target: target.into(), workload: workload.into(), ..Default::default() };
            let (parts, scenario) = crate::tui::update::applying::resolve(&hands.app.library, target, &setup)
                .unwrap_or_else(|| panic!("{workload}"));
            let estimate = atlas_plan::engine::estimate(&scenario);
            for metric in crate::tui::views::alternatives::metrics(scenario.mode()) {
                let now = metric.value(&estimate, &scenario).unwrap();
                for wanted in [0.75 * now, 1.4 * now] {
                    let goal = goal_seek(&scenario, &parts, metric, wanted);
                    for way in goal.solutions.iter().chain(&goal.closest) {
                        let (Lever::Knob(knob), Some(Setting::Number(value))) = (way.lever, &way.setting) else {
                            continue;
                        };
                        let spec = knob.spec();
                        let offer = format!("{workload} on {target}, {} {wanted}: {} {value}", metric.name, spec.name);
                        assert!(!spec.is_model_property, "{offer} is a property of what exists");
                        let atlas_plan::knob::ValueType::Number { bounds, .. } = spec.kind else { panic!("{offer}") };
                        assert!(!bounds.whole || value.fract() == 0.0, "{offer} is no count");
                        let digits = atlas_core::units::significant(*value, 4).parse::<f64>().unwrap();
                        let tried = atlas_plan::search::axis_around(knob, &scenario, &[], 33);
                        let tried = tried.is_some_and(|axis| axis.values.contains(&Setting::Number(*value)));
                        assert!(tried || digits == *value, "{offer} has more digits than anybody sets");
                        offers += 1;
                    }
                }
            }
        }
        assert!(offers > 200, "{offers}");
    }

    #[test]
    fn goal_seek_rejects_a_value_that_does_not_parse() {
        let mut hands = serving();
        let before = hands.app.now.clone();
        hands.keys("=soon");
        assert!(hands.text().contains("expected a time"), "{}", hands.text());
        hands.keys("<Enter><Esc>");
        assert_eq!(hands.app.now, before);
        assert!(hands.app.overlay.is_none());
    }
}
