#![allow(clippy::unwrap_used)]

use super::{listed, selected_release};
use crate::tui::app::View;
use crate::tui::testing::TestApp;
use atlas_document::Sources;
use atlas_plan::knob::Knob;

fn opened() -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("@");
    assert_eq!(hands.app.view, View::Releases);
    hands
}

#[test]
fn releases_of_the_current_software_are_listed_newest_first_with_metrics() {
    let hands = opened();
    let all = listed(&hands.app).unwrap();
    let family = atlas_catalog::software::family("vllm").unwrap();
    assert_eq!(all.rows.len(), family.releases.len());
    assert_eq!(all.rows.first().unwrap().release, family.releases.last().unwrap().id);
    let current = all.rows.get(all.current.unwrap()).unwrap();
    assert_eq!(current.spec, hands.app.answer.scenario.as_ref().unwrap().software_name());
    let throughput = hands.app.answer.value(super::metrics(hands.app.answer.mode()).next().unwrap());
    assert_eq!(current.values.first().copied().flatten(), throughput, "the figures of the release in force");
    let speeds: Vec<f64> = all.rows.iter().filter_map(|row| row.values.first().copied().flatten()).collect();
    assert!(speeds.iter().any(|speed| *speed < 0.9 * throughput.unwrap()), "old releases are slower: {speeds:?}");
    assert_eq!(selected_release(&hands.app).unwrap().spec, current.spec, "the cursor begins on the current release");
}

#[test]
fn trait_differences_from_the_current_release_are_listed_below() {
    let mut hands = opened();
    hands.keys("G");
    let row = selected_release(&hands.app).unwrap().clone();
    let text = hands.text();
    assert!(!row.differs.is_empty());
    let first = row.differs.first().unwrap();
    assert!(text.contains(&format!("{} → {}", first.before, first.after)), "{text}");
    assert!(text.contains("the current release"), "{text}");
}

#[test]
fn changes_of_each_release_are_listed_with_their_effect_on_throughput() {
    let mut hands = opened();
    let all = listed(&hands.app).unwrap().clone();
    let (at, step) = all.rows.iter().enumerate().find(|(_, row)| !row.brought.is_empty()).unwrap();
    let below = |text: &str| text.split_once(" changes up to ").unwrap().1.to_owned();
    let (text, change) = (below(&hands.text()), step.brought.first().unwrap());
    assert!(text.contains(&format!("{} → {}", change.before, change.after)), "{text}");
    assert!(text.lines().any(|line| line.contains(&step.release) && line.contains(change.name)), "{text}");
    // A later change with an effect is listed with that effect next to its release.
    let first = |row: &super::Row| row.values.first().copied().flatten().unwrap();
    let pairs = all.rows.iter().zip(all.rows.iter().skip(1)).skip(at);
    let (after, before) = pairs
        .filter(|(after, before)| !after.brought.is_empty() && first(after) / first(before) > 1.01)
        .min_by_key(|(after, _)| all.rows.iter().position(|row| row.spec == after.spec))
        .unwrap();
    hands.keys(&"j".repeat(all.rows.iter().position(|row| row.spec == after.spec).unwrap() - all.current.unwrap()));
    let text = below(&hands.text());
    let effect = format!("{:+.1} %", 100.0 * (first(after) / first(before) - 1.0));
    let line = text.lines().find(|line| line.contains(&after.release) && line.contains(&effect));
    assert!(line.is_some(), "{} {effect}: {text}", after.release);
}

#[test]
fn enter_sets_the_release_and_undo_takes_it_back() {
    let mut hands = opened();
    hands.keys("G<Enter>");
    let spec = selected_release(&hands.app).unwrap().spec.to_string();
    let set = hands.app.now.setup.overrides.get(&Knob::Software).unwrap().to_string();
    assert_eq!(set, spec);
    let all = listed(&hands.app).unwrap();
    assert_eq!(all.current, Some(all.rows.len() - 1), "the list follows the scenario");
    hands.keys("u");
    assert!(hands.app.now.setup.overrides.is_empty());
}

#[test]
fn training_software_is_listed_for_training() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":70b train<Enter>@");
    assert_eq!(listed(&hands.app).unwrap().family, atlas_catalog::software::family("megatron-core").unwrap().name);
}

#[test]
fn the_releases_can_be_exported() {
    let hands = opened();
    let document = super::export::document(&hands.app).unwrap();
    assert_eq!(document.rows.rows.len(), listed(&hands.app).unwrap().rows.len());
}
