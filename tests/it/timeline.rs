//! Simulations in the TUI: run by workers, shown as a timeline, cached.

use crate::common::{keys, screen};

use std::path::Path;
use std::sync::Arc;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_fabric::demo::View;
use atlas_fabric::theme::color::ColorDepth;
use atlas_fabric::theme::{Glyphs, Themes};
use atlas_fabric::tui::app::App;
use atlas_fabric::tui::message::{Effect, Message};
use atlas_fabric::tui::update::update;
use atlas_fabric::tui::views::timeline::{Picture, picture};
use atlas_fabric::tui::work::Order;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::{Knob, KnobValues as _, Setting};
use atlas_plan::search::Gauge;
use atlas_sim::training::StreamKind;

struct Harness {
    app: App,
    /// Jobs that have not started yet.
    orders: Vec<Order>,
    /// Number of jobs so far.
    ordered: usize,
    /// Whether jobs wait for a call of [`Harness::work`].
    idle: bool,
}

impl Harness {
    fn new(glyphs: Glyphs, columns: u16, rows: u16, workload: &str) -> Harness {
        let data = Path::new("tests/data/screens");
        let sources = Sources {
            targets: Some(data.join("targets.yaml")),
            workloads: Some(data.join("workloads.yaml")),
            ..Sources::built_in()
        };
        let library = Arc::new(Library::load(&sources, None));
        let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
        let mut app = App::new(library, Vec::new(), themes, glyphs, (columns, rows));
        app.now.setup.workload = workload.into();
        app.recompute();
        Harness { app, orders: Vec::new(), ordered: 0, idle: false }
    }

    fn training() -> Harness {
        Harness::new(Glyphs::unicode(), 120, 40, "llama3_70b_train")
    }

    fn serving() -> Harness {
        Harness::new(Glyphs::unicode(), 120, 40, "llama3_70b_serve")
    }

    fn set(&mut self, name: &str, text: &str) -> &mut Harness {
        let knob = Knob::named(name).unwrap();
        let setting = knob.parse(text, self.app.answer.fabrics()).unwrap();
        self.app.set_knob(knob, setting);
        // The jobs for the changed knob are requested with the next message.
        self.send(Message::Resize(self.app.size.0, self.app.size.1));
        self
    }

    fn send(&mut self, message: Message) {
        for effect in update(&mut self.app, message) {
            match effect {
                Effect::Work(order) => {
                    self.ordered += 1;
                    self.orders.push(order);
                }
                Effect::Cancel(serial) => self.orders.retain(|order| order.serial != serial),
                _ => {}
            }
        }
        if !self.idle {
            self.work();
        }
    }

    fn work(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            let product = order.job.run(&Gauge::default());
            self.send(Message::WorkFinished(order.serial, product));
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

    fn metric(&self, name: &str) -> f64 {
        self.app.answer.value(Metric::named(name).unwrap()).unwrap()
    }
}

macro_rules! snapshot {
    ($name:expr, $harness:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $harness.text());
        });
    };
}

#[test]
fn timeline_views_match_their_snapshots() {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let size = format!("{columns}x{rows}");
        let mut h = Harness::new(Glyphs::unicode(), columns, rows, "llama3_70b_train");
        h.set("tp", "1").set("pp", "4").set("slow_nodes", "0");
        snapshot!(format!("timeline_{size}"), h.keys("9jkll+++"));
    }
    let mut h = Harness::new(Glyphs::ascii(), 120, 40, "llama3_70b_train");
    snapshot!("ascii_timeline_120x40", h.set("tp", "1").set("pp", "4").keys("9"));
    let mut h = Harness::serving();
    h.set("request_rate", "4").set("generate_cv", "0.5").set("slo_ttft_ms", "200");
    snapshot!("levels_120x40", h.keys("9"));
    snapshot!("latencies_120x40", h.keys("<Tab>"));
}

#[test]
fn closed_form_is_shown_until_the_simulation_finishes() {
    let mut h = Harness::new(Glyphs::unicode(), 200, 60, "llama3_70b_serve");
    let closed = h.metric("tokens_per_sec");
    h.idle = true;
    h.set("engine", "event");
    assert!(h.app.answer.pending && h.orders.len() == 1);
    assert_eq!(h.metric("tokens_per_sec"), closed);
    assert!(h.text().contains("simulating (0 %); Esc stops"), "{}", h.text());
    h.work();
    assert!(!h.app.answer.pending && h.app.answer.detail().unwrap().simulated.is_some());
    assert!(h.metric("tokens_per_sec") != closed);
    assert!(h.text().contains("simulated: 1 run of"), "{}", h.text());
}

#[test]
fn comparison_columns_without_simulation_are_labeled_closed_form() {
    let mut h = Harness::new(Glyphs::unicode(), 200, 60, "llama3_70b_serve");
    h.keys("C");
    assert!(!h.text().contains("~ closed form"), "{}", h.text());
    h.set("engine", "event");
    // The current target has been simulated; the others show the closed form until they are simulated.
    assert!(!h.app.answer.pending && h.app.columns.iter().any(|(_, answer)| answer.pending));
    let text = h.text();
    assert!(text.contains("~ closed form, not simulated yet"), "{text}");
    assert!(text.matches("~ closed form").count() > 1, "{text}");
}

#[test]
fn simulations_are_cached_and_an_edit_cancels_a_running_one() {
    let mut h = Harness::serving();
    h.set("engine", "event");
    let (first, ordered) = (h.metric("ttft_ms"), h.ordered);
    h.set("concurrency", "32");
    assert_eq!(h.ordered, ordered + 1);
    let second = h.metric("ttft_ms");
    assert!(first != second);
    h.set("concurrency", "64");
    assert_eq!((h.ordered, h.metric("ttft_ms"), h.app.answer.pending), (ordered + 1, first, false));
    h.idle = true;
    h.set("concurrency", "16").set("concurrency", "8");
    assert_eq!(h.orders.len(), 1, "the first of them was canceled");
}

#[test]
fn escape_stops_the_simulation_and_keeps_the_closed_form() {
    let mut h = Harness::serving();
    h.idle = true;
    h.set("engine", "event").keys("<Esc>");
    assert!(h.orders.is_empty() && h.app.answer.pending);
    assert!(h.text().contains("because the simulation is stopped"), "{}", h.text());
    // It is not started again until something changes.
    h.keys("<Tab>");
    assert!(h.orders.is_empty());
    h.set("concurrency", "16");
    assert_eq!(h.orders.len(), 1);
}

#[test]
fn timeline_cursor_moves_over_tasks_lanes_and_causes() {
    let mut h = Harness::training();
    h.set("tp", "1").set("pp", "4").keys("9");
    assert_eq!(h.app.view, View::Timeline);
    let here = |h: &Harness| *h.app.timeline.task(h.app.timeline.task_under_cursor().unwrap()).unwrap();
    let first = here(&h);
    assert_eq!((first.stage, first.stream, first.micro), (0, StreamKind::Compute, 0));
    h.keys("ll");
    let third = here(&h);
    assert!(third.begin > first.begin && third.stage == 0);
    h.keys("h");
    assert!(here(&h).begin < third.begin);
    // The last task of the last lane, then from each task to its cause until the beginning of the step.
    h.keys("jjjjjjjjjjjjG");
    let mut before = here(&h);
    assert!(before.begin > third.begin);
    for _ in 0..10_000 {
        h.keys("<Enter>");
        let now = here(&h);
        if now == before {
            break;
        }
        assert!(now.end <= before.end + 1e-9, "{now:?} {before:?}");
        before = now;
    }
    assert_eq!(before.after.and_then(|after| h.app.timeline.task(after)), None, "{before:?}");
}

#[test]
fn zooming_keeps_the_task_under_the_cursor_in_sight() {
    let mut h = Harness::training();
    h.set("tp", "1").set("pp", "4").keys("9G");
    let whole = h.app.timeline.window;
    h.keys("++++");
    let (from, to) = h.app.timeline.window;
    assert!(((to - from) * 16.0 / (whole.1 - whole.0) - 1.0).abs() < 1e-9);
    let task = h.app.timeline.task(h.app.timeline.task_under_cursor().unwrap()).unwrap();
    assert!(task.begin >= from - 1e-9 && task.end <= to + 1e-9);
    // To the first task, which is outside the window: the window follows.
    h.keys("g");
    let (from, to) = h.app.timeline.window;
    let task = h.app.timeline.task(h.app.timeline.task_under_cursor().unwrap()).unwrap();
    assert!(task.begin >= from - 1e-9 && task.begin <= to);
    h.keys("--------");
    assert_eq!(h.app.timeline.window, whole);
}

#[test]
fn tab_opens_the_scaling_chart_without_changing_metrics() {
    // On one node it does not fit, and sizes that cannot run are not compared.
    let mut h = Harness::training();
    h.set("num_nodes", "4");
    let before = h.metric("tokens_per_sec");
    h.keys("9<Tab>");
    assert_eq!(picture(&h.app), Picture::Scaling);
    let scaling = Arc::clone(h.app.queries.scaling.answer().unwrap());
    assert!(scaling.points.len() >= 2, "{scaling:?}");
    for (nodes, simulated, closed) in &scaling.points {
        assert!((simulated / closed - 1.0).abs() < 0.1, "{nodes} nodes: {simulated} {closed}");
    }
    assert!(h.text().contains("closed form"));
    assert_eq!(h.metric("tokens_per_sec"), before);
    assert_eq!(h.app.answer.scenario.as_ref().unwrap().get(Knob::Engine), Setting::Choice("analytical".into()));
}
