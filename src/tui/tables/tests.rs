#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
use super::*;
use crate::spec::Sources;
use crate::tui::testing::Hands;

fn names(h: &Hands) -> Vec<String> {
    h.app.targets().map(|(_, target)| target.name.to_string()).collect()
}

#[test]
fn a_filter_is_words_and_conditions_however_they_are_spaced() {
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
fn a_list_shows_what_matches_while_it_is_typed_and_everything_again_after_esc() {
    let mut h = Hands::of(&Sources::built_in());
    let all = names(&h).len();
    h.keys("fmi300");
    let found = names(&h);
    assert!(!found.is_empty() && found.len() < all && found.iter().all(|name| name.to_lowercase().contains("mi300")));
    assert!(h.text().contains(&format!("/mi300 {} of {all}", found.len())), "{}", h.text());
    // Esc while typing leaves it as it was; Enter keeps it, and Esc afterwards shows all.
    h.keys("<Esc>");
    assert_eq!(names(&h).len(), all);
    h.keys("fmi300<Enter>");
    assert_eq!(names(&h), found);
    h.keys("g");
    assert_eq!(h.app.now.setup.target.as_ref(), found[0]);
    h.keys("<Esc>");
    assert_eq!(names(&h).len(), all);
    h.keys("fzzzz<Enter>");
    assert!(names(&h).is_empty() && h.text().contains("nothing matches"));
}

#[test]
fn conditions_are_of_the_scenario_on_the_screen() {
    let mut h = Hands::new();
    h.keys("WjHffits<Enter>");
    let fitting = names(&h);
    assert_eq!(fitting, ["8xMI300X"], "the second workload needs the larger memory");
    // A figure that says nothing here holds no condition, however small its nothing is.
    h.keys("<Esc>ftpot>=0<Enter>");
    assert!(names(&h).is_empty(), "training has no TPOT");
    h.keys("<Esc>ffits<Enter>");
    // The scenario changes, and with it what fits.
    h.keys("Wk");
    assert_eq!(names(&h).len(), 2);
    // A condition that cannot be meant is told, and the table stays.
    h.keys("Hftpott<5");
    assert!(h.app.prompt.as_ref().unwrap().error.as_ref().unwrap().contains("did you mean"));
    h.keys("<Enter>");
    assert!(h.app.prompt.is_some(), "it stays to be mended");
    h.keys("<Esc>");
    assert_eq!(names(&h).len(), 2);
}

#[test]
fn lists_are_sorted_by_each_column_and_by_the_figure_under_the_cursor() {
    let mut h = Hands::of(&Sources::built_in());
    let natural = names(&h);
    h.keys("o");
    let mut by_name = natural.clone();
    by_name.sort_by_key(|name| name.to_lowercase());
    assert_eq!(names(&h), by_name);
    h.keys("o");
    let devices: Vec<f64> = h.app.targets().map(|(_, target)| target.accelerators()).collect();
    assert!(devices.is_sorted_by(|a, b| a >= b));
    h.keys("o");
    let metric = h.app.figure_here().unwrap();
    let keys: Vec<(bool, f64)> = h.app.targets().map(|(_, target)| rank(metric, &on(&h.app, target))).collect();
    assert!(keys.is_sorted_by(|a, b| a <= b), "{keys:?}");
    // The cursor walks the list as it is shown.
    let shown = names(&h);
    h.keys("gj");
    assert_eq!(h.app.now.setup.target.as_ref(), shown[1]);
    h.keys("o");
    assert_eq!(names(&h), natural);
}

#[test]
fn the_comparison_and_the_playbook_are_filtered_and_sorted_too() {
    let mut h = Hands::new();
    h.keys("WjHc/fits<Enter>");
    assert_eq!(h.app.columns.len(), 1);
    assert!(h.text().contains("/fits 1 of 2"), "{}", h.text());
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
    // What Enter applies is what is under the cursor of the table as it is shown.
    let wanted = h.app.advice_shown()[0].text.clone();
    h.keys("<Enter>");
    assert!(h.app.status.as_ref().unwrap().text.contains(&wanted));
}
