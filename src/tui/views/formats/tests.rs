#![allow(clippy::unwrap_used)]

use super::{listed, metrics, selected};
use crate::tui::app::View;
use crate::tui::testing::TestApp;
use atlas_document::Sources;
use atlas_plan::knob::Knob;

fn opened(before: &str) -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(before).keys("vf");
    assert_eq!(hands.app.view, View::Formats);
    hands
}

/// Moves the cursor to a format.
fn go_to(hands: &mut TestApp, name: &str) {
    let at = listed(&hands.app).unwrap().rows.iter().position(|row| &*row.name == name).unwrap();
    hands.keys("g").keys(&"j".repeat(at));
    assert_eq!(&*selected(&hands.app).unwrap().name, name);
}

#[test]
fn formats_are_listed_from_wide_to_narrow_with_the_metrics_of_the_scenario() {
    let hands = opened(":serve 70b on 8xh100<Enter>");
    let all = listed(&hands.app).unwrap();
    let names: Vec<&str> = all.rows.iter().map(|row| &*row.name).collect();
    for name in ["fp32", "bf16", "fp8", "w8a16", "int4", "w4a8", "nvfp4", "mxfp4", "q4_k_m"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // The same as fp8, int4 and mxfp4.
    assert!(!["w8a8", "awq", "fp4", "w4a4"].iter().any(|name| names.contains(name)), "{names:?}");
    let current = all.rows.get(all.current.unwrap()).unwrap();
    let own: Vec<_> = metrics(hands.app.answer.mode()).iter().map(|metric| hands.app.answer.value(metric)).collect();
    assert_eq!(current.values, own);
    assert_eq!(selected(&hands.app), Some(current), "the cursor begins on the current format");
    let memory: Vec<f64> = all.rows.iter().filter_map(|row| *row.values.get(1)?).collect();
    assert!(memory.first().unwrap() > memory.last().unwrap(), "{memory:?}");
}

#[test]
fn a_format_that_does_not_fit_states_why() {
    let mut hands = opened(":serve 70b on 8xh100<Enter>:tp=1<Enter>");
    go_to(&mut hands, "bf16");
    let row = selected(&hands.app).unwrap();
    assert_eq!(row.refused.as_deref(), Some("does not fit"));
    let reason = row.reason.clone().unwrap();
    assert!(reason.contains("GB too much") && hands.text().contains(&reason), "{}", hands.text());
    go_to(&mut hands, "int4");
    assert_eq!(selected(&hands.app).unwrap().refused, None);
}

#[test]
fn enter_sets_the_format_with_its_products_and_undo_takes_it_back() {
    let mut hands = opened(":serve 70b on 8xh100<Enter>");
    for name in ["w8a16", "nvfp4", "q4_k_m"] {
        go_to(&mut hands, name);
        hands.keys("<Enter>");
        assert_eq!(hands.app.now.setup.overrides.get(&Knob::Precision).unwrap().to_string(), name);
        let all = listed(&hands.app).unwrap();
        assert_eq!(all.current.and_then(|at| all.rows.get(at)), selected(&hands.app), "the list follows the scenario");
        hands.keys("u");
        assert!(!hands.app.now.setup.overrides.contains_key(&Knob::Precision));
    }
}

#[test]
fn details_compare_formats_and_memory_with_the_current_ones() {
    let mut hands = opened(":serve 70b on 8xh100<Enter>:precision bf16<Enter>");
    go_to(&mut hands, "fp8");
    let text = hands.text();
    assert!(
        text.contains("fp8, compared with the current bf16") && text.contains("compute") && text.contains("bf16 → fp8"),
        "{text}"
    );
    assert!(
        text.lines().any(|line| line.contains("weights") && line.contains(" → ") && line.contains(" GB")),
        "{text}"
    );
}

#[test]
fn formats_of_training_have_step_times_and_utilization() {
    let hands = opened(":70b train<Enter>");
    let text = hands.text();
    assert!(text.contains("step time") && text.contains("MFU"), "{text}");
    assert!(listed(&hands.app).unwrap().rows.iter().any(|row| row.refused.is_some()));
}

#[test]
fn the_formats_can_be_exported() {
    let hands = opened("");
    let document = super::export::document(&hands.app).unwrap();
    assert_eq!(document.rows.rows.len(), listed(&hands.app).unwrap().rows.len());
}
