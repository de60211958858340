#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use atlas_document::Sources;
use atlas_plan::knob::{Knob, Setting};

/// The shipped catalog, without a session.
fn plain() -> Plain {
    let mut plain = Plain::new(Options { sources: Sources::built_in(), ..Options::default() });
    plain.start(&mut Store::default());
    plain
}

fn is_linear(text: &str) {
    for line in text.lines() {
        assert!(!line.contains(['│', '┌', '█', '├', '⡇']), "{line}");
        assert!(!line.contains("   "), "columns are for eyes: {line}");
    }
}

#[test]
fn plain_mode_starts_with_scenario_verdict_and_metrics() {
    let mut plain = plain();
    let text = plain.answer("");
    is_linear(&text);
    for part in ["llama3.1-70b-serve on h100-sxm-8", "fits:", "TPOT: ", "90 % range", "evidence:"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn plain_mode_question_runs_a_race_and_a_number_applies_a_row() {
    let mut plain = plain();
    let text = plain.answer("serve 70b cheapest tpot under 50ms on h100, h200, b200, mi300x");
    is_linear(&text);
    assert!(text.contains("Question: cheapest tpot<50ms") && text.contains("\n4. "), "{text}");
    plain.answer("2");
    assert!(!plain.app.now.setup.overrides.is_empty(), "the second layout is applied");
    plain.answer("undo");
    assert!(plain.app.now.setup.overrides.is_empty());
}

#[test]
fn plain_mode_sets_knobs_by_assignment_or_by_row_and_value() {
    let mut plain = plain();
    let text = plain.answer("tp=8");
    assert!(text.contains("compared with saved values"), "{text}");
    let tp = |plain: &Plain| plain.app.answer.scenario.as_ref().unwrap().get(Knob::Tp);
    assert_eq!(tp(&plain), Setting::Number(8.0));
    let list = plain.answer("go to the knobs");
    is_linear(&list);
    let row = list.lines().find(|line| line.contains(". tp ")).unwrap();
    let prompt = plain.answer(row.split('.').next().unwrap());
    assert!(prompt.contains("Type a value for tp"), "{prompt}");
    plain.answer("2");
    assert_eq!(tp(&plain), Setting::Number(2.0));
}

#[test]
fn every_view_is_linear_text() {
    for view in
        ["compare", "breakdown", "sweep", "frontier", "explain", "advice", "sensitivity", "timeline", "problems"]
    {
        let mut plain = plain();
        let text = plain.answer(view);
        is_linear(&text);
        assert!(text.lines().count() > 2 || view == "problems", "{view}: {text}");
    }
}

#[test]
fn plain_mode_drives_the_optimizer_and_tours_by_row_numbers() {
    let mut plain = plain();
    let form = plain.answer("optimize");
    let row = form.lines().find(|line| line.ends_with(". search")).unwrap();
    let found = plain.answer(row.split('.').next().unwrap());
    assert!(found.contains("apply candidate 1"), "{found}");
    plain.answer("back");
    let (demos, _) = crate::demo::Demos::load(None, None);
    plain.app.demos = demos.into();
    assert!(plain.answer("tours").contains("\n2. "));
    assert!(plain.answer("1").contains("step 1 of"));
    assert!(plain.answer("next").contains("step 2 of"));
    plain.answer("back");
    assert!(plain.app.tour.is_none());
}

#[test]
fn plain_mode_assistant_takes_lines_until_back_and_yes_applies() {
    let mut plain = plain();
    let before = plain.app.now.setup.clone();
    let first = plain.answer("what limits throughput?");
    assert!(first.contains("bound by"), "{first}");
    let second = plain.answer("what does mfu mean?");
    assert!(second.to_lowercase().contains("utilization") && second.contains("Ask in plain English"), "{second}");
    assert_eq!(plain.answer(""), second, "an empty line repeats the answer");
    let third = plain.answer("what if tp=8?");
    assert!(third.contains("With tp"), "{third}");
    assert_eq!((plain.app.assistant.turns.len(), &plain.app.now.setup), (3, &before));
    plain.answer("yes");
    assert!(plain.app.overlay.is_none() && plain.app.now.setup != before);
    plain.answer("undo");
    assert_eq!(plain.app.now.setup, before);
    plain.answer("what limits throughput?");
    plain.answer("back");
    assert!(plain.app.overlay.is_none());
}

#[test]
fn plain_mode_reports_unknown_words_and_quit_exits() {
    let mut plain = plain();
    assert!(plain.answer("zzqx").contains("unknown word `zzqx`"));
    assert!(plain.answer("help").contains("undo"));
    plain.answer("quit");
    assert!(plain.quit);
}

#[test]
fn plain_mode_completes_every_interface_task() {
    let tasks: [(&[&str], &[&str]); 9] = [
        (
            &["serve 70b cheapest tpot under 50ms on h100, h200, b200, mi300x"],
            &["Question: cheapest tpot<50ms", "\n4. "],
        ),
        (&["405b"], &["llama3.1-405b-train", "✗"]),
        (&["prompt=8192"], &["TTFT", "compared with saved values"]),
        (&["goal", "9000"], &["Goal for", "1. "]),
        (&["optimize", "keys R"], &["apply candidate 1"]),
        (&["compare"], &["h100-sxm-8", "h200-sxm-8"]),
        (&["breakdown"], &["communication"]),
        (&["explain"], &["="]),
        (&["train 70b 1T tokens 128 h100 under 60d"], &["h100-sxm-128"]),
    ];
    for (lines, expected) in tasks {
        let mut plain = plain();
        let text = lines.iter().map(|line| plain.answer(line)).last().unwrap();
        is_linear(&text);
        for part in expected {
            assert!(text.contains(part), "{lines:?}: {part}\n{text}");
        }
    }
}

#[test]
fn plain_mode_shows_ratio_changes_in_points_and_ranges_around_values() {
    let mut plain = plain();
    let text = plain.answer("");
    // The range is computed from the unrounded value.
    let rounded = text.split("TTFT: ").nth(1).and_then(|rest| rest.split_once(" ms; 90 % range "));
    let (value, range) = rounded.unwrap();
    let low: f64 = range.split(' ').next().and_then(|low| low.parse().ok()).unwrap();
    assert!(value.parse::<f64>().is_ok_and(|value| low < value), "{text}");
    let text = plain.answer("tp=8");
    assert!(text.contains(" pt compared with"), "{text}");
    assert!(text.lines().all(|line| !line.starts_with("memory fill") || line.contains(" pt ")), "{text}");
}
