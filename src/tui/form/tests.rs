#![allow(clippy::unwrap_used, clippy::panic)]

use crate::tui::app::Overlay;
use crate::tui::testing::Hands;
use atlas_document::Sources;

fn written(hands: &Hands) -> String {
    match &hands.app.overlay {
        Some(Overlay::WriteBack { plan, .. }) => plan.files.first().unwrap().after.clone(),
        other => panic!("{other:?}\n{}", hands.text()),
    }
}

#[test]
fn a_target_is_made_from_the_selected_one_with_a_name_of_the_catalog() {
    let mut hands = Hands::of(&Sources::built_in());
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
    let mut hands = Hands::of(&Sources::built_in());
    hands.keys("+<C-u>h100-sxm-8");
    assert!(hands.text().contains("there is an entry of this name already"), "{}", hands.text());
    hands.keys("<C-u>mine<Tab><Tab><C-u>-8");
    assert!(hands.text().contains("✗"), "{}", hands.text());
    hands.keys("<Enter><Enter><Enter><Enter><Enter><Enter><Enter><Enter>");
    assert!(matches!(hands.app.overlay, Some(Overlay::Form(_))), "the form stays open");
}

#[test]
fn a_workload_is_made_for_a_model_of_the_catalog() {
    let mut hands = Hands::of(&Sources::built_in());
    hands.keys("W+<C-u>mine<Tab><Tab><C-u>3.1-8b<Tab>");
    assert!(hands.text().contains("llama-3.1-8b"), "{}", hands.text());
    hands.keys("<Tab><Tab><Tab><Tab><Enter>");
    let text = written(&hands);
    assert!(text.contains("- name: mine") && text.contains("model: llama-3.1-8b"), "{text}");
}
