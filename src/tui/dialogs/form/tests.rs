#![allow(clippy::unwrap_used, clippy::panic)]

use crate::tui::app::Overlay;
use crate::tui::testing::TestApp;
use atlas_document::Sources;

fn written(hands: &TestApp) -> String {
    match &hands.app.overlay {
        Some(Overlay::WriteBack { plan, .. }) => plan.files.first().unwrap().after.clone(),
        other => panic!("{other:?}\n{}", hands.text()),
    }
}

#[test]
fn a_target_is_made_from_the_selected_one_with_a_name_of_the_catalog() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("+");
    assert!(hands.text().contains("New target"), "{}", hands.text());
    hands.keys("<C-u>mine<Tab><C-u>b200");
    assert!(hands.text().contains("nvidia-b200"), "{}", hands.text());
    hands.keys("<Tab><Tab><C-u>4<Tab><Tab><C-u>31.5<Tab><Tab><Enter>");
    let text = written(&hands);
    for part in ["- name: mine", "accelerator: nvidia-b200", "num_nodes: 4", "hourly_usd: 31.5", "vendor: NVIDIA"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_is_wrong_is_said_at_every_key_and_nothing_is_written() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("+<C-u>h100-sxm-8");
    assert!(hands.text().contains("an entry with this name already exists"), "{}", hands.text());
    hands.keys("<C-u>mine<Tab><Tab><C-u>-8");
    assert!(hands.text().contains("✗"), "{}", hands.text());
    hands.keys("<Enter><Enter><Enter><Enter><Enter><Enter><Enter><Enter>");
    assert!(matches!(hands.app.overlay, Some(Overlay::Form(_))), "the form stays open");
}

#[test]
fn a_workload_is_made_for_a_model_of_the_catalog() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("W+<C-u>mine<Tab><Tab><C-u>3.1-8b<Tab>");
    assert!(hands.text().contains("llama-3.1-8b"), "{}", hands.text());
    hands.keys("<Tab><Tab><Tab><Tab><Enter>");
    let text = written(&hands);
    assert!(text.contains("- name: mine") && text.contains("model: llama-3.1-8b"), "{text}");
}

#[test]
fn a_price_needs_a_date_and_goes_to_the_price_book() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("$");
    assert!(hands.text().contains("New price") && hands.text().contains("✗"), "{}", hands.text());
    hands.keys("<C-u>My Cloud<Tab><Tab><Tab><C-u>19.5<Tab><C-u>res<Tab><Tab>2026-08-01<Tab><Enter>");
    let text = written(&hands);
    let parts = ["provider: \"My Cloud\"", "accelerator: nvidia-h100", "hourly_usd: 19.5", "basis: reserved"];
    for part in parts.into_iter().chain(["date: \"2026-08-01\""]) {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_profile_holds_the_efficiency_factors_of_the_target() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("%");
    assert!(hands.text().contains("New profile"), "{}", hands.text());
    hands.keys("<Tab><C-u>9");
    assert!(hands.text().contains("✗"), "a factor of 9 is no efficiency: {}", hands.text());
    hands.keys("<C-u>0.93<Tab><Tab><Tab><Tab><Tab><Tab><Tab><Enter>");
    let text = written(&hands);
    assert!(text.contains("training: { compute: 0.93, memory: 1"), "{text}");
    match &hands.app.overlay {
        Some(Overlay::WriteBack { plan, .. }) => assert!(plan.files.first().unwrap().path.ends_with("h100_sxm_8.yaml")),
        other => panic!("{other:?}"),
    }
}
