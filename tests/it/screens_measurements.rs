//! The Measurements view without a terminal: rows and key presses in, screens and effects out.

use std::path::Path;
use std::sync::Arc;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_evidence::calibrate::document;
use atlas_evidence::calibrate::intake;
use atlas_fabric::theme::color::ColorDepth;
use atlas_fabric::theme::{Glyphs, Themes};
use atlas_fabric::tui::app::{App, View};
use atlas_fabric::tui::message::{Effect, Message};
use atlas_fabric::tui::screen::view;
use atlas_fabric::tui::update::update;
use atlas_ingest::Context;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const CSV: &str = "mode,num_gpus,tp,pp,batch_size,seq_len,tokens_per_second,utilization,mfu\n\
                   training,1,1,1,32,2048,1000,0.95,0.5\ntraining,1,1,1,32,2048,1010,0.95,0.51\n\
                   training,8,8,1,32,2048,4500,,\ntraining,4,4,1,32,2048,3000,,\ntraining,2,2,1,32,2048,1740,,\n";

fn app(columns: u16, rows: u16) -> App {
    let data = Path::new("tests/data/predecessor");
    let sources = Sources {
        targets: Some(data.join("targets.yaml")),
        workloads: Some(data.join("workloads.yaml")),
        ..Sources::built_in()
    };
    let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
    App::new(Arc::new(Library::load(&sources, None)), Vec::new(), themes, Glyphs::unicode(), (columns, rows))
}

fn press(app: &mut App, code: KeyCode) -> Vec<Effect> {
    update(app, Message::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn text(app: &App) -> String {
    let (columns, rows) = app.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    view(app, &mut buffer);
    let line = |y: u16| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>() + "\n";
    (0..rows).map(line).collect()
}

/// Opens the view.
fn show(app: &mut App) {
    press(app, KeyCode::Char('v'));
    press(app, KeyCode::Char('m'));
}

fn measured(app: &mut App) {
    let context = Context { name: "sweep.csv".to_owned(), ..Context::default() };
    let rows = intake::gather(CSV.as_bytes(), &context, &[]).unwrap().rows;
    update(app, Message::Measured(Arc::new(rows), Vec::new()));
}

#[test]
fn calibration_proposal_can_be_discarded_and_accepted() {
    let mut app = app(140, 40);
    assert!(!text(&app).contains("Measured"), "no tab where nothing was measured");
    show(&mut app);
    assert_eq!(app.view, View::Measurements);
    assert!(text(&app).contains("no measurements yet"));
    press(&mut app, KeyCode::Char('f'));
    assert!(app.status.as_ref().unwrap().error && app.measured.proposal.is_none());
    press(&mut app, KeyCode::Esc);

    measured(&mut app);
    let before = text(&app);
    assert!(
        before.contains("sweep.csv:4") && before.contains("f calibrates") && before.contains("vm Measured"),
        "{before}"
    );

    press(&mut app, KeyCode::Char('f'));
    let shown = text(&app);
    for expected in ["B_base", "1100 →", "chi_tp", "median error", "Enter writes", "nvidia_h100_8x_nvlink.yaml"] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    // After discarding the proposal in either way, the state is as before.
    press(&mut app, KeyCode::Backspace);
    assert!(app.measured.proposal.is_none());
    press(&mut app, KeyCode::Char('f'));
    press(&mut app, KeyCode::Esc);
    assert!(app.measured.proposal.is_none() && app.view == View::Measurements);

    press(&mut app, KeyCode::Char('f'));
    let effects = press(&mut app, KeyCode::Enter);
    let proposal = effects.iter().find_map(|effect| match effect {
        Effect::WriteProfile(proposal) => Some(Arc::clone(proposal)),
        _ => None,
    });
    let proposal = proposal.unwrap();
    assert!(!proposal.replaces && proposal.path.ends_with("profiles/nvidia_h100_8x_nvlink.yaml"));
    // After the profile is written and read again, it is in effect, and the errors are those that were shown.
    let dir = tempfile::tempdir().unwrap();
    let profiles = dir.path().join("profiles");
    std::fs::create_dir(&profiles).unwrap();
    let yaml = document::profile(&proposal.outcome, &proposal.start, &proposal.vendor, "2026-07-20");
    std::fs::write(profiles.join("nvidia_h100_8x_nvlink.yaml"), yaml).unwrap();
    let data = Path::new("tests/data/predecessor");
    let sources = Sources {
        targets: Some(data.join("targets.yaml")),
        workloads: Some(data.join("workloads.yaml")),
        hardware: Some(profiles),
        ..Sources::built_in()
    };
    let library = Arc::new(Library::load(&sources, None));
    assert!(!library.problems().has_errors(), "{}", library.problems());
    let problems = library.problems().clone();
    update(&mut app, Message::Reloaded(library, Vec::new().into(), Vec::new(), problems));
    assert!(app.measured.proposal.is_none());
    let now: Vec<f64> =
        atlas_fabric::tui::views::measurements::evaluated_rows(&app).iter().map(|one| one.before).collect();
    let promised: Vec<f64> = proposal.outcome.judged.iter().filter_map(|one| one.after).collect();
    assert_eq!(now.len(), promised.len());
    assert!(now.iter().zip(&promised).all(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{now:?} {promised:?}");
}

#[test]
fn measurements_view_renders_at_five_sizes_and_reports_read_errors() {
    for (columns, rows) in [(80, 24), (81, 25), (100, 30), (120, 40), (200, 60)] {
        let mut app = app(columns, rows);
        measured(&mut app);
        show(&mut app);
        text(&app);
        press(&mut app, KeyCode::Char('f'));
        for key in ['j', 'j', 'G', 'g', 'Y'] {
            press(&mut app, KeyCode::Char(key));
            text(&app);
        }
        update(&mut app, Message::Measured(Arc::default(), vec!["run.log: cannot be read: gone".to_owned()]));
        assert!(text(&app).contains("run.log: cannot be read"));
    }
}

#[test]
fn rows_without_a_prediction_are_counted() {
    let mut app = app(140, 40);
    let context = Context { name: "ib.csv".to_owned(), ..Context::default() };
    let rows = intake::gather(&b"fabric,busbw,message_bytes\nIB,40,1048576\n"[..], &context, &[]).unwrap().rows;
    update(&mut app, Message::Measured(Arc::new(rows), Vec::new()));
    show(&mut app);
    assert!(text(&app).contains("1 of 1 rows have no prediction"), "{}", text(&app));
}

#[test]
fn enter_explains_a_row_or_accepts_the_proposal_under_the_cursor() {
    let mut app = app(140, 40);
    measured(&mut app);
    show(&mut app);
    let first = atlas_fabric::tui::views::measurements::evaluated_rows(&app)[0].clone();
    press(&mut app, KeyCode::Enter);
    assert_eq!(app.view, View::Explain);
    let shown = text(&app);
    // The prediction for the row, not for the current scenario.
    let value = atlas_core::units::si(first.before);
    assert!(shown.contains(value.split(' ').next().unwrap()), "{value}\n{shown}");
    assert!(shown.contains("sweep.csv:1") || shown.contains("sweep.csv:2"), "{shown}");
    press(&mut app, KeyCode::Esc);
    assert!(app.view == View::Measurements && app.subject.is_none());
    // Below a proposal, the rows can still be explained; the proposal's own lines have no action.
    press(&mut app, KeyCode::Char('f'));
    press(&mut app, KeyCode::Char('G'));
    assert!(press(&mut app, KeyCode::Enter).is_empty());
    assert_eq!(app.view, View::Explain);
    press(&mut app, KeyCode::Esc);
    assert!(app.measured.proposal.is_some());
    press(&mut app, KeyCode::Char('g'));
    let effects = press(&mut app, KeyCode::Enter);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::WriteProfile(_))));
}
