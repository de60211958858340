//! The palette: every command that can be given where one is, with its keys, matched as one types.

use std::collections::HashSet;

use fuzzy_matcher::FuzzyMatcher as _;
use fuzzy_matcher::skim::SkimMatcherV2;

use super::app::{App, Overlay, Palette, View};
use super::keymap::{self, Action};
use super::line::Line;
use super::message::Effect;
use super::{sweeping, tour, update};
use atlas_plan::knob::Knob;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// What a key does.
    Action(Action),
    /// Takes a theme, by its place.
    Theme(usize),
    /// Plays a tour, by its place.
    Tour(usize),
    /// Sweeps over a knob, alone or against another one.
    Sweep(Knob, Option<Knob>),
}

/// A row of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it does, in words.
    pub text: String,
    /// The keys that do the same.
    pub keys: &'static [&'static str],
    /// What it does.
    pub deed: Deed,
}

/// Opens the palette with everything in it.
pub(super) fn open(app: &mut App) {
    let palette = Palette { matches: matches(app, ""), ..Palette::default() };
    app.overlay = Some(Overlay::Palette(palette));
}

/// Changes what is typed, and what matches.
pub(super) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(Overlay::Palette(mut palette)) = app.overlay.take() else { return };
    let before = palette.line.text().to_owned();
    change(&mut palette.line);
    if palette.line.text() != before {
        palette.matches = matches(app, palette.line.text());
        palette.cursor = 0;
    }
    app.overlay = Some(Overlay::Palette(palette));
}

/// Does what stands under the cursor.
pub(super) fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(Overlay::Palette(palette)) = app.overlay.take() else { return };
    let Some(command) = palette.matches.get(palette.cursor) else { return };
    match command.deed {
        Deed::Action(action) => update::act(app, app.mode_below(), action, effects),
        Deed::Theme(index) => {
            app.theme = index;
            let name = app.theme().map(|theme| theme.name().to_owned()).unwrap_or_default();
            update::note(app, format!("theme: {name}"), effects);
        }
        Deed::Sweep(across, against) => {
            sweeping::choose(app, Some(across), against);
            if app.view != View::Sweep {
                update::act(app, app.mode_below(), Action::Show(View::Sweep), effects);
            }
        }
        Deed::Tour(index) => {
            if let Some(demo) = app.demos.get(index).cloned() {
                tour::begin(app, demo, None, effects);
            }
        }
    }
}

/// Every command of the mode below, then themes and tours.
fn commands(app: &App) -> Vec<Command> {
    let mut seen = HashSet::new();
    let mut all: Vec<Command> = keymap::rows(app.mode_below())
        .filter(|row| row.action != Action::Palette && seen.insert(row.action))
        .map(|row| {
            let name = match row.action {
                Action::Show(view) => view.name(),
                _ => row.hint.unwrap_or_default(),
            };
            // A name that the words begin with says nothing more.
            let text = if row.help.starts_with(name) { row.help.to_owned() } else { format!("{name}: {}", row.help) };
            Command { text, keys: row.keys, deed: Deed::Action(row.action) }
        })
        .collect();
    let themes = app.themes.iter().enumerate().map(|(index, theme)| Command {
        text: format!("theme {}: {}", theme.name(), theme.description()),
        keys: &[],
        deed: Deed::Theme(index),
    });
    let tours = app.demos.iter().enumerate().map(|(index, demo)| Command {
        text: format!("tour: {}", demo.title),
        keys: &[],
        deed: Deed::Tour(index),
    });
    let own = sweeping::across(app);
    let sweeps = sweeping::knobs(app).into_iter().flat_map(|knob| {
        let over = Command { text: format!("sweep over {}", knob.name()), keys: &[], deed: Deed::Sweep(knob, None) };
        let against = own.filter(|own| *own != knob && app.view == View::Sweep).map(|own| Command {
            text: format!("sweep against {}: {} across, {} up", knob.name(), own.name(), knob.name()),
            keys: &[],
            deed: Deed::Sweep(own, Some(knob)),
        });
        std::iter::once(over).chain(against)
    });
    all.extend(sweeps);
    all.extend(themes);
    all.extend(tours);
    all
}

/// The commands that match, best first.
fn matches(app: &App, typed: &str) -> Vec<Command> {
    let all = commands(app);
    if typed.trim().is_empty() {
        return all;
    }
    let matcher = SkimMatcherV2::default();
    let mut scored: Vec<(i64, Command)> =
        all.into_iter().filter_map(|command| Some((matcher.fuzzy_match(&command.text, typed)?, command))).collect();
    scored.sort_by(|(a, _), (b, _)| b.cmp(a));
    scored.into_iter().map(|(_, command)| command).collect()
}
