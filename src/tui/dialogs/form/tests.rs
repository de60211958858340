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
fn new_target_form_starts_from_the_selected_target_and_resolves_names() {
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
fn form_validates_at_every_key_press_and_stays_open_on_errors() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("+<C-u>h100-sxm-8");
    assert!(hands.text().contains("an entry with this name already exists"), "{}", hands.text());
    hands.keys("<C-u>mine<Tab><Tab><C-u>-8");
    assert!(hands.text().contains("✗"), "{}", hands.text());
    hands.keys("<Enter><Enter><Enter><Enter><Enter><Enter><Enter><Enter>");
    assert!(matches!(hands.app.overlay, Some(Overlay::Form(_))), "the form stays open");
}

#[test]
fn new_workload_form_resolves_the_model_in_the_catalog() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys("W+<C-u>mine<Tab><Tab><C-u>3.1-8b<Tab>");
    assert!(hands.text().contains("llama-3.1-8b"), "{}", hands.text());
    hands.keys("<Tab><Tab><Tab><Tab><Enter>");
    let text = written(&hands);
    assert!(text.contains("- name: mine") && text.contains("model: llama-3.1-8b"), "{text}");
}

#[test]
fn new_price_form_writes_provider_accelerator_basis_and_date() {
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
fn new_profile_form_writes_validated_efficiency_factors() {
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
