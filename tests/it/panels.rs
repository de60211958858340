//! The views of jobs, history and launch files: key presses in, screens out, with effects executed as by the runtime.

use crate::common::{keys, screen};

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use atlas_cluster::history::{Draft, Entry, EntryKind, JOBS, Store};
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_fabric::theme::color::ColorDepth;
use atlas_fabric::theme::{Glyphs, Themes};
use atlas_fabric::tui::app::{App, View};
use atlas_fabric::tui::message::{Effect, Message, Timer};
use atlas_fabric::tui::update::update;
use atlas_fabric::tui::views::watch;
use atlas_plan::search::Gauge;
use jiff::Timestamp;

struct Harness {
    app: App,
    timers: Vec<Timer>,
}

impl Harness {
    fn new(columns: u16, rows: u16) -> Harness {
        let data = Path::new("tests/data/screens");
        let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
        let library = Arc::new(Library::load(&Sources { targets, workloads, ..Sources::built_in() }, None));
        let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
        let app = App::new(library, Vec::new(), themes, Glyphs::unicode(), (columns, rows));
        Harness { app, timers: Vec::new() }
    }

    /// Handles a message, and executes effects until none is left.
    fn send(&mut self, message: Message) {
        let mut open = update(&mut self.app, message);
        while let Some(effect) = open.pop() {
            match effect {
                Effect::Work(order) => {
                    let product = order.job.run(&Gauge::default());
                    open.extend(update(&mut self.app, Message::WorkFinished(order.serial, product)));
                }
                Effect::After { timer, .. } => self.timers.push(timer),
                _ => {}
            }
        }
    }

    fn keys(&mut self, text: &str) -> &mut Harness {
        for key in keys::typed(text) {
            self.send(Message::Key(key));
        }
        self
    }

    fn text(&self) -> String {
        screen::text(&self.app)
    }
}

/// Screens of a view at all sizes, after these keys.
fn pictures(name: &str, keys: &str, prepare: impl Fn(&mut Harness)) {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let mut hands = Harness::new(columns, rows);
        prepare(&mut hands);
        hands.keys(keys);
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("{name}_{columns}x{rows}"), hands.text());
        });
    }
}

/// A fixed set of entries: a prediction, the job submitted with it, its run, and another run.
pub(crate) fn history(directory: &Path) -> Store {
    let store = Store::at(directory);
    let mut before: Option<String> = None;
    let entries = [
        (EntryKind::Prediction, "11111111", 14_185.8, "8"),
        (EntryKind::Submission, "22222222", 14_185.8, "8"),
        (EntryKind::Run, "33333333", 19_000.0, "8"),
        (EntryKind::Run, "44444444", 15_000.0, "4"),
    ];
    for (second, (kind, handle, step, tp)) in (0..).zip(entries) {
        let mut inputs = BTreeMap::from([("tp".to_owned(), tp.into())]);
        if kind == EntryKind::Submission {
            inputs.insert(JOBS.to_owned(), "4711".into());
        }
        let draft = Draft {
            target: Some("8xH100".to_owned()),
            workload: Some("llama3_8b_train".to_owned()),
            software: Some("megatron-lm@core-0.14".to_owned()),
            engine: Some("analytical".to_owned()),
            at: Timestamp::from_second(1_760_000_000 + 3600 * second).ok(),
            figures: BTreeMap::from([("step_time_ms".to_owned(), step)]),
            inputs,
            sources: if handle == "44444444" { Vec::new() } else { before.iter().cloned().collect() },
            ..Draft::default()
        };
        let made = Entry::new(kind, draft);
        let id = format!("20251009T0{second}0000000-{}-{handle}", kind.name());
        before = Some(store.write(&Entry { id, ..made }).unwrap().id);
    }
    store
}

#[test]
fn watch_view_shows_the_slowdown_and_cost_to_completion() {
    let log = "tests/data/screens/slow.log".to_owned();
    pictures("watch", "vj", |hands| watch::of(&mut hands.app, vec![log.clone()]));
    let mut hands = Harness::new(120, 40);
    watch::of(&mut hands.app, vec![log]);
    let text = hands.keys("vj").text();
    assert!(text.contains("slower than predicted since step 61"), "{text}");
    assert!(text.contains("USD to completion"), "{text}");
}

#[test]
fn watch_polls_only_while_its_view_is_open() {
    let mut hands = Harness::new(120, 40);
    assert!(hands.keys("vj").text().contains("atlas tui --watch"), "{}", hands.text());
    watch::of(&mut hands.app, vec!["tests/data/screens/slow.log".to_owned()]);
    hands.keys("<Esc>vj");
    let looks = |hands: &Harness| hands.timers.iter().filter(|timer| matches!(timer, Timer::Watch(_))).count();
    assert_eq!(looks(&hands), 1);
    let timer = *hands.timers.last().unwrap();
    hands.send(Message::Expired(timer));
    assert_eq!(looks(&hands), 2);
    hands.keys("<Esc>");
    let timer = *hands.timers.last().unwrap();
    hands.send(Message::Expired(timer));
    assert_eq!(looks(&hands), 2, "the view is closed");
}

#[test]
fn the_history_lists_filters_compares_and_shows_chains_and_trends() {
    let directory = tempfile::tempdir().unwrap();
    let store = history(directory.path());
    for (name, keys) in [
        ("history", "vh"),
        ("history_filter", "vh/submission<Enter>"),
        ("history_entry", "vhj<Enter>"),
        ("history_difference", "vh<Space>jjj<Enter>"),
        ("history_trend", "vho"),
    ] {
        pictures(name, keys, |hands| hands.app.history.store = Some(store.clone()));
    }
    let mut hands = Harness::new(120, 40);
    hands.app.history.store = Some(store);
    let text = hands.keys("vhj<Enter>").text();
    for handle in ["11111111", "22222222", "33333333"] {
        assert!(text.contains(handle), "{handle} is not in the chain:\n{text}");
    }
    assert!(!text.contains("44444444"), "{text}");
    hands.keys("<Esc>");
    assert_eq!(hands.app.view, View::History, "Esc goes back to the list first");
    assert_eq!(hands.app.view_row, 1);
    hands.keys("<Esc>");
    assert_eq!(hands.app.view, View::Main);
}

#[test]
fn release_views_match_their_snapshots() {
    pictures("releases", "Wjj@", |_| {});
    pictures("releases_unfolded", "Wjj@j<Space>", |_| {});
    pictures("what_runs", "Wjj#", |_| {});
}

#[test]
fn formats_view_matches_its_snapshots() {
    pictures("formats", "Wjjvf", |_| {});
    pictures("formats_does_not_fit", "Wjj:tp=1<Enter>vfk", |_| {});
}

#[test]
fn disabled_history_is_stated_in_the_history_view() {
    let mut hands = Harness::new(80, 24);
    assert!(hands.keys("vh").text().contains("ATLAS_HISTORY is off"), "{}", hands.text());
}

#[test]
fn launch_view_switches_between_shell_slurm_and_kubernetes() {
    pictures("launch", "vl", |_| {});
    let mut hands = Harness::new(120, 40);
    let script = hands.keys("vl").text();
    let batch = hands.keys("l").text();
    assert!(!script.contains("#SBATCH") && batch.contains("#SBATCH --nodes=1"), "{batch}");
    hands.keys("hh");
    assert!(hands.text().contains("kind: Job"), "{}", hands.text());
}
