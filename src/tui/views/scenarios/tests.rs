#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
use proptest::prelude::*;

use crate::tui::app::{App, View};
use crate::tui::testing::TestApp;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::{Knob, Setting};

fn rate(app: &App) -> f64 {
    app.answer.value(Metric::named("tokens_per_sec").unwrap()).unwrap()
}

fn tp(app: &App) -> Setting {
    app.answer.scenario.as_ref().unwrap().get(Knob::Tp)
}

#[test]
fn a_tab_has_its_own_scenario_history_and_place() {
    let mut h = TestApp::new();
    h.keys("Wjj/tp<Enter><Left>");
    let (first, turned) = (rate(&h.app), h.app.now.clone());
    h.keys("T");
    assert_eq!((h.app.tabs.count(), h.app.tabs.current()), (2, 1));
    assert_eq!(h.app.now, turned, "the same scenario");
    h.keys("<BS>3");
    assert_ne!(rate(&h.app), first);
    h.keys("[");
    assert_eq!((rate(&h.app), h.app.view), (first, View::Main));
    // Each tab has its own undo history.
    h.keys("u");
    assert!(h.app.now.setup.overrides.is_empty());
    h.keys("<C-r>]");
    assert_eq!(h.app.view, View::Breakdown);
    h.keys("u");
    assert_eq!(h.app.now, turned);
    h.keys("<A-1>");
    assert_eq!(h.app.tabs.current(), 0);
    h.keys("<A-9>");
    assert!(h.app.status.as_ref().unwrap().text.contains("no tab 9"));
    h.keys("<C-n>");
    assert!(h.app.now.setup.overrides.is_empty() && h.app.tabs.count() == 3);
}

#[test]
fn closed_tab_is_reopened_at_its_position_with_its_state() {
    let mut h = TestApp::new();
    h.keys("tc");
    assert!(h.app.status.as_ref().unwrap().text.contains("only tab"));
    h.keys("Wjj/tp<Enter><Right>Ttrmine<Enter><Right>");
    let (label, kept, past) = (h.app.tab_label(1), h.app.now.clone(), h.app.past.clone());
    assert_eq!(label, "mine");
    h.keys("tc");
    assert_eq!((h.app.tabs.count(), h.app.tabs.current()), (1, 0));
    assert_ne!(h.app.now, kept);
    h.keys("u");
    assert_eq!((h.app.tabs.count(), h.app.tabs.current(), h.app.tab_label(1)), (2, 1, label));
    assert_eq!((&h.app.now, &h.app.past), (&kept, &past));
    // After another edit, undo reverts that edit; the tab is reopened with its own key.
    h.keys("tcK<Right>");
    let before = h.app.tabs.count();
    h.keys("u");
    assert_eq!(h.app.tabs.count(), before);
    h.keys("<C-t>");
    assert_eq!(h.app.tabs.count(), before + 1);
}

#[test]
fn deltas_on_every_tab_use_the_current_state_of_the_pinned_tab() {
    let mut h = TestApp::new();
    let metric = Metric::named("tokens_per_sec").unwrap();
    h.keys("Wjj/tp<Enter>Ttp[");
    let pinned = rate(&h.app);
    assert_eq!(h.app.baseline.value(metric), Some(pinned));
    // After an edit of the pinned tab, the differences shown in the other tab change.
    h.keys("]<Left>");
    let edited = rate(&h.app);
    assert_eq!(h.app.baseline.value(metric), Some(edited), "against itself");
    h.keys("[");
    assert_eq!(h.app.baseline.value(metric), Some(edited));
    assert_ne!(edited, pinned);
    assert!(h.text().contains("vs tp="), "named by what tells it apart: {}", h.text());
    // Setting another baseline unpins the tab.
    h.keys("b");
    assert_eq!((h.app.tabs.pinned(), h.app.baseline.value(metric)), (None, Some(rate(&h.app))));
    h.keys("]tp]B");
    assert_eq!(h.app.tabs.pinned(), None);
    // Closing a pinned tab removes the pin; reopening the tab restores it.
    h.keys("]tptc");
    assert_eq!(h.app.tabs.pinned(), None);
    h.keys("u");
    assert!(h.app.tabs.pinned().is_some());
}

#[test]
fn diff_view_lists_exactly_the_rows_that_differ() {
    let mut h = TestApp::new();
    h.keys("Wjjvd");
    assert!(h.text().contains("Nothing differs from saved values"), "{}", h.text());
    h.keys("<Esc>/tp<Enter>T<Left>vd");
    let text = h.text();
    let row = |what: &str| {
        text.lines().find(|line| line.contains(&format!(" {what} "))).unwrap_or_else(|| panic!("{what}\n{text}"))
    };
    assert!(row("tp").contains('8') && row("tp").contains('4'), "{text}");
    assert!(!text.contains(" microbatch ") && !text.contains(" target  "), "{text}");
    let change = row("tokens/s");
    assert!((change.contains('▲') && change.contains('+')) || (change.contains('▼') && change.contains('-')), "{text}");
    assert_eq!(tp(&h.app), Setting::Number(4.0));
    // The arrow keys select a third tab; differing targets are described.
    h.keys("<Esc>[THj]vd");
    assert!(h.text().contains("8xMI300X"), "{}", h.text());
    let before = h.text();
    h.keys("<Right>");
    assert_ne!(h.text(), before);
    h.keys("<Left>");
    assert_eq!(h.text(), before);
}

#[test]
fn tab_can_be_renamed_and_its_name_reset() {
    let mut h = TestApp::new();
    h.keys("Ttrwide<Enter>");
    assert!(h.text().contains("2 wide"), "{}", h.text());
    h.keys("trother<Esc>");
    assert_eq!(h.app.tab_label(1), "wide");
    h.keys("tr<BS><Enter>");
    assert_eq!(h.app.tab_label(1), "8xH100");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// After any sequence of tab operations, there is a current tab, it can be drawn at every size, and the other tabs
    /// are unchanged.
    #[test]
    fn tabs_never_lose_a_scenario(keys in prop::collection::vec(prop::sample::select(vec![
        "T", "tc", "[", "]", "u", "<C-r>", "<C-t>", "<C-n>", "tp", "vd", "<Right>", "j", "K", "W", "<A-1>", "<A-3>", "b", "B",
        "<Esc>", "<Enter>", "tra<Enter>", "c", "o", "f", "/", "x",
    ]), 0..60)) {
        let mut h = TestApp::new();
        for key in keys {
            let before = (h.app.tabs.current(), h.app.now.clone(), h.app.mode());
            h.keys(key);
            if h.app.tabs.current() != before.0 && matches!(key, "[" | "]" | "<A-1>" | "<A-3>") {
                prop_assert_eq!(h.app.tab_snapshot(before.0), Some(&before.1));
            }
            prop_assert!(h.app.tabs.current() < h.app.tabs.count());
            prop_assert_eq!(h.app.tab_snapshot(h.app.tabs.current()), Some(&h.app.now));
        }
        for size in [(120, 40), (80, 24), (80, 16), (200, 60)] {
            h.app.size = size;
            h.text();
        }
    }
}

#[test]
fn enter_on_a_table_metric_explains_it_and_esc_returns() {
    let mut h = TestApp::new();
    h.keys("C<Right>jj<Enter>");
    assert_eq!((h.app.view, h.app.now.setup.target.as_ref()), (View::Explain, "8xMI300X"));
    assert!(h.text().contains("Explain"));
    h.keys("<Esc>");
    assert_eq!(h.app.view, View::Compare);
    h.keys("<Esc>Wjj/tp<Enter><Right>vdG<Enter>");
    assert_eq!(h.app.view, View::Explain);
    h.keys("<Esc>");
    assert_eq!(h.app.view, View::Diff);
    // A heading is not a metric.
    h.keys("g<Enter>");
    assert_eq!(h.app.view, View::Diff);
}

#[test]
fn each_tab_keeps_its_own_sweep_knobs_and_cursor() {
    let mut h = TestApp::new();
    h.keys("Wjj/concurrency<Enter>4").work();
    h.keys("<Right><Right>");
    let cursor = h.app.sweep.cursor;
    assert!(cursor.is_some());
    h.keys("T<Tab><Right>").work();
    assert_ne!(h.app.sweep.across, None);
    h.keys("[").work();
    assert_eq!((h.app.view, h.app.sweep.cursor), (View::Sweep, cursor));
    assert_eq!(h.app.sweep.across, None, "the other tab's knob stays there");
    h.keys("]").work();
    assert_ne!(h.app.sweep.across, None);
}
