//! Sweep, frontier, sensitivity, optimiser: what long work answers, asked with keys, answered as the runtime would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use atlas_fabric::demo::View;
use atlas_fabric::estimate::Metric;
use atlas_fabric::knob::{Knob, Setting};
use atlas_fabric::library::Library;
use atlas_fabric::search::Gauge;
use atlas_fabric::spec::Sources;
use atlas_fabric::tui::app::App;
use atlas_fabric::tui::color::ColorDepth;
use atlas_fabric::tui::message::{Effect, Message};
use atlas_fabric::tui::sweeping;
use atlas_fabric::tui::theme::{Glyphs, Themes};
use atlas_fabric::tui::update::update;
use atlas_fabric::tui::view::view;
use atlas_fabric::tui::work::{Order, Progress};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

struct Harness {
    app: App,
    effects: Vec<Effect>,
    /// Orders that nobody has worked on yet.
    orders: Vec<Order>,
    /// Whether orders wait until [`Harness::work`].
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
        Harness { app, effects: Vec::new(), orders: Vec::new(), idle: false }
    }

    fn send(&mut self, message: Message) {
        for effect in update(&mut self.app, message) {
            match effect {
                Effect::Work(order) => self.orders.push(order),
                Effect::Cancel(serial) => self.orders.retain(|order| order.serial != serial),
                other => self.effects.push(other),
            }
        }
        if !self.idle {
            self.work();
        }
    }

    /// Does what was ordered.
    fn work(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            let product = order.job.run(&Gauge::default());
            self.send(Message::Worked(order.serial, product));
        }
    }

    fn keys(&mut self, keys: &str) -> &mut Harness {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let (name, after) = match rest.strip_prefix('<').and_then(|inner| inner.split_once('>')) {
                Some((name, after)) if !name.is_empty() => (name, after),
                _ => rest.split_at(first.len_utf8()),
            };
            rest = after;
            let code = match name {
                "Tab" => KeyCode::Tab,
                "BackTab" => KeyCode::BackTab,
                "Enter" => KeyCode::Enter,
                "Esc" => KeyCode::Esc,
                "Space" => KeyCode::Char(' '),
                "BS" => KeyCode::Backspace,
                "Up" => KeyCode::Up,
                "Down" => KeyCode::Down,
                "Left" => KeyCode::Left,
                "Right" => KeyCode::Right,
                other => KeyCode::Char(other.chars().next().unwrap()),
            };
            self.send(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        }
        self
    }

    fn click(&mut self, column: u16, row: u16) {
        let kind = MouseEventKind::Down(MouseButton::Left);
        self.send(Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    }

    fn text(&self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.app.size.0, self.app.size.1));
        view(&self.app, &mut buffer);
        let rows = buffer.content.chunks(usize::from(buffer.area.width.max(1)));
        let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn metric(&self, name: &str) -> f64 {
        self.app.answer.value(Metric::named(name).unwrap()).unwrap()
    }

    fn knob(&self, knob: Knob) -> Setting {
        self.app.answer.scenario.as_ref().unwrap().get(knob)
    }

    fn curves(&self) -> Arc<sweeping::Curves> {
        Arc::clone(self.app.desks.sweep.answer().unwrap())
    }
}

macro_rules! snapshot {
    ($name:expr, $harness:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $harness.text());
        });
    };
}

/// The serving workload, its knob `tp`.
fn serving(columns: u16, rows: u16) -> Harness {
    let mut h = Harness::new(columns, rows);
    h.keys("2jj/tp<Enter>");
    h
}

#[test]
fn the_views_look_as_they_did() {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let size = format!("{columns}x{rows}");
        snapshot!(format!("sweep_{size}"), serving(columns, rows).keys("/concurrency<Enter>1mjmv"));
        snapshot!(format!("heat_{size}"), serving(columns, rows).keys("/concurrency<Enter>vNN"));
    }
    snapshot!("ascii_sweep_120x40", {
        let mut h = Harness::with(Glyphs::ascii(), 120, 40);
        h.keys("2jj1mjm/concurrency<Enter>v");
        h
    });
}

#[test]
fn a_sweep_follows_every_edit() {
    let mut h = serving(120, 40);
    h.keys("v");
    assert_eq!(h.app.view, View::Sweep);
    let before = h.curves();
    assert_eq!((before.across.knob, before.metric.name), (Knob::Tp, "tokens_per_sec"));
    let here = before.curves[0].1.here.unwrap();
    assert_eq!(before.curves[0].1.cells[here].value, h.metric("tokens_per_sec"));
    // Another figure, another target beside it, another scenario: each is another question.
    h.keys(".");
    assert_ne!(h.curves().metric.name, "tokens_per_sec");
    h.keys(",");
    assert_eq!(h.curves().curves[0].1, before.curves[0].1);
    h.keys("1mjv");
    assert_eq!(h.curves().curves.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["8xMI300X", "8xH100"]);
    assert_eq!(h.curves().curves[1].1, before.curves[0].1);
    h.keys("/workload<Esc>2kv");
    assert!(h.curves().curves.iter().all(|(_, grid)| grid.cells.iter().any(|cell| !cell.feasible)));
}

#[test]
fn enter_takes_the_point_and_its_figure_is_the_one_that_was_drawn() {
    for keys in ["vg", "v<Left>", "vng", "vnn<Up><Left>", "/concurrency<Enter>vNNGkk"] {
        let mut h = serving(120, 40);
        let start = h.app.now.clone();
        h.keys(keys);
        let curves = h.curves();
        let place = sweeping::cursor(&h.app, &curves);
        let cell = curves.curves[0].1.cells[curves.point(place)];
        let (setup, candidate) = sweeping::reading(&h.app, &curves).unwrap();
        assert_eq!(candidate.estimate.total.tokens_per_sec, cell.value, "{keys}: the reading is the point's");
        h.keys("<Enter>");
        assert_eq!(h.app.now.setup, setup);
        let now = h.app.answer.value(Metric::named("tokens_per_sec").unwrap()).unwrap();
        assert_eq!(now, cell.value, "{keys}: {:?}", h.app.now.setup.overrides);
        assert_eq!(h.app.answer.fits(), cell.feasible);
        h.keys("u");
        assert_eq!(h.app.now, start, "{keys}");
    }
}

#[test]
fn a_click_moves_the_cursor_and_another_takes_the_point() {
    let mut h = serving(120, 40);
    h.keys("v");
    h.click(20, 10);
    let cursor = h.app.sweeping.cursor.unwrap();
    assert!(h.app.now.setup.overrides.is_empty());
    let value = h.curves().across.values[cursor.0].clone();
    h.click(20, 10);
    assert_eq!(h.knob(Knob::Tp), value);
}

#[test]
fn work_that_an_edit_overtakes_is_cancelled_and_its_answer_dropped() {
    let mut h = serving(120, 40);
    h.idle = true;
    h.keys("v");
    assert_eq!(h.orders.len(), 1);
    let old = h.orders[0].clone();
    h.send(Message::Progress(old.serial, Progress { done: 1, total: 4, seconds: 1.0 }));
    assert!(h.text().contains("25 %"), "{}", h.text());
    // The scenario changes under the work: it is stopped, and the new question is asked.
    h.keys("u<Tab>");
    let orders: Vec<u64> = h.orders.iter().map(|order| order.serial).collect();
    assert!(orders.len() == 1 && orders[0] > old.serial, "{orders:?}");
    h.send(Message::Worked(old.serial, old.job.run(&Gauge::default())));
    assert!(h.app.desks.sweep.answer().is_none());
    h.work();
    assert!(h.app.desks.sweep.is_fresh());
    // Esc stops what runs; only then it leaves.
    h.keys("<Tab><Esc>");
    assert!(h.orders.is_empty() && h.app.view == View::Sweep);
    assert_eq!(h.app.desks.sweep.trouble(), Some("stopped"));
    h.keys("<Esc>");
    assert_eq!(h.app.view, View::Main);
    // Leaving forgets: the next look asks anew.
    h.keys("v");
    assert_eq!(h.orders.len(), 1);
    h.keys("vj");
    assert!(h.orders.is_empty(), "nobody looks");
}
