//! Tests of invariants on screens of every size.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use atlas_document::Sources;

use crate::theme::Glyphs;
use crate::tui::app::View;
use crate::tui::message::Effect;
use crate::tui::testing::TestApp;
use crate::tui::views::diff::{Row, rows_of};
use crate::tui::views::timeline::{Picture, picture};
use atlas_plan::estimate::MetricId;

/// Returns the application with a 70B model served on a node of the built-in catalog.
fn serving() -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":serve 70b on 8xh100<Enter>");
    assert_eq!(&*hands.app.now.setup.workload, "llama3.1-70b-serve");
    hands.keys("1").work();
    hands
}

/// Returns sizes from the smallest screen on: steps in between, common sizes, and a large one.
fn sizes() -> impl Iterator<Item = (u16, u16)> {
    (40..=130).step_by(3).map(|columns| (columns, 12 + columns / 4)).chain([(40, 12), (80, 24), (200, 60)])
}

fn pressed(text: &str) -> String {
    text.chars().filter(|c| *c != ' ').collect()
}

#[test]
fn diff_view_metrics_keep_all_digits_at_every_size() {
    let mut hands = serving();
    hands.keys(":tp=8<Enter>:concurrency=512<Enter>vd").work();
    assert_eq!(hands.app.view, View::Diff);
    let rows = rows_of(&hands.app).1;
    for glyphs in [Glyphs::unicode(), Glyphs::ascii()] {
        hands.app.glyphs = glyphs;
        for size in sizes() {
            hands.app.size = size;
            let text = hands.text();
            let mut seen = 0;
            for row in &rows {
                let Row::Metric(metric, before, Some(after)) = row else { continue };
                // The label itself, not another label that begins with it.
                let valued = |line: &str| {
                    let rest = line.trim_start_matches(['│', '|', ' ']).strip_prefix(metric.label).map(str::trim_start);
                    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || "$–-".contains(c)))
                };
                let Some(line) = text.lines().find(|line| valued(line)) else { continue };
                let line = pressed(line);
                let shown = |value: f64| [metric.brief(value), metric.show(value)].map(|text| pressed(&text));
                assert!(shown(*after).iter().any(|shown| line.contains(shown.as_str())), "{size:?} {line}");
                let change = metric.change(before.unwrap(), *after);
                assert!(line.contains(&pressed(&change)), "{size:?} {change}: {line}");
                seen += 1;
            }
            assert!(seen > 0, "{size:?}\n{text}");
        }
    }
}

#[test]
fn overview_and_diff_view_show_the_same_change_in_points() {
    let mut hands = serving();
    hands.app.size = (200, 60);
    hands.keys(":tp=8<Enter>V").work();
    let points = |hands: &TestApp| {
        let text = hands.text();
        let line = text.lines().find(|line| line.contains("memory fill")).unwrap().to_owned();
        line.split_once('▼').unwrap().1.split_once(" pt").unwrap().0.to_owned()
    };
    let overview = points(&hands);
    hands.keys("vd").work();
    assert_eq!(points(&hands), overview);
}

#[test]
fn sweep_chart_does_not_overlap_the_metrics_below_it() {
    let mut hands = serving();
    hands.app.size = (40, 12);
    hands.keys("4n").work();
    let text = hands.text();
    assert!(text.lines().any(|line| line.starts_with("│ tp 4   precision fp8")), "{text}");
    assert!(text.lines().any(|line| pressed(line).starts_with("│tokens/s6540tok/s")), "{text}");
}

#[test]
fn overview_reports_a_tight_fit_when_little_memory_is_free() {
    let mut hands = serving();
    assert!(hands.text().contains("✓ fits: "), "{}", hands.text());
    hands.keys(":tp=1<Enter>").work();
    assert!(hands.app.answer.detail().unwrap().memory.is_tight());
    assert!(hands.text().contains("! fits tightly: "), "{}", hands.text());
}

#[test]
fn history_strip_shows_only_the_available_direction() {
    let mut hands = serving();
    hands.keys(":tp=8<Enter>").work();
    assert!(hands.text().contains("point 2 of 2, u back "), "{}", hands.text());
    hands.keys("u").work();
    assert!(hands.text().contains("point 1 of 2, U forward "), "{}", hands.text());
}

#[test]
fn footer_lists_only_the_keys_of_the_shown_chart() {
    let mut hands = TestApp::new();
    hands.keys(":engine=event<Enter>9").work();
    let footer = |hands: &TestApp| hands.text().lines().last().unwrap().to_owned();
    assert_eq!(picture(&hands.app), Picture::Tasks);
    assert!(footer(&hands).contains("zoom") && footer(&hands).contains("cause"), "{}", footer(&hands));
    hands.keys("<Tab>").work();
    assert_eq!(picture(&hands.app), Picture::Scaling);
    assert!(!footer(&hands).contains("zoom") && !footer(&hands).contains("cause"), "{}", footer(&hands));
    hands.app.view = View::History;
    hands.app.history.page = crate::tui::views::history::Page::Trend("none".to_owned());
    assert!(!footer(&hands).contains("mark") && !footer(&hands).contains("open"), "{}", footer(&hands));
}

#[test]
fn after_a_refused_save_e_copies_the_file_that_must_change() {
    for pane in ["H", "W", "K", "V"] {
        let mut hands = serving();
        hands.keys(":tp=8<Enter>").keys(pane).keys("S");
        assert!(hands.text().contains("workload/workloads.yaml is built in; press e"), "{}", hands.text());
        hands.effects.clear();
        hands.keys("e");
        let copied = hands.effects.iter().find_map(|effect| match effect {
            Effect::CopyAndEdit { path, .. } => Some(path.clone()),
            _ => None,
        });
        assert_eq!(copied.unwrap().to_str(), Some("workload/workloads.yaml"), "{pane}");
    }
}

#[test]
fn price_knob_accepts_a_value_with_a_currency_sign() {
    let mut hands = serving();
    hands.keys(":hourly_usd=$48<Enter>").work();
    assert_eq!(hands.app.answer.scenario.as_ref().unwrap().hourly_usd, Some(48.0), "{}", hands.text());
}

#[test]
fn memory_fill_change_is_not_truncated_at_any_size() {
    let mut hands = serving();
    hands.keys(":tp=1<Enter>:precision bf16<Enter>V").work();
    for size in sizes() {
        hands.app.size = size;
        let text = hands.text();
        let cut = |line: &&str| line.contains(['▲', '▼']) && line.contains("memory fill") && line.contains('…');
        assert_eq!(text.lines().find(cut), None, "{size:?}");
    }
}

#[test]
fn scenarios_that_cannot_run_have_no_throughput_latency_or_cost_per_token() {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.keys(":405b<Enter>").work();
    let answer = &hands.app.answer;
    assert!(!answer.fits());
    for metric in [MetricId::TokensPerSec, MetricId::MfuCausal, MetricId::TimeToTrainH, MetricId::DollarPer1mTokens] {
        assert_eq!(answer.value(metric.metric()), None);
    }
    assert!(answer.value(MetricId::UsdPerHour.metric()).is_some());
}
