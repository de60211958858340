#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use super::entry::{margin, tied};
use super::layout::layout;
use super::{Outcome, objective, question, ranked};
use crate::demo::Setup;
use crate::tui::app::View;
use crate::tui::testing::TestApp;
use atlas_document::Sources;
use atlas_plan::engine::estimate;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides};
use atlas_plan::scenario::{Parts, Scenario};

/// Opens the race of serving a 70B model on these targets, with the built-in catalog.
fn serving(targets: &str) -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":serve 70b cheapest tpot under 50ms on ").keys(targets).keys("<Enter>").work();
    hands
}

fn two() -> TestApp {
    serving("h100, mi300x")
}

/// Returns the setup of each row, best first.
fn layouts(hands: &TestApp) -> Vec<Option<Setup>> {
    ranked(&hands.app).into_iter().map(|row| row.setup().cloned()).collect()
}

#[test]
fn every_row_keeps_the_constraints_and_the_cheapest_comes_first() {
    let hands = serving("h100, h200, b200, mi300x");
    assert_eq!(hands.app.view, View::Race);
    assert_eq!(&*hands.app.now.setup.workload, "llama3.1-70b-serve");
    let rows = ranked(&hands.app);
    assert_eq!(rows.len(), 4);
    let question = question(&hands.app);
    let metric = objective(&hands.app);
    assert_eq!(metric.name, "dollar_per_1m_tokens");
    let mut last = 0.0;
    for row in rows {
        let Outcome::Best(pick) = &row.outcome else { panic!("{}: {:?}", row.name, row.outcome) };
        for condition in &question.constraints {
            assert!(condition.holds(&pick.estimate, &pick.scenario), "{} {condition}", row.name);
            assert!(margin(pick, condition).unwrap() >= 0.0);
        }
        assert!(pick.value(metric).unwrap() >= last, "{}", row.name);
        last = pick.value(metric).unwrap();
    }
}

#[test]
fn race_result_is_independent_of_the_core_limit() {
    let entries = |cores| {
        atlas_core::cores::limit(cores);
        let hands = serving("h100, h200, mi300x");
        ranked(&hands.app).into_iter().map(|row| format!("{row:?}")).collect::<Vec<_>>()
    };
    let one = entries(1);
    assert_eq!(one.len(), 3);
    // 0 is no limit.
    assert_eq!(one, entries(0));
}

#[test]
fn applying_a_race_row_gives_the_same_metric_on_the_overview() {
    let mut hands = two();
    let (value, name) = {
        let row = super::entry_under_cursor(&hands.app).unwrap();
        (row.pick().unwrap().value(objective(&hands.app)).unwrap(), row.name.clone())
    };
    hands.keys("<Enter>");
    assert_eq!(hands.app.now.setup.target, name);
    let metric = objective(&hands.app);
    let applied = hands.app.answer.value(metric).unwrap();
    assert!((applied / value - 1.0).abs() < 1e-9, "{applied} {value}");
    let before = layouts(&hands);
    hands.keys("1c").work();
    assert_eq!(layouts(&hands), before, "an applied row does not begin the race anew");
    hands.keys("u");
    assert_ne!(hands.app.answer.value(metric), Some(applied), "one undo takes it back");
}

/// Reads the line of a row as `--set` does, and returns the value of the objective.
fn restated(hands: &TestApp, target: &str, line: &str) -> f64 {
    let app = &hands.app;
    let workload = &app.now.setup.workload;
    let parts = Parts::find(&app.library, target, workload).unwrap();
    let knobs: Overrides = line
        .split(' ')
        .map(|word| {
            let (name, value) = word.split_once('=').unwrap();
            let knob = Knob::all().find(|knob| knob.name() == name).unwrap();
            (knob, knob.parse(value, parts.fabrics()).unwrap())
        })
        .collect();
    let scenario = Scenario::resolve(&parts, &knobs).unwrap();
    objective(app).value(&estimate(&scenario), &scenario).unwrap()
}

#[test]
fn knobs_of_a_race_row_reproduce_its_figures() {
    let hands = serving("h100-sxm-64, h100");
    let mut pools = false;
    for row in ranked(&hands.app) {
        let Outcome::Best(pick) = &row.outcome else { panic!("{}: {:?}", row.name, row.outcome) };
        let line = layout(pick);
        pools |= line.contains("prefill_accelerators=");
        let (shown, again) = (pick.value(objective(&hands.app)).unwrap(), restated(&hands, &row.name, &line));
        assert!((again / shown - 1.0).abs() < 1e-9, "{}: {line}: {again}, not {shown}", row.name);
    }
    assert!(pools, "one row has prefill pools");
}

#[test]
fn unreachable_bound_shows_the_nearest_miss_of_each_target() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":serve 70b cheapest tpot under 1ms on h100, b200<Enter>").work();
    for row in ranked(&hands.app) {
        let Outcome::Violates(pick, condition) = &row.outcome else { panic!("{}: {:?}", row.name, row.outcome) };
        assert!(!condition.holds(&pick.estimate, &pick.scenario));
        assert!(margin(pick, condition).unwrap() < 0.0);
    }
    assert!(hands.text().contains('✗'), "{}", hands.text());
}

#[test]
fn engines_that_do_not_compare_are_not_ranked() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":serve 70b cheapest on h100, NVIDIA_H100_8x_NVLink, GROQ<Enter>").work();
    for row in ranked(&hands.app) {
        let known = row.pick().is_none_or(|pick| pick.scenario.engine.models_hardware());
        assert!(known, "{}", row.name);
    }
    assert!(
        ranked(&hands.app)
            .iter()
            .any(|row| matches!(&row.outcome, Outcome::Refused(why) if why.contains("not comparable")))
    );
}

#[test]
fn race_updates_while_its_question_is_edited_and_esc_restores_it() {
    let mut hands = two();
    let before = layouts(&hands);
    hands.keys("/").keys(" tpot under 20ms").work();
    assert!(hands.text().contains("tpot under 20ms"), "{}", hands.text());
    assert_ne!(layouts(&hands), before, "a tighter bound changes the layouts");
    hands.keys("<Esc>").work();
    assert_eq!(layouts(&hands), before);
    hands.keys("/ wibble");
    assert!(hands.text().contains("unknown word `wibble`"), "{}", hands.text());
}

#[test]
fn rows_whose_intervals_overlap_the_first_are_bracketed() {
    let hands = two();
    let rows = ranked(&hands.app);
    let metric = objective(&hands.app);
    let picks: Vec<_> = rows.iter().map(|row| row.pick().unwrap()).collect();
    assert!(tied(picks[0], picks[0], metric), "a row is tied with itself");
    let bracketed = hands.text().lines().filter(|line| line.contains('├')).count();
    assert!(bracketed >= 2, "a whisker a row:\n{}", hands.text());
    let ties = picks.iter().take_while(|pick| tied(picks[0], pick, metric)).count();
    assert_eq!(ties > 1, hands.text().lines().any(|line| line.contains("1┌")), "{}", hands.text());
}

#[test]
fn views_open_on_the_race_row_under_the_cursor_and_esc_returns() {
    for (key, view) in [("3", View::Breakdown), ("7", View::Explain), ("5", View::Frontier)] {
        let mut hands = two();
        hands.keys("j");
        let name = super::entry_under_cursor(&hands.app).unwrap().name.clone();
        hands.keys(key);
        assert_eq!((hands.app.view, &hands.app.now.setup.target), (view, &name));
        hands.work().keys("<Esc>");
        assert_eq!(hands.app.view, View::Race, "{key}");
    }
}

/// "Which of these four serves 70B under 50 ms per token most cheaply?"
#[test]
fn race_for_the_cheapest_target_under_50_ms_takes_at_most_12_keys() {
    let mut hands = TestApp::of(&Sources::built_in());
    let keys = ":70b serve\nc";
    assert!(keys.chars().count() <= 12);
    hands.keys(&keys.replace('\n', "<Enter>"));
    assert_eq!((hands.app.view, &*hands.app.now.setup.workload), (View::Race, "llama3.1-70b-serve"));
    assert_eq!(question(&hands.app).to_string(), "cheapest tpot<50ms ttft<2s 5% free");
    for target in ["h100-sxm-8", "h200-sxm-8", "b200-8", "mi300x-8"] {
        assert!(hands.app.race.lanes.iter().any(|lane| &*lane.target == target), "{target}");
    }
}

#[test]
fn race_rows_show_measured_evidence_and_the_nearest_error() {
    let hands = serving("h100, mi300x");
    let rows = ranked(&hands.app);
    let support = rows.iter().find_map(|row| row.pick()?.evidence.as_ref()).unwrap();
    assert!(hands.text().contains("evidence"), "{}", hands.text());
    let near = support.nearest.as_ref().unwrap();
    if near.comparable {
        assert!(hands.text().contains(&format!("{:+.0} %", 100.0 * near.error)), "{}", hands.text());
    }
    let document = super::export::document(&hands.app).unwrap();
    assert!(document.rows.head.iter().any(|(name, _)| name == "measured rows"));
}

#[test]
fn target_without_a_price_is_refused_in_the_race_with_the_reason() {
    let hands = serving("h100, h20-8");
    let row = ranked(&hands.app).into_iter().find(|row| &*row.name == "h20-8").unwrap();
    assert!(matches!(&row.outcome, Outcome::Refused(why) if why.starts_with("no price: ")), "{:?}", row.outcome);
    assert!(hands.text().contains("no price: set cost.hourly_usd in its file"), "{}", hands.text());
}

#[test]
fn race_ranks_prices_of_different_types_separately() {
    let mut hands = serving("h100-sxm-8, h800-sxm-8");
    let rows = ranked(&hands.app);
    assert!(rows.iter().all(|row| matches!(row.outcome, Outcome::Best(_))), "{rows:?}");
    assert_eq!(super::places(&hands.app, &rows), [(0, 1), (0, 1)]);
    assert!(hands.text().contains("ranked for each price type"), "{}", hands.text());
    assert!(!hands.text().contains("1┌"), "{}", hands.text());
    let document = super::export::document(&hands.app).unwrap();
    assert_eq!(document.rows.head[2].0, "price");
    assert!(document.blocks.iter().any(|block| format!("{block:?}").contains("set price_basis")), "{document:?}");
    hands.keys(":price_basis=on-demand<Enter>1c").work();
    assert!(!super::is_ranked_by_price_type(&hands.app));
    assert!(!hands.text().contains("price type"), "{}", hands.text());
}

#[test]
fn race_shows_every_target_name_and_the_selected_one_at_every_size() {
    let mut hands = serving("h100, h200, b200, mi300x");
    hands.keys("j");
    let names: Vec<String> = ranked(&hands.app).iter().map(|row| row.name.to_string()).collect();
    for columns in (40..140).step_by(4) {
        hands.app.size = (columns, 12 + columns / 4);
        let text = hands.text();
        for name in &names {
            assert!(text.contains(name.as_str()), "{columns}: {name}\n{text}");
        }
        let info =
            text.lines().rev().nth(2).unwrap_or_default().to_owned() + text.lines().rev().nth(1).unwrap_or_default();
        assert!(info.contains(&names[1]), "{columns}: {info}");
    }
}

#[test]
fn race_headings_do_not_run_together_and_narrow_margins_are_marked() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":train 70b 1T tokens 128 h100 under 60d<Enter>").work();
    for size in [(80, 24), (100, 30), (120, 40)] {
        hands.app.size = size;
        let text = hands.text();
        assert!(!text.contains("tokenstime") && !text.contains("1 targets"), "{size:?}\n{text}");
    }
    let mut hands = serving("h100, h200, b200, mi300x");
    hands.app.size = (160, 40);
    let conditions = question(&hands.app).constraints;
    let narrow = |row: &&super::Entry| {
        let pick = row.pick().unwrap();
        let full = pick.estimate.detail.unwrap().memory.is_tight();
        full || conditions.iter().any(|one| margin(pick, one).is_some_and(|margin| margin < 0.05))
    };
    let just = ranked(&hands.app).iter().filter(|row| narrow(row)).count();
    let text = hands.text();
    assert!(just > 0, "{text}");
    assert!(text.contains("! within 5 % of a bound"), "{text}");
    assert_eq!(
        text.lines()
            .filter(|line| line.as_bytes().windows(2).any(|pair| pair[0].is_ascii_digit() && pair[1] == b'!'))
            .count(),
        just
    );
}
