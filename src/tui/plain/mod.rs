//! The interface as lines of text, for screen readers, dumb terminals and scripts: reads commands and questions line by
//! line, and prints the contents of the screen with one statement per line.
//!
//! * this file – reading and executing lines
//! * `text` – the views as text

mod text;

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal as _, Read as _, Write};
use std::sync::Arc;

use color_eyre::eyre::{Result, WrapErr as _};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Overlay, Pane, View};
use super::message::{Effect, Message, Timer};
use super::session::Store;
use super::update::act::act;
use super::update::update;
use super::{Options, session};
use crate::theme::color::ColorDepth;
use crate::theme::{Glyphs, Themes};
use crate::tui::dialogs::palette;
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::runtime::{effects, loading, measuring};
use crate::tui::views::assistant;
use crate::tui::widgets::draw;
use atlas_config::library::Library;
use atlas_plan::search::Gauge;

/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Size of a screen that shows everything.
const SIZE: (u16, u16) = (200, 200);

/// Reads lines until the input ends or `quit` is read.
///
/// # Errors
///
/// If input or output fails.
pub fn run(options: Options) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let mut input = std::io::stdin().lock();
    let prompts = std::io::stdin().is_terminal();
    let mut store = Store::of(&options.keep, &options.sources);
    let mut plain = Plain::new(options);
    let first = plain.start(&mut store);
    write(&mut output, &first)?;
    while !plain.quit {
        if prompts {
            write(&mut output, "> ")?;
        }
        let mut line = Vec::new();
        let read =
            input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).wrap_err("cannot read the input")?;
        if read == 0 {
            break;
        }
        let answer = plain.answer(String::from_utf8_lossy(&line).trim());
        write(&mut output, &answer)?;
    }
    store.save(session::capture(&plain.app, "")).map_err(color_eyre::eyre::Report::msg)
}

fn write(output: &mut impl Write, text: &str) -> Result<()> {
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).wrap_err("cannot write the output")
}

/// The state, and the messages since the last line.
struct Plain {
    app: App,
    options: Options,
    said: Vec<String>,
    quit: bool,
}

impl Plain {
    fn new(options: Options) -> Plain {
        let library = Arc::new(Library::load(&options.sources, None));
        let (themes, problems) = Themes::load(options.sources.config_dir.as_deref(), ColorDepth::Mono);
        let (tours, of_tours) = loading::tours(&options);
        let glyphs = if options.ascii { Glyphs::ascii() } else { Glyphs::unicode() };
        let mut app = App::new(library, tours, themes, glyphs, SIZE);
        app.problems = app.library.problems().clone();
        app.problems.extend(problems);
        app.problems.extend(of_tours);
        app.out.clone_from(&options.out);
        app.profiles = loading::profiles(&options);
        app.pane = Pane::Results;
        Plain { app, options, said: Vec::new(), quit: false }
    }

    /// Restores the session and applies the flags. Returns the first text.
    fn start(&mut self, store: &mut Store) -> String {
        let first = self.app.now.setup.clone();
        store.set_initial(session::capture(&self.app, ""));
        match store.load() {
            Ok(Some(document)) => self.said.extend(session::restore(&document, &mut self.app)),
            Ok(None) => {}
            Err(why) => self.said.push(why),
        }
        let unknown = session::select(&mut self.app, first, &self.options.target, &self.options.workload);
        self.said.extend(unknown);
        (self.app.view, self.app.pane) = (View::Main, Pane::Results);
        let measured = measuring::read_now(&self.options);
        self.send(measured);
        if !self.app.problems.is_empty() {
            self.said.push(format!("{} in the files; type problems to see them", self.app.problems.summary()));
        }
        self.said.push(
            "Type a command or a question; help lists commands, an empty line repeats the view, quit exits.".to_owned(),
        );
        let text = text::view(&self.app);
        self.with_messages(&text)
    }

    /// Executes a line and returns the text to print.
    fn answer(&mut self, line: &str) -> String {
        let before = self.place();
        let mut whole = line.is_empty();
        match line {
            "" => {}
            "quit" | "exit" => self.quit = true,
            "help" => return text::commands(&palette::commands(&self.app)),
            "back" => self.press(KeyCode::Esc),
            "yes" => self.press(KeyCode::Enter),
            _ if self.app.mode() == Mode::Conversing => {
                assistant::ask(&mut self.app, line);
                // Any message makes `update` start the work for the question.
                self.send(Message::Resize(SIZE.0, SIZE.1));
            }
            "next" if self.app.mode() == Mode::OptimizerForm => self.press(KeyCode::Down),
            _ if self.app.mode() == Mode::OptimizerForm => self.replace_input(line),
            _ if self.app.mode().types() => {
                self.replace_input(line);
                self.press(KeyCode::Enter);
            }
            _ => match (line.parse::<usize>(), line.strip_prefix("keys ")) {
                (Ok(row), _) if row > 0 => {
                    self.choose(row - 1);
                    whole = self.app.view != View::Race;
                }
                (_, Some(keys)) => keys.chars().for_each(|key| self.press(KeyCode::Char(key))),
                _ => self.command(line),
            },
        }
        if self.quit {
            return String::new();
        }
        let text = match () {
            () if self.app.mode().types() && self.app.overlay.is_none() => text::typing(&self.app),
            // The line refers to the open overlay, so it is printed in full.
            () if whole || self.app.overlay.is_some() || before != self.place() || self.app.view != View::Main => {
                text::view(&self.app)
            }
            () => text::summary(&self.app),
        };
        self.with_messages(&text)
    }

    /// View, pane, whether an overlay is open, and step of the tour. After a change of these, the full view is printed.
    fn place(&self) -> (View, Pane, bool, Option<usize>) {
        let step = self.app.tour.as_ref().map(|tour| tour.step);
        (self.app.view, self.app.pane, self.app.overlay.is_some(), step)
    }

    /// Executes a line as a command or a question.
    fn command(&mut self, line: &str) {
        palette::open(&mut self.app);
        palette::typed(&mut self.app, |typed| {
            typed.insert(line);
            true
        });
        let Some(Overlay::Palette(found)) = &self.app.overlay else { return };
        let Some(first) = found.matches.first().map(|command| command.text.clone()) else {
            let why = found.trouble.clone().unwrap_or_else(|| format!("`{line}` is neither a command nor a question"));
            self.app.overlay = None;
            return self.said.push(why);
        };
        self.said.push(first);
        let mut effects = Vec::new();
        if let Some(action) = palette::accept(&mut self.app, &mut effects) {
            let mode = self.app.mode_below();
            act(&mut self.app, mode, action, &mut effects);
        }
        self.perform(effects);
        // Any message makes `update` start the work that the view needs.
        self.send(Message::Resize(SIZE.0, SIZE.1));
    }

    /// Moves the cursor to a row and performs the action of Enter there.
    fn choose(&mut self, row: usize) {
        let mode = self.app.mode();
        let mut effects = Vec::new();
        act(&mut self.app, mode, Action::First, &mut effects);
        let by = i32::try_from(row).unwrap_or(i32::MAX);
        act(&mut self.app, mode, Action::Move(by), &mut effects);
        let selects = matches!(mode, Mode::Targets | Mode::Workloads);
        if !selects {
            let action = if mode == Mode::Knobs { Action::Edit } else { Action::Accept };
            act(&mut self.app, mode, action, &mut effects);
        }
        self.perform(effects);
        self.send(Message::Resize(SIZE.0, SIZE.1));
    }

    /// Replaces the text of the open input by a line.
    fn replace_input(&mut self, line: &str) {
        self.press(KeyCode::End);
        self.send(Message::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
        line.chars().for_each(|key| self.press(KeyCode::Char(key)));
    }

    fn press(&mut self, code: KeyCode) {
        self.send(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    fn send(&mut self, message: Message) {
        let effects = update(&mut self.app, message);
        self.perform(effects);
    }

    /// Performs effects until none is left, including long work.
    fn perform(&mut self, effects: Vec<Effect>) {
        let mut waiting: VecDeque<Effect> = effects.into();
        while let Some(effect) = waiting.pop_front() {
            let messages = match effect {
                Effect::Quit => {
                    self.quit = true;
                    Vec::new()
                }
                Effect::Work(order) => vec![Message::WorkFinished(order.serial, order.job.run(&Gauge::default()))],
                Effect::After { timer: timer @ Timer::Outlook(_), .. } => vec![Message::Expired(timer)],
                Effect::After { .. } | Effect::Paste(_) | Effect::Repaint | Effect::Cancel(_) => Vec::new(),
                Effect::Suspend => vec![Message::Failed("press Ctrl-Z to suspend".to_owned())],
                Effect::Copy { text, .. } => {
                    self.said.push(text);
                    Vec::new()
                }
                other => effects::without_screen(other, &self.app, &self.options),
            };
            for message in messages {
                waiting.extend(update(&mut self.app, message));
            }
        }
    }

    /// Prepends the pending messages and the status to a text, and clears both.
    fn with_messages(&mut self, text: &str) -> String {
        let status = self
            .app
            .status
            .take()
            .map(|status| if status.error { format!("Error: {}", status.text) } else { status.text });
        let mut out = String::new();
        for line in std::mem::take(&mut self.said).iter().chain(&status) {
            out.push_str(line);
            out.push('\n');
        }
        out.push_str(text);
        if self.app.glyphs.is_ascii() { draw::ascii(&out).into_owned() } else { out }
    }
}

#[cfg(test)]
mod tests;
