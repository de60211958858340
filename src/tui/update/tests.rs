//! Tests of Esc from every place, and of undo for every edit.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::tui::app::{App, Pane, Snapshot, View};
use crate::tui::input::keymap::Mode;
use crate::tui::message::Message;
use crate::tui::testing::TestApp;
use crate::tui::update::update;

/// View, mode and scenario, which a detour must not change.
#[derive(Debug, Clone, PartialEq)]
struct Here {
    now: Snapshot,
    mode: Mode,
    view: View,
    pane: Pane,
    row: usize,
    names: Vec<String>,
    filters: Vec<Option<String>>,
}

fn here(app: &App) -> Here {
    use crate::tui::tables::state::Table;
    let tables = [Table::Targets, Table::Workloads, Table::Knobs, Table::Results, Table::Compare, Table::Advice];
    let filters = tables.map(|table| app.tables.filter(table).map(|filter| filter.text().to_owned()));
    Here {
        now: app.now.clone(),
        mode: app.mode(),
        view: app.view,
        pane: app.pane,
        row: app.view_row,
        names: (0..app.tabs.count()).map(|place| app.tab_label(place)).collect(),
        filters: filters.to_vec(),
    }
}

/// Starting points: a pane, with and without edits, in training and in serving.
const STARTS: &[&str] = &[
    "",
    "W",
    "K",
    "V",
    "/microbatch<Enter><Right>",
    "Wjj/concurrency<Enter><Left>",
    "WjjVjjj",
    "mjm/microbatch<Enter><Right>V",
    "TK",
];
/// Views, by their keys.
const VIEWS: &[&str] = &["2", "3", "4", "5", "6", "7", "8", "9", "0", "vm", "vd", "4n"];
/// Keys that open a dialog over a view, and type or move in it; Esc closes it.
const OVER: &[&str] = &["?", "?j", ":", ":sw", "x", "xabc", "x<Tab>", "S", "tr", "trabc", "d", "dj", "v", "t"];

#[test]
fn esc_returns_to_the_previous_place_from_dialogs_and_views() {
    for start in STARTS {
        let mut h = TestApp::new();
        h.app.demos = crate::demo::Demos::load(None, None).0.into();
        h.keys(start).work();
        let first = here(&h.app);
        // Dialogs over the panes, including those that only open there.
        let inputs = match first.mode {
            Mode::Knobs => &["/", "/llama", "f", "fxyz", "f:", "<Enter>", "<Enter>99", "<Enter>zzz<Enter>"][..],
            Mode::Targets => &["/", "f", "ftpot<50ms", "ftpot<"],
            _ => &["/", "/tp", "f", "fx"],
        };
        for over in OVER.iter().chain(inputs) {
            h.keys(over).work();
            let opened = h.app.mode() != first.mode;
            h.keys("<Esc>").work();
            assert!(opened || *over == "S", "{start:?}: {over:?} opens nothing");
            assert_eq!(here(&h.app), first, "{start:?}, {over:?}");
            // The message disappears too.
            h.keys("<Esc>").work();
            assert_eq!(here(&h.app), first, "{start:?}, {over:?}, Esc again");
        }
        for view in VIEWS {
            h.keys(view).work();
            let there = here(&h.app);
            for over in OVER {
                let (first, rest) = over.split_at(1);
                h.keys(first).work();
                // If there is nothing to write, a message is shown and no dialog opens.
                if h.app.mode() != there.mode {
                    h.keys(rest).work().keys("<Esc>");
                }
                h.app.status = None;
                assert_eq!(here(&h.app), there, "{start:?}, {view:?}, {over:?}");
            }
            // Move around, then back.
            h.keys("jjk<C-d>g").work().keys("<Esc>").work();
            assert_eq!(here(&h.app), first, "{start:?}, {view:?}");
        }
        // A tour restores everything, wherever it was started.
        for view in ["", "4", "vd"] {
            h.keys(view).work();
            let there = (here(&h.app), h.app.place());
            h.keys("d<Enter><Space><Space><Esc>").work();
            assert_eq!((here(&h.app), h.app.place()), there, "{start:?}: a tour from {view:?}");
            h.keys("<Esc>").work();
        }
    }
}

#[test]
fn esc_returns_from_a_nested_view_to_the_view_that_opened_it() {
    for (from, into) in [
        ("Cj", "<Enter>"),
        ("3j", "<Enter>"),
        ("0", "<Enter>"),
        ("0j", "<Enter>"),
        ("T/microbatch<Enter><Right>vdjjj", "<Enter>"),
    ] {
        let mut h = TestApp::new();
        h.keys(from).work();
        let there = (h.app.view, h.app.view_row);
        h.keys(into).work();
        assert_ne!(h.app.view, there.0, "{from:?}");
        // One level deeper, if a point equals the scenario.
        let deeper = h.app.view;
        if deeper == View::Sweep {
            h.keys("<Enter>").work();
            assert_eq!(h.app.view, View::Explain, "{from:?}");
            h.keys("<Esc>").work();
            assert_eq!(h.app.view, deeper, "{from:?}");
        }
        h.keys("<Esc>").work();
        assert_eq!((h.app.view, h.app.view_row), there, "{from:?}");
        h.keys("<Esc>").work();
        assert_eq!(h.app.view, View::Main, "{from:?}");
        // The stack of views is empty.
        h.keys("<Esc>").work();
        assert_eq!(h.app.view, View::Main, "{from:?}");
    }
    // Returning to the panes clears the stack, and each tab has its own.
    for away in ["K", "1", "/tp<Enter>", "T1"] {
        let mut h = TestApp::new();
        h.keys("Cj<Enter>").work().keys(away).work();
        assert_eq!(h.app.view, View::Main, "{away:?}");
        h.keys("<Esc><Esc>").work();
        assert_eq!(h.app.view, View::Main, "{away:?}");
    }
}

#[test]
fn undo_reverts_every_edit_and_redo_reapplies_it() {
    // Keys that lead to the place, and the edit.
    let edits = [
        ("/microbatch<Enter>", "<Right>"),
        ("/microbatch<Enter>", "<Right><Right><Right><Left>"),
        ("/microbatch<Enter>", "<Enter>4<Enter>"),
        ("/overlap<Enter>", "<Space>"),
        ("/microbatch<Enter><Right>", "<BS>"),
        ("/microbatch<Enter><Right>", "R"),
        ("", "j"),
        ("", "jj"),
        ("W", "j"),
        ("", "G"),
        ("", "m"),
        ("m", "m"),
        ("C", "<Right>m"),
        ("C<Right>", "<Enter>"),
        ("C<Right>", "b"),
        ("/microbatch<Enter><Right>", "b"),
        ("/microbatch<Enter><Right>b", "B"),
        ("T", "tp"),
        ("Ttp", "tp"),
        ("Ttp/microbatch<Enter><Right>", "b"),
        ("Ttp", "B"),
        ("T", "trabc<Enter>"),
        ("Ttrabc<Enter>", "tr<BS><Enter>"),
        ("", "/mi300<Enter>"),
        ("", "/70b_serve<Enter>"),
        ("8", "<Enter>"),
        ("Wjj8", "<Enter>"),
        ("/microbatch<Enter>4", "<Right><Enter>"),
        ("5", "<Right><Right><Enter>"),
        ("Wjj6", "R"),
    ];
    let mut edited = 0;
    for (before, edit) in edits {
        let mut h = TestApp::new();
        h.keys(before).work();
        // Prevents grouping with an earlier edit.
        h.app.last_change = None;
        let state = |app: &App| (app.now.clone(), app.tabs.pinned(), app.tab_label(app.tabs.current()));
        let first = state(&h.app);
        h.keys(edit).work();
        if before == "Wjj6" {
            h.keys("j<Enter>").work();
        }
        let second = state(&h.app);
        edited += usize::from(first != second);
        assert_ne!(first, second, "{before:?}, {edit:?} changes nothing");
        h.keys("u").work();
        assert_eq!(state(&h.app), first, "{before:?}, {edit:?}: undone");
        h.keys("U").work();
        assert_eq!(state(&h.app), second, "{before:?}, {edit:?}: made again");
        h.keys("u").work();
        assert_eq!(state(&h.app), first, "{before:?}, {edit:?}: undone again");
    }
    assert_eq!(edited, edits.len());
    // A reopened tab has its former content.
    let mut h = TestApp::new();
    h.keys("T/microbatch<Enter><Right>").work();
    let first = here(&h.app);
    h.keys("tc").work();
    assert_eq!(h.app.tabs.count(), 1);
    h.keys("u").work();
    assert_eq!(here(&h.app), first);
}

/// The message in the last line is shown in full at every size, and what it covered is redrawn afterwards.
#[test]
fn error_messages_are_never_truncated() {
    let described = |h: &TestApp| {
        let text = h.text();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let remedy = "do this, and this, and that, and then, at the very end of it all, the one thing that mends it: zebra";
    let long = format!("something went wrong in a place with a long name: {remedy}");
    for size in [(80, 24), (100, 16), (120, 40), (200, 60)] {
        for place in ["", "K", "V", "4", "9", "vd", "T", "?", "x"] {
            let mut h = TestApp::new();
            h.app.size = size;
            h.keys(place).work();
            h.app.status = None;
            let before = h.text();
            update(&mut h.app, Message::Failed(long.clone()));
            if !matches!(h.app.mode(), Mode::Helping) {
                assert!(described(&h).contains("mends it: zebra"), "{size:?}, {place:?}:\n{}", h.text());
            }
            let over = h.app.mode() != h.app.mode_below();
            h.keys(if over { "<Esc><Esc>" } else { "<Esc>" }).work();
            if !over {
                assert_eq!(h.text(), before, "{size:?}, {place:?}");
            }
        }
        // An invalid value, a bound, a filter, a name.
        for keys in [
            "/sharding<Enter><Enter>zzz",
            "/recompute<Enter><Enter>zzz",
            "/tp<Enter><Enter>9999999",
            "ftpot<5 furlongs",
            "f><",
        ] {
            let mut h = TestApp::new();
            h.app.size = size;
            h.keys(keys).work();
            let error = match (&h.app.edit, &h.app.prompt) {
                (Some(edit), _) => edit.error.clone(),
                (_, Some(prompt)) => prompt.error.clone(),
                _ => None,
            };
            let Some(error) = error else { continue };
            let shown = described(&h);
            for word in error.split_whitespace() {
                assert!(shown.contains(word), "{size:?}, {keys:?}: {error}\n{}", h.text());
            }
        }
    }
}

#[test]
fn diff_view_states_when_nothing_differs() {
    let mut h = TestApp::new();
    h.keys("Tvd").work();
    assert!(h.text().contains("Nothing differs from 1 8xH100"), "{}", h.text());
    // A knob that has no effect on any metric of the analytical model.
    h.keys("/train_tokens<Enter>").work();
    let mut quiet = None;
    for knob in atlas_plan::knob::Knob::all() {
        let mut h = TestApp::new();
        h.keys("T/").keys(knob.name()).keys("<Enter><Right>").work();
        let same = atlas_plan::estimate::METRICS
            .iter()
            .all(|metric| h.app.answer.value(metric) == h.app.baseline.value(metric));
        if !h.app.now.setup.overrides.is_empty() && same && h.app.answer.outcome.is_ok() {
            quiet = Some((knob, h));
            break;
        }
    }
    let (knob, mut h) = quiet.unwrap();
    h.keys("vd").work();
    let text = h.text();
    assert!(text.contains(knob.name()) && text.contains("no metric differs"), "{}:\n{text}", knob.name());
}
