#![allow(clippy::unwrap_used)]

use super::{lines, listed, selected_release};
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
    let throughput =
        hands.app.answer.value(crate::tui::views::alternatives::metrics(hands.app.answer.mode()).next().unwrap());
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
    let first = |row: &super::Row| row.values.first().copied().flatten();
    let ratio = |after, before| first(after).zip(first(before)).map(|(after, before): (f64, f64)| after / before);
    let pairs = all.rows.iter().zip(all.rows.iter().skip(1)).skip(at);
    let (after, before) = pairs
        .filter(|(after, before)| !after.brought.is_empty() && ratio(after, before) > Some(1.01))
        .min_by_key(|(after, _)| all.rows.iter().position(|row| row.spec == after.spec))
        .unwrap();
    let release = all.rows.iter().position(|row| row.spec == after.spec).unwrap();
    let line = lines(&hands.app.releases).iter().position(|line| line.releases.contains(&release)).unwrap();
    hands.keys(&"j".repeat(line - hands.app.view_row));
    let text = below(&hands.text());
    let effect = format!("{:+.1} %", 100.0 * (ratio(after, before).unwrap() - 1.0));
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
fn consecutive_releases_with_equal_traits_and_figures_share_a_line() {
    let hands = opened();
    let all = listed(&hands.app).unwrap();
    let lines = lines(&hands.app.releases);
    assert!(lines.len() * 2 < all.rows.len(), "{} lines of {} releases", lines.len(), all.rows.len());
    let releases: Vec<usize> = lines.iter().flat_map(|line| line.releases.clone()).collect();
    assert!(releases.into_iter().eq(0..all.rows.len()), "every release is in one line");
    for line in &lines {
        let group = all.rows.get(line.releases.clone()).unwrap();
        let (oldest, newer) = group.split_last().unwrap();
        assert!(newer.iter().all(|row| row.brought.is_empty() && row.values == oldest.values));
        let name = format!("{} – {}", oldest.release, group.first().unwrap().release);
        assert!(newer.is_empty() || !hands.text().contains(&oldest.date), "{name}");
    }
    for neighbors in lines.windows(2) {
        let newer = all.rows.get(neighbors.first().unwrap().releases.end - 1).unwrap();
        let older = all.rows.get(neighbors.last().unwrap().releases.start).unwrap();
        assert!(!newer.brought.is_empty() || newer.values != older.values || newer.refused != older.refused);
    }
}

#[test]
fn space_lists_the_releases_of_a_group_and_groups_them_again() {
    let mut hands = opened();
    let all = listed(&hands.app).unwrap().clone();
    let folded = lines(&hands.app.releases);
    let group = folded.first().unwrap().releases.clone();
    let (newest, oldest) = (all.rows.get(group.start).unwrap(), all.rows.get(group.end - 1).unwrap());
    let name = format!("{} – {}", oldest.release, newest.release);
    assert!(group.len() > 1 && hands.text().contains(&name), "{}", hands.text());
    hands.keys("<Space>");
    assert_eq!(lines(&hands.app.releases).len(), folded.len() + group.len() - 1);
    assert!(!hands.text().contains(&name) && hands.text().contains(&newest.date), "{}", hands.text());
    hands.keys("jj");
    assert_eq!(selected_release(&hands.app).unwrap().spec, all.rows.get(group.start + 2).unwrap().spec);
    hands.keys("<Space>");
    assert_eq!(lines(&hands.app.releases), folded);
    assert_eq!(hands.app.view_row, 0, "the cursor is on the group");
}

/// A release that was set from an unfolded group stays the one under the cursor when the group is folded.
#[test]
fn a_group_stands_for_its_current_release_or_else_for_the_newest() {
    let mut hands = opened();
    let newest = selected_release(&hands.app).unwrap().spec.clone();
    hands.keys("<Space>j<Enter>");
    let set = selected_release(&hands.app).unwrap().spec.clone();
    assert_ne!(set, newest);
    hands.keys("<Space>");
    assert_eq!((hands.app.view_row, &selected_release(&hands.app).unwrap().spec), (0, &set));
    hands.keys("j");
    let second = lines(&hands.app.releases).get(1).unwrap().releases.start;
    assert_eq!(selected_release(&hands.app), listed(&hands.app).unwrap().rows.get(second));
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
