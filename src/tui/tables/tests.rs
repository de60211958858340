#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
use super::*;
use crate::tui::app::View;
use crate::tui::testing::TestApp;
use atlas_document::Sources;

fn names(h: &TestApp) -> Vec<String> {
    h.app.targets().map(|(_, target)| target.name.to_string()).collect()
}

#[test]
fn filter_parses_words_and_conditions_with_any_spacing() {
    let read = |text: &str| {
        let filter = Filter::parse(text).unwrap();
        let conditions: Vec<String> = filter.conditions.iter().map(ToString::to_string).collect();
        (filter.words.join("+"), conditions.join("+"))
    };
    let tpot = Filter::parse("tpot<50ms").unwrap().conditions.first().unwrap().to_string();
    assert_eq!(read("h100 tpot<50ms"), ("h100".into(), tpot.clone()));
    assert_eq!(read(" h100  tpot < 50 ms  sxm"), ("h100+sxm".into(), tpot.clone()));
    assert_eq!(read("tpot<50ms,fits"), (String::new(), format!("{tpot}+fits in memory and can run")));
    assert_eq!(read(""), (String::new(), String::new()));
    assert!(Filter::parse("tpott<50").unwrap_err().contains("did you mean `tpot`"));
}

#[test]
fn list_filter_applies_while_typing_and_esc_clears_it() {
    let mut h = TestApp::of(&Sources::built_in());
    let all = names(&h).len();
    h.keys("fmi300");
    let found = names(&h);
    assert!(!found.is_empty() && found.len() < all && found.iter().all(|name| name.to_lowercase().contains("mi300")));
    assert!(h.text().contains(&format!("{} of {all} /mi300", found.len())), "{}", h.text());
    // Esc while typing restores the previous filter; Enter keeps the new one, and Esc afterwards clears it.
    h.keys("<Esc>");
    assert_eq!(names(&h).len(), all);
    h.keys("fmi300<Enter>");
    assert_eq!(names(&h), found);
    h.keys("g");
    assert_eq!(h.app.now.setup.target.as_ref(), found[0]);
    h.keys("<Esc>");
    assert_eq!(names(&h).len(), all);
    h.keys("fzzzz<Enter>");
    assert!(names(&h).is_empty() && h.text().contains("no match"));
}

#[test]
fn filter_conditions_are_evaluated_for_the_current_scenario() {
    let mut h = TestApp::new();
    h.keys("WjHffits<Enter>");
    let fitting = names(&h);
    assert_eq!(fitting, ["8xMI300X"], "the second workload needs the larger memory");
    // A metric that does not apply fails every condition, even though its value is 0.
    h.keys("<Esc>ftpot>=0<Enter>");
    assert!(names(&h).is_empty(), "training has no TPOT");
    h.keys("<Esc>ffits<Enter>");
    // What fits depends on the scenario.
    h.keys("Wk");
    assert_eq!(names(&h).len(), 2);
    // An invalid condition is described, and the table does not change.
    h.keys("Hftpott<5");
    assert!(h.app.prompt.as_ref().unwrap().error.as_ref().unwrap().contains("did you mean"));
    h.keys("<Enter>");
    assert!(h.app.prompt.is_some(), "it stays to be mended");
    h.keys("<Esc>");
    assert_eq!(names(&h).len(), 2);
}

#[test]
fn lists_sort_by_each_column_and_by_the_metric_under_the_cursor() {
    let mut h = TestApp::of(&Sources::built_in());
    let natural = names(&h);
    h.keys("o");
    let mut by_name = natural.clone();
    by_name.sort_by_key(|name| name.to_lowercase());
    assert_eq!(names(&h), by_name);
    h.keys("o");
    let devices: Vec<f64> = h.app.targets().map(|(_, target)| target.get().unwrap().accelerators()).collect();
    assert!(devices.is_sorted_by(|a, b| a >= b));
    h.keys("o");
    let metric = h.app.selected_metric().unwrap();
    let keys: Vec<(bool, f64)> =
        h.app.targets().map(|(_, target)| rank(metric, &answer_on_target(&h.app, target.get().unwrap()))).collect();
    assert!(keys.is_sorted_by(|a, b| a <= b), "{keys:?}");
    // The cursor moves in the order of the list.
    let shown = names(&h);
    h.keys("gj");
    assert_eq!(h.app.now.setup.target.as_ref(), shown[1]);
    h.keys("o");
    assert_eq!(names(&h), natural);
}

#[test]
fn comparison_and_advice_can_be_filtered_and_sorted() {
    let mut h = TestApp::new();
    h.keys("WjHC/fits<Enter>");
    assert_eq!(h.app.columns.len(), 1);
    assert!(h.text().contains("1 of 2 /fits"), "{}", h.text());
    h.keys("<Esc>");
    assert_eq!((h.app.columns.len(), h.app.view), (2, View::Compare), "Esc shows all, and stays");
    h.keys("O");
    let columns: Vec<_> = h.app.columns.iter().map(|(name, _)| name.to_string()).collect();
    assert!(columns.is_sorted());
    h.keys("<Esc>Wj8");
    let all = h.app.advice_shown().len();
    assert!(all > 1);
    h.keys("o");
    let rules: Vec<&str> = h.app.advice_shown().iter().map(|advice| advice.rule.name).collect();
    assert!(rules.is_sorted());
    let word = rules[0].to_owned();
    h.keys("/").keys(&word).keys("<Enter>");
    assert!(h.app.advice_shown().len() < all);
    // Enter applies the advice under the cursor of the sorted table.
    let wanted = h.app.advice_shown()[0].text.clone();
    h.keys("<Enter>");
    assert!(h.app.status.as_ref().unwrap().text.contains(&wanted));
}

/// Returns the names in the pane of knobs, from the top.
fn knobs(h: &TestApp) -> Vec<&'static str> {
    h.app.knobs().map(|spec| spec.name).collect()
}

#[test]
fn knobs_and_metrics_sort_by_every_column_and_reset() {
    let mut h = TestApp::new();
    let natural = knobs(&h);
    h.keys("Kjo");
    let mut by_name = natural.clone();
    by_name.sort_unstable();
    assert_eq!(knobs(&h), by_name);
    assert!(!h.text().contains(" parallelism "), "sorted knobs have no groups\n{}", h.text());
    // The cursor stays on its knob, and moves in the order that is shown.
    let here = h.app.selected_knob();
    h.keys("jk");
    assert_eq!(h.app.selected_knob(), here);
    h.keys("o");
    let values: Vec<f64> = h
        .app
        .knobs()
        .filter_map(|spec| match h.app.answer.scenario.as_ref().unwrap().get(spec.knob) {
            atlas_plan::knob::Setting::Number(value) => Some(value),
            _ => None,
        })
        .collect();
    assert!(values.len() > 5 && values.is_sorted_by(|a, b| a >= b), "{values:?}");
    h.keys("o/tp<Enter><Right>");
    assert_eq!(knobs(&h).first(), Some(&"tp"), "what is turned comes first");
    h.keys("o");
    // With TP, more knobs have an effect.
    let first: Vec<&str> = knobs(&h).into_iter().filter(|name| natural.contains(name)).collect();
    assert_eq!(first, natural);
    let names = |h: &TestApp| h.app.figures().map(|metric| metric.label.to_lowercase()).collect::<Vec<_>>();
    let natural = names(&h);
    h.keys("Vo");
    assert!(names(&h).is_sorted() && names(&h).len() == natural.len());
    h.keys("oo");
    let change = |h: &TestApp| {
        let metric = h.app.figures().next().unwrap();
        (h.app.answer.value(metric).unwrap() / h.app.baseline.value(metric).unwrap() - 1.0).abs()
    };
    let most = h.app.figures().filter_map(|metric| {
        Some((h.app.answer.value(metric)? / h.app.baseline.value(metric).filter(|b| *b != 0.0)? - 1.0).abs())
    });
    assert!((change(&h) - most.fold(0.0, f64::max)).abs() < 1e-12);
    h.keys("o");
    assert_eq!(names(&h), natural);
}

#[test]
fn phases_can_be_sorted_filtered_by_words_and_explained() {
    let mut h = TestApp::of(&Sources::built_in());
    h.keys("/gpt5_1t_inference<Enter>H/NVIDIA_H100<Enter>vs");
    let phases = |h: &TestApp| {
        let names: Vec<String> =
            h.app.answer.workload.as_ref().unwrap().phases.iter().map(|p| p.name.to_string()).collect();
        let text = h.text();
        let mut found: Vec<(usize, String)> =
            names.into_iter().filter_map(|name| Some((text.find(&format!("│ {name} "))?, name))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    let natural = phases(&h);
    assert!(natural.len() > 2, "{}", h.text());
    h.keys("<Right>o");
    let by_rate = phases(&h);
    assert_ne!(by_rate, natural, "{}", h.text());
    h.keys("o");
    assert_eq!(phases(&h), by_rate.iter().rev().cloned().collect::<Vec<_>>(), "smallest first");
    h.keys("o");
    assert_eq!(phases(&h), natural);
    // A word filters the phases; a condition is rejected with a message.
    h.keys("/").keys(&natural[1]).keys("<Enter>");
    assert_eq!(phases(&h), [natural[1].clone()]);
    h.keys("<Esc>/p99_ms<5ms");
    assert!(h.text().contains("filter these rows by words"), "{}", h.text());
    h.keys("<Esc><Esc>");
    // Enter on a metric of a phase explains it, and Esc returns to the same row.
    h.keys("vsj<Right><Enter>");
    assert_eq!((h.app.view, h.app.figure.name), (View::Explain, "tokens_per_sec"));
    h.keys("<Esc>");
    assert_eq!((h.app.view, h.app.view_row), (View::Schedule, 1));
}

#[test]
fn enter_on_a_breakdown_bar_explains_its_metric() {
    let mut h = TestApp::new();
    h.keys("3jj<Enter>");
    assert_eq!(h.app.view, View::Explain);
    assert_eq!(
        h.app.figure.name,
        if h.app.answer.detail().unwrap().training.is_some() { "step_time_ms" } else { "tpot_ms" }
    );
    h.keys("<Esc>");
    assert_eq!((h.app.view, h.app.view_row), (View::Breakdown, 2));
    let memory = (0..40).any(|_| {
        h.keys("j<Enter>");
        let found = h.app.figure.name == "peak_mem_gb";
        h.keys("<Esc>");
        found
    });
    assert!(memory, "the parts of the memory lead to the memory");
}
