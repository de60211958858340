//! All views and overlays on the built-in catalog, at three sizes: everything is drawn within its frame.
//! `cargo xtask screens DIR` writes them as PNG for inspection.

use std::path::{Path, PathBuf};

use atlas_evidence::calibrate::intake;
use atlas_fabric::demo::View;
use atlas_fabric::tui::app::App;
use atlas_fabric::tui::input::keymap::{Action, key_of};
use atlas_fabric::tui::message::Message;
use atlas_fabric::tui::screen::view;
use atlas_fabric::tui::views::watch;
use atlas_ingest::Context;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::common::raster::{self, Paper};
use crate::panels::history;
use crate::tasks::Start;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];
/// Themes, with the terminal colors that each is for.
const THEMES: [(&str, Paper); 2] = [("dark", Paper::DARK), ("light", Paper::LIGHT)];

/// Measured runs.
const RUNS: &str = "mode,num_gpus,tp,pp,batch_size,seq_len,tokens_per_second,mfu\n\
                    training,8,1,1,1,8192,72000,0.49\ntraining,8,2,1,1,8192,70100,0.48\ntraining,8,4,1,1,8192,66000,\n";

/// Keys from the start to a view with content. Two targets are marked before.
fn keys(view: View) -> &'static str {
    match view {
        View::Main => "",
        View::Optimum => "6R",
        View::Schedule => ":llama3.1-70b-day<Enter>vs",
        View::Diff => ":tp=8<Enter>vd",
        View::Measurements => ":llama3.1-8b-train<Enter>vm",
        view => key_of(Action::Show(view)),
    }
}

/// Overlays by name, with their keys.
const OVERLAYS: [(&str, &str); 12] = [
    ("help", "?"),
    ("other_views", "v"),
    ("edited", ":tp=8<Enter>KV"),
    ("finder", "/h200"),
    ("palette", ":cheap"),
    ("goal", "Vk=2.00"),
    ("form", "+"),
    ("export", "x"),
    ("detect", "&"),
    ("tours", "d"),
    ("tour", "dj<Enter><Space>"),
    ("write", ":tp=8<Enter>S"),
];

/// Names of all screens, with their keys.
fn pictures() -> Vec<(String, &'static str)> {
    let views = View::ALL.iter().map(|view| (view.name().to_owned(), keys(*view)));
    views.chain(OVERLAYS.iter().map(|(name, keys)| ((*name).to_owned(), *keys))).collect()
}

/// The TUI after these keys, with a measured run, a watched log and a history.
fn start(keys: &str, entries: &Path) -> Start {
    let mut start = Start::with_tours();
    let context = Context { name: "runs.csv".to_owned(), ..Context::default() };
    let rows = intake::gather(RUNS.as_bytes(), &context, &[]).unwrap().rows;
    start.send(Message::Measured(rows.into(), Vec::new()));
    watch::of(&mut start.app, vec!["tests/data/screens/slow.log".to_owned()]);
    start.app.history.store = Some(history(entries));
    start.keys("Hmjjjmk").keys(keys);
    start
}

fn drawn(app: &App) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    view(app, &mut buffer);
    buffer
}

/// All frames on the screen, found by their corners.
fn frames(buffer: &Buffer) -> Vec<Rect> {
    let symbol = |x: u16, y: u16| buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
    let area = buffer.area;
    let corners = (0..area.height).flat_map(|y| (0..area.width).map(move |x| (x, y)));
    let frame = |(x, y): (u16, u16)| {
        let right = match symbol(x, y) {
            "┌" => "┐",
            "┍" => "┑",
            _ => return None,
        };
        let width = (x + 1..area.width).find(|at| symbol(*at, y) == right)? - x;
        let height = (y + 1..area.height).find(|at| symbol(x, *at) == "└")? - y;
        // The frame of a pane that an overlay covers is incomplete.
        (symbol(x + width, y + height) == "┘").then(|| Rect::new(x, y, width + 1, height + 1))
    };
    corners.filter_map(frame).collect()
}

#[test]
fn every_view_opened_by_a_key_has_a_screenshot_case() {
    let entries = tempfile::tempdir().unwrap();
    for view in View::ALL {
        assert_eq!(start(keys(*view), entries.path()).app.view, *view);
    }
    let pictures = pictures();
    let mut names: Vec<&String> = pictures.iter().map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), pictures.len(), "two pictures have the same name");
}

#[test]
fn every_view_draws_within_its_frames_at_three_sizes() {
    let entries = tempfile::tempdir().unwrap();
    for (name, keys) in pictures() {
        let mut start = start(keys, entries.path());
        for (columns, rows) in SIZES {
            start.send(Message::Resize(columns, rows));
            let buffer = drawn(&start.app);
            let text = start.text();
            let frames = frames(&buffer);
            assert!(!frames.is_empty(), "{name} at {columns}x{rows}\n{text}");
            // A dialog covers parts of the frames below it.
            let covered = |frame: &Rect| frames.iter().any(|other| other != frame && other.intersects(*frame));
            let whole = frames.iter().filter(|frame| start.app.overlay.is_none() || !covered(frame));
            for frame in whole {
                for y in frame.y + 1..frame.bottom() - 1 {
                    for x in [frame.x, frame.right() - 1] {
                        let symbol = buffer[(x, y)].symbol();
                        // An overlay may cover the border of a view.
                        let border = "│▲▼┌┍└┐┑┘━─".contains(symbol);
                        assert!(border, "{name} at {columns}x{rows}: {symbol:?} on the border at {x},{y}\n{text}");
                    }
                }
                let bottom = (frame.x + 1..frame.right() - 1).map(|x| buffer[(x, frame.bottom() - 1)].symbol());
                let clear = start.app.overlay.is_some() || bottom.clone().all(|symbol| symbol == "─");
                assert!(clear, "{name} at {columns}x{rows}: text on the lower border\n{text}");
            }
        }
    }
}

#[test]
#[ignore = "writes files: `cargo xtask screens DIR`"]
fn write_all() {
    let directory = PathBuf::from(std::env::var_os("ATLAS_SCREENS").unwrap());
    std::fs::create_dir_all(&directory).unwrap();
    let entries = tempfile::tempdir().unwrap();
    for (name, keys) in pictures() {
        let mut start = start(keys, entries.path());
        for (theme, paper) in THEMES {
            let index = start.app.themes.iter().position(|known| known.name() == theme).unwrap();
            start.app.theme = index;
            for (columns, rows) in SIZES {
                start.send(Message::Resize(columns, rows));
                let path = directory.join(format!("{name}_{columns}x{rows}_{theme}.png"));
                raster::write(&drawn(&start.app), paper, &path);
            }
        }
    }
    println!("wrote {} pictures to {}", pictures().len() * THEMES.len() * SIZES.len(), directory.display());
}
