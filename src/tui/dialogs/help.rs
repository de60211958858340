//! Draws all keys, generated from the table of bindings: those of the current mode first, then by topic.

use ratatui::layout::Rect;

use crate::theme::{Glyphs, Role};
use crate::tui::app::{App, Overlay};
use crate::tui::input::keymap::{Action, Binding, Mode, bindings, general, special};
use crate::tui::widgets::draw::{Canvas, wrap};

enum Row {
    Heading(String),
    /// A binding, and the first line of its description.
    Key(&'static Binding, String),
    /// A further line of the description.
    More(String),
    Text(String),
    Blank,
}

/// Topics of keys that work on every screen, in the order of the help.
const TOPICS: [&str; 7] = [
    "Views",
    "Search and questions",
    "Undo, baseline and tabs",
    "Tables and marks",
    "Files and export",
    "Moving",
    "Program",
];

/// Returns the topic of a key that works on every screen.
fn topic(action: Action) -> &'static str {
    use Action::*;
    let [views, search, undo, tables, files, moving, program] = TOPICS;
    match action {
        Show(_) | Demos | FocusPane(_) | After(Mode::AfterV) => views,
        Find | Palette | Assistant | NextMatch(_) => search,
        Undo | Redo | Baseline | ClearBaseline | PinTab | DuplicateTab | NewTab | RenameTab | CloseTab | ReopenTab
        | Tab(_) | TabAt(_) | After(Mode::AfterT) => undo,
        Filter | Sort | SortByName | Mark | UnmarkAll | Copy | CopyAll | ResetAll => tables,
        Export | WriteBack | Save | OpenEditor | Reload | Calibrate => files,
        Move(_) | Page(_) | First | Last | Focus(_) => moving,
        _ => program,
    }
}

fn build(app: &App) -> Vec<Row> {
    let below = app.mode_below();
    let width = usize::from(area(app.size).width.saturating_sub(4));
    let room = width.saturating_sub(usize::from(KEYS + 2));
    let mut shown: Vec<*const Binding> = Vec::new();
    let mut all = Vec::new();
    let mut section = |heading: String, rows: Vec<&'static Binding>, all: &mut Vec<Row>| {
        let fresh: Vec<&'static Binding> =
            rows.into_iter().filter(|row| !shown.contains(&std::ptr::from_ref(*row))).collect();
        if fresh.is_empty() {
            return;
        }
        all.push(Row::Heading(heading));
        shown.extend(fresh.iter().map(|row| std::ptr::from_ref(*row)));
        for binding in fresh {
            let mut lines = wrap(binding.help, room).into_iter();
            all.push(Row::Key(binding, lines.next().unwrap_or_default()));
            all.extend(lines.map(Row::More));
        }
        all.push(Row::Blank);
    };
    section(format!("{} (here)", below.name()), special(below).collect(), &mut all);
    for name in TOPICS {
        section(name.to_owned(), general().filter(|row| topic(row.action) == name).collect(), &mut all);
    }
    for mode in Mode::all() {
        section(mode.name().to_owned(), special(mode).collect(), &mut all);
    }
    all.push(Row::Heading("Files".to_owned()));
    let config =
        atlas_document::sources::config_dir().map_or_else(|| "none".to_owned(), |dir| dir.display().to_string());
    for text in [
        "precedence: ./workload/, then the configuration directory, then built-in entries",
        &format!("configuration directory: {config}"),
        &format!("atlas {}", env!("CARGO_PKG_VERSION")),
    ] {
        all.extend(wrap(text, width.saturating_sub(1)).into_iter().map(Row::Text));
    }
    debug_assert!(bindings().all(|row| shown.contains(&std::ptr::from_ref(row))));
    all
}

fn area(size: (u16, u16)) -> Rect {
    let (columns, height) = size;
    let width = columns.min(106);
    Rect::new((columns - width) / 2, 1, width, height.saturating_sub(2))
}

/// Total and visible rows.
#[must_use]
pub fn extent(app: &App) -> (usize, usize) {
    (build(app).len(), usize::from(area(app.size).height.saturating_sub(2)))
}

/// Width of the keys.
const KEYS: u16 = 18;

/// Formats the keys of a row; if there are many, the first and the last.
fn keys(glyphs: &Glyphs, binding: &Binding) -> String {
    const MAX_KEYS: usize = 4;
    let names: Vec<&str> = binding.keys.iter().map(|key| glyphs.key(key)).collect();
    match names.as_slice() {
        [first, .., last] if names.len() > MAX_KEYS => format!("{first} {} {last}", glyphs.ellipsis),
        _ => names.join("  "),
    }
}

/// Draws the dialog.
pub fn help(app: &App, canvas: &mut Canvas<'_>) {
    let Some(Overlay::Help { scroll }) = &app.overlay else { return };
    let area = area(app.size);
    canvas.clear(area);
    let inner = canvas.frame(area, "Help: keys", "Esc closes", true);
    let all = build(app);
    for (line, row) in (0..inner.height).zip(all.iter().skip(*scroll)) {
        let (x, y, width) = (inner.x + 1, inner.y + line, inner.width.saturating_sub(2));
        match row {
            Row::Heading(name) => {
                let style = canvas.role(Role::Heading);
                canvas.text(x, y, width, name, style);
            }
            Row::Key(binding, help) => {
                let keys = keys(&app.glyphs, binding);
                let style = canvas.role(Role::Key);
                canvas.text(x + 1, y, KEYS, &keys, style);
                let style = canvas.role(Role::Text);
                canvas.text(x + KEYS + 2, y, width.saturating_sub(KEYS + 2), help, style);
            }
            Row::More(help) => {
                let style = canvas.role(Role::Text);
                canvas.text(x + KEYS + 2, y, width.saturating_sub(KEYS + 2), help, style);
            }
            Row::Text(text) => {
                let style = canvas.role(Role::Dim);
                canvas.text(x + 1, y, width, text, style);
            }
            Row::Blank => {}
        }
    }
    canvas.more(area, *scroll > 0, scroll + usize::from(inner.height) < all.len());
}
