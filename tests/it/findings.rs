//! Findings A1 to A20 of the interface review: the same inputs, repeated. `docs/interface.md` lists them with the tests
//! that cover each.

use std::path::Path;

use atlas_document::Sources;
use atlas_fabric::demo::{Pane, View};
use atlas_fabric::tui::app::Overlay;
use atlas_fabric::tui::input::keymap::{Mode, bindings, rows};
use atlas_fabric::tui::message::Message;
use atlas_plan::estimate::Metric;

use crate::tasks::Start;

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

fn value(start: &Start, name: &str) -> f64 {
    start.app.answer.value(Metric::named(name).unwrap()).unwrap()
}

/// A1: without `accelerator:`, a different engine was used and ranked.
#[test]
fn a01_readme_target_example_uses_a_catalog_based_engine() {
    let readme = readme();
    let example = readme.split("# my-cluster.yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("targets.yaml");
    std::fs::write(&file, example).unwrap();
    let start = Start::of(&Sources { targets: Some(file), ..Sources::built_in() });
    let scenario = start.app.answer.scenario.as_ref().unwrap();
    assert!(scenario.engine.models_hardware(), "{}", scenario.engine.name());
}

/// The help text of a diagnostic is wrapped within its frame, not truncated.
#[test]
fn diagnostic_help_is_wrapped_without_truncation_at_every_width() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("targets.yaml");
    std::fs::write(&file, "- name: MINE\n\tfoo: 1\n").unwrap();
    let mut start = Start::of(&Sources { targets: Some(file), ..Sources::built_in() });
    start.keys("!");
    for columns in 80..130 {
        start.send(Message::Resize(columns, 40));
        let text = start.text();
        let body = text.lines().filter(|line| line.starts_with('│'));
        assert!(body.clone().count() > 0 && body.clone().all(|line| !line.contains('…')), "{columns}\n{text}");
    }
}

/// A2: the first tour was absurd.
#[test]
fn a02_first_tour_covers_whether_a_model_fits() {
    let start = Start::with_tours();
    let first = start.app.demos.iter().next().unwrap();
    assert!(first.title.contains("fit"), "{}", first.title);
    let last = start.app.demos.iter().last().unwrap();
    assert!(last.section.is_some(), "the legacy model stands under a heading of its own: {}", last.title);
}

/// A4: a step of the five-minute introduction changed nothing.
#[test]
fn a04_readme_introduction_keys_work_as_documented() {
    assert!(
        readme()
            .contains("Type `/tp` and press `Enter` to go to the knob `tp`. Press `Enter`, type `8`, press `Enter`.")
    );
    let mut start = Start::new();
    let before = value(&start, "tokens_per_sec");
    start.keys("/tp<Enter><Enter>8<Enter>");
    assert!(start.text().contains("1 changed") && value(&start, "tokens_per_sec") != before, "{}", start.text());
    start.keys("u");
    assert_eq!(value(&start, "tokens_per_sec"), before);
    for (key, view) in [("8", View::Advice), ("3", View::Breakdown), ("4", View::Sweep), ("5", View::Frontier)] {
        start.keys("1").keys(key);
        assert_eq!(start.app.view, view);
    }
    start.keys("1V<Enter>");
    assert_eq!(start.app.view, View::Explain);
    // A search on two targets is faster than on all.
    start.keys("1Hmmc");
    assert!(start.text().contains("cheapest tpot<50ms ttft<2s 5% free"), "{}", start.text());
}

/// A5: two views showed different times to first token without an explanation.
#[test]
fn a05_timeline_shows_the_closed_form_ttft() {
    let mut start = Start::new();
    start.keys("9<Tab>");
    let text = start.text();
    let closed = Metric::named("ttft_ms").unwrap();
    assert!(text.contains(&format!("closed form {}", closed.show(value(&start, "ttft_ms")))), "{text}");
}

/// A6: numbers in columns of the comparison were not aligned.
#[test]
fn a06_numbers_of_a_comparison_column_are_right_aligned() {
    let mut start = Start::new();
    start.keys("f-8<Enter>mmmjjjmC");
    let text = start.text();
    let ends = |label: &str| {
        let line = text.lines().find(|line| line.contains(label)).unwrap().to_owned();
        let points = line.char_indices().filter(|(_, c)| *c == '.').count();
        assert!(points >= 2, "{line}");
        line
    };
    let (tpot, ttft) = (ends("TPOT"), ends("TTFT"));
    // A number ends where the next character is not part of one.
    let last = |line: &str| {
        let chars: Vec<char> = line.chars().collect();
        let number = |at: usize| chars.get(at).is_some_and(|c| c.is_ascii_digit());
        (0..chars.len())
            .filter(|at| number(*at) && !number(at + 1) && chars.get(at + 1) != Some(&'.'))
            .collect::<Vec<_>>()
    };
    assert_eq!(last(&tpot).first(), last(&ttft).first(), "{text}");
}

/// A8: after sorting, the best target was outside the viewport.
#[test]
fn a08_sorting_scrolls_the_best_target_into_view() {
    let mut start = Start::new();
    start.keys("CGo");
    let (best, _) = start.app.columns.first().unwrap();
    assert!(start.text().contains(&**best), "{}", start.text());
}

/// A9: an arrow key in the lists could change a knob.
#[test]
fn a09_arrows_in_the_lists_change_no_knob() {
    let mut start = Start::new();
    start.keys("H<Right><Right><Right>W<Right><Right><Right>");
    assert!(start.app.now.setup.overrides.is_empty());
    assert_eq!(start.app.pane, Pane::Workloads);
}

/// A10: the cursor of a filtered list was on a hidden row.
#[test]
fn a10_the_cursor_of_a_filtered_list_is_on_a_row_that_is_shown() {
    let mut start = Start::new();
    start.keys("Hfmi300<Enter><Space>");
    assert_eq!(start.app.now.marks.iter().map(ToString::to_string).collect::<Vec<_>>(), ["mi300x-8"]);
    start.keys("j");
    assert_eq!(&*start.app.now.setup.target, "mi300x-64");
}

/// A11: tabs and views had the same numbers.
#[test]
fn a11_tab_numbers_are_labeled_with_alt() {
    let mut start = Start::new();
    start.keys("T");
    let text = start.text();
    let strip = text.lines().nth(1).unwrap();
    assert!(strip.contains("Alt-1") && strip.contains("Alt-2"), "{strip}");
}

/// A12: candidates showed neither layout nor metrics.
#[test]
fn a12_candidates_show_layout_and_metrics() {
    let mut start = Start::new();
    start.keys("6R");
    let text = start.text();
    for column in ["tp", "pp", "dp", "TTFT", "TPOT", "free", "$/1M"] {
        assert!(text.contains(column), "{column}\n{text}");
    }
}

/// A13: the chart could not be read at the constraint, and its export contained only half of the settings.
#[test]
fn a13_frontier_export_lists_the_settings_of_a_point() {
    let mut start = Start::new();
    start.keys("5");
    let document = atlas_fabric::tui::dialogs::export::document(&start.app, "").unwrap();
    let heads: Vec<&str> = document.rows.head.iter().map(|(name, _)| name.as_str()).collect();
    let row = document.rows.rows.first().unwrap().iter().map(|cell| cell.text.clone()).collect::<Vec<_>>().join(" ");
    assert!(row.contains("tp=") && row.contains("max_num_seqs="), "{heads:?}\n{row}");
}

/// A14: search results did not match the typed words. See also `palette_ranks_the_intended_command_first`.
#[test]
fn a14_finder_ranks_the_typed_name_first() {
    for (typed, found) in [("/llama 70b", "llama3.1-70b-serve"), ("/tpot", "TPOT")] {
        let mut start = Start::new();
        start.keys(typed);
        let Some(Overlay::Finder(finder)) = &start.app.overlay else { panic!("{}", start.text()) };
        let names: Vec<&str> = finder.matches.iter().map(|place| place.name()).collect();
        assert_eq!(names.first(), Some(&found));
        assert!(names.iter().all(|name| *name != "recompute"), "{names:?}");
    }
}

/// A16: help was a single unsorted list.
#[test]
fn a16_help_is_grouped_under_headings() {
    let mut start = Start::new();
    start.keys("?");
    let text = start.text();
    assert!(["Views", "Tabs"].iter().filter(|heading| text.contains(**heading)).count() > 0, "{text}");
    assert!(bindings().all(|row| !row.help.ends_with(", or back")));
}

/// A17: small screens were rejected.
#[test]
fn a17_small_screens_show_the_focused_pane() {
    for size in [(60, 18), (40, 12)] {
        let mut start = Start::new();
        start.app.size = size;
        start.keys("V");
        assert!(start.text().contains("TPOT"), "{}", start.text());
    }
}

/// A18: the memory of an 80 GB accelerator was shown as 85.9 GB.
#[test]
fn a18_memory_uses_data_sheet_gigabytes() {
    let start = Start::new();
    let detail = start.app.answer.detail().unwrap();
    let share = detail.memory.capacity / atlas_core::units::BYTES_PER_GB;
    assert!((70.0..80.0).contains(&share), "an 80 GB device has {share}");
}

/// A19: thirty rows of equal weight.
#[test]
fn a19_headline_metrics_come_first_and_other_groups_are_folded() {
    let start = Start::new();
    let text = start.text();
    let headline = text.lines().position(|line| line.contains("TPOT") && line.contains("TTFT")).unwrap();
    assert!(headline < 8, "{text}");
    assert!(text.contains("power ▸") && text.contains("cost ▸"), "{text}");
}

/// A20: `R` had no effect in the lists, undo gave no feedback, and there was no way to unmark all.
#[test]
fn a20_reset_undo_and_unmark_work_in_lists() {
    let mut start = Start::new();
    start.keys(":tp=8<Enter>HR");
    assert!(start.app.now.setup.overrides.is_empty());
    start.keys("u");
    assert!(start.app.status.as_ref().is_some_and(|status| status.text.contains("tp")), "{:?}", start.app.status);
    start.keys("Hmm<BS>");
    assert!(start.app.now.marks.is_empty());
    assert!(rows(Mode::Targets).count() > 20);
}

fn sources(dir: &Path, all: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_named_in_the_findings_documents_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    for dir in ["src", "tests/it", "crates", "xtask/src"] {
        sources(&root.join(dir), &mut all);
    }
    let read = |page: &str| std::fs::read_to_string(root.join(page)).unwrap();
    let page = read("docs/interface.md");
    let (_, findings) = page.split_once("## Findings").unwrap();
    let (findings, _) = findings.split_once("## Views").unwrap();
    let named = |text: &str| -> Vec<String> {
        let spans = text.split('`').skip(1).step_by(2);
        let names = spans.filter(|name| name.contains('_') && !name.contains(['{', '*', ' ', '=', '/']));
        names.map(|name| name.trim_end_matches('…').to_owned()).collect()
    };
    let mut names = named(findings);
    // For the answer audit: the column of tests in the tables that have one; it must not be empty in any row.
    let page = read("docs/findings.md");
    let mut column = None;
    let mut rows = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match (line.starts_with('|'), column) {
            (false, _) => column = None,
            (true, None) => column = Some(cells.iter().position(|cell| *cell == "test").unwrap_or(usize::MAX)),
            (true, Some(at)) if at < cells.len() && !line.starts_with("| ---") => {
                let tests = named(cells[at]);
                assert!(!tests.is_empty(), "a finding without a test: {line}");
                names.extend(tests);
                rows += 1;
            }
            _ => {}
        }
    }
    assert!(rows >= 120, "{rows} findings");
    let missing: Vec<&String> = names.iter().filter(|name| !all.contains(&format!("fn {name}"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
