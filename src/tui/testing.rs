//! A terminal interface without a terminal, for tests: keys in, state and pictures out.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::App;
use super::color::ColorDepth;
use super::message::{Effect, Message};
use super::theme::{Glyphs, Themes};
use super::update::update;
use super::view::view;
use crate::library::Library;
use crate::spec::Sources;

/// An application on two nodes of catalogued accelerators and three workloads.
pub(super) struct Hands {
    pub(super) app: App,
    pub(super) effects: Vec<Effect>,
}

impl Hands {
    pub(super) fn new() -> Hands {
        let data = Path::new("tests/data/screens");
        let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
        Hands::of(&Sources { targets, workloads, ..Sources::built_in() })
    }

    pub(super) fn of(sources: &Sources) -> Hands {
        let library = Arc::new(Library::load(sources, None));
        let (themes, _) = Themes::load(None, ColorDepth::TrueColor);
        Hands { app: App::new(library, Vec::new(), themes, Glyphs::unicode(), (120, 40)), effects: Vec::new() }
    }

    /// Types keys: letters as they are, others in angle brackets: `jj<Tab><A-2>`.
    pub(super) fn keys(&mut self, keys: &str) -> &mut Hands {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let (name, after) = match rest.strip_prefix('<').and_then(|inner| inner.split_once('>')) {
                Some((name, after)) if !name.is_empty() => (name, after),
                _ => rest.split_at(first.len_utf8()),
            };
            rest = after;
            let plain = KeyModifiers::NONE;
            let (code, modifiers) = match (name, name.split_once('-')) {
                (_, Some(("C", key))) => (KeyCode::Char(key.chars().next().unwrap()), KeyModifiers::CONTROL),
                (_, Some(("A", key))) => (KeyCode::Char(key.chars().next().unwrap()), KeyModifiers::ALT),
                ("Tab", _) => (KeyCode::Tab, plain),
                ("Enter", _) => (KeyCode::Enter, plain),
                ("Esc", _) => (KeyCode::Esc, plain),
                ("Space", _) => (KeyCode::Char(' '), plain),
                ("BS", _) => (KeyCode::Backspace, plain),
                ("Right", _) => (KeyCode::Right, plain),
                ("Left", _) => (KeyCode::Left, plain),
                ("Up", _) => (KeyCode::Up, plain),
                ("Down", _) => (KeyCode::Down, plain),
                (other, _) => (KeyCode::Char(other.chars().next().unwrap()), plain),
            };
            let key = Message::Key(KeyEvent::new(code, modifiers));
            self.effects.extend(update(&mut self.app, key));
        }
        self
    }

    pub(super) fn text(&self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.app.size.0, self.app.size.1));
        view(&self.app, &mut buffer);
        let rows = buffer.content.chunks(usize::from(buffer.area.width.max(1)));
        let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}
