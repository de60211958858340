#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
use super::*;
use crate::tui::testing::TestApp;

fn worked() -> TestApp {
    let mut h = TestApp::new();
    h.keys("Wjj/tp<Enter><Right>bm<Esc>Ttrwide<Enter><Right>tp[:theme light<Enter>Hjmoo/microbatch<Enter>Vjj3");
    h
}

#[test]
fn session_round_trip_restores_the_state() {
    let h = worked();
    let document = capture(&h.app, "dark");
    let mut again = TestApp::new();
    assert_eq!(restore(&Document::parse(&document.text()).unwrap(), &mut again.app), Vec::<String>::new());
    assert_eq!(capture(&again.app, "dark"), document, "what is left again is what was found");
    assert_eq!((&again.app.now, again.app.view, again.app.pane), (&h.app.now, h.app.view, h.app.pane));
    assert_eq!((again.app.knob, again.app.figure, again.app.theme), (h.app.knob, h.app.figure, h.app.theme));
    assert_eq!((again.app.tab_label(1), again.app.tabs.pinned()), ("wide".to_owned(), Some(1)));
    let rates = |h: &TestApp| h.app.baseline.value(Metric::named("tokens_per_sec").unwrap());
    assert_eq!(rates(&again), rates(&h));
    again.keys("]");
    let mut h = h;
    h.keys("]");
    // Undo steps are not saved; named points are.
    h.app.past.clear();
    h.app.recompute();
    assert_eq!(again.app.now, h.app.now);
    assert_eq!(again.text(), h.text());
}

#[test]
fn running_tour_is_not_captured_in_the_session() {
    let mut h = worked();
    let before = capture(&h.app, "dark");
    let (demos, _) = crate::demo::Demos::load(None, None);
    h.app.demos = demos.into();
    h.keys("<Esc>").keys("3d<Enter><Space><Space>");
    assert!(h.app.tour.is_some());
    assert_eq!(capture(&h.app, "dark"), before);
}

#[test]
fn restore_reports_unknown_knobs_and_still_computes_an_estimate() {
    let h = worked();
    let text = capture(&h.app, "dark").text();
    let text = text.replace("8xH100", "8xGONE").replace("\"tp\"", "\"tpp\"").replace("microbatch", "micromatch");
    let mut again = TestApp::new();
    let problems = restore(&Document::parse(&text).unwrap(), &mut again.app);
    assert!(problems.iter().any(|problem| problem.contains("tpp")), "{problems:?}");
    assert!(again.app.answer.outcome.is_ok(), "{:?}", again.app.answer.outcome);
    again.text();
}

#[test]
fn a_misspelled_flag_is_reported_with_a_suggestion() {
    let mut h = TestApp::new();
    let first = h.app.now.setup.clone();
    let unknown = select(&mut h.app, first.clone(), &Some("8xH10".to_owned()), &Some("zzzz".to_owned()));
    assert_eq!(unknown.first().map(String::as_str), Some("no target `8xH10`; did you mean `8xH100`?"));
    assert!(unknown[1].starts_with("no workload `zzzz`; known: "), "{unknown:?}");
    assert_eq!(h.app.now.setup, first);
}

#[test]
fn invalid_session_is_reported_and_renamed_to_broken() {
    for (text, part) in [
        ("", "EOF"),
        ("[1", "EOF"),
        ("{}", "version 0"),
        ("{\"version\": 1}", "no tabs"),
        ("{\"version\": 99, \"tabs\": []}", "version 99"),
        ("{\"version\": 1, \"tabs\": 5}", "expected"),
    ] {
        let described = Document::parse(text).unwrap_err().to_string();
        assert!(described.contains(part), "{text}: {described}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/session.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{ broken").unwrap();
    let described = Store::at(path.clone()).load().unwrap_err();
    assert!(described.contains("session.json.broken"), "{described}");
    assert!(!path.exists());
    assert_eq!(Store::at(path).load(), Ok(None));
}

#[test]
fn a_session_of_a_newer_version_or_that_cannot_be_read_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.json");
    let h = TestApp::new();
    for text in ["{\"version\": 99, \"tabs\": [{\"future\": true}]}".to_owned().into_bytes(), vec![0xff, 0xfe]] {
        std::fs::write(&path, &text).unwrap();
        let mut store = Store::at(path.clone());
        let described = store.load().unwrap_err();
        assert!(described.contains("the file is left unchanged"), "{described}");
        store.save(capture(&h.app, "dark")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }
}

#[test]
fn broken_sessions_are_put_aside_without_replacing_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.json");
    for text in ["{ first", "{ second", "{ third"] {
        std::fs::write(&path, text).unwrap();
        Store::at(path.clone()).load().unwrap_err();
    }
    let aside = ["one.json.broken", "one.json.broken-2", "one.json.broken-3"];
    let texts = aside.map(|name| std::fs::read_to_string(dir.path().join(name)).unwrap());
    assert_eq!(texts, ["{ first", "{ second", "{ third"]);
}

#[test]
fn second_instance_on_a_session_saves_to_a_numbered_file() {
    let dir = tempfile::tempdir().unwrap();
    for existing in [false, true] {
        let path = dir.path().join(format!("sessions/n{existing}.json"));
        let (mut a, mut b) = (TestApp::new(), TestApp::new());
        if existing {
            Store::at(path.clone()).save(capture(&a.app, "dark")).unwrap();
        }
        let (mut first, mut second) = (Store::at(path.clone()), Store::at(path.clone()));
        first.load().unwrap();
        second.load().unwrap();
        a.keys("Wj");
        b.keys("Wjj");
        for _ in 0..2 {
            first.save(capture(&a.app, "dark")).unwrap();
            second.save(capture(&b.app, "dark")).unwrap();
            a.keys("3");
            b.keys("4");
        }
        first.save(capture(&a.app, "dark")).unwrap();
        second.save(capture(&b.app, "dark")).unwrap();
        assert_eq!(first.notice(), None);
        let described = second.notice().unwrap();
        assert!(described.contains(&format!("--session n{existing}-2")), "{described}");
        assert_eq!(Store::at(path.clone()).load().unwrap().unwrap(), capture(&a.app, "dark"));
        let beside = path.with_file_name(format!("n{existing}-2.json"));
        assert_eq!(Store::at(beside).load().unwrap().unwrap(), capture(&b.app, "dark"));
    }
}

#[test]
fn session_is_not_saved_before_the_first_edit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions/one.json");
    let mut h = TestApp::new();
    let mut store = Store::at(path.clone());
    assert_eq!(store.load(), Ok(None));
    store.set_initial(capture(&h.app, "dark"));
    store.save(capture(&h.app, "dark")).unwrap();
    assert!(!path.exists());
    h.keys("Wj");
    store.save(capture(&h.app, "dark")).unwrap();
    let mut store = Store::at(path.clone());
    let found = store.load().unwrap().unwrap();
    assert_eq!(found, capture(&h.app, "dark"));
    // The state of a fresh start is also saved if it is reached by edits.
    h.keys("k");
    store.save(capture(&h.app, "dark")).unwrap();
    assert_eq!(Store::at(path).load().unwrap().unwrap(), capture(&h.app, "dark"));
}

#[test]
fn requested_setup_replaces_an_untouched_tab_or_opens_a_new_one() {
    let ask_for = |h: &mut TestApp| {
        let setup = Setup { target: "8xMI300X".into(), ..TestApp::new().app.now.setup };
        show(&mut h.app, setup);
        h.app.recompute();
    };
    // The untouched tab is replaced.
    let mut h = TestApp::new();
    h.keys("Wj3");
    ask_for(&mut h);
    assert_eq!((h.app.tabs.count(), h.app.view, &*h.app.now.setup.target), (1, View::Main, "8xMI300X"));
    // A tab with edits is kept, next to the new one.
    let mut h = worked();
    let before = h.app.now.clone();
    ask_for(&mut h);
    assert_eq!((h.app.tabs.count(), h.app.view, &*h.app.now.setup.target), (3, View::Main, "8xMI300X"));
    assert!(h.app.now.setup.overrides.is_empty());
    assert_eq!(h.app.tab_snapshot(0), Some(&before));
    // Asking again selects the same tab.
    h.keys("[");
    ask_for(&mut h);
    assert_eq!((h.app.tabs.count(), h.app.tabs.current()), (3, 1));
}

#[test]
fn session_restores_the_knobs_of_a_sweep() {
    let mut h = TestApp::new();
    h.keys("Wjj/concurrency<Enter>4").work().keys("<Tab>n").work();
    let before = (crate::tui::views::sweep::across(&h.app), crate::tui::views::sweep::against(&h.app));
    assert!(before.0.is_some() && before.1.is_some());
    let text = capture(&h.app, "dark").text();
    let mut again = TestApp::new();
    restore(&Document::parse(&text).unwrap(), &mut again.app);
    again.work();
    assert_eq!((crate::tui::views::sweep::across(&again.app), crate::tui::views::sweep::against(&again.app)), before);
}
