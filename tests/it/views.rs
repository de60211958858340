//! Sweep, frontier, sensitivity and optimizer views: results of long-running jobs, requested with keys, delivered as by
//! the runtime.

use crate::common::{keys, screen};

use std::path::Path;
use std::sync::Arc;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_fabric::demo::View;
use atlas_fabric::theme::color::ColorDepth;
use atlas_fabric::theme::{Glyphs, Themes};
use atlas_fabric::tui::app::App;
use atlas_fabric::tui::input::keymap::Mode;
use atlas_fabric::tui::message::{Effect, Message, Timer};
use atlas_fabric::tui::screen::view;
use atlas_fabric::tui::update::update;
use atlas_fabric::tui::views::{frontier, optimum, sweep};
use atlas_fabric::tui::work::{Order, Product, Progress};
use atlas_plan::estimate::Metric;
use atlas_plan::knob::{Knob, KnobValues as _, Setting};
use atlas_plan::search::Gauge;
use atlas_plan::search::sensitivity::Lever;
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

struct Harness {
    app: App,
    effects: Vec<Effect>,
    /// Jobs that have not started yet.
    orders: Vec<Order>,
    /// Timers that wait for the scenario to stop changing.
    pauses: Vec<Timer>,
    /// Whether jobs wait for a call of [`Harness::work`].
    idle: bool,
}

impl Harness {
    fn new(columns: u16, rows: u16) -> Harness {
        Harness::with(Glyphs::unicode(), columns, rows)
    }

    fn with(glyphs: Glyphs, columns: u16, rows: u16) -> Harness {
        let data = Path::new("tests/data/screens");
        let sources = Sources {
            targets: Some(data.join("targets.yaml")),
            workloads: Some(data.join("workloads.yaml")),
            ..Sources::built_in()
        };
        let library = Arc::new(Library::load(&sources, None));
        let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
        let app = App::new(library, Vec::new(), themes, glyphs, (columns, rows));
        Harness { app, effects: Vec::new(), orders: Vec::new(), pauses: Vec::new(), idle: false }
    }

    fn send(&mut self, message: Message) {
        for effect in update(&mut self.app, message) {
            match effect {
                Effect::Work(order) => self.orders.push(order),
                Effect::Cancel(serial) => self.orders.retain(|order| order.serial != serial),
                Effect::After { timer: timer @ Timer::Outlook(_), .. } => self.pauses.push(timer),
                other => self.effects.push(other),
            }
        }
        if !self.idle {
            self.work();
        }
    }

    /// Executes the waiting jobs.
    fn work(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            let mut product = order.job.run(&Gauge::default());
            // The duration of a search differs from run to run.
            if let Ok(Product::Optimum(found)) = &mut product {
                let mut timed = optimum::SearchResult::clone(found);
                timed.optimum.extent.seconds = 0.25;
                *found = Arc::new(timed);
            }
            self.send(Message::WorkFinished(order.serial, product));
        }
    }

    /// Expires all timers.
    fn pause(&mut self) {
        for timer in std::mem::take(&mut self.pauses) {
            self.send(Message::Expired(timer));
        }
    }

    fn keys(&mut self, text: &str) -> &mut Harness {
        for key in keys::typed(text) {
            self.send(Message::Key(key));
        }
        self
    }

    fn click(&mut self, column: u16, row: u16) {
        let kind = MouseEventKind::Down(MouseButton::Left);
        self.send(Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    }

    fn text(&self) -> String {
        screen::text(&self.app)
    }

    fn metric(&self, name: &str) -> f64 {
        self.app.answer.value(Metric::named(name).unwrap()).unwrap()
    }

    fn knob(&self, knob: Knob) -> Setting {
        self.app.answer.scenario.as_ref().unwrap().get(knob)
    }

    fn curves(&self) -> Arc<sweep::Curves> {
        Arc::clone(self.app.queries.sweep.answer().unwrap())
    }
}

macro_rules! snapshot {
    ($name:expr, $harness:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $harness.text());
        });
    };
}

/// The serving workload with the cursor on its knob `tp`.
fn serving(columns: u16, rows: u16) -> Harness {
    let mut h = Harness::new(columns, rows);
    h.keys("Wjj/tp<Enter>");
    h
}

#[test]
fn views_match_their_snapshots() {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let size = format!("{columns}x{rows}");
        snapshot!(format!("sweep_{size}"), serving(columns, rows).keys("/concurrency<Enter>Hmjm4"));
        snapshot!(format!("heat_{size}"), serving(columns, rows).keys("4/concurrency<Enter>:against tp<Enter>"));
        snapshot!(format!("bars_{size}"), Harness::new(columns, rows).keys("jmHgm/recompute<Enter>4"));
        snapshot!(format!("frontier_{size}"), serving(columns, rows).keys("Hmjm5<Right>"));
        snapshot!(format!("frontier_train_{size}"), Harness::new(columns, rows).keys("5"));
        snapshot!(format!("race_{size}"), serving(columns, rows).keys("c"));
        snapshot!(format!("sensitivity_{size}"), Harness::new(columns, rows).keys("0j"));
        snapshot!(format!("goal_{size}"), serving(columns, rows).keys("6<Right>jj<Enter>50"));
        snapshot!(format!("optimize_{size}"), Harness::new(columns, rows).keys("jWj6R"));
    }
    snapshot!("ascii_sweep_120x40", {
        let mut h = Harness::with(Glyphs::ascii(), 120, 40);
        h.keys("WjjHmjm/concurrency<Enter>4");
        h
    });
}

#[test]
fn sweep_is_recomputed_after_every_edit() {
    let mut h = serving(120, 40);
    h.keys("4");
    assert_eq!(h.app.view, View::Sweep);
    let before = h.curves();
    assert_eq!((before.across.knob, before.metric.name), (Knob::Tp, "tokens_per_sec"));
    let here = before.curves[0].1.here.unwrap();
    assert_eq!(before.curves[0].1.cells[here].value, Some(h.metric("tokens_per_sec")));
    // Another metric, another target, or another scenario: each requires a new job.
    h.keys(".");
    assert_ne!(h.curves().metric.name, "tokens_per_sec");
    h.keys(",");
    assert_eq!(h.curves().curves[0].1, before.curves[0].1);
    h.keys("Hmj4");
    assert_eq!(h.curves().curves.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["8xMI300X", "8xH100"]);
    assert_eq!(h.curves().curves[1].1, before.curves[0].1);
    h.keys("/workload<Esc>Wk4");
    assert!(h.curves().curves.iter().all(|(_, grid)| grid.cells.iter().any(|cell| !cell.feasible)));
}

#[test]
fn enter_applies_the_point_and_reproduces_its_plotted_value() {
    for keys in ["4g", "4<Left>", "4ng", "4nn<Up><Left>", "/concurrency<Enter>4NNGkk"] {
        let mut h = serving(120, 40);
        let start = h.app.now.clone();
        h.keys(keys);
        let curves = h.curves();
        let place = sweep::cursor(&h.app.sweep, &curves);
        let cell = curves.curves[0].1.cells[curves.point(place)];
        let (setup, candidate) = sweep::reading(&h.app, &curves).unwrap();
        assert_eq!(Some(candidate.estimate.total.tokens_per_sec), cell.value, "{keys}: the reading is the point's");
        h.keys("<Enter>");
        assert_eq!(h.app.now.setup, setup);
        let now = h.app.answer.value(Metric::named("tokens_per_sec").unwrap());
        assert_eq!(now, cell.value.filter(|_| cell.feasible), "{keys}: {:?}", h.app.now.setup.overrides);
        assert_eq!(h.app.answer.fits(), cell.feasible);
        h.keys("u");
        assert_eq!(h.app.now, start, "{keys}");
    }
}

#[test]
fn first_click_moves_the_cursor_and_second_applies_the_point() {
    let mut h = serving(120, 40);
    h.keys("4");
    h.click(20, 10);
    let cursor = h.app.sweep.cursor.unwrap();
    assert!(h.app.now.setup.overrides.is_empty());
    let value = h.curves().across.values[cursor.0].clone();
    h.click(20, 10);
    assert_eq!(h.knob(Knob::Tp), value);
}

#[test]
fn edit_cancels_the_running_job_and_drops_its_result() {
    let mut h = serving(120, 40);
    h.idle = true;
    h.keys("4");
    assert_eq!(h.orders.len(), 1);
    let old = h.orders[0].clone();
    h.send(Message::Progress(old.serial, Progress { done: 1, total: 4, seconds: 1.0 }));
    assert!(h.text().contains("25 %"), "{}", h.text());
    // The scenario changes during the job: it is canceled, and a new one is requested.
    h.keys("u<Tab>");
    let orders: Vec<u64> = h.orders.iter().map(|order| order.serial).collect();
    assert!(orders.len() == 1 && orders[0] > old.serial, "{orders:?}");
    h.send(Message::WorkFinished(old.serial, old.job.run(&Gauge::default())));
    assert!(h.app.queries.sweep.answer().is_none());
    h.work();
    assert!(h.app.queries.sweep.is_fresh());
    // Esc first cancels the running job; only the next Esc leaves the view.
    h.keys("<Tab><Esc>");
    assert!(h.orders.is_empty() && h.app.view == View::Sweep);
    assert_eq!(h.app.queries.sweep.problem(), Some("stopped"));
    h.keys("<Esc>");
    assert_eq!(h.app.view, View::Main);
    // Leaving the view discards the job: the next visit requests it again.
    h.keys("4");
    assert_eq!(h.orders.len(), 1);
    h.keys("4j");
    assert!(h.orders.is_empty(), "no view shows it");
}

#[test]
fn enter_applies_a_frontier_point_with_its_target() {
    let mut h = serving(120, 40);
    h.keys("Hmjm5");
    let front = Arc::clone(h.app.queries.frontier.answer().unwrap());
    assert_eq!(front.curves.iter().map(|curve| &*curve.target).collect::<Vec<_>>(), ["8xMI300X", "8xH100"]);
    assert!(front.curves.iter().all(|curve| curve.points.len() > 3));
    let start = h.app.now.clone();
    for keys in ["<Right><Right>", "j", "jG", "."] {
        h.keys(keys);
        let front = Arc::clone(h.app.queries.frontier.answer().unwrap());
        let (curve, point) = frontier::cursor(&h.app, &front);
        let target = Arc::clone(&front.curves[curve].target);
        let place = front.place(&front.curves[curve].points[point].1);
        h.keys("<Enter>");
        assert_eq!(h.app.now.setup.target, target, "{keys}");
        let now = [front.across, front.up].map(|metric| h.app.answer.value(metric).unwrap());
        assert_eq!(Some((now[0], now[1])), place, "{keys}: {:?}", h.app.now.setup.overrides);
        while h.app.now != start {
            h.keys("u");
        }
    }
}

#[test]
fn enter_on_a_tornado_knob_opens_its_sweep() {
    let mut h = Harness::new(120, 40);
    h.keys("0");
    let tornado = Arc::clone(h.app.queries.tornado.answer().unwrap());
    assert_eq!(tornado.value, h.metric("tokens_per_sec"));
    let knob = tornado.swings.iter().position(|swing| matches!(swing.lever, Lever::Knob(_))).unwrap();
    h.keys(&"j".repeat(knob)).keys("<Enter>");
    assert_eq!(h.app.view, View::Sweep);
    assert_eq!(Lever::Knob(h.curves().across.knob), tornado.swings[knob].lever);
    // Another metric requires another tornado chart.
    h.keys("0.");
    assert_ne!(h.app.queries.tornado.answer().unwrap().metric.name, tornado.metric.name);
}

#[test]
fn enter_applies_optimizer_candidates_with_their_throughput() {
    let mut h = Harness::new(120, 40);
    // Training that does not fit: every candidate is a change that makes it fit.
    h.keys("jWj/microbatch<Enter><Right><Right><Right><Right>6");
    assert!(!h.app.answer.fits());
    let before = h.app.now.clone();
    h.keys("R");
    let found = Arc::clone(h.app.queries.optimum.answer().unwrap());
    // The best, and the runners-up that differ in their resource needs.
    assert!((3..=6).contains(&found.candidates.len()), "{}", found.candidates.len());
    let best = (found.optimum.best.as_ref().unwrap()).estimate.total.tokens_per_sec;
    assert_eq!(optimum::row_under_cursor(&h.app), optimum::Row::Candidate(0));
    h.keys("<Enter>");
    assert!(h.app.answer.fits());
    assert_eq!(h.metric("tokens_per_sec"), best);
    // A runner-up can be applied after the best, relative to the start of the search.
    h.keys("j<Enter>");
    let second = &found.optimum.runners_up[0].estimate;
    assert_eq!(h.metric("tokens_per_sec"), second.total.tokens_per_sec);
    h.keys("uu");
    assert_eq!(h.app.now, before);
}

#[test]
fn opening_the_optimizer_starts_a_search_with_the_cursor_on_the_form() {
    let mut h = serving(120, 40);
    h.keys("6");
    assert!(h.app.queries.optimum.answer().is_some_and(|found| !found.candidates.is_empty()));
    assert_eq!(optimum::row_under_cursor(&h.app), optimum::Row::Objective);
    assert!(h.text().contains("without TTFT"), "{}", h.text());
}

#[test]
fn typed_bounds_limit_candidates_and_invalid_bounds_are_rejected() {
    let mut h = serving(120, 40);
    h.keys("6<Down><Enter>x");
    assert_eq!(h.app.mode(), Mode::Bounding);
    h.keys("<Enter>");
    assert!(h.text().contains("expected a time"), "{}", h.text());
    h.keys("<BS>400ms<Enter>R");
    let found = Arc::clone(h.app.queries.optimum.answer().unwrap());
    assert!(found.candidates.len() > 1 && found.warnings.is_empty(), "{:?}", found.warnings);
    for (_, candidate) in &found.candidates {
        assert!(candidate.estimate.total.latency.unwrap().ttft <= 400.0);
    }
    // Without the bound, the best candidate may have long waiting times, which a note states.
    h.keys("gj<BS>R");
    let free = Arc::clone(h.app.queries.optimum.answer().unwrap());
    let tokens = |found: &optimum::SearchResult| found.candidates[0].1.estimate.total.tokens_per_sec;
    assert!(tokens(&free) >= tokens(&found));
    let waits = free.candidates[0].1.estimate.total.latency.unwrap().ttft > 6000.0;
    assert_eq!(waits, free.warnings.iter().any(|warning| warning.contains("TTFT is now")), "{:?}", free.warnings);
    assert_eq!(waits, h.text().contains("TTFT is now"));
}

#[test]
fn search_continues_in_other_views_and_stops_on_an_edit() {
    let mut h = serving(120, 40);
    h.idle = true;
    h.keys("6<Esc>");
    assert!(h.orders.is_empty() && h.app.view == View::Optimum, "Esc stops it");
    h.keys("R");
    assert_eq!(h.orders.len(), 1, "and it can begin again");
    h.keys("<Tab>3");
    assert_eq!(h.orders.len(), 1);
    h.work();
    assert!(h.app.status.as_ref().unwrap().text.contains("search finished: tokens/s"));
    h.keys("6g<Right>RK<Right>");
    assert!(h.orders.is_empty());
    assert!(h.app.status.as_ref().unwrap().text.contains("search stopped"));
}

#[test]
fn the_views_can_be_drawn_at_every_size() {
    for keys in ["4", "4n", "5", "0", "6R", "6<Down><Enter>5"] {
        for glyphs in [Glyphs::unicode(), Glyphs::ascii()] {
            let mut h = Harness::with(glyphs, 120, 40);
            h.keys("Wjj").keys(keys);
            let ascii = h.app.glyphs.is_ascii();
            for columns in (60..=220).step_by(23) {
                for rows in (10..=70).step_by(7) {
                    h.send(Message::Resize(columns, rows));
                    let text = h.text();
                    assert!(!ascii || text.is_ascii(), "{keys} at {columns}x{rows}:\n{text}");
                }
            }
        }
    }
}

/// On the smallest screen, the result replaces the form: all candidates, and the metrics of the one under the cursor,
/// are visible.
#[test]
fn optimizer_result_is_readable_on_an_80x24_screen() {
    let mut h = serving(80, 24);
    h.keys("6R");
    let text = h.text();
    assert!(text.contains("best") && text.contains("combinations"), "{text}");
    h.keys("G");
    let text = h.text();
    assert!(!text.contains("goal "), "the form is scrolled away\n{text}");
    assert!(text.contains("best ") && text.contains(" 6 ") && text.contains("TTFT"), "{text}");
    h.keys("g");
    assert!(h.text().contains("goal "));
}

/// Enter applies a point. On the point of the current scenario it opens the explanation of the metric, and Esc returns.
#[test]
fn enter_on_the_applied_point_opens_its_explanation() {
    let mut h = serving(120, 40);
    h.keys("/concurrency<Enter>4<Right><Enter>");
    assert_eq!(h.app.view, View::Sweep);
    h.keys("<Enter>");
    assert_eq!((h.app.view, h.app.figure), (View::Explain, h.curves().metric));
    h.keys("<Esc>");
    assert_eq!(h.app.view, View::Sweep);
    h.keys("6R<Enter>");
    assert_eq!(h.app.view, View::Optimum);
    h.keys("<Enter>");
    assert_eq!((h.app.view, h.app.figure.name), (View::Explain, "tokens_per_sec"));
    h.keys("<Esc>");
    assert_eq!(h.app.view, View::Optimum);
}

/// The chart beside the results is for the knob changed last. It is requested once per pause between key presses, and
/// does not delay single steps.
#[test]
fn wide_overview_charts_the_metric_over_the_last_changed_knob() {
    let mut h = Harness::new(200, 60);
    h.keys("mjmkWjj");
    assert!(h.app.queries.outlook.answer().is_none(), "nothing is asked while keys come");
    h.pause();
    let curves = Arc::clone(h.app.queries.outlook.answer().unwrap());
    assert_eq!((curves.across.knob, curves.metric.name), (Knob::Concurrency, "tokens_per_sec"));
    assert_eq!(curves.curves.len(), 2, "one for each marked target");
    snapshot!("outlook_200x60", h);
    // The sweep view gives the same result for the same request.
    h.keys("K").keys("/concurrency<Enter>4");
    assert_eq!(**h.app.queries.sweep.answer().unwrap(), *curves);
    h.keys("<Esc>");
    // Moving the cursor requests nothing; another metric or value does.
    h.keys("Kjjjj").pause();
    assert!(Arc::ptr_eq(h.app.queries.outlook.answer().unwrap(), &curves));
    h.keys("/tp<Enter><Right><Left><Right>");
    assert_eq!(h.pauses.len(), 3);
    let serial = h.app.queries.serial;
    h.pause();
    assert_eq!(h.app.queries.serial, serial + 1, "only the last is asked");
    let curves = Arc::clone(h.app.queries.outlook.answer().unwrap());
    assert_eq!(curves.across.knob, Knob::Tp);
    let (_, own) = &curves.curves[0];
    let standing = own.cells[own.here.unwrap()];
    assert!(!standing.feasible || (standing.value.unwrap() / h.metric("tokens_per_sec") - 1.0).abs() < 1e-9);
    h.keys("Vjjj").pause();
    assert_eq!(h.app.queries.outlook.answer().unwrap().metric, h.app.figure);
    // It is omitted if the screen is too small.
    let mut h = Harness::new(120, 40);
    h.keys("Wjj").pause();
    assert!(h.pauses.is_empty() && h.app.queries.outlook.current().is_none());
    // For simulating engines, the chart uses the closed form, immediately.
    let mut h = Harness::new(200, 60);
    h.idle = true;
    h.keys("/engine<Enter><Right><Right><Right><Right>");
    while h.knob(Knob::Engine).to_string() != "event" {
        h.keys("<Left>");
    }
    h.pause();
    let order = h.orders.pop().unwrap();
    let product = order.job.run(&Gauge::default());
    h.send(Message::WorkFinished(order.serial, product));
    assert!(h.text().contains(", in closed form"), "{}", h.text());
}

#[test]
fn enter_on_a_hardware_lever_explains_it_down_to_its_file() {
    let mut h = Harness::new(120, 40);
    h.keys("jWj0");
    let tornado = Arc::clone(h.app.queries.tornado.answer().unwrap());
    let levers = tornado.swings.iter().enumerate();
    let hardware = levers.filter(|(_, swing)| matches!(swing.lever, Lever::Hardware(_)));
    let places: Vec<(usize, Lever)> = hardware.map(|(place, swing)| (place, swing.lever)).collect();
    assert!(!places.is_empty());
    for (place, lever) in places {
        h.keys("g").keys(&"j".repeat(place)).keys("<Enter>");
        assert_eq!(h.app.view, View::Explain, "{}", lever.name());
        assert!(h.text().contains(&format!("Explain {}", tornado.metric.label)));
        // The cursor is on the input wherever the derivation contains it, and the footer shows where it is defined.
        let foot: Vec<String> = h.text().lines().rev().skip(1).take(2).map(str::to_owned).collect();
        let info = format!("{}{}", foot[1], foot[0]);
        if lever.name() == "memory bandwidth" {
            assert!(info.contains("bw: memory bandwidth; catalog") && info.contains(".yaml"), "{info}");
        }
        h.keys("<Esc>");
        assert_eq!((h.app.view, h.app.view_row), (View::Sensitivity, place));
    }
}

#[test]
fn bottleneck_and_verdict_rows_open_their_explanation() {
    for (columns, rows) in [(80, 24), (120, 40)] {
        let mut h = Harness::new(columns, rows);
        // Upwards from the first metric: the bottleneck, then the verdict.
        h.keys("jWjVgk<Enter>");
        assert_eq!(h.app.view, View::Explain);
        assert!(h.text().contains("Explain step time"), "{}", h.text());
        h.keys("<Esc>k<Enter>");
        assert!(h.text().contains("Explain memory fill"), "{}", h.text());
        h.keys("<Esc>jj");
        assert_eq!(h.app.selected_metric().unwrap().name, "time_to_train_h");
        h.keys("<Enter>");
        assert!(h.text().contains("Explain time to train"));
    }
}

#[test]
fn diff_view_selects_only_rows_that_differ() {
    let mut h = Harness::new(120, 40);
    h.keys("jWjvd");
    assert!(h.text().contains("Nothing differs"));
    let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 40));
    view(&h.app, &mut buffer);
    let row = h.text().lines().position(|line| line.contains("Nothing differs")).unwrap();
    let plain = buffer[(5, 30)].bg;
    assert!((2..60).all(|x| buffer[(x, u16::try_from(row).unwrap())].bg == plain), "nothing is selected");
    // With a knob changed, the first row is the knob, the next one a metric, which can be explained.
    h.keys("vd/microbatch<Enter><Right>vd");
    h.keys("j<Enter>");
    assert_eq!(h.app.view, View::Explain);
}

#[test]
fn view_footer_fits_an_80x24_screen() {
    for start in ["", "jWj", "Wjj"] {
        for view in ["1", "V", "Vk", "Vkk", "2", "3", "4", "5", "6", "7", "8", "9", "0", "vm", "vd"] {
            let mut h = Harness::new(80, 24);
            h.keys(start).keys(view);
            let text = h.text();
            let line = text.lines().rev().nth(1).unwrap();
            // The full description of a knob may be wider than the screen, and so may the knobs of a row of the race.
            let knob = line.trim().split_once([':', '=']).is_some_and(|(name, _)| Knob::named(name).is_ok());
            assert!(knob || !line.contains('…'), "{start} {view}: {line}");
        }
    }
}

#[test]
fn opening_the_timeline_runs_the_simulation_of_the_scenario() {
    let mut h = Harness::new(80, 24);
    h.keys("jWj9");
    assert!(h.app.current_run().is_some());
    assert!(!h.text().contains("being simulated"), "{}", h.text());
}

#[test]
fn a_click_selects_a_bar_of_the_breakdown_and_another_click_explains_it() {
    // Blocks are below each other, or side by side.
    for size in [(80, 40), (140, 24)] {
        let mut h = Harness::new(size.0, size.1);
        h.keys("3");
        let text = h.text();
        let place = |name: &str| {
            let found = text.lines().enumerate().find_map(|(y, line)| Some((line.find(name)?, line, y)));
            let (at, line, y) = found.unwrap_or_else(|| panic!("no {name} in\n{text}"));
            (line[..at].chars().count() as u16, y as u16)
        };
        for (name, metric) in [("weights", "peak_mem_gb"), ("compute", "step_time_ms")] {
            let (x, y) = place(name);
            h.click(x, y);
            assert_eq!(h.app.view, View::Breakdown, "{name} at {size:?}");
            h.click(x, y);
            assert_eq!((h.app.view, h.app.figure.name), (View::Explain, metric), "{name} at {size:?}\n{text}");
            h.keys("<Esc>");
        }
    }
}
