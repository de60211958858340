//! The TUI without a terminal: key presses in, state and screens out.

use crate::common::{keys, screen};

use std::path::Path;
use std::sync::Arc;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_fabric::demo::Demos;
use atlas_fabric::theme::color::ColorDepth;
use atlas_fabric::theme::{Glyphs, Themes};
use atlas_fabric::tui::app::{App, Overlay, Pane, View};
use atlas_fabric::tui::input::keymap::Mode;
use atlas_fabric::tui::message::{Effect, Message, Timer};
use atlas_fabric::tui::screen::view;
use atlas_fabric::tui::update::update;
use atlas_fabric::tui::views::row_count;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{KNOBS, Knob, Setting, ValueType};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

struct Harness {
    app: App,
    effects: Vec<Effect>,
}

/// Two nodes with accelerators of the catalog; training that fits, training that does not, serving.
fn analytical() -> Sources {
    let data = Path::new("tests/data/screens");
    Sources {
        targets: Some(data.join("targets.yaml")),
        workloads: Some(data.join("workloads.yaml")),
        ..Sources::built_in()
    }
}

/// The predecessor's three targets and two workloads, independent of the built-in ones.
fn predecessor() -> Sources {
    // Relative paths, as tests run at the root: screens contain file names, and must not depend on the location of the
    // repository.
    let data = Path::new("tests/data/predecessor");
    Sources {
        targets: Some(data.join("targets.yaml")),
        workloads: Some(data.join("workloads.yaml")),
        ..Sources::built_in()
    }
}

impl Harness {
    fn new(columns: u16, rows: u16) -> Harness {
        Harness::with(Glyphs::unicode(), columns, rows)
    }

    fn with(glyphs: Glyphs, columns: u16, rows: u16) -> Harness {
        Harness::of(&predecessor(), glyphs, columns, rows)
    }

    fn analytical(columns: u16, rows: u16) -> Harness {
        Harness::of(&analytical(), Glyphs::unicode(), columns, rows)
    }

    fn of(sources: &Sources, glyphs: Glyphs, columns: u16, rows: u16) -> Harness {
        let library = Arc::new(Library::load(sources, None));
        let (demos, _) = Demos::load(None, None);
        let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
        Harness { app: App::new(library, demos, themes, glyphs, (columns, rows)), effects: Vec::new() }
    }

    fn send(&mut self, message: Message) {
        self.effects.extend(update(&mut self.app, message));
    }

    /// Sends keys in the notation of the help: characters, and names in angle brackets: `jj<Tab><Right>`.
    fn keys(&mut self, text: &str) -> &mut Harness {
        for key in keys::typed(text) {
            self.send(Message::Key(key));
        }
        self
    }

    fn draw(&self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.app.size.0, self.app.size.1));
        view(&self.app, &mut buffer);
        buffer
    }

    fn text(&self) -> String {
        screen::written(&self.draw())
    }

    fn metric(&self, name: &str) -> f64 {
        self.app.answer.value(Metric::named(name).unwrap()).unwrap()
    }

    fn knob(&self, knob: Knob) -> Setting {
        self.app.answer.scenario.as_ref().unwrap().get(knob)
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
fn screens_match_their_snapshots() {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let size = format!("{columns}x{rows}");
        snapshot!(format!("main_{size}"), Harness::new(columns, rows));
        snapshot!(format!("turned_{size}"), Harness::new(columns, rows).keys("j<Space><Tab>j<Tab>j<Space>jjj<Right>"));
        snapshot!(format!("compare_{size}"), Harness::new(columns, rows).keys("WjC"));
        snapshot!(format!("schedule_{size}"), Harness::new(columns, rows).keys("Wjvs"));
        snapshot!(format!("help_{size}"), Harness::new(columns, rows).keys("?<C-d>").without_paths());
        snapshot!(format!("find_{size}"), Harness::new(columns, rows).keys("/gr"));
        snapshot!(format!("typing_{size}"), Harness::new(columns, rows).keys("Kjjjjj<Enter>12x"));
        snapshot!(format!("demos_{size}"), Harness::new(columns, rows).keys("d"));
        snapshot!(format!("tour_{size}"), Harness::new(columns, rows).keys("dG<Enter><Space>"));
    }
    snapshot!("ascii_120x40", Harness::with(Glyphs::ascii(), 120, 40).keys("Kj<Right>"));
    snapshot!("one_pane_60x18", Harness::analytical(60, 18).keys("V"));
    snapshot!("one_pane_40x12", Harness::analytical(40, 12).keys("V"));
    snapshot!("too_small_30x7", Harness::new(30, 7));
}

/// The three workloads of the fixture are training that fits, training that does not, and serving.
#[test]
fn analytical_screens_match_their_snapshots() {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let size = format!("{columns}x{rows}");
        snapshot!(format!("fits_{size}"), Harness::analytical(columns, rows).keys("Vjj"));
        snapshot!(format!("breaks_{size}"), Harness::analytical(columns, rows).keys("Wj"));
        snapshot!(format!("serves_{size}"), Harness::analytical(columns, rows).keys("WjjKjjj<Right>"));
        snapshot!(format!("breakdown_{size}"), Harness::analytical(columns, rows).keys("Wj3"));
        snapshot!(format!("advice_{size}"), Harness::analytical(columns, rows).keys("Wjj8"));
        snapshot!(format!("explain_{size}"), Harness::analytical(columns, rows).keys("V<Enter>j<Enter>"));
    }
    snapshot!("commands_120x40", Harness::analytical(120, 40).keys(":brk"));
    snapshot!("ascii_fits_120x40", Harness::of(&analytical(), Glyphs::ascii(), 120, 40).keys("WjjK<Right>"));
}

impl Harness {
    /// The help shows the user's configuration directory, which depends on the machine: scrolls to where it is not
    /// visible.
    fn without_paths(&mut self) -> &mut Harness {
        if let Some(Overlay::Help { scroll }) = &mut self.app.overlay {
            *scroll = 0;
        }
        self
    }
}

#[test]
fn ascii_screens_are_ascii() {
    for sources in [predecessor(), analytical()] {
        for keys in
            ["", "c", "vs", "?", "d", "/", "dG<Enter>", "K<Enter>x", "!", "Kjj<Space>", "3", "7", "8", ":", "Wj"]
        {
            let text = Harness::of(&sources, Glyphs::ascii(), 120, 40).keys(keys).text();
            let strange: String = text.chars().filter(|c| !c.is_ascii()).collect();
            assert!(strange.is_empty(), "after {keys:?}: {strange}");
        }
    }
}

/// All screens at all sizes: no panic, no endless layout.
#[test]
fn screens_render_at_every_size() {
    let mut harness = Harness::analytical(80, 24);
    let screens = [
        "",
        "c",
        "cvs",
        "vs!",
        "!?",
        "<Esc><Esc>d",
        "<Enter>",
        "<Esc>/a",
        "<Esc>K<Enter>",
        "<Esc>3",
        "7",
        "8",
        "<Esc>:a",
    ];
    for keys in screens {
        harness.keys(keys);
        for columns in (1..=220).step_by(7) {
            for rows in (1..=70).step_by(3) {
                harness.send(Message::Resize(columns, rows));
                harness.draw();
            }
        }
    }
}

#[test]
fn knob_changes_update_metrics_immediately_and_undo_restores_them() {
    let mut h = Harness::new(120, 40);
    let before = h.metric("tokens_per_sec");
    h.keys("Kjj<Space>");
    assert_eq!(h.app.mode(), Mode::Knobs);
    assert_eq!(h.knob(Knob::CudaGraphs), Setting::Toggle(false));
    let after = h.metric("tokens_per_sec");
    assert!(after < before);
    assert!(h.text().contains("● cuda_graphs"));
    h.keys("u");
    assert_eq!(h.metric("tokens_per_sec"), before);
    h.keys("<C-r>");
    assert_eq!(h.metric("tokens_per_sec"), after);
    h.keys("<BS>");
    assert_eq!(h.metric("tokens_per_sec"), before);
    assert!(h.app.now.setup.overrides.is_empty());
}

#[test]
fn results_update_while_a_value_is_typed() {
    let mut h = Harness::new(120, 40);
    let before = h.metric("tokens_per_sec");
    // tp is the seventh knob.
    h.keys("Kjjjjjj<Enter>");
    assert_eq!(h.app.mode(), Mode::Editing);
    h.keys("4");
    assert_eq!(h.knob(Knob::Tp), Setting::Number(4.0));
    let four = h.metric("tokens_per_sec");
    assert!(four > before, "less tensor parallelism, less communication");
    h.keys("x");
    assert!(h.app.edit.as_ref().unwrap().error.as_ref().unwrap().contains("expected a whole number"));
    assert_eq!(h.metric("tokens_per_sec"), four, "the last value stays");
    h.keys("<Enter>");
    assert_eq!(h.app.mode(), Mode::Editing, "an invalid value is not taken");
    h.keys("<BS>0<Enter>");
    assert_eq!(h.knob(Knob::Tp), Setting::Number(40.0));
    // One edit is one step of undo, however many keys it took.
    h.keys("u");
    assert_eq!(h.metric("tokens_per_sec"), before);
    h.keys("<Enter>2<Esc>");
    assert_eq!(h.metric("tokens_per_sec"), before, "Esc puts the old value back");
}

#[test]
fn deltas_are_against_the_files_until_a_baseline_is_set() {
    let mut h = Harness::new(120, 40);
    h.keys("Kjj<Space>");
    assert!(h.text().contains("vs saved values"));
    assert!(h.app.baseline.value(Metric::named("tokens_per_sec").unwrap()).unwrap() > h.metric("tokens_per_sec"));
    h.keys("b");
    assert_eq!(h.app.baseline.value(Metric::named("tokens_per_sec").unwrap()), Some(h.metric("tokens_per_sec")));
    h.keys("Hj");
    assert!(h.text().contains("vs NVIDIA_H100_8x_NVLink"));
    h.keys("B");
    assert!(h.app.now.baseline.is_none());
}

#[test]
fn marked_targets_become_comparison_columns() {
    let mut h = Harness::new(120, 40);
    h.keys("C");
    assert_eq!(h.app.columns.len(), 3);
    h.keys("C<Space>jjmC");
    let names: Vec<&str> = h.app.columns.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["NVIDIA_H100_8x_NVLink", "SAMBANOVA_SNX_NODE"]);
    h.keys("<Left><Left><Enter>");
    assert_eq!(&*h.app.now.setup.target, "NVIDIA_H100_8x_NVLink");
    h.keys("q");
    assert_eq!(h.app.view, View::Main);
}

#[test]
fn finder_selects_targets_workloads_and_knobs() {
    let mut h = Harness::new(120, 40);
    h.keys("/samba<Enter>");
    assert_eq!(&*h.app.now.setup.target, "SAMBANOVA_SNX_NODE");
    h.keys("/inference<Enter>");
    assert_eq!(&*h.app.now.setup.workload, "gpt5_1t_inference");
    assert_eq!(h.app.pane, Pane::Workloads);
    h.keys("/pue<Enter>");
    assert_eq!((h.app.pane, h.app.selected_knob()), (Pane::Knobs, Knob::Pue));
    h.keys("/osl");
    let Some(Overlay::Finder(finder)) = &h.app.overlay else { panic!() };
    assert_eq!(finder.matches[0].name(), "generate", "an alias finds its knob");
    h.keys("zzzz<Enter>");
    assert_eq!(h.app.mode(), Mode::Knobs);
}

#[test]
fn uncalibrated_fabric_shows_an_explanation() {
    let mut h = Harness::new(120, 40);
    h.keys("Kjjjjj<Enter>NVLink<Enter>Hj");
    let complaint = h.app.answer.outcome.as_ref().unwrap_err();
    assert!(complaint.contains("not calibrated in profile `groq`"), "{complaint}");
    assert!(h.text().contains("not calibrated"));
    h.keys("C");
    assert!(h.text().contains("GROQ_LPU_NODE: fabric"));
    h.keys("CHk");
    assert!(h.app.answer.outcome.is_ok());
}

#[test]
fn tour_steps_through_and_restores_the_previous_state() {
    let mut h = Harness::new(120, 40);
    h.keys("Kjj<Space>Hm");
    let (now, view) = (h.app.now.clone(), h.app.view);
    h.keys("dG<Enter>");
    assert_eq!(h.app.mode(), Mode::Touring);
    let steps = h.app.tour.as_ref().unwrap().demo.steps.len();
    let mut seen = Vec::new();
    for step in 0..steps {
        let tour = h.app.tour.as_ref().unwrap();
        assert_eq!((tour.step, &tour.error), (step, &None));
        assert!(tour.outcomes.iter().all(|(held, _)| *held), "{:?}", tour.outcomes);
        seen.push(h.app.now.clone());
        if step + 1 < steps {
            h.keys("<Space>");
        }
    }
    for expected in seen.iter().rev().skip(1) {
        h.keys("<Left>");
        assert_eq!(&h.app.now, expected, "going back is exact");
    }
    h.keys("<Esc>");
    assert_eq!((h.app.now, h.app.view), (now, view));
}

#[test]
fn tour_advances_automatically_on_its_timer() {
    let mut h = Harness::new(120, 40);
    h.keys("dG<Enter>");
    h.app.tour.as_mut().unwrap().auto_ms = Some(10);
    h.send(Message::Expired(Timer::Auto(0)));
    assert_eq!(h.app.tour.as_ref().unwrap().step, 1);
    h.send(Message::Expired(Timer::Auto(0)));
    assert_eq!(h.app.tour.as_ref().unwrap().step, 1, "an old timer does nothing");
    assert!(h.effects.contains(&Effect::After { ms: 10, timer: Timer::Auto(1) }));
}

#[test]
fn reload_keeps_selection_overrides_marks_and_baseline() {
    let dir = tempfile::tempdir().unwrap();
    let targets = dir.path().join("targets.yaml");
    let shipped = include_str!("../data/predecessor/targets.yaml");
    std::fs::write(&targets, shipped).unwrap();
    let sources = Sources { targets: Some(targets.clone()), ..predecessor() };
    let mut h = Harness::new(120, 40);
    h.app.library = Arc::new(Library::load(&sources, None));
    h.app.recompute();
    h.keys("j<Space>Kjj<Space>bH");
    let before = h.metric("usd_per_hour");
    let reload = |h: &mut Harness| {
        let library = Arc::new(Library::load(&sources, Some(&h.app.library)));
        let problems = library.problems().clone();
        h.send(Message::Reloaded(library, Vec::new().into(), Vec::new(), problems));
    };
    std::fs::write(&targets, shipped.replace("hourly_usd: 40.0", "hourly_usd: 80.0")).unwrap();
    reload(&mut h);
    assert!(h.metric("usd_per_hour") > before + 39.0);
    assert_eq!(&*h.app.now.setup.target, "GROQ_LPU_NODE");
    assert_eq!(h.app.now.setup.overrides.len(), 1);
    assert!(h.app.now.marks.contains("GROQ_LPU_NODE") && h.app.now.baseline.is_some());
    let flash = &h.app.flash;
    assert!(flash.entries.contains("GROQ_LPU_NODE") && flash.entries.len() == 1, "{flash:?}");
    assert!(flash.knobs.contains(&Knob::HourlyUsd) && flash.metrics.contains(&MetricId::UsdPerHour), "{flash:?}");
    assert!(!flash.metrics.contains(&MetricId::TokensPerSec), "{flash:?}");
    // A broken file: the last valid state is kept, the diagnostic can be read, and fixing the file clears it.
    let after = h.metric("usd_per_hour");
    std::fs::write(&targets, "- name: [oops\n").unwrap();
    reload(&mut h);
    assert_eq!(h.metric("usd_per_hour"), after);
    assert!(h.app.problems.has_errors());
    let status = h.app.status.as_ref().unwrap().text.clone();
    assert!(status.contains("targets.yaml:") && status.contains(": not YAML"), "{status}");
    assert!(h.keys("!").text().contains("check this line"), "{}", h.text());
    std::fs::write(&targets, shipped).unwrap();
    reload(&mut h);
    assert!(!h.app.problems.has_errors());
    assert_eq!(h.metric("usd_per_hour"), before);
    // A name that disappears and returns is selected again.
    std::fs::write(&targets, shipped.replace("GROQ_LPU_NODE", "OTHER")).unwrap();
    reload(&mut h);
    assert!(h.app.answer.outcome.is_err());
    let status = h.app.status.as_ref().unwrap().text.clone();
    assert!(status.contains("target `GROQ_LPU_NODE` is no longer in"), "{status}");
    std::fs::write(&targets, shipped).unwrap();
    reload(&mut h);
    assert_eq!(h.metric("usd_per_hour"), before);
}

#[test]
fn status_does_not_report_files_as_kept_or_fixed_if_they_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let layer = dir.path().join("workload");
    std::fs::create_dir(&layer).unwrap();
    let targets = layer.join("targets.yaml");
    let own = "- name: mine\n  vendor: NVIDIA\n  accelerator: nvidia-h100-sxm-80gb\n  accelerators_per_node: 8\n  \
               num_nodes: 1\n  memory_gb_per_accel: 80\n  cost: { hourly_usd: 20, energy_watts_node: 10200, pue: 1.1 }\n";
    std::fs::write(&targets, own).unwrap();
    let sources = Sources { config_dir: Some(dir.path().to_owned()), ..Sources::built_in() };
    let mut h = Harness::new(120, 40);
    h.app.library = Arc::new(Library::load(&sources, None));
    (h.app.now.setup.target, h.app.now.setup.workload) = ("mine".into(), "llama3.1-8b-serve".into());
    h.app.recompute();
    assert!(h.app.answer.outcome.is_ok());
    let reload = |h: &mut Harness| {
        let library = Arc::new(Library::load(&sources, Some(&h.app.library)));
        let problems = library.problems().clone();
        h.send(Message::Reloaded(library, Vec::new().into(), Vec::new(), problems));
        h.app.status.as_ref().map(|status| status.text.clone()).unwrap_or_default()
    };
    // Nothing is kept of a file that was deleted before a directory took its place.
    std::fs::remove_file(&targets).unwrap();
    assert!(reload(&mut h).contains("target `mine` is no longer in"));
    std::fs::create_dir(&targets).unwrap();
    let status = reload(&mut h);
    assert!(status.contains("not a regular file") && !status.contains("Keeping the last valid content"), "{status}");
    // Valid files without the target do not fix everything.
    std::fs::remove_dir(&targets).unwrap();
    std::fs::write(&targets, own.replace("mine", "other")).unwrap();
    let status = reload(&mut h);
    assert!(h.app.answer.outcome.is_err());
    assert!(!status.contains("All errors fixed"), "{status}");
}

#[test]
fn mouse_selects_entries_toggles_knobs_and_scrolls() {
    let mut h = Harness::new(120, 40);
    let click = |h: &mut Harness, column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        h.send(Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    };
    click(&mut h, 5, 4);
    assert_eq!(&*h.app.now.setup.target, "GROQ_LPU_NODE");
    // The second knob below its group's heading: the first click selects it, the next one toggles it.
    click(&mut h, 40, 7);
    assert_eq!((h.app.pane, h.app.selected_knob()), (Pane::Knobs, Knob::CudaGraphs));
    assert_eq!(h.knob(Knob::CudaGraphs), Setting::Toggle(true));
    click(&mut h, 40, 7);
    assert_eq!(h.knob(Knob::CudaGraphs), Setting::Toggle(false));
    // A click selects a node, another one folds it.
    click(&mut h, 70, 1);
    assert_eq!(h.app.view, View::Explain);
    let before = row_count(&h.app);
    click(&mut h, 10, 3);
    assert!(row_count(&h.app) < before, "the root was under the cursor");
    // The strip of views, forth and back.
    click(&mut h, 30, 1);
    assert_eq!(h.app.view, View::Breakdown);
    click(&mut h, 5, 1);
    assert_eq!(h.app.view, View::Main);
    let wheel = MouseEvent { kind: MouseEventKind::ScrollDown, column: 5, row: 3, modifiers: KeyModifiers::NONE };
    h.send(Message::Mouse(wheel));
    assert_eq!(&*h.app.now.setup.target, "SAMBANOVA_SNX_NODE");
    assert_eq!(h.app.pane, Pane::Knobs, "the wheel leaves the focus alone");
}

/// The selected knob and the name of its group are visible, wherever the cursor is in the list.
#[test]
fn selected_knob_and_its_group_heading_are_always_visible() {
    let mut h = Harness::analytical(80, 24);
    h.keys("WjjK");
    let knobs: Vec<_> = h.app.knobs().collect();
    for (i, spec) in knobs.iter().enumerate().chain(knobs.iter().enumerate().rev()) {
        let (up, here) = (h.app.knob_index() > i, h.app.selected_knob() == spec.knob);
        if !here {
            h.keys(if up { "k" } else { "j" });
        }
        let text = h.text();
        let pane: Vec<String> = text.lines().map(|line| line.chars().take(29).collect()).collect();
        let at =
            pane.iter().position(|line| line.contains(&format!("  {}", spec.name.split_at(12.min(spec.name.len())).0)));
        let at = at.unwrap_or_else(|| panic!("{} is not on\n{text}", spec.name));
        assert!(
            pane[..at].iter().any(|line| line.contains(&format!("│ {} ", spec.group.name()))),
            "{}\n{text}",
            spec.name
        );
    }
}

#[test]
fn knob_source_is_file_default_or_changed() {
    use atlas_fabric::tui::screen::knobs::{Source, source};
    let mut h = Harness::analytical(120, 40);
    let of = |h: &Harness, knob: Knob| source(&h.app, knob.spec());
    assert_eq!(of(&h, Knob::Microbatch), Source::File);
    assert_eq!(of(&h, Knob::Sharding), Source::File);
    assert_eq!(of(&h, Knob::Dp), Source::Default);
    assert_eq!(of(&h, Knob::HourlyUsd), Source::File);
    assert_eq!(of(&h, Knob::UsdPerKwh), Source::Default);
    h.keys("Kjj<Right>");
    assert_eq!(of(&h, Knob::Microbatch), Source::Changed);
}

#[test]
fn advice_is_applied_with_enter_and_taken_back_with_u() {
    let mut h = Harness::analytical(120, 40);
    h.keys("Wj8");
    assert!(!h.app.answer.fits());
    assert!(h.app.advice()[0].fixes);
    let before = h.app.now.clone();
    h.keys("<Enter>");
    assert!(h.app.answer.fits(), "{}", h.app.status.as_ref().unwrap().text);
    assert!(!h.app.now.setup.overrides.is_empty());
    h.keys("u");
    assert_eq!(h.app.now, before);
    // The pane beside the results shows the first piece of advice.
    let first = h.app.advice()[0].text.clone();
    h.keys("<Esc>");
    assert!(h.text().contains(&first));
}

#[test]
fn explain_view_shows_a_metric_down_to_its_inputs() {
    let mut h = Harness::analytical(120, 40);
    h.keys("V<Enter>");
    assert_eq!(h.app.view, View::Explain);
    // Down to the tokens of a step and below: the file that states the sequence length.
    assert!(h.text().contains("workloads.yaml"), "{}", h.text());
    h.keys("j<Enter>");
    assert!(!h.text().contains("workloads.yaml"), "folded\n{}", h.text());
    h.keys("<Enter>jj");
    assert!(h.text().contains("sequence.prompt"), "{}", h.text());
    // The next metric, and back to the panes with the cursor on it.
    let before = h.app.figure;
    h.keys("<Right>");
    assert_ne!(h.app.figure, before);
    h.keys("<Esc>");
    assert_eq!((h.app.view, h.app.pane), (View::Main, Pane::Results));
    // All metrics can be explained, with any nodes folded.
    for _ in 0..h.app.answer.metrics().count() {
        h.keys("7jj<Enter>jjj<Enter>G<Enter>7<Right>").draw();
        h.keys("Vj");
    }
}

#[test]
fn command_palette_executes_typed_commands() {
    let mut h = Harness::analytical(120, 40);
    h.keys(":breakdown<Enter>");
    assert_eq!(h.app.view, View::Breakdown);
    h.keys(":theme light<Enter>");
    assert_eq!(h.app.theme().unwrap().name(), "light");
    h.keys("<Esc>Kjj:step up<Enter>");
    assert_eq!(h.app.now.setup.overrides.len(), 1, "a command of the pane below");
    h.keys(":zzzzz<Enter>");
    assert!(h.text().contains("unknown word `zzzzz`"), "{}", h.text());
    h.keys("<Esc>");
    assert_eq!(h.app.overlay, None);
}

#[test]
fn comparison_is_sorted_by_the_selected_metric() {
    let mut h = Harness::analytical(120, 40);
    h.keys("C");
    let names = |h: &Harness| h.app.columns.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&h), ["8xH100", "8xMI300X"]);
    h.keys("o");
    let rate = |h: &Harness, i: usize| h.app.columns[i].1.value(Metric::named("tokens_per_sec").unwrap()).unwrap();
    assert!(rate(&h, 0) >= rate(&h, 1), "the best first");
    h.keys("o");
    assert_eq!(names(&h), ["8xH100", "8xMI300X"], "and back");
    // A target on which the workload does not fit comes last, however fast it would be.
    h.keys("<Esc>WjC");
    assert!(!h.app.columns[0].1.fits() && h.app.columns[1].1.fits());
    h.keys("o");
    assert_eq!(names(&h), ["8xMI300X", "8xH100"]);
}

#[test]
fn copy_keys_emit_the_selected_content() {
    let mut h = Harness::analytical(120, 40);
    let copied = |h: &mut Harness, keys: &str| {
        h.keys(keys);
        match h.effects.pop() {
            Some(Effect::Copy { text, .. }) => text,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(copied(&mut h, "y"), "8xH100");
    assert_eq!(copied(&mut h, "Kjjy"), "microbatch=1");
    let shown = copied(&mut h, "Vy");
    assert!(shown.ends_with("tok/s"), "{shown}");
    let table = copied(&mut h, "Y");
    assert!(table.starts_with("metric\tvalue\tlow\thigh\tbaseline\tunit\ntime_to_train_h\t"), "{table}");
    assert!(table.lines().all(|line| line.split('\t').count() == 6), "{table}");
    let table = copied(&mut h, "CY");
    assert_eq!(table.lines().count(), 3, "{table}");
    let view = copied(&mut h, "3y");
    assert!(view.contains("device memory") && !view.contains('┌'), "{view}");
}

/// The change is shown, then written without modifying the rest of the file; knobs that match the files no longer count
/// as changed.
#[test]
fn changed_knobs_are_written_back_to_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/screens");
    for name in ["targets.yaml", "workloads.yaml"] {
        std::fs::copy(data.join(name), dir.path().join(name)).unwrap();
    }
    let sources = Sources {
        targets: Some(dir.path().join("targets.yaml")),
        workloads: Some(dir.path().join("workloads.yaml")),
        ..Sources::built_in()
    };
    let mut h = Harness::of(&sources, Glyphs::unicode(), 120, 40);
    h.keys("S");
    assert!(h.app.status.as_ref().unwrap().text.contains("nothing to write"));
    h.keys("<Esc>WjK/tp<Enter><Left>/hourly<Enter><Right>S");
    assert_eq!(h.app.mode(), Mode::Confirming);
    let text = h.text();
    assert!(text.contains("-   parallelism: { tp: 8 }   # no room for the optimizer"), "{text}");
    assert!(text.contains("+   parallelism: { tp: 4 }   # no room for the optimizer"), "{text}");
    h.keys("<Enter>");
    let Some(Effect::WriteBack(plan)) = h.effects.pop() else { panic!("{:?}", h.effects) };
    assert_eq!(plan.files.len(), 2);
    for file in &plan.files {
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), file.before);
        std::fs::write(&file.path, &file.after).unwrap();
    }
    let library = Arc::new(Library::load(&sources, Some(&h.app.library)));
    let (demos, themes) = (h.app.demos.clone(), h.app.themes.clone());
    let rate = |h: &Harness| h.app.answer.value(Metric::named("tokens_per_sec").unwrap());
    let before = rate(&h);
    h.send(Message::Reloaded(library, demos, themes, Default::default()));
    assert!(h.app.now.setup.overrides.is_empty());
    assert_eq!(rate(&h), before);
    assert_eq!((h.knob(Knob::Tp), h.knob(Knob::HourlyUsd)), (Setting::Number(4.0), Setting::Number(25.0)));
}

#[test]
fn key_presses_emit_save_adopt_suspend_and_quit_effects() {
    let mut h = Harness::new(120, 40);
    h.app.library = Arc::new(Library::load(&Sources::built_in(), None));
    h.app.recompute();
    h.keys("s");
    let Some(Effect::Save(saving)) = h.effects.pop() else { panic!("{:?}", h.effects) };
    assert_eq!(saving.name, "NVIDIA_H100_8x_NVLink_gpt5_1t_train_parity_1337.json");
    let record: serde_json::Value = serde_json::from_str(&saving.json).unwrap();
    assert_eq!(record["record"]["tokens_per_sec"].as_f64(), Some(h.metric("tokens_per_sec")));
    h.keys("e");
    assert!(h.app.status.as_ref().unwrap().text.contains("this entry is built in"));
    // The offer is made once; another key cancels it.
    h.keys("je");
    assert!(!h.effects.iter().any(|effect| matches!(effect, Effect::CopyAndEdit { .. })));
    h.keys("e");
    let line = h.app.library.target("GROQ_LPU_NODE").unwrap().origin.at.line;
    assert_eq!(h.effects.pop(), Some(Effect::CopyAndEdit { path: "workload/targets.yaml".into(), line }));
    h.keys("<C-z>");
    assert_eq!(h.effects.pop(), Some(Effect::Suspend));
    h.keys("q");
    assert_eq!(h.effects.pop(), Some(Effect::Quit));
    h.keys("K<Enter><C-c>");
    assert_eq!(h.effects.pop(), Some(Effect::Quit), "Ctrl-C works while typing, too");
}

#[test]
fn reference_document_lists_every_hinted_key() {
    let reference = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md")).unwrap();
    for row in atlas_fabric::tui::input::keymap::rows(Mode::Targets) {
        if row.hint.is_some() {
            assert!(reference.contains(&format!("`{}`", row.keys[0])), "{} is not in docs/reference.md", row.keys[0]);
        }
    }
}

/// The table of knobs in docs/reference.md matches the registry.
#[test]
fn reference_document_contains_the_knob_registry() {
    let mut table = "| knob | also | takes | what it is |\n| --- | --- | --- | --- |\n".to_owned();
    for spec in KNOBS {
        let takes = match spec.kind {
            ValueType::Toggle => "on, off".to_owned(),
            ValueType::Choice(words) => words.join(", "),
            ValueType::Software => "family@release".to_owned(),
            ValueType::Fabric => "a fabric of the profile".to_owned(),
            ValueType::Number { bounds, .. } => bounds.describe(),
            ValueType::Seed => "a whole number".to_owned(),
        };
        let unit = if spec.unit.is_empty() { String::new() } else { format!(" ({})", spec.unit) };
        table += &format!("| `{}` | {} | {takes}{unit} | {} |\n", spec.name, spec.aliases.join(", "), spec.help);
    }
    let reference = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md")).unwrap();
    assert!(reference.contains(&table), "docs/reference.md should have\n{table}");
}

fn any_key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "j", "k", "h", "l", "<Tab>", "<Right>", "<Left>", "<Space>", "<BS>", "b", "B", "c", "vs", "m", "R", "1", "3",
        "K", "V", "2", "4", "6", "7", "9", "0", "o", ":", "y", "S", "g", "G", "<Enter>", "<Esc>", "8", "v", "t", "!",
        "?", "/", "d", "-", "+",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is typed: no panic, the screen can be drawn, and undoing everything restores the initial state of the
    /// tab.
    #[test]
    fn undo_restores_the_initial_state_and_redo_the_final_one(keys in prop::collection::vec(any_key(), 0..60)) {
        let mut h = Harness::new(100, 30);
        let start = h.app.now.clone();
        for key in keys {
            h.keys(key);
        }
        h.draw();
        for _ in 0..4 {
            h.keys("<Esc>");
        }
        let end = h.app.now.clone();
        let steps = h.app.past.len();
        // A second tab starts with the state that it was created from, not with the files.
        let start = match h.app.all_tabs().count() {
            1 => start,
            _ => h.app.past.first().unwrap_or(&end).clone(),
        };
        for _ in 0..steps {
            h.keys("u");
        }
        prop_assert_eq!(&h.app.now, &start);
        for _ in 0..steps {
            h.keys("<C-r>");
        }
        prop_assert_eq!(&h.app.now, &end);
    }
}
