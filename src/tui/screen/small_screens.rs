//! Tests that small screens show complete values within their frames.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_cluster::history::{Draft, Entry, EntryKind, Store};
use atlas_document::Sources;

use crate::theme::Themes;
use crate::theme::color::ColorDepth;
use crate::tui::message::Message;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::testing::TestApp;
use crate::tui::update::update;
use crate::tui::views::history::pages;

const SIZES: [(u16, u16); 4] = [(40, 12), (60, 18), (80, 24), (120, 40)];

/// Returns the application after these keys; at a blank, the workers finish.
fn screen(size: (u16, u16), keys: &str) -> TestApp {
    let mut hands = TestApp::of(&Sources::built_in());
    hands.app.size = size;
    go(&mut hands, keys);
    hands
}

fn go(hands: &mut TestApp, keys: &str) {
    for keys in keys.split(' ') {
        hands.keys(keys).work();
    }
}

/// Returns the lines inside the frame of the view.
fn framed(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.starts_with('┍')).skip(1);
    lines.take_while(|line| !line.starts_with('└') && !line.starts_with(' ')).collect()
}

/// Creates a history with two predictions of the same scenario, and one of another.
fn kept(directory: &std::path::Path) -> Store {
    let store = Store::at(directory);
    for (nth, (target, price, latency)) in [
        ("h100-sxm-8", 2.489_816_452_178_104_5, 21_336.642_019_384_96),
        ("h100-sxm-8", 2.37, 20_334.9),
        ("h200-sxm-128", 2.3, 19_000.0),
    ]
    .into_iter()
    .enumerate()
    {
        let figures = [
            ("dollar_per_1m_tokens", price),
            ("p50_ms", latency),
            ("tokens_per_sec", 6_442.995_8),
            ("ingest_time_s", 1.25),
        ];
        let draft = Draft {
            target: Some(target.to_owned()),
            workload: Some("llama3.1-70b-serve".to_owned()),
            software: Some("vllm@0.33.0".to_owned()),
            engine: Some("analytical".to_owned()),
            at: jiff::Timestamp::from_second(1_760_000_000 + 3600 * i64::try_from(nth).unwrap()).ok(),
            figures: figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            inputs: BTreeMap::from([("hourly_usd".to_owned(), (55.04 + nth as f64).into())]),
            ..Draft::default()
        };
        store.write(&Entry::new(EntryKind::Prediction, draft)).unwrap();
    }
    store
}

#[test]
fn pages_of_the_history_have_labels_and_units_and_fit_every_width() {
    let directory = tempfile::tempdir().unwrap();
    for page in ["vh <Enter>", "vh j <Space> j <Enter>", "vh j o"] {
        let mut hands = TestApp::of(&Sources::built_in());
        hands.app.history.store = Some(kept(directory.path()));
        go(&mut hands, page);
        for width in [34, 36, 56, 76, 116] {
            let lines = pages::page(&hands.app, width);
            assert!(lines.len() > 2, "{page}: {lines:?}");
            for (_, line) in &lines {
                assert!(line.width() <= width, "{page} in {width} columns: {line}");
                let raw = ["_ms", "_per_sec", "dollar_", "81645", "tokens_per"].iter().any(|raw| line.contains(raw));
                assert!(!raw, "{page} in {width} columns: {line}");
            }
            let all: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
            assert!(all.contains(if page.ends_with('o') { "tok/s" } else { "$/1M tokens" }), "{page}:\n{all}");
        }
    }
    let mut hands = screen((40, 12), "");
    hands.app.history.store = Some(kept(directory.path()));
    go(&mut hands, "vh");
    let text = hands.text();
    assert!(framed(&text).iter().skip(1).any(|line| line.contains("6440 tok/s")), "{text}");
}

#[test]
fn no_text_overwrites_the_border_of_a_view() {
    let directory = tempfile::tempdir().unwrap();
    for size in SIZES {
        for keys in ["vh", "@", "@ G", "mm #", "8", "9", "9 <Tab>", "7", "vm", "6", "5", "vj"] {
            let mut hands = screen(size, "");
            hands.app.history.store = Some(kept(directory.path()));
            go(&mut hands, keys);
            let text = hands.text();
            let lines = framed(&text);
            assert!(!lines.is_empty(), "{keys} at {size:?}:\n{text}");
            for line in lines {
                assert_eq!(line.width(), usize::from(size.0), "{keys} at {size:?}: {line}\n{text}");
                assert!(line.ends_with(['│', '▲', '▼']), "{keys} at {size:?}: {line}\n{text}");
            }
        }
    }
}

#[test]
fn goal_seek_shows_the_setting_and_its_outcome_at_every_size() {
    for size in SIZES {
        let text = screen(size, "Vk=2.00").text();
        let shows = |what: &str| assert!(text.contains(what), "{what} at {size:?}:\n{text}");
        ["concurrency", "128 → 256 req", "$1.71"].into_iter().for_each(shows);
    }
    let text = screen((60, 18), "Vk=2.00").text();
    assert!(text.contains("55.04 → 47.06 $/h"), "{text}");
}

#[test]
fn views_that_search_state_that_they_do_not_simulate() {
    for keys in ["4", "5", "0"] {
        let stated = |engine: &str| {
            let mut hands = screen((120, 40), "");
            hands.keys(&format!(":engine={engine}<Enter>"));
            go(&mut hands, keys);
            hands.text().contains("computed analytically, not simulated")
        };
        assert!(stated("event") && !stated("analytical"), "{keys}");
    }
}

#[test]
fn the_advice_under_the_cursor_shows_its_change_and_gain_at_every_size() {
    for size in SIZES {
        let mut hands = screen(size, "8");
        for _ in 0..hands.app.advice().len() {
            let text = hands.text();
            let here = hands.app.advice().get(hands.app.view_row).cloned().unwrap();
            let first = here.text.split(' ').next().unwrap();
            let gain = atlas_core::units::relative(here.before, here.after);
            let row = format!("{:>2}  {first}", hands.app.view_row + 1);
            let line = framed(&text).into_iter().find(|line| line.contains(&row));
            assert!(line.is_some_and(|line| line.contains(&gain)), "{row} {gain} at {size:?}:\n{text}");
            hands.keys("j");
        }
    }
}

/// Returns the screen with measured rows, which only the legacy engine predicts, or no engine.
fn measured(size: (u16, u16), keys: &str) -> String {
    const CSV: &str = "mode,num_gpus,tp,pp,batch_size,seq_len,tokens_per_second,utilization,mfu\n\
                       training,1,1,1,32,2048,1000,0.95,0.5\ntraining,8,8,1,32,2048,4500,,\ntraining,4,4,1,32,2048,3000,,\n";
    let mut hands = screen(size, "");
    let context = atlas_ingest::Context { name: "sweep.csv".to_owned(), ..atlas_ingest::Context::default() };
    let rows = atlas_evidence::calibrate::intake::gather(CSV.as_bytes(), &context, &[]).unwrap().rows;
    update(&mut hands.app, Message::Measured(Arc::new(rows), Vec::new()));
    go(&mut hands, keys);
    hands.text()
}

#[test]
fn measured_rows_show_both_values_and_the_error_at_every_size() {
    for size in SIZES {
        let text = measured(size, "vm");
        for what in ["1000", "349.6", "-65.0 %", "legacy engine"] {
            assert!(text.contains(what), "{what} at {size:?}:\n{text}");
        }
        assert_eq!(text.contains("bar: predicted"), size.0 >= 100, "only where there is a bar:\n{text}");
        let text = measured(size, "vm f");
        assert!(text.contains("950.0 – 1050"), "the interval at {size:?}:\n{text}");
    }
}

#[test]
fn the_frontier_has_the_best_value_of_every_curve_at_every_size() {
    for size in SIZES {
        let hands = screen(size, "H<Space> j<Space> jjj<Space> j<Space> 5");
        let text = hands.text();
        let best = |target: &str| text.lines().any(|line| line.contains(target) && line.contains("ktok/s"));
        for target in ["h100-sxm-8", "h100-sxm-64", "h200-sxm-8", "h200-sxm-64"] {
            assert!(best(target), "{size:?} {target}\n{text}");
        }
    }
}

#[test]
fn help_and_comparison_headings_are_not_truncated() {
    for size in [(60, 18), (80, 24)] {
        let mut hands = screen(size, "?");
        let mut last = String::new();
        loop {
            let text = hands.text();
            let cut = framed(&text).iter().any(|line| line.contains('…') && !line.contains(" … "));
            assert!(!cut, "{size:?}\n{text}");
            if std::mem::replace(&mut last, text.clone()) == text {
                break;
            }
            hands.keys("<PageDown>").work();
        }
    }
    for keys in ["vd", ":tp=8<Enter> vd"] {
        let text = screen((60, 18), keys).text();
        assert!(!framed(&text).first().unwrap().contains('…'), "{text}");
    }
}

#[test]
fn charts_that_do_not_fit_are_summarized_as_text() {
    for size in SIZES {
        let text = screen(size, "9 <Tab>").text();
        for what in ["101.9 ms", "closed form", "115.2 ms"] {
            assert!(text.contains(what), "{what} at {size:?}:\n{text}");
        }
        let text = screen(size, "9").text();
        assert!(!text.contains("enlarge"), "{size:?}:\n{text}");
        assert!(text.contains("KV in use") && text.contains("one of 2 replicas"), "{size:?}:\n{text}");
    }
    let text = screen((40, 12), "9").text();
    assert!(text.contains("running: mean 60.5") && text.contains("KV in use: mean 12.9 %, max 13.9 %"), "{text}");
    let text = screen((40, 12), ":llama3.1-70b-train<Enter> 9").text();
    assert!(text.contains("stage 0 compute") && text.contains("96 %"), "{text}");
}

#[test]
fn legend_letters_mark_the_lanes_without_colors() {
    let mut hands = screen((120, 40), "");
    hands.app.themes = Themes::load(None, ColorDepth::Mono).0;
    go(&mut hands, ":llama3.1-70b-train<Enter> 9");
    let text = hands.text();
    let lanes: String = framed(&text).into_iter().filter(|line| line.contains("stage ")).collect();
    for sign in ["BBB", "CCC", "TTT"] {
        let legend = format!("{} ", sign.chars().next().unwrap());
        assert!(framed(&text).first().unwrap().contains(&legend) && lanes.contains(sign), "{sign}:\n{text}");
    }
    let mut hands = screen((120, 40), "");
    hands.app.themes = Themes::load(None, ColorDepth::Mono).0;
    go(&mut hands, "9");
    let text = hands.text();
    let chart: Vec<&str> = framed(&text).into_iter().filter(|line| line.contains(['⣀', '⣧'])).collect();
    assert!(chart.iter().any(|line| line.contains('a')) && chart.iter().any(|line| line.contains('b')), "{text}");
}

#[test]
fn an_axis_of_times_has_one_unit() {
    for size in SIZES {
        let text = screen(size, "9 <Tab>").text();
        let axes: Vec<&str> =
            framed(&text).into_iter().skip_while(|line| !line.contains('┬')).skip(1).take(1).collect();
        assert_eq!(axes.len(), usize::from(size.1 > 12), "{text}");
        // Two distributions in milliseconds, one in seconds.
        assert!(axes.iter().all(|axis| axis.contains(" s") && !axis.contains("000 ms")), "{text}");
    }
}

#[test]
fn dialogs_that_are_longer_than_the_screen_scroll() {
    let mut hands = screen((40, 12), "&");
    assert!(hands.text().contains('▼') && !hands.text().contains("before they are written"), "{}", hands.text());
    hands.keys("jjjj");
    assert!(hands.text().contains("before they are written"), "{}", hands.text());
    let mut hands = screen((40, 12), ":xyzzy");
    let before = hands.text();
    assert!(before.contains('▼'), "{before}");
    hands.keys("<Down><Down>");
    assert_ne!(hands.text(), before);
    let text = screen((40, 12), "x").text();
    assert!(text.contains("Markdown  1 of 5"), "{text}");
}

#[test]
fn nearly_full_memory_is_marked_and_the_mark_is_explained() {
    for size in SIZES {
        let mut hands = screen(size, "mm #");
        let text = hands.text();
        let second = framed(&text).get(1).copied().unwrap_or_default().to_owned();
        assert!(second.contains("tok/s"), "the unit stands in the second line: {text}");
        if size.0 >= 80 {
            assert!(text.contains("! under 5 % free"), "{text}");
        }
        assert!(framed(hands.keys("g").text().as_str()).len() > 2);
    }
}

#[test]
fn infeasible_scenario_shows_no_efficiency() {
    let text = screen((120, 40), ":llama3.1-70b-train<Enter> 9 <Tab>").text();
    assert!(text.contains("✗ cannot run") && !text.contains("efficiency"), "{text}");
}

#[test]
fn a_watched_run_has_its_verdict_once_and_its_times_in_one_unit() {
    for size in [(80, 24), (120, 40)] {
        let mut hands = screen(size, ":h100-sxm-8<Enter> :llama3.1-8b-train<Enter>");
        crate::tui::views::watch::of(&mut hands.app, vec!["tests/data/screens/slow.log".to_owned()]);
        go(&mut hands, "vj");
        let text = hands.text();
        assert_eq!(text.matches("faster than predicted").count(), 1, "{text}");
        let line = text.lines().find(|line| line.contains(" per step, predicted")).unwrap();
        assert!(!line.contains(" min"), "{line}");
        assert!(!text.contains("planned"), "{text}");
    }
}
