#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use super::*;
use crate::tui::input::keymap::Mode;
use crate::tui::message::Message;
use crate::tui::testing::TestApp;
use crate::tui::update::update;
use atlas_document::Sources;
use atlas_plan::knob::{Knob, Setting};
use atlas_report::document::DocumentFormat;

fn dialog(h: &TestApp) -> &Export {
    match &h.app.overlay {
        Some(Overlay::Export(export)) => export,
        other => panic!("{other:?}"),
    }
}

/// The last export that was requested.
fn requested(h: &mut TestApp) -> Box<Export> {
    let found = h.effects.drain(..).rev().find_map(|effect| match effect {
        Effect::Export(export) => Some(export),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn export_dialog_proposes_a_name_whose_extension_follows_the_format() {
    let mut h = TestApp::new();
    h.keys("WjjCx");
    assert_eq!(h.app.mode(), Mode::Exporting);
    let name = dialog(&h).line.text().to_owned();
    assert!(name.starts_with("out/8xH100_") && name.ends_with("_compare.md"), "{name}");
    h.keys("<Tab>");
    assert!(dialog(&h).line.text().ends_with("_compare.html"));
    h.keys("<Up><Up>");
    assert_eq!(dialog(&h).kind(), DocumentFormat::Svg, "round to the last: a comparison is charted");
    // Letters are typed into the name, not run as commands.
    h.keys("qx");
    assert!(dialog(&h).line.text().ends_with("svgqx"));
    h.keys("<Esc>");
    assert!(h.app.overlay.is_none() && !h.effects.iter().any(|effect| matches!(effect, Effect::Export(_))));
}

#[test]
fn export_overwrites_an_existing_file_only_after_confirmation() {
    let mut h = TestApp::new();
    h.keys("x<Enter>");
    let export = requested(&mut h);
    assert!(!export.overwrite);
    update(&mut h.app, Message::NotExported { dialog: export, why: "it is there".to_owned(), exists: true });
    assert!(h.text().contains("it is there"));
    // Another name requires another confirmation.
    h.keys("2");
    assert!(!dialog(&h).overwrite);
    h.keys("<BS><Enter>");
    let export = requested(&mut h);
    update(&mut h.app, Message::NotExported { dialog: export, why: "it is there".to_owned(), exists: true });
    h.keys("<Enter>");
    let export = requested(&mut h);
    assert!(export.overwrite);
}

#[test]
fn every_view_exports_a_valid_document_in_each_format_it_offers() {
    for (keys, part, charted) in [
        ("Wjj", "How to improve it", true),
        ("WjjC", "8xMI300X", true),
        ("Wjj3", "memory", true),
        ("Wjj8", "gain", false),
        ("Wjj7", "tokens_per_sec", false),
        ("!", "No problems", false),
        ("Wjj/tp<Enter>T<Right>vd", "tokens/s", false),
        ("Wjj/concurrency<Enter>4", "| 8xH100 | 64 | ", true),
        ("Wjj/concurrency<Enter>4n", "tokens/s over concurrency and", true),
        ("Wjj/tp_algorithm<Enter>4", "can run", true),
        ("WjjHmjm5", "no layout improves one metric", true),
        ("Wjj0", "One input is changed at a time", true),
        ("Wjj6R", "| best |", true),
        ("Wjjc", "| rank |", false),
        ("Wjj9", "running requests", true),
        ("Wjj9<Tab>", "time to first token", true),
        ("9", "on the critical path", true),
        ("9<Tab>", "efficiency", true),
        ("vm", "No measurements are loaded", false),
    ] {
        let mut h = TestApp::new();
        h.keys(keys);
        h.work();
        let document = document(&h.app, "2030-01-01T00:00:00Z").unwrap_or_else(|| panic!("{keys}"));
        assert!(
            document.write(DocumentFormat::Markdown).contains(part),
            "{keys}\n{}",
            document.write(DocumentFormat::Markdown)
        );
        assert!(document.rows.rows.iter().all(|row| row.len() == document.rows.head.len()), "{keys}");
        assert_eq!(document.formats().contains(&DocumentFormat::Svg), charted, "{keys}");
        for kind in document.formats() {
            let text = document.write(kind);
            assert!(!text.trim().is_empty(), "{keys} {kind:?}");
            match kind {
                DocumentFormat::Json => drop(serde_json::from_str::<serde_json::Value>(&text).unwrap()),
                DocumentFormat::Csv => assert_eq!(text.lines().count(), 1 + document.rows.rows.len(), "{keys}\n{text}"),
                DocumentFormat::Html => assert!(text.starts_with("<!doctype html>")),
                DocumentFormat::Svg => assert!(text.starts_with("<svg")),
                DocumentFormat::Markdown => {}
            }
        }
    }
}

#[test]
fn report_contains_the_command_to_reproduce_it_and_its_baseline() {
    let mut h = TestApp::new();
    h.keys("Wjj/tp<Enter><Right>");
    let text = document(&h.app, "").unwrap().write(DocumentFormat::Markdown);
    assert!(text.contains("atlas report --target 8xH100 --workload") && text.contains("--set tp=16"), "{text}");
    assert!(text.contains("8xH100 (saved values)"));
}

#[test]
fn export_does_not_wait_for_a_pending_simulation() {
    let mut h = TestApp::of(&Sources::built_in());
    h.app.now.setup.overrides.insert(Knob::Engine, Setting::Choice("event".into()));
    h.app.recompute();
    assert!(h.app.answer.pending);
    let closed = format!("{:?}", document(&h.app, "").unwrap().rows);
    h.keys("<Esc>").work();
    assert!(!h.app.answer.pending);
    assert_ne!(
        closed,
        format!("{:?}", document(&h.app, "").unwrap().rows),
        "the document has the simulation once it is there"
    );
}
