//! All keys, generated from the table of bindings: those of the present mode first.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::tui::app::{App, Overlay};
use crate::tui::keymap::{BINDINGS, Binding, Mode, rows};
use crate::tui::theme::Role;

enum Row {
    Heading(String),
    Key(&'static Binding),
    Text(String),
    Blank,
}

fn build(app: &App) -> Vec<Row> {
    let below = app.mode_below();
    let mut shown: Vec<*const Binding> = Vec::new();
    let mut all = Vec::new();
    let order = std::iter::once(below).chain(Mode::ALL.into_iter().filter(|mode| *mode != below));
    for mode in order {
        let fresh: Vec<&'static Binding> =
            rows(mode).filter(|row| !shown.contains(&std::ptr::from_ref(*row))).collect();
        if fresh.is_empty() {
            continue;
        }
        all.push(Row::Heading(if mode == below { format!("{} (here)", mode.name()) } else { mode.name().to_owned() }));
        for row in fresh {
            shown.push(std::ptr::from_ref(row));
            all.push(Row::Key(row));
        }
        all.push(Row::Blank);
    }
    all.push(Row::Heading("Files".to_owned()));
    let config =
        atlas_document::sources::config_dir().map_or_else(|| "none".to_owned(), |dir| dir.display().to_string());
    all.push(Row::Text("workload/ here goes over the user's, which goes over what ships".to_owned()));
    all.push(Row::Text(format!("user's: {config}")));
    all.push(Row::Text(format!("atlas {}", env!("CARGO_PKG_VERSION"))));
    debug_assert_eq!(shown.len(), BINDINGS.len());
    all
}

fn area(app: &App) -> Rect {
    let (columns, height) = app.size;
    let width = columns.min(106);
    Rect::new((columns - width) / 2, 1, width, height.saturating_sub(2))
}

/// Rows there are, and rows that fit.
#[must_use]
pub fn extent(app: &App) -> (usize, usize) {
    (build(app).len(), usize::from(area(app).height.saturating_sub(2)))
}

/// Columns of keys.
const KEYS: u16 = 18;

/// The keys of a row; of many in a row, the first and the last.
fn keys(app: &App, binding: &Binding) -> String {
    const MOST: usize = 4;
    let names: Vec<&str> = binding.keys.iter().map(|key| app.glyphs.key(key)).collect();
    match names.as_slice() {
        [first, .., last] if names.len() > MOST => format!("{first} {} {last}", app.glyphs.ellipsis),
        _ => names.join("  "),
    }
}

/// Draws the box.
pub fn help(app: &App, canvas: &mut Canvas<'_>) {
    let Some(Overlay::Help { scroll }) = &app.overlay else { return };
    let area = area(app);
    canvas.clear(area);
    let inner = canvas.frame(area, "Keys", "Esc closes", true);
    let all = build(app);
    for (line, row) in (0..inner.height).zip(all.iter().skip(*scroll)) {
        let (x, y, width) = (inner.x + 1, inner.y + line, inner.width.saturating_sub(2));
        match row {
            Row::Heading(name) => {
                let style = canvas.role(Role::Heading);
                canvas.text(x, y, width, name, style);
            }
            Row::Key(binding) => {
                let keys = keys(app, binding);
                let style = canvas.role(Role::Key);
                canvas.text(x + 1, y, KEYS, &keys, style);
                let style = canvas.role(Role::Text);
                canvas.text(x + KEYS + 2, y, width.saturating_sub(KEYS + 2), binding.help, style);
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
